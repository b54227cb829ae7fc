"""Which lines of a rank nobody needs to read: notes of C++ code for its own developers. Pure.

TensorFlow is told to print errors only (`TF_CPP_MIN_LOG_LEVEL`), but those of its parts that log by Abseil directly
print their notes all the same, since nothing in TensorFlow ever initializes that log. Such a note may be a protocol
buffer of 20 lines. The rank's own log has all of them.
"""

from __future__ import annotations

import re

_NOTE = re.compile(r"I\d{4} \d\d:\d\d:\S+ +\d+ \S+\.cc:\d+\] ")
_UNINITIALIZED = "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"
#: A line of a protocol buffer as text, or the empty one behind it.
_FIELD = re.compile(r"\s*(\w+ \{|\}|\w+: .*)?")


class Chatter:
    r"""Recognises such lines of one rank, given all of its lines in their order.

    >>> chatter = Chatter()
    >>> note = ["I0000 00:00:1796.81  254 service.cc:356] SessionOptions: device_count {", '  key: "CPU"', "}", ""]
    >>> [chatter.has(line) for line in [*note, "stage 0 serves"]]
    [True, True, True, True, False]
    """

    def __init__(self) -> None:
        self._goes_on = False

    def has(self, line: str) -> bool:
        """Whether `line` is one of them."""
        is_note = line == _UNINITIALIZED or _NOTE.match(line) is not None
        is_field = self._goes_on and _FIELD.fullmatch(line) is not None
        self._goes_on = (is_note and line.endswith("{")) or (is_field and line.strip() != "")
        return is_note or is_field
