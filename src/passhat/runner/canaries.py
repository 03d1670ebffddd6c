"""References by which a leak between attempts is found out."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

__all__ = ["Canary"]

_TOKEN = re.compile(r"\bref-[0-9a-f]{12}\b")


class Canary:
    """The references of a run, by which leaks between attempts are detected.

    They are derived from a key, so that a run that is resumed later has the same ones; to an agent
    they are random.

    Parameters
    ----------
    key : str
        The key that the run's references are derived from: its id and seed.
    tasks : sequence of str
        Ids of the tasks.
    attempts : int
        Attempts planned for every task.
    """

    def __init__(self, key: str, tasks: Sequence[str], attempts: int) -> None:
        self._key = hashlib.sha256(key.encode()).digest()
        self._tasks = tasks
        self._attempts = attempts

    def token(self, task: str, number: int) -> str:
        """The reference of an attempt."""
        text = f"{task}#{number}".encode()
        return "ref-" + hashlib.blake2b(text, key=self._key, digest_size=6).hexdigest()

    def stray(self, answer: str, task: str, number: int) -> str:
        """The id of another attempt whose reference is in the answer; empty when there is none."""
        if "ref-" not in answer:
            return ""
        tokens = set(_TOKEN.findall(answer)) - {self.token(task, number)}
        if not tokens:
            return ""
        # Rare, so all references are made again rather than kept.
        return next((name for token, name in self._all() if token in tokens), "")

    def _all(self) -> Iterator[tuple[str, str]]:
        for task in self._tasks:
            for number in range(1, self._attempts + 1):
                yield self.token(task, number), f"{task}#{number}"
