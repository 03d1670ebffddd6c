"""Leases: which runner makes an attempt right now, and until when.

Every open store that claims attempts has one lease: a random token, renewed by a heartbeat. A claim
is a row in ``attempts`` with that token. A result is written only by the holder of the claim: the
statement that writes is conditional on the token. A runner that was paused for longer than its
lease (a suspended laptop, SIGSTOP, a stalled disk) may find its claims taken over; its results are
then dropped, never mixed with another runner's.

Names of hosts and process ids play no part: containers share them, and pods change them.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from passhat.errors import InvalidValue, PasshatError

LEASE_SECONDS = 30.0
"""How long claims of a runner that gives no sign of life are kept for it.

A runner killed by force keeps its claims this long; one that ends by itself gives them back at
once. Shorter leases are lost by a process that a busy machine holds up.
"""
_SHORTEST = 1.0
_STOP_SECONDS = 2.0
_BEATS = 6
"""Renewals within one lease: five may fail before the claims are free."""


def new_token() -> str:
    """64 random bits: short, because every finished attempt keeps the token that made it."""
    return secrets.token_urlsafe(8)


@dataclass(frozen=True, slots=True)
class HeldClaims:
    """Open claims of another runner; ``beats`` counts the renewals of its lease.

    They may be taken over in ``left`` seconds, unless the lease is renewed.
    """

    token: str
    claims: int
    beats: int | None
    left: float

    @property
    def expired(self) -> bool:
        """Whether they may be taken over."""
        return self.left <= 0


@cache
def clock_id() -> str:
    """Which clock :func:`clock_now` reads: the same for all processes that can compare times.

    The clock of a boot never jumps, unlike the time of day. Where it is another machine's (or
    another time namespace's), times mean nothing, and an observer counts beats instead.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/time').readlink()}"
    except OSError:
        return secrets.token_hex(8)


def clock_now() -> float:
    """Seconds since boot, including time asleep where the system counts that."""
    # On Linux CLOCK_MONOTONIC stands still while the machine sleeps, and leases would with it.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Heartbeat:
    """Renews a lease in a thread, from the first claim until it is stopped.

    ``renew`` writes one renewal over a connection of its own, ``end`` deletes the lease and closes
    that connection. ``interrupt`` makes a renewal that does not come back fail: a network may
    swallow what is sent. ``seconds`` is how long the lease lasts without a renewal.
    """

    def __init__(
        self,
        renew: Callable[[], None],
        end: Callable[[bool], None],
        interrupt: Callable[[], None],
        seconds: float,
    ) -> None:
        if not seconds >= _SHORTEST:
            raise InvalidValue(f"a lease must last at least {_SHORTEST:g} s, not {seconds!r}.")
        self._renew = renew
        self._end = end
        self._interrupt = interrupt
        self._every = seconds / _BEATS
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to renew; the first renewal is part of the claim itself."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, daemon=True, name="lease")
            self._thread.start()

    def stop(self) -> None:
        """Give the lease back."""
        was_started = self._thread is not None
        if self._thread is not None:
            self._over.set()
            self._thread.join(_STOP_SECONDS)
            if self._thread.is_alive():  # in a renewal that does not come back
                self._interrupt()
                self._thread.join()
            self._thread = None
        # A server that is away or silent is not waited for: the lease expires by itself.
        with suppress(PasshatError), self._interrupt_after(_STOP_SECONDS):
            self._end(was_started)

    def _keep(self) -> None:
        pause = self._every
        while not self._over.wait(pause):
            try:
                with self._interrupt_after(2 * self._every):
                    self._renew()
                pause = self._every
            except PasshatError:
                pause = min(1.0, self._every)  # try again as soon as the database is back

    @contextmanager
    def _interrupt_after(self, seconds: float) -> Iterator[None]:
        """Interrupt a call that takes longer."""
        timer = threading.Timer(seconds, self._interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
