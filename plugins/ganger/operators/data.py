"""The operator that prepares data."""

from __future__ import annotations

from ganger.operators.base import StepOperator


class PrepareDataOperator(StepOperator):
    """Reads and checks the rows and writes them as memory-mappable arrays, or finds them prepared."""

    step = "prepare_data"
