"""Tags that every MLflow run of ours has beside those of its plan."""

from __future__ import annotations

import getpass
import os
import socket

from training.plan.job import TrackingPlan
from training.run.folder import JobFolder, RunFolder
from training.tracking.naming import TAG_RUN_ID


def default_tags(plan: TrackingPlan, run: RunFolder, job: JobFolder) -> dict[str, str]:
    """Return the tags that are set where the plan does not set them itself.

    Values that change from try to try (host) are tags and never params, so that a retry can continue the run (K41).
    """
    return {
        TAG_RUN_ID: run.run_id,
        "ganger.job": job.path.name,
        "ganger.host": socket.gethostname(),
        "ganger.run_folder": str(run.path),
        "mlflow.source.type": "JOB",
        "mlflow.source.name": plan.tags.get("ganger.pipeline", plan.run_name),
        "mlflow.user": _user(),
    }


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a number that has no name.
        return str(os.getuid())
