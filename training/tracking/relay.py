"""A server between a script and a database of MLflow: `python -m training.tracking.relay ADDRESS PORT`.

Engine environments have no drivers of databases, and should not hold their passwords. It serves until it is ended.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from training.settings import read_home, read_tracking_uri


def main(address: str, port: int) -> None:
    """Serve the database that `MLFLOW_TRACKING_URI` names, or the default one, on one address."""
    # MLflow's application reads these when it is imported.
    from mlflow.server.constants import ARTIFACT_ROOT_ENV_VAR, BACKEND_STORE_URI_ENV_VAR

    os.environ[BACKEND_STORE_URI_ENV_VAR] = read_tracking_uri()
    os.environ[ARTIFACT_ROOT_ENV_VAR] = (Path(read_home()) / "mlartifacts").as_uri()
    from mlflow.server import app
    from werkzeug.serving import make_server

    for name in ("werkzeug", "mlflow", "alembic"):  # a line for each request would bury what the ranks say
        logging.getLogger(name).setLevel(logging.ERROR)
    server = make_server(address, port, app, threaded=True)
    print(f"MLflow's database is served on {address}:{port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
