"""TF_CONFIG: how TensorFlow's ranks are told of each other.

The format is TensorFlow's: https://www.tensorflow.org/api_docs/python/tf/distribute/cluster_resolver/TFConfigClusterResolver.
TensorFlow itself hangs or blames another rank when it is wrong; here it is refused before any process starts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError

from training.errors import Problem, SpecError, spec_error
from training.spec.base import Count, SpecModel
from training.spec.mistake import Mistake, render_path
from training.spec.problems import explain_validation
from training.spec.wording import list_words, show

Role = Literal["chief", "worker", "ps", "evaluator"]

#: A host and a port; the launcher puts a free port in the place of `{port:NAME}`.
_ADDRESS = re.compile(r"(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\]):(?:(?P<port>[0-9]{1,5})|\{port:[\w.-]+\})", re.ASCII)


def _check_address(address: str) -> str:
    match = _ADDRESS.fullmatch(address)
    if match is None or (match["port"] and not 1 <= int(match["port"]) <= 65535):
        raise ValueError("must be `host:port` with a port from 1 to 65535")
    return address


Addresses = tuple[Annotated[str, AfterValidator(_check_address)], ...]


class TFTask(SpecModel):
    """Which member of the cluster a process is."""

    type: Role
    """Its role."""
    index: Count
    """Its number among the members of its role, from 0."""


class TFConfig(SpecModel):
    """The cluster and a process's place in it."""

    cluster: Annotated[dict[Role, Annotated[Addresses, Field(min_length=1)]], Field(min_length=1)]
    """Addresses of the members by role; the order gives their numbers."""
    task: TFTask
    """Which member the process is."""


def render_tf_config(workers: Sequence[str], index: int, task_type: str = "worker") -> str:
    """Return TF_CONFIG for one member of a cluster of workers.

    Args:
        workers: `host:port` of every worker, in rank order; the port may be `{port:NAME}`.
        index: Number of the process among them.
        task_type: Role of the process.

    >>> render_tf_config(["a:1", "b:2"], 1)
    '{"cluster":{"worker":["a:1","b:2"]},"task":{"type":"worker","index":1}}'

    Raises:
        SpecError: An address is malformed or given twice, or the task is not a member of the cluster.
    """
    return render_cluster_config({"worker": workers}, task_type, index)


def render_cluster_config(cluster: Mapping[Role, Sequence[str]], task_type: str, index: int) -> str:
    """Return TF_CONFIG for the member `index` of the role `task_type`.

    Args:
        cluster: `host:port` of every member by role; the port may be `{port:NAME}`.
        task_type: Role of the process.
        index: Its number among the members of its role.

    Raises:
        SpecError: An address is malformed or given twice, or the task is not a member of the cluster.
    """
    members = {role: list(addresses) for role, addresses in cluster.items()}
    config = {"cluster": members, "task": {"type": task_type, "index": index}}
    return _validate(config, "TF_CONFIG").model_dump_json()


def parse_tf_config(text: str, field: str = "TF_CONFIG") -> TFConfig:
    """Return a TF_CONFIG that is well-formed and consistent. An index must be a number, never a text (K01).

    Args:
        text: JSON.
        field: What to call the text in error messages.

    Raises:
        SpecError: It is not JSON, lacks a part, or its task is not a member of its cluster; holds every problem.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        message = f"must be JSON. Received: text with a mistake at line {error.lineno}, column {error.colno}"
        comma = re.search(r",\s*[\]}]", text)
        remedy = "JSON takes no comma before a closing bracket." if comma else ""
        raise spec_error(field, f"{message} ({error.msg}).", remedy) from None
    except RecursionError:
        raise spec_error(field, "must be JSON that is not nested so deep.") from None
    return _validate(value, field)


def _validate(value: object, field: str) -> TFConfig:
    try:
        config = TFConfig.model_validate(value)
    except ValidationError as error:
        mistakes = explain_validation(error, TFConfig)
    else:
        mistakes = _find_contradictions(config)
        if not mistakes:
            return config
    raise SpecError([_locate(mistake, field) for mistake in mistakes])


def _find_contradictions(config: TFConfig) -> list[Mistake]:
    cluster, task = config.cluster, config.task
    mistakes = [] if "evaluator" not in cluster else [_refuse_evaluator(cluster["evaluator"])]
    if len(cluster.get("chief", ())) > 1:
        message = f"must hold one address. Received: {len(cluster['chief'])}."
        mistakes.append(Mistake(path=("cluster", "chief"), message=message))
    mistakes += _find_repeats(cluster)
    if task.type not in cluster:
        members = list_words(cluster)
        message = f"must be a role of the cluster: {members}. Received: {show(task.type)}."
        remedy = f"Add cluster.{task.type}, or change the task's type."
        mistakes.append(Mistake(path=("task", "type"), message=message, remedy=remedy))
    elif task.index >= (count := len(cluster[task.type])):
        allowed = "0" if count == 1 else f"0 to {count - 1}"
        message = f"must be {allowed}, since cluster.{task.type} has {count}. Received: {task.index}."
        mistakes.append(Mistake(path=("task", "index"), message=message, remedy="Numbers begin at 0."))
    return mistakes


def _refuse_evaluator(addresses: Addresses) -> Mistake:
    message = f"must not be in the cluster; allowed there: chief, worker and ps. Received: {', '.join(addresses)}."
    return Mistake(path=("cluster", "evaluator"), message=message, remedy="Remove it: evaluation is a step of its own.")


def _find_repeats(cluster: dict[Role, Addresses]) -> list[Mistake]:
    seen: dict[str, str] = {}
    mistakes = []
    for role, addresses in cluster.items():
        for index, address in enumerate(addresses):
            path = ("cluster", role, index)
            if address in seen:
                message = f"must differ from {seen[address]}. Received: {show(address)} for both."
                mistakes.append(Mistake(path=path, message=message, remedy="Give each member a port of its own."))
            seen.setdefault(address, render_path(path))
    return mistakes


def _locate(mistake: Mistake, field: str) -> Problem:
    problem = Problem(field=render_path(mistake.path), message=mistake.message, remedy=mistake.remedy, file=field)
    return problem if mistake.path else replace(problem, field=field, file="")
