"""The process that a person or Airflow starts and waits for: the one that is called the task process here."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

GANGER = str(Path(sys.executable).parent / "ganger")
#: Nothing here takes so long, on any machine.
LIMIT_S = 420.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a command ended.

    Attributes:
        state: `succeeded`, `failed`, `cancelled`; `killed` if it was killed.
        error: The error that it told, if any.
        said: All that it printed for a person.
    """

    state: str
    error: str
    said: str


class Command:
    """One process, its output in files of `folder`.

    Args:
        argv: What to run. It prints `run ID` on standard error, and at the end a JSON object on standard output.
        folder: Where the output goes.
        name: Of the files.
        env: The whole environment.
    """

    def __init__(self, argv: list[str], folder: Path, name: str, env: Mapping[str, str]) -> None:
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=dict(env), start_new_session=True
            )

    @property
    def is_over(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def read_run_id(self) -> str:
        """Return the id of the run, as soon as the process has told it."""
        end = time.monotonic() + LIMIT_S
        while True:
            over = self.is_over
            found = re.search(r"^run (\S+)$", self._err.read_text(), re.MULTILINE)
            if found is not None:
                return found[1]
            if over or time.monotonic() > end:
                raise RuntimeError(f"{self._err} must name the run. Received: {self._err.read_text()[-2000:]}")
            time.sleep(0.02)

    def signal(self, signum: signal.Signals) -> None:
        """Send a signal to the process alone."""
        os.kill(self._process.pid, signum)

    def wait(self) -> Ending:
        """Wait for the end, and return how it was."""
        self._process.wait(LIMIT_S)
        return self._read_ending()

    def abandon(self) -> None:
        """End the process and its group, if it still runs."""
        if not self.is_over:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _read_ending(self) -> Ending:
        said = self._err.read_text()
        if self._process.returncode == -signal.SIGKILL:
            return Ending(state="killed", error="", said=said)
        lines = self._out.read_text().strip().splitlines()
        if not lines:
            return Ending(state=f"exit code {self._process.returncode}", error=said[-2000:], said=said)
        told = json.loads(lines[-1])
        return Ending(state=told["state"], error=told.get("error") or "", said=said)
