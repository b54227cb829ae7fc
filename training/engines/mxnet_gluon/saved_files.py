"""What the folder of a saved Gluon model holds beside MLflow's own files."""

from __future__ import annotations

from pathlib import Path

#: Parameters by their names in the block.
WEIGHTS = "weights.safetensors"
#: How the block is made again: from a symbol, or by the user's code.
DESCRIPTION = "gluon.json"
#: The graph of its operations.
SYMBOL = "symbol.json"


def find_weights(folder: Path) -> Path:
    """Return the file with the parameters of a model that was saved in `folder`, wherever MLflow has put it.

    Raises:
        FileNotFoundError: There is none.
    """
    found = sorted(folder.rglob(WEIGHTS))
    if not found:
        raise FileNotFoundError(f"no {WEIGHTS} in {folder}")
    return found[0]
