"""Addresses of databases: ``postgresql://user@host/database``."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

__all__ = ["is_address", "without_password"]

_SCHEMES = ("postgresql://", "postgres://")
_SECRET = re.compile(r"(?i)(password|sslpassword)=[^&\s]*")


def is_address(place: str) -> bool:
    """Whether this names a database server rather than a file."""
    return place.startswith(_SCHEMES)


def without_password(address: str) -> str:
    """An address that may be shown."""
    parts = urlsplit(address)
    user, sign, host = parts.netloc.rpartition("@")
    shown = user.partition(":")[0] + sign + host
    return urlunsplit(parts._replace(netloc=shown, query=_SECRET.sub(r"\1=...", parts.query)))
