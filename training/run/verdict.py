"""Why a gang is ended, in words: the headline of a failure and what stands under it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from training.policy.failure import KINDS, Cause, FailureClass, signal_of
from training.run.event import Failure
from training.run.job import FailureHeadline
from training.run.watch import RankWatch

_DETAIL_LINES = 30
#: The last line of a Python traceback.
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)(:|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The first failure of an attempt.

    Attributes:
        cause: What decides about a restart.
        headline: What a person is told.
        at: When it was seen, on the supervisor's clock.
    """

    cause: Cause
    headline: FailureHeadline
    at: float


def judge_rank(rank: RankWatch, at: float) -> Verdict:
    """Return the verdict on a rank that failed by itself."""
    found = rank.classify()
    told = rank.failure
    return _verdict_on(
        rank,
        found.cause,
        at,
        message=f"{_say_what_happened(rank)}{_say_why(found)}",
        kind=found.kind,
        detail=_explain(told) if told is not None else None,
    )


def judge_early_exit(rank: RankWatch, ranks: Sequence[RankWatch], at: float) -> Verdict:
    """Return the verdict on a rank that left, content, before it had joined its peers (K02)."""
    return _verdict_on(
        rank, Cause.START_DEADLINE, at, message=f"it ended with exit code 0 before it had joined. {_list_joined(ranks)}"
    )


def judge_start(ranks: Sequence[RankWatch], deadline_s: float, at: float) -> Verdict:
    """Return the verdict on a gang that was not complete in time (K02)."""
    missing = [rank for rank in ranks if not rank.ready]
    said = "\n".join(f"{rank.process.name}: last line: {rank.last_line or '(no output)'}" for rank in missing)
    return _verdict_on(
        missing[0],
        Cause.START_DEADLINE,
        at,
        message=f"every rank must be ready within {deadline_s:g} s. {_list_joined(ranks)}",
        detail=said,
    )


def judge_stall(rank: RankWatch, *, silent_s: float, stopped: bool, at: float) -> Verdict:
    """Return the verdict on a rank that gave no sign for too long (K14)."""
    state = "; the kernel holds it stopped (SIGSTOP)" if stopped else ""
    doing = f"; it was {rank.doing}" if rank.doing else ""
    return _verdict_on(rank, Cause.STALL, at, message=f"it gave no sign of life for {silent_s:.1f} s{state}{doing}")


def judge_late(late: Sequence[RankWatch], grace_s: float, at: float) -> Verdict:
    """Return the verdict on ranks that went on long after the first one had ended well (K20)."""
    return _verdict_on(late[0], Cause.LATE, at, message=f"it still ran {grace_s:g} s after the first rank had ended")


def judge_job(cause: Cause, message: str, at: float, *, kind: str = "", detail: str = "") -> Verdict:
    """Return a verdict on the job as a whole."""
    headline = FailureHeadline(kind=kind or KINDS[cause], message=message, detail=detail)
    return Verdict(cause=cause, headline=headline, at=at)


def render_headline(failure: FailureHeadline) -> str:
    """Return the one line that names the rank, its host, its step, what happened.

    >>> render_headline(FailureHeadline(rank=1, name="rank 1 (ps)", host="n1", kind="WorkerError", message="exit 7"))
    'rank 1 (ps) on n1 failed: exit 7'
    """
    if failure.rank is None:
        return failure.message
    step = f" at step {failure.step}" if failure.step else ""
    return f"{failure.name} on {failure.host} failed{step}: {failure.message}"


def describe_exit(exit_code: int | None) -> str:
    """Return an exit code in words.

    >>> describe_exit(-9), describe_exit(137), describe_exit(7)
    ('killed by SIGKILL', 'exit code 137 (SIGKILL)', 'exit code 7')
    """
    if exit_code is None:
        return "still running"
    signal = signal_of(exit_code)
    if exit_code < 0:
        return f"killed by {signal.name if signal else f'signal {-exit_code}'}"
    return f"exit code {exit_code} ({signal.name})" if signal else f"exit code {exit_code}"


def _say_what_happened(rank: RankWatch) -> str:
    if rank.diverged:
        return rank.diverged
    if rank.left_early:
        return "ended with exit code 0 before its task was done"
    told = rank.failure
    if told is None:
        exception = next((line for line in list(rank.lines)[-3:] if _EXCEPTION.match(line)), "")
        return f"{exception} ({describe_exit(rank.exit_code)})" if exception else describe_exit(rank.exit_code)
    code = rank.exit_code if rank.exit_code is not None else told.exit_code
    return f"{told.error}: {choose_line(told.message)} ({describe_exit(code)})"


def choose_line(message: str) -> str:
    r"""Return the first line of an exception's text that says something, with a mark if there are more.

    TensorFlow begins with "Graph execution error:" and where in the graph; what happened comes after that.

    >>> choose_line("Graph execution error:\n\nDetected at node x (most recent call last):\n  File y\nOOM: no memory")
    'OOM: no memory …'
    """
    lines = message.strip().split("\n")
    telling = (line for line in lines if line and not line[0].isspace() and line[0] != "<" and not line.endswith(":"))
    return next(telling, lines[0]) + (" …" if len(lines) > 1 else "")


def _say_why(found: FailureClass) -> str:
    return f", treated as {found.cause} by the spec's pattern {found.pattern!r}" if found.pattern else ""


def _explain(told: Failure) -> str:
    return told.traceback or (told.message if "\n" in told.message.strip() else "")


def _list_joined(ranks: Sequence[RankWatch]) -> str:
    ready = ", ".join(rank.process.name for rank in ranks if rank.ready) or "none"
    missing = ", ".join(f"{rank.process.name} on {rank.process.host}" for rank in ranks if not rank.ready) or "none"
    return f"Ready: {ready}. Not ready: {missing}."


def _verdict_on(
    rank: RankWatch, cause: Cause, at: float, *, message: str, kind: str = "", detail: str | None = None
) -> Verdict:
    headline = FailureHeadline(
        rank=rank.process.rank,
        name=rank.process.name,
        host=rank.process.host,
        kind=kind or KINDS[cause],
        message=message,
        exit_code=_exit_code_of(rank),
        step=rank.step or None,
        detail="\n".join(list(rank.lines)[-_DETAIL_LINES:]) if detail is None else detail,
    )
    return Verdict(cause=cause, headline=headline, at=at)


def _exit_code_of(rank: RankWatch) -> int | None:
    if rank.exit_code is None and rank.failure is not None:
        return rank.failure.exit_code
    return rank.exit_code
