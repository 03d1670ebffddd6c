"""Wakes open pages when somebody wrote to the store: one look-out for all of them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from passhat.errors import PasshatError
from passhat.store.queries import Reading

__all__ = ["ChangeFeed"]

_WAIT_SECONDS = 0.5
"""How long closing may have to wait for the look-out."""
_AWAY_SECONDS = 1.0
_LOOK_ANYWAY_SECONDS = 15.0
"""Somebody may write without telling: an older passhat, or a person at the database."""


class ChangeFeed:
    """Waits in a thread of its own from the first page on; a store that is away is waited for."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._lock = threading.Lock()
        self._pages: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def page(self) -> Iterator[asyncio.Event]:
        """An event for one open page, set whenever somebody may have written, and at first."""
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
        looked = time.monotonic()
        while not self._over.is_set():
            try:
                came = self._reading.wait(_WAIT_SECONDS)
            except PasshatError:
                # The first wait that succeeds again says that something may have come.
                self._over.wait(_AWAY_SECONDS)
                continue
            if came or time.monotonic() - looked >= _LOOK_ANYWAY_SECONDS:
                looked = time.monotonic()
                self._wake()

    def _wake(self) -> None:
        with self._lock:
            for woken, loop in self._pages.items():
                with suppress(RuntimeError):  # its loop was closed a moment ago
                    loop.call_soon_threadsafe(woken.set)
