"""Runs the commands of a set-up: output into a log file, failure into one sentence."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from training.errors import InfrastructureError, LaunchError

_NO_SPACE = "No space left on device"
_NO_NETWORK = (
    "error sending request",
    "dns error",
    "Temporary failure in name resolution",
    "Connection refused",
    "Failed to establish a new connection",
    "Network is unreachable",
    "operation timed out",
    "Network connectivity is disabled",
)
_WRONG_HASH = ("Hash mismatch", "DO NOT MATCH THE HASHES")


def run_logged(command: Sequence[str], *, log_file: Path, env: Mapping[str, str], doing: str) -> None:
    """Run `command` with its output appended to `log_file`.

    Args:
        command: Program and arguments.
        log_file: File that its output goes to.
        env: Its whole environment.
        doing: What it is for, as it reads in the error: "installing the control environment".

    Raises:
        LaunchError: It failed; says why in one sentence, and where the rest is.
        InfrastructureError: The disk is full.
    """
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("a", encoding="utf-8", errors="replace") as log:
        log.write(f"$ {' '.join(command)}\n")
        log.flush()
        start = log.tell()
        ended = subprocess.run(
            command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=dict(env), check=False
        )
    if ended.returncode == 0:
        return
    with log_file.open(encoding="utf-8", errors="replace") as log:
        log.seek(start)
        output = log.read()
    raise explain_failure(output, doing=doing, log_file=log_file, exit_code=ended.returncode)


def explain_failure(output: str, *, doing: str, log_file: Path, exit_code: int) -> LaunchError | InfrastructureError:
    """Return the error that says in one sentence why a command of a set-up failed."""
    if _NO_SPACE in output:
        return InfrastructureError(
            f"the disk is full: {doing} ran out of space. Free some and run the same command again."
        )
    if any(sign in output for sign in _WRONG_HASH):
        return LaunchError(
            f"{doing} failed: the registry served a file whose hash is not in the lock (see {log_file})."
        )
    if any(sign in output for sign in _NO_NETWORK):
        return LaunchError(
            f"{doing} failed: the package registry does not answer; check the network and pip's or uv's index setting, "
            f"then run the same command again (details: {log_file})."
        )
    return LaunchError(f"{doing} failed with exit code {exit_code}: {_last_words(output)} (details: {log_file}).")


def _last_words(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() or line.startswith("cause:")]
    return (errors or lines or ["it printed nothing"])[-1].rstrip(".")
