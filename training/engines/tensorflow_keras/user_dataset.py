"""The `tf.data` pipeline that `build_dataset` of the model file returns: called, checked, measured."""

from __future__ import annotations

import hashlib
import inspect
import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from training.arguments import choose_arguments
from training.engines.tensorflow_keras.feeding import choose_options
from training.errors import SpecError, spec_error
from training.model_file import ModelFile
from training.plan.epochs import ShardSize
from training.spec.dataset_rules import DATASET_ARGUMENTS, find_dataset_problems
from training.spec.pipeline import BUILD_DATASET, DataSpec

_PULSE_S = 5.0


class UserDataset:
    """Makes the pipelines of one training.

    Args:
        file: The model file.
        data: The block `data` of the spec.
        seed: `train.seed`.
        threads: Threads that reading may use.

    Raises:
        SpecError: The file has no `build_dataset`, or one that cannot be called as the spec says.
    """

    def __init__(self, file: ModelFile, data: DataSpec, seed: int, threads: int) -> None:
        if file.build_dataset is None:
            message = f"needs a function {BUILD_DATASET} in the model file. Received: {file.entrypoint}, without one."
            raise spec_error("data.source", message)
        problems = find_dataset_problems(_list_parameters(file.build_dataset, data), data)
        if problems:
            raise SpecError(problems)
        self._function, self._entrypoint = file.build_dataset, file.entrypoint
        self._data, self._seed, self._threads = data, seed, threads

    def build(self, split: str, *, batch_size: int, shard: int = 0, shards: int = 1) -> Any:
        """Return a new pipeline, the same each time that it is asked for; None for no validation rows.

        The random state is set first, so that a shuffle without a seed is the same on all ranks, too.

        Raises:
            SpecError: It is no `tf.data.Dataset`, or not one of batches `(x, y)`.
        """
        keras.utils.set_random_seed(self._seed)
        given = {"split": split, "batch_size": batch_size, "seed": self._seed, "shard": shard, "shards": shards}
        dataset = self._function(**choose_arguments(self._function, given), **self._data.params)
        if dataset is None and split != "train":
            return None
        if not isinstance(dataset, tf.data.Dataset):
            kind = f"{type(dataset).__module__}.{type(dataset).__qualname__}"
            raise self.refuse(
                f"must return a tf.data.Dataset for split {split!r}. Received: a {kind}.",
                "Wrap a generator by tf.data.Dataset.from_generator." if inspect.isgenerator(dataset) else "",
            )
        _check_elements(self, dataset.element_spec)
        return dataset.with_options(choose_options(self._threads))

    def refuse(self, message: str, remedy: str = "") -> SpecError:
        """Return an error about the function."""
        return spec_error("model.entrypoint", f"{BUILD_DATASET} of {self._entrypoint} {message}", remedy)

    def keep_whole(self, dataset: Any, batch_size: int) -> Any:
        """Return the batches of `dataset` that have `batch_size` rows, the number in their shapes.

        Raises:
            SpecError: It has batches of another size.
        """
        spec = dataset.element_spec
        sizes = {leaf.shape[0] for leaf in tf.nest.flatten(spec)} - {None}
        if sizes - {batch_size}:
            raise self._refuse_size(f"batches of {max(sizes)} rows", batch_size)
        if has_open_size(dataset):
            dataset = dataset.filter(lambda *batch: tf.equal(_size(batch), batch_size))
        return dataset.map(lambda *batch: tf.nest.map_structure(lambda t, s: _set_size(t, s, batch_size), batch, spec))

    def read_first(self, dataset: Any, batch_size: int) -> Any:
        """Return the first whole batch as NumPy arrays.

        Raises:
            SpecError: There is none (K25).
        """
        first = next(iter(self.keep_whole(dataset, batch_size).take(1).as_numpy_iterator()), None)
        if first is None:
            rows = next(iter(_sizes(dataset).take(1).as_numpy_iterator()), None)
            raise self._refuse_size("no batch" if rows is None else f"a first batch of {rows} rows", batch_size)
        return first

    def _refuse_size(self, received: str, batch_size: int) -> SpecError:
        return self.refuse(
            f"must give at least one batch of batch_size rows, {batch_size} here. Received: {received}.",
            f"Batch by the argument batch_size, and give at least {batch_size} rows.",
        )


def look_up_size(dataset: Any) -> ShardSize:
    """Return what `tf.data` knows of the length of a pass; a last batch that is not whole is counted."""
    known = int(dataset.cardinality())
    endless = known == tf.data.INFINITE_CARDINALITY
    return ShardSize(batches=known if known >= 0 else None, endless=endless)


def count_batches(dataset: Any, batch_size: int, limit_s: float, beat: Callable[[str], None]) -> ShardSize:
    """Return the length of a pass, counted by reading it where `tf.data` cannot tell.

    Args:
        dataset: As `build` returned it.
        batch_size: Rows of a whole batch.
        limit_s: How long counting may take.
        beat: Told now and then that counting goes on.
    """
    size = look_up_size(dataset)
    if size.endless or (size.batches is not None and not has_open_size(dataset)):
        return size
    whole = left_out = 0
    begin = told = time.monotonic()
    for rows in _sizes(dataset).as_numpy_iterator():
        whole, left_out = (whole + 1, left_out) if rows == batch_size else (whole, left_out + int(rows))
        now = time.monotonic()
        if now - begin > limit_s:
            return ShardSize()
        if now - told > _PULSE_S:
            told = now
            beat(f"counting the batches of {BUILD_DATASET}: {whole} so far")
    return ShardSize(batches=whole, left_out=left_out)


def count_rows(dataset: Any) -> int:
    """Return the rows of all batches; reads them."""
    return int(_sizes(dataset).reduce(np.int64(0), lambda total, rows: total + tf.cast(rows, tf.int64)))


def has_open_size(dataset: Any) -> bool:
    """Whether batches may have any number of rows, as far as their shapes say."""
    return any(leaf.shape[0] is None for leaf in tf.nest.flatten(dataset.element_spec))


def digest_batch(batch: Any) -> str:
    """Return the SHA-256, in hex, over the values of a batch of NumPy arrays."""
    digest = hashlib.sha256()
    for leaf in tf.nest.flatten(batch):
        array = np.asarray(leaf)
        digest.update(repr(array.tolist()).encode() if array.dtype.hasobject else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _list_parameters(function: Callable[..., Any], data: DataSpec) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    names = [parameter.name for parameter in parameters]
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    return [*names, *DATASET_ARGUMENTS, *data.params] if takes_any else names


def _check_elements(user: UserDataset, spec: Any) -> None:
    if not isinstance(spec, tuple) or len(spec) not in (2, 3):
        raise user.refuse(f"must give batches (x, y) or (x, y, sample_weight). Received: {spec}.")
    for leaf in tf.nest.flatten(spec):
        if not isinstance(leaf, tf.TensorSpec) or not leaf.shape.rank:
            raise user.refuse(
                f"must give batches of dense tensors whose number of dimensions is known. Received: {leaf}.",
                "Give from_generator an output_signature, and batch before you return.",
            )


def _sizes(dataset: Any) -> Any:
    return dataset.map(lambda *batch: _size(batch))


def _size(batch: Any) -> Any:
    return tf.shape(tf.nest.flatten(batch)[0])[0]


def _set_size(tensor: Any, spec: Any, rows: int) -> Any:
    return tf.ensure_shape(tensor, [rows, *spec.shape[1:]])
