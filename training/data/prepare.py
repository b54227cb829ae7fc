"""Task `prepare_data`: makes the rows of a run ready and says where they are."""

from __future__ import annotations

from pathlib import Path

from training.data.manifest import DatasetManifest, DatasetRef
from training.data.store import PreparedDataset, prepare_dataset
from training.run.rank import RankContext
from training.spec.pipeline import DataSpec


def prepare_data(ctx: RankContext) -> None:
    """Prepare `payload["data"]` in `payload["home"]`, write its `DatasetRef` to `payload["output"]`.

    Raises:
        SpecError: The source cannot be read, or its rows cannot be trained on.
        InfrastructureError: The disk is full.
    """
    data = DataSpec.model_validate(ctx.payload["data"])

    def log(line: str) -> None:
        print(line, flush=True)
        ctx.heartbeat("preparing data")

    ctx.ready()
    log(f"reading {data.source}")
    prepared = prepare_dataset(data, Path(ctx.payload["base_dir"]), Path(ctx.payload["home"]), log)
    for line in describe_dataset(prepared.manifest):
        log(line)
    ref = refer(prepared)
    ref.write(Path(ctx.payload["output"]))
    ctx.result({**ref.model_dump(mode="json"), "reused": prepared.reused})


def refer(prepared: PreparedDataset) -> DatasetRef:
    """Return what a run writes down of its dataset."""
    manifest = prepared.manifest
    return DatasetRef(
        path=str(prepared.path),
        fingerprint=manifest.fingerprint,
        rows=manifest.rows,
        validation_rows=manifest.validation_rows,
    )


def describe_dataset(manifest: DatasetManifest) -> list[str]:
    """Return a few lines that tell a person what the rows are."""
    label = "one label" if not manifest.label_shape else f"labels of shape {list(manifest.label_shape)}"
    lines = [
        f"{manifest.rows} training rows and {manifest.validation_rows} validation rows "
        f"(seed {manifest.seed}, fraction {manifest.validation_fraction:g})",
        f"a row has features of shape {list(manifest.feature_shape)} ({manifest.feature_dtype}) "
        f"and {label} ({manifest.label_dtype})",
    ]
    if manifest.classes:
        shown = ", ".join(f"{code} = {text}" for code, text in enumerate(manifest.classes[:10]))
        shown += ", …" if len(manifest.classes) > 10 else ""
        lines.append(f"text labels became {len(manifest.classes)} class codes: {shown}")
    return [*lines, *manifest.notes, f"fingerprint {manifest.fingerprint}"]
