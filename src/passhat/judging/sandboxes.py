"""Which sandbox this machine offers: the best that withstands the canaries, or a refusal."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from passhat.errors import SandboxUnavailable
from passhat.judging.sandbox_check import ATTACKS, breaches
from passhat.judging.commands import engine_problem
from passhat.judging.interpreters import Interpreter
from passhat.judging.sandbox import SandboxFault
from passhat.judging.sandbox_kinds import Container, SandboxKind, Walls

__all__ = ["Finding", "SandboxKind", "choose_sandbox", "examine_machine"]

_HINT = (
    "Install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap) and allow user namespaces "
    "(sysctl user.max_user_namespaces; on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0), "
    "or use Linux 5.13 or newer with Landlock. `passhat sandbox check` shows what is there. "
    "Only for programs you trust: --unsafe-no-sandbox."
)
_CONTAINER_HINT = (
    "The engine must run here, the image must hold Python 3.9 or newer and a libc with "
    "memfd_create, and the kernel must offer Landlock (Linux 5.13 or newer). Without an image: "
    "--sandbox auto uses bubblewrap or Landlock."
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one kind of sandbox on this machine.

    ``through`` are the attacks that were not held; ``problem`` is why it could not be tried.
    """

    kind: Walls
    through: tuple[str, ...] = ()
    problem: str = ""

    @property
    def holds(self) -> bool:
        return not self.problem and not self.through

    def __str__(self) -> str:
        if self.problem:
            return f"{self.kind}: not available ({self.problem})"
        if self.through:
            named = "; ".join(ATTACKS.get(attack, attack) for attack in self.through)
            return f"{self.kind}: NOT SAFE, a program could {named}"
        return f"{self.kind}: holds all {len(ATTACKS)} attacks of the self-test"

    def to_dict(self) -> dict[str, object]:
        return {
            "kind": str(self.kind),
            "holds": self.holds,
            "through": list(self.through),
            "problem": self.problem or None,
        }


def examine_machine(interpreter: Interpreter, kind: Walls) -> Finding:
    """Try one kind of sandbox with the self-test."""
    if kind is SandboxKind.BUBBLEWRAP and shutil.which("bwrap") is None:
        return Finding(kind, problem="the command bwrap is not installed")
    if isinstance(kind, Container) and (problem := engine_problem(kind)):
        return Finding(kind, problem=problem)
    try:
        return Finding(kind, tuple(breaches(kind, interpreter)))
    except SandboxFault as error:
        return Finding(kind, problem=str(error).strip().splitlines()[-1][:300])


def choose_sandbox(interpreter: Interpreter, only: Walls | None = None) -> Walls:
    """The first kind that withstands the self-test: bubblewrap, then Landlock.

    Raises
    ------
    SandboxUnavailable
        When none does. Comes before any program is run.
    """
    kinds: list[Walls] = [only] if only else [SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK]
    findings = []
    for kind in kinds:
        finding = examine_machine(interpreter, kind)
        if finding.holds:
            return kind
        findings.append(str(finding))
    raise SandboxUnavailable(
        f"no sandbox holds on this machine: {'; '.join(findings)}.",
        hint=_CONTAINER_HINT if isinstance(only, Container) else _HINT,
    )
