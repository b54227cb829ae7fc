"""Airflow and MLflow on this machine: chooses ports, starts both together, says when they answer, stops them whole.

Knows Airflow and MLflow only as commands and addresses; imports neither.
"""

from training.serve.record import ServiceRef, Services
from training.serve.start import read_services, serve_until_interrupted, start_services
from training.serve.stop import stop_services

__all__ = ["ServiceRef", "Services", "read_services", "serve_until_interrupted", "start_services", "stop_services"]
