"""Gangs of real ranks, each started once; the tests of this folder look at what they left."""

import functools
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from gang import TIMEOUT_S, Output, run_gang
from gluon_tasks import SINGLE, TEAMS_OF_ALL, list_asynchronous, list_of_gang, list_of_one_process
from own_rows import list_mixed_tasks, list_own_rows_of_one, list_tasks_of_own_rows
from tasks import (
    OUTLIER_BATCH,
    OUTLIER_STEP,
    list_tasks_of_law,
    list_tasks_of_one,
    list_tasks_of_two,
    list_tasks_of_users,
    list_tasks_that_fail,
    list_tasks_with_servers,
    write_mistaken_files,
)
from teams import ASYNCHRONOUS, BATCH, MIDDLE, MLP, MOMENTUM, PIPELINES, STRATEGIES, TEAMS

from training.checkpoints.tensors import read_tensors
from training.data.batches import SPLIT_STREAM, order_epoch, shuffle_rows, slice_epoch
from training.data.store import prepare_dataset
from training.spec.parallelism import count_replicas
from training.spec.pipeline import DataSpec, PipelineSpec

os.environ["GANGER_SLOTS"] = "4"  # as many ranks as the tests start, on however few cores
HERE = Path(__file__).parent
OUTLIER_ROWS = 103
FRACTION = 0.1992  # leaves 1439 rows, a prime
TASK_KEYS = ("task", "resume", "begin_from", "model_dir", "initial_model")


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
        how = TEAMS_OF_ALL[team]
        train = {**how.train, "epochs": 2, "batch_size": BATCH, **more}
        if how.strategy == "pipeline":
            train["pipeline"] = PIPELINES.get(name, {"stages": 2, "micro_batches": 3})
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
            "label": f"{team}/{name}",
            "devices": how.devices,
            "task": "train",
            "spec": spec.model_dump(mode="json", by_alias=True),
            "base_dir": str(self.root / "user_files"),
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
        return count_replicas(TEAMS_OF_ALL[self.team].strategy, TEAMS_OF_ALL[self.team].workers)

    @property
    def folder(self):
        """Where its ranks ran."""
        return self.site.root / f"gang-{self.team}-momentum"

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
#: The first test of a session starts up to four gangs, of which each has a limit of its own.
TIMEOUT_OF_TESTS_S = 4 * TIMEOUT_S


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(TIMEOUT_OF_TESTS_S))


@pytest.fixture(scope="session")
def law_table(pytestconfig):
    """Take relative differences to one process by team and training; they are printed at the end (`make laws`)."""
    return pytestconfig.stash.setdefault(LAW_TABLE, {})


def pytest_terminal_summary(terminalreporter, config):
    table = config.stash.get(LAW_TABLE, {})
    if not table:
        return
    trainings = list(dict.fromkeys(training for _, training in table))
    terminalreporter.section(
        "largest difference to one process, of weights and optimizer, relative to each tensor's largest value"
    )
    terminalreporter.write_line(f"{'':38}" + "".join(f"{training:>12}" for training in trainings))
    for team in dict.fromkeys(team for team, _ in table):
        values = (table.get((team, training)) for training in trainings)
        cells = ("-" if value is None else f"{value:.2g}" for value in values)
        terminalreporter.write_line(f"{team:38}" + "".join(f"{cell:>12}" for cell in cells))


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    root = tmp_path_factory.mktemp("gangs")
    shutil.copytree(HERE / "user_files", root / "user_files")  # a user's files are outside of the repository
    write_mistaken_files(root / "user_files")
    specs = {"digits": DataSpec(source="digits", validation_fraction=FRACTION), **make_archives(root)}
    datasets = {name: prepare_dataset(data, root, root / "home", print).path for name, data in specs.items()}
    return Site(root=root, datasets=datasets)


def make_archives(root):
    """Write a set of two classes; one whose outlier meets rank 1 of 2 at a known step; one that holds it out."""
    random = np.random.default_rng(0)
    x = random.normal(size=(404, 12)).astype(np.float32)
    np.savez(root / "binary.npz", x=x, y=(x[:, :3].sum(axis=1) + random.normal(size=404) > 0).astype(np.int64))
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


