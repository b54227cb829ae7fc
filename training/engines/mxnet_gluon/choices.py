"""What a block is trained with and who chose it, in a line of the log: a default is not to go unseen."""

from __future__ import annotations

from typing import Any

from training.engines.mxnet_gluon.gluon_model import GluonModel
from training.model_file import ModelFile


def describe_choices(file: ModelFile, model: GluonModel) -> str:
    """Return loss, optimizer and metrics, each with the function of the file that it comes from, or that it is ours."""
    names = ", ".join(name for metric in model.metrics for name, _ in metric.get_name_value()) or "none"
    chosen = [
        ("loss", _name(model.loss), "build_loss", file.build_loss),
        ("optimizer", _name(model.optimizer), "build_trainer", file.build_trainer),
        ("metrics", names, "build_metrics", file.build_metrics),
    ]
    return ", ".join(
        f"{what}: {which} ({f'of {function}' if own else f'the default, there is no {function}'})"
        for what, which, function, own in chosen
    )


def _name(value: Any) -> str:
    return str(getattr(value, "__name__", type(value).__name__)).strip("<>")
