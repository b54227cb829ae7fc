"""When a pipeline's DAG runs."""

from __future__ import annotations

from airflow.sdk import Asset

from training.errors import spec_error
from training.spec.pipeline import PipelineSpec


def make_schedule(spec: PipelineSpec) -> str | list[Asset] | None:
    """Return what Airflow takes as the schedule of a DAG.

    Raises:
        SpecError: An asset's URI is not one that Airflow takes.
    """
    if spec.schedule is None or isinstance(spec.schedule, str):
        return spec.schedule
    assets = []
    for position, uri in enumerate(spec.schedule.assets):
        try:
            assets.append(Asset(uri))
        except ValueError as error:
            raise spec_error(
                f"schedule.assets[{position}]", f"must be the URI of an Airflow asset. Received: {uri!r} ({error})."
            ) from None
    return assets
