"""Ganger without Airflow: from a spec to a plan to a supervised gang of training processes."""

__version__ = "0.1.0"
