"""A pytest plug-in: which functions of the package each test calls, for ``tools/mutate.py``.

Load it with ``-p trace_tests`` and name the file to write in ``TRACE_TESTS``: a line when a test
begins and one when it passed. Tests that the file has are not run again, so that a session goes on
behind a test that ended its process. Only calls inside the test process are seen; code that tests
run in other processes is not.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

__all__ = ["pytest_collection_modifyitems", "pytest_runtest_protocol"]

_SOURCE = f"{Path(os.environ.get('TRACE_SOURCE', 'src')).resolve()}{os.sep}"
_FILE = Path(os.environ["TRACE_TESTS"])
_functions: set[tuple[str, int]] = set()


def _note_call(frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG001
    code = frame.f_code
    if code.co_filename.startswith(_SOURCE):
        _functions.add((code.co_filename, code.co_firstlineno))


def _write(test: str, call: Mapping[str, Any] | None = None) -> None:
    with _FILE.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"test": test, "call": call}) + "\n")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the tests that the file has."""
    lines = _FILE.read_text(encoding="utf-8").splitlines() if _FILE.is_file() else []
    names = {json.loads(line)["test"] for line in lines}
    items[:] = [item for item in items if item.nodeid not in names]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Collect the functions that are called by a test, its set-up and its clean-up."""
    _write(item.nodeid)
    _functions.clear()
    threading.settrace(_note_call)
    sys.settrace(_note_call)
    begin, failures = time.perf_counter(), item.session.testsfailed
    try:
        yield
    finally:
        sys.settrace(None)
        threading.settrace(None)
    functions = sorted(f"{name.removeprefix(_SOURCE)}:{line}" for name, line in _functions.copy())
    if item.session.testsfailed == failures:
        _write(item.nodeid, {"seconds": time.perf_counter() - begin, "functions": functions})
