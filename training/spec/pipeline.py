"""The pipeline spec: one model per block of the YAML file.

Field descriptions are written here once; the reference page and the JSON schema are made from them. A rule that one
field or block can check alone lives on its model; rules between blocks live in `rules`, so that they can be reported
together with the mistakes inside the blocks. Whether something is *built* or *present* is asked in preflight.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from training.spec.base import Alias, Flag, Name, Number, PositiveInt, Seconds, SpecModel, Text, WholeNumber
from training.spec.cron import check_cron
from training.spec.train import TrainSpec


def _choose_shape(value: object) -> Literal["text", "number", "block"] | None:
    """Name the variant of a union that a value means, so that a mistake in it is reported once and not per variant."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return "block" if isinstance(value, dict | SpecModel) else None


class AssetSchedule(SpecModel):
    """Start a DAG run when other DAGs have updated assets."""

    assets: Annotated[tuple[Text, ...], Field(min_length=1)]
    """URIs of the Airflow assets that trigger a run when all of them were updated."""


Schedule = Annotated[
    Annotated[str, AfterValidator(check_cron), Tag("text")] | Annotated[AssetSchedule, Tag("block")],
    Discriminator(
        lambda value: shape if (shape := _choose_shape(value)) != "number" else None,
        custom_error_type="shape",
        custom_error_message="must be a cron expression, a block `assets: [uri, …]`, or null",
    ),
]


#: `data.source` of rows that the model file's function of this name gives; nothing of them is prepared.
BUILD_DATASET: Final = "build_dataset"


class DataSpec(SpecModel):
    """Where the rows come from and how they are split."""

    source: Text
    """A built-in set (`digits`), an `.npz` or `.csv` file, `module:function`, or the model file's `build_dataset`."""
    params: dict[str, Any] = {}
    """Keyword arguments for `module:function` or `build_dataset`."""
    sharding: Literal["ganger", "own"] = "ganger"
    """Who cuts the batches of `build_dataset` into shares: Ganger, from the same ones on all ranks, or the function."""
    label: Text | None = None
    """Name of the label column, for tables."""
    missing: Literal["fail", "drop"] = "fail"
    """What to do with rows of a table that lack a value (empty, NA, N/A, NaN, null, `-` or `?`): fail, or drop them."""
    validation_fraction: Annotated[Number, Field(ge=0, lt=1)] = 0.2
    """Share of the rows that is held out for validation and evaluation."""
    seed: WholeNumber = 7
    """Seed of the split."""


class ModelSpec(SpecModel):
    """The model file."""

    entrypoint: Text
    """A module (`training.models.mlp`) or `path.py` with `build_model(**params)`."""
    params: dict[str, Any] = {}
    """Keyword arguments for `build_model`."""
    initialize_from: Text | None = None
    """Start from weights: `models:/name@alias`, an MLflow run id, or a path."""
    freeze: tuple[Text, ...] = ()
    """Patterns of layer names that are not trained."""


class ClusterSpec(SpecModel):
    """Where the ranks run."""

    backend: Literal["local", "ssh", "slurm", "kubernetes"] = "local"
    """What starts the ranks."""
    workers: PositiveInt = 1
    """Number of processes that train, or of devices where a strategy keeps all in one process; `single` has one."""
    threads_per_worker: PositiveInt | None = None
    """Computation threads of each worker; by default the cores of a host divided by its ranks."""
    queue_timeout_s: Seconds | None = None
    """Seconds that the gang may wait for a free slot for each worker; by default as long as it takes."""
    devices: PositiveInt | None = None
    """Devices of the process, with such a strategy: GPUs, or parts of the CPU; by default as many as `workers`."""
    parameter_servers: PositiveInt | None = None
    """Processes that keep what workers share, with `parameter_server`, `dist_sync` or `dist_async`; by default 1."""
    min_workers: PositiveInt | None = None
    """Fewest workers to go on with after some were lost; by default the gang is restarted with all of them."""


class Bound(SpecModel):
    """Limits that a metric must keep."""

    min: Number | None = None
    """Smallest acceptable value."""
    max: Number | None = None
    """Largest acceptable value."""

    @model_validator(mode="after")
    def _some_value_passes(self) -> Bound:
        if self.min is None and self.max is None:
            raise ValueError("must hold `min`, `max` or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("must have a `min` that is not larger than its `max`")
        return self


Requirement = Annotated[
    Annotated[Number, Tag("number")] | Annotated[Bound, Tag("block")],
    Discriminator(
        lambda value: shape if (shape := _choose_shape(value)) != "text" else None,
        custom_error_type="shape",
        custom_error_message="must be a number (the least acceptable value) or a block with `min`, `max` or both",
    ),
]


class EvaluateSpec(SpecModel):
    """What the trained model must reach."""

    require: dict[str, Requirement] = {}
    """Metric name to the least acceptable value, or to `{min: …, max: …}`."""

    def bounds(self) -> dict[str, Bound]:
        """Return the requirements with plain numbers read as least values.

        >>> EvaluateSpec(require={"accuracy": 0.9}).bounds()["accuracy"].min
        0.9
        """
        return {name: b if isinstance(b, Bound) else Bound(min=b) for name, b in self.require.items()}


class RegisterSpec(SpecModel):
    """How the trained model enters the MLflow model registry."""

    model: Name
    """Name of the registered model."""
    alias: Alias | None = None
    """Alias that is moved to the new version, such as `champion`."""
    approval: Flag = False
    """Wait for a person to approve in the Airflow UI before registering."""


class PipelineSpec(SpecModel):
    """A whole pipeline file."""

    name: Name
    """Name of the pipeline; also the DAG id."""
    description: str = ""
    """One sentence for the list of DAGs."""
    schedule: Schedule | None = None
    """A cron expression, `{assets: [uri, …]}`, or null for runs that are triggered by hand."""
    experiment: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    """MLflow experiment; by default the name of the pipeline."""
    data: DataSpec | None = None
    """Where the rows come from; only a pipeline with `train.script` may leave it out."""
    model: ModelSpec | None = None
    """The model file; leave it out when `train.script` is given."""
    train: TrainSpec
    """How to train."""
    cluster: ClusterSpec = ClusterSpec()
    """Where the ranks run."""
    evaluate: EvaluateSpec = EvaluateSpec()
    """What the trained model must reach."""
    registration: RegisterSpec | None = Field(default=None, alias="register")
    """How the trained model is registered; leave it out to register nothing."""

    @property
    def workers(self) -> int:
        """The workers of the training: those of the cluster, or one for each stage of a pipeline."""
        stages = self.train.pipeline.stages if self.train.strategy == "pipeline" else None
        return stages or self.cluster.workers

    @property
    def experiment_name(self) -> str:
        """The MLflow experiment, with its default filled in."""
        return self.experiment or self.name

    @property
    def builds_dataset(self) -> bool:
        """Whether the rows come from `build_dataset` of the model file."""
        return self.data is not None and self.data.source == BUILD_DATASET

    @property
    def prepares_data(self) -> bool:
        """Whether there are rows to be prepared."""
        return self.data is not None and not self.builds_dataset
