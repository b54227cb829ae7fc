"""What `ganger run` prints in the end."""

from training.commands.run import _describe, _summarise
from training.run.folder import RunFolder
from training.steps.pipeline import PipelineOutcome


def test_a_metric_that_is_no_number_is_told_and_fails_nothing(tmp_path):
    """JSON has no number for it: a result says null."""
    outcome = PipelineOutcome(state="succeeded", values={"evaluate": {"metrics": {"auc": None, "loss": 0.25}}})

    assert "evaluation  auc nan  loss 0.25\n" in _summarise(RunFolder(tmp_path), outcome)


def test_what_the_training_told_and_what_the_evaluation_found_are_kept_apart(tmp_path):
    """They have the same names, of other rows."""
    trained, found = {"loss": 0.5, "val_loss": 0.25}, {"loss": 0.25}
    outcome = PipelineOutcome(state="succeeded", values={"train": {"metrics": trained}, "evaluate": {"metrics": found}})
    folder = RunFolder(tmp_path)

    described = _describe(folder, outcome)

    assert (described["metrics"], described["evaluation"]) == (trained, found)
    assert "metrics     loss 0.5  val_loss 0.25\nevaluation  loss 0.25\n" in _summarise(folder, outcome)
    assert "metrics     none\nevaluation  none\n" in _summarise(folder, PipelineOutcome(state="failed"))
