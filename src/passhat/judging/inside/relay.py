"""The relay in a container, where no descriptor can be passed: it forwards for both sides.

It is the first process there. Parts arrive on standard input and leave on standard output; beside
it runs the fork server, which notices no difference. One job is under way at a time, with one
stream: the channel between program and tests, or what a script prints.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import socket
import struct
import threading
from typing import Optional

from . import examine, server, wire  # noqa: F401 - now: the archive goes

FILE, JOB, WORD, DATA, END, REPORT = b"f", b"j", b"w", b"d", b"e", b"r"
"""A file of the next job; the job; a word to the fork server; the stream and its end; a report."""

_HEADER = struct.Struct("!cI")
_MOST = wire.MAX_FRAME + 1024
_CHUNK = 1 << 16
_PR_SET_DUMPABLE = 4


def send_part(descriptor: int, tag: bytes, content: bytes = b"") -> None:
    """Write one part."""
    wire.write_all(descriptor, _HEADER.pack(tag, len(content)) + content)


def receive_part(descriptor: int) -> tuple[bytes, bytes]:
    """Read one part."""
    tag, size = _HEADER.unpack(wire.exactly(descriptor, _HEADER.size))
    if size > _MOST:
        raise wire.Malformed(f"a part of {size:,} bytes")
    return tag, wire.exactly(descriptor, size)


def main() -> None:
    """Start the fork server and forward its messages until either side has gone."""
    # No process of the same user may look into this process or the server, by /proc or otherwise.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    os.environ.clear()
    mine, theirs = socket.socketpair()
    if os.fork() == 0:
        mine.close()
        os.dup2(theirs.fileno(), 0)
        theirs.close()
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 1)
        os.close(nothing)
        if server.main():
            return
        os._exit(0)
    theirs.close()
    relay = _Relay(mine)
    threading.Thread(target=relay.inward, daemon=True).start()
    with contextlib.suppress(wire.Closed, OSError):
        relay.outward()
    os._exit(0)  # the first process: the kernel ends all others with it


class _Relay:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._stream: Optional[int] = None  # noqa: UP045 - Python 3.9
        self._files: list[bytes] = []
        self._woken, self._wake = os.pipe()

    # -- from the judge --------------------------------------------------------------------------

    def inward(self) -> None:
        """Forward messages from standard input."""
        try:
            while True:
                tag, content = receive_part(0)
                if tag == FILE:
                    self._files.append(content)
                elif tag == JOB:
                    self._begin(content)
                elif tag == WORD:
                    self._control.sendall(content)
                elif self._stream is not None:
                    self._feed(tag, content)
        except BaseException:
            os._exit(0)  # the judge has gone, and so must everything here

    def _begin(self, job: bytes) -> None:
        if self._stream is not None:
            os.close(self._stream)
        if job[:1] == b"s":  # a script prints; the others talk
            self._stream, live = os.pipe()
        else:
            mine, theirs = socket.socketpair()
            self._stream, live = mine.detach(), theirs.detach()
        descriptors = [*map(wire.memory_file, self._files), live]
        self._files = []
        # Before the job begins: its report must not be seen before its stream is. What came of
        # the stream after the report would be taken for the next job's.
        os.write(self._wake, b"+")
        socket.send_fds(self._control, [b"+"], descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self._control.sendall(job[1:])

    def _feed(self, tag: bytes, content: bytes) -> None:
        assert self._stream is not None
        # The program may have gone, and its end with it.
        with contextlib.suppress(OSError, wire.Closed):
            if tag == END:
                with socket.socket(socket.AF_UNIX, fileno=os.dup(self._stream)) as twin:
                    twin.shutdown(socket.SHUT_WR)
                return
            wire.write_all(self._stream, content)

    # -- to the judge ----------------------------------------------------------------------------

    def outward(self) -> None:
        """Forward messages of the fork server and output of the program."""
        waiting = select.poll()
        control = self._control.fileno()
        for descriptor in (control, self._woken):
            waiting.register(descriptor, select.POLLIN)
        stream = -1
        while True:
            ready = {descriptor for descriptor, _ in waiting.poll()}
            if self._woken in ready:
                os.read(self._woken, 1)
                assert self._stream is not None
                stream = self._stream
                waiting.register(stream, select.POLLIN)
            elif stream in ready:
                if not self._pass_on(stream):
                    waiting.unregister(stream)
                    stream = -1
            elif control in ready:
                report = wire.receive_bytes(control)
                if stream >= 0:
                    self._drain(stream)
                    waiting.unregister(stream)
                    stream = -1
                send_part(1, REPORT, report)

    def _pass_on(self, stream: int) -> bool:
        """Forward a chunk of the program's output; false at its end."""
        try:
            content = os.read(stream, _CHUNK)
        except ConnectionResetError:
            content = b""
        send_part(1, DATA if content else END, content)
        return bool(content)

    def _drain(self, stream: int) -> None:
        """Forward all remaining output: the program is dead, so nothing more will come."""
        os.set_blocking(stream, False)
        with contextlib.suppress(BlockingIOError):
            while self._pass_on(stream):
                pass
            return
        send_part(1, END)
