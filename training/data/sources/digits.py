"""The built-in set `digits`: 1797 real handwritten digits of 8 by 8 pixels, shipped with scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from training.data.rows import Rows

_LARGEST_GREY = 16.0


@dataclass(frozen=True, slots=True)
class DigitsSource:
    """Test part of "Optical Recognition of Handwritten Digits" (Alpaydin and Kaynak 1998, UCI), scaled to 0..1."""

    def read(self) -> Rows:
        """Return x of shape (1797, 64), float32 in 0..1, and y of shape (1797,), int64 in 0..9."""
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
        return Rows(x=(x / _LARGEST_GREY).astype(np.float32), y=y.astype(np.int64))
