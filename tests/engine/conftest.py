"""Gangs of real ranks, each started once; the tests of this folder look at what they left."""

import functools
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from gang import Output, run_gang
from teams import ASYNCHRONOUS, BATCH, CNN, MIDDLE, MLP, MOMENTUM, PER_EPOCH, TEAMS

from training.checkpoints.tensors import read_tensors
from training.data.batches import SPLIT_STREAM, order_epoch, shuffle_rows, slice_epoch
from training.data.store import prepare_dataset
from training.spec.pipeline import DataSpec, PipelineSpec

os.environ["GANGER_SLOTS"] = "4"  # as many ranks as the tests start, on however few cores
HERE = Path(__file__).parent
OUTLIER_ROWS, OUTLIER_BATCH, OUTLIER_STEP = 103, 8, 5
BUILD = "m = keras.Sequential([keras.layers.Dense(10)]); m.compile('sgd', 'mse'); return m"
TASK_KEYS = ("task", "resume", "begin_from", "model_dir", "initial_model")
#: Model files with a mistake each: text, and `model.params`.
MISTAKEN_FILES = {
    "no_function": ("def make_model(): pass", {}),
    "nearly_function": ("def build_modle(): pass", {}),
    "returns_nothing": ("def build_model(): pass", {}),
    "not_compiled": ("import keras\ndef build_model(): return keras.Sequential([keras.layers.Dense(1)])", {}),
    "legacy": (
        "class Model: pass\nModel.__module__ = 'tf_keras.src.models'\ndef build_model(): return Model()",
        {},
    ),
    "wrong_shape": (
        "import keras\ndef build_model():\n m = keras.Sequential([keras.Input((3,)), keras.layers.Dense(10)])\n"
        " m.compile('sgd', 'mse')\n return m",
        {},
    ),
    "unregistered": (
        "import keras\nclass Own(keras.layers.Layer):\n def call(self, x): return x\ndef build_model():\n"
        " m = keras.Sequential([keras.Input((64,)), Own(), keras.layers.Dense(10)])\n"
        " m.compile('sgd', 'sparse_categorical_crossentropy')\n"
        " return m",
        {},
    ),
    "raises": ("def build_model(): raise KeyError('width')", {}),
    "unknown_parameter": (f"import keras\ndef build_model(units=3, *, rate=1): {BUILD}", {"unit": 4}),
}


@dataclass
class Site:
    """The folder of all gangs of this test session."""

    root: Path
    datasets: dict

    def payload(self, team, name, entrypoint=MLP, params=None, dataset="digits", **more):
        """Return the payload of one task; keys of the `train` block may be given by name."""
        task = {key: more.pop(key) for key in TASK_KEYS if key in more}
        require = more.pop("require", {})
        cluster = more.pop("cluster", {})
        freeze = more.pop("freeze", [])
        how = TEAMS[team]
        train = {"engine": how.engine, "strategy": how.strategy, "epochs": 2, "batch_size": BATCH, **more}
        spec = PipelineSpec.model_validate(
            {
                "name": "test",
                "data": {"source": "digits"},
                "model": {"entrypoint": entrypoint, "params": params or {}, "freeze": freeze},
                "train": train,
                "cluster": {"workers": how.workers, **cluster},
                "evaluate": {"require": require},
            }
        )
        return {
            "name": name,
            "task": "train",
            "spec": spec.model_dump(mode="json", by_alias=True),
            "base_dir": str(HERE / "user_files"),
            "dataset": str(self.datasets[dataset]),
            "model_dir": str(self.model(team, name)),
            "checkpoints": str(self.checkpoints(team, name)),
            "resume": False,
            **task,
        }

    def checkpoints(self, team, name):
        return self.root / f"{team}-{name}" / "checkpoints"

    def model(self, team, name):
        return self.root / f"{team}-{name}" / "model"

    def resumed(self, team, name, step, **more):
        """Return a payload that goes on from what the gang of two had at `step` of the training `momentum`."""
        begin_from = str(self.checkpoints(2, "momentum") / f"step-{step:08d}")
        return self.payload(team, name, **{"params": MOMENTUM, "resume": True, "begin_from": begin_from, **more})


@dataclass
class Gang:
    """What the ranks of one gang left."""

    site: Site
    team: int | str
    ranks: list[Output]

    @property
    def replicas(self):
        return TEAMS[self.team].processes * TEAMS[self.team].devices

    @property
    def chief(self):
        return self.ranks[0]

    def newest(self, name):
        """Return the tensors of the newest checkpoint of the training `name`."""
        assert name not in self.chief.failures, self.chief.failures[name]
        return read_tensors(max(self.site.checkpoints(self.team, name).glob("step-*")) / "state.safetensors")

    def metrics(self, name):
        """Return the metrics of each epoch."""
        return [event.metrics for event in self.chief.of(name, "epoch")]


LAW_TABLE = pytest.StashKey()


