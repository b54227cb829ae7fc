"""What `ganger run` prints in the end."""

from training.commands.run import _summarise
from training.run.folder import RunFolder
from training.steps.pipeline import PipelineOutcome


def test_a_metric_that_is_no_number_is_told_and_fails_nothing(tmp_path):
    """JSON has no number for it: a result says null."""
    outcome = PipelineOutcome(state="succeeded", values={"evaluate": {"metrics": {"auc": None, "loss": 0.25}}})

    assert "metrics     auc nan  loss 0.25\n" in _summarise(RunFolder(tmp_path), outcome)
