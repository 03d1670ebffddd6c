"""``command:./agent --flag``: a program that reads and writes JSON lines, one process per attempt.

It reads one JSON object per line on standard input, ``{"text": ..., "task": ..., "attempt": ...,
"seed": ...}`` (with ``temperature``, ``top_p`` and ``tools`` where they are set), and writes one
per answer, ``{"text": ...}``, or ``{"fault": CATEGORY, "detail": ...}``. An answer may say what it
used: ``"usage": {"input_tokens": 10, "output_tokens": 5}`` with ``"model"``, or ``"usage":
{"tokens": 15, "cost": 0.01}``. The last line on standard error is shown if it ends without an
answer. When the conversation is over its input ends; it has a moment to send its OpenTelemetry
spans, and is killed.

In a workspace it is a coding agent, which needs no JSON: see :mod:`passhat.agents.coding`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from passhat.agents.base import ENDED, Agent, AgentFault, AttemptInfo, ModelCall, Session
from passhat.agents.coding import CodingSession, write_request
from passhat.agents.framework_answers import read_answer
from passhat.agents.prices import PriceTable
from passhat.errors import InvalidValue, shorten
from passhat.stats.outcomes import FailureCategory
from passhat.suites.base import Turn

_LONGEST_LINE = 4 * 1024 * 1024
_ANSWER = ("text", "usage", "model")
_ERRORS = 2
"""The descriptor of standard error."""
_LONGEST_ERRORS = 64 * 1024
_END_SECONDS = 1.0
"""How long a program that closed its output may take to end, and its last errors to arrive."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_GRACE_SECONDS = 10.0
"""How long a program may take to end when its input has ended, to send the spans it still has."""
_PASSED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TERM|COLUMNS|TMPDIR|TMP|TEMP|XDG_\w+|"
    r"PYTHON\w*|VIRTUAL_ENV|CONDA_PREFIX|NODE_PATH|JAVA_HOME|LD_LIBRARY_PATH|SYSTEMROOT|"
    r"SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS|"
    r"(?i:(?:https?|all|no)_proxy)|OTEL_\w+|CUDA_VISIBLE_DEVICES"
)
"""Variables that every program gets: where things are, and no keys."""
_SECRET = re.compile(r"(?i)key|token|secret|passw|credential")
ALL_VARIABLES = "*"


