"""Reading a pipeline file as text: bounded, UTF-8, one clear sentence for whatever is not."""

from __future__ import annotations

import codecs
import stat
from pathlib import Path
from typing import Final

from training.errors import Problem, SpecError

#: A long pipeline file has 5 kB. The bound keeps a wrong path (a data file) and hostile input from costing anything.
MAX_BYTES: Final = 256 * 1024

_OTHER_ENCODINGS: Final = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def read_spec_text(path: Path) -> str:
    """Return the text of a pipeline file, without a byte order mark.

    Raises:
        SpecError: It is absent, no ordinary file, unreadable, too large, or not UTF-8.
    """
    return decode_spec(_read_bytes(path), str(path))


def decode_spec(data: bytes, file: str) -> str:
    """Return bytes as text, without a byte order mark.

    Raises:
        SpecError: The bytes are too many or not UTF-8.
    """
    if len(data) > MAX_BYTES:
        raise _refuse(file, f"must be a file of at most {MAX_BYTES // 1024} KiB.", "Is it a pipeline file?")
    for mark, name in _OTHER_ENCODINGS.items():
        if data.startswith(mark):
            raise _refuse(file, f"must be UTF-8. Received: {name}.", "Save it as UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"must be UTF-8. Received: the byte 0x{error.object[error.start]:02x}."
        raise _refuse(file, message, "Save it as UTF-8.", line) from None


def _read_bytes(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise _refuse(str(path), "must be a file. Received: a folder.", "Name a file in it.")
        if not stat.S_ISREG(mode):
            raise _refuse(str(path), "must be an ordinary file. Received: a device, pipe or socket.")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _refuse(str(path), "does not exist.", "Check the path.") from None
    except OSError as error:
        raise _refuse(str(path), f"cannot be read ({error.strerror or error}).") from None
    except ValueError:
        raise _refuse(str(path), "cannot be a path: it holds a zero byte.") from None


def _refuse(file: str, message: str, remedy: str = "", line: int = 0) -> SpecError:
    return SpecError([Problem(field="", message=message, remedy=remedy, file=file, line=line)])