@pytest.fixture(scope="session")
def law_table(pytestconfig):
    """Take differences to one process by team and training; they are printed at the end (`make laws`)."""
    return pytestconfig.stash.setdefault(LAW_TABLE, {})


def pytest_terminal_summary(terminalreporter, config):
    table = config.stash.get(LAW_TABLE, {})
    if not table:
        return
    trainings = list(dict.fromkeys(training for _, training in table))
    terminalreporter.section("largest difference of a weight or optimizer value to one process")
    terminalreporter.write_line(f"{'':38}" + "".join(f"{training:>12}" for training in trainings))
    for team in dict.fromkeys(team for team, _ in table):
        values = (table.get((team, training)) for training in trainings)
        cells = ("-" if value is None else f"{value:.2g}" for value in values)
        terminalreporter.write_line(f"{team:38}" + "".join(f"{cell:>12}" for cell in cells))


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    root = tmp_path_factory.mktemp("gangs")
    specs = {"digits": DataSpec(source="digits"), **make_archives(root)}
    datasets = {name: prepare_dataset(data, root, root / "home", print).path for name, data in specs.items()}
    return Site(root=root, datasets=datasets)


def make_archives(root):
    """Write a set of two classes; one whose outlier meets rank 1 of 2 at a known step; one that holds it out."""
    random = np.random.default_rng(0)
    x = random.normal(size=(403, 12)).astype(np.float32)
    np.savez(root / "binary.npz", x=x, y=(x[:, :3].sum(axis=1) + random.normal(size=403) > 0).astype(np.int64))
    of_rank_1 = slice_epoch(order_epoch(7, 0, OUTLIER_ROWS), OUTLIER_BATCH, 1, 2)[OUTLIER_STEP - 1, 0]
    held_out = shuffle_rows(7, SPLIT_STREAM, OUTLIER_ROWS)[-1]
    numbers = np.arange(403, dtype=np.float32)
    np.savez(root / "numbered.npz", x=numbers[:, np.newaxis], y=numbers)
    specs = {"binary": DataSpec(source="binary.npz"), "numbered": DataSpec(source="numbered.npz")}
    for name, row, fraction in (("outlier", of_rank_1, 0.0), ("held_out_outlier", held_out, 0.2)):
        x = np.ones((OUTLIER_ROWS, 2), np.float32)
        x[row] = 1e30
        np.savez(root / f"{name}.npz", x=x, y=np.ones(OUTLIER_ROWS, np.float32))
        specs[name] = DataSpec(source=f"{name}.npz", validation_fraction=fraction)
    return specs


def start(site, team, tasks, **payload):
    how = TEAMS[team]
    payload = {"tasks": tasks, "devices": how.devices, "engine": how.engine, **payload}
    spec = PipelineSpec.model_validate(tasks[0]["spec"])
    ranks = run_gang(site.root / f"gang-{team}-{tasks[0]['name']}", [HERE / "trainings.py"], payload, spec)
    for rank in ranks:
        assert rank.exit_code == 0, rank.text[-4000:]
    return Gang(site=site, team=team, ranks=ranks)


@pytest.fixture(scope="session")
def two(site):
    outlier = {"entrypoint": "line.py", "epochs": 1, "batch_size": OUTLIER_BATCH, "checkpoint": {"every_steps": 2}}
    tasks = [
        site.payload(2, "momentum", params=MOMENTUM, checkpoint={"every_steps": 5, "keep": 20}),
        site.payload(2, "adam"),
        site.payload(2, "cnn", CNN, epochs=1),
        site.payload(2, "user", "user_net.py", dataset="binary"),
        site.payload(2, "early", "early.py", dataset="binary", params={"patience": 1}, epochs=30),
        site.payload(2, "linear", epochs=1, learning_rate_scaling="linear", warmup_steps=10, params=MOMENTUM),
        site.payload(2, "sqrt", "user_net.py", dataset="binary", epochs=1, learning_rate_scaling="sqrt"),
        site.payload(2, "tuned", initial_model=str(site.model(2, "adam")), freeze=["dense"], epochs=1),
        site.payload(2, "dropout", params={"dropout": 0.2}, epochs=1),
        site.payload(2, "accumulating", "accumulating.py", dataset="binary", epochs=1),
        site.resumed(2, "resumed", MIDDLE),
        site.resumed(2, "resumed_at_epoch", PER_EPOCH),
        site.payload(2, "outlier", dataset="outlier", **outlier),
        site.payload(2, "held_out_outlier", dataset="held_out_outlier", **outlier),
    ]
    return start(site, 2, tasks, upstream=["reduce_per_replica", "symbolic_build"])


@pytest.fixture(scope="session")
def three(site, two):
    tasks = [
        site.payload(3, "momentum", params=MOMENTUM),
        site.payload(3, "adam"),
        site.payload(3, "cnn", CNN, epochs=1),
        site.payload(3, "user", "user_net.py", dataset="binary"),
        site.payload(3, "early", "early.py", dataset="binary", params={"patience": 1}, epochs=30),
        site.resumed(3, "resumed", MIDDLE),
    ]
    return start(site, 3, tasks)


