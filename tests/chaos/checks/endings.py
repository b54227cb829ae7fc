"""Did it end as its policy says, and does the result name what happened?"""

from __future__ import annotations

from tests.chaos.command import Ending
from tests.chaos.expectation import Expectation
from training.run.job import JobResult


def check_ending(ending: Ending, state: str) -> list[str]:
    """Check how a command ended."""
    if ending.state == state:
        return []
    return [f"the command must end as {state}. Received: {ending.state}, {ending.error[:400]!r}"]


def check_results(results: list[JobResult], expected: Expectation) -> list[str]:
    """Check what the results of the tries of the gang tell: error, rank, words and attempts."""
    if not results:
        return ["the job must have a result. Received: none"]
    problems = []
    if results[-1].attempts != expected.attempts:
        problems.append(f"there must have been {expected.attempts} attempts. Received: {results[-1].attempts}")
    told = _find_story(results, expected)
    named = f"rank {expected.rank} " if expected.rank is not None else ""
    if expected.says not in told or named not in told:
        problems.append(f"the result must tell {named + expected.says!r}. Received: {told!r}")
    failure = results[0].failure
    kind = failure.kind if failure is not None else ""
    if kind != expected.error:
        problems.append(f"the first try must end with {expected.error or 'no error'}. Received: {kind}: {told!r}")
    return problems


def _find_story(results: list[JobResult], expected: Expectation) -> str:
    """Return the sentence that tells of the fault: the headline of the first failure, else the notes on restarts."""
    failure = results[0].failure
    if expected.error and failure is not None:
        return f"{failure.name} {failure.message}"
    return "\n".join(note for result in results for note in result.notes)
