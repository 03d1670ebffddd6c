"""State that all pages share, the request of a page, and the forms of its response."""

from __future__ import annotations

import asyncio
import csv
import io
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.responses import HTMLResponse, JSONResponse, Response

from passhat._display import counted, csv_cell, number, percent
from passhat._serialize import as_json
from passhat._version import __version__
from passhat.dashboard.commands import Commands
from passhat.dashboard.formatting import (
    address,
    cost_text,
    day,
    dots,
    interval_percent,
    seconds_text,
    visible,
)
from passhat.dashboard.guard import Access, NotFound
from passhat.dashboard.run_snapshots import RunSnapshots
from passhat.dashboard.run_summaries import Summaries, Summary
from passhat.errors import InvalidValue, PasshatError
from passhat.reporting.html.blocks import template_environment
from passhat.stats.outcomes import Verdict
from passhat.store.queries import AttemptLine, Reading

if TYPE_CHECKING:
    from jinja2 import Environment


_WAIT_SECONDS = 0.5
"""How long closing may have to wait for the look-out."""
_AWAY_SECONDS = 1.0
_LOOK_ANYWAY_SECONDS = 15.0
"""Some writers send no notification: an older passhat, or a person at the database."""


class ChangeFeed:
    """Waits for changes of the store in a thread; an unavailable store is retried."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._lock = threading.Lock()
        self._pages: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def page(self) -> Iterator[asyncio.Event]:
        """An event for one open page, set after every possible write, and at first."""
        woken = asyncio.Event()
        woken.set()
        with self._lock:
            self._pages[woken] = asyncio.get_running_loop()
            if self._thread is None and not self._over.is_set():
                self._thread = threading.Thread(target=self._keep, daemon=True, name="news")
                self._thread.start()
        try:
            yield woken
        finally:
            with self._lock:
                del self._pages[woken]

    def close(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _keep(self) -> None:
        last_look = time.monotonic()
        while not self._over.is_set():
            try:
                came = self._reading.wait(_WAIT_SECONDS)
            except PasshatError:
                # The first wait that succeeds again reports a possible change.
                self._over.wait(_AWAY_SECONDS)
                continue
            if came or time.monotonic() - last_look >= _LOOK_ANYWAY_SECONDS:
                last_look = time.monotonic()
                self._wake()

    def _wake(self) -> None:
        with self._lock:
            for woken, loop in self._pages.items():
                with suppress(RuntimeError):  # its loop was closed a moment ago
                    loop.call_soon_threadsafe(woken.set)


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request: path parameters, query, and form of the response.

    ``part`` names a part of the page when only that is to be drawn again.
    """

    path: Mapping[str, str]
    query: QueryParams
    form: str = "html"

    @property
    def part(self) -> str:
        return self.query.get("part", "")

    def text(self, name: str, default: str = "") -> str:
        return self.query.get(name, default).strip()

    def texts(self, name: str) -> list[str]:
        """Every value of a field that may be repeated, without empty values."""
        return [value.strip() for value in self.query.getlist(name) if value.strip()]

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """The value of a field with fixed choices; the first choice by default."""
        value = self.text(name) or choices[0]
        if value not in choices:
            raise InvalidValue(f"{name} is one of {', '.join(choices)}, not {value!r}.")
        return value

    def number(self, name: str, default: float | None = None) -> float | None:
        value = self.text(name)
        if not value:
            return default
        try:
            return float(value)
        except ValueError:
            raise InvalidValue(f"{name} should be a number, not {value!r}.") from None

    def whole(self, name: str, default: int) -> int:
        value = self.text(name)
        if value and not (value.isascii() and value.isdigit() and int(value) > 0):
            raise InvalidValue(f"{name} should be a whole number from 1 on, not {value!r}.")
        return int(value) if value else default

    def page(self, count: int, size: int) -> tuple[int, int, slice]:
        """The requested page of so many rows, the number of pages, and the rows on it."""
        pages = max(1, -(-count // size))
        page = min(self.whole("page", 1), pages)
        return page, pages, slice((page - 1) * size, page * size)


@dataclass(frozen=True, slots=True)
class Html:
    """A page, or with a template that begins with ``_`` a part of one."""

    template: str
    context: Mapping[str, object]
    status: int = 200


@dataclass(frozen=True, slots=True)
class Json:
    """The same numbers for a program."""

    data: object


@dataclass(frozen=True, slots=True)
class Csv:
    """The same numbers for a table; ``text`` when they are written already."""

    header: Sequence[str] = ()
    rows: Iterable[Sequence[object]] = ()
    text: str = ""

    @classmethod
    def of_dicts(cls, rows: Sequence[Mapping[str, object]], *header: str) -> Csv:
        """A column for every key; ``header`` where there is no row."""
        return cls([*rows[0]] if rows else header, [[*row.values()] for row in rows])


Answer = Html | Json | Csv


@dataclass(frozen=True)
class AppState:
    """Everything that views share."""

    reading: Reading
    changes: ChangeFeed
    summaries: Summaries
    snapshots: RunSnapshots
    commands: Commands
    access: Access
    allow_run: bool

    def find_attempt(
        self, path: Mapping[str, object]
    ) -> tuple[Summary, AttemptLine, tuple[str, int]]:
        """The attempt that an address names, with its run, its task and its number."""
        summary = self.summaries.find(str(path["run"]))
        task, number = str(path["task"]), int(str(path["number"]))
        key = self.reading.task_key(summary.head.key, task)
        line = self.reading.line(summary.head.key, (key, number)) if key is not None else None
        if line is None:
            raise NotFound(f"run {summary.id} has no finished attempt {task}#{number}.")
        return summary, line, (task, number)

    def attempted_runs(self, most: int) -> list[Summary]:
        """The newest runs that have an attempt."""
        return [summary for summary in self.summaries.all() if summary.counts.attempts][:most]

    def close(self) -> None:
        self.commands.close()
        self.changes.close()
        self.snapshots.close()
        self.reading.close()

    @cached_property
    def templates(self) -> Environment:
        environment = template_environment("passhat.dashboard", "templates", _harmless)
        environment.globals |= {
            "state": self,
            "passhat_version": __version__,
            "address": address,
            "Verdict": Verdict,
        }
        environment.filters |= {
            "number": number,
            "percent": percent,
            "interval_percent": interval_percent,
            "counted": counted,
            "cost": cost_text,
            "seconds": seconds_text,
            "day": day,
            "dots": dots,
        }
        return environment


def _harmless(value: Any) -> Any:
    """Every text that a template prints: escaped by autoescape, and without steering characters."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def answer(state: AppState, result: Answer) -> Response:
    """The answer as it is sent."""
    if isinstance(result, Json):
        return _Json(result.data)
    if isinstance(result, Csv):
        return Response(result.text or _csv_text(result), media_type="text/csv; charset=utf-8")
    text = state.templates.get_template(result.template).render(result.context)
    return HTMLResponse(text, status_code=result.status)


class _Json(JSONResponse):
    """As the command line prints it."""

    def render(self, content: Any) -> bytes:
        return as_json(content).encode()


def _csv_text(table: Csv) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.header)
    writer.writerows([csv_cell(cell) for cell in row] for row in table.rows)
    return out.getvalue()
