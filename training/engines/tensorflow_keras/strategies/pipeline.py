"""Strategy `pipeline`: the layers of one model spread over stages, which work on micro-batches at the same time.

A chief runs the program; each stage is a `tf.distribute.Server` that keeps the variables of its layers and what the
optimizer knows of them (docs/guides/pipeline.md).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from training import settings
from training.engines.tensorflow_keras.pipelining.pipelined_fit import PipelinedFit
from training.engines.tensorflow_keras.pipelining.pipelined_step import PipelinedStep
from training.engines.tensorflow_keras.pipelining.placing import place_model
from training.engines.tensorflow_keras.pipelining.splitting import cut_stages, split_model
from training.engines.tensorflow_keras.pipelining.stage_memory import make_peak_reader
from training.engines.tensorflow_keras.pipelining.step_times import StepTimes
from training.engines.tensorflow_keras.pipelining.trying import try_stages
from training.engines.tensorflow_keras.rows import Batch
from training.engines.tensorflow_keras.shims.placed_variables import Beside, note_optimizer_variables
from training.engines.tensorflow_keras.strategies.strategy import MakeDataset, OneProcess
from training.plan.schedules import order_stages
from training.plan.stage_table import render_moving, render_split
from training.plan.tf_config import parse_tf_config
from training.plan.timeline import describe_pipeline, measure_pipeline
from training.plan.timeline_drawing import draw_timeline
from training.run.folder import JobFolder, write_atomic
from training.run.rank import RankContext
from training.spec.train import TrainSpec

if TYPE_CHECKING:
    from training.engines.tensorflow_keras.gang_callbacks import GangCallbacks


class Pipeline(OneProcess):
    """Waits, when made, until all stages have joined; runs on the chief only.

    Args:
        ctx: What the launcher made of this process.

    Raises:
        SpecError: TF_CONFIG is absent or malformed.
    """

    replicas = 1
    updates_per_step = 1

    def __init__(self, ctx: RankContext) -> None:
        config = parse_tf_config(os.environ.get("TF_CONFIG", ""))
        tf.config.experimental_connect_to_cluster(
            tf.train.ClusterSpec(config.model_dump()["cluster"]), job_name="chief", task_index=0, protocol="grpc"
        )
        count = len(config.cluster["worker"])
        self._devices = [f"/job:worker/task:{stage}/device:CPU:0" for stage in range(count)]
        self._beside: Beside = []
        self._function: Any = None
        self._read_peaks_mib: Callable[[], list[float]] = list
        self._micro_batches, self._title = 0, ""
        self._ctx = ctx
        self._times = StepTimes(())

    @contextlib.contextmanager
    def _note(self) -> Iterator[None]:
        self._beside = []
        with note_optimizer_variables(self._beside):
            yield

    def scope(self) -> AbstractContextManager[Any]:
        """Return the scope in which a model can be built that `adopt` then spreads over the stages."""
        return self._note()

    def adopt(self, model: Any, train: TrainSpec, example: Batch) -> None:
        """Split `model`, and put the variables of each part, and what the optimizer knows of them, onto its stage.

        Raises:
            SpecError: It cannot be split, or not so, or its rows have weights.
        """
        super().adopt(model, train, example)
        assert train.strategy == "pipeline"
        wanted = train.pipeline
        devices = self._devices[: wanted.stages]
        split = split_model(model, wanted, len(devices))
        stages = cut_stages(model, split.partition)
        moving = try_stages(model, stages, example)
        lines = [*render_split(split.layers, split.partition, wanted, train.batch_size), *render_moving(moving)]
        print("\n".join(lines), flush=True)
        place_model(model, stages, devices, self._beside)
        orders = order_stages(wanted.schedule, len(stages), wanted.micro_batches)
        self._function = PipelinedStep(model, stages, devices, orders, train.batch_size).make_function()
        self._times = StepTimes(orders)
        self._read_peaks_mib = make_peak_reader(devices)
        self._micro_batches = wanted.micro_batches
        self._title = f"{len(stages)} stages, {wanted.schedule}, {wanted.micro_batches} micro-batches"

    def fit(self, model: Any, make_dataset: MakeDataset, callbacks: GangCallbacks, **span: int) -> None:
        """Train by `PipelinedFit`; the chief reads the rows and sends them to the first stage, labels to the last."""
        fit = PipelinedFit(model, self._function, self._times, callbacks, self._report)
        fit.run(iter(make_dataset(0, 1)), **span)

    def _report(self, step: int) -> None:
        """Tell what a typical step of late was like, and draw it."""
        found = self._times.choose_typical()
        if found is None:
            return
        step_s, timeline = found
        peaks_mib = self._read_peaks_mib()
        print(describe_pipeline(step_s, timeline, self._micro_batches, peaks_mib), flush=True)
        self._ctx.measured(step=step, metrics=measure_pipeline(step_s, timeline, self._micro_batches, peaks_mib))
        title = f"a step of {self._title}: {100 * timeline.bubble:.0f}% idle"
        folder = JobFolder(Path(os.environ[settings.JOB_DIR]))
        write_atomic(folder.timeline, draw_timeline(timeline, title), durable=False)

    def needs_own_evaluation_model(self) -> bool:
        """Return True: the chief evaluates and saves on variables of its own."""
        return True
