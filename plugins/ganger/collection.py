"""Makes DAGs of all pipeline files in some folders. No file can hide another one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from airflow.sdk import DAG

from ganger.broken import TAG, build_broken_dag
from ganger.dag_factory import build_dag
from training.errors import Problem, SpecError, spec_error
from training.spec.file import PipelineFile
from training.spec.loader import load_pipeline


def build_dags(folders: Iterable[Path], wanted: str | None = None) -> dict[str, DAG]:
    """Return a DAG for each `*.yaml` in `folders`, by DAG id; a file that is wrong gets one that says what is wrong.

    Of two files with the same `name` the first one (in the order of folders, then of file names) has the DAG.

    Args:
        folders: Where to look; not in their subfolders.
        wanted: The only DAG that is needed. A task needs its own DAG alone, and making all others first would delay it.
    """
    folders = tuple(folders)
    if wanted is not None:
        dags = _build([path for path in _find_files(folders) if _mentions(path, wanted)])
        if wanted in dags and TAG not in dags[wanted].tags:
            return {wanted: dags[wanted]}
    return _build(_find_files(folders))


def _find_files(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the files of each folder by name, and folders that do not exist as they are."""
    for folder in folders:
        yield from sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]) if folder.is_dir() else (folder,)


def _mentions(path: Path, name: str) -> bool:
    return path.is_file() and name.encode() in path.read_bytes()


def _build(paths: Iterable[Path]) -> dict[str, DAG]:
    dags: dict[str, DAG] = {}
    owners: dict[str, Path] = {}
    broken: dict[Path, list[Problem]] = {}
    for path in paths:
        try:
            dag = build_dag(_load(path, owners))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one file must not take the others along
            broken[path] = [replace(problem, file=problem.file or str(path)) for problem in _explain(error)]
        else:
            dags[dag.dag_id] = dag
    for path, problems in broken.items():
        dag_id = _choose_id(path, dags)
        dags[dag_id] = build_broken_dag(dag_id, str(path), problems)
    return dags


def _load(path: Path, owners: dict[str, Path]) -> PipelineFile:
    if not path.is_file():
        raise spec_error("", "must be a folder of pipeline files.", "Create it, or take it out of GANGER_PIPELINES.")
    file = load_pipeline(path)
    owner = owners.setdefault(file.spec.name, path)
    if owner != path:
        raise spec_error(
            "name",
            f"must be the name of one pipeline only. Received: {file.spec.name}, which {owner} has too.",
            "Rename one.",
        )
    return file


def _explain(error: Exception) -> tuple[Problem, ...]:
    if isinstance(error, SpecError):
        return error.problems
    return (Problem(field="", message=f"{type(error).__name__}: {error}"),)


def _choose_id(path: Path, taken: dict[str, DAG]) -> str:
    """Return the id that the DAG of a broken file gets: the file's stem, as long as no pipeline is called so."""
    dag_id = re.sub(r"[^A-Za-z0-9_.-]", "_", path.stem)
    if dag_id in taken:
        dag_id = re.sub(r"[^A-Za-z0-9_.-]", "_", path.name)
    while dag_id in taken:
        dag_id += "_"
    return dag_id
