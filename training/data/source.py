"""The choice between the kinds of data sources."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from training.data.identity import choose_kind, function_entrypoint, require_file, source_path
from training.data.rows import Rows
from training.data.sources.archive import ArchiveSource
from training.data.sources.digits import DigitsSource
from training.data.sources.function import FunctionSource
from training.data.sources.table import TableSource
from training.spec.pipeline import DataSpec


class Source(Protocol):
    """Gives rows."""

    def read(self) -> Rows:
        """Return all rows, not yet checked.

        Raises:
            SpecError: They cannot be read.
        """
        ...


def open_source(data: DataSpec, base_dir: Path) -> Source:
    """Return the source that `data.source` names; nothing is read yet.

    Raises:
        SpecError: The source is of no known kind, or its file is not there.
    """
    kind = choose_kind(data)
    if kind == "digits":
        return DigitsSource()
    if kind == "function":
        return FunctionSource(entrypoint=function_entrypoint(data, base_dir), params=data.params)
    path = require_file(source_path(data, base_dir))
    if kind == "archive":
        return ArchiveSource(path)
    return TableSource(path=path, label=data.label, missing=data.missing)
