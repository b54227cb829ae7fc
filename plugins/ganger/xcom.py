"""What may pass from one task to the next: small, plain JSON. The rest goes to a file of the run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from training.errors import WorkerError
from training.run.folder import write_atomic

#: All values of a task together, in bytes of JSON. XComs are rows of the metadata database and are read by the UI.
MAX_BYTES = 16 * 1024


def check_xcom(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return `values` as they may be handed to Airflow.

    While they are too large together, the largest one is written to `folder` and replaced by `{"file": path}`.

    Raises:
        WorkerError: A value is not plain JSON; names its key and type.
    """
    for key, value in values.items():
        _check_plain(key, value)
    kept = dict(values)
    while _size(kept) > MAX_BYTES:
        largest = max(kept, key=lambda key: _size(kept[key]))
        path = folder / f"{largest}.json"
        write_atomic(path, json.dumps(kept[largest]))
        kept[largest] = {"file": str(path)}
    return kept


def _size(value: Any) -> int:
    return len(json.dumps(value).encode())


def _check_plain(key: str, value: Any) -> None:
    if value is None or isinstance(value, str | bool | int):
        return
    if isinstance(value, float):
        if math.isfinite(value):
            return
        raise WorkerError(f"the result {key} must be a finite number. Received: {value}.")
    if isinstance(value, list | tuple):
        for position, item in enumerate(value):
            _check_plain(f"{key}[{position}]", item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if not isinstance(name, str):
                raise WorkerError(f"the keys of the result {key} must be text. Received: {name!r}.")
            _check_plain(f"{key}.{name}", item)
    else:
        raise WorkerError(
            f"the result {key} must be plain JSON: text, number, true, false, null, list or mapping. "
            f"Received: {type(value).__name__}. Return a path or a number instead."
        )