class CommandAgent(Agent):
    """A program as an agent."""

    def __init__(self, command: str) -> None:
        self.name = f"command:{command}"
        self.price_table: PriceTable | None = None
        self._pass_env: tuple[str, ...] = ()
        self._ended_early = False
        self.ends_with_input = True
        """Whether programs end when their input does, as far as has been seen."""
        self.speaks_json = False
        """Whether it reads and writes JSON in a workspace, too; for Python functions."""
        try:
            self._words = shlex.split(command)
        except ValueError as error:  # a quotation mark without its other half
            raise InvalidValue(
                f"command:{command} cannot be split into words: {error}.",
                hint="Close the quotation mark, or put a backslash before it.",
            ) from None
        if not self._words:
            raise InvalidValue("command: names no program.", hint="As in command:./agent.py")
        program = self._words[0]
        # The first file of this folder: ./agent, or what an interpreter runs. Later ones may be
        # data or logs, whose changes do not make it another agent.
        local_files = (path for word in self._words if _is_own(path := Path(word)))
        self.source_files = tuple(islice(local_files, 1))
        if shutil.which(program) is not None:
            return
        path = Path(program)
        if path.is_dir():
            raise InvalidValue(f"{program!r} is a folder, not a program.")
        if path.is_file() and not os.access(path, os.X_OK):
            raise InvalidValue(
                f"{program!r} is not executable.",
                hint=f"chmod +x {shlex.quote(program)}, or name its interpreter, as in "
                f"command:python3 {shlex.quote(program)}",
            )
        if path.is_file():  # executable, and yet not found: a program needs a path or a PATH entry
            raise InvalidValue(
                f"{program!r} is a file of this folder, not a program on the PATH.",
                hint=f"Name it with its folder: command:./{program}",
            )
        raise InvalidValue(
            f"there is no program {program!r}.",
            hint="Give the path to an executable, as in command:./agent.py",
        )

    def pass_variables(self, names: Sequence[str]) -> None:
        """Give the program these variables, too; ``*`` is the whole environment."""
        if absent := [name for name in names if name not in os.environ and name != ALL_VARIABLES]:
            raise InvalidValue(
                f"{' and '.join(absent)} cannot be passed to the agent: not set in this shell.",
                hint=f"export {absent[0]}=VALUE, then run the same command.",
            )
        self._pass_env = tuple(names)

    def note_early_end(self) -> None:
        """Take note that a program ended without an answer, as it does when it misses a key."""
        self._ended_early = True

    def notices(self) -> list[str]:
        passed = self._variables()
        names = [name for name in os.environ if name not in passed and _SECRET.search(name)]
        if not self._ended_early or not names:
            return []
        return [
            f"The program ended without an answer. It did not get {', '.join(sorted(names))}: "
            f"--pass-env NAME,... passes variables that it needs."
        ]

    def _variables(self) -> dict[str, str]:
        if ALL_VARIABLES in self._pass_env:
            return dict(os.environ)
        return {
            name: value
            for name, value in os.environ.items()
            if _PASSED.fullmatch(name) or name in self._pass_env
        }

    def environment(self, attempt: AttemptInfo) -> dict[str, str]:
        """The variables of the program in an attempt, with the address for its spans.

        Spans are sent soon, unless the user has set a pause, and metrics and logs not at all.
        """
        environment = self._variables()
        if not attempt.traceparent:
            return environment
        environment["TRACEPARENT"] = attempt.traceparent
        if attempt.otlp_endpoint:
            environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = attempt.otlp_endpoint
            environment["OTEL_EXPORTER_OTLP_PROTOCOL"] = "http/protobuf"
            # Variables for traces alone would win over these, and no span would come here.
            for name in ("ENDPOINT", "PROTOCOL", "HEADERS"):
                environment.pop(f"OTEL_EXPORTER_OTLP_TRACES_{name}", None)
            environment.setdefault("OTEL_BSP_SCHEDULE_DELAY", "200")
            environment.setdefault("OTEL_METRICS_EXPORTER", "none")
            environment.setdefault("OTEL_LOGS_EXPORTER", "none")
        return environment

    def absolute_words(self) -> list[str]:
        """The command for another folder: files of this one by their whole paths."""
        return [
            str(path.absolute()) if _is_own(path := Path(word)) else word for word in self._words
        ]

    def read_line(self, line: bytes, attempt: AttemptInfo) -> str:
        """The text of a line that the program wrote; usage and calls in it go on the meter."""
        reply = _read(line)
        for call in reply.get("calls", ()):
            attempt.meter.record(msgspec.convert(call, ModelCall))
        answer = {name: reply.get(name) for name in _ANSWER}
        return read_answer(answer, attempt.meter, self.price_table)

    async def session(self, attempt: AttemptInfo) -> Session:
        if attempt.workspace is not None:
            return CodingSession(self, attempt)
        loop = asyncio.get_running_loop()
        # The steps of create_subprocess_exec, which keeps the pipes to itself.
        pipes, streams = await loop.subprocess_exec(
            lambda: _Streams(limit=_LONGEST_LINE, loop=loop),
            *self._words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # so that everything it starts can be ended with it
            env=self.environment(attempt),
        )
        return _CommandSession(self, pipes, streams, attempt)


def pass_variables(agents: Sequence[Agent], names: Sequence[str]) -> None:
    """Give these variables to all programs among the agents; refuse them where there is none."""
    programs = [agent for agent in agents if isinstance(agent, CommandAgent)]
    if names and not programs:
        raise InvalidValue(
            "variables are passed to command: agents only, and this run has none.",
            hint="Other agents see the whole environment; leave out --pass-env.",
        )
    for program in programs if names else ():
        program.pass_variables(names)


class _Streams(SubprocessStreamProtocol):
    """Knows when the program ended, also while a child of it keeps the pipes open.

    Of standard error only the end is kept: a program that writes much there is never held up.
    """

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=limit, loop=loop)
        self.ended = asyncio.Event()
        self.errors_ended = asyncio.Event()
        self._errors = b""

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if fd != _ERRORS:
            super().pipe_data_received(fd, data)
        elif isinstance(data, bytes):
            self._errors = (self._errors + data)[-_LONGEST_ERRORS:]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == _ERRORS:
            self.errors_ended.set()
        super().pipe_connection_lost(fd, exc)

    def last_error_line(self) -> str:
        """The last line on standard error; empty where there is none, or its beginning is lost."""
        text = _ESCAPES.sub("", self._errors.decode("utf-8", "replace"))
        lines = [line.strip() for line in text.splitlines()]
        if len(self._errors) == _LONGEST_ERRORS:
            lines = lines[1:]  # part of a line may begin within a secret, which is then not found
        line = next((line for line in reversed(lines) if line), "")
        return "".join(ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in line)

    def process_exited(self) -> None:
        self.ended.set()
        super().process_exited()


