"""What a file of the user's imports, by its text: nothing of it is run."""

from __future__ import annotations

import ast
from pathlib import Path


def list_imports(path: Path) -> set[str]:
    """Return the dotted names of the modules that a file imports; what those import is not looked at.

    `from mxnet import gluon` counts as `mxnet.gluon`. Empty for text that is no Python.
    """
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError):
        return set()  # told where the file is checked
    found = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found
