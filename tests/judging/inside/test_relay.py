"""Both ends of a container's connection, without the container: what one side sends, the other has.

The judge's end is :class:`~passhat.judging.bridge.Bridge`, the container's is ``inside.relay``; the
test is the judge on one side and the fork server on the other.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.judging.bridge import Bridge
from passhat.judging.inside import relay, server, wire
from passhat.judging.sandbox import _set_timeout

SECONDS = 30.0


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


class _Line:
    """A bridge and a relay, joined by two pipes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.judge, far = socket.socketpair()
        self.server, mine = socket.socketpair()
        for one in (self.judge, self.server):
            _set_timeout(one, SECONDS)
        stdin, to_container = os.pipe()
        from_container, stdout = os.pipe()
        receive, send = relay.receive_part, relay.send_part
        monkeypatch.setattr(relay, "receive_part", lambda at: receive(at or stdin))
        monkeypatch.setattr(
            relay, "send_part", lambda at, *part: send(stdout if at == 1 else at, *part)
        )
        self.exits: list[int] = []
        monkeypatch.setattr(os, "_exit", self._exit)
        self.bridge = Bridge(far, to_container, from_container, b"archive")
        wire.send(self.judge.fileno(), {"set": "up"})
        assert wire.exactly(stdin, 7) == b"archive"
        self._relay = relay._Relay(mine)
        self._mine, self._stdin, self._stdout = mine, stdin, stdout
        self._threads = [threading.Thread(target=work) for work in (self._inward, self._outward)]
        for thread in self._threads:
            thread.start()

    def _exit(self, status: int) -> None:
        self.exits.append(status)
        raise SystemExit

    def _inward(self) -> None:
        with suppress(SystemExit):
            self._relay.inward()

    def _outward(self) -> None:
        with suppress(wire.Closed, OSError):
            self._relay.outward()

    def submit(self, files: list[bytes], stream: int, job: object) -> tuple[list[bytes], int]:
        """A job of the judge: its files and its stream, as they reach the server."""
        ours = [wire.memory_file(content) for content in files]
        socket.send_fds(self.judge, [b"+"], [*ours, stream])
        wire.send(self.judge.fileno(), job)
        for descriptor in ours:
            os.close(descriptor)
        header, (*theirs, live), _, _ = socket.recv_fds(self.server, 1, 8)
        assert header == b"+"
        assert wire.receive(self.server.fileno()) == job
        contents = [wire.read_all(descriptor) for descriptor in theirs]
        for descriptor in theirs:
            os.close(descriptor)
        return contents, live

    def report(self, words: str) -> object:
        """A report of the server, as it reaches the judge."""
        wire.send(self.server.fileno(), words)
        return wire.receive(self.judge.fileno())

    def close(self) -> None:
        """End as a container does: with the relay, its pipe ends, and so does the bridge."""
        self.judge.close()
        self.server.close()
        inward, outward = self._threads
        outward.join(SECONDS)
        os.close(self._stdout)
        self.bridge.close()
        inward.join(SECONDS)
        assert not any(thread.is_alive() for thread in self._threads)
        self._mine.close()
        stream = [] if self._relay._stream is None else [self._relay._stream]
        for descriptor in (self._stdin, self._relay._woken, self._relay._wake, *stream):
            os.close(descriptor)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Line]:
    before = _descriptors()
    made = _Line(monkeypatch)
    yield made
    made.close()
    assert made.exits == [0]  # once the judge has gone, everything there ends
    assert _descriptors() == before


def test_the_set_up_words_and_reports_go_through(line: _Line) -> None:
    assert wire.receive(line.server.fileno()) == {"set": "up"}
    assert line.report("ready") == "ready"
    for word in (b"-", b"?", b"w"):
        line.judge.send(word)
        assert line.server.recv(8) == word


