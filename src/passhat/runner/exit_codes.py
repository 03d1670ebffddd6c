"""A command whose exit code is the verdict, as an agent and a suite: for ``passhat bisect``.

Each attempt runs this file once, which imports nothing of passhat, and the file the command. 0
passes; 125 to 127 say that it cannot run (125 as for ``git bisect run``, 126 and 127 as for a
shell), so that no answer comes; everything else fails.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passhat.suites import Suite

_CANNOT_RUN = (125, 126, 127)
TASK = "command"


def suite() -> Suite:
    """One task: the command passes."""
    from passhat.suites.jsonl import suite_from_tasks

    return suite_from_tasks([{"id": TASK, "prompt": "Run the command.", "answer": "passed"}])


def answer(command: Sequence[str]) -> int:
    """Run a command and print its verdict as a ``command:`` agent does; returns an exit code."""
    sys.stdin.readline()
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False
        )
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    if done.returncode in _CANNOT_RUN:
        return done.returncode
    text = "passed" if done.returncode == 0 else f"failed with exit code {done.returncode}"
    sys.stdout.write(json.dumps({"text": text}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(answer(sys.argv[1:]))
