"""Jobs that run somebody's own script: short ones, which need the standard library only."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from fakes.jobs import LIMITS, Job
from training.plan.job import JobPlan, TrackingPlan
from training.plan.machine import EnvironmentFacts, MachineFacts
from training.plan.run_plan import plan_run
from training.plan.script_job import plan_script_job
from training.run.folder import RunFolder
from training.spec.loader import pipeline_from_mapping

#: Stands for every environment: this one.
HERE = EnvironmentFacts(name="here", python=sys.executable)
MACHINE = MachineFacts(environments={"tensorflow": HERE, "control": HERE})


def script_plan(
    job: Job, folder: Path, text: str, *arguments: str, workers: int = 1, limits: dict[str, Any] | None = None,
    uri: str = "", **blocks: Any,
) -> JobPlan:  # fmt: skip
    """Write `script.py` into `folder` and return the plan of its job, tracked only if there is a `uri`."""
    (folder / "script.py").write_text(text)
    mapping = {
        "name": "own",
        "train": {
            "engine": "tensorflow",
            "strategy": "multi_worker_mirrored",
            "script": "script.py",
            "args": list(arguments),
        },
        "cluster": {"workers": workers},
        **blocks,
    }
    run = RunFolder(job.folder.path.parent.parent)
    spec = pipeline_from_mapping(mapping, folder).spec
    plan = plan_script_job(
        plan_run(spec, MACHINE),
        spec,
        MACHINE,
        run_id=run.run_id,
        base_dir=folder,
        dataset=None,
        model_dir=run.model,
        checkpoints=run.checkpoints,
        tracking=TrackingPlan(tracking_uri=uri or "http://127.0.0.1:9", experiment="own", run_name=run.run_id),
    )
    changes = {"slots": 0, "limits": LIMITS.model_copy(update=limits or {})}
    return plan.model_copy(update=changes if uri else {**changes, "tracking": None})
