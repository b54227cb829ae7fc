"""The checks and the table, on values."""

from tests.chaos.checks import check_ending, check_results, check_steps
from tests.chaos.command import Ending
from tests.chaos.drawing import draw_faults
from tests.chaos.expectation import expect
from tests.chaos.fault import Fault, Kind, Moment, Stage
from tests.chaos.play import Outcome
from tests.chaos.stopwatch import Timing
from tests.chaos.table import find_broken_limits, render_summary, render_table
from training.run.event import Checkpoint, Ready, Step
from training.run.job import FailureHeadline, JobResult, JobState

KILLED = Fault(number=1, kind=Kind.RANK_KILLED, rank=1, moment=Moment(Stage.STEP, 30))
NOTE = "attempt 1: rank 1 (worker) on 127.0.0.1 failed at step 30: killed by SIGKILL; signal: restart 1 of 2"


def outcome(fault=KILLED, noticed_s=0.02, gone_s=0.8, **more):
    timings = (Timing(noticed_s=noticed_s, gone_s=gone_s),)
    row = Outcome(
        fault=fault, expectation=expect(fault), ended=["succeeded"], attempts=2, timings=timings, seconds=51.4
    )
    for name, value in more.items():
        setattr(row, name, value)
    return row


def result(state=JobState.SUCCEEDED, attempts=2, notes=(NOTE,), failure=None):
    return JobResult(state=state, started_at=0, ended_at=1, attempts=attempts, notes=notes, failure=failure)


def attempt(steps, checkpoints):
    events = [Ready(rank=0, pid=1), *(Step(rank=0, step=step, epoch=1) for step in steps)]
    return events + [Checkpoint(rank=0, step=step, path="x") for step in checkpoints]


def test_a_row_a_fault_and_what_did_not_hold_below():
    rows = [outcome(difference=0.0), outcome(problems=["a process is left"])]
    lines = render_table(rows).splitlines()

    assert lines[0].startswith("| # | fault | rank | when | ended |")
    assert lines[2] == "| 1 | rank killed | 1 | step 30 | succeeded | 2 | 0.02 | 0.80 | 0 | 51 | yes |"
    assert lines[3].endswith("| NO |")
    assert lines[-1] == "- 1: a process is left"


def test_every_fault_of_a_drawing_has_a_row():
    rows = [outcome(fault) for fault in draw_faults(7, 40)]

    assert len(render_table(rows).splitlines()) == 42


def test_the_summary_counts_and_gives_the_figures():
    rows = [outcome(difference=2e-6), outcome(noticed_s=0.5, gone_s=3.0), outcome(problems=["x"], timings=())]
    summary = render_summary([*rows, outcome(left_out="no tmpfs", timings=())])

    assert "3 faults: 2 trainings ended as their policy says, 1 did not; 1 faults were left out" in summary
    assert "1 trainings succeeded, largest difference to the undisturbed run 2e-06" in summary
    assert "killed rank noticed: median 0.26 s, longest 0.50 s of 2 kills" in summary
    assert "gang gone after a kill: median 1.90 s, longest 3.00 s of 2 kills" in summary


def test_figures_over_the_limits_are_told():
    assert find_broken_limits([outcome()]) == []
    assert "noticed in 2 s" in find_broken_limits([outcome(noticed_s=2.0)])[0]
    assert "gone in 10 s" in find_broken_limits([outcome(gone_s=10.5)])[0]
    assert "was not seen to end" in find_broken_limits([outcome(gone_s=None)])[0]


def test_an_ending_that_the_policy_does_not_say_is_told():
    ending = Ending(state="failed", error="rank 1 failed", said="")

    assert check_ending(ending, "failed") == []
    assert "must end as succeeded. Received: failed" in check_ending(ending, "succeeded")[0]


def test_a_restart_must_be_told_with_its_rank_and_reason():
    expected = expect(KILLED)

    assert check_results([result()], expected) == []
    assert check_results([result(notes=(NOTE.replace("rank 1 ", "rank 0 "),))], expected)
    assert check_results([result(notes=(NOTE.replace("SIGKILL", "SIGTERM"),))], expected)
    assert check_results([result(attempts=3)], expected)
    assert check_results([], expected)


def test_a_failure_must_be_the_one_that_was_done():
    expected = expect(Fault(number=1, kind=Kind.RANK_EXITS, rank=1, moment=Moment(Stage.STEP, 30)))
    headline = FailureHeadline(rank=1, name="rank 1 (worker)", kind="WorkerError", message="exit code 7")

    def check(**fields):
        failure = headline.model_copy(update=fields)
        return check_results([result(JobState.FAILED, 1, (), failure)], expected)

    assert check() == []
    assert check(name="rank 0 (worker)")
    assert check(kind="InfrastructureError")
    assert check(message="killed by SIGTERM")


def test_no_step_is_trained_twice_but_those_after_the_checkpoint():
    whole = attempt(range(1, 67), [5, 65, 66])
    first, rest = attempt(range(1, 33), [25, 30]), attempt(range(31, 67), [35, 66])

    def check(events, **options):
        return check_steps(events, **{"steps_again": False, "succeeded": True, **options})

    assert check(whole) == check(first + rest) == []
    assert "no step of before may be trained again" in check(first + attempt(range(28, 67), [66]))[0]
    assert "left out" in check(first + attempt(range(45, 67), [66]))[0]
    assert check(first + attempt(range(1, 67), [66]), steps_again=True) == []
    assert "must end with step 66" in check(first)[0]
    assert check(first, succeeded=False) == []
    assert "must rise" in check(attempt([1, 2, 2], []), succeeded=False)[0]