def start(site, team, tasks, program="trainings.py", **payload):
    how = TEAMS_OF_ALL[team]
    payload = {"tasks": tasks, "devices": how.devices, "engine": how.framework or how.engine, **payload}
    spec = PipelineSpec.model_validate(tasks[0]["spec"])
    ranks = run_gang(site.root / f"gang-{team}-{tasks[0]['name']}", [HERE / program], payload, spec)
    for rank in ranks:
        assert rank.exit_code == 0, rank.text[-4000:]
    return Gang(site=site, team=team, ranks=ranks)


@pytest.fixture(scope="session")
def two(site):
    tasks = [*list_tasks_of_two(site), *list_tasks_of_users(site, 2), *list_tasks_that_fail(site, 2)]
    tasks += [*list_tasks_of_own_rows(site, 2), *list_mixed_tasks(site, 2)]
    return start(site, 2, tasks, upstream=["reduce_per_replica", "symbolic_build", "summed_gradients"])


@pytest.fixture(scope="session")
def three(site, two):
    return start(site, 3, list_tasks_of_law(site, 3))


@pytest.fixture(scope="session")
def others(site, two):
    """Return a function from the name of a further team to its gang, which is started when first asked for."""

    @functools.cache
    def get(team):
        more = team in STRATEGIES.values()
        failing = list_tasks_that_fail(site, team) if more else []
        users = list_tasks_of_users(site, team) if more else []
        own = [*list_tasks_of_own_rows(site, team), *list_mixed_tasks(site, team)]
        questions = {"central_storage": ["loss_scale"], "pipeline": ["overtake_writes", "await_them"]}
        upstream = questions.get(TEAMS[team].strategy, [])
        return start(site, team, [*list_tasks_of_law(site, team), *users, *failing, *own], upstream=upstream)

    return get


@pytest.fixture(scope="session")
def apart(site, two):
    """Two workers that do not wait for each other, and two parameter servers, which take turns in keeping variables."""
    tasks = [*list_tasks_with_servers(site), *list_tasks_that_fail(site, ASYNCHRONOUS)]
    tasks += [*list_tasks_of_own_rows(site, ASYNCHRONOUS), *list_mixed_tasks(site, ASYNCHRONOUS)]
    return start(site, ASYNCHRONOUS, tasks, upstream=["add_at_once", "fit_with_servers"])


@pytest.fixture(scope="session")
def gluon(site):
    """All trainings of MXNet that take one process; those of a team are called `team/name`."""
    return start(site, SINGLE, list(list_of_one_process(site)), "gluon_trainings.py")


@pytest.fixture(scope="session")
def gluon_gangs(site, gluon):
    """Return a function from the name of a team of MXNet's to its gang, which is started when first asked for."""

    @functools.cache
    def get(team):
        is_apart = "async" in team
        tasks = list(list_asynchronous(site, team) if is_apart else list_of_gang(site, team))
        told = {"spec": tasks[0]["spec"], "base_dir": tasks[0]["base_dir"]} if is_apart else {}  # servers read it
        return start(site, team, tasks, "gluon_trainings.py", **told)

    return get


@pytest.fixture(scope="session")
def one(site, two):
    tasks = [*list_tasks_of_one(site), *list_tasks_that_fail(site, 1)]
    tasks += [*list_own_rows_of_one(site), *list_mixed_tasks(site, 1)]
    return start(site, 1, tasks)


@pytest.fixture(scope="session")
def gang_by(one, two, others, apart):
    """Return a function from a strategy to its gang of two, or of one."""
    started = {1: one, 2: two, ASYNCHRONOUS: apart}
    return lambda strategy: started.get(STRATEGIES[strategy]) or others(STRATEGIES[strategy])


@pytest.fixture(scope="session")
def later(site, gang_by):
    """One process, after all others: evaluates what each trained, and goes on from a checkpoint of two workers."""
    begin_from = str(site.checkpoints(ASYNCHRONOUS, "momentum") / f"step-{MIDDLE:08d}")
    tasks = [site.payload(1, "back", params=MOMENTUM, resume=True, begin_from=begin_from)]
    for strategy, team in STRATEGIES.items():
        assert "user" not in gang_by(strategy).chief.failures
        model = {"task": "evaluate", "model_dir": str(site.model(team, "user"))}
        tasks.append(site.payload(1, f"evaluate_{strategy}", "user_net.py", dataset="binary", **model))
    return start(site, 1, tasks)
