"""The `train` block: one model per engine, told apart by `engine`, so that no field is valid only sometimes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from training.spec.base import Count, Flag, PositiveInt, Seconds, Seed, SpecModel, Text
from training.spec.failures import FailurePatternSpec
from training.spec.stages import StagesSpec


class CheckpointSpec(SpecModel):
    """When checkpoints are written and how many are kept."""

    every_steps: PositiveInt | None = None
    """Steps between two checkpoints; by default one at the end of each epoch."""
    keep: PositiveInt = 3
    """Number of newest checkpoints that are kept."""


class _Train(SpecModel):
    epochs: PositiveInt = 1
    """Passes over the training rows."""
    batch_size: PositiveInt = 32
    """Rows per step over all ranks together (global), whatever the strategy; a multiple of the ranks that share it."""
    seed: Seed = 7
    """Seed of initial weights and of the order of the rows."""
    steps_per_epoch: PositiveInt | None = None
    """Steps of an epoch of a `build_dataset`; by default its batches, counted once."""
    learning_rate_scaling: Literal["none", "linear", "sqrt"] = "none"
    """By what the model's learning rate is multiplied: nothing, the number of replicas, or its square root."""
    warmup_steps: Count = 0
    """Steps in which the rate rises to that: from the model's own rate, or from 0 where nothing is scaled."""
    checkpoint: CheckpointSpec = CheckpointSpec()
    """When checkpoints are written."""
    restarts: Count = 2
    """How often the gang may be restarted after a failure of the infrastructure: a killed rank, a stall."""
    user_restarts: Count = 0
    """How often it may be restarted after a failure of the user's code: it raised, or ran out of memory."""
    failure_patterns: tuple[FailurePatternSpec, ...] = ()
    """What the words of a failed rank mean, where Ganger cannot know; tried in order."""
    start_timeout_s: Seconds = 120.0
    """Seconds within which every rank must be ready."""
    stall_timeout_s: Seconds = 300.0
    """Seconds of silence of a rank after which it counts as stalled."""
    stop_grace_s: Seconds = 10.0
    """Seconds between asking a rank to end (SIGTERM) and ending it (SIGKILL)."""
    timeout_s: Seconds | None = None
    """Seconds that the whole training may take."""
    script: Text | None = None
    """Path of a training script (`path.py`) that every rank runs, instead of `model` (docs/guides/own-script.md)."""
    args: tuple[str, ...] = ()
    """Arguments of the script."""


class TensorFlowTrain(_Train):
    """Training with TensorFlow and Keras 3."""

    engine: Literal["tensorflow"]
    """The framework."""
    strategy: Literal[
        "single", "mirrored", "multi_worker_mirrored", "parameter_server", "central_storage", "tpu", "pipeline"
    ] = "single"
    """How the work is distributed."""
    pipeline: StagesSpec = StagesSpec()
    """How a model is split into stages, for the strategy `pipeline`."""


class HorovodTrain(_Train):
    """Training with Horovod, for Keras and Gluon models."""

    engine: Literal["horovod"]
    """The framework."""
    strategy: Literal["horovod"] = "horovod"
    """How the work is distributed: by allreduce."""
    framework: Literal["tensorflow", "mxnet"] | None = None
    """Framework of the model file or the script; by default what it imports, if unclear TensorFlow."""
    compression: Literal["none", "fp16"] = "none"
    """How gradients travel: as they are, or as half-precision numbers."""
    reduction: Literal["average", "adasum"] = "average"
    """How the ranks' gradients become one: by their average, or by Adasum, for which the ranks are a power of 2."""


class MXNetTrain(_Train):
    """Training with MXNet Gluon."""

    engine: Literal["mxnet"]
    """The framework."""
    strategy: Literal["single", "data_parallel", "dist_sync", "dist_async", "model_parallel"] = "single"
    """How the work is distributed."""
    micro_batches: PositiveInt | None = None
    """Parts of a step's rows that devices work on at once, with `model_parallel`; by default as many as devices."""
    placement: dict[Text, Count | Text] = {}
    """Name of a block to the number of its device, with `model_parallel`; by default parameters are balanced."""
    hybridize: Flag = True
    """Whether blocks are compiled at their first call; switch it off to look into them with a debugger."""


TrainSpec = Annotated[TensorFlowTrain | HorovodTrain | MXNetTrain, Field(discriminator="engine")]
