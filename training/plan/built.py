"""What of the spec is built today.

A spec may ask for more; preflight refuses the rest by name, before anything starts.
"""

from __future__ import annotations

from collections import Counter

from training.errors import Problem
from training.plan.framework import choose_environment
from training.plan.machine import MachineFacts
from training.plan.network import find_wrong_interfaces
from training.plan.placement import place_ranks
from training.spec.parallelism import count_processes
from training.spec.pipeline import BUILD_DATASET, PipelineSpec
from training.spec.train import HorovodTrain
from training.spec.wording import list_words

STRATEGIES: dict[str, tuple[str, ...]] = {
    "tensorflow": (
        "single",
        "mirrored",
        "multi_worker_mirrored",
        "parameter_server",
        "central_storage",
        "tpu",
        "pipeline",
    ),
    "horovod": ("horovod",),
    "mxnet": ("single", "data_parallel", "dist_sync", "dist_async", "model_parallel"),
}
#: Strategies under which a script runs: it makes its own strategy, so that those of one process are all `single`.
SCRIPT_STRATEGIES = ("single", "multi_worker_mirrored", "parameter_server", "horovod", "dist_sync", "dist_async")
BACKENDS = ("local",)


def find_unbuilt(spec: PipelineSpec) -> list[Problem]:
    """Return a problem for each thing that `spec` asks for and that is not built yet."""
    problems = []
    built = STRATEGIES[spec.train.engine]
    if spec.train.strategy not in built:
        every = ", ".join(f"{engine}/{name}" for engine, names in STRATEGIES.items() for name in names)
        problems.append(
            Problem(
                field="train.strategy",
                message=f"engine {spec.train.engine} with strategy {spec.train.strategy} is not built yet.",
                remedy=f"Built: {every}.",
            )
        )
    elif spec.train.script is not None and spec.train.strategy not in SCRIPT_STRATEGIES:
        problems.append(
            Problem(
                field="train.strategy",
                message=f"must be {list_words(SCRIPT_STRATEGIES)} with train.script. Received: {spec.train.strategy}.",
                remedy="A script of one process makes its own strategy: use single.",
            )
        )
    problems += [*_find_not_for_mxnet(spec), *_find_unknown_metrics(spec)]
    if spec.cluster.backend not in BACKENDS:
        problems.append(
            Problem(
                field="cluster.backend",
                message=f"backend {spec.cluster.backend} is not built yet.",
                remedy=f"Built: {', '.join(BACKENDS)}.",
            )
        )
    return problems


def _find_not_for_mxnet(spec: PipelineSpec) -> list[Problem]:
    """Return a problem for each thing that Horovod has for TensorFlow alone; the spec alone need not tell of MXNet."""
    train, problems = spec.train, []
    if not isinstance(train, HorovodTrain) or train.framework != "mxnet":
        return []
    if train.reduction != "average":
        message = f"must be average for MXNet: Horovod has no other for it. Received: {train.reduction}."
        problems.append(Problem(field="train.reduction", message=message))
    if spec.builds_dataset:
        message = f"must not be `{BUILD_DATASET}` with a model of MXNet, which reads no tf.data."
        problems.append(Problem(field="data.source", message=message))
    return problems


def _find_unknown_metrics(spec: PipelineSpec) -> list[Problem]:
    """Return a problem for what a script's model must reach, if it is one of MXNet: it knows no metrics."""
    if spec.train.script is None or not spec.evaluate.require or choose_environment(spec) != "mxnet":
        return []
    message = "must not be given with a script of MXNet: the model that it leaves does not say which metrics are its."
    remedy = "Leave it out, and have the script fail where its own metrics are too low."
    return [Problem(field="evaluate.require", message=message, remedy=remedy)]


def find_absent(spec: PipelineSpec, machine: MachineFacts) -> list[Problem]:
    """Return a problem when the environment that `spec` needs cannot be used on this machine."""
    name = choose_environment(spec)
    facts = machine.environments.get(name)
    if facts is not None and not facts.problem:
        return []
    remedy = "" if facts else f"Run: ganger env build {name}"
    message = facts.problem if facts else f"the {name} environment is absent."
    return [Problem(field="train.engine", message=message, remedy=remedy)]


def find_oversized(spec: PipelineSpec, machine: MachineFacts) -> list[Problem]:
    """Return a problem for each host that would need more slots than it has: no waiting would help (K13)."""
    processes = count_processes(spec.train.strategy, spec.workers)
    wanted = Counter(placement.host for placement in place_ranks(processes, machine.hosts))
    staged = spec.train.strategy == "pipeline" and spec.train.pipeline.stages is not None
    field, fewer = ("train.pipeline.stages", "stages") if staged else ("cluster.workers", "workers")
    return [
        Problem(
            field=field,
            message=f"must be at most the slots of {host.name}, {host.slots}. Received: {wanted[host.name]}.",
            remedy=f"Use fewer {fewer}, or set GANGER_SLOTS={wanted[host.name]} to let ranks share cores.",
        )
        for host in machine.hosts
        if wanted[host.name] > host.slots
    ]


def find_missing_devices(spec: PipelineSpec, machine: MachineFacts) -> list[Problem]:
    """Return a problem when `spec` needs a TPU and no host has one; GPUs are counted by the ranks themselves."""
    if spec.train.strategy == "tpu" and not any(host.tpu for host in machine.hosts):
        message = "tpu needs a TPU, and none is here: TPU_NAME is not set, and there is no device /dev/accel0."
        return [Problem(field="train.strategy", message=message, remedy="Set TPU_NAME, or choose another strategy.")]
    return []


def check_preflight(spec: PipelineSpec, machine: MachineFacts) -> list[Problem]:
    """Return everything that keeps `spec` from running on `machine`; an empty list means that it can start."""
    unbuilt = find_unbuilt(spec)
    return unbuilt or find_unfit(spec, machine)


def find_unfit(spec: PipelineSpec, machine: MachineFacts) -> list[Problem]:
    """Return what `machine` lacks for `spec`: slots, devices, network interfaces, environment."""
    return [
        *find_oversized(spec, machine),
        *find_missing_devices(spec, machine),
        *find_wrong_interfaces(spec, machine),
        *find_absent(spec, machine),
    ]
