"""The single writer of the MLflow run: journal, replay, model logging, registry. Nothing else talks to MLflow."""