def _judge_over_channel(line: _Line, number: int) -> None:
    near, far = socket.socketpair()
    _set_timeout(near, SECONDS)
    with near, far:
        files, live = line.submit([b"brief %d" % number], far.fileno(), {"kind": "tests"})
        far.close()
        assert files == [b"brief %d" % number]
        with socket.socket(fileno=live) as program:
            _set_timeout(program, SECONDS)
            near.sendall(b"question")
            assert program.recv(99) == b"question"
            program.sendall(b"answer")
            assert near.recv(99) == b"answer"
            much = bytes(range(256)) * 800
            threading.Thread(target=near.sendall, args=(much,)).start()
            assert wire.exactly(program.fileno(), len(much)) == much
            threading.Thread(target=program.sendall, args=(much,)).start()
            assert wire.exactly(near.fileno(), len(much)) == much
            near.shutdown(socket.SHUT_WR)
            assert program.recv(99) == b""
            program.sendall(b"last")
        assert line.report(f"ended {number}") == f"ended {number}"
        assert wire.read_all(near.fileno()) == b"last"


def test_channels_of_several_jobs_are_kept_apart(line: _Line) -> None:
    wire.receive(line.server.fileno())
    for number in range(3):
        _judge_over_channel(line, number)


def _script(line: _Line, given: bytes) -> tuple[int, int]:
    """Where a script's output comes, and where it prints."""
    reading, writing = os.pipe()
    files, live = line.submit([b"script", given], writing, {"kind": "script"})
    os.close(writing)
    assert files == [b"script", given]
    return reading, live


def test_what_scripts_print_is_there_before_their_report(line: _Line) -> None:
    wire.receive(line.server.fileno())
    for number in range(2):
        reading, live = _script(line, b"given %d" % number)
        os.write(live, b"one\n")
        assert os.read(reading, 99) == b"one\n"
        os.write(live, b"two\n")
        if number:  # it has closed its output and goes on
            os.close(live)
            assert wire.read_all(reading) == b"two\n"
        assert line.report("over") == "over"
        if not number:  # a process that it left has it open
            assert wire.read_all(reading) == b"two\n"
            os.close(live)
        os.close(reading)


def test_a_script_is_ended_though_its_output_is_not_read(line: _Line) -> None:
    wire.receive(line.server.fileno())
    reading, live = _script(line, b"")
    for _ in range(4):
        os.write(live, bytes(1 << 16))  # the pipes on the way hold some of it
    line.judge.send(b"-")
    assert line.server.recv(1) == b"-"
    os.close(live)
    assert line.report("stopped") == "stopped"
    os.close(reading)
    # The next one prints again.
    reading, live = _script(line, b"")
    os.write(live, b"yes")
    assert os.read(reading, 99) == b"yes"
    os.close(reading)
    os.write(live, b"too late")
    os.close(live)
    assert line.report("ended") == "ended"


def test_an_input_to_a_program_that_has_gone_is_dropped(line: _Line) -> None:
    wire.receive(line.server.fileno())
    near, far = socket.socketpair()
    with near, far:
        _, live = line.submit([b"brief"], far.fileno(), {"kind": "tests"})
        far.close()
        os.close(live)
        assert wire.read_all(near.fileno()) == b""
        with suppress(OSError):
            near.sendall(b"question")
            near.shutdown(socket.SHUT_WR)
        assert line.report("gone") == "gone"
    _judge_over_channel(line, 2)


def test_a_container_that_is_gone_ends_the_judges_side() -> None:
    judge, far = socket.socketpair()
    stdin, to_container = os.pipe()
    from_container, stdout = os.pipe()
    bridge = Bridge(far, to_container, from_container, b"")
    near, program = socket.socketpair()
    brief = wire.memory_file(b"brief")
    with judge, near, program:
        _set_timeout(judge, SECONDS)
        _set_timeout(near, SECONDS)
        wire.send(judge.fileno(), "set-up")
        assert relay.receive_part(stdin) == (relay.WORD, wire.frame(b'"set-up"'))
        socket.send_fds(judge, [b"+"], [brief, program.fileno()])
        wire.send(judge.fileno(), "job")
        assert relay.receive_part(stdin) == (relay.FILE, b"brief")
        assert relay.receive_part(stdin) == (relay.JOB, b"t" + wire.frame(b'"job"'))
        program.close()
        os.close(stdout)
        assert judge.recv(1) == b""
        assert near.recv(1) == b""  # the tests do not wait for it either
        bridge.close()
    os.close(brief)
    os.close(stdin)
    assert (bridge._writing, bridge._reading, bridge._stream) == (-1, -1, -1)


