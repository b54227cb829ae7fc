"""TF_CONFIG: malformed ones are refused before any process starts, with field, value and what is allowed (K01)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.errors import SpecError
from training.plan.tf_config import parse_tf_config, render_tf_config

WORKERS = ["10.0.0.1:2222", "10.0.0.2:2222"]


def config(task_type="worker", index=0, **roles):
    return json.dumps({"cluster": {"worker": WORKERS, **roles}, "task": {"type": task_type, "index": index}})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            config("chief"),
            "TF_CONFIG: task.type: must be a role of the cluster: worker. Received: the text 'chief'. "
            "Add cluster.chief, or change the task's type.",
        ),
        (
            config(index=2),
            "TF_CONFIG: task.index: must be 0 to 1, since cluster.worker has 2. Received: 2. Numbers begin at 0.",
        ),
        (
            config(index="0"),
            "TF_CONFIG: task.index: must be a whole number. Received: the text '0'. Write it without quotes.",
        ),
        (
            config(evaluator=["10.0.0.3:2222"]),
            "TF_CONFIG: cluster.evaluator: must not be in the cluster; allowed there: chief, worker and ps. "
            "Received: 10.0.0.3:2222. Remove it: evaluation is a step of its own.",
        ),
        (
            config()[:-1] + ",}",
            "TF_CONFIG: must be JSON. Received: text with a mistake at line 1, column 100 "
            "(Expecting property name enclosed in double quotes). JSON takes no comma before a closing bracket.",
        ),
    ],
    ids=["role absent from the cluster", "index out of range", "index as text", "evaluator inside", "trailing comma"],
)
def test_the_five_malformed_files(text, problem):
    """K01."""
    with pytest.raises(SpecError) as caught:
        parse_tf_config(text)

    assert [str(found) for found in caught.value.problems] == [problem]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("{}", ["cluster", "task"]),
        ("[]", ["file.json"]),
        ("[" * 100_000, ["file.json"]),
        (config(worker=[]), ["cluster.worker"]),
        (config(worker=["a:0", "b", "c:65536"]), ["cluster.worker[0]", "cluster.worker[1]", "cluster.worker[2]"]),
        (config(worker=["a:1", "a:1"]), ["cluster.worker[1]"]),
        (config(chief=["a:1", "b:1"]), ["cluster.chief"]),
        (config(wroker=["a:1"]), ["cluster.wroker"]),
        (config(index=-1), ["task.index"]),
        (config(index=1.0), ["task.index"]),
        (config("evaluator"), ["task.type"]),
    ],
)
def test_other_malformed_files_name_their_fields(text, fields):
    with pytest.raises(SpecError) as caught:
        parse_tf_config(text, "file.json")

    assert [problem.field for problem in caught.value.problems] == fields


@given(st.integers(1, 16).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1))))
def test_what_is_rendered_is_well_formed(member):
    size, index = member
    workers = [f"127.0.0.1:{{port:rank-{rank}}}" for rank in range(size)]

    config = parse_tf_config(render_tf_config(workers, index))

    assert config.cluster == {"worker": tuple(workers)}
    assert (config.task.type, config.task.index) == ("worker", index)


@pytest.mark.parametrize(
    ("workers", "index", "task_type"),
    [(WORKERS, 2, "worker"), (WORKERS, 0, "chief"), ([], 0, "worker"), (["a"], 0, "worker")],
)
def test_a_malformed_one_cannot_be_rendered(workers, index, task_type):
    with pytest.raises(SpecError):
        render_tf_config(workers, index, task_type)
