"""A command whose exit code is the verdict."""

from __future__ import annotations

import io
import json
import sys

import pytest

from passhat.runner.exit_codes import TASK, answer, suite


def _exits(code: int) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", f"raise SystemExit({code})"]


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (_exits(0), 0, "passed"),
        (_exits(1), 0, "failed with exit code 1"),
        (_exits(124), 0, "failed with exit code 124"),
        (_exits(125), 125, None),
        (_exits(127), 127, None),
        (_exits(128), 0, "failed with exit code 128"),
        (["passhat-no-such-command"], 127, None),
    ],
)
def test_the_exit_code_says_the_verdict(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    code: int,
    text: str | None,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"prompt": "Run the command."}\n'))
    assert answer(command) == code
    captured = capsys.readouterr()
    assert (json.loads(captured.out)["text"] if captured.out else None) == text
    assert ("no-such-command: No such file" in captured.err) == (command[0][:7] == "passhat")


def test_its_suite_has_one_task() -> None:
    assert [(task.id, task.prompt) for task in suite().tasks] == [(TASK, "Run the command.")]
