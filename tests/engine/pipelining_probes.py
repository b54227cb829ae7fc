"""Questions about models in stages, whose stages are devices of one process here; run by `probes.py`."""

from pathlib import Path
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from pipelining_models import (
    REFUSED,
    ROWS,
    Noting,
    compile_chain,
    draw_tokens,
    make_dropping_model,
    make_normalising_model,
    make_rich_model,
    make_scaled_model,
)

from training.engines.tensorflow_keras.pipelining.pipelined_fit import PipelinedFit
from training.engines.tensorflow_keras.pipelining.pipelined_step import PipelinedStep
from training.engines.tensorflow_keras.pipelining.placing import place_model
from training.engines.tensorflow_keras.pipelining.split_report import report_split
from training.engines.tensorflow_keras.pipelining.splitting import cut_stages, read_layers, split_model
from training.engines.tensorflow_keras.pipelining.trying import try_stages
from training.engines.tensorflow_keras.shims.placed_variables import note_optimizer_variables
from training.engines.tensorflow_keras.shims.symbolic_build import build_from_batch
from training.errors import GangerError
from training.plan.partition import find_cuts
from training.plan.schedules import order_stages, split_rows
from training.plan.stage_table import render_other_counts, render_split
from training.spec.stages import StagesSpec

STEPS = 3
USER_FILES = Path(__file__).with_name("user_files")
layers = keras.layers


