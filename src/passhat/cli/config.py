"""passhat config"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from passhat.cli.run import command as run
from passhat.cli.shared.configuring import Configured, origins, same_options, unknown_settings
from passhat.cli.shared.exits import ExitCode

if TYPE_CHECKING:
    from rich.console import RenderableType

_HEADER = ("setting", "value", "from")


@click.pass_context
def _show(ctx: click.Context, /, as_json_text: bool, **_values: object) -> ExitCode:
    """Show every setting of passhat run, and where its value comes from.

    Takes the options of passhat run. A flag wins over the environment (PASSHAT_ and the name in
    capitals), that over the file (--config, else passhat.toml in this folder), that over the
    default.
    """

    from rich.console import Console

    from passhat._serialize import as_json
    from passhat.cli.shared.settings import Configuration
    from passhat.reporting.terminal import captured, plain, plain_table
    from passhat.runner.redaction import Redactor

    redact = Redactor(os.environ)
    settings = list(origins(ctx))
    configuration: Configuration = ctx.meta["config"]
    unknown = unknown_settings(ctx, os.environ)
    if as_json_text:
        data = {
            "file": configuration.path or None,
            "ignored": list(configuration.ignored),
            "unknown_variables": unknown,
            "settings": settings,
        }
        click.echo(redact(as_json(data)), nl=False)
        return ExitCode.OK
    rows = [
        [origin.key, redact(_word(origin.value)), f"{origin.source} {origin.where}".rstrip()]
        for origin in settings
    ]
    parts: list[RenderableType] = [plain_table(_HEADER, rows, left=(0, 1, 2))]
    if configuration.ignored:
        parts.append(plain(f"not passhat's: {', '.join(configuration.ignored)}"))
    if unknown:
        parts.append(plain(f"variables that are not a setting: {', '.join(unknown)}"))
    click.echo(captured(Console(), lambda: parts), nl=False)
    return ExitCode.OK


def _word(value: object) -> str:
    """Nothing set is a dash; a list is its members."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None or value == "" else str(value)


command = Configured(
    "config",
    callback=_show,
    help=_show.__doc__,
    params=[
        *same_options(run),
        click.Option(["--json", "as_json_text"], is_flag=True, help="Print JSON and nothing else."),
    ],
)
