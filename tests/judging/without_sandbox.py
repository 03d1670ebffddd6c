"""Judge programs without a sandbox, to see what both ends of the connection make of them.

Called with the folder of the package ``inside``. Reads tasks as JSON from standard input and writes
for each what split and plain say, and what the tests' end sent. Each judgement has processes of its
own, which end after seconds.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

_SECONDS = 20
_USUAL = (
    "inside.examine",
    "inside.program",
    "asyncio",
    "dataclasses",
    "logging",
    "random",
    "typing",
    "unittest.mock",
)
"""Modules that programs and tests import; a process that has them starts sooner."""
_MARKS = (
    *("mirrored", "is_used", "variable", "refused", "library", "has_shown_failure"),
    *("flattened", "behaves"),
)
"""What the tests' end noted about all that crossed."""


def _fork(work: Callable[[], Any], leave: list[int]) -> tuple[int, int]:
    """A process that does some work; where its result comes as JSON, and its id."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return reading, child
    try:
        signal.alarm(_SECONDS)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        for descriptor in (reading, *leave):
            os.close(descriptor)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        result = work()
        os.write(writing, json.dumps(result).encode())
    except BaseException as error:
        os.write(writing, json.dumps(f"{type(error).__name__}: {error}"[:200]).encode())
    finally:
        os._exit(0)


def _result(reading: int, child: int) -> Any:
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else f"status {status}"


def _note_messages() -> list[str]:
    """Note every request and every answer that this process sends from now on."""
    sent: list[str] = []
    wire: Any = import_module("inside.wire")
    send = wire.send

    def note(channel: int, message: dict[str, Any]) -> Any:
        if "a" in message:
            sent.append(message["a"])
        else:
            verb, number, name = message["q"]
            sent.append(f"{verb}:{number}" + f":{name}" * bool(name))
        return send(channel, message)

    wire.send = note
    return sent


def _start_split(task: dict[str, Any]) -> list[tuple[int, int]]:
    """The processes of the tests and of the program."""
    examine, program = import_module("inside.examine"), import_module("inside.program")

    brief = task["brief"]
    parts = {"program": task["program"], "setup": brief["setup"]}
    parts["late_imports"] = [[name, line] for name, line in brief["late_imports"]]
    near, far = socket.socketpair()

    def judge() -> Any:
        sent = _note_messages()
        outcome = examine.examine(near.fileno(), brief, [0], "")
        end = examine._judgements[0]
        marks = [name for name in _MARKS if getattr(end, name)]
        return [*outcome, end.requests, " ".join(marks), " ".join(sent)]

    tests = _fork(judge, [far.fileno()])
    solution = _fork(lambda: program.serve(far.fileno(), parts, ""), [near.fileno()])
    near.close()
    far.close()
    return [tests, solution]


def _judge(task: dict[str, Any]) -> list[Any]:
    """What split says, what plain says, and how the program's process ended if it broke."""
    examine = import_module("inside.examine")

    split, brief = _start_split(task), task["brief"]
    processes = list(split)
    if task["plain"]:
        processes.append(_fork(lambda: examine.examine_plain(task["program"], brief), []))
    outcome, served, *single = (_result(*process) for process in processes)
    return [outcome, *single] if served is None else [outcome, *single, served]


def main() -> None:
    """Judge all tasks."""
    tasks = json.load(sys.stdin)
    for name in _USUAL:
        import_module(name)
    gc.collect()
    gc.freeze()  # so that processes share what is there
    json.dump({name: _judge(task) for name, task in tasks.items()}, sys.stdout)


if __name__ == "__main__":
    sys.path[0] = sys.argv[1]
    main()
