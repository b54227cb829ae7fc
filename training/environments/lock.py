"""Reads lock files (`requirements/*.txt`) and the metadata of installed packages; imports none of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

_PIN = re.compile(
    r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^\s;\\]+)(?:\s*;\s*(?P<marker>[^\\]*))?", re.MULTILINE
)


def normalise_name(name: str) -> str:
    """Return the name of a package as PEP 503 compares it.

    >>> normalise_name("Google_Auth.Lib")
    'google-auth-lib'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_pins(text: str) -> dict[str, str]:
    r"""Return package to version of a lock; lines with an environment marker are left out, since they may not apply.

    >>> parse_pins("uv==0.13.9 \\\n    --hash=sha256:aa\ncolorama==0.4 ; sys_platform == 'win32' \\\n")
    {'uv': '0.13.9'}
    """
    return {normalise_name(match[1]): match[2] for match in _PIN.finditer(text) if not match["marker"]}


def read_pins(files: Iterable[Path]) -> dict[str, str]:
    """Return package to version over several locks; a lock that does not exist pins nothing."""
    pins: dict[str, str] = {}
    for file in files:
        if file.exists():
            pins |= parse_pins(file.read_text(encoding="utf-8"))
    return pins


def digest_files(files: Iterable[Path]) -> str:
    """Return the SHA-256 over names and contents of `files`: changes when, and only when, one of them does."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0".encode())
        digest.update(file.read_bytes() if file.exists() else b"")
    return digest.hexdigest()


def read_versions(environment: Path) -> dict[str, str]:
    """Return package to version of what is installed in `environment`, from the names of its metadata folders."""
    versions = {}
    for info in environment.glob("lib/python3.*/site-packages/*.dist-info"):
        name, _, version = info.name.removesuffix(".dist-info").rpartition("-")
        versions[normalise_name(name)] = version
    return versions


def compare_versions(wanted: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Return a line for each package that is absent or has another version than `wanted`.

    >>> compare_versions({"numpy": "2.0.2", "keras": "3.15.1"}, {"numpy": "2.4.0"})
    ['keras: found none, wanted 3.15.1', 'numpy: found 2.4.0, wanted 2.0.2']
    """
    return [
        f"{name}: found {found.get(name, 'none')}, wanted {version}"
        for name, version in sorted(wanted.items())
        if found.get(name) != version
    ]
