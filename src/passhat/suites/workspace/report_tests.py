"""A plug-in of pytest that reports every test to the judge, over a socket, as it ends.

Copied into the sandbox under a name that the code under test does not know. What was reported
cannot be taken back, and a report without its end is none. Controls are tests that must fail: code
that makes pytest, ``assert`` or ``unittest`` accept anything makes them pass.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

_ADDRESS = os.environ.get("PASSHAT_REPORT", "")
_CONTROLS = str(Path(__file__).absolute().with_name(f"controls_{__name__.rpartition('_')[2]}.py"))


def _fail() -> None:
    values = [1]
    assert values == [2]


class _Reporter:
    def __init__(self, is_worker: bool) -> None:
        self._is_worker = is_worker
        self._controls: set[int] = set()
        self._socket = socket.socket(socket.AF_UNIX)
        # The path of a socket may have 107 bytes; one below the descriptor table is short.
        folder = os.open(Path(_ADDRESS).parent, os.O_PATH | os.O_CLOEXEC)
        self._socket.connect(f"/proc/self/fd/{folder}/{Path(_ADDRESS).name}")
        os.close(folder)
        self._send = self._socket.sendall
        self._dumps = json.dumps
        self._tell({"begin": not is_worker})

    def _tell(self, message: dict[str, Any]) -> None:
        self._send(self._dumps(message).encode() + b"\n")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> Any:
        controls = [item for item in items if str(item.path) == _CONTROLS]
        items[:] = [item for item in items if str(item.path) != _CONTROLS]
        yield
        # Last, and whatever -k or --deselect leave. Some are in the tests' own files: code that
        # spares other files than those is found as well.
        items.extend([*controls, *self._add_controls(items)])

    def _add_controls(self, items: list[Any]) -> list[Any]:
        modules = {str(item.path): item.getparent(pytest.Module) for item in items}
        found = [module for module in modules.values() if module is not None]
        new = [
            pytest.Function.from_parent(module, name=f"test_{os.urandom(6).hex()}", callobj=_fail)
            for module in found
        ]
        self._controls |= set(map(id, new))
        return new

    def _is_control(self, item: Any) -> bool:
        return str(item.path) == _CONTROLS or id(item) in self._controls

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        outcome = yield
        if not self._is_control(item):
            return
        report = outcome.get_result()
        report.is_control = True
        if call.when == "call":
            self._tell({"control": item.name, "outcome": report.outcome})
            report.outcome, report.longrepr = "passed", None

    def pytest_runtest_logreport(self, report: Any) -> None:
        if self._is_worker or getattr(report, "is_control", False):
            return
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "skipped" if outcome == "skipped" else "failed"
        if report.when == "call" or outcome != "passed":
            self._tell({"test": report.nodeid, "outcome": outcome, "when": report.when})

    def pytest_collectreport(self, report: Any) -> None:
        if not self._is_worker and report.failed:
            self._tell({"test": report.nodeid, "outcome": "failed", "when": "collect"})

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._tell({"end": int(exitstatus)})
        self._socket.close()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: Any) -> None:
    """Connect to the judge and add the controls."""
    if not _ADDRESS or config.option.collectonly:
        return
    config.pluginmanager.register(_Reporter(hasattr(config, "workerinput")), "report_" + __name__)
    if _CONTROLS not in config.args:
        config.args.append(_CONTROLS)