def _is_own(path: Path) -> bool:
    """Whether a word of the command names a file below this folder, such as ./agent.py."""
    try:
        return path.is_file() and path.resolve().is_relative_to(Path.cwd())
    except (OSError, ValueError):  # too long for a name, or a null byte
        return False


class _CommandSession(Session):
    def __init__(
        self,
        agent: CommandAgent,
        pipes: asyncio.SubprocessTransport,
        streams: _Streams,
        attempt: AttemptInfo,
    ) -> None:
        self._agent = agent
        self._process = Process(pipes, streams, asyncio.get_running_loop())
        self._pipes = pipes
        self._streams = streams
        self._attempt = attempt
        self._waiting = False  # for the next turn: its last answer is here

    async def answer(self, turn: Turn) -> str:
        self._waiting = False
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            # A program that does not read may have written something all the same.
            with suppress(BrokenPipeError, ConnectionResetError):
                request = json.dumps(write_request(turn, self._attempt))
                self._process.stdin.write(request.encode() + b"\n")
                await self._process.stdin.drain()
            line = await self._process.stdout.readline()
        except (BrokenPipeError, ConnectionResetError):
            line = b""
        except ValueError:
            raise AgentFault(
                FailureCategory.FORMAT_ERROR, f"wrote a line of over {_LONGEST_LINE:,} bytes"
            ) from None
        if not line:
            self._agent.note_early_end()
            raise AgentFault(FailureCategory.AGENT_ERROR, await self._describe_end())
        text = self._agent.read_line(line, self._attempt)
        self._waiting = True
        return text

    async def _describe_end(self) -> str:
        """How the program ended: its exit code and the last line on standard error."""
        for event in (self._streams.ended, self._streams.errors_ended):
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await event.wait()
        code = self._process.returncode
        if code is None:
            end = "closed its output, still running"
        else:
            end = f"exit {code}" if code >= 0 else f"signal {-code}"
        line = self._streams.last_error_line()
        return f"{ENDED} ({end})" + (f": {line}" if line else "")

    async def close(self) -> None:
        """Kill the program and everything it started; it has had its chance."""
        if self._waiting and self._attempt.otlp_endpoint and self._agent.ends_with_input:
            await self._end_by_itself()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        # Nothing is read any more: a program that floods us, or leaves a child that keeps the pipe
        # open, would be waited for until the time is over.
        for number in (0, 1, _ERRORS):
            pipe = self._pipes.get_pipe_transport(number)
            if pipe is None or pipe.is_closing():
                continue
            if isinstance(pipe, asyncio.WriteTransport):
                pipe.abort()  # discards unwritten data
            else:
                pipe.close()
        with suppress(ProcessLookupError):
            await self._process.wait()

    async def _end_by_itself(self) -> None:
        """End the program's input and wait for its end: spans are sent in batches, or then.

        A program that goes on without input is not waited for again in this run.
        """
        assert self._process.stdin is not None
        self._process.stdin.close()
        with self._attempt.meter.off_the_clock():
            try:
                async with asyncio.timeout(_GRACE_SECONDS):
                    await self._streams.ended.wait()
            except TimeoutError:
                self._agent.ends_with_input = False


def _read(line: bytes) -> dict[str, Any]:
    try:
        reply = json.loads(line)
        if "fault" in reply:
            raise AgentFault(FailureCategory(reply["fault"]), str(reply.get("detail", "")))
        text = reply["text"]
    except (ValueError, TypeError, KeyError, RecursionError):
        start = shorten(line[:200].decode("utf-8", "replace").strip())
        raise AgentFault(
            FailureCategory.FORMAT_ERROR, f'expected a line {{"text": ...}}, not {start}'
        ) from None
    if not isinstance(text, str):
        raise AgentFault(FailureCategory.FORMAT_ERROR, '"text" must be a string')
    return dict(reply)
