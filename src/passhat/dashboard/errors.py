"""What a page cannot show, and the number that says so to browsers and programs."""

from __future__ import annotations

from passhat.errors import PasshatError

__all__ = ["Forbidden", "NotFound"]


class NotFound(PasshatError):
    """There is no such run, task or attempt: 404."""


class Forbidden(PasshatError):
    """Not from here, or not without --allow-run: 403."""
