"""A pytest plug-in: which functions of the package each test calls, for ``tools/mutate.py``.

Load it with ``-p trace_tests`` and name the file to write in ``TRACE_TESTS``. Only calls inside the
test process are seen; code that tests run in other processes is not.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

__all__ = ["pytest_runtest_protocol", "pytest_sessionfinish"]

_SOURCE = f"{Path(os.environ.get('TRACE_SOURCE', 'src')).resolve()}{os.sep}"
_calls: dict[str, dict[str, Any]] = {}
_functions: set[tuple[str, int]] = set()


def _note_call(frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG001
    code = frame.f_code
    if code.co_filename.startswith(_SOURCE):
        _functions.add((code.co_filename, code.co_firstlineno))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Collect the functions that are called by a test, its set-up and its clean-up."""
    _functions.clear()
    threading.settrace(_note_call)
    sys.settrace(_note_call)
    begin = time.perf_counter()
    try:
        yield
    finally:
        sys.settrace(None)
        threading.settrace(None)
    functions = sorted(f"{name.removeprefix(_SOURCE)}:{line}" for name, line in _functions.copy())
    _calls[item.nodeid] = {"seconds": time.perf_counter() - begin, "functions": functions}


def pytest_sessionfinish() -> None:
    """Write what was collected."""
    Path(os.environ["TRACE_TESTS"]).write_text(json.dumps(_calls), encoding="utf-8")
