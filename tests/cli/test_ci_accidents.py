"""Accidents of CI: none is green, and each says why in its first line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from passhat.cli.main import main

TASKS, ATTEMPTS = 12, 4
Row = dict[str, Any]


def rows(
    name: str = "new",
    tasks: Sequence[str] | range = range(TASKS),
    attempts: int = ATTEMPTS,
    **fields: object,
) -> list[Row]:
    """A run in which everything passed, unless ``fields`` say otherwise."""
    start = {"passed": True, "category": None, "reason": None, "suite": "shop", "judge": "exact"}
    return [
        {"run": name, "agent": "shop", "task": f"t{task}", "attempt": number + 1, **start, **fields}
        | {"seconds": 1 + 0.01 * place + (0.001 if name == "new" else 0.0)}
        for place, task in enumerate(tasks)
        for number in range(attempts)
    ]


def missing(reason: str, share: float = 1.0) -> list[Row]:
    table = rows()
    for row in table[: int(share * len(table))]:
        row |= {"passed": None, "reason": reason}
    return table


def failed(category: str, detail: str = "") -> list[Row]:
    return rows(passed=False, category=category, detail=detail)


def cut(table: list[Row]) -> str:
    """A file whose writer was killed in the middle of a line."""
    text = "\n".join(map(json.dumps, table))
    return text[: len(text) // 2]


def flaky(name: str) -> list[Row]:
    """A table of verdicts, and of nothing that would tell it from another run."""
    places = range(TASKS * ATTEMPTS * 2)
    return [
        {"model": name, "task": f"t{i % TASKS}", "attempt": i // TASKS, "passed": i * i % 7 < 4}
        for i in places
    ]


def shortened(table: list[Row]) -> list[Row]:
    """Attempts 3 and 4 of the last tasks were never made."""
    return [row for row in table if row["attempt"] <= 2 or int(row["task"][1:]) < 8]


def as_text(table: list[Row]) -> str:
    return "\n".join(map(json.dumps, table))


BASE = rows("old")
# What is wrong: the run (rows, or text), the baseline, more words, code, part of the first line.
ACCIDENTS: dict[str, tuple[object, object, str, int, str]] = {
    "nothing judged": (missing("judge_error"), BASE, "", 4, "no verdict (judge_error 48)"),
    "half judged": (missing("judge_error", 0.5), BASE, "", 4, "more than 5%"),
    "a tenth not judged": (missing("judge_error", 0.1), BASE, "", 4, "more than 5%"),
    "out of credit": (missing("account"), BASE, "", 4, "account 48"),
    "rate limit": (missing("rate_limit", 0.75), BASE, "", 4, "rate_limit 36"),
    "budget reached": (missing("budget", 0.5), BASE, "", 4, "budget 24"),
    "sandbox broken": (missing("sandbox_error"), BASE, "", 4, "sandbox_error 48"),
    "user simulator down": (missing("user_error"), BASE, "", 4, "user_error 48"),
    "network away": (missing("infrastructure"), BASE, "", 4, "infrastructure 48"),
    "warned only": (missing("judge_error"), BASE, "--unsettled pass", 4, "no verdict"),
    "crashed agent": (failed("exception", "KeyError: 'KEY'"), BASE, "", 1, "exceptions (KeyErr"),
    "all timeouts": (failed("timeout"), BASE, "", 1, "48 cut answers (timeout)"),
    "all refused": (failed("refused"), BASE, "", 1, "48 refusals"),
    "all wrong": (failed("wrong_answer"), BASE, "", 1, "Regression: pass^1 dropped"),
    "half the tasks": (rows(tasks=range(6)), BASE, "", 4, "6 planned tasks (t6, t7, t8"),
    "one task lost": (rows(tasks=range(11)), BASE, "", 4, "1 planned task (t11) is absent"),
    "one attempt instead of four": (
        rows(attempts=1),
        BASE,
        "",
        4,
        "36 planned attempts of 48 are absent (up to 1 at a task, 4 in the baseline)",
    ),
    "half the attempts": (rows(attempts=2), BASE, "", 4, "24 planned attempts of 48 are absent"),
    "rows twice": (rows() + rows(), BASE, "", 4, "48 rows of new.jsonl could not be read (trial 1"),
    "a copy of the baseline": (flaky("new"), flaky("old"), "--unsettled fail", 3, "may be a copy"),
    "a copy, reversed": (flaky("b")[::-1], flaky("old"), "--unsettled fail", 3, "may be a copy"),
    "canceled job": (shortened(rows()), BASE, "", 4, "8 planned attempts of 48 are absent"),
    "plan not reached": (rows(), BASE, "--attempts 8", 4, "planned attempts of 96 are absent"),
    "tasks not reached": (rows(), BASE, "--tasks 20", 4, "8 planned tasks are absent"),
    "wrong suite": (rows(tasks=range(50, 62)), BASE, "", 2, "no task is in both runs"),
    "another suite by name": (rows(suite="bank"), BASE, "", 2, "suite"),
    "another judge": (rows(judge="model"), BASE, "", 2, "judge"),
    "renamed tasks": (rows(tasks=["x", *range(1, TASKS)]), BASE, "", 4, "1 planned task (t0)"),
    "other temperature": (
        rows(decoding='{"temperature": 1.0}'),
        rows("old", decoding='{"temperature": 0.0}'),
        "",
        2,
        "temperature",
    ),
    "empty run": ("", BASE, "", 2, "new.jsonl"),
    "empty baseline": (rows(), "", "", 2, "old.jsonl"),
    "no run": (None, BASE, "", 2, "new.jsonl"),
    "baseline missing": (rows(), None, "", 2, "old.jsonl"),
    "baseline overwritten": (rows(), rows(), "", 2, "both the run and its baseline"),
    "file cut off": (cut(rows()), BASE, "", 4, "6 planned tasks (t6, t7, t8"),
    "an error page": ("<html><body>502 Bad Gateway</body></html>", BASE, "", 2, "new.jsonl"),
    "two runs in the file": (rows() + rows("b"), BASE, "", 2, "there are 2 runs"),
    "run by another name": (rows(), BASE, "--run nightly", 2, "no run is called 'nightly'"),
    "too few attempts": (rows(attempts=1), BASE, "--metric pass^4", 2, "pass^4"),
    "a metric that is none": (rows(), BASE, "--metric pas^1", 2, "pas^1"),
    "verdicts that are no number": (
        as_text(rows()).replace('"passed": true', '"passed": NaN'),
        BASE,
        "",
        4,
        "no verdict (not_recorded 48)",
    ),
    "all filtered": (failed("filtered"), BASE, "", 1, "48 refusals (filtered)"),
    "tasks in capitals": (
        [{**row, "task": row["task"].upper()} for row in rows()],
        BASE,
        "",
        2,
        "no task is in both runs",
    ),
    "a limit below zero": (rows(), BASE, "--max-missing -5", 2, "--max-missing"),
    "any share may be missing": (missing("account"), BASE, "--max-missing 100", 4, "no verdict"),
    "baseline not judged": (
        rows(),
        [row | {"run": "old", "seconds": 2.5} for row in missing("judge_error")],
        "--unsettled pass",
        4,
        "no attempt of the baseline",
    ),
    "baseline that never passes": (
        failed("wrong_answer"),
        rows("old", passed=False, category="wrong_answer"),
        "--unsettled fail",
        3,
        "no attempt of the baseline shop (baseline) passed",
    ),
    "a conflict in the file": (
        f"{as_text(rows())}\n<<<<<<< HEAD\n=======\n>>>>>>> x\n",
        BASE,
        "",
        4,
        "rows of new.jsonl could not be read",
    ),
    "baseline with a broken row": (rows(), f"{as_text(BASE)}\n{{", "", 4, "row of old.jsonl could"),
    "verdicts in words": ([{**row, "passed": "N/A"} for row in rows()], BASE, "", 2, "'N/A'"),
    "rewards beyond 1": ([{**row, "passed": 2} for row in rows()], BASE, "", 2, "up to 2"),
    "tasks without ids": ([{**row, "task": ""} for row in rows()], BASE, "", 2, "no task id"),
    "a pointer to the file": (
        "version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 123\n",
        BASE,
        "",
        2,
        "this is a pointer of Git LFS, not the file itself",
    ),
    "a login page as baseline": (rows(), "<html>Login</html>", "", 2, "old.jsonl"),
    "a level in percent": (rows(), BASE, "--level 95", 2, "level"),
    "everything is accepted": (rows(), BASE, "--margin 100", 2, "--margin"),
    "a rule in percent": (rows(), BASE, "pass^1>=80", 2, "a limit of 80 decides nothing"),
    "one row": (rows()[:1], BASE, "", 4, "11 planned tasks (t1, t2, t3 and 8 more) are absent"),
    "a table without verdicts": ('{"task": "a", "score_of": 1}\n', BASE, "", 2, "new.jsonl"),
}


def write(path: Path, content: object) -> None:
    if content is not None:
        path.write_text(
            content if isinstance(content, str) else "\n".join(map(json.dumps, content))  # type: ignore[call-overload]
        )


@pytest.fixture
def gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[object, object, str], tuple[int, str]]:
    """The exit code of the gate, and its first line: of the verdict, else of the error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def judge(new: object, old: object, words: str) -> tuple[int, str]:
        write(tmp_path / "new.jsonl", new)
        write(tmp_path / "old.jsonl", old)
        code = main(["gate", "new.jsonl", "--against", "old.jsonl", *words.split()])
        ended = capsys.readouterr()
        errors = [line for line in ended.err.splitlines() if not line.startswith(("Usage", "Try"))]
        return code, next(iter([*ended.out.splitlines(), *filter(None, errors)]))

    return judge


