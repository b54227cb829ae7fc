"""What `model.initialize_from` names. Pure: nothing is looked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_RUN_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialModel:
    """A model to start from.

    Attributes:
        kind: `registry` (an address that begins with `models:/` or `runs:/`), `run` (an MLflow run id) or `path`.
        text: As the spec says it.
    """

    kind: Literal["registry", "run", "path"]
    text: str


def parse_initial_model(text: str) -> InitialModel:
    """Return what `text` names.

    >>> [parse_initial_model(text).kind for text in ("models:/digits@champion", "a" * 32, "old/model")]
    ['registry', 'run', 'path']
    """
    if text.startswith(("models:/", "runs:/")):
        return InitialModel(kind="registry", text=text)
    return InitialModel(kind="run" if _RUN_ID.fullmatch(text) else "path", text=text)
