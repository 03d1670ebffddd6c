"""What a user chose about judging, and the bench that comes of it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from passhat.errors import InvalidValue
from passhat.judging.bulk import Bench
from passhat.judging.interpreters import find_interpreter
from passhat.judging.limits import Limits
from passhat.judging.sandbox_kinds import Container, SandboxKind, read_walls
from passhat.judging.sandboxes import choose_sandbox
from passhat.judging.tasks import CodeSuite

__all__ = ["JudgingChoice"]


@dataclass(frozen=True, slots=True)
class JudgingChoice:
    """Walls, interpreter, packages and limits for generated programs.

    Parameters
    ----------
    sandbox : str
        ``auto``, ``bubblewrap``, ``landlock``, ``docker:IMAGE`` or ``podman:IMAGE``.
    python : str, optional
        The interpreter; in a container, its path there.
    packages : tuple of str
        Installed packages that programs may import.
    unsafe : bool
        No sandbox at all.
    jobs : int, optional
        Workers; one per processor unless given.
    """

    sandbox: str = "auto"
    python: str | None = None
    packages: tuple[str, ...] = ()
    unsafe: bool = False
    limits: Limits = field(default_factory=Limits)
    jobs: int | None = None

    def bench(self, suite: CodeSuite) -> Bench:
        """Choose the walls. Refuses, before anything is run, when there are none.

        Raises
        ------
        SandboxUnavailable
            When no sandbox, or not the one that was named, withstands the self-test.
        """
        only = read_walls(self.sandbox, self.python)
        contained = isinstance(only, Container)
        if contained and self.packages:
            raise InvalidValue(
                f"--with does not go with --sandbox {self.sandbox}: packages come with the image.",
                hint="Name an image in which they are installed.",
            )
        interpreter = find_interpreter(None if contained else self.python, self.packages)
        kind = SandboxKind.NONE if self.unsafe else choose_sandbox(interpreter, only)
        return Bench(suite, kind, interpreter, self.limits, self.jobs or os.cpu_count() or 1)
