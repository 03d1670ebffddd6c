"""Addresses of databases: ``postgresql://user@host/database``."""

from __future__ import annotations

import re
from urllib.parse import unquote

__all__ = ["is_address", "is_well_formed", "without_password"]

_SCHEMES = ("postgresql://", "postgres://")
_LETTER = r"(?:[^:@/?#&%]|%(?!00)[0-9A-Fa-f]{2})"
_HOST = r"(?:[^:@/?#,\[\]]*|\[[^\]@/?#]*\])(?::\d*)?"
_VALUE = r"(?:[^&#%]|%(?!00)[0-9A-Fa-f]{2})*"
_PLAIN = re.compile(
    rf"(?P<scheme>\w+://)(?:(?P<user>{_LETTER}*)(?::(?:{_LETTER}|[:&])*)?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)(?P<database>/[^@?#/]*)?"
    rf"(?:\?(?P<query>[\w%]+={_VALUE}(?:&[\w%]+={_VALUE})*)?)?(?P<part>#\w*)?"
)
"""Only what is read in the same way by everybody: see :func:`is_well_formed`."""
_SECRET = re.compile(r"(?i)password|secret")


def is_address(place: str) -> bool:
    """Whether this names a database server rather than a file."""
    return place.startswith(_SCHEMES)


def is_well_formed(address: str) -> bool:
    """Whether it is clear where a password in it begins and ends.

    ``@ / ? # %`` in a password have to be written as ``%40 %2F %3F %23 %25``; otherwise parts of
    it would be taken for a host or the like, and be shown as such.
    """
    return _PLAIN.fullmatch(address) is not None


def without_password(address: str) -> str:
    """An address that may be shown; a path is shown as it is."""
    if not is_address(address):
        return address
    found = _PLAIN.fullmatch(address)
    if found is None:
        # Nobody knows what belongs to a password here: nothing of it is shown.
        return f"{address.partition('://')[0]}://..."
    user = "" if found["user"] is None else f"{found['user']}@"
    query = "&".join(_harmless(part) for part in (found["query"] or "").split("&"))
    shown = f"{found['scheme']}{user}{found['hosts']}{found['database'] or ''}"
    return f"{shown}{'?' if query else ''}{query}{found['part'] or ''}"


def _harmless(part: str) -> str:
    name, sign, _ = part.partition("=")
    return f"{name}{sign}..." if _SECRET.search(unquote(name)) else part