@pytest.fixture(scope="session")
def others(site, two):
    """Return a function from the name of a further team to its gang, which is started when first asked for."""

    @functools.cache
    def get(team):
        tasks = [
            site.payload(team, "momentum", params=MOMENTUM),
            site.payload(team, "adam"),
            site.payload(team, "cnn", CNN, epochs=1),
            site.payload(team, "user", "user_net.py", dataset="binary"),
            site.payload(team, "early", "early.py", dataset="binary", params={"patience": 1}, epochs=30),
            site.resumed(team, "resumed", MIDDLE),
        ]
        return start(site, team, tasks)

    return get


@pytest.fixture(scope="session")
def apart(site, two):
    """Two workers that do not wait for each other, and two parameter servers, which take turns in keeping variables."""
    keeping = {"every_steps": 5, "keep": 20}
    outlier = {"entrypoint": "line.py", "epochs": 1, "batch_size": OUTLIER_BATCH, "checkpoint": {"every_steps": 2}}
    tasks = [
        site.payload(ASYNCHRONOUS, "momentum", params=MOMENTUM, checkpoint=keeping, cluster={"parameter_servers": 2}),
        site.payload(ASYNCHRONOUS, "user", "user_net.py", dataset="binary"),
        site.payload(ASYNCHRONOUS, "rows", "rows.py", dataset="numbered", checkpoint=keeping),
        site.payload(ASYNCHRONOUS, "dropout", params={"dropout": 0.2}, epochs=1),
        site.payload(ASYNCHRONOUS, "accumulating", "accumulating.py", dataset="binary", epochs=1),
        site.payload(ASYNCHRONOUS, "cnn", CNN, epochs=1),
        site.payload(ASYNCHRONOUS, "linear", epochs=1, warmup_steps=10, params=MOMENTUM),
        site.resumed(ASYNCHRONOUS, "resumed", MIDDLE),
        site.payload(ASYNCHRONOUS, "outlier", dataset="outlier", **outlier),
    ]
    return start(site, ASYNCHRONOUS, tasks, upstream=["add_at_once", "fit_with_servers"])


@pytest.fixture(scope="session")
def back(site, apart):
    """One process that goes on from a checkpoint of two workers."""
    begin_from = str(site.checkpoints(ASYNCHRONOUS, "momentum") / f"step-{MIDDLE:08d}")
    return start(site, 1, [site.payload(1, "back", params=MOMENTUM, resume=True, begin_from=begin_from)])


@pytest.fixture(scope="session")
def one(site, two):
    user = {"entrypoint": "user_net.py", "dataset": "binary"}
    of_user = {**user, "task": "evaluate", "model_dir": str(site.model(2, "user"))}
    tasks = [
        site.payload(1, "momentum", params=MOMENTUM),
        site.payload(1, "adam"),
        site.payload(1, "cnn", CNN, epochs=1),
        site.payload(1, "user", **user),
        site.payload(1, "early", "early.py", dataset="binary", params={"patience": 1}, epochs=30),
        site.payload(1, "tuned", initial_model=str(site.model(2, "adam")), freeze=["dense"], epochs=1),
        site.payload(1, "other_head", initial_model=str(site.model(2, "adam")), params={"classes": 12}, epochs=1),
        site.payload(1, "other_model", initial_model=str(site.model(2, "user")), epochs=1),
        site.payload(1, "freeze_unknown", freeze=["dense_7"], epochs=1),
        site.payload(1, "freeze_all", freeze=["dense*"], epochs=1),
        site.payload(1, "warm", epochs=1, warmup_steps=10, params=MOMENTUM),
        site.payload(1, "accumulating", "accumulating.py", dataset="binary", epochs=1),
        site.resumed(1, "resumed", MIDDLE),
        site.resumed(1, "other_params", MIDDLE, params={**MOMENTUM, "hidden": [16]}),
        site.resumed(1, "other_data", MIDDLE, dataset="binary"),
        site.payload(1, "reached", require={"auc": 0.5, "loss": {"max": 9}}, **of_user),
        site.payload(1, "not_reached", require={"auc": 0.9999, "loss": {"max": 0.01}}, **of_user),
        site.payload(1, "unknown_metric", require={"acu": 0.5}, **of_user),
        *write_mistaken_files(site),
    ]
    return start(site, 1, tasks)


def write_mistaken_files(site):
    """Write the model files with a mistake, and yield a task for each, and one for a file that is not there."""
    folder = site.root / "model_files"
    folder.mkdir()
    for name, (text, params) in MISTAKEN_FILES.items():
        (folder / f"{name}.py").write_text(f"{text}\n")
        yield site.payload(1, name, str(folder / f"{name}.py"), params=params)
    yield site.payload(1, "no_file", str(folder / "returns_nothin.py"))
