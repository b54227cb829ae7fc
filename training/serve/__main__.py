"""`python -m training.serve start|stop|status`: what the Makefile calls."""

from __future__ import annotations

import sys

from training import settings
from training.errors import GangerError
from training.serve import read_services, start_services, stop_services


def main(arguments: list[str]) -> int:
    """Do what the command line says and return the exit code."""
    home = settings.read_home()
    match arguments:
        case ["start"]:
            services = start_services(home)
            print(f"Airflow: {services.airflow_url}\nMLflow:  {services.mlflow_url}")
        case ["stop"]:
            stopped = stop_services(home)
            print(f"Stopped: {', '.join(stopped)}." if stopped else "Nothing was running.")
        case ["status"]:
            found = read_services(home)
            print(f"Airflow: {found.airflow_url}\nMLflow:  {found.mlflow_url}" if found else "Not running.")
        case _:
            print("usage: python -m training.serve start|stop|status", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except GangerError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
