"""Ctrl-C ends the dashboard, also in the middle of an answer."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.dashboard.conftest import Stored

PROGRAM = """
import http.client, os, signal, sys, threading
from passhat.dashboard import app as server, run_summaries
from passhat.dashboard.guard import Access

asked, ended = threading.Event(), threading.Event()

def slow(_summaries, *, fresh=False):
    asked.set()
    ended.wait(60)
    return []

def request():
    there = http.client.HTTPConnection(*sock.getsockname(), timeout=60)
    there.request("GET", "/runs.json")
    there.getresponse()
    there.close()
    ended.set()  # the server gave it up: a thread cannot be

def ready():
    threading.Thread(target=request).start()
    threading.Thread(target=lambda: (asked.wait(60), os.kill(os.getpid(), signal.SIGINT))).start()

run_summaries.Summaries.all, server._GRACE_SECONDS = slow, 0.1
sock = server.listen("127.0.0.1", 0)
try:
    server.serve(sys.argv[1], Access(), sock, allow_run=False, ready=ready)
except KeyboardInterrupt:
    sys.exit(0 if asked.is_set() else "nobody asked")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_answer_that_takes_long_is_given_up_without_a_traceback(stored: Stored) -> None:
    command = [sys.executable, "-c", PROGRAM, stored.place]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
