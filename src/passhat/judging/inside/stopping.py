"""Why a judgement cannot go on."""

from __future__ import annotations

__all__ = ["ProgramFailed", "Stopped", "Unsupported"]


class Stopped(BaseException):
    """The judgement cannot go on. Not an Exception: tests that catch everything must not."""


class Unsupported(Stopped):
    """The tests ask for something that cannot cross the border."""


class ProgramFailed(Stopped):
    """The program has gone, or broke the protocol."""

    def __init__(self, category: str, detail: str) -> None:
        super().__init__(category, detail)
        self.category, self.detail = category, detail
