"""Registers what Ganger adds to Airflow's own pages. Registration only: all else lives in the package `ganger`."""

from airflow.plugins_manager import AirflowPlugin

from ganger.links import MLflowRunLink


class GangerPlugin(AirflowPlugin):
    """What the webserver must know to show a Ganger task."""

    name = "ganger"
    operator_extra_links = [MLflowRunLink()]
