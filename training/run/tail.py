"""Reads a growing log by whole lines."""

from __future__ import annotations

from pathlib import Path

#: The last lines of a log are looked for in so many last bytes.
_LAST_BYTES = 1 << 16


class LogTail:
    """The lines that are added to a file after `offset`; the file need not exist yet."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._path = path
        self._offset = offset
        self._rest = b""

    def read(self, *, to_end: bool = False) -> list[str]:
        """Return the lines that are new since the last call; with `to_end`, also a last one without line feed."""
        *lines, self._rest = (self._rest + self._read_new()).split(b"\n")
        if to_end and self._rest:
            lines.append(self._rest)
            self._rest = b""
        return [line.decode("utf-8", "replace") for line in lines]

    def _read_new(self) -> bytes:
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._offset)
                data = stream.read()
        except FileNotFoundError:
            return b""
        self._offset += len(data)
        return data


def read_last_lines(path: Path, count: int) -> str:
    """Return the last `count` lines of a file, or nothing where there is no file."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - _LAST_BYTES))
            return "\n".join(stream.read().decode("utf-8", "replace").splitlines()[-count:])
    except FileNotFoundError:
        return ""
