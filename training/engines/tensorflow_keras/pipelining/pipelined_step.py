"""One training step of a model in stages, as one function: all micro-batches forward and backward, then the update.

TensorFlow's executors run it on all stages at once. What each stage does after what is held by control dependencies, so
that its order is the schedule's; everything else follows from who takes whose results.

What a step computes is what the unsplit model would: the gradient of the loss of the whole batch, in which each
micro-batch counts by its rows. Two kinds of layers see the micro-batch instead of the batch, as in every pipeline:
batch normalisation normalises by the rows of a micro-batch and moves its averages once for each of them, in their
order; random layers such as dropout draw anew for each micro-batch, from their own random state, in their order, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from training.engines.tensorflow_keras.pipelining.placing import follow_largest_input
from training.engines.tensorflow_keras.pipelining.row_losses import is_mean
from training.engines.tensorflow_keras.pipelining.splitting import Stage
from training.engines.tensorflow_keras.shims.unordered_timestamps import unordered_timestamps
from training.plan.schedules import StageOrder, Work, split_rows, unroll


@dataclass(slots=True)
class _Forward:
    """What is kept of a forward until its backward."""

    given: Any
    made: Any
    tape: Any
    objective: Any
    weights: list[Any]


class PipelinedStep:
    """The step; call `make_function` for what trains.

    Args:
        model: The whole model, compiled, its variables on the devices of their stages.
        stages: Its stages.
        devices: The device of each stage.
        orders: What each stage does, in its order.
        batch_size: Rows of a step.
    """

    def __init__(
        self, model: Any, stages: Sequence[Stage], devices: Sequence[str], orders: Sequence[StageOrder], batch_size: int
    ) -> None:
        self._model = model
        self._stages = stages
        self._devices = devices
        self._orders = orders
        self._last = len(stages) - 1
        self._rows = split_rows(batch_size, sum(work.phase == "forward" for work in orders[0]))
        self._is_mean = is_mean(model)

    def make_function(self) -> Any:
        """Return the function: features and labels of a step to its loss, the metrics so far, and the marks of time.

        The marks are, for each stage, the times of begin and end of its works in the order of the schedule.
        """
        function = tf.function(lambda x, y: _Trace(self).run(x, y), autograph=False)

        def step(x: Any, y: Any) -> Any:
            with unordered_timestamps():
                return function(x, y)

        return step

    def weigh(self, micro_batch: int) -> float:
        """Return what the loss of a micro-batch counts in that of the step."""
        return self._rows[micro_batch] / sum(self._rows) if self._is_mean else 1.0


class _Trace:
    """What is known while the function is traced."""

    def __init__(self, step: PipelinedStep) -> None:
        self._step = step
        self._stages = step._stages
        self._devices = step._devices
        self._kept: dict[tuple[int, int], _Forward] = {}
        self._sent_back: dict[tuple[int, int], Any] = {}
        self._gradients: dict[int, list[Any]] = {}
        self._ended: dict[int, Any] = {}
        self._marks: dict[int, list[Any]] = {stage: [] for stage in range(len(step._stages))}
        self._losses: list[Any] = []
        self._outputs: list[Any] = []
        self._x: Sequence[Any] = ()
        self._y: Sequence[Any] = ()

    def run(self, x: Any, y: Any) -> Any:
        step = self._step
        with tf.device(self._devices[0]):
            self._x = tf.split(tf.cast(x, step._model.inputs[0].dtype), step._rows)
        with tf.device(self._devices[step._last]):
            self._y = tf.split(y, step._rows)
        for work in unroll(step._orders):
            self._do(work)
        loss, logs = self._update(y)
        return loss, logs, self._stack_marks()

    def _do(self, work: Work) -> None:
        """Do one work between two marks of time, after the one that its stage did before.

        The first mark is set when what the work takes has arrived: to wait for it is to be idle.
        """
        stage = work.stage
        with tf.device(self._devices[stage]):
            given = tf.identity(self._find_given(work))
            before = [self._ended[stage]] if stage in self._ended else []
            with tf.control_dependencies([*before, given]):
                begin = tf.timestamp()
            with tf.control_dependencies([begin]):
                made = (self._forward if work.phase == "forward" else self._backward)(work, tf.identity(given))
            with tf.control_dependencies(made):
                end = tf.timestamp()
        self._ended[stage] = end
        self._marks[stage] += [begin, end]

    def _find_given(self, work: Work) -> Any:
        stage, micro_batch = work.stage, work.micro_batch
        if work.phase == "forward":
            return self._kept[stage - 1, micro_batch].made if stage else self._x[micro_batch]
        if stage == self._step._last:
            return self._kept[stage, micro_batch].made
        return self._sent_back.pop((stage + 1, micro_batch))

    def _forward(self, work: Work, given: Any) -> list[Any]:
        stage = self._stages[work.stage]
        weights = [variable.value for variable in stage.trainable_variables]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(weights)
            if work.stage:
                tape.watch(given)
            made = stage.call(given, training=True)
            if work.stage == self._step._last:
                self._outputs.append(made)
                made = self._score(work.micro_batch, made)
            penalty = _add_penalties(stage)
            objective = [made] if penalty is None else [made, penalty * self._share(work.micro_batch)]
        self._kept[work.stage, work.micro_batch] = _Forward(given, made, tape, objective, weights)
        self._losses += [tf.stop_gradient(part) for part in objective[1:]]
        return [made]

    def _share(self, micro_batch: int) -> float:
        rows = self._step._rows
        return rows[micro_batch] / sum(rows)

    def _score(self, micro_batch: int, made: Any) -> Any:
        """Return what the micro-batch adds to the loss of the step."""
        loss = self._step._model._compile_loss(self._y[micro_batch], made) * self._step.weigh(micro_batch)
        self._losses.append(tf.stop_gradient(loss))
        return loss

    def _backward(self, work: Work, given: Any) -> list[Any]:
        kept = self._kept.pop((work.stage, work.micro_batch))
        scale = self._step._model.optimizer.scale_loss  # `apply` takes its factor out of the gradients again
        first = scale(tf.ones_like(kept.made)) if work.stage == self._step._last else given
        found = kept.tape.gradient(
            kept.objective,
            [kept.given, *kept.weights] if work.stage else kept.weights,
            output_gradients=[first, *(scale(tf.ones_like(part)) for part in kept.objective[1:])],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        gradients = list(found)
        if work.stage:
            self._sent_back[work.stage, work.micro_batch] = tf.convert_to_tensor(gradients.pop(0))
        before = self._gradients.get(work.stage)
        summed = gradients if before is None else [_add(a, b) for a, b in zip(before, gradients, strict=True)]
        self._gradients[work.stage] = summed
        sent = [self._sent_back[work.stage, work.micro_batch]] if work.stage else []
        return [*summed, *sent]

    def _update(self, y: Any) -> tuple[Any, dict[str, Any]]:
        """Apply the gradients, and take loss and metrics of the whole batch."""
        model = self._step._model
        with tf.device(self._devices[self._step._last]):
            loss = tf.add_n(self._losses)
            rows = sum(self._step._rows)
            model._loss_tracker.update_state(loss, sample_weight=rows)
            logs = model.compute_metrics(None, y, tf.concat(self._outputs, axis=0))
        gradients = {
            id(variable): gradient
            for number, stage in enumerate(self._stages)
            for variable, gradient in zip(stage.trainable_variables, self._gradients[number], strict=True)
        }
        weights = model.trainable_variables
        graph = tf.compat.v1.get_default_graph()
        with graph.device(follow_largest_input(graph)):
            model.optimizer.apply([gradients[id(variable)] for variable in weights], weights)
        return loss, logs

    def _stack_marks(self) -> list[Any]:
        stacked = []
        for stage, marks in self._marks.items():
            with tf.device(self._devices[stage]):
                stacked.append(tf.stack(marks))
        return stacked


def _add(these: Any, those: Any) -> Any:
    """Return the sum of two gradients.

    An embedding's is a list of rows, and stays one: TensorFlow takes the norm of such a list before it adds up the rows
    of a token that occurs twice, so that clipping would differ from that of the unsplit model.
    """
    if isinstance(these, tf.IndexedSlices) and isinstance(those, tf.IndexedSlices):
        values, indices = (tf.concat(parts, 0) for parts in zip(_read(these), _read(those), strict=True))
        return tf.IndexedSlices(values, indices, these.dense_shape)
    return tf.convert_to_tensor(these) + tf.convert_to_tensor(those)


def _read(slices: Any) -> tuple[Any, Any]:
    return slices.values, slices.indices


def _add_penalties(stage: Stage) -> Any:
    """Return the sum of what the regularizers of a stage's weights add to the loss; None where there are none."""
    penalties = [
        variable.regularizer(variable) for variable in stage.trainable_variables if variable.regularizer is not None
    ]
    return tf.add_n(penalties) if penalties else None