def make_devices():
    """Make three devices out of the CPU, before TensorFlow begins."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)


def unlike_layers():
    """Everything that goes beyond a row of layers: blocks, tokens, penalties, clipping, decay, averages, a sum."""
    differences = {}
    for schedule, stages in (("1f1b", 3), ("gpipe", 2)):
        x, y = draw_tokens()
        whole, split = make_rich_model(), make_rich_model()
        losses = [train_whole(whole, x, y) for _ in range(STEPS)]
        told, _ = train(split, x, y, stages, schedule)
        differences[schedule] = max(compare(whole.variables, split.variables), *np.abs(np.subtract(losses, told)))
        differences[f"{schedule} optimizer"] = compare(whole.optimizer.variables, split.optimizer.variables)
    return differences


def scaled():
    """A scale of the loss, which the optimizer takes out of the gradients again; of penalties, too."""
    x = np.random.default_rng(3).normal(size=(ROWS, 4)).astype("float32")
    whole, split = make_scaled_model(), make_scaled_model()
    for _ in range(STEPS):
        train_whole(whole, x, x[:, :1])
    train(split, x, x[:, :1], 2, "1f1b")
    return compare(whole.variables, split.variables)


def blocks():
    return [read_layers(make_rich_model())[cut - 1].name for cut in find_cuts(read_layers(make_rich_model()))]


def places():
    """Where the variables of each stage, and what Adam knows of them, are after a step."""
    x, y = draw_tokens()
    model = make_rich_model()
    _, stages = train(model, x, y, 2, "1f1b", steps=1)
    weights = [{name_device(variable) for variable in stage.variables} for stage in stages]
    moments = [name_device(variable) for variable in model.optimizer.variables if "momentum" in variable.path]
    owners = [name_device(variable) for variable in model.trainable_variables]
    return {"weights": [sorted(names) for names in weights], "moments": moments, "owners": owners}


def normalised_by_micro_batch():
    """The moving averages after a step, and those of an unsplit model that is given the micro-batches in turn."""
    x = np.random.default_rng(3).normal(2.0, 3.0, (ROWS, 4)).astype("float32")
    y = x[:, :1]
    whole, split = make_normalising_model(), make_normalising_model()
    start = 0
    for rows in split_rows(ROWS, 4):
        whole(x[start : start + rows], training=True)
        start += rows
    train(split, x, y, 2, "1f1b", steps=1)
    averages = [[v for v in model.non_trainable_variables if "moving" in v.path] for model in (whole, split)]
    return {"difference": compare(*averages), "moved": float(np.abs(averages[1][0].numpy()).max())}


def dropped_by_micro_batch():
    """The loss of a step with dropout: as an unsplit model has it that is given the micro-batches in turn."""
    x, y = np.ones((ROWS, 4), "float32"), np.ones((ROWS, 1), "float32")
    whole = make_dropping_model()
    squares = [np.square(whole(x[:rows], training=True) - 1).sum() for rows in split_rows(ROWS, 4)]
    told = {schedule: train(make_dropping_model(), x, y, 2, schedule)[0] for schedule in ("1f1b", "gpipe")}
    return {"expected": float(sum(squares) / ROWS), **told}


def inner_model():
    """What a model inside of a model costs, which counts as one layer, and what its layers cost one by one."""
    chain = [layers.Conv2D(4, 3), layers.Conv2D(2, 3, strides=2), layers.Flatten(), layers.Dense(3)]
    costs = {}
    for name, parts in (("whole", [keras.Sequential(chain)]), ("parts", chain)):
        model = keras.Sequential([keras.Input((16, 16, 1)), *parts])
        costs[name] = [layer.cost for layer in read_layers(model)]
    return costs


def awaited():
    """What an epoch does up to its first step, in its order."""
    done = mock.Mock()
    done.step.return_value = (0.0, {}, [])
    fit = PipelinedFit(done.model, done.step, mock.Mock(), mock.Mock(), mock.Mock())
    with mock.patch(f"{PipelinedFit.__module__}.await_writes", done.await_writes):
        fit.run(iter([("x", "y")]), initial_epoch=0, epochs=1, steps_per_epoch=1)
    return [name for name, *_ in done.mock_calls if name in ("model.reset_metrics", "await_writes", "step")]


def clocks():
    """Whether TensorFlow puts two readings of the clock into an order, plainly and in a step of two stages."""
    plain = tf.function(lambda: (tf.timestamp(), tf.timestamp()), autograph=False).get_concrete_function().graph
    x, y = np.ones((ROWS, 4), "float32"), np.ones((ROWS, 1), "float32")
    noting = Noting()
    train(compile_chain(layers.Dense(4), noting, layers.Dense(1)), x, y, 2, "1f1b", steps=1)
    return {"plain": count_ordered_clocks(plain), "step": count_ordered_clocks(noting.graph)}


def count_ordered_clocks(graph):
    """Return how many readings of the clock wait for one of another device, or, in a graph of one device, for any."""
    clocks = [operation for operation in graph.get_operations() if operation.type == "Timestamp"]
    alone = len({clock.device for clock in clocks}) == 1
    waiting = ((clock, other) for clock in clocks for other in clock.control_inputs if other.type == "Timestamp")
    return sum(alone or clock.device != other.device for clock, other in waiting)


def description():
    model, wanted = make_rich_model(), StagesSpec(stages=2)
    build_from_batch(model, draw_tokens())
    split = split_model(model, wanted, 2)
    return [*render_split(split.layers, split.partition, wanted, 16), *render_other_counts(split.layers, 2, wanted, 16)]


def refusals():
    return {name: refuse(make) for name, make in REFUSED.items()}


def refuse(make, weights=False):
    """Return what is said of a model that `make` makes, or of its partition, before its first step."""
    model = make()
    model, wanted = model if isinstance(model, tuple) else (model, "auto")
    try:
        inputs = getattr(model, "inputs", None) or [keras.Input((4,))]
        x, y = [np.zeros((4, *each.shape[1:]), "float32") for each in inputs], np.zeros((4, 1))
        x = x if len(x) > 1 else x[0]
        build_from_batch(model, (x, y))
        split = split_model(model, StagesSpec(stages=2, partition=wanted), 2)
        stages = cut_stages(model, split.partition)
        try_stages(model, stages, (x, y, y) if weights else (x, y))
    except GangerError as error:
        return str(error)
    return None


def weighted():
    """What is said of rows with weights."""
    return refuse(make_normalising_model, weights=True)


def tried():
    """Which layers go by micro-batches, and what a try has changed of their model."""
    keras.utils.set_random_seed(7)
    chain = [layers.Dense(4), layers.BatchNormalization(name="norm"), layers.Dropout(0.5, name="drop"), layers.Dense(1)]
    model = compile_chain(*chain)
    x = np.random.default_rng(3).normal(2.0, 3.0, (4, 4)).astype("float32")
    build_from_batch(model, (x, x[:, :1]))
    before = [variable.numpy() for variable in model.variables]
    stages = cut_stages(model, split_model(model, StagesSpec(stages=2), 2).partition)
    moving = try_stages(model, stages, (x, x[:, :1]))
    changes = (np.abs(now.numpy() - then).max() for now, then in zip(model.variables, before, strict=True))
    return {"moving": moving, "difference": float(max(changes))}


def reports():
    """What is said of a model file before anything starts: its lines for the plan, or why it is refused."""
    asked = {"whole": ("whole", [10]), "few classes": ("whole", [3]), "codes": ("whole", [])}
    return {
        name: report(*asked.get(name, (name, [10]))) for name in [*asked, "narrow", "broken", "moving", "penalised"]
    }


def report(kind, label_shape):
    """Return the answer to a question as `training.steps.split` asks it."""
    spec = {
        "name": "shaped",
        "data": {"source": "digits"},
        "model": {"entrypoint": "shaped.py", "params": {"kind": kind}},
        "train": {"engine": "tensorflow", "strategy": "pipeline", "pipeline": {"stages": 2}},
    }
    row = {"shape": [64], "dtype": "float32", "label_shape": label_shape, "label_dtype": "float32"}
    try:
        return report_split({"spec": spec, "base_dir": str(USER_FILES), **row})
    except GangerError as error:
        return str(error)


def train(model, x, y, stages, schedule, micro_batches=4, steps=STEPS):
    """Train a model in stages, each on a device of its own; return its losses and the stages."""
    devices = [f"CPU:{number}" for number in range(stages)]
    beside = []
    with note_optimizer_variables(beside):
        build_from_batch(model, (x, y))
    cut = cut_stages(model, split_model(model, StagesSpec(stages=stages), stages).partition)
    place_model(model, cut, devices, beside)
    function = PipelinedStep(model, cut, devices, order_stages(schedule, stages, micro_batches), len(x)).make_function()
    return [float(function(x, y)[0]) for _ in range(steps)], cut


def train_whole(model, x, y):
    """Do a step of Keras' own; return its loss."""
    model.reset_metrics()
    return float(model.train_on_batch(x, y))


def compare(these, those):
    assert len(these) == len(those)
    return max(float(np.abs(a.numpy().astype("float64") - b.numpy()).max()) for a, b in zip(these, those, strict=True))


def name_device(variable):
    return variable.value.device.rpartition("device:")[2]


QUESTIONS = (
    unlike_layers,
    scaled,
    inner_model,
    awaited,
    blocks,
    places,
    normalised_by_micro_batch,
    dropped_by_micro_batch,
    clocks,
    description,
    refusals,
    weighted,
    tried,
    reports,
)
