"""The error tree: exit codes, wording, and errors that cross process borders."""

import pickle

import pytest

from training import errors
from training.errors import GangerError, Problem, SpecError

CLASSES = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, GangerError)]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_errors_survive_pickling(cls):
    error = SpecError([Problem(field="a", message="b.", line=3)]) if cls is SpecError else cls("a message")

    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is cls
    assert str(copy) == str(error)


def test_a_spec_error_keeps_every_problem():
    problems = [Problem(field="a", message="one."), Problem(field="b", message="two.")]

    assert pickle.loads(pickle.dumps(SpecError(problems))).problems == tuple(problems)


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (
            Problem(file="a.yaml", line=3, field="train.epochs", message="must be at least 1.", remedy="Set it."),
            "a.yaml:3: train.epochs: must be at least 1. Set it.",
        ),
        (Problem(file="a.yaml", field="", message="is empty."), "a.yaml: is empty."),
        (Problem(field="name", message="is missing."), "name: is missing."),
        (Problem(field="", message="no such file."), "no such file."),
    ],
)
def test_a_problem_reads_as_place_field_message_remedy(problem, text):
    assert str(problem) == text


def test_only_failures_that_may_heal_are_retryable():
    retryable = {cls.__name__ for cls in CLASSES if cls.retryable}

    assert retryable == {"LaunchError", "InfrastructureError", "TrackingError"}
    assert all(cls.exit_code == errors.EXIT_TEMPORARY for cls in CLASSES if cls.retryable)
