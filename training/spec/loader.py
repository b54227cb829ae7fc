"""From a YAML file, or a mapping written in Python, to a checked spec. The only way in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from training.errors import Problem, SpecError
from training.spec.document import Document, parse_document
from training.spec.file import PipelineFile
from training.spec.mistake import KeyPath, Mistake
from training.spec.overrides import apply_overrides, parse_overrides
from training.spec.pipeline import PipelineSpec
from training.spec.plain import read_plain
from training.spec.problems import MOST_MISTAKES, find_mistakes
from training.spec.rules import check_rules
from training.spec.text import read_spec_text
from training.spec.wording import show

__all__ = ["load_pipeline", "parse_overrides", "pipeline_from_mapping"]

_NOTHING: Final[Mapping[str, Any]] = {}


def load_pipeline(path: Path, overrides: Mapping[str, Any] = _NOTHING, origin: str = "--set") -> PipelineFile:
    """Load a pipeline file.

    Args:
        path: A YAML file; `docs/reference/spec.md` says what may stand in it.
        overrides: Values that replace those of the file, by dotted path: `{"train.epochs": 3}`; see `parse_overrides`.
        origin: What errors call the source of the overrides.

    Raises:
        SpecError: The file cannot be read or is wrong; holds every problem found, with its line.
    """
    document = parse_document(read_spec_text(path), str(path))
    spec = _check(document, overrides, origin)
    return PipelineFile(spec=spec, path=path, base_dir=path.absolute().parent)


def pipeline_from_mapping(
    mapping: Mapping[str, Any], base_dir: Path, overrides: Mapping[str, Any] = _NOTHING, origin: str = "--set"
) -> PipelineFile:
    """Check a spec that is written in Python, for a DAG made by hand.

    Args:
        mapping: The spec in YAML names. Tuples count as lists.
        base_dir: Folder that relative paths in the spec count from.
        overrides: Values that replace those of the mapping, by dotted path.
        origin: What errors call the source of the overrides.

    Raises:
        SpecError: The spec is wrong; holds every problem found.
    """
    value, mistakes = read_plain(mapping)
    document = Document(value=value, mistakes=tuple(mistakes))
    return PipelineFile(spec=_check(document, overrides, origin), base_dir=base_dir.absolute())


def _check(document: Document, overrides: Mapping[str, Any], origin: str) -> PipelineSpec:
    if not isinstance(document.value, dict):
        raise SpecError(_list_problems(document, [*document.mistakes, _refuse_root(document)]))
    document = apply_overrides(document, overrides, origin)
    unreadable = {mistake.path for mistake in document.mistakes if mistake.path}
    mistakes = [m for m in find_mistakes(document.value, PipelineSpec) if not _is_within(m.path, unreadable)]
    mistakes = [*document.mistakes, *mistakes]
    mistakes += check_rules(document.value, (mistake.path for mistake in mistakes))
    if mistakes:
        raise SpecError(_list_problems(document, mistakes))
    return PipelineSpec.model_validate(document.value, by_alias=True, by_name=False)


def _refuse_root(document: Document) -> Mistake:
    start = "Begin with `name:`, `data:`, `model:` and `train:`."
    if document.value is None:
        return Mistake(path=(), message="must describe a pipeline. Received: nothing.", remedy=start)
    message = f"must be a block of keys. Received: {show(document.value)}."
    return Mistake(path=(), message=message, remedy=start)


def _is_within(path: KeyPath, roots: set[KeyPath]) -> bool:
    """Tell whether `path` or a part of the document that holds it is one of `roots`."""
    return any(path[:length] in roots for length in range(len(path) + 1))


def _list_problems(document: Document, mistakes: Sequence[Mistake]) -> list[Problem]:
    """Return mistakes with their places, in the order of the file, overrides last."""
    problems = sorted(map(document.locate, mistakes), key=lambda problem: (problem.line == 0, problem.line))
    if len(problems) <= MOST_MISTAKES:
        return problems
    rest = Problem(field="", message="holds more mistakes than these.", file=document.file)
    return [*problems[:MOST_MISTAKES], rest]
