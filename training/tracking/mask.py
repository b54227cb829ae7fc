"""Keeps passwords of tracking addresses out of files, logs and tags, and brings them back where a connection is made.

A stored address may hold a user name, never a password. MLflow itself puts the whole address into its error messages,
so that everything it says is masked too. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit

from training import settings

USERNAME = "MLFLOW_TRACKING_USERNAME"
PASSWORD = "MLFLOW_TRACKING_PASSWORD"

# Begins at `://`, so that a log of megabytes without an address is passed over quickly.
_USERINFO = re.compile(r"(?<=://)(?P<user>[^\s/?#:@]*):(?P<password>[^\s/?#]*)@")
_QUERY = re.compile(r"(?P<key>[?&](?:password|passwd|token|secret|access_key|api_key)=)[^&\s#]+", re.IGNORECASE)


def mask_uri(uri: str) -> str:
    """Return `uri` without its password; a user name stays.

    >>> mask_uri("https://ada:s3cr3t-XYZ@tracking.example:5000/x")
    'https://ada@tracking.example:5000/x'
    >>> mask_uri("sqlite:////data/mlflow.db")
    'sqlite:////data/mlflow.db'
    """
    without = _USERINFO.sub(lambda found: f"{found['user']}@" if found["user"] else "", uri)
    return _QUERY.sub(lambda found: f"{found['key']}***", without)


def mask_text(text: str, environ: Mapping[str, str] | None = None) -> str:
    """Return `text` without passwords of addresses and, where `environ` is given, without MLflow's password.

    >>> mask_text("API request to http://ada:s3cr3t-XYZ@host/api failed", {})
    'API request to http://ada@host/api failed'
    """
    masked = mask_uri(text)
    for name in (PASSWORD, "MLFLOW_TRACKING_TOKEN"):
        secret = (environ or {}).get(name, "")
        masked = masked.replace(secret, "***") if secret else masked
    return masked


def restore_uri(uri: str, environ: Mapping[str, str]) -> str:
    """Return the address to connect to for a stored, masked `uri`.

    Where `$MLFLOW_TRACKING_URI` is the same address with its password, that one is returned.
    """
    complete = environ.get(settings.TRACKING_URI, "")
    return complete if complete and mask_uri(complete) == mask_uri(uri) else uri


def split_credentials(uri: str) -> tuple[str, dict[str, str]]:
    """Return an HTTP address without user and password, and the variables in which MLflow reads them.

    Other addresses (databases) are returned as they are: their drivers read user and password from the address.

    >>> split_credentials("http://ada:pa%40ss@host:5000/")
    ('http://host:5000/', {'MLFLOW_TRACKING_USERNAME': 'ada', 'MLFLOW_TRACKING_PASSWORD': 'pa@ss'})
    """
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https") or "@" not in parts.netloc:
        return uri, {}
    userinfo, _, host = parts.netloc.rpartition("@")
    user, _, password = userinfo.partition(":")
    env = {USERNAME: unquote(user), PASSWORD: unquote(password)}
    bare = SplitResult(parts.scheme, host, parts.path, parts.query, parts.fragment).geturl()
    return bare, {name: value for name, value in env.items() if value}
