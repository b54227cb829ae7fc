"""Takes the slots of a job from the table of its machine, waits in its queue, gives them back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from training.policy.slots import SlotAction, SlotClaim, SlotDecision, SlotPolicy
from training.run.folder import JobFolder, RunFolder
from training.run.job import SupervisorRef
from training.run.slot_table import SlotRow, SlotTable, ignore

_RELEASE_PATIENCE_S = 1.0
_POLL_S = 0.01


class SlotSeeker:
    """One supervisor's way to its slots, and back.

    Attributes:
        table: The table of this machine.
        wanted: Slots that it needs.
        total: Slots that the machine has, as far as this process was told.
    """

    def __init__(
        self,
        folder: JobFolder,
        supervisor: SupervisorRef,
        *,
        wanted: int,
        total: int,
        wall_clock: Callable[[], float] = time.time,
        say: Callable[[str], None] = ignore,
    ) -> None:
        self.table = SlotTable(RunFolder(folder.path.parent.parent).home, supervisor.host)
        self.wanted = wanted
        self.total = total
        self._folder = folder
        self._supervisor = supervisor
        self._wall_clock = wall_clock
        self._say = say
        folder.slots.unlink(missing_ok=True)  # of an earlier try

    def look(self) -> SlotDecision | None:
        """Take the slots if it is this job's turn, else take or keep a place in the queue.

        Returns:
            What is decided; None while somebody else has the table.

        Raises:
            OSError: The table cannot be read or written.
        """
        with self.table.change(self._say) as rows:
            if rows is None:
                return None
            others = [row for row in rows if row.claim.job_id != self._folder.job_id]
            mine = next((row for row in rows if self._is_mine(row)), None) or self._join(others)
            claims = [row.claim for row in (*others, mine)]
            decision = SlotPolicy(total=self.total).decide(claims, mine.claim.ticket)
            rows[:] = others if decision.action is SlotAction.REFUSE else [*others, self._apply(mine, decision)]
            return decision

    def release(self) -> None:
        """Give back what is held, or leave the queue. Safe to repeat.

        Raises:
            OSError: The table cannot be written. The end of this process frees the slots all the same.
        """
        self._folder.slots.unlink(missing_ok=True)
        deadline = time.monotonic() + _RELEASE_PATIENCE_S
        while not self._try_release() and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    def _try_release(self) -> bool:
        with self.table.change(self._say) as rows:
            if rows is not None:
                rows[:] = [row for row in rows if not self._is_mine(row)]
            return rows is not None

    def _is_mine(self, row: SlotRow) -> bool:
        return (row.claim.job_id, row.supervisor) == (self._folder.job_id, self._supervisor)

    def _join(self, others: Sequence[SlotRow]) -> SlotRow:
        """Return a row at the end of the queue."""
        ticket = 1 + max((row.claim.ticket for row in others), default=0)
        claim = SlotClaim(job_id=self._folder.job_id, wanted=self.wanted, ticket=ticket, since=self._wall_clock())
        return SlotRow(claim=claim, supervisor=self._supervisor)

    def _apply(self, mine: SlotRow, decision: SlotDecision) -> SlotRow:
        """Return the row with the slots that it was given, which is written into the job's folder, too."""
        if decision.action is not SlotAction.TAKE or mine.claim.slots == decision.slots:
            return mine
        claim = replace(mine.claim, slots=decision.slots, since=self._wall_clock())
        row = mine.model_copy(update={"claim": claim})
        row.write(self._folder.slots, durable=False)
        return row
