"""The pipeline spec: one model per block of the YAML file.

Field descriptions are written here once; the reference page and the JSON schema are made from them. Rules that one block can
check alone live on its model; rules between blocks live on `PipelineSpec`. Whether something is *built* or *present on this
machine* is not asked here but in preflight.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, model_validator

from training.spec.train import TrainSpec

Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
WholeNumber = Annotated[int, Strict()]


def _check_name(name: str) -> str:
    allowed = all(letter.isalnum() or letter in "_-." for letter in name) and name.isascii()
    if not allowed:
        raise ValueError("may hold letters, digits, '_', '-' and '.' only")
    return name


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_name)]


class SpecModel(BaseModel):
    """Base of all blocks: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True)


class AssetSchedule(SpecModel):
    """Start a DAG run when other DAGs have updated assets."""

    assets: Annotated[tuple[str, ...], Field(min_length=1)]
    """URIs of the Airflow assets that trigger a run when all of them were updated."""


class DataSpec(SpecModel):
    """Where the rows come from and how they are split."""

    source: Annotated[str, Field(min_length=1)]
    """A built-in set (`digits`), the path of an `.npz` or `.csv` file, or `module:function` that returns `(x, y)`."""
    params: dict[str, Any] = {}
    """Keyword arguments for a `module:function` source."""
    label: str | None = None
    """Name of the label column, for tables."""
    missing: Literal["fail", "drop"] = "fail"
    """What to do with rows of a table that have an empty or `NA` cell: fail, or drop the row."""
    validation_fraction: Annotated[Number, Field(ge=0, lt=1)] = 0.2
    """Share of the rows that is held out for validation and evaluation."""
    seed: WholeNumber = 7
    """Seed of the split."""


class ModelSpec(SpecModel):
    """The model file."""

    entrypoint: Annotated[str, Field(min_length=1)]
    """A module (`training.models.mlp`) or `path.py` with `build_model(**params)`."""
    params: dict[str, Any] = {}
    """Keyword arguments for `build_model`."""
    initialize_from: str | None = None
    """Start from weights: `models:/name@alias`, an MLflow run id, or a path."""
    freeze: tuple[str, ...] = ()
    """Patterns of layer names that are not trained."""


class ClusterSpec(SpecModel):
    """Where the ranks run."""

    backend: Literal["local", "ssh", "slurm", "kubernetes"] = "local"
    """What starts the ranks."""
    workers: Annotated[WholeNumber, Field(ge=1)] = 1
    """Number of worker processes."""
    threads_per_worker: Annotated[WholeNumber, Field(ge=1)] | None = None
    """Computation threads of each worker; by default the cores of a host divided by its ranks."""


class Bound(SpecModel):
    """Limits that a metric must keep."""

    min: Number | None = None
    """Smallest acceptable value."""
    max: Number | None = None
    """Largest acceptable value."""


class EvaluateSpec(SpecModel):
    """What the trained model must reach."""

    require: dict[str, Number | Bound] = {}
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
    alias: str | None = None
    """Alias that is moved to the new version, such as `champion`."""
    approval: Annotated[bool, Strict()] = False
    """Wait for a person to approve in the Airflow UI before registering."""


class PipelineSpec(SpecModel):
    """A whole pipeline file."""

    name: Name
    """Name of the pipeline; also the DAG id."""
    description: str = ""
    """One sentence for the list of DAGs."""
    schedule: str | AssetSchedule | None = None
    """A cron expression, `{assets: [uri, …]}`, or null for runs that are triggered by hand."""
    experiment: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    """MLflow experiment; by default the name of the pipeline."""
    data: DataSpec
    """Where the rows come from."""
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
    def experiment_name(self) -> str:
        """The MLflow experiment, with its default filled in."""
        return self.experiment or self.name

    @model_validator(mode="after")
    def _model_or_script(self) -> PipelineSpec:
        if self.model is None and self.train.script is None:
            raise ValueError("either `model` or `train.script` must be given; received neither")
        if self.model is not None and self.train.script is not None:
            raise ValueError("only one of `model` and `train.script` may be given; received both")
        return self
