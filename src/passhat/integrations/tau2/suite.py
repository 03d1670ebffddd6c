"""A domain of tau2-bench as a suite: its tasks, worlds and judge, in the user's checkout."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from passhat.errors import InvalidValue
from passhat.integrations.tau2.episode import Tau2Episode
from passhat.integrations.tau2.server import Server
from passhat.stats.outcomes import MissingReason
from passhat.suites.base import Settings, Suite, Task

__all__ = ["Tau2Suite"]

_EVALUATIONS = ("all", "env", "communicate", "action", "nl_assertions", "all_ignore_basis")
_MAX_STEPS = 200
"""tau2's own limit: messages of agent, user and tools together."""


class Tau2Suite(Suite):
    """tau2-bench in a checkout of yours: tau2:retail, or tau2:retail@env for one kind of check."""

    slow_reason = MissingReason.USER_ERROR
    """Whose delay it is when no turn comes: tools answer at once, a user may be a model."""

    takes_user = True
    """``--user`` is tau2's own business: its simulator is told the model's name."""

    max_steps = 100
    """Turns of the agent; tau2's own limit of 200 messages is never reached later."""

    def __init__(self, word: str) -> None:
        self.name = f"tau2:{word}"
        self._domain, _, evaluation = word.partition("@")
        self._evaluation = evaluation or "all"
        if not self._domain or self._evaluation not in _EVALUATIONS:
            raise InvalidValue(
                f"{self.name!r} is not a domain of tau2-bench.",
                hint="Name one as in tau2:retail, or tau2:retail@CHECK with CHECK one of "
                f"{', '.join(_EVALUATIONS)}.",
            )
        self._settings: Settings | None = None
        self._server: Server | None = None
        self.user_simulator = "scripted"

    def configure(self, settings: Settings) -> None:
        """Where the checkout is, which interpreter runs it, who plays the user."""
        self._settings = settings
        self.user_simulator = settings.user or "scripted"

    @cached_property
    def tasks(self) -> Sequence[Task]:
        return tuple(
            Task(one["id"], one["prompt"], MappingProxyType({"judge": one["judge"]}))
            for one in self._described["tasks"]
        )

    @cached_property
    def fingerprint(self) -> str:
        return str(self._described["fingerprint"])

    @cached_property
    def judge_fingerprint(self) -> str:
        return f"{self._evaluation}-{self._described['judge_fingerprint']}"

    async def episode(self, task: Task, seed: int) -> Tau2Episode:
        episode = Tau2Episode(await self._started().connect())
        try:
            await episode.begin(
                {
                    "domain": self._domain,
                    "task_id": task.id,
                    "seed": seed,
                    "user": self.user_simulator,
                    "evaluation": self._evaluation,
                    "max_steps": _MAX_STEPS,
                }
            )
        except BaseException:
            await episode.close()
            raise
        return episode

    async def close(self) -> None:
        """End the process in the checkout; the next attempt would start another."""
        if self._server is not None:
            self._server.close()
            self._server = None

    @cached_property
    def _described(self) -> dict[str, Any]:
        found: dict[str, Any] = self._started().ask({"describe": self._domain})["described"]
        return found

    def _started(self) -> Server:
        if self._server is None:
            settings = self._settings or Settings()
            checkout = _checkout(settings.tau2)
            python = settings.tau2_python or _python_of(checkout)
            self._server = Server(checkout, python)
        return self._server


def _checkout(path: str | None) -> Path:
    if path is None:
        raise InvalidValue(
            "tau2 suites run in a checkout of tau2-bench, and none is named.",
            hint="Name it with --tau2 PATH or the environment variable PASSHAT_TAU2. Get one with: "
            "git clone https://github.com/sierra-research/tau2-bench",
        )
    checkout = Path(path)
    if not any((checkout / part).is_dir() for part in ("src/tau2", "tau2")):
        raise InvalidValue(
            f"{path} is no checkout of tau2-bench: there is no folder src/tau2 in it.",
            hint="Name the folder that git clone made.",
        )
    return checkout.resolve()


def _python_of(checkout: Path) -> str:
    """The interpreter of the checkout's own environment, or the one that runs passhat."""
    own = checkout / ".venv" / "bin" / "python"
    return str(own) if os.access(own, os.X_OK) else sys.executable
