"""Who may have slots of a machine: first come, first served, all that were asked for or none (ADR 0004)."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotClaim:
    """What a job wants, or has, of the slots of a machine.

    Attributes:
        job_id: `run_id/job`.
        wanted: How many slots it needs at once.
        slots: Numbers of the slots that it holds, from 0; empty while it waits.
        ticket: Its place in the queue: lower ones came before.
        since: When it took its slots or, while it waits, when it came, in seconds since the epoch.
    """

    job_id: str
    wanted: int
    slots: tuple[int, ...] = ()
    ticket: int
    since: float


class SlotAction(enum.StrEnum):
    """What to do with a claim."""

    TAKE = "take"
    WAIT = "wait"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotDecision:
    """What becomes of a claim at one moment.

    Attributes:
        action: Take `slots`, wait for `holders` and `ahead`, or give up: waiting would not help.
        slots: Numbers of the slots to hold.
        holders: The claims that hold slots now.
        ahead: The claims that wait and came before.
    """

    action: SlotAction
    slots: tuple[int, ...] = ()
    holders: tuple[SlotClaim, ...] = ()
    ahead: tuple[SlotClaim, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotPolicy:
    """Gives a job all of its slots or none, in the order in which jobs came.

    Nobody is served before the head of the queue, though there were slots enough for a smaller claim: else a large one
    could wait for ever. Slots are counted as well as numbered, so that processes that were told different totals never
    give more than the total of whoever gives.

    Attributes:
        total: Slots of the machine.
    """

    total: int

    def decide(self, claims: Sequence[SlotClaim], ticket: int) -> SlotDecision:
        """Return what becomes of the claim with `ticket`, which is one of `claims`.

        >>> one = SlotClaim(job_id="a/train", wanted=2, slots=(0, 2), ticket=1, since=0.0)
        >>> two = SlotClaim(job_id="b/train", wanted=2, ticket=2, since=0.0)
        >>> SlotPolicy(total=4).decide([one, two], 2).slots
        (1, 3)
        """
        claim = next(claim for claim in claims if claim.ticket == ticket)
        if claim.slots:
            return SlotDecision(action=SlotAction.TAKE, slots=claim.slots)
        holders = tuple(other for other in claims if other.slots)
        ahead = tuple(other for other in claims if not other.slots and other.ticket < ticket)
        held = {slot for other in holders for slot in other.slots}
        if claim.wanted > self.total:
            action = SlotAction.REFUSE
        elif ahead or len(held) + claim.wanted > self.total:
            action = SlotAction.WAIT
        else:
            free = [slot for slot in range(self.total) if slot not in held]
            return SlotDecision(action=SlotAction.TAKE, slots=tuple(free[: claim.wanted]))
        return SlotDecision(action=action, holders=holders, ahead=ahead)


def count_slots(number: int) -> str:
    """Return a number of slots in words.

    >>> count_slots(1), count_slots(2)
    ('1 slot', '2 slots')
    """
    return f"{number} slot{'' if number == 1 else 's'}"
