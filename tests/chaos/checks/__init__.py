"""What must hold of a training that a fault was done to. Each function returns what does not hold, in sentences."""

from tests.chaos.checks.endings import check_ending, check_results
from tests.chaos.checks.leftovers import check_leftovers
from tests.chaos.checks.progress import check_checkpoints, check_steps
from tests.chaos.checks.tracking import check_none_running, check_tracking
from tests.chaos.checks.weights import TOLERANCE, check_evaluation, measure_difference

__all__ = [
    "TOLERANCE",
    "check_checkpoints",
    "check_ending",
    "check_evaluation",
    "check_leftovers",
    "check_none_running",
    "check_results",
    "check_steps",
    "check_tracking",
    "measure_difference",
]
