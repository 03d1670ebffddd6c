"""The program's side: load it, and answer the tests. Nothing here is trusted.

A hostile program can rewrite all of this at run time. It then only chooses what it answers, which
is its right: the verdict is made elsewhere, from the answers.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections import namedtuple
from types import ModuleType
from typing import Any, Optional

from . import wire
from .peer import Peer, brief_text
from .stand_ins import Patches, forward_comparisons

MODULE = "solution"
_MOST_PRINTED = 4 << 20
_STREAMS = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


def serve(channel: int, brief: dict[str, Any], folder: str) -> None:
    """Load the program and answer the tests until they are done."""
    program = _Program(channel, folder)
    run_trusted(brief["setup"], program.module)
    failure = load(brief["program"], program.module)
    if failure is None:
        # Only what it lacks: its own import of the same name may mean something else.
        lacking = [line for name, line in brief["late_imports"] if name not in vars(program.module)]
        run_trusted("\n".join(lacking), program.module)
    program.forget_printed()
    if failure is not None:
        wire.send(channel, {"a": "failed", "failure": failure})
        return
    wire.send(channel, {"a": "ready"})
    while True:
        try:
            message, value = program.receive()
        except wire.Closed:
            return
        program.serve(message, value)


class _Printed(io.TextIOBase):
    """Standard output or error of the program: handed to the tests with the next message."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self.size += len(text)
        if self.size <= _MOST_PRINTED:
            self.parts.append(text)
        return len(text)

    def take(self) -> str:
        text = "".join(self.parts)
        self.parts, self.size = [], 0
        return text


class _Program(Peer):
    """The program's end: it also sends prints and random draws."""

    def __init__(self, channel: int, folder: str) -> None:
        super().__init__(channel, 1, folder=folder)
        self.module = new_module(MODULE)
        self._out, self._err = _Printed(), _Printed()
        sys.stdout, sys.stderr, sys.stdin = self._out, self._err, io.StringIO()
        self._random: Any = None
        self._patches = Patches()

    def forget_printed(self) -> None:
        self._out.take()
        self._err.take()

    def absorb(self, message: dict[str, Any]) -> None:
        # Only now: what the tests changed last and then let go of is in the message too.
        self._codec.forget(message.get("x", ()))
        if "r" in message:
            import random

            version, numbers, gauss = message["r"]
            random.setstate((version, tuple(numbers), gauss))
            self._random = random.getstate()

    def additions(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if self._out.parts:
            fields["o"] = self._out.take()
        if self._err.parts:
            fields["e"] = self._err.take()
        if self._random is not None:
            import random

            if (state := random.getstate()) != self._random:
                self._random = fields["r"] = state
        return fields

    def serve_other(self, verb: str, name: str, arguments: tuple[Any, ...]) -> Any:
        if verb == "patch":
            return self._patches.begin(*arguments)
        if verb == "unpatch":
            return self._patches.end()
        if verb != "names":
            return super().serve_other(verb, name, arguments)
        table = vars(self.module)
        values = {key: table[key] for key in arguments[0] if key in table}
        modules = {key: one.__name__ for key, one in values.items() if type(one) is ModuleType}
        modules |= {
            key: f"{key}.{key}"
            for key, one in values.items()
            if getattr(one, "__module__", "") == getattr(one, "__name__", "") == key != MODULE
        }
        for key in modules:
            del values[key]
        return values, modules

    def adopt_other(self, tag: str, parts: list[Any]) -> Any:
        if tag == "B":
            return getattr(__import__(parts[0]), parts[1])
        if tag == "N":
            name, fields, *items = parts
            return namedtuple(name, fields)(*map(self.decode, items))
        return super().adopt_other(tag, parts)

    def comparisons(self, _name: str, facts: dict[str, Any]) -> dict[str, Any]:
        return forward_comparisons(facts)


def new_module(name: str) -> ModuleType:
    module = ModuleType(name)
    sys.modules[name] = module
    return module


def run_trusted(source: str, module: ModuleType) -> None:
    """Run the task's own code in the program's namespace."""
    if source:
        exec(compile(source, "helpers.py", "exec", dont_inherit=True), module.__dict__)


def load(source: str, module: ModuleType) -> Optional[list[str]]:  # noqa: UP045 - Python 3.9
    """Run a program as a module; a failure as [kind, sentence], or None."""
    try:
        code = compile(source, f"{module.__name__}.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, OverflowError) as error:
        return ["SyntaxError", brief_text(error)]
    except MemoryError as error:
        return ["SyntaxError", brief_text(error) or "too deeply nested"]
    try:
        exec(code, module.__dict__)
    except BaseException as error:
        return describe(error)
    return None


def describe(error: BaseException) -> list[str]:
    """An exception as [kind, sentence]; a refusal by the sandbox is a PermissionError."""
    number = getattr(error, "errno", None)
    is_refusal = isinstance(error, OSError) and number in (1, 13, 30, 38)
    return ["PermissionError" if is_refusal else type(error).__name__[:80], brief_text(error)]


# -- scripts --------------------------------------------------------------------------------------


def run_script(source: str) -> None:
    """Run a program as ``python script.py`` does; the interpreter must end normally afterwards."""
    sys.argv = ["script.py"]
    _open_standard_streams()
    # A new module: what the server's own refers to would never be collected, and not finalized.
    names = new_module("__main__").__dict__
    names.update(__file__="script.py", __builtins__=builtins)
    try:
        code = compile(source, "script.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, OverflowError, MemoryError) as error:
        sys.stderr.write(f"SyntaxError: {brief_text(error)}\n")
        sys.exit(1)
    exec(code, names)


def _open_standard_streams() -> None:
    """Let scripts open /dev/stdin and its like, which need a /proc that is not there."""
    real_open = io.open

    def open_stream(file: Any, mode: str = "r", *rest: Any, **keywords: Any) -> Any:
        try:
            path = os.fspath(file) if not isinstance(file, int) else ""
        except TypeError:
            path = ""
        number = _STREAMS.get(path if isinstance(path, str) else "")
        return real_open(file if number is None else os.dup(number), mode, *rest, **keywords)

    io.open = builtins.open = open_stream
