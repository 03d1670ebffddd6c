"""The judge's end of a container: a fork server's socket, replaced by two pipes.

Descriptors cannot be passed into a container. So files are sent, and the data of a stream
is passed on piece by piece; ``inside.relay`` is the other end.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading

from passhat.judging.inside import relay, wire

_CHUNK = 1 << 16
_TICK_MS = 100


class Bridge:
    """Threads that take the part of a fork server on ``control`` until either side has gone.

    It takes over ``control``, the end that a fork server would have, and the pipes to and from
    the container, which is sent the bytes ``first`` before all others.
    """

    def __init__(self, control: socket.socket, writing: int, reading: int, first: bytes) -> None:
        self._control = control
        self._writing, self._reading = writing, reading
        self._first = first
        self._stream = -1
        self._replacing = threading.Lock()
        self._prints = False
        self._discarding = False
        self._threads = [
            threading.Thread(target=self._run_thread, args=(work,), daemon=True)
            for work in (self._outward, self._inward)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Wait for the threads, whose other ends have gone, and close everything."""
        self._discarding = True
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._control.close()
        for descriptor in (self._writing, self._reading, self._stream):
            if descriptor >= 0:
                os.close(descriptor)
        self._writing = self._reading = self._stream = -1

    def _run_thread(self, work: object) -> None:
        assert callable(work)
        with contextlib.suppress(wire.Closed, wire.Malformed, OSError):
            work()
        # One direction alone is of no use: the judge is to see that the sandbox has gone.
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._discarding = True
        self._end_stream()  # nor may the tests wait for a program that has gone

    # -- to the container ------------------------------------------------------------------------

    def _outward(self) -> None:
        wire.write_all(self._writing, self._first)
        relay.send_part(self._writing, relay.WORD, wire.frame(self._frame()))  # the set-up
        waiting = select.poll()
        control = self._control.fileno()
        waiting.register(control, select.POLLIN)
        stream = -1
        while True:
            ready = {descriptor for descriptor, _ in waiting.poll()}
            if stream in ready:
                if not self._pass_on(stream):
                    waiting.unregister(stream)
                    stream = -1
            elif control in ready:
                header, descriptors, _, _ = socket.recv_fds(self._control, 1, 4)
                if not header:
                    return
                if header != b"+":
                    self._discarding = True
                    relay.send_part(self._writing, relay.WORD, header)
                    continue
                if stream >= 0:
                    waiting.unregister(stream)
                stream = self._begin(descriptors)
                if stream >= 0:
                    waiting.register(stream, select.POLLIN)

    def _frame(self) -> bytes:
        return wire.receive_bytes(self._control.fileno())

    def _begin(self, descriptors: list[int]) -> int:
        """Send a job; the stream to read the program's input from, or -1 if there is none."""
        *files, stream = descriptors
        os.set_blocking(stream, False)
        with self._replacing:
            if self._stream >= 0:
                os.close(self._stream)
            self._stream, self._discarding = stream, False
            self._prints = len(files) > 1  # a script; it is given its input as a second file
        for descriptor in files:
            with os.fdopen(descriptor, "rb") as file:
                relay.send_part(self._writing, relay.FILE, file.read())
        kind = b"s" if self._prints else b"t"
        relay.send_part(self._writing, relay.JOB, kind + wire.frame(self._frame()))
        return -1 if self._prints else stream

    def _pass_on(self, stream: int) -> bool:
        try:
            content = os.read(stream, _CHUNK)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            content = b""
        relay.send_part(self._writing, relay.DATA if content else relay.END, content)
        return bool(content)

    # -- from the container ----------------------------------------------------------------------

    def _inward(self) -> None:
        while True:
            tag, content = relay.receive_part(self._reading)
            if tag == relay.REPORT:
                wire.send_bytes(self._control.fileno(), content)
            elif tag == relay.DATA:
                self._write(content)
            elif tag == relay.END:
                self._end_stream()

    def _write(self, content: bytes) -> None:
        """Pass on the program's output, unless no reader is left."""
        left = memoryview(content)
        waiting = select.poll()
        waiting.register(self._stream, select.POLLOUT)
        while left and not self._discarding:
            if not waiting.poll(_TICK_MS):
                continue
            try:
                left = left[os.write(self._stream, left) :]
            except BlockingIOError:
                continue
            except OSError:
                return

    def _end_stream(self) -> None:
        """Close the program's end of the stream, so that its reader sees the end."""
        with self._replacing:
            if self._stream < 0:
                return
            if self._prints:
                # A pipe has nothing but the closing of its last descriptor to say so.
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, self._stream)
                os.close(nothing)
                return
            with (
                contextlib.suppress(OSError),
                socket.socket(socket.AF_UNIX, fileno=os.dup(self._stream)) as twin,
            ):
                twin.shutdown(socket.SHUT_RDWR)
