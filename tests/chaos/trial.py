"""One training with one fault, from its start to the checks of what is left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.command import GANGER, Command
from tests.chaos.fault import Fault, Kind, Moment
from tests.chaos.site import Site
from tests.chaos.stopwatch import Stopwatch, Timing
from tests.chaos.watched_run import WatchedRun
from training.run.folder import RunFolder

_STOP_S = 120.0


@dataclass
class Trial:
    """One training with one fault: what an injection works with.

    Attributes:
        site: The surroundings.
        fault: What is to be done.
        options: Fields of the spec's `train` block.
        folder: Where the output of the commands goes.
        env: The environment of the commands.
        spec: The pipeline, once it has begun.
        command: The command that is waited for, once there is one.
        closing: Called when all is over, the last one first.
    """

    site: Site
    fault: Fault
    options: dict[str, object]
    folder: Path
    env: dict[str, str]
    spec: Path = field(init=False)
    command: Command | None = None
    closing: list[Callable[[], object]] = field(default_factory=list)
    _run: WatchedRun | None = None
    _stopwatches: list[Stopwatch] = field(default_factory=list)

    @classmethod
    def open(cls, site: Site, fault: Fault, options: dict[str, object], env: dict[str, str]) -> Trial:
        """Return a trial that has not begun, in a folder of its own."""
        name = f"chaos_{fault.number}"
        folder = site.root / "trials" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return cls(site=site, fault=fault, options=options, folder=folder, env=site.environ | env)

    @property
    def run(self) -> WatchedRun:
        """The run, which must have begun."""
        assert self._run is not None, "the run must have begun"
        return self._run

    @property
    def run_id(self) -> str:
        """Id of the run, empty before it has begun."""
        return self._run.folder.run_id if self._run is not None else ""

    def start(self, name: str) -> Command:
        """Start the training, or go on with the one that there is; `name` is that of the output's files."""
        if self._run is None:
            self.spec = self._write_spec()
        self.command = Command(self._render_command(), self.folder, name, self.env)
        run_id = self.command.read_run_id()
        if self._run is None:
            self._run = WatchedRun(RunFolder.of(run_id, self.site.home))
        assert run_id == self.run_id, f"the second command must go on with {self.run_id}. Received: {run_id}"
        return self.command

    def wait_for(self, moment: Moment | None) -> None:
        """Wait until the training is there.

        Raises:
            MissedError: It never was.
        """
        assert moment is not None, f"{self.fault.kind} needs a second moment"
        command = self.command
        assert command is not None
        self.run.wait_for(moment, lambda: command.is_over and self.run.train.result.exists())

    def kill_rank(self, signum: signal.Signals = signal.SIGKILL, *, timed: bool = True) -> None:
        """Send a signal to the fault's rank."""
        self._kill(self.run.rank_pids()[self.fault.rank], signum, self.fault.rank, timed=timed)

    def kill_supervisor(self) -> None:
        """Kill the supervisor of the gang."""
        self._kill(self.run.supervisor_pid(), signal.SIGKILL, None, timed=True)

    def wait_until_gone(self) -> None:
        """Wait until no process of the gang runs any more that was there at the last kill."""
        self._stopwatches[-1].read()

    def timings(self) -> tuple[Timing, ...]:
        """Return what was measured of the kills."""
        return tuple(stopwatch.read() for stopwatch in self._stopwatches)

    def close(self, *, by_force: bool) -> None:
        """Undo what is left of the fault; `by_force`, end the training first."""
        if by_force and self.command is not None:
            self.command.abandon()
        if by_force and self._run is not None:
            command = [GANGER, "stop", self.run_id]
            subprocess.run(command, env=self.env, capture_output=True, check=False, timeout=_STOP_S)
        while self.closing:
            self.closing.pop()()

    def _kill(self, pid: int, signum: signal.Signals, rank: int | None, *, timed: bool) -> None:
        if timed:
            stopwatch = Stopwatch(self.run, rank)
            self._stopwatches.append(stopwatch)
            stopwatch.start()
        os.kill(pid, signum)

    def _write_spec(self) -> Path:
        folder = self.folder
        if self.fault.kind is Kind.AIRFLOW_TASK_KILLED:
            self.closing.append(self.site.stop_airflow)
            folder = self.site.start_airflow().pipelines
        return self.site.write_pipeline(folder, self.folder.name, self.options)

    def _render_command(self) -> list[str]:
        if self.fault.kind is Kind.AIRFLOW_TASK_KILLED:
            return [sys.executable, "-m", "tests.chaos.dag_run", self.site.start_airflow().url, self.spec.stem]
        if self._run is not None:
            return [GANGER, "run", "--resume", self.run_id, "--json"]
        return [GANGER, "run", str(self.spec), "--json"]
