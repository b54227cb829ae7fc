"""Masks the values of secret environment variables in what ranks print, before it reaches a file (K18)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from training.run.event import Event, Failure, Heartbeat

#: Parts of names that are telling anywhere (PGPASSWORD, MYAPIKEY), and words that are so on their own only.
_SECRET_NAME = re.compile(
    r"PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIAL|PRIVATE|API_?KEY|ACCESS_?KEY|FERNET"
    r"|(?<![^\W_])(PASS|PWD|KEYS?|AUTH)(?![^\W_])",
    re.IGNORECASE,
)
_HARMLESS_NAME = re.compile(
    r"(OLD)?PWD|TOKENIZERS_\w+|GIT_CONFIG_KEY_\d+|\w*_SOCK|\w*AUTH_(MANAGER|BACKENDS?|METHOD|MODE|TYPE)", re.IGNORECASE
)
_NAME_OF_PATH = re.compile(r"\w*_(DIR|FILE|HOME|PATH)", re.IGNORECASE)
_PASSWORD_IN_URI = re.compile(r"://[^/@:\s]*:([^/@\s]+)@")
#: Shorter values are too likely to be ordinary words or numbers.
_SHORTEST = 4
#: Shorter values are masked as whole words only, and not at all if they are numbers.
_SHORTEST_WITHIN_WORDS = 6
_ORDINARY = frozenset(
    [
        "auto",
        "basic",
        "bearer",
        "default",
        "disabled",
        "enabled",
        "false",
        "none",
        "null",
        "off",
        "optional",
        "required",
        "token",
        "true",
        "yes",
    ]
)
MASK = "***"


class Redactor:
    """Replaces secrets in texts and bytes.

    >>> Redactor({"DB_PASSWORD": "s3cr3t-XYZ"}).text("password is s3cr3t-XYZ")
    'password is ***'
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        secrets = sorted(find_secrets(environ), key=len, reverse=True)
        pattern = "|".join(_render_pattern(secret) for secret in secrets)
        self._text = re.compile(pattern) if secrets else None
        self._bytes = re.compile(pattern.encode(errors="surrogateescape")) if secrets else None

    def text(self, text: str) -> str:
        """Return `text` with secrets masked."""
        return self._text.sub(MASK, text) if self._text else text

    def bytes(self, data: bytes) -> bytes:
        """Return `data` with secrets masked."""
        return self._bytes.sub(MASK.encode(), data) if self._bytes else data

    def event(self, event: Event) -> Event:
        """Return `event` with secrets masked in what a rank tells in its own words."""
        if isinstance(event, Failure):
            masked = {"message": self.text(event.message), "traceback": self.text(event.traceback)}
            return event.model_copy(update=masked)
        if isinstance(event, Heartbeat):
            return event.model_copy(update={"doing": self.text(event.doing)})
        return event


def find_secrets(environ: Mapping[str, str]) -> set[str]:
    """Return the values that must not be written anywhere: by the names of their variables, and passwords in addresses.

    Output is masked line by line, so the lines of a longer secret (a private key) are secrets, each. Paths are left
    out: a variable may well name the file that holds a secret.
    """
    named = [value for name, value in environ.items() if _is_named_secret(name, value)]
    lines = [line.strip() for value in named for line in value.splitlines()]
    in_uris = [found for value in environ.values() for found in _PASSWORD_IN_URI.findall(value)]
    return {secret for secret in (*named, *lines, *in_uris) if _is_telling(secret)}


def _is_named_secret(name: str, value: str) -> bool:
    if not _SECRET_NAME.search(name) or _HARMLESS_NAME.fullmatch(name):
        return False
    if not value.startswith(("/", ".", "~")):
        return True
    return not _NAME_OF_PATH.fullmatch(name) and not _is_path(value)


def _is_path(value: str) -> bool:
    try:
        return Path(value).expanduser().exists()
    except (OSError, RuntimeError):  # too long for one, or of a user that there is not
        return False


def _is_telling(secret: str) -> bool:
    if len(secret) < _SHORTEST or secret.lower() in _ORDINARY:
        return False
    return len(secret) >= _SHORTEST_WITHIN_WORDS or not secret.isdecimal()


def _render_pattern(secret: str) -> str:
    pattern = re.escape(secret)
    return pattern if len(secret) >= _SHORTEST_WITHIN_WORDS else rf"(?<![A-Za-z0-9]){pattern}(?![A-Za-z0-9])"
