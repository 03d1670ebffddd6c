"""Suites by name: ``orderdesk/retail``, ``jsonl:PATH``, ``python:MODULE:SUITE``, and plug-ins'."""

from __future__ import annotations

import re
import subprocess
from contextlib import suppress
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO

from passhat._plugins import check_instance
from passhat.errors import InvalidValue
from passhat.suites.base import Settings, Suite

_SHOWN = 400


def end_child(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    """Kill a process and close everything that was open to it."""
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    process.wait()
    errors.close()


def last_error_line(errors: IO[bytes]) -> str:
    """The last line of a process's standard error, which mostly states the problem."""
    errors.seek(0)
    text = errors.read().decode("utf-8", "replace").strip()
    return text.splitlines()[-1][:_SHOWN] if text else "no error output"


GROUP = "passhat.suites"


def suite_kinds() -> dict[str, str]:
    """Every kind of suite that is installed, with the first line of its description."""
    return {
        entry.name: (entry.load().__doc__ or "").strip().splitlines()[0]
        for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    }


def load_suite(word: str, settings: Settings | None = None) -> Suite:
    """The suite of a word such as ``orderdesk/retail`` or ``jsonl:tasks.jsonl``.

    A file of tasks needs no kind: ``tasks.jsonl``. ``settings`` are handed to the suite's
    ``configure``.
    """
    if word.lower().endswith((".jsonl", ".ndjson")) and Path(word).is_file():
        word = f"jsonl:{word}"
    kind, *parts = re.split("[:/]", word, maxsplit=1)
    rest = "".join(parts)
    makers = {entry.name: entry for entry in entry_points(group=GROUP)}
    if kind not in makers:
        near = get_close_matches(word, [str(path) for path in Path().glob("*.jsonl")], 1)
        guess = f"Did you mean {near[0]}? " if near else ""
        raise InvalidValue(
            f"{word!r} is not a suite.",
            hint=f"{guess}Kinds of suite: {', '.join(sorted(makers))}; "
            "as in orderdesk/retail or jsonl:tasks.jsonl.",
        )
    suite = makers[kind].load()(rest)
    check_instance(suite, Suite, f"the suite {word}")
    assert isinstance(suite, Suite)
    suite.configure(settings or Settings())
    return suite


def python_suite(path: str) -> Suite:
    """A suite of your own: python:MODULE:NAME, a Suite, its class, or a function that makes one."""
    from passhat.suites.graders import load_object

    target = load_object(path)
    suite = target() if callable(target) and not isinstance(target, Suite) else target
    check_instance(suite, Suite, f"python:{path}")
    assert isinstance(suite, Suite)
    return suite
