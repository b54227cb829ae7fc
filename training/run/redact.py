"""Masks the values of secret environment variables in what ranks print, before it reaches a file (K18)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from training.run.event import Event, Failure, Heartbeat

_SECRET_NAME = re.compile(r"PASSWORD|PASSWD|SECRET|TOKEN|CREDENTIAL|PRIVATE|API_?KEY|ACCESS_?KEY|FERNET", re.IGNORECASE)
_PASSWORD_IN_URI = re.compile(r"://[^/@:\s]*:([^/@\s]+)@")
#: Shorter values are too likely to be ordinary words or numbers.
_SHORTEST = 6
MASK = "***"


class Redactor:
    """Replaces secrets in texts and bytes.

    >>> Redactor({"DB_PASSWORD": "s3cr3t-XYZ"}).text("password is s3cr3t-XYZ")
    'password is ***'
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        secrets = sorted(find_secrets(environ), key=len, reverse=True)
        pattern = "|".join(re.escape(secret) for secret in secrets)
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

    Paths are left out: a variable may well name the file that holds a secret.
    """
    named = {value for name, value in environ.items() if _SECRET_NAME.search(name) and not value.startswith(("/", "."))}
    in_uris = {found for value in environ.values() for found in _PASSWORD_IN_URI.findall(value)}
    return {secret for secret in named | in_uris if len(secret) >= _SHORTEST}