def test_there_are_enough_accidents() -> None:
    assert len(ACCIDENTS) >= 25


@pytest.mark.parametrize("name", ACCIDENTS)
def test_no_accident_is_green_and_its_first_line_says_why(
    name: str, gate: Callable[[object, object, str], tuple[int, str]]
) -> None:
    new, old, words, code, text = ACCIDENTS[name]
    ended, line = gate(new, old, words)
    assert (ended, text in line) == (code, True), f"{ended}: {line}"


def test_a_truncated_archive_is_no_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a folder with 'quotes' and spaces"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write(folder / "new.jsonl", rows())
    packed = gzip.compress("\n".join(map(json.dumps, BASE)).encode())
    (folder / "old.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    code = main(["gate", "new.jsonl", "--against", "old.jsonl.gz"])
    ended = capsys.readouterr()
    assert code in (2, 4)
    assert "old.jsonl.gz" in ended.out + ended.err
    (folder / "old.jsonl.gz").write_bytes(packed)
    assert main(["gate", str(folder / "new.jsonl"), "--against", "old.jsonl.gz"]) == 0


def test_the_same_files_without_an_accident_are_green(
    gate: Callable[[object, object, str], tuple[int, str]],
) -> None:
    assert gate(rows(), BASE, "")[0] == 0
