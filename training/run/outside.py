"""What the world wants of a running job: that it ends, or that it goes on."""

from __future__ import annotations

from dataclasses import dataclass

from training.run.folder import JobFolder
from training.run.turn import read_turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What was found at one moment.

    Attributes:
        cancel: Who asked for the end and why; None if nobody did.
        lease: When the lease was last renewed, on the clock of the file system; None if never.
        turn: The last turn that was called; None where nobody waits for one.
    """

    cancel: str | None = None
    lease: float | None = None
    turn: int | None = None


def read_outside(folder: JobFolder) -> Outside:
    """Return what stands in the job folder."""
    try:
        cancel: str | None = folder.cancel.read_text(errors="replace").strip() or "no reason was given"
    except FileNotFoundError:
        cancel = None
    try:
        lease: float | None = folder.lease.stat().st_mtime
    except FileNotFoundError:
        lease = None
    return Outside(cancel=cancel, lease=lease, turn=read_turn(folder))


class LeaseWatch:
    """Tells when nobody has renewed the lease for too long.

    Renewals are seen by the file's time changing and counted on our own clock: the follower may sit on another machine.
    A pause of this process (a laptop asleep) is not held against the follower, who slept as well.
    """

    def __init__(self, lease_s: float, now: float) -> None:
        self._lease_s = lease_s
        self._stamp: float | None = None
        self._renewed_at = now
        self._looked_at = now

    def is_expired(self, stamp: float | None, now: float) -> bool:
        """Take the file's time of change and return whether the lease is over."""
        pause = now - self._looked_at
        self._looked_at = now
        if stamp != self._stamp:
            self._stamp = stamp
            self._renewed_at = now
        elif pause > self._lease_s / 2:
            self._renewed_at += pause
        return now - self._renewed_at >= self._lease_s
