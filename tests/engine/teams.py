"""How the gangs of these tests train, and what the trainings that they have in common are."""

from dataclasses import dataclass

from training.spec.parallelism import count_devices, count_processes

MLP, CNN = "training.models.mlp", "training.models.cnn"
MOMENTUM = {"optimizer": "momentum", "learning_rate": 0.05}
BATCH, PER_EPOCH, MIDDLE = 60, 23, 30  # 59 of 1439 rows fill no step
ASYNCHRONOUS = "parameter_server-2"


@dataclass(frozen=True)
class Team:
    """How a gang trains."""

    strategy: str
    workers: int
    engine: str = "tensorflow"
    framework: str | None = None

    def __str__(self):
        return f"{self.framework or self.engine}/{self.strategy} of {self.workers}"

    @property
    def train(self):
        """What it says in the block `train`."""
        framework = {"framework": self.framework} if self.framework else {}
        return {"engine": self.engine, "strategy": self.strategy, **framework}

    @property
    def processes(self):
        return count_processes(self.strategy, self.workers)

    @property
    def devices(self):
        return count_devices(self.strategy, self.workers, None)


#: Those that are called by a number are what most tests use. The equivalence law holds for all but `ASYNCHRONOUS`.
TEAMS = {
    1: Team("single", 1),
    2: Team("multi_worker_mirrored", 2),
    3: Team("multi_worker_mirrored", 3),
    "mirrored-2": Team("mirrored", 2),
    "mirrored-3": Team("mirrored", 3),
    "central_storage-2": Team("central_storage", 2),
    "parameter_server-1": Team("parameter_server", 1),
    "horovod-2": Team("horovod", 2, "horovod"),
    "horovod-3": Team("horovod", 3, "horovod"),
    "pipeline-3": Team("pipeline", 3),
    "parameter_server-2": Team("parameter_server", 2),
}

#: How `pipeline` splits the models of trainings: both schedules, two and three stages, and 60 rows are no multiple of
#: 7 or 8. The others have two stages, which leaves one of three idle.
PIPELINES = {
    "momentum": {"stages": 2},
    "adam": {"stages": 2, "micro_batches": 7, "schedule": "gpipe"},
    "cnn": {"stages": 3, "micro_batches": 7},
    "user": {"stages": 3, "micro_batches": 7, "schedule": "gpipe"},
}

#: Strategy to the team that stands for it where a test looks at every strategy.
STRATEGIES = {
    "single": 1,
    "mirrored": "mirrored-2",
    "central_storage": "central_storage-2",
    "multi_worker_mirrored": 2,
    "parameter_server": ASYNCHRONOUS,
    "horovod": "horovod-2",
    "pipeline": "pipeline-3",
}

#: Teams whose ranks must decide alike: two are enough to disagree.
DECIDING = [team for team, how in TEAMS.items() if how.workers < 3 or team in STRATEGIES.values()]

#: Of MXNet. Those of one process are all tried in the same one.
GLUON_MLP, GLUON_CNN = "training.models.gluon_mlp", "training.models.gluon_cnn"
GLUON_TRANSFORMER = "training.models.gluon_transformer"
GLUON_TEAMS = {
    "gluon-single": Team("single", 1, "mxnet"),
    "gluon-data_parallel-2": Team("data_parallel", 2, "mxnet"),
    "gluon-data_parallel-3": Team("data_parallel", 3, "mxnet"),
    "gluon-model_parallel-2": Team("model_parallel", 2, "mxnet"),
    "gluon-model_parallel-3": Team("model_parallel", 3, "mxnet"),
}
#: Of MXNet, with a gang each.
GLUON_GANGS = {
    "gluon-dist_sync-2": Team("dist_sync", 2, "mxnet"),
    "gluon-dist_sync-3": Team("dist_sync", 3, "mxnet"),
    "gluon-horovod-2": Team("horovod", 2, "horovod", "mxnet"),
    "gluon-horovod-3": Team("horovod", 3, "horovod", "mxnet"),
    "gluon-dist_async-1": Team("dist_async", 1, "mxnet"),
    "gluon-dist_async-2": Team("dist_async", 2, "mxnet"),
}
