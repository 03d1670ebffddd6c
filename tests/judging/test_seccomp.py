"""The filter's program is well formed on both machines, and every jump stays inside."""

from __future__ import annotations

import struct

import pytest

from passhat.judging.inside import seccomp


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_jump_lands_inside_and_the_end_refuses(machine: str) -> None:
    code = seccomp.program_for(1234, machine)
    steps = list(struct.iter_unpack("HBBI", code))
    assert len(steps) < 4096
    for at, (operation, yes, no, _) in enumerate(steps):
        if operation in (0x15, 0x35, 0x45):
            assert at + 1 + max(yes, no) < len(steps)
    assert steps[-1] == (0x06, 0, 0, 0x00050001)


@pytest.mark.parametrize(
    ("machine", "number", "arguments", "allowed"),
    [
        ("x86_64", 0, (), True),  # read
        ("x86_64", 57, (), False),  # fork
        ("x86_64", 59, (), False),  # execve
        ("x86_64", 41, (), False),  # socket
        ("x86_64", 56, (0x10F00,), True),  # clone of a thread
        ("x86_64", 56, (17,), False),  # clone of a process
        ("x86_64", 56, (0x11F00,), False),  # clone of a thread with a pidfd, whose number counts
        ("x86_64", 55, (3, 1, 4), True),  # getsockopt SO_ERROR
        ("x86_64", 55, (3, 1, 57), False),  # SO_COOKIE
        ("x86_64", 55, (3, 1, 71), False),  # SO_NETNS_COOKIE
        ("aarch64", 209, (3, 1, 77), False),  # SO_PEERPIDFD
        ("x86_64", 62, (1234, 15), True),  # kill oneself
        ("x86_64", 62, (1234, 9), False),
        ("x86_64", 62, (1, 15), False),
        ("x86_64", 72, (3, 8), False),  # fcntl F_SETOWN
        ("x86_64", 0x40000000, (), False),  # the x32 way in
        ("aarch64", 63, (), True),
        ("aarch64", 220, (17,), False),
        ("aarch64", 221, (), False),
        ("aarch64", 198, (), False),
        ("aarch64", 129, (1, 9), False),
        ("aarch64", 261, (1,), False),  # prlimit of another
        ("aarch64", 117, (), False),  # ptrace
    ],
)
def test_what_the_filter_decides(
    machine: str, number: int, arguments: tuple[int, ...], allowed: bool
) -> None:
    architecture = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[machine]
    given = struct.pack("IIQ6Q", number, architecture, 0, *(*arguments, *[0] * 6)[:6])
    assert (_run(seccomp.program_for(1234, machine), given) == 0x7FFF0000) is allowed


def test_another_architecture_is_killed() -> None:
    given = struct.pack("IIQ6Q", 0, 0x40000003, 0, *[0] * 6)
    assert _run(seccomp.program_for(1, "x86_64"), given) == 0x80000000


def _run(code: bytes, given: bytes) -> int:
    """A BPF machine, as far as the filter needs one."""
    steps = list(struct.iter_unpack("HBBI", code))
    at = word = 0
    while True:
        operation, yes, no, value = steps[at]
        at += 1
        if operation == 0x20:
            (word,) = struct.unpack_from("I", given, value)
        elif operation == 0x06:
            return int(value)
        else:
            tests = {0x15: word == value, 0x35: word >= value, 0x45: word & value}
            at += yes if tests[operation] else no
