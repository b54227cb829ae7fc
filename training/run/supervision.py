"""Carries one job through: waits for its slots, opens the tracking, starts the gang, restarts it by policy, closes.

Stepped from outside, tick by tick; neither blocks nor reads a clock, except while leftover processes are ended.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from training import settings
from training.errors import LaunchError, PreflightError
from training.launch.api import Launcher, LaunchOrder
from training.plan.job import JobPlan
from training.policy.failure import Cause
from training.policy.restart import Action, PastFailure, RestartPolicy
from training.policy.shrink import choose_world_size
from training.run.conclusion import add_tracking, conclude
from training.run.event import Event
from training.run.folder import JobFolder, write_atomic
from training.run.gang import GangWatch, Phase
from training.run.job import JobResult, JobState
from training.run.journal import Journal
from training.run.outputs import find_missing_outputs
from training.run.outside import LeaseWatch, Outside
from training.run.progress import Progress
from training.run.scratch import Scratch
from training.run.slot_wait import SlotWait
from training.run.sweep import render_pids
from training.run.tracker_thread import TrackerThread
from training.run.verdict import Verdict, judge_job, render_headline

#: The tracker keeps shorter times itself; these hold where it does not.
OPEN_TIMEOUT_S = 60.0
CLOSE_TIMEOUT_S = 900.0


class Mode(enum.Enum):
    """Life stages of a job."""

    QUEUED = enum.auto()
    OPENING = enum.auto()
    RUNNING = enum.auto()
    PAUSING = enum.auto()
    CLOSING = enum.auto()
    OVER = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a supervision works with.

    Attributes:
        launcher: Starts the gang.
        journal: Takes what is said.
        tracker: Takes the events; None for a job without tracking.
        sweep: Ends processes that the job left behind, and returns their pids.
        scratch: The temporary folder of the ranks; None for ranks that need none.
        wall_clock: Seconds since the epoch.
        slots: Its place in the queue for the slots of this machine; None for a job that needs none.
        since: Modification time of a file written at the start; outputs must be newer.
        first_attempt: Number of the first attempt; earlier tries of the job had those before it.
    """

    launcher: Launcher
    journal: Journal
    tracker: TrackerThread | None
    sweep: Callable[[], list[int]]
    wall_clock: Callable[[], float]
    slots: SlotWait | None = None
    since: float = 0.0
    first_attempt: int = 1
    scratch: Scratch | None = None


