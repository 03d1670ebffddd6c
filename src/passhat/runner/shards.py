"""A part of a run for one of several machines that share nothing: ``--shard 3/8``.

A shard is a part of the tasks, each with all its attempts, so that what needs a whole task (the
order of attempts, passes in a row) is right in every shard already. Every shard writes the same run
under the same id, and `passhat store merge` joins them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from passhat.errors import InvalidValue
from passhat.suites.base import Task

__all__ = ["Shard"]


@dataclass(frozen=True, slots=True)
class Shard:
    """Number ``number``, from 1, of ``count`` parts."""

    number: int
    count: int

    @classmethod
    def of_text(cls, text: str) -> Shard:
        """Read ``3/8``."""
        match = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise InvalidValue(
                f"{text!r} is not a shard.", hint="Write NUMBER/COUNT from 1/8 to 8/8."
            )
        return cls(int(match[1]), int(match[2]))

    def of(self, tasks: Sequence[Task]) -> tuple[Task, ...]:
        """Every ``count``-th task: neighbours, which are often alike, go to different shards."""
        chosen = tuple(tasks[self.number - 1 :: self.count])
        if not chosen:
            raise InvalidValue(
                f"shard {self} has nothing to do: there are {len(tasks)} tasks.",
                hint=f"Use at most {len(tasks)} shards.",
            )
        return chosen

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"
