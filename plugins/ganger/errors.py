"""Turns our errors into Airflow's, and writes what a person should read last. Only this module raises Airflow's."""

from __future__ import annotations

from typing import Any

import structlog
from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule
from airflow.sdk.exceptions import AirflowException

from training.errors import GangerError


class StepFailed(AirflowException):
    """A step failed, and another try would fail in the same way. Airflow retries it all the same where no policy says.

    Attributes:
        report: The whole story: headline, then the traceback or the last lines of the rank that failed first.
    """

    def __init__(self, headline: str, report: str) -> None:
        self.report = report
        super().__init__(headline)


class StepInterrupted(AirflowException):
    """A step failed for a reason that the next try may not meet. `report` as in `StepFailed`."""

    def __init__(self, headline: str, report: str) -> None:
        self.report = report
        super().__init__(headline)


#: What the step operators do about failures, by the same classes as the supervisor restarts gangs. It is not asked when
#: the task's process dies: then Airflow retries, and the next try joins the gang or resumes.
RETRY_POLICY = ExceptionRetryPolicy(
    rules=[
        RetryRule(StepFailed, RetryAction.FAIL, reason="another try would fail in the same way"),
        RetryRule(StepInterrupted, RetryAction.RETRY, reason="the next try may not meet this failure"),
    ]
)


def to_airflow(error: GangerError) -> StepFailed | StepInterrupted:
    """Return the Airflow exception that means the same as `error`: retried only if a retry makes sense."""
    report = f"{type(error).__name__}: {error}"
    headline = report.partition("\n")[0]
    return StepInterrupted(headline, report) if error.retryable else StepFailed(headline, report)


def report_failure(context: Any) -> None:
    """Log the story of a failed step; a failure and retry callback of every step.

    Airflow logs the exception with the frames of its own runner below the message. Callbacks run after that, so the log
    of the task ends with what the failing rank had to say.
    """
    error = context.get("exception")
    if isinstance(error, StepFailed | StepInterrupted):
        structlog.get_logger("ganger").error(error.report)
