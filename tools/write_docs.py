"""Write the generated parts of the documentation: the command reference and the report's picture.

make docs
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from passhat.cli.main import COMMANDS, cli
from passhat.readers import read
from passhat.report.build import ReportOptions, build_report
from passhat.report.terminal import render_report

DOCS = Path(__file__).parent.parent / "docs"
PICTURE = DOCS / "images" / "report.svg"
WIDTH = 100


def command_reference() -> str:
    """Every command with its help, as click prints it."""
    parts = [
        "# The command line",
        "",
        "Every command prints its own page with `--help`. This page is made from those by "
        "`make docs`.",
        "",
    ]
    for name in COMMANDS:
        context = click.Context(cli, info_name="passhat", **cli.context_settings)
        command = cli.get_command(context, name)
        if command is None:
            raise LookupError(name)
        parts += _help_of(command, name, context, "##")
    return "\n".join(parts)


def _help_of(command: click.Command, name: str, parent: click.Context, level: str) -> list[str]:
    """A command's page, and below it those of its sub-commands."""
    own = click.Context(command, info_name=name, parent=parent, terminal_width=WIDTH)
    parts = [f"{level} {own.command_path}", "", "```text", command.get_help(own), "```", ""]
    for sub in command.list_commands(own) if isinstance(command, click.Group) else ():
        found = command.get_command(own, sub) if isinstance(command, click.Group) else None
        if found is not None:
            parts += _help_of(found, sub, own, f"{level}#")
    return parts


def report_picture() -> str:
    """What `passhat report` shows for the example, as an SVG that needs nothing from elsewhere."""
    report = build_report(read("example:helpdesk")[:1], ReportOptions())
    screen = Console(width=WIDTH, record=True, force_terminal=True, file=io.StringIO())
    screen.print(Text.from_ansi(render_report(report, _colourful())))
    picture = screen.export_svg(title="passhat report example:helpdesk", unique_id="passhat")
    # Rich links a web font and its own site; the picture must not fetch anything.
    without_fonts = re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL)
    return re.sub(r"<!--.*?-->", "", without_fonts, flags=re.DOTALL)


def _colourful() -> Console:
    return Console(width=WIDTH, force_terminal=True, color_system="truecolor", file=io.StringIO())


def main() -> None:
    """Write both, and say what was written."""
    (DOCS / "cli.md").write_text(command_reference(), encoding="utf-8")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(report_picture(), encoding="utf-8")
    print("wrote docs/cli.md and docs/images/report.svg")


if __name__ == "__main__":
    main()
