"""Numbers by which the weights of two trainings are compared."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def hash_weights(arrays: Iterable[NDArray[Any]]) -> str:
    """Return the SHA-256, in hex, over the values of `arrays` in order, each as little-endian float32 in C order.

    Equal hashes mean equal bits; one rounding anywhere gives another hash. For equality up to rounding see
    `norm_weights`.
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array, dtype="<f4").tobytes())
    return digest.hexdigest()


def norm_weights(arrays: Iterable[NDArray[Any]]) -> float:
    """Return the Euclidean norm over all values of `arrays`, added up in float64."""
    return math.sqrt(sum(float(np.sum(np.square(array.astype(np.float64)))) for array in arrays))
