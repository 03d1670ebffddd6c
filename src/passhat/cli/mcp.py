"""passhat mcp"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from passhat.cli.shared.commands import Command
from passhat.cli.shared.exits import ExitCode

if TYPE_CHECKING:
    from mcp.server import MCPServer


@click.command(
    "mcp",
    cls=Command,
    examples=("passhat mcp", "passhat mcp --allow-run"),
)
@click.option("--allow-run", is_flag=True, help="Also offer the tool that runs agents.")
def command(allow_run: bool) -> ExitCode:
    """Serve passhat's commands to a coding assistant, as MCP tools over standard input and output.

    The tools read, report, compare, gate, plan, why and review only read; the tool run makes
    attempts of an agent, and is there with --allow-run. Every answer is the command's own screen.
    """
    from passhat.errors import MissingExtra

    try:
        server = make_server(allow_run=allow_run)
    except ImportError:
        raise MissingExtra("passhat mcp", extra="mcp") from None
    server.run("stdio")
    return ExitCode.OK


_INSTRUCTIONS = (
    "passhat says how reliably an AI agent succeeds: pass@k and pass^k with honest intervals. A "
    "source is a path to a log or table of another tool, a store, a run's id, 'latest', or "
    "example:helpdesk to try. Quote the numbers with their intervals, and claim no more than the "
    "first sentence of an answer does."
)
_SOURCE = "A file, a folder, a store, a run's id, latest or example:NAME"
_CLAIM = "The text with the claims, or the path of a file that holds it"
_METRIC = "A metric, as in pass^4, pass@8, rate, mean or worst@4"
_RUN_NAME = "One run of a source that holds several, by its name"
_ENDS: dict[int | None, str] = {
    ExitCode.REFUTED: "a rule is refuted, a regression is shown, or a finding was made",
    ExitCode.NOT_SETTLED: "not settled by the evidence",
    ExitCode.INCOMPLETE: "incomplete: attempts or parts of a file are absent",
}
"""Ends of a command that are answers rather than mistakes."""
_NOTHING_FOUND = "no claim about pass rates was recognised"


def make_server(*, allow_run: bool) -> "MCPServer":
    """The server with its tools; a tool's description is what an assistant reads."""
    from mcp.types import ToolAnnotations
    from pydantic import Field

    from passhat._version import __version__

    # Evaluated here, so this module has no annotations from the future.
    Source = Annotated[str, Field(description=_SOURCE)]  # noqa: N806 - a type
    Metric = Annotated[str, Field(description=_METRIC)]  # noqa: N806
    Claim = Annotated[str, Field(description=_CLAIM)]  # noqa: N806
    RunName = Annotated[str | None, Field(description=_RUN_NAME)]  # noqa: N806
    server = _server_class()(
        "passhat", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    look = server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)

    @look
    async def read(source: Source) -> str:
        """Say what a log or table holds: runs, how columns were read, which metrics it supports."""
        return await call_command("read", source)

    @look
    async def report(
        source: Source, metrics: list[Metric] | None = None, full: bool = False
    ) -> str:
        """Report pass@k and pass^k with intervals, and the causes of failures."""
        options = [f"--metric={metric}" for metric in metrics or ()]
        return await call_command("report", source, options=[*options, *["--full"] * full])

    @look
    async def compare(sources: list[Source], metric: Metric | None = None) -> str:
        """Compare runs on the tasks they share: is the second better than the first?"""
        options = [] if metric is None else [f"--metric={metric}"]
        return await call_command("compare", *sources, options=options)

    @look
    async def gate(
        source: Source,
        rules: list[str] | None = None,
        against: Source | None = None,
        run: RunName = None,
    ) -> str:
        """Judge a run by rules such as 'pass^4 >= 0.6', or against a baseline."""
        options = _choose(run)
        if against is not None:
            options.append(f"--against={against}")
        return await call_command("gate", source, *rules or (), options=options)

    @look
    async def plan(
        source: Source, half_width: float, metric: Metric = "pass^4", run: RunName = None
    ) -> str:
        """Say how many tasks and attempts give an interval of this half-width, as in 0.05."""
        options = [f"--metric={metric}", f"--half-width={half_width}", *_choose(run)]
        return await call_command("plan", source, options=options)

    @look
    async def why(source: Source, task: str | None = None, run: RunName = None) -> str:
        """Find what goes with failure: what failing attempts do and passing ones do not."""
        return await call_command("why", *filter(None, (source, task)), options=_choose(run))

    @look
    async def review(claim: Claim, sources: list[Source] | None = None) -> str:
        """List what a claim about pass rates omits, and check its numbers against sources."""
        options = [f"--source={source}" for source in sources or ()]
        word = claim if _is_file(claim) else "-"
        return await call_command("review", word, options=options, text=claim)

    if allow_run:
        _add_run(server)
    return server


def _server_class() -> "type[MCPServer]":
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    class Server(MCPServer):
        """One that refuses an argument that a tool has not, instead of leaving it out."""

        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
            for tool in await self.list_tools():
                known = list(tool.input_schema["properties"])
                wrong = sorted(set(arguments) - set(known))
                if tool.name == name and wrong:
                    raise ToolError(
                        f"{name} has no argument {', '.join(wrong)}. It takes: {', '.join(known)}."
                    )
            return await super().call_tool(name, arguments, context)

    return Server


def _add_run(server: "MCPServer") -> None:
    @server.tool(structured_output=False)
    async def run(agent: str, suite: str, attempts: int = 8) -> str:
        """Make fresh attempts of an agent at every task of a suite, store and report them.

        This starts the agent and may cost money. The same call continues where it stopped.
        """
        options = [f"--agent={agent}", f"--suite={suite}", f"--attempts={attempts}"]
        return await call_command("run", options=options)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # longer than a path may be, or with a zero byte
        return False


def _choose(run: str | None) -> list[str]:
    return [] if run is None else [f"--run={run}"]


async def call_command(
    name: str, *arguments: str, options: Sequence[str] = (), text: str = ""
) -> str:
    """The screen of a command, which runs in a process of its own; a mistake raises ToolError.

    No argument is taken for an option: none can write a file or start an agent.
    """
    import asyncio
    import os

    from mcp.server.mcpserver.exceptions import ToolError

    for word in arguments:
        if not word.strip() or "\0" in word:
            raise ToolError(f"{word!r} is no source. Name a file, a run, or example:helpdesk.")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "passhat", name, *options, "--", *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "COLUMNS": "160", "NO_COLOR": "1"},
    )
    try:
        out, err = await process.communicate(text.encode())
    finally:
        if process.returncode is None:  # the assistant cancelled the call
            process.terminate()
            await process.wait()
    screen, messages = (part.decode("utf-8", "replace").strip() for part in (out, err))
    # Flags of a shell mean nothing to a tool's caller.
    screen = re.sub(r"^More: .*\n?", "", screen, flags=re.MULTILINE).strip()
    messages = messages.replace("with --run:", "with the argument run:")
    messages = re.sub(r"\n *(As in|Write|  or): passhat .*", "", messages)
    if process.returncode == ExitCode.OK:
        return screen or messages
    code = process.returncode
    if code not in _ENDS:
        raise ToolError(messages or screen or f"passhat {name} ended with {code}")
    end = _NOTHING_FOUND if (name, code) == ("review", ExitCode.NOT_SETTLED) else _ENDS[code]
    return "\n".join(filter(None, [screen, messages, f"(exit {code}: {end})"]))
