"""Named arrays as one safetensors file: no code runs when it is read."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensors = Mapping[str, NDArray[Any]]


def measure_tensors(tensors: Tensors) -> int:
    """Return the bytes of all values; the file is a header larger."""
    return sum(array.nbytes for array in tensors.values())


def write_tensors(path: Path, tensors: Tensors) -> None:
    """Write `tensors` to `path`; the caller flushes and renames.

    Raises:
        OSError: The file could not be written.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        save_file({name: np.asarray(array, order="C") for name, array in tensors.items()}, str(path))
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))  # the number is in the text only
        code = int(number[1]) if number else errno.EIO
        raise OSError(code, os.strerror(code), str(path)) from error


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file that `write_tensors` wrote.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no such file.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        loaded: dict[str, NDArray[Any]] = load_file(str(path))
    except SafetensorError as error:
        raise ValueError(f"{path} is no safetensors file: {error}") from error
    return loaded
