"""The pages on gates, plans and stopping early: every command in them is one passhat accepts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from passhat.cli import gate, plan
from passhat.stats.gate import parse_rule

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("gates.md", "planning.md")
COMMANDS = {"gate": gate.command, "plan": plan.command}


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    for line in text.splitlines():
        if line.strip().startswith(("passhat gate ", "passhat plan ")):
            _, name, *arguments = shlex.split(line.strip())
            yield name, arguments


def check(name: str, arguments: list[str]) -> click.Context:
    context = COMMANDS[name].make_context(name, list(arguments))
    for rule in context.params.get("rules", ()):
        parse_rule(rule)
    return context


@pytest.mark.parametrize("page", PAGES)
def test_commands_on_the_pages_are_accepted(page: str) -> None:
    found = list(commands((DOCS / page).read_text(encoding="utf-8")))
    assert found
    for name, arguments in found:
        check(name, arguments)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_the_gate_and_the_plan_has_a_help_text(name: str) -> None:
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
