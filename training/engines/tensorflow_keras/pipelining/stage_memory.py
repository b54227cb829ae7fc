"""The most memory that each stage had, asked of the stages themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

#: Of the process that reads it: `VmHWM:   123456 kB` is its largest resident set (man 5 proc).
_STATUS = "/proc/self/status"
_PEAK = r"VmHWM:\s*\d+ kB"


def make_peak_reader(devices: Sequence[str]) -> Callable[[], list[float]]:
    """Return a function that tells the largest resident memory of the process of each device so far, in MiB.

    A dataset is what reads the file in the process of its device, line by line; a plain read would ask for its size
    first, which is 0. Where the file says nothing, it is 0 MiB.
    """

    def read_lines() -> list[Any]:
        return [_find_peak_line(device) for device in devices]

    function = tf.function(read_lines, autograph=False)
    return lambda: [_parse_mib(line.numpy().decode()) for line in function()]


def _find_peak_line(device: str) -> Any:
    with tf.device(device):
        lines = tf.data.TextLineDataset(_STATUS).filter(lambda line: tf.strings.regex_full_match(line, _PEAK))
        return lines.reduce("", lambda _, line: line)


def _parse_mib(line: str) -> float:
    return int("".join(filter(str.isdigit, line)) or 0) / 1024
