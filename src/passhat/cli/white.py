"""passhat white"""

from __future__ import annotations

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.exits import ExitCode


@click.command(
    "white",
    cls=Command,
    examples=("passhat white demo:careful", "passhat white python:agent:answer --port 9211"),
)
@click.argument("agent")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=9210, show_default=True, help="Port; 0 takes a free one.")
@click.option(
    "--card-url", metavar="URL", help="The address on the card, as in http://agents:9210/."
)
@click.option(
    "--reply",
    type=click.Choice(["task", "message"]),
    default="task",
    show_default=True,
    help="Answer by tasks, or by messages for evaluators that take nothing else.",
)
@click.option(
    "--backend", default="", metavar="HOST", help="Host that may reset it, as in beats.local."
)
def command(
    agent: str, host: str, port: int, card_url: str | None, reply: str, backend: str
) -> ExitCode:
    """Be a white agent: put any agent behind an A2A endpoint, so that others can evaluate it.

    AGENT is a word as in passhat run -a. Every context id is a conversation of its own.
    """
    import asyncio
    from urllib.parse import urlsplit

    from passhat.errors import MissingExtra

    try:
        from passhat.integrations.agentbeats.white_agent import WhiteAgent, white_application
    except ImportError:
        raise MissingExtra("passhat white", extra="a2a") from None
    from passhat.dashboard.guard import Access, is_loopback
    from passhat.integrations.agentbeats.strangers import AllowedHosts
    from passhat.runner.serving import Listening, open_socket

    white = WhiteAgent(agent, reply, lambda line: click.echo(line, err=True))
    sock = open_socket(host, port)
    url = card_url or f"http://{host}:{sock.getsockname()[1]}/"
    access = Access(host, names=[urlsplit(url).hostname or ""])
    hosts = AllowedHosts.of(filter(None, [backend]), loopback=is_loopback(host))

    async def serve() -> None:
        async with Listening(white_application(white, url, access, hosts), sock):
            click.echo(f"{white.agent.name} at {url}", err=True)
            await asyncio.Event().wait()

    try:
        asyncio.run(serve())
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
    return ExitCode.OK
