"""Tells uv which package registry this machine uses.

uv does not read pip's configuration, and most machines that have a mirror have it only there. Nothing of it is written
down: it passes by environment.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Mapping
from pathlib import Path

#: pip's setting to uv's variable.
_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
_UV_INDEXES = {"UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_CONFIG_FILE"}
#: pip takes the best version of all indexes; uv, left alone, stops at the first that knows the name. The hashes of the
#: locks make pip's rule safe.
_STRATEGY = {"UV_INDEX_STRATEGY": "unsafe-best-match"}


def parse_pip_config(text: str) -> dict[str, str]:
    """Return setting to value from the output of `pip config list`; `:env:` wins over files, `install` over `global`.

    >>> parse_pip_config("global.index-url='https://mirror.test/simple'")
    {'index-url': 'https://mirror.test/simple'}
    """
    values: dict[str, tuple[int, str]] = {}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        rank = {"global": 0, "install": 1, ":env:": 2}.get(section, -1)
        if rank >= values.get(name, (0, ""))[0]:
            values[name] = (rank, str(ast.literal_eval(value)))
    return {name: value for name, (_, value) in values.items()}


def choose_registry_variables(pip_config: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make uv use the registry that pip is configured for; none where uv has its own.

    >>> choose_registry_variables({"index-url": "https://mirror.test/simple"}, {})["UV_DEFAULT_INDEX"]
    'https://mirror.test/simple'
    >>> choose_registry_variables({"index-url": "https://mirror.test/simple"}, {"UV_INDEX_URL": "https://own.test"})
    {}
    """
    if _UV_INDEXES & set(environ):
        return {}
    found = {_NAMES[name]: " ".join(value.split()) for name, value in pip_config.items() if name in _NAMES}
    found = {name: value for name, value in found.items() if value and name not in environ}
    if "UV_FIND_LINKS" in found:
        found["UV_FIND_LINKS"] = found["UV_FIND_LINKS"].replace(" ", ",")
    return found | (_STRATEGY if "UV_INDEX" in found else {})


def read_registry_variables(python: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for uv from the pip configuration that `python` sees; none where it has no pip."""
    command = [str(python), "-m", "pip", "config", "list"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(environ))
    return choose_registry_variables(parse_pip_config(answer.stdout), environ) if answer.returncode == 0 else {}