@pytest.mark.parametrize("most", [3, 4])
def test_a_part_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(relay, "_MOST", most)
    reading, writing = os.pipe()
    try:
        relay.send_part(writing, relay.DATA, b"four")
        if most == 4:
            assert relay.receive_part(reading) == (relay.DATA, b"four")
        else:
            with pytest.raises(wire.Malformed, match="a part of 4 bytes"):
                relay.receive_part(reading)
    finally:
        os.close(reading)
        os.close(writing)


class _Exited(BaseException):
    """The process has ended itself."""


class _Calls:
    """Stands for all that the first process of a container uses, and notes it."""

    def __init__(self, is_child: bool, was_script: bool) -> None:
        self.log: list[str] = []
        self.os = SimpleNamespace(
            **{name: self.note(name) for name in ("dup2", "close")},
            fork=self.note("fork", 0 if is_child else 5),
            open=self.note("open", 9),
            _exit=self.note("exit", _Exited()),
            environ=SimpleNamespace(clear=self.note("clear")),
            devnull="null",
            O_RDWR=2,
        )
        libc = SimpleNamespace(prctl=self.note("prctl"))
        self.ctypes = SimpleNamespace(CDLL=lambda _: libc)
        self.socket = SimpleNamespace(socketpair=lambda: (self.end("mine", 7), self.end("far", 8)))
        self.threading = SimpleNamespace(Thread=self.thread)
        self.serve = self.note("server", was_script)

    def note(self, name: str, result: object = None) -> Any:
        def call(*words: object) -> object:
            self.log.append(f"{name}{words}")
            if isinstance(result, BaseException):
                raise result
            return result

        return call

    def end(self, name: str, number: int) -> Any:
        return SimpleNamespace(close=self.note(f"close {name}"), fileno=lambda: number, name=name)

    def thread(self, target: Any, daemon: bool) -> Any:
        self.log.append(f"thread {target}, daemon {daemon}")
        return SimpleNamespace(start=self.note("start"))

    def relay(self, control: Any) -> Any:
        self.log.append(f"relay of {control.name}")
        return SimpleNamespace(inward="inward", outward=self.note("outward", wire.Closed()))


@pytest.mark.parametrize("is_child", [False, True])
@pytest.mark.parametrize("was_script", [False, True])
def test_the_first_process_starts_the_server_and_forwards(
    monkeypatch: pytest.MonkeyPatch, is_child: bool, was_script: bool
) -> None:
    calls = _Calls(is_child, was_script)
    for name in ("os", "ctypes", "socket", "threading"):
        monkeypatch.setattr(relay, name, getattr(calls, name))
    monkeypatch.setattr(relay, "_Relay", calls.relay)
    monkeypatch.setattr(server, "main", calls.serve)
    expected = ["prctl(4, 0, 0, 0, 0)", "clear()", "fork()"]
    if is_child:
        expected += ["close mine()", "dup2(8, 0)", "close far()", "open('null', 2)", "dup2(9, 1)"]
        expected += ["close(9,)", "server()"]
    else:
        expected += ["close far()", "relay of mine", "thread inward, daemon True", "start()"]
        expected += ["outward()"]
    if is_child and was_script:  # the interpreter ends as after a script
        relay.main()
    else:
        expected.append("exit(0,)")
        with pytest.raises(_Exited):
            relay.main()
    assert calls.log == expected
