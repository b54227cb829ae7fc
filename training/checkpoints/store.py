"""The folder of a run's checkpoints: `step-00000120/` with the tensors and what they are.

A checkpoint is written under a temporary name, flushed, then renamed; it is removed in the opposite order. So a folder
with a proper name is complete. One that was damaged afterwards is recognised by its checksum and passed over aloud. One
process writes; any may read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray
from pydantic import ConfigDict, ValidationError

from training.checkpoints.tensors import Tensors, measure_tensors, read_tensors, write_tensors
from training.errors import spec_error
from training.run.atomic import new_folder, remove_folder, sweep_unfinished
from training.run.folder import FileModel

SCHEMA_VERSION: Literal[1] = 1
_STATE = "state.safetensors"
_META = "meta.json"

Fingerprint = Mapping[str, Any]
Log = Callable[[str], None]


class CheckpointMeta(FileModel):
    """What a checkpoint is a state of."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = SCHEMA_VERSION
    step: int
    """Steps that were trained, over the whole training."""
    epoch: int
    """Epoch of the next step, from 0."""
    fingerprint: dict[str, Any]
    """What must be the same for the state to be of use: model, data, seed, batch."""
    metrics: dict[str, float] = {}
    """Of the last whole epoch."""
    callbacks: tuple[dict[str, Any], ...] = ()
    """What each of the user's callbacks remembers, in their order."""
    bytes: int = 0
    sha256: str = ""
    """Of the tensors' file."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint on disk.

    Attributes:
        path: Its folder.
        meta: What it is a state of.
    """

    path: Path
    meta: CheckpointMeta

    def read(self) -> dict[str, NDArray[Any]]:
        """Return the tensors.

        Raises:
            OSError: They cannot be read.
            ValueError: They are damaged.
        """
        return read_tensors(self.path / _STATE)


def write_checkpoint(folder: Path, meta: CheckpointMeta, tensors: Tensors, *, keep: int) -> Checkpoint:
    """Write a checkpoint, then remove all but the newest `keep`.

    Raises:
        InfrastructureError: The disk is full or the folder cannot be written; the earlier checkpoints are whole.
    """
    path = folder / f"step-{meta.step:08d}"
    with new_folder(path, needed=measure_tensors(tensors)) as temporary:
        state = temporary / _STATE
        write_tensors(state, tensors)
        meta = meta.model_copy(update={"bytes": state.stat().st_size, "sha256": _hash(state)})
        meta.write(temporary / _META)
    for old in _list_folders(folder)[keep:]:
        remove_folder(old)
    return Checkpoint(path, meta)


def find_newest(folder: Path, log: Log) -> Checkpoint | None:
    """Return the newest complete checkpoint in `folder`, or None; damaged ones are passed over and said."""
    return next(iter_complete(folder, log), None)


def iter_complete(folder: Path, log: Log) -> Iterator[Checkpoint]:
    """Yield the complete checkpoints in `folder`, newest first; damaged ones are passed over and said."""
    for path in _list_folders(folder):
        try:
            meta = CheckpointMeta.read(path / _META)
        except ValidationError:
            meta = None
        damage = f"{_META} is missing or not readable" if meta is None else _find_damage(path / _STATE, meta)
        if meta is None or damage:
            log(f"the checkpoint {path} is damaged ({damage}); it is passed over")
        else:
            yield Checkpoint(path, meta)


def find_step(folder: Path, step: int, log: Log) -> Checkpoint | None:
    """Return the complete checkpoint of `step`, or None."""
    return next((found for found in iter_complete(folder, log) if found.meta.step == step), None)


def clear_checkpoints(folder: Path) -> int:
    """Remove all checkpoints and what killed writers left; return how many checkpoints there were."""
    sweep_unfinished(folder)
    found = _list_folders(folder)
    for path in found:
        remove_folder(path)
    return len(found)


def check_fingerprint(checkpoint: Checkpoint, wanted: Fingerprint) -> None:
    """Check that the checkpoint is of the same training.

    Raises:
        SpecError: It is not; says what differs.
    """
    have = checkpoint.meta.fingerprint
    differing = [name for name in dict.fromkeys([*have, *wanted]) if have.get(name) != wanted.get(name)]
    if differing:
        told = "; ".join(f"{name} was {have.get(name)!r} and is now {wanted.get(name)!r}" for name in differing)
        raise spec_error(
            "train",
            f"resumes only from a checkpoint of the same training. Received: {checkpoint.path}, where {told}.",
            "Undo the change, or start a new run.",
        )


def _list_folders(folder: Path) -> list[Path]:
    """Return the folders of complete checkpoints, newest first."""
    return sorted((path for path in folder.glob("step-*") if path.is_dir()), reverse=True)


def _find_damage(state: Path, meta: CheckpointMeta) -> str:
    if not state.is_file():
        return f"{state.name} is missing"
    size = state.stat().st_size
    if size != meta.bytes:
        return f"{state.name} has {size} bytes instead of {meta.bytes}"
    return "" if _hash(state) == meta.sha256 else f"{state.name} does not have the checksum that {_META} gives"


def _hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
