"""The secrets that the processes of one local Airflow share: made once, here, and readable by their owner only."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

#: Without the same values in all processes, every task fails with "Signature verification failed".
_NAMES = ("AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__API__SECRET_KEY", "AIRFLOW__CORE__FERNET_KEY")


def read_or_make_secrets(path: Path) -> dict[str, str]:
    """Return variable to secret from the file at `path`, which is written the first time with mode 0600."""
    try:
        secrets: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        secrets = {}
    if set(secrets) >= set(_NAMES):
        return secrets
    # A Fernet key is 32 bytes in URL-safe base64; that serves for the others, too.
    made = {name: base64.urlsafe_b64encode(os.urandom(32)).decode() for name in _NAMES}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        json.dump(made | secrets, stream)
    return made | secrets
