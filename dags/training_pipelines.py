"""Makes an Airflow DAG of every pipeline file: `dags/pipelines/*.yaml` and those in folders of $GANGER_PIPELINES."""

from airflow.sdk import get_parsing_context

from ganger.collection import build_dags
from training.settings import read_pipeline_dirs

globals().update(build_dags(read_pipeline_dirs(), wanted=get_parsing_context().dag_id))
