"""Whether a runner that claimed attempts is still there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from passhat.integrations.inspect.inspect_suite import is_gone, this_owner


def test_this_process_is_there() -> None:
    assert not is_gone(this_owner())
    assert is_gone(f"{socket.gethostname()}/{os.getpid()}/0")  # the same number, used again
    assert not is_gone("elsewhere/1/1")


@pytest.mark.skipif(sys.platform != "linux", reason="the state of a process is read from /proc")
def test_a_process_that_ended_is_gone_before_anybody_asked_about_it() -> None:
    process = subprocess.Popen(["true"])
    try:
        start = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(f"{socket.gethostname()}/{process.pid}/{start}")
    finally:
        process.wait()
