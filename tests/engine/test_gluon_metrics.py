"""What MXNet's metrics say of an epoch and of held-out rows: that of all rows, however they are cut into batches."""

import numpy as np
import pytest
from gluon_tasks import MEASURED
from teams import BATCH, GLUON_GANGS, GLUON_TEAMS

from training.data.batches import order_epoch

pytestmark = pytest.mark.engine
TEAMS_OF_ONE = [team for team in GLUON_TEAMS if GLUON_TEAMS[team].strategy != "model_parallel"]


def measure_classes(x, y):
    """Return by hand what the metrics of `measured_classes` are."""
    logits = x[:, :3].astype(np.float64) @ [0.4, 0.3, 0.2] - 0.3
    p = 1 / (1 + np.exp(-logits))
    said = p > 0.5
    tp, fp, fn, tn = (float(np.sum((said == s) & (y == t))) for s, t in ((1, 1), (1, 0), (0, 1), (0, 0)))
    f1 = 2 * tp / (2 * tp + fp + fn)
    mcc = (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    entropy = -np.log(np.where(y == 1, p, 1 - p)).mean()
    return {
        "accuracy": (tp + tn) / len(y),
        "f1": f1,
        "f1_micro": f1,
        "mcc": mcc,
        "mcc_micro": mcc,
        "pcc": mcc,
        "cross-entropy": entropy,
        "nll-loss": entropy,
        "perplexity": np.exp(entropy),
        "worst_recall": min(tp / (tp + fn), tn / (tn + fp)),
        "median": np.median(p),
    }


def measure_numbers(x, y):
    """Return by hand what the metrics of `measured_numbers` are."""
    outputs = 150 * np.sin(x[:, 0].astype(np.float64)) + 0.5 * x[:, 0]
    off = outputs - y
    correlation = np.corrcoef(outputs, y)[0, 1]
    return {
        "mae": np.abs(off).mean(),
        "mse": (off**2).mean(),
        "rmse": np.sqrt((off**2).mean()),
        "pearsonr": correlation,
        "pearsonr_micro": correlation,
        "off": np.abs(off).mean(),
        "far": (off > 0).mean(),
    }


BY_HAND = {"measured_classes": measure_classes, "measured_numbers": measure_numbers}


def check(gang, team, name, kind, *, is_whole=True):
    """Check each epoch of a training, and its validation of more rows than a batch, of which the last has few."""
    folder = gang.site.datasets[MEASURED[kind]]
    x, y, held_out_x, held_out_y = (
        np.load(folder / f"{part}.npy") for part in ("train_x", "train_y", "validation_x", "validation_y")
    )
    assert BATCH < len(held_out_x) < 2 * BATCH - 30
    held_out = {f"val_{metric}": value for metric, value in BY_HAND[kind](held_out_x, held_out_y).items()}
    assert f"{team}/{name}" not in gang.chief.failures, gang.chief.failures[f"{team}/{name}"]
    told = gang.metrics(f"{team}/{name}")
    assert told
    for epoch, metrics in enumerate(told, start=2 - len(told)):
        rows = order_epoch(7, epoch, len(x))[: len(x) // BATCH * BATCH]
        expected = BY_HAND[kind](x[rows], y[rows]) | held_out
        if not is_whole:  # what is in no sum is known of the chief's rows alone
            expected.pop("median", None)
        assert {metric: metrics[metric] for metric in expected} == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", MEASURED)
@pytest.mark.parametrize("team", TEAMS_OF_ONE)
def test_metrics_are_those_of_all_rows(gluon, team, kind):
    """MXNet's F1, MCC, RMSE, MAE, MSE and PearsonCorrelation are means over batches by themselves."""
    check(gluon, team, kind, kind)
    check(gluon, team, f"{kind}_resumed", kind, is_whole=False)


@pytest.mark.parametrize("kind", MEASURED)
@pytest.mark.parametrize("team", GLUON_GANGS)
def test_metrics_are_those_of_the_rows_of_all_ranks(gluon_gangs, team, kind):
    """Tables are added up like numbers, and are in checkpoints."""
    gang = gluon_gangs(team)
    for name in (kind, f"{kind}_resumed"):
        check(gang, team, name, kind, is_whole=False)


@pytest.mark.parametrize("team", [team for team in GLUON_GANGS if "async" not in team])
def test_tables_of_different_sizes_are_refused_by_all_ranks(gluon_gangs, team):
    for rank in gluon_gangs(team).ranks:
        failure = rank.failures[f"{team}/uneven"]
        assert failure["error"] == "SpecError"
        assert "must have the same sizes on all ranks. Received: different ones." in failure["message"]


def test_what_cannot_be_added_up_is_said(gluon):
    said = [line for line in gluon.chief.text.splitlines() if line.startswith("metric ")]
    assert set(said) == {
        "metric median keeps outputs, neither a number nor a NumPy array of some size, which ranks could add up: of an "
        "epoch, it tells of the chief's rows alone, and of those since the training was last started"
    }
