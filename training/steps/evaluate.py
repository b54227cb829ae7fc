"""Step `evaluate`: the saved model on the held-out rows, in one process, against what it must reach."""

from __future__ import annotations

from typing import Any

import yaml

from training import settings
from training.plan.jobs import plan_single_job
from training.plan.run_plan import plan_run
from training.steps.context import StepContext
from training.steps.dataset import read_dataset
from training.steps.job import run_job
from training.steps.machine import read_machine
from training.steps.tracking import plan_tracking

#: Of MLflow; a model of another one says nothing of its metrics.
_EVALUATED_FLAVORS = {"keras", "tensorflow"}


def evaluate(ctx: StepContext) -> dict[str, Any]:
    """Evaluate the trained model and hold it to `evaluate.require`.

    Returns:
        `metrics` and `rows`; none for a script without rows of ours or a model.

    Raises:
        EvaluationError: A metric is out of its bounds.
        GangerError: The model cannot be loaded or evaluated.
    """
    reason = _find_reason_to_skip(ctx)
    if reason:
        ctx.log(f"Nothing is evaluated: {reason}.")
        return {"metrics": {}, "rows": 0}
    machine = read_machine()
    dataset = read_dataset(ctx.run) if ctx.spec.prepares_data else None
    plan = plan_run(ctx.spec, machine, dataset.facts if dataset else None)
    payload = {
        "task": "evaluate",
        "engine": plan.environment,
        "spec": ctx.spec.model_dump(mode="json", by_alias=True),
        "base_dir": str(ctx.file.base_dir),
        "dataset": str(dataset.path) if dataset else None,
        "model_dir": str(ctx.run.model),
    }
    job = plan_single_job(
        run_id=ctx.run.run_id,
        name="evaluate",
        python=machine.environments[plan.environment].python,
        payload=payload,
        threads=machine.hosts[0].cores,
        tracking=plan_tracking(ctx, plan),
        env={"TF_CPP_MIN_LOG_LEVEL": "2"},
    )
    return run_job(ctx, job, again=True).values  # the bounds may have changed since it was done


def _find_reason_to_skip(ctx: StepContext) -> str:
    """Return why a script's training has nothing to evaluate; what the spec requires was seen to before."""
    if ctx.spec.data is None:
        return "the spec has no `data` block, so no rows are held out"
    if ctx.spec.train.script is None or ctx.spec.evaluate.require:
        return ""
    description = ctx.run.model / "MLmodel"
    if not description.exists():
        return f"the script left no model in ${settings.MODEL_DIR}"
    flavors = set(yaml.safe_load(description.read_text(encoding="utf-8")).get("flavors", {}))
    return "" if flavors & _EVALUATED_FLAVORS else "the script's model is not one of Keras"
