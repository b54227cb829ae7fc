"""The operators that take a cluster and give it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ganger.operators.base import StepOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from training.steps import StepContext


class ProvisionClusterOperator(StepOperator):
    """Checks that the run can work and takes what its gang will run on."""

    step = "provision_cluster"

    def run_step(self, ctx: StepContext, context: Context) -> dict[str, Any]:
        """Take the cluster; if that fails half-way, give back what was taken.

        Airflow skips a teardown whose setup failed (trigger rule `all_done_setup_success`), so it is done here.
        """
        from training import steps

        try:
            return super().run_step(ctx, context)
        except BaseException:
            steps.release_cluster(ctx.run)
            raise


class TeardownClusterOperator(StepOperator):
    """Ends what is left of the run, gives its cluster back and closes its MLflow run. Safe to repeat.

    Use it as a teardown, so that it runs whatever happened:
    `TeardownClusterOperator(...).as_teardown(setups=provision)`.
    """

    step = "teardown_cluster"
