"""Options about judging generated programs, the same for every command that does."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from passhat.judging.bench import JudgingChoice

__all__ = ["JudgingOptions", "judging_options"]

F = TypeVar("F", bound=Callable[..., Any])
_RULES = ("judges_choice", "strict", "allow_weak")
_NAMES = ("sandbox", "python", "packages", "unsafe", "cpu_seconds", "memory", *_RULES)


def judging_options(seconds: str, memory: str) -> Callable[[F], F]:
    """Options on sandbox, interpreter, limits and judges; the command gets them as ``choose``.

    ``seconds`` and ``memory`` are what the options for the limits are called: other commands have
    other limits besides. ``choose`` is a :class:`JudgingOptions`.
    """

    def decorated(function: F) -> F:
        @wraps(function)
        def with_choice(*arguments: Any, **options: Any) -> Any:
            chosen = {name: options.pop(name) for name in _NAMES}
            context = click.get_current_context()
            given = any(_is_given(context, name) for name in _NAMES)
            return function(*arguments, choose=JudgingOptions(chosen, given), **options)

        for option in reversed(_options(seconds, memory)):
            with_choice = option(with_choice)
        return cast("F", with_choice)

    return decorated


class JudgingOptions:
    """The judging options of a command; ``given`` is false when all have their defaults."""

    def __init__(self, chosen: dict[str, Any], given: bool) -> None:
        self.given = given
        self._chosen = chosen

    def __call__(self, jobs: int | None = None) -> JudgingChoice:
        """The choice; warns, loudly, when programs are to run without a sandbox."""
        from passhat.judging.bench import JudgingChoice
        from passhat.judging.sandbox_kinds import JudgeRules, ProgramLimits

        chosen = dict(self._chosen)
        limits = ProgramLimits(chosen.pop("cpu_seconds"), chosen.pop("memory") << 20)
        if chosen["unsafe"]:
            click.secho(
                "WARNING: no sandbox. The programs run with all your rights: files, network, "
                "secrets.",
                fg="red",
                bold=True,
                err=True,
            )
        rules = JudgeRules(*[chosen.pop(name) for name in _RULES])
        return JudgingChoice(**chosen, limits=limits, jobs=jobs, rules=rules)


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT


def _options(seconds: str, memory: str) -> list[Callable[[F], F]]:
    return [
        click.option(
            seconds,
            "cpu_seconds",
            type=float,
            default=5.0,
            show_default=True,
            metavar="SECONDS",
            help="Processor time for a generated program.",
        ),
        click.option(
            memory,
            "memory",
            type=click.IntRange(64),
            default=1024,
            show_default=True,
            metavar="MIB",
            help="Memory for a generated program.",
        ),
        click.option(
            "--python",
            metavar="PATH",
            help="Run programs on this Python, with its packages; in a container, its path there.",
        ),
        click.option(
            "--with",
            "packages",
            multiple=True,
            metavar="PACKAGE",
            help="Let programs import this installed package and what it needs, and no others; "
            "repeatable.",
        ),
        click.option(
            "--sandbox",
            metavar="KIND",
            default="auto",
            show_default=True,
            help="What keeps programs in: auto, bubblewrap, landlock, docker:IMAGE, podman:IMAGE.",
        ),
        click.option(
            "--judge",
            "judges_choice",
            type=click.Choice(("both", "plain", "split")),
            default="both",
            show_default=True,
            help="Judges: plain runs tests and program together, split keeps them apart, "
            "both requires a pass by each.",
        ),
        click.option(
            "--strict",
            is_flag=True,
            help="Count programs that only the plain judge could judge as missing, not passed.",
        ),
        click.option(
            "--allow-weak-sandbox",
            "allow_weak",
            is_flag=True,
            help="Use a sandbox that fails a part of its self-test. Only for programs you trust.",
        ),
        click.option(
            "--unsafe-no-sandbox",
            "unsafe",
            is_flag=True,
            help="Run programs with your own rights. Only for programs you trust.",
        ),
    ]
