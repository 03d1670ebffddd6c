"""The limits of a program that hold unless others are set, and those that are refused."""

from __future__ import annotations

import pytest

from passhat.errors import InvalidValue
from passhat.judging.sandbox_kinds import (
    Container,
    JudgeRules,
    ProgramLimits,
    SandboxKind,
    read_sandbox,
)


def test_the_limits_that_the_pages_state() -> None:
    """They are part of a run's protocol, and decide verdicts."""
    limits = ProgramLimits()
    assert (limits.cpu_seconds, limits.wall_seconds) == (5.0, 40.0)
    assert (limits.memory, limits.scratch, limits.output) == (2**30, 2**24, 2**22)
    assert ProgramLimits(cpu_seconds=10).wall_seconds == 60.0
    assert ProgramLimits(wall=7.0).wall_seconds == 7.0
    assert (limits.idle_seconds, ProgramLimits(wall=6.0).idle_seconds) == (7.0, 6.0)


@pytest.mark.parametrize("seconds", [0, -1.0, 3600.5, float("nan")])
def test_a_time_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidValue, match="must lie between 0 and 3600 seconds"):
        ProgramLimits(cpu_seconds=seconds)


def test_the_longest_time() -> None:
    assert ProgramLimits(cpu_seconds=3600).cpu_seconds == 3600


@pytest.mark.parametrize(
    ("word", "python", "expected"),
    [
        ("auto", None, None),
        ("bubblewrap", None, SandboxKind.BUBBLEWRAP),
        ("landlock", "python3.13", SandboxKind.LANDLOCK),
        ("docker:python:3.12-slim", None, Container("docker", "python:3.12-slim", "python3")),
        ("podman:img", "/usr/bin/python3", Container("podman", "img", "/usr/bin/python3")),
        ("docker", None, "--sandbox docker names no image."),
        ("docker:", None, "--sandbox docker: names no image."),
        ("podman: ", None, "--sandbox podman:  names no image."),
        ("podman:-x", None, "--sandbox podman:-x names no image."),
        ("none", None, "--sandbox 'none' is not a sandbox."),
        ("", None, "--sandbox '' is not a sandbox."),
        ("other:img", None, "--sandbox 'other:img' is not a sandbox."),
    ],
)
def test_a_sandbox_is_named_by_a_word(word: str, python: str | None, expected: object) -> None:
    if not isinstance(expected, str) or isinstance(expected, SandboxKind):
        assert read_sandbox(word, python) == expected
        return
    with pytest.raises(InvalidValue) as caught:
        read_sandbox(word, python)
    assert caught.value.message == expected


def test_the_programs_and_names_of_kinds() -> None:
    assert [kind.program for kind in SandboxKind] == ["bwrap", None, None]
    assert str(Container("docker", "a:b")) == "docker:a:b"


@pytest.mark.parametrize("judges", ["both", "plain", "split", "", "other"])
def test_judges_that_are_none_are_refused(judges: str) -> None:
    if judges in ("both", "plain", "split"):
        rules = JudgeRules(judges)
        assert (rules.judges, rules.strict, rules.allow_weak) == (judges, False, False)
        return
    with pytest.raises(InvalidValue) as caught:
        JudgeRules(judges)
    assert caught.value.message == f"{judges!r} is not a judge."
