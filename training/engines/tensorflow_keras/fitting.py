"""Task `train`: from a prepared dataset and a model file to a saved model, on every rank of the gang."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from training.engines.tensorflow_keras.agreement import share_from_chief, unify_weights
from training.engines.tensorflow_keras.fine_tuning import copy_weights, describe_frozen, read_model
from training.engines.tensorflow_keras.gang_callbacks import GangCallbacks
from training.engines.tensorflow_keras.keras_model import build_keras_model, check_savable, describe_normalization
from training.engines.tensorflow_keras.learning_rate import scale_learning_rate
from training.engines.tensorflow_keras.resuming import Progress, restore_progress
from training.engines.tensorflow_keras.runtime import list_devices, list_versions, prepare_runtime
from training.engines.tensorflow_keras.strategies import start_strategy
from training.engines.tensorflow_keras.training_job import TrainingJob, read_training_job, require_model
from training.engines.tensorflow_keras.user_callbacks import build_callbacks
from training.engines.tensorflow_keras.validating import Validator
from training.engines.tensorflow_keras.weights import hash_weights, norm_weights
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
    prepare_runtime(ctx, spec.train.seed)
    strategy = start_strategy(spec.train.strategy, ctx)
    take_sigterm_back()
    ctx.ready(versions=list_versions(), replicas=strategy.replicas, devices=list_devices())
    run_training(read_training_job(ctx, strategy))


def run_training(job: TrainingJob) -> None:
    """Train, save and tell the result; returns on all ranks at the same time."""
    job.log(str(job.batches))
    with job.strategy.scope():
        model = build_keras_model(job.file, job.rows.example, job.spec.train.seed, require_model(job.spec).freeze)
        warmup_updates = job.spec.train.warmup_steps * job.strategy.updates_per_step
        scale_learning_rate(model, choose_factor(job.spec), warmup_updates)
    job.strategy.adopt(model, job.spec.train, job.rows.example)
    check_savable(model, job.file.entrypoint)
    tune(job, model)
    if said := describe_normalization(model, job.spec.train.strategy, job.strategy.replicas):
        job.log(f"note: {said}")
    progress = restore_progress(job, model)
    if unify_weights(job.strategy, model, is_chief=job.ctx.is_chief):
        job.log("the ranks began with different weights; all took those of rank 0")
    validator = Validator(job, model)
    fit(job, model, progress, validator)
    if job.ctx.is_chief:
        finish(job, validator.copy_trained(), progress)
    # A rank that ends early takes the cluster with it: all stay until the chief has saved.
    share_from_chief(job.strategy, True, is_chief=job.ctx.is_chief)


def tune(job: TrainingJob, model: Any) -> None:
    """Give `model` the weights that the spec starts from, and tell what was loaded and what is frozen.

    Raises:
        SpecError: The other model does not load, or no weight of it fits.
    """
    if job.initial_model is not None:
        report = copy_weights(read_model(job.initial_model), model)
        job.log(f"weights of {require_model(job.spec).initialize_from}: {report}")
    frozen = describe_frozen(model)
    if frozen:
        job.log(f"frozen: {frozen}")


def fit(job: TrainingJob, model: Any, progress: Progress, validator: Validator) -> None:
    """Train from `progress` to the end: the rest of an epoch that was begun, then whole epochs.

    Raises:
        SpecError: The rows of `build_dataset` have ended too early.
    """
    per_epoch, epochs = job.batches.steps_per_epoch, job.spec.train.epochs
    callbacks = GangCallbacks(job, model, progress, validator, build_callbacks(job))
    while progress.step < job.total_steps and not callbacks.stopped:
        epoch, done = divmod(progress.step, per_epoch)
        last_epoch = epoch + 1 if done else epochs
        first, last = progress.step, last_epoch * per_epoch
        try:
            job.strategy.fit(
                model,
                functools.partial(job.rows.feed, first, last),
                callbacks,
                initial_epoch=epoch,
                epochs=last_epoch,
                steps_per_epoch=per_epoch - done,
            )
        except tf.errors.OpError:
            if (ended := job.rows.explain(progress.step)) is not None:
                raise ended from None
            raise
    callbacks.close()


def finish(job: TrainingJob, model: Any, progress: Progress) -> None:
    """Save the trained model and tell the result."""
    from training.engines.tensorflow_keras.saving import save_model  # here, since importing MLflow takes 2 s

    job.ctx.heartbeat("saving the model")
    save_model(model, job.rows.example[0], job.file, job.model_dir)
    job.ctx.model(job.model_dir)
    job.ctx.result(
        {
            "metrics": progress.metrics,
            "steps": progress.step,
            "epochs": progress.step // job.batches.steps_per_epoch,
            "parameters": model.count_params(),
            "weights_sha256": hash_weights(model.weights),
            "weights_norm": norm_weights(model.weights),
            "model": str(job.model_dir),
        }
    )