class Supervision:
    """One job, from its plan to its result.

    Attributes:
        mode: Where the job is.
        result: How it ended, once `mode` is OVER.
    """

    def __init__(self, plan: JobPlan, folder: JobFolder, around: Surroundings, now: float) -> None:
        self.mode = Mode.QUEUED
        self.result: JobResult | None = None
        self.gang: GangWatch | None = None
        self._plan = plan
        self._folder = folder
        self._around = around
        self._journal = around.journal
        self._slots = around.slots
        self._tracker: TrackerThread | None = None  # no tracking run is opened for a job that waits
        self._policy = RestartPolicy(restarts=plan.limits.restarts, user_restarts=plan.limits.user_restarts)
        self._history: list[PastFailure] = []
        self._lease = LeaseWatch(plan.limits.lease_s, now)
        self._progress = Progress(folder)
        self._attempt = around.first_attempt
        self._notes: list[str] = []
        self._ending: Verdict | None = None
        self._pending: JobResult | None = None
        self._started_at = now
        self._started_wall = around.wall_clock()
        self._until = now
        if self._slots is None:
            self._begin(now)

    def tick(self, now: float, outside: Outside) -> None:
        """Do what is due."""
        if self.mode in (Mode.QUEUED, Mode.OPENING, Mode.RUNNING, Mode.PAUSING):
            self._heed(outside, now)
        if self.mode is Mode.RUNNING and self.gang is not None:
            self.gang.hear_turn(outside.turn, now)
        steps = {
            Mode.QUEUED: self._queue,
            Mode.OPENING: self._open,
            Mode.RUNNING: self._run,
            Mode.PAUSING: self._pause,
            Mode.CLOSING: self._close,
        }
        if self.mode in steps:
            steps[self.mode](now)
        state, ranks = self._read_state(), self.gang.statuses() if self.gang else ()
        self._progress.write(state, self._attempt, ranks, now)
        self._journal.flush()

    def abandon(self) -> None:
        """End the gang at once: the supervisor itself cannot go on."""
        if self.gang is not None:
            self.gang.abandon()
        self._around.sweep()
        self._clear_scratch()
        self._release_slots()

    def note(self, text: str) -> None:
        """Tell the log, and whoever reads the result."""
        self._notes.append(text)
        self._journal.note(text)

    def _heed(self, outside: Outside, now: float) -> None:
        """Look whether somebody or something outside wants the end."""
        expired = self._lease.is_expired(outside.lease, now)
        if self._ending is not None:
            return
        limits = self._plan.limits
        if outside.cancel is not None:
            self._end(judge_job(Cause.CANCELLED, f"cancelled: {outside.cancel}", now), now)
        elif self._is_overdue(now):
            running = ", ".join(self._list_running()) or "none"
            message = f"the job must end within {limits.timeout_s:g} s. Still running: {running}."
            self._end(judge_job(Cause.TIMEOUT, message, now), now)
        elif expired:
            message = f"nobody has followed the job for {limits.lease_s:g} s, so it was ended"
            self._end(judge_job(Cause.CANCELLED, message, now), now)

    def _end(self, verdict: Verdict, now: float) -> None:
        self._ending = verdict
        self._journal.note(verdict.headline.message)
        if self.mode is Mode.RUNNING and self.gang is not None:
            self.gang.stop(verdict, now)
        else:
            self._conclude(verdict, now)

    def _is_overdue(self, now: float) -> bool:
        timeout_s = self._plan.limits.timeout_s
        return timeout_s is not None and self.mode is not Mode.QUEUED and now - self._started_at >= timeout_s

    def _queue(self, now: float) -> None:
        """Take the slots of the gang, or wait for them."""
        assert self._slots is not None
        verdict = self._slots.tick(now)
        if verdict is not None:
            self._end(verdict, now)
        elif self._slots.is_over:
            self._begin(now)
            self._open(now)

    def _release_slots(self) -> None:
        if self._slots is not None:
            self._slots.release()

    def _begin(self, now: float) -> None:
        """Begin to open the tracking; the time limit of the job counts from here."""
        self._started_at = now
        self._started_wall = self._around.wall_clock()
        self._until = now + OPEN_TIMEOUT_S
        self._tracker = self._around.tracker
        if self._tracker is not None:
            self._tracker.start()
        self.mode = Mode.OPENING

    def _open(self, now: float) -> None:
        tracker = self._tracker
        if tracker is not None and not tracker.opened.is_set():
            if now < self._until:
                return
            self.note("the tracking server has not answered yet: the ranks start without knowing their MLflow run")
        self._start(now)

    def _start(self, now: float) -> None:
        """Start an attempt."""
        plan = self._plan
        ranks = [process.rank for process in plan.processes]
        self._journal.separate(ranks if self._attempt > 1 else [], f"attempt {self._attempt} of {self._folder.job_id}")
        try:
            gang = self._around.launcher.start(self._make_order())
        except LaunchError as error:
            self._clear_scratch()
            cause = Cause.PREFLIGHT if isinstance(error, PreflightError) else Cause.TEMPORARY
            self._judge(judge_job(cause, str(error), now, kind=type(error).__name__), now)
            return
        ports = "".join(f", port {name} {number}" for name, number in gang.ports.items())
        count = f"{len(ranks)} process{'es' if len(ranks) > 1 else ''}"
        self._journal.note(f"{count} started, to be ready within {plan.limits.start_timeout_s:g} s{ports}")
        self.gang = GangWatch(plan, gang, self._journal, now, self._hear)
        self.mode = Mode.RUNNING

    def _make_order(self) -> LaunchOrder:
        run_id = self._tracker.run_id if self._tracker is not None else None
        env = {settings.MLFLOW_RUN_ID: run_id} if run_id else {}
        if self._around.scratch is not None:
            env[settings.TMPDIR] = str(self._around.scratch.make())
        return LaunchOrder(
            plan=self._plan, folder=self._folder.path, mark=self._folder.job_id, attempt=self._attempt, env=env
        )

    def _clear_scratch(self) -> None:
        """Remove what the ranks left in their temporary folder, now that none of them is left."""
        problem = self._around.scratch.remove() if self._around.scratch is not None else ""
        if problem:
            self.note(problem)

    def _hear(self, event: Event) -> None:
        self._progress.hear(event)
        if self._tracker is not None:
            self._tracker.put(event)

    def _run(self, now: float) -> None:
        gang = self.gang
        assert gang is not None
        gang.tick(now)
        if gang.phase is not Phase.OVER:
            return
        ended = self._around.sweep()
        if ended:
            self.note(f"ended what the ranks left behind: {render_pids(ended)}")
        self._clear_scratch()
        verdict = gang.verdict or self._ending or self._check_outputs(now)
        if verdict is None:
            self._conclude(None, now)
        else:
            self._judge(verdict, now)

    def _check_outputs(self, now: float) -> Verdict | None:
        problems = find_missing_outputs(self._plan.outputs, self._around.since)
        if not problems:
            return None
        message = f"all ranks ended well, but what they had to make is not there: {'; '.join(problems)}"
        return judge_job(Cause.OUTPUT_MISSING, message, now)

    def _judge(self, verdict: Verdict, now: float) -> None:
        """Decide what comes after a failed attempt."""
        if verdict is not self._ending:
            self._journal.note(render_headline(verdict.headline))
        if self._ending is not None:
            self._conclude(verdict, now)
            return
        failure = PastFailure(cause=verdict.cause, at=verdict.at)
        decision = self._policy.decide(failure, self._history, now)
        self._journal.note(decision.reason)
        self._history.append(failure)
        if decision.action is Action.FAIL:
            self._conclude(verdict, now)
            return
        self._notes.append(f"attempt {self._attempt}: {render_headline(verdict.headline)}; {decision.reason}")
        self._shrink(verdict)
        self._attempt += 1
        self._until = now + decision.delay_s
        self.mode = Mode.PAUSING

    def _shrink(self, verdict: Verdict) -> None:
        """Go on with fewer ranks where the plan allows it and one was lost."""
        plan = self._plan
        sizes = [gang.world_size for gang in plan.smaller]
        size = choose_world_size(verdict.cause, verdict.headline.rank, plan.world_size, sizes)
        if size == plan.world_size:
            return
        self._plan = plan.shrink(size)
        write_atomic(self._folder.job, self._plan.model_dump_json(indent=2) + "\n")  # which the ranks read
        self.note(f"going on with {size} of {plan.world_size} ranks")

    def _pause(self, now: float) -> None:
        if now >= self._until:
            self._start(now)

    def _conclude(self, verdict: Verdict | None, now: float) -> None:
        """Make the result, and let others have the slots; only the tracker still has to take it."""
        self._release_slots()
        problems = [problem for problem in (self._journal.problem, self._progress.problem) if problem]
        result = conclude(
            verdict,
            list(self.gang.ranks.values()) if self.gang else [],
            started_at=self._started_wall,
            ended_at=self._around.wall_clock(),
            attempts=self._attempt,
            notes=(*self._notes, *problems),
        )
        untracked = self._around.tracker is None
        self._pending = result if untracked else result.model_copy(update={"tracking_closed": False})
        self._journal.note(f"{result.state} after {result.ended_at - result.started_at:.1f} s")
        self._journal.flush()  # the tracker keeps the logs
        if self._tracker is not None:
            self._tracker.finish(self._pending)
        self._until = now + CLOSE_TIMEOUT_S
        self.mode = Mode.CLOSING
        self._close(now)

    def _close(self, now: float) -> None:
        assert self._pending is not None
        tracker = self._tracker
        if tracker is None:
            self._finish(self._pending)
            return
        if not tracker.closed.is_set() and now < self._until:
            return
        reason = f"tracking was not done {CLOSE_TIMEOUT_S:g} s after the end: it is left as it is"
        report = tracker.report if tracker.closed.is_set() else tracker.give_up(reason)
        self._finish(add_tracking(self._pending, tracker.run_id, report))

    def _finish(self, result: JobResult) -> None:
        self.result = result
        self.mode = Mode.OVER

    def _read_state(self) -> JobState:
        if self.result is not None:
            return self.result.state
        if self.mode is Mode.CLOSING or self._ending is not None:
            return JobState.STOPPING
        if self.mode is Mode.QUEUED:
            return JobState.QUEUED
        if self.mode is Mode.RUNNING and self.gang is not None and self.gang.is_complete:
            return JobState.RUNNING if self.gang.phase is Phase.WATCHING else JobState.STOPPING
        return JobState.STARTING

    def _list_running(self) -> list[str]:
        return [r.process.name for r in self.gang.ranks.values() if r.is_running] if self.gang else []
