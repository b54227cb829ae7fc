"""Task `train`: from a prepared dataset and a Gluon file to a saved model, on every rank of the gang."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import mxnet as mx
import numpy as np

from training.engines.agreement import share_from_chief
from training.engines.mxnet_gluon.choices import describe_choices
from training.engines.mxnet_gluon.epoch_metrics import EpochMetrics, describe_uncounted
from training.engines.mxnet_gluon.feeding import Rows, feed_rank
from training.engines.mxnet_gluon.fine_tuning import copy_weights, describe_frozen, read_weights
from training.engines.mxnet_gluon.gluon_model import GluonModel, build_gluon_model
from training.engines.mxnet_gluon.learning_rate import scale_learning_rate
from training.engines.mxnet_gluon.parameters import read_parameters
from training.engines.mxnet_gluon.runtime import (
    list_versions,
    name_contexts,
    prepare_contexts,
    prepare_seeds,
    seed_step,
)
from training.engines.mxnet_gluon.strategies import start_strategy
from training.engines.mxnet_gluon.strategies.strategy import Share
from training.engines.mxnet_gluon.symbols import choose_form
from training.engines.mxnet_gluon.trainee import Trainee, restore_progress, save_progress
from training.engines.mxnet_gluon.training_job import TrainingJob
from training.engines.mxnet_gluon.validating import evaluate_model
from training.engines.progress import Progress
from training.engines.telling import Teller
from training.engines.training_job import read_training_job, require_model
from training.engines.validation import Metrics, Pulse, validate_on_chief
from training.engines.weights import hash_weights, norm_weights
from training.plan.learning_rate import choose_factor
from training.run.rank import RankContext
from training.run.termination import take_sigterm_back
from training.spec.pipeline import PipelineSpec


def train(ctx: RankContext) -> None:
    """Train the model of `payload["spec"]` and save it in `payload["model_dir"]`.

    Raises:
        SpecError: The model file, its parameters or the batch size do not do.
        DivergedError: A loss stopped being a finite number.
        WorkerError: The model cannot be built, trained or saved.
        InfrastructureError: A checkpoint or the model could not be written.
    """
    spec = PipelineSpec.model_validate(ctx.payload["spec"])
    prepare_contexts(ctx.devices)
    prepare_seeds(spec.train.seed)
    strategy = start_strategy(spec.train.strategy, ctx)
    take_sigterm_back()
    ctx.ready(versions=list_versions(), replicas=strategy.replicas, devices=name_contexts(strategy.contexts))
    run_training(read_training_job(ctx, strategy))


def run_training(job: TrainingJob) -> None:
    """Train, save and tell the result; returns on all ranks at the same time."""
    job.log(str(job.batches))
    trainee = make_trainee(job)
    progress = restore_progress(job, trainee)
    Fit(job, trainee, progress).run()
    if job.ctx.is_chief:
        finish(job, trainee.model, progress)
    # A rank that ends early may take the gang with it: all stay until the chief has saved.
    share_from_chief(job.strategy, True, is_chief=job.ctx.is_chief)


def make_trainee(job: TrainingJob) -> Trainee:
    """Build the model, give it the weights that the spec starts from, and put it where it is trained.

    Raises:
        SpecError: The model file does not do, or the other model does not fit.
        WorkerError: The model cannot be built.
    """
    wanted = require_model(job.spec)
    model = build_gluon_model(job.file, job.dataset, job.spec.train.seed, wanted.freeze)
    job.log(describe_choices(job.file, model))
    scale_learning_rate(model.optimizer, choose_factor(job.spec), job.spec.train.warmup_steps)
    job.log(f"the model will be saved {choose_form(model.net, job.file)}")
    if job.initial_model is not None:
        report = copy_weights(read_weights(job.initial_model), model.net)
        job.log(f"weights of {wanted.initialize_from}: {report}")
    frozen = describe_frozen(model.net, wanted.freeze)
    if frozen:
        job.log(f"frozen: {frozen}")
    for line in describe_uncounted(model.metrics):
        job.log(line)
    job.strategy.place(model.net, job.spec.train)
    trainers = job.strategy.make_trainers(model.net, model.optimizer)
    return Trainee(model=model, trainers=trainers, metrics=EpochMetrics(model.metrics))


class Fit:
    """The steps of one training, from where it stands to its end.

    Args:
        job: The training.
        trainee: What is trained.
        progress: Where it stands; moved on here.
    """

    def __init__(self, job: TrainingJob, trainee: Trainee, progress: Progress) -> None:
        self._job, self._trainee, self._progress = job, trainee, progress
        self._teller = Teller(job, progress)

    def run(self) -> None:
        """Train the rest of an epoch that was begun, then whole epochs."""
        per_epoch = self._job.batches.steps_per_epoch
        while self._progress.step < self._job.total_steps:
            epoch, done = divmod(self._progress.step, per_epoch)
            self._begin_epoch()
            for rows in self._feed(epoch, done):
                self._train_step(rows)
            self._end_epoch(epoch)

    def _feed(self, epoch: int, done: int) -> Iterator[Rows]:
        job = self._job
        return feed_rank(
            job.dataset,
            job.batches,
            seed=job.spec.train.seed,
            epoch=epoch,
            first=done,
            rank=job.ctx.rank,
            world_size=job.ctx.world_size,
        )

    def _begin_epoch(self) -> None:
        self._teller.begin_epoch()
        self._trainee.metrics.reset()
        if self._progress.metric_state and self._job.ctx.is_chief:  # the sums of all ranks, to be added up again
            self._trainee.metrics.write_state(self._progress.metric_state)
        self._progress.metric_state = {}

    def _train_step(self, rows: Rows) -> None:
        job, trainee, progress = self._job, self._trainee, self._progress
        seed_step(job.spec.train.seed, progress.step, job.ctx.rank)
        shares = job.strategy.compute(trainee.model.net, trainee.model.loss, rows)
        job.strategy.update(trainee.trainers, job.batches.global_batch_size)
        losses = self._count(shares)
        progress.step += 1
        self._teller.check_losses(losses, job.strategy.first_replica)
        rate = float(trainee.trainers[0].learning_rate)
        self._teller.tell_step({"loss": float(losses.mean()), "learning_rate": rate})
        if self._teller.is_checkpoint(progress.step):
            save_progress(job, trainee, progress)

    def _count(self, shares: list[Share]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Wait for the step, count its rows, and return the mean losses of all replicas."""
        losses = np.concatenate([share.losses.asnumpy().astype(np.float64) for share in shares])
        labels, outputs = (_join(arrays) for arrays in zip(*((one.labels, one.outputs) for one in shares), strict=True))
        self._trainee.metrics.add(losses, labels, outputs)
        parts = np.split(losses, self._job.strategy.replicas // self._job.ctx.world_size)
        return self._job.strategy.gather_losses(np.array([part.mean() for part in parts]))

    def _end_epoch(self, epoch: int) -> None:
        job, trainee = self._job, self._trainee
        job.strategy.settle(trainee.model.net)
        trainee.metrics.unite(job.strategy)
        metrics = {
            **trainee.metrics.read(),
            **validate_on_chief(job, lambda pulse: validate(job, trainee.model, pulse)),
        }
        self._teller.end_epoch(epoch, metrics)
        save_progress(job, trainee, self._progress)


def validate(job: TrainingJob, model: GluonModel, pulse: Pulse) -> Metrics:
    """Return loss and metrics on the held-out rows."""
    rows = job.dataset.validation_x, job.dataset.validation_y
    return evaluate_model(model, *rows, job.spec.train.batch_size, job.strategy.contexts[0], pulse.beat)


def finish(job: TrainingJob, model: GluonModel, progress: Progress) -> None:
    """Save the trained model and tell the result."""
    from training.engines.mxnet_gluon.saving import save_model  # here, since importing MLflow takes 2 s

    job.ctx.heartbeat("saving the model")
    save_model(model.net, job.dataset, job.file, job.model_dir, job.strategy.contexts[0])
    job.ctx.model(job.model_dir)
    arrays = list(read_parameters(model.net).values())
    job.ctx.result(
        {
            "metrics": progress.metrics,
            "steps": progress.step,
            "epochs": progress.step // job.batches.steps_per_epoch,
            "parameters": sum(array.size for array in arrays),
            "weights_sha256": hash_weights(arrays),
            "weights_norm": norm_weights(arrays),
            "model": str(job.model_dir),
        }
    )


def _join(arrays: Sequence[Any]) -> Any:
    """Return the rows of all arrays as one, on the CPU."""
    here = [array.as_in_context(mx.cpu(0)) for array in arrays]
    return here[0] if len(here) == 1 else mx.nd.concat(*here, dim=0)
