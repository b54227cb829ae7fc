"""Which kind of source a spec names, and whether its content is the same as the last time. Imports no NumPy."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Literal

from training.entrypoint import Entrypoint, find_file, parse_entrypoint
from training.errors import spec_error
from training.names import say_nearest
from training.spec.pipeline import BUILD_DATASET, DataSpec

#: Goes into every key: raise it when rows are prepared in another way.
_FORMAT = 1
_BUILT_IN = ("digits",)

SourceKind = Literal["digits", "archive", "table", "function"]


def choose_kind(data: DataSpec) -> SourceKind:
    """Return the kind of source that `data.source` names.

    Raises:
        SpecError: It is of no known kind, or another field does not belong to it.
    """
    kind = _choose(data.source)
    if data.params and kind != "function":
        raise spec_error(
            "data.params",
            f"are for sources of the kind module:function. Received: {sorted(data.params)} with {data.source}.",
        )
    if data.label is not None and kind != "table":
        raise spec_error(
            "data.label", f"is for .csv files. Received: {data.label!r} with {data.source}.", "Leave it out."
        )
    return kind


def identify_source(data: DataSpec, base_dir: Path) -> str | None:
    """Return a text that changes when the content of the source does: its hash; cheap beside reading it.

    None for a `module:function`: what it reads, such as a database, is unknown here. Only the rows that it returns
    identify it, so it is called each time; see `compose_rows_key`.

    Raises:
        SpecError: There is no such source.
    """
    kind = choose_kind(data)
    if kind == "digits":
        return kind  # never changes
    if kind == "function":
        find_file(function_entrypoint(data, base_dir))
        return None
    return hash_file(require_file(source_path(data, base_dir)))


def compose_key(data: DataSpec, identity: str) -> str:
    """Return the folder name of a dataset: a readable stem and a digest over the spec and the content of the source."""
    text = json.dumps(
        [_FORMAT, data.model_dump(mode="json", exclude={"sharding"}), identity], sort_keys=True, default=str
    )
    stem = "".join(letter if letter.isalnum() else "-" for letter in Path(data.source.rpartition(":")[2]).stem)[:40]
    return f"{stem}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def compose_rows_key(data: DataSpec, digest: str) -> str:
    """Return the folder name of a dataset that only its rows identify: equal rows and split, equal name.

    Args:
        data: Where the rows came from. Its parameters do not count: a new date that gives the same rows is the same.
        digest: Over the content of the rows.
    """
    return compose_key(data.model_copy(update={"params": {}}), digest)


def dataset_folder(data: DataSpec, base_dir: Path, home: Path) -> Path | None:
    """Return the folder that the prepared rows of `data` have or would have; None when only reading them can tell.

    Raises:
        SpecError: There is no such source.
    """
    identity = identify_source(data, base_dir)
    return None if identity is None else home / "data" / compose_key(data, identity)


def source_path(data: DataSpec, base_dir: Path) -> Path:
    """Return the file of a source that is one."""
    return base_dir / Path(data.source).expanduser()


def function_entrypoint(data: DataSpec, base_dir: Path) -> Entrypoint:
    """Return the function of a source that is one."""
    return parse_entrypoint(data.source, base_dir, "data.source")


def require_file(path: Path) -> Path:
    """Return `path`.

    Raises:
        SpecError: There is no such file; names the nearest one in the same folder.
    """
    if path.is_file():
        return path
    what = "a folder" if path.is_dir() else "no file"
    beside = [file.name for file in path.parent.glob(f"*{path.suffix}")] if path.parent.is_dir() else []
    raise spec_error(
        "data.source", f"must be an existing file. Received: {path}, which is {what}.", say_nearest(path.name, beside)
    )


def hash_file(path: Path) -> str:
    """Return the SHA-256 of the file's content, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _choose(text: str) -> SourceKind:
    if text == "digits":
        return "digits"
    suffix = text[-len(".csv") :].lower()
    if suffix == ".npz":
        return "archive"
    if suffix == ".csv":
        return "table"
    if ":" in text and "://" not in text:
        return "function"
    raise spec_error(
        "data.source",
        f"must be a built-in set ({', '.join(_BUILT_IN)}), a path that ends in .npz or .csv, module:function, or "
        f"{BUILD_DATASET}. Received: {text!r}.",
        say_nearest(text, (*_BUILT_IN, BUILD_DATASET)),
    )
