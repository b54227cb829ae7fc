"""The environment variables that Ganger reads or sets, each declared once.

Read when asked for, never at import, so that a test or an Airflow task can change them.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from training.errors import spec_error

#: Folder of runs, prepared data and local MLflow store. With several Airflow workers: storage that they share.
HOME = "GANGER_HOME"
#: Folders of pipeline YAML files beside `dags/pipelines`, separated by `os.pathsep`.
PIPELINES = "GANGER_PIPELINES"
#: Folder of the engine environments (`tensorflow`, `mxnet`).
ENGINES = "GANGER_ENGINES"
#: Where built Horovod wheels are kept between set-ups.
CACHE = "GANGER_CACHE"
#: Set in every process of a job: `run_id/job`. A sweep ends what bears the mark of a job that is over.
MARK = "GANGER_MARK"
#: Set in every rank: the job folder that it belongs to.
JOB_DIR = "GANGER_JOB_DIR"
#: Set in every rank: its rank, its number on its host, and the number of ranks.
RANK = "GANGER_RANK"
LOCAL_RANK = "GANGER_LOCAL_RANK"
WORLD_SIZE = "GANGER_WORLD_SIZE"
#: Set in every rank: number of the attempt, from 1. From the second on, an engine looks for a checkpoint to go on from.
ATTEMPT = "GANGER_ATTEMPT"
#: MLflow's own variable, set in every rank of a tracked job: a run that user code starts joins the job's run.
MLFLOW_RUN_ID = "MLFLOW_RUN_ID"
#: MLflow's own variable, set in rank 0 of a script.
EXPERIMENT_NAME = "MLFLOW_EXPERIMENT_NAME"
#: Set in the ranks of a script: where to leave a model, where checkpoints survive a restart, and the prepared rows.
MODEL_DIR = "GANGER_MODEL_DIR"
CHECKPOINT_DIR = "GANGER_CHECKPOINT_DIR"
DATASET = "GANGER_DATASET"
#: Set in every rank: the temporary folder of its job, which vanishes with it.
TMPDIR = "TMPDIR"
#: MLflow's own variable; a local SQLite store in the home folder is used where it is not set.
TRACKING_URI = "MLFLOW_TRACKING_URI"
#: Address of MLflow's web pages, where it is not the tracking URI itself.
MLFLOW_UI = "GANGER_MLFLOW_UI"
#: Slots of this machine: how many ranks may run on it at once. By default one per core that this process may use.
SLOTS = "GANGER_SLOTS"

REPOSITORY = Path(__file__).resolve().parent.parent


def read_home() -> Path:
    """Return the folder that holds runs and prepared data: `$GANGER_HOME`, or `.ganger` in the repository."""
    return Path(os.environ.get(HOME) or REPOSITORY / ".ganger").absolute()


def read_engines_dir() -> Path:
    """Return the folder that holds the engine environments: `$GANGER_ENGINES`, or `.engines` in the repository."""
    return Path(os.environ.get(ENGINES) or REPOSITORY / ".engines").absolute()


def read_cache_dir() -> Path:
    """Return the folder for built wheels: `$GANGER_CACHE`, or `ganger` in the user's cache folder."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ganger"
    return Path(os.environ.get(CACHE) or default).absolute()


def read_pipeline_dirs() -> tuple[Path, ...]:
    """Return the folders whose `*.yaml` files become DAGs: `dags/pipelines`, then those of `$GANGER_PIPELINES`."""
    extra = [Path(entry) for entry in os.environ.get(PIPELINES, "").split(os.pathsep) if entry]
    return (REPOSITORY / "dags" / "pipelines", *extra)


def read_tracking_uri() -> str:
    """Return the MLflow tracking URI: `$MLFLOW_TRACKING_URI`, or a SQLite file in the home folder."""
    return os.environ.get(TRACKING_URI) or f"sqlite:///{read_home() / 'mlflow.db'}"


def read_slots() -> int:
    """Return the number of slots of this machine: `$GANGER_SLOTS`, or one per core that this process may use.

    Raises:
        SpecError: The variable holds no whole number of at least 1.
    """
    text = os.environ.get(SLOTS, "").strip()
    if not text:
        return len(os.sched_getaffinity(0))
    if not (text.isascii() and text.isdecimal() and int(text) >= 1):
        raise spec_error(
            SLOTS, f"must be a whole number of at least 1. Received: {text!r}.", "Unset it for one per core."
        )
    return int(text)


def read_mlflow_ui() -> str | None:
    """Return the address of MLflow's web pages without a slash at its end; None where it has none.

    That is `$GANGER_MLFLOW_UI`, or the tracking URI if it is a web address. A user name or password in it is left out.
    """
    parts = urlsplit(os.environ.get(MLFLOW_UI) or read_tracking_uri())
    if parts.scheme not in ("http", "https"):
        return None
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
