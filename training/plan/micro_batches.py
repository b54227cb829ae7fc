"""What strategy `model_parallel` makes of a step: blocks on devices, rows in micro-batches. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def choose_micro_batches(wanted: int | None, devices: int, batch_size: int) -> int:
    """Return the parts of a step's rows: those asked for, else one for each device, as far as there are rows.

    >>> choose_micro_batches(None, 4, 64), choose_micro_batches(8, 4, 64), choose_micro_batches(None, 4, 3)
    (4, 8, 3)
    """
    return wanted or min(devices, batch_size)


def describe_step(placement: Mapping[str, int | str], micro_batches: int) -> str:
    """Return where blocks are and how many micro-batches a step has, in words.

    >>> describe_step({"output": 1, "hidden": 0, "embedding": 0}, 2)
    'hidden, embedding on device 0; output on device 1; 2 micro-batches a step'
    """
    devices: dict[int, list[str]] = {}
    for name, device in placement.items():
        devices.setdefault(int(device), []).append(name)
    where = [f"{', '.join(names)} on device {device}" for device, names in sorted(devices.items())]
    blocks = "; ".join(where) or "blocks balanced by their parameters"
    return f"{blocks}; {micro_batches} micro-{'batch' if micro_batches == 1 else 'batches'} a step"
