from __future__ import annotations

import math
import re

from hypothesis import given
from hypothesis import strategies as st

from training.run.event import Checkpoint, Epoch, Failure, Heartbeat, Measured, Model, Ready, Result, Step
from training.tracking.naming import Points, SavedModel, TagChange, changes_of, shorten, valid_key

VALID = re.compile(r"[/\w.\- :]+")


def points_of(event: Step | Epoch | Measured | Result, job: str = "train") -> Points:
    points = changes_of(event, job=job)
    assert isinstance(points, Points)
    return points


def test_steps_and_epochs_never_share_a_metric_name() -> None:
    """K42: one meaning per metric."""
    step = points_of(Step(rank=0, step=7, epoch=2, time=1.5, metrics={"loss": 0.5}))
    epoch = points_of(Epoch(rank=0, epoch=2, epochs=3, step=10, metrics={"loss": 0.4, "val_loss": 0.6}, seconds=1.25))
    assert step == Points(series="step", step=7, time_ms=1500, values={"step/loss": 0.5})
    assert epoch.values == {"loss": 0.4, "val_loss": 0.6, "epoch": 2.0, "epoch_seconds": 1.25}
    assert (epoch.series, epoch.step) == ("epoch", 10)
    assert not set(step.values) & set(epoch.values)


def test_only_the_chief_counts() -> None:
    """K39."""
    for event in (
        Step(rank=1, step=1, epoch=1, metrics={"loss": 1.0}),
        Epoch(rank=2, epoch=1, epochs=1, step=1, metrics={"loss": 1.0}, seconds=1),
        Model(rank=1, path="/m"),
        Ready(rank=3, pid=1),
    ):
        assert changes_of(event, job="train") is None


def test_what_says_nothing_to_mlflow_is_left_out() -> None:
    for event in (
        Heartbeat(rank=0),
        Checkpoint(rank=0, step=1, path="/c"),
        Step(rank=0, step=1, epoch=1),
        Failure(rank=0, error="E", message="m", exit_code=70),
        Result(rank=0, values={"metrics": {"accuracy": 1.0}}),
    ):
        assert changes_of(event, job="train") is None


def test_a_metric_called_epoch_does_not_displace_the_epoch() -> None:
    event = Epoch(rank=0, epoch=3, epochs=3, step=1, metrics={"epoch": 99.0}, seconds=1)
    assert points_of(event).values["epoch"] == 3.0


def test_the_result_of_evaluate_holds_metrics() -> None:
    event = Result(rank=0, values={"metrics": {"accuracy": 0.97, "val_loss": 0.1, "note": "x", "ok": True}, "step": 9})
    points = points_of(event, job="evaluate")
    assert points.values == {"eval_accuracy": 0.97, "eval_loss": 0.1}
    assert points.step == 9
    assert changes_of(Result(rank=0, values={"metrics": 3}), job="evaluate") is None


def test_a_diverged_loss_is_kept_as_it_is() -> None:
    assert math.isnan(points_of(Step(rank=0, step=1, epoch=1, metrics={"loss": math.nan})).values["step/loss"])


def test_ready_tells_the_versions() -> None:
    change = changes_of(Ready(rank=0, pid=1, versions={"keras": "3.15.1"}, replicas=2, devices=("CPU:0",)), job="train")
    assert isinstance(change, TagChange)
    assert change.tags == {"ganger.version.keras": "3.15.1", "ganger.replicas": "2", "ganger.devices": "CPU:0"}


def test_the_chief_s_model_is_remembered() -> None:
    assert changes_of(Model(rank=0, path="/run/model"), job="train") == SavedModel(path="/run/model")


@given(st.text(min_size=1, max_size=400))
def test_every_name_becomes_one_that_mlflow_takes(name: str) -> None:
    """K40."""
    key = valid_key(name)
    assert VALID.fullmatch(key)
    assert len(key) <= 250
    assert not {"", ".", ".."} & set(key.split("/"))
    assert valid_key(key) == key


def test_different_names_stay_different() -> None:
    """K40: never an equal prefix."""
    names = ["loss@1", "loss#1", "loss 1", "loss_1", "x" * 250 + "a", "x" * 250 + "b", "a//b", "a/b", "/a/b", "é", "😀"]
    assert len({valid_key(name) for name in names}) == len(names)


@given(st.text(min_size=0, max_size=700), st.integers(200, 500))
def test_a_shortened_text_says_so_and_fits(text: str, limit: int) -> None:
    """K40."""
    short = shorten(text, limit, "artifact params/x.txt")
    assert len(short) <= limit
    assert short == text if len(text) <= limit else f"shortened from {len(text)} characters" in short


def test_long_texts_with_the_same_beginning_stay_different() -> None:
    """K40."""
    assert shorten("😀" * 6001 + "a", 6000) != shorten("😀" * 6001 + "b", 6000)


def test_what_is_measured_of_the_gang_has_a_series_of_its_own() -> None:
    points = points_of(Measured(rank=0, step=10, time=2.0, metrics={"pipeline/bubble": 0.2}))
    assert points == Points(series="gang", step=10, time_ms=2000, values={"pipeline/bubble": 0.2})
