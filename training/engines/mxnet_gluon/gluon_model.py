"""From the user's model file to a Gluon block with all its parameters, its loss, metrics and optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import gluon

from training.data.dataset import Dataset
from training.engines.mxnet_gluon import defaults
from training.engines.mxnet_gluon.feeding import make_array
from training.engines.mxnet_gluon.fine_tuning import freeze_blocks
from training.engines.mxnet_gluon.parameters import iter_parameters
from training.engines.mxnet_gluon.row_metrics import count_by_rows
from training.engines.mxnet_gluon.runtime import prepare_seeds
from training.errors import SpecError, WorkerError, spec_error
from training.model_file import BUILD_MODEL, ModelFile

_FEW_ROWS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class GluonModel:
    """A block and what it is trained with.

    Attributes:
        net: The block, all shapes known.
        loss: Called with outputs and labels, returns the loss of each row.
        metrics: The user's, or the defaults; composite ones taken apart.
        optimizer: Not yet told of parameters.
    """

    net: Any
    loss: Any
    metrics: list[Any]
    optimizer: Any


def build_gluon_model(file: ModelFile, dataset: Dataset, seed: int, freeze: Sequence[str] = ()) -> GluonModel:
    """Return the model of `file`, its parameters on the CPU.

    The random state is set first: the same seed gives the same first weights on every rank and at every number of
    ranks. So are the names that Gluon gives to blocks. Shapes that Gluon finds out at the first call are found out here
    (K32), from rows and labels of the dataset.

    Raises:
        SpecError: A function of the file returned something else than it must, or `freeze` names no block.
        WorkerError: It raised, or the block does not take the rows.
    """
    prepare_seeds(seed)
    with mx.name.NameManager():
        net = build_block(file)
        check_block(net, file.entrypoint)
        _check_parameters(net, file)
        initialize(net)
        net.collect_params().reset_ctx(mx.cpu(0))  # wherever the file put them
    loss = build_loss(file, dataset)
    frozen = freeze_blocks(net, freeze)
    try:
        _call_once(net, loss, dataset, file)
    except SpecError:
        raise
    except Exception as error:
        raise WorkerError(
            f"the block of {file.entrypoint} must take rows of shape {list(dataset.x.shape[1:])} ({dataset.x.dtype}) "
            f"with labels of shape {list(dataset.y.shape[1:])} ({dataset.y.dtype}). "
            f"Received: {type(error).__name__}: {error}"
        ) from error
    _check_trained(net, file, frozen)
    return GluonModel(net=net, loss=loss, metrics=build_metrics(file, dataset), optimizer=build_optimizer(file, net))


def build_block(file: ModelFile) -> Any:
    """Return what `build_model` does; what it raises is the user's and passes as it is, but for a GPU that is absent.

    Raises:
        SpecError: It uses a GPU, and MXNet has none.
    """
    try:
        return file.build_model()
    except mx.base.MXNetError as error:
        if "GPU" not in str(error) or mx.context.num_gpus():
            raise
        raise spec_error(
            "model.entrypoint",
            f"{BUILD_MODEL} of {file.entrypoint} must not name devices. "
            f"Received: a GPU, of which MXNet has none here ({str(error).splitlines()[-1].strip()}).",
            "Leave out ctx: the strategy chooses devices.",
        ) from error


class FirstValues(mx.init.Xavier):  # type: ignore[misc]  # MXNet ships no types
    """Xavier's for matrices; of vectors, which the parameters of a symbol may be, ones for scales and zeros for all."""

    def _init_weight(self, name: Any, array: Any) -> None:
        if len(array.shape) > 1:
            super()._init_weight(name, array)
        else:
            array[:] = 1.0 if str(name).endswith(("gamma", "var")) else 0.0


def initialize(net: Any) -> None:
    """Give parameters first values, at the first call, that the user gave none."""
    for _, parameter in iter_parameters(net):
        if parameter._data is None and not parameter._deferred_init:
            parameter.initialize(default_init=FirstValues())


def build_loss(file: ModelFile, dataset: Dataset) -> Any:
    """Return the loss of the file, or the default.

    Raises:
        SpecError: `build_loss` returned something that cannot be called, or that would have to be trained itself.
    """
    loss = file.build_loss() if file.build_loss else defaults.choose_loss(dataset.y.dtype)
    if not callable(loss):
        raise _refuse("build_loss", file, "a loss of Gluon, or a function of outputs and labels", loss)
    own = _list_trained(loss) if isinstance(loss, gluon.Block) else []
    if own:
        raise spec_error(
            "model.entrypoint",
            f"build_loss of {file.entrypoint} must return a loss without parameters to be trained: a trainer has those "
            f"of the block alone. Received: {', '.join(own)}.",
            'Make them part of the block, or set their grad_req to "null".',
        )
    return loss


def build_metrics(file: ModelFile, dataset: Dataset) -> list[Any]:
    """Return the metrics of the file, or the defaults, composite ones taken apart, as they count rows.

    Raises:
        SpecError: `build_metrics` returned something else, or two of one name.
    """
    built = file.build_metrics() if file.build_metrics else defaults.choose_metrics(dataset.y.dtype)
    metrics = list(_take_apart(built if isinstance(built, list | tuple) else [built], file))
    names = ["loss", *(name for metric in metrics for name, _ in metric.get_name_value())]
    if len(set(names)) != len(names):
        raise _refuse("build_metrics", file, "metrics with different names, none of them `loss`", names)
    return metrics


