"""Read code tasks: HumanEval format, MBPP-like, or cases of input and output.

One JSON object per line, plain or gzipped:

- ``task_id, prompt, entry_point, test`` and perhaps ``canonical_solution``: HumanEval. The tests
  define ``check(candidate)``, or are unittest or pytest style.
- ``task_id, test_list`` and perhaps ``test_setup_code`` (or ``test_imports``), ``code``: MBPP.
- ``task_id, cases`` (or ``inputs`` and ``outputs``): a script that reads and prints.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from passhat._display import some
from passhat.errors import ReadError, shorten
from passhat.judging.tasks import Case, CodeSuite, CodeTask

__all__ = ["CODE_PREFIX", "json_lines", "read_code_suite", "read_task"]

CODE_PREFIX = "code:"
_WORDS = ("text", "prompt", "question", "description")
_GZIP_MAGIC = b"\x1f\x8b"
Row = Mapping[str, object]


def read_code_suite(word: str) -> CodeSuite:
    """Read a suite from ``code:PATH``; ``code:ordercode`` is built in."""
    path = word.removeprefix(CODE_PREFIX)
    if path == "ordercode":
        from passhat.suites.ordercode import ordercode

        return ordercode()
    tasks: dict[str, CodeTask] = {}
    for line, row in json_lines(path):
        task = read_task(row, path, line)
        if task.id in tasks:
            raise ReadError(f"task {shorten(task.id)} is there twice.", source=path, line=line)
        tasks[task.id] = task
    if not tasks:
        raise ReadError("holds no task.", source=path)
    return CodeSuite.of(f"{CODE_PREFIX}{Path(path).name}", tasks.values())


def json_lines(path: str) -> Iterator[tuple[int, dict[str, object]]]:
    """The objects of a file of JSON lines, plain or gzipped, with their line numbers."""
    try:
        with Path(path).open("rb") as plain:
            is_gzip = plain.read(2) == _GZIP_MAGIC
        with gzip.open(path) if is_gzip else Path(path).open("rb") as stream:
            for line, text in enumerate(stream, 1):
                if text.strip():
                    yield line, _object(text, path, line)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ReadError(f"the compressed data is broken ({error}).", source=path) from None
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror or error}.", source=path) from None


def _object(text: bytes, path: str, line: int) -> dict[str, object]:
    try:
        row = _decode(text)
    except (ValueError, RecursionError) as error:
        raise ReadError(f"is not JSON ({error}).", source=path, line=line) from None
    if not isinstance(row, dict):
        raise ReadError(
            f"one JSON object was expected, not {shorten(row)}.", source=path, line=line
        )
    return row


def _decode(text: bytes) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Lone surrogates, which models do write, are read by the slower reader alone.
        return json.loads(text)


def read_task(row: Row, path: str, line: int) -> CodeTask:
    """Read one task, in whichever format it is."""
    name = row.get("task_id", row.get("id"))
    if not isinstance(name, str | int):
        raise ReadError("the task has no task_id.", source=path, line=line)
    try:
        if "cases" in row or "inputs" in row:
            return CodeTask(
                str(name), cases=_cases(row), canonical=_text(row, "code"), text=_prompt_text(row)
            )
        if "test_list" in row:
            return _mbpp(str(name), row)
        if "test" in row:
            return _human_eval(str(name), row)
    except (TypeError, ValueError, KeyError) as error:
        raise ReadError(f"task {shorten(str(name))}: {error}.", source=path, line=line) from None
    raise ReadError(
        f"task {shorten(str(name))} has no tests; its fields are {some(list(row), 12)}.",
        source=path,
        line=line,
        hint="Tests are called test (HumanEval), test_list (MBPP), or cases (input and output).",
    )


def _human_eval(name: str, row: Row) -> CodeTask:
    prompt = _text(row, "prompt")
    return CodeTask(
        name,
        prompt=prompt,
        entry_point=_text(row, "entry_point"),
        helpers=_helpers(prompt),
        tests=_text(row, "test"),
        canonical=_text(row, "canonical_solution"),
    )


def _helpers(prompt: str) -> str:
    """The prompt as code of its own: its last function may still lack a body."""
    for text in (prompt, f"{prompt}\n    pass\n"):
        try:
            compile(text, "prompt", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            continue
        return text
    return ""


def _mbpp(name: str, row: Row) -> CodeTask:
    setup = row.get("test_imports", [])
    lines = setup if isinstance(setup, list) else [str(setup)]
    tests = [*_strings(row["test_list"]), *_strings(row.get("challenge_test_list", []))]
    return CodeTask(
        name,
        helpers="\n".join(_strings(lines)),
        # The set-up may use definitions of the program, so it belongs to the tests.
        tests="\n".join([*filter(None, [_text(row, "test_setup_code")]), *tests]),
        canonical=_text(row, "code"),
        text=_prompt_text(row),
    )


def _cases(row: Row) -> tuple[Case, ...]:
    if "cases" in row:
        pairs = [(case["input"], case["output"]) for case in row["cases"]]  # type: ignore[attr-defined]
    else:
        pairs = list(zip(_strings(row["inputs"]), _strings(row["outputs"]), strict=True))
    if not pairs:
        raise ValueError("there are no cases")
    return tuple(Case(text_in.encode(), expected.encode()) for text_in, expected in pairs)


def _prompt_text(row: Row) -> str:
    """The task's text, under any of the names that files use for it."""
    return next((text for name in _WORDS if (text := _text(row, name))), "")


def _strings(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError(f"a list of texts was expected, not {shorten(value)}")
    return value


def _text(row: Row, name: str) -> str:
    value = row.get(name) or ""
    if not isinstance(value, str):
        raise TypeError(f"{name} should be text, not {shorten(value)}")
    return value
