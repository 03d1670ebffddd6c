"""passhat battle"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.exits import ExitCode

if TYPE_CHECKING:
    from passhat.integrations.agentbeats.assessments import GreenReply
    from passhat.integrations.agentbeats.scenarios import Scenario


@click.command(
    "battle",
    cls=Command,
    examples=(
        "passhat battle scenario.toml",
        "passhat battle scenario.toml -o result.json",
    ),
)
@click.argument("scenario", required=False, metavar="[SCENARIO.toml]")
@click.option(
    "--backend",
    metavar="URL",
    help="An AgentBeats backend of version 1, as in http://localhost:9000.",
)
@click.option("--green", metavar="ID", help="The green agent's id there, as in a1b2.")
@click.option(
    "--opponent",
    "opponents",
    multiple=True,
    metavar="NAME=ID",
    help="Agent to evaluate, as in agent=c3d4; repeatable.",
)
@click.option(
    "--token", envvar="PASSHAT_TOKEN", metavar="TOKEN", help="Bearer token to send, as in s3cr3t."
)
@click.option("--wait", default=30.0, show_default=True, help="Seconds for agents to start.")
@click.option("--timeout", default=3600.0, show_default=True, help="Seconds for the whole battle.")
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="Where the result is kept.  [default: .passhat/battles/NAME-TIME.json]",
)
def command(
    scenario: str | None,
    backend: str | None,
    green: str | None,
    opponents: tuple[str, ...],
    token: str | None,
    wait: float,
    timeout: float,
    output: str | None,
) -> ExitCode:
    """Run an AgentBeats battle and follow it to its result.

    With SCENARIO.toml (version 2): start its agents, send the request to its green agent, keep the
    result, stop the agents. With --backend, --green and --opponent (version 1): create a
    battle there and follow it.
    """
    from passhat.errors import InvalidValue, MissingExtra

    try:
        import a2a.client  # noqa: F401 - the extra is there, or the user learns it now
    except ImportError:
        raise MissingExtra("passhat battle", extra="a2a") from None
    if (scenario is None) == (backend is None):
        raise InvalidValue(
            "a battle needs either a scenario file or --backend.",
            hint="As in: passhat battle scenario.toml",
        )
    if scenario is not None:
        return _play(scenario, wait, timeout, token, output)
    if not green or not opponents:
        raise InvalidValue("--backend needs --green ID and at least one --opponent NAME=ID.")
    return _create_and_follow(
        str(backend), green, _name_opponents(opponents), timeout, token, output
    )


def _play(
    path: str, wait: float, timeout: float, token: str | None, output: str | None
) -> ExitCode:
    import asyncio

    from passhat.errors import InvalidValue, MissingExtra

    try:
        from passhat.integrations.agentbeats.scenarios import play, read_scenario
    except ImportError:
        raise MissingExtra("passhat battle", extra="a2a") from None
    scenario = read_scenario(path)

    async def whole() -> GreenReply:
        async with asyncio.timeout(timeout):
            return await play(scenario, _say, wait_seconds=wait, token=token)

    try:
        reply = asyncio.run(whole())
    except TimeoutError:
        raise InvalidValue(
            f"the battle was not finished after {timeout:g} s.",
            hint="Wait longer with --timeout.",
        ) from None
    for text in reply.texts:
        click.echo(text)
    if reply.data or reply.completed:  # also where the green agent was stopped in the middle
        _write_result(_result(scenario, reply), path, output)
    if not reply.completed:
        raise InvalidValue(f"the green agent ended as {reply.state or 'nothing'}: {reply.said}")
    return ExitCode.OK


def _result(scenario: Scenario, reply: GreenReply) -> dict[str, object]:
    return {**scenario.request(), "results": reply.data, "texts": reply.texts}


def _create_and_follow(
    backend: str,
    green: str,
    opponents: dict[str, str],
    timeout: float,
    token: str | None,
    output: str | None,
) -> ExitCode:
    import asyncio

    from passhat.errors import InvalidValue, MissingExtra

    try:
        from passhat.integrations.agentbeats.battles import fight
    except ImportError:
        raise MissingExtra("passhat battle", extra="a2a") from None
    battle = asyncio.run(fight(backend, green, opponents, _say, timeout=timeout, token=token))
    result: Any = battle.get("result")
    if battle.get("state") == "error" or not isinstance(result, dict):
        raise InvalidValue(
            f"the battle ended without a result: {battle.get('error') or 'no reason'}."
        )
    if result.get("message"):
        click.echo(result["message"])
    click.echo(f"winner: {result.get('winner') or 'none named'}")
    _write_result(dict(battle), f"battle-{battle.get('battle_id', '')}", output)
    if not result.get("detail"):  # a result of the backend's own, when its time was over
        raise InvalidValue(
            "the battle ended without a report of the green agent: the backend ended it itself.",
            hint="It may have a time limit: ask for fewer tasks or attempts. The history of the "
            "battle is in the file above.",
        )
    return ExitCode.OK


def _name_opponents(opponents: Sequence[str]) -> dict[str, str]:
    from passhat.errors import InvalidValue

    urls = {}
    for word in opponents:
        name, sign, url = word.partition("=")
        if not sign or not name or not url:
            raise InvalidValue(f"--opponent takes NAME=ID, not {word!r}.")
        urls[name] = url
    return urls


def _write_result(data: dict[str, object], source: str, output: str | None) -> None:
    import json
    from datetime import UTC, datetime
    from pathlib import Path

    from passhat.cli.shared.outputs import write_text
    from passhat.store import private_folder

    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    path = Path(output or f".passhat/battles/{Path(source).stem}-{now}.json")
    try:
        private_folder(path.parent)
    except OSError as error:
        raise click.ClickException(f"{path.parent} cannot be made: {error.strerror}.") from None
    write_text(str(path), json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def _say(line: str) -> None:
    click.echo(line, err=True)
