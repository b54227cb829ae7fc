"""Shape and type of an array in a `.npz` archive, read without NumPy and without the array."""

from __future__ import annotations

import ast
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO


@dataclass(frozen=True, slots=True)
class ArrayHeader:
    """What stands in front of an array.

    Attributes:
        shape: Its shape.
        dtype: Its type as NumPy spells it in files, such as `<f4`.
    """

    shape: tuple[int, ...]
    dtype: str

    @property
    def prepared_dtype(self) -> str:
        """What the type is like once the rows are prepared: text becomes codes of classes.

        >>> [ArrayHeader((5,), dtype).prepared_dtype for dtype in ("<f8", "<i4", "<U3")]
        ['float32', 'int64', 'int64']
        """
        return "float32" if self.dtype.lstrip("<>=|")[:1] == "f" else "int64"


def read_header(path: Path, name: str) -> ArrayHeader | None:
    """Return the header of the array `name`; None where it cannot be read, which preparing the data will explain.

    The format is NumPy's (NEP 1): magic, version, length of the header, the header as a Python literal.
    """
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as stream:
            return _parse_header(stream)
    except (KeyError, OSError, ValueError, SyntaxError, zipfile.BadZipFile, struct.error):
        return None


def _parse_header(stream: IO[bytes]) -> ArrayHeader:
    magic, version = stream.read(6), stream.read(2)
    if magic != b"\x93NUMPY":
        raise ValueError("no .npy file")
    size, form = (2, "<H") if version[0] == 1 else (4, "<I")
    header = ast.literal_eval(stream.read(struct.unpack(form, stream.read(size))[0]).decode("utf-8"))
    return ArrayHeader(tuple(header["shape"]), str(header["descr"]))
