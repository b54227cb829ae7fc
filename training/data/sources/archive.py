"""`.npz` files with the arrays `x` and `y`. Pickled objects are never loaded: they could run code."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from training.data.rows import Rows
from training.errors import SpecError, spec_error
from training.names import say_nearest


@dataclass(frozen=True, slots=True)
class ArchiveSource:
    """An archive as `numpy.savez(path, x=..., y=...)` writes it."""

    path: Path

    def read(self) -> Rows:
        """Return the arrays `x` and `y` as they are.

        Raises:
            SpecError: The file is no archive, lacks an array, or holds Python objects.
        """
        try:
            with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                missing = [name for name in ("x", "y") if name not in archive.files]
                if missing:
                    raise _lacks(self.path, missing, archive.files)
                return Rows(x=archive["x"], y=archive["y"])
        except (zipfile.BadZipFile, EOFError, OSError, TypeError) as error:
            raise _unreadable(self.path, error) from error
        except ValueError as error:
            if "pickle" not in str(error):
                raise _unreadable(self.path, error) from error
            raise spec_error(
                "data.source",
                f"must hold arrays of numbers or text. Received: Python objects in {self.path}, which are not loaded "
                "because they could run code.",
                "Save arrays of one dtype, such as x.astype('float32').",
            ) from error


def _lacks(path: Path, missing: list[str], names: list[str]) -> SpecError:
    return spec_error(
        "data.source",
        f"must hold the arrays x and y. Received: {path}, which lacks {' and '.join(missing)}.",
        say_nearest(missing[0], names) or "It holds no arrays.",
    )


def _unreadable(path: Path, error: Exception) -> SpecError:
    return spec_error(
        "data.source",
        f"must be a whole .npz archive. Received: {path} of {path.stat().st_size} bytes, unreadable: {error}.",
        "Write it with numpy.savez(path, x=x, y=y).",
    )
