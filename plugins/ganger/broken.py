"""Stands in for a pipeline file that cannot become a DAG, so that its owner sees in the UI what is wrong.

Airflow's own import errors will not do: one recorded for the loader file marks *all* DAGs of that file as broken
(`DagModel.has_import_errors`) and stops their schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from airflow.sdk import DAG, BaseOperator

from ganger.doc import render_problems
from ganger.errors import RETRY_POLICY, report_failure, to_airflow
from training.errors import Problem, SpecError

TAG = "broken spec"


class BrokenSpecOperator(BaseOperator):
    """Fails with the problems of the file."""

    ui_color = "#f4c7c3"

    def __init__(self, *, problems: Sequence[Problem], **kwargs: Any) -> None:
        super().__init__(retry_policy=RETRY_POLICY, **kwargs)
        self.problems = tuple(problems)
        self.on_failure_callback = [*self.on_failure_callback, report_failure]

    def execute(self, context: Any) -> NoReturn:
        """Raise the problems as an error that is not retried."""
        raise to_airflow(SpecError(self.problems)) from None


def build_broken_dag(dag_id: str, source: str, problems: Sequence[Problem]) -> DAG:
    """Return the DAG that stands for a broken file: not scheduled, and failing with the problems when triggered.

    Args:
        dag_id: Id of the DAG.
        source: Path of the file.
        problems: What is wrong with it; at least one.
    """
    dag = DAG(
        dag_id=dag_id,
        description=f"Broken: {problems[0]}",
        schedule=None,
        catchup=False,
        tags=["ganger", TAG],
        doc_md=render_problems(source, problems),
        auto_register=False,
    )
    BrokenSpecOperator(task_id="correct_the_file", problems=problems, dag=dag)
    return dag
