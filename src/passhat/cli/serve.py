"""passhat serve"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.configuring import read_green_table, store_option
from passhat.cli.shared.exits import ExitCode

if TYPE_CHECKING:
    from passhat.dashboard.guard import Access
    from passhat.integrations.agentbeats.green_agent import GreenAgent, Settings


@click.command(
    "serve",
    cls=Command,
    examples=(
        "passhat serve",
        "passhat serve --port 0 --token SECRET",
    ),
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=9006, show_default=True, help="Port; 0 takes a free one.")
@click.option(
    "--card-url",
    metavar="URL",
    help="The address on the card, where it differs, as in http://evals:9006/.",
)
@click.option(
    "--launcher-port",
    type=int,
    metavar="PORT",
    help="Serve /reset, /status and /health there, as in 9007.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="HOST[:PORT]",
    help="Evaluate agents on this host, too, as in agents.local:9000; repeatable.",
)
@click.option(
    "--allow-suite",
    "suites",
    multiple=True,
    metavar="SUITE",
    help="Let requests name this suite, too, as in jsonl:tasks.jsonl; repeatable.",
)
@click.option(
    "--token",
    envvar="PASSHAT_TOKEN",
    metavar="TOKEN",
    help="Ask clients for this bearer token.  [default: with --host, one is made]",
)
@click.option("--public", is_flag=True, help="With --host: ask for no token; anyone may evaluate.")
@click.option(
    "--cap",
    "caps",
    multiple=True,
    metavar="NAME=NUMBER",
    help="Runs, attempts, seconds or bytes per hour and caller, as in attempts=50000.",
)
@click.option(
    "--max-evaluations",
    default=2,
    show_default=True,
    help="Evaluations at the same time; more wait.",
)
@click.option(
    "--config",
    "config_path",
    metavar="FILE",
    help="What requests that do not say it run: [pass_k_config] of a file, as in green.toml.",
)
@store_option
def command(
    host: str,
    port: int,
    card_url: str | None,
    launcher_port: int | None,
    hosts: tuple[str, ...],
    suites: tuple[str, ...],
    token: str | None,
    public: bool,
    caps: tuple[str, ...],
    max_evaluations: int,
    config_path: str | None,
    store_path: str,
) -> ExitCode:
    """Be a green agent: evaluate agents on request, over A2A.

    A request is one message: {"participants": {"agent": "http://..."}, "config": {"suite":
    "orderdesk/retail", "k": 4}}. Every attempt is streamed as a status update; the artifact
    "Result" holds a summary and the JSON report. AgentBeats' battle_start works as well.
    """
    import asyncio
    import secrets

    from passhat.errors import InvalidValue, MissingExtra
    from passhat.runner.redaction import Redactor

    if max_evaluations < 1:
        raise InvalidValue("--max-evaluations must be at least 1.")
    if public and token:
        raise InvalidValue("--public asks for no token, so that --token has no use.")
    try:
        from passhat.integrations.agentbeats.green_agent import GreenAgent, Settings
    except ImportError:
        raise MissingExtra("passhat serve", extra="a2a") from None
    from passhat.dashboard.guard import Access, is_loopback
    from passhat.integrations.agentbeats.assessments import Rules
    from passhat.integrations.agentbeats.strangers import Caps

    loopback = is_loopback(host)
    amounts = Caps.of(caps)
    settings = Settings(
        store_path=store_path,
        rules=Rules.with_hosts(
            hosts,
            suites,
            loopback=loopback,
            most_attempts=int(amounts.attempts),
            defaults={} if config_path is None else read_green_table(config_path),
        ),
        most_at_once=max_evaluations,
        caps=amounts,
        redact=Redactor(os.environ),
    )
    if not (token or public or loopback):
        token = secrets.token_urlsafe(24)
        click.echo(f"clients need this token: {token}", err=True)
    access = Access(host, token or "", _names(card_url))
    agent = GreenAgent(settings, lambda line: click.echo(line, err=True))
    if settings.rules.defaults:
        words = ", ".join(f"{name} {value}" for name, value in settings.rules.defaults.items())
        click.echo(f"requests that say nothing else run: {words}", err=True)
    asyncio.run(_serve(agent, settings, access, port, launcher_port, card_url))
    return ExitCode.OK


def _names(card_url: str | None) -> list[str]:
    """Host names by which clients may call the server: this machine's, and that of its card."""
    import socket
    from urllib.parse import urlsplit

    from passhat.agents.a2a_wire import is_address
    from passhat.errors import InvalidValue

    if card_url is None:
        return [socket.gethostname()]
    if not is_address(card_url):
        raise InvalidValue(
            f"--card-url takes an address, not {card_url!r}.", hint="As in http://evaluator:9006/"
        )
    return [socket.gethostname(), str(urlsplit(card_url).hostname)]


async def _serve(
    agent: GreenAgent,
    settings: Settings,
    access: Access,
    port: int,
    launcher_port: int | None,
    card_url: str | None,
) -> None:
    """Listen until Ctrl-C."""
    import asyncio
    import signal
    import sys
    from contextlib import AsyncExitStack

    from passhat.dashboard.guard import is_loopback
    from passhat.integrations.agentbeats.a2a_server import green_application, launcher_application
    from passhat.runner.serving import Listening, open_socket

    stop_event = asyncio.Event()
    if sys.platform != "win32":
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop_event.set)
    async with AsyncExitStack() as doors:
        host = access.host
        sock = open_socket(host, port)
        url = f"http://{f'[{host}]' if ':' in host else host}:{sock.getsockname()[1]}/"
        app = green_application(agent, card_url or url, access)
        await doors.enter_async_context(Listening(app, sock))
        click.echo(f"passhat evaluates agents at {url}", err=True)
        if launcher_port is not None:
            launcher = launcher_application(agent, settings.rules, access)
            listening = Listening(launcher, open_socket(host, launcher_port))
            await doors.enter_async_context(listening)
            click.echo(f"launcher at {listening.url}", err=True)
        if not (access.token or is_loopback(host)):
            click.echo("note: anyone who reaches this port may start evaluations", err=True)
        await stop_event.wait()
        agent.stop_all()
