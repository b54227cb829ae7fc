"""The JSON schema of a pipeline file, for editors, and the command that keeps it and the reference page up to date.

`python -m training.spec.schema --write` writes `docs/reference/`; without `--write` it prints the schema.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from training.settings import REPOSITORY
from training.spec.pipeline import PipelineSpec
from training.spec.reference import render_reference

SCHEMA_PATH: Final = Path("docs/reference/pipeline.schema.json")
REFERENCE_PATH: Final = Path("docs/reference/spec.md")


def pipeline_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a pipeline file, in YAML names, with a description for every key."""
    schema = PipelineSpec.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Ganger pipeline",
    }


def render_schema() -> str:
    """Return the schema as the text of its file."""
    return json.dumps(pipeline_schema(), indent=2, ensure_ascii=False) + "\n"


def write_reference(root: Path) -> list[Path]:
    """Write the schema and the reference page below `root`; return the files that were out of date."""
    changed = []
    for path, text in ((SCHEMA_PATH, render_schema()), (REFERENCE_PATH, render_reference(pipeline_schema()))):
        target = root / path
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the schema, or write the files made from the models."""
    parser = argparse.ArgumentParser(prog="python -m training.spec.schema", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {SCHEMA_PATH} and {REFERENCE_PATH}")
    if not parser.parse_args(arguments).write:
        print(render_schema(), end="")
        return
    changed = write_reference(REPOSITORY)
    print("\n".join(f"wrote {path}" for path in changed) or "both files were up to date")


if __name__ == "__main__":
    main()
