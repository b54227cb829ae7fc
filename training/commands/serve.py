"""`ganger serve`: Airflow and MLflow on this machine."""

from __future__ import annotations

import click

from training import settings
from training.serve import serve_until_interrupted


@click.command()
@click.option(
    "--airflow-port", type=click.IntRange(1, 65535), help="Port of Airflow; by default 8080 or the next free."
)
@click.option("--mlflow-port", type=click.IntRange(1, 65535), help="Port of MLflow; by default 5000 or the next free.")
def serve(airflow_port: int | None, mlflow_port: int | None) -> None:
    """Start Airflow and MLflow, print their addresses, and stop both at Ctrl-C."""
    home = settings.read_home()
    serve_until_interrupted(home, airflow_port=airflow_port, mlflow_port=mlflow_port, log=click.echo)
