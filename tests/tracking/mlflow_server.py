"""A real MLflow server, with the command that `ganger serve` uses, that can be killed and come back at its address."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil

from training.serve.commands import render_mlflow_command
from training.serve.health import fetch
from training.serve.port import LOOPBACK

START_TIMEOUT_S = 120.0


class MlflowServer:
    """Serves the store in `home`.

    Attributes:
        uri: Its address, the same after another launch.
        store_uri: That of its store, for who does without it.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._port = _find_free_port()
        self._process: psutil.Popen | None = None
        self.store_uri = f"sqlite:///{home / 'mlflow.db'}"
        self.uri = f"http://{LOOPBACK}:{self._port}"

    def launch(self) -> None:
        """Start it; it answers later."""
        command = render_mlflow_command(Path(sys.executable).parent, self._home, os.environ, self._port)
        with (self._home / "server.log").open("ab") as log:
            self._process = psutil.Popen(command.argv, env=dict(command.env), stdout=log, stderr=subprocess.STDOUT)

    def wait(self) -> None:
        """Wait until it answers."""
        assert self._process is not None
        end = time.monotonic() + START_TIMEOUT_S
        while fetch(f"{self.uri}/health") is None:
            assert self._process.poll() is None, (self._home / "server.log").read_text()
            assert time.monotonic() < end, (self._home / "server.log").read_text()
            time.sleep(0.1)

    def kill(self) -> None:
        """End it and its children with SIGKILL, and wait until none is left."""
        if self._process is None:
            return
        processes = [self._process, *self._process.children(recursive=True)]
        for process in processes:
            process.kill()
        _, alive = psutil.wait_procs(processes, timeout=20)
        assert not alive
        self._process = None


def _find_free_port() -> int:
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        return int(listener.getsockname()[1])