def build_optimizer(file: ModelFile, net: Any) -> Any:
    """Return the optimizer of the trainer that the file makes, or the default.

    What else a `gluon.Trainer` says, its key-value store above all, is the strategy's to say.

    Raises:
        SpecError: `build_trainer` returned neither a trainer nor an optimizer.
    """
    if file.build_trainer is None:
        return defaults.choose_optimizer()
    built = file.build_trainer(net.collect_params())
    optimizer = built.optimizer if isinstance(built, gluon.Trainer) else built
    if not isinstance(optimizer, mx.optimizer.Optimizer):
        raise _refuse("build_trainer", file, "a gluon.Trainer or an mxnet.optimizer.Optimizer", built)
    return optimizer


def check_block(net: object, entrypoint: str) -> None:
    """Check what `build_model` returned.

    Raises:
        SpecError: It is no Gluon block.
    """
    if isinstance(net, gluon.Block):
        return
    what = "nothing" if net is None else f"a {type(net).__module__}.{type(net).__qualname__}"
    if isinstance(net, mx.sym.Symbol):
        remedy = "Wrap the symbol: gluon.SymbolBlock(symbol, inputs)."
    else:
        remedy = "Does it end in `return net`?" if net is None else ""
    message = f"{BUILD_MODEL} of {entrypoint} must return a gluon.Block (MXNet {mx.__version__}). Received: {what}."
    raise spec_error("model.entrypoint", message, remedy)


def _check_parameters(net: Any, file: ModelFile) -> None:
    sparse = [name for name, parameter in iter_parameters(net) if parameter._stype != "default"]
    if sparse:
        message = f"the block of {file.entrypoint} must have dense parameters. Received: sparse {', '.join(sparse)}."
        raise spec_error("model.entrypoint", message, "Sparse gradients may do: `sparse_grad=True`.")


def _check_trained(net: Any, file: ModelFile, frozen: Sequence[str]) -> None:
    if _list_trained(net):
        return
    if frozen:
        raise spec_error("model.freeze", f"must leave something to be trained. Received: {', '.join(frozen)}.")
    count = len(list(iter_parameters(net)))
    received = f"{count}, all with grad_req null" if count else "a block without any"
    message = f"the block of {file.entrypoint} must have parameters to be trained. Received: {received}."
    raise spec_error("model.entrypoint", message)


def _list_trained(block: Any) -> list[str]:
    return [name for name, parameter in iter_parameters(block) if parameter.grad_req != "null"]


def _call_once(net: Any, loss: Any, dataset: Dataset, file: ModelFile) -> None:
    """Call block and loss on a few rows, which makes all shapes known; nothing learns from it."""
    entrypoint = file.entrypoint
    context = mx.cpu(0)
    x, y = (make_array(np.asarray(array[:_FEW_ROWS]), context) for array in (dataset.x, dataset.y))
    outputs = net(x)
    if not isinstance(outputs, mx.nd.NDArray) or not outputs.shape or outputs.shape[0] != len(x):
        raise spec_error("model.entrypoint", f"the block of {entrypoint} must return one array with an entry a row.")
    if file.build_loss is None and defaults.is_classification(dataset.y.dtype):
        _check_classes(outputs.shape[-1], dataset, entrypoint)
    losses = loss(outputs, y)
    if not isinstance(losses, mx.nd.NDArray) or losses.shape != (len(x),):
        shape = getattr(losses, "shape", type(losses).__name__)
        raise spec_error(
            "model.entrypoint",
            f"the loss of {entrypoint} must return one number a row, so that gradients can be scaled by the global "
            f"batch. Received: shape {shape} for {len(x)} rows.",
            "Leave the mean over rows to Ganger.",
        )
    mx.nd.waitall()


def _check_classes(outputs: int, dataset: Dataset, entrypoint: str) -> None:
    """Check that the default loss has an output for each label: MXNet takes the nearest one where there is none."""
    lowest, highest = int(np.min(dataset.y)), int(np.max(dataset.y))
    if dataset.manifest.validation_rows:
        held_out = dataset.validation_y
        lowest, highest = min(lowest, int(np.min(held_out))), max(highest, int(np.max(held_out)))
    if not 0 <= lowest <= highest < outputs:
        raise spec_error(
            "model.entrypoint",
            f"the block of {entrypoint} must return a number for each class, and whole-number labels must be classes "
            f"from 0 on. Received: {outputs} outputs for labels {lowest} to {highest}.",
            "Where labels are no classes, say what the loss is in build_loss.",
        )


def _take_apart(metrics: Sequence[Any], file: ModelFile) -> Any:
    for metric in metrics:
        if isinstance(metric, mx.metric.CompositeEvalMetric):
            yield from _take_apart(metric.metrics, file)
        elif isinstance(metric, mx.metric.EvalMetric):
            yield count_by_rows(metric)
        else:
            raise _refuse("build_metrics", file, "one mxnet.metric.EvalMetric or a list of them", metric)


def _refuse(function: str, file: ModelFile, wanted: str, received: object) -> SpecError:
    shown = received if isinstance(received, list) else f"a {type(received).__name__}"
    return spec_error("model.entrypoint", f"{function} of {file.entrypoint} must return {wanted}. Received: {shown}.")
