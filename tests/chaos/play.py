"""Plays one fault: the training, the fault, what the policy does about it, the checks of what is left."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, field

from tests.chaos import checks
from tests.chaos.command import GANGER, Command
from tests.chaos.expectation import Expectation, expect
from tests.chaos.fault import Fault
from tests.chaos.injections import INJECTIONS
from tests.chaos.injections.injection import Injection
from tests.chaos.site import Site
from tests.chaos.stopwatch import Timing
from tests.chaos.trial import Trial
from tests.chaos.watched_run import WatchedRun
from training.run.folder import RunFolder

#: What whoever joins a gang says.
_JOINED = "is running already: following it"


@dataclass(slots=True, kw_only=True)
class Outcome:
    """One row of the table; filled in as the trial goes on.

    Attributes:
        fault: What was done.
        expectation: What had to come out.
        run_id: The run, empty if it never began.
        ended: States of the commands, in order.
        attempts: Attempts of the gang.
        timings: What the kills took.
        difference: Largest difference of a weight to the undisturbed run; None where the training did not succeed.
        seconds: What all of it took.
        problems: What did not hold.
        left_out: Why nothing was done, if nothing was.
    """

    fault: Fault
    expectation: Expectation
    run_id: str = ""
    ended: list[str] = field(default_factory=list)
    attempts: int = 0
    timings: tuple[Timing, ...] = ()
    difference: float | None = None
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    left_out: str = ""


def play(site: Site, fault: Fault) -> Outcome:
    """Run a training, do to it what the fault says, carry it on where the policy says so, and check what is left."""
    began = time.monotonic()
    injection, outcome = INJECTIONS[fault.kind], Outcome(fault=fault, expectation=expect(fault))
    site.ensure_server()
    trial = Trial.open(site, fault, injection.options, injection.render_env(fault))
    try:
        _carry_through(trial, injection, outcome)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this row's, and the next training starts clean
        frame = traceback.extract_tb(error.__traceback__)[-1]
        outcome.problems.append(f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})")
    finally:
        trial.close(by_force=bool(outcome.problems))
    outcome.run_id, outcome.timings = trial.run_id, trial.timings()
    outcome.seconds = time.monotonic() - began
    return outcome


def play_undisturbed(site: Site) -> WatchedRun:
    """Run the training that all others are compared with.

    Raises:
        RuntimeError: It did not succeed.
    """
    site.ensure_server()
    folder = site.root / "trials" / "undisturbed"
    spec = site.write_pipeline(folder, "undisturbed", {})
    command = Command([GANGER, "run", str(spec), "--json"], folder, "first", site.environ)
    ending = command.wait()
    if ending.state != "succeeded":
        raise RuntimeError(f"the undisturbed training must succeed. Received: {ending.state}, {ending.error}")
    return WatchedRun(RunFolder.of(command.read_run_id(), site.home))


def _carry_through(trial: Trial, injection: Injection, outcome: Outcome) -> None:
    expected, problems = outcome.expectation, outcome.problems
    command = trial.start("first")
    injection.act(trial)
    ending = command.wait()
    outcome.ended.append(ending.state)
    problems += checks.check_ending(ending, expected.state)
    if expected.resumes:
        injection.mend(trial)
        if trial.run.train.result.exists():
            problems += checks.check_leftovers(trial.site, trial.run)
            problems += checks.check_none_running(trial.site)
        ending = trial.start("second").wait()
        outcome.ended.append(ending.state)
        problems += checks.check_ending(ending, "succeeded")
    if expected.joins and _JOINED not in ending.said:
        problems.append(f"whoever came back must have said {_JOINED!r}. Received: {ending.said[-400:]!r}")
    _check_end(trial, outcome, "succeeded" if expected.resumes else expected.state)


def _check_end(trial: Trial, outcome: Outcome, state: str) -> None:
    site, run, expected, problems = trial.site, trial.run, outcome.expectation, outcome.problems
    problems += checks.check_leftovers(site, run)
    results = run.results()
    outcome.attempts = results[-1].attempts if results else 0
    problems += checks.check_results(results, expected)
    if expected.logs not in run.merged():
        problems.append(f"the log of the gang must contain {expected.logs!r}")
    problems += checks.check_steps(run.events(), steps_again=expected.steps_again, succeeded=state == "succeeded")
    problems += checks.check_checkpoints(run)
    problems += checks.check_tracking(site, run, trial.spec.stem, state)
    if state == "succeeded":
        outcome.difference = checks.measure_difference(site, run)
        if outcome.difference > checks.TOLERANCE:
            problems.append(
                f"weights must be those of the undisturbed run. Received: they differ by {outcome.difference:.2g}"
            )
        problems += checks.check_evaluation(site, run)
