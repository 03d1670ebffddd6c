"""passhat sandbox"""

from __future__ import annotations

import click

from passhat.cli.shared.commands import Group
from passhat.cli.shared.exits import ExitCode


@click.group("sandbox", cls=Group)
def command() -> None:
    """Show which sandboxes isolate generated programs on this machine."""


@command.command(
    "check",
    examples=(
        "passhat sandbox check",
        "passhat sandbox check --json",
    ),
)
@click.option(
    "--python",
    metavar="PATH",
    help="Check for this Python, with its packages, as in .venv/bin/python.",
)
@click.option(
    "--with", "packages", multiple=True, metavar="PACKAGE", help="Grant this package, as in numpy."
)
@click.option("--sandbox", metavar="KIND", help="Only this one, as in landlock or docker:IMAGE.")
@click.option("--json", "as_json_text", is_flag=True, help="Print JSON and nothing else.")
def check(
    python: str | None, packages: tuple[str, ...], sandbox: str | None, as_json_text: bool
) -> ExitCode:
    """Try every kind of sandbox with attacks of our own; exit code 2 when none holds."""
    from passhat._serialize import as_json
    from passhat.judging.interpreters import find_interpreter
    from passhat.judging.sandbox_check import ATTACKS, examine_machine
    from passhat.judging.sandbox_kinds import TRIED, Container, SandboxSpec, read_sandbox

    only = read_sandbox(sandbox or "auto", python)
    in_container = isinstance(only, Container)
    interpreter = find_interpreter(None if in_container else python, packages)
    kinds: tuple[SandboxSpec, ...] = TRIED if only is None else (only,)
    findings = [examine_machine(interpreter, kind) for kind in kinds]
    best = next((finding for finding in findings if finding.holds), None)
    if as_json_text:
        data = {
            "use": None if best is None else str(best.kind),
            "attacks": list(ATTACKS),
            "sandboxes": findings,
        }
        click.echo(as_json(data), nl=False)
    else:
        click.echo(f"tried: {', '.join(ATTACKS.values())}")
        for finding in findings:
            click.echo(f"{'✓' if finding.holds else '✗'} {finding}")
        click.echo(f"passhat judge uses {best.kind}" if best else "passhat judge refuses to run")
    return ExitCode.OK if best else ExitCode.USAGE
