"""JUnit reports with a suite for each agent, and with skipped tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from passhat import read
from passhat.errors import PasshatError, ReadError


def _report(suites: dict[str, dict[str, str]]) -> str:
    inner = "".join(
        f'<testsuite name="{name}">'
        + "".join(f'<testcase name="{test}">{end}</testcase>' for test, end in tests.items())
        + "</testsuite>"
        for name, tests in suites.items()
    )
    return f"<?xml version='1.0'?>\n<testsuites>{inner}</testsuites>\n"


_FAILURE, _SKIPPED = '<failure message="no"/>', '<skipped message="sandbox down"/>'


@pytest.mark.parametrize(
    ("suites", "expected"),
    [
        (
            {"x": {"a": "", "b": _FAILURE}, "y": {"a": "", "b": _SKIPPED}},
            {"x": (2, 1, 0), "y": (1, 1, 1)},
        ),
        ({"x": {"a": "", "b": _FAILURE}, "y": {"c": "", "d": ""}}, {"report": (4, 3, 0)}),
        (  # the number of a trial is all that tells them apart
            {"gpt_trial-1": {"a": "", "b": _FAILURE}, "gpt_trial-2": {"a": "", "b": ""}},
            {"report": (4, 3, 0)},
        ),
        (
            {"x trial 1": {"a": "", "b": ""}, "y trial 2": {"a": "", "b": _FAILURE}},
            {"x trial 1": (2, 2, 0), "y trial 2": (2, 1, 0)},
        ),
    ],
)
def test_suites_with_the_same_tests_are_runs(
    tmp_path: Path, suites: dict[str, dict[str, str]], expected: dict[str, tuple[int, int, int]]
) -> None:
    path = tmp_path / "report.xml"
    path.write_text(_report(suites), encoding="utf-8")
    runs = read(path)
    found = {r.name: (r.outcomes.scored, r.outcomes.passes, r.outcomes.total_missing) for r in runs}
    assert found == expected
    assert any("a run each" in line for line in runs[0].decisions) == (len(expected) > 1)


@pytest.mark.parametrize(("ids", "tasks"), [("run{}", 1), ("trial-{}", 1), ("{}", 2)])
def test_a_parameter_may_number_the_attempts(tmp_path: Path, ids: str, tasks: int) -> None:
    """A bare number may be that of a case: it stays a test of its own, and the reading says so."""
    cases = "".join(f'<testcase name="test_pay[{ids.format(n)}]"/>' for n in (0, 1))
    path = tmp_path / "r.xml"
    path.write_text(f"<testsuite>{cases}</testsuite>", encoding="utf-8")
    (run,) = read(path)
    assert len(run.outcomes) == tasks
    assert any("different tests" in line for line in run.decisions) == (tasks == 2)


_TESTS = [
    ("parse json", 1, "ok"),
    ("parse json", 2, "not ok"),
    ("sort", 1, "ok"),
    ("sort", 2, "ok"),
]
_TAP_NAMES = [
    "{model}: {task} (attempt {k})",
    "{task} [{model}] run {k}",
    "{model} > {task} #{k}",
    "[{model}] {task}",
    "{model} {task} run {k} in 12ms",
]


def _figures(path: Path) -> dict[str, tuple[int, int, int, int]]:
    counts = {}
    for run in read(path):
        table = run.outcomes
        counts[run.agent] = (len(table), table.passes, table.scored, table.total_missing)
    return counts


@pytest.mark.parametrize("form", _TAP_NAMES)
def test_tap_names_model_task_and_attempt(tmp_path: Path, form: str) -> None:
    names = [
        (word, form.format(model=model, task=task, k=k))
        for model in ("gpt-4", "claude-3")
        for task, k, word in _TESTS
    ]
    lines = [f"{word} {n} - {name}" for n, (word, name) in enumerate(names, 1)]
    lines[1] += "\n  ---\n  message: 'ok 9 - wrong stdout'\n  ..."
    lines[4] += " # SKIP container pull failed"
    path = tmp_path / "shell.tap"
    path.write_text("\n".join(["TAP version 13", *lines, "1..9"]))
    assert _figures(path) == {"gpt-4": (2, 3, 4, 0), "claude-3": (2, 2, 3, 1)}
    assert "1 of 9 planned tests are not in the file" in read(path)[0].decisions[0]


def _write_subtests(path: Path, groups: tuple[str, ...], form: str) -> Path:
    lines = ["TAP version 14"]
    for number, group in enumerate(groups, 1):
        lines.append(f"# Subtest: {group}")
        lines += [
            f"    {word} {n} - {form.format(task=task, k=k)}"
            for n, (task, k, word) in enumerate(_TESTS, 1)
        ]
        lines += ["    1..4", f"not ok {number} - {group}"]
    path.write_text("\n".join([*lines, f"1..{len(groups)}"]))
    return path


def test_tap_of_subtests(tmp_path: Path) -> None:
    path = _write_subtests(tmp_path / "a.tap", ("gpt-4", "claude-3"), "{task} (attempt {k})")
    assert _figures(path) == {"gpt-4": (2, 3, 4, 0), "claude-3": (2, 3, 4, 0)}
    path = _write_subtests(tmp_path / "b.tap", ("alpha", "beta"), "{task} (attempt {k})")
    with pytest.raises(ReadError, match="may be attempts, runs, or different tasks") as caught:
        read(path)  # groups of tests, or agents
    assert "--map model=model-or-group (runs), " in str(caught.value.hint)
    path = tmp_path / "c.tap"
    path.write_text("    ok 1 - try 1\n    not ok 2 - try 2\nnot ok 1 - sort\n1..1\n")
    assert _figures(path) == {"c": (1, 1, 2, 0)}


_SESSION = "============================= test session starts =============================="
_NODE = "tests/test_a.py::{name}"
_PYTEST = {
    "repeat": ("test_{task}[{k}-2]", "{node} {word}    [  3%]"),
    "parameter": ("test_run[{task}-rep{k}]", "{node} {word}    [  3%]"),
    "again": ("TestRun::test_{task}", "{node} {word}"),
    "workers": ("test_{task}[run{k}]", "[gw0] [ 10%] {word} {node} "),
    "log": (
        "test_{task}[{k}-2]",
        "{node} \n--- live log call ---\nINFO x: ok\n{word}  [ 3%]",
    ),
    "server": ("test_{task}[{k}-2]", "2025-07-03T02:02:57.0000000Z {node} {word} [ 10%]"),
    "summary": ("test_{task}[{k}-2]", ""),
}


@pytest.mark.parametrize("form", _PYTEST)
def test_what_pytest_prints(tmp_path: Path, form: str) -> None:
    name, line = _PYTEST[form]
    lines, summary = [], []
    for task, k, word in _TESTS:
        node = _NODE.format(name=name.format(task=task.replace(" ", "_"), k=k))
        word = "PASSED" if word == "ok" else "FAILED"
        lines.append(line.format(node=node, word=word))
        summary += [f"{word} {node}"] if word == "FAILED" or form == "summary" else []
    path = tmp_path / "run.log"
    end = "=== FAILURES ===\nE  assert 1\n=== short test summary info ==="
    last = "========= 1 failed, 3 passed in 4.20s ========="
    text = "\n".join(
        [_SESSION, "platform linux", "collected 4 items", "", *lines, end, *summary, last]
    )
    path.write_text(text)
    assert _figures(path) == {"run": (2, 3, 4, 0)}


def test_parameters_of_pytest_that_are_model_and_task(tmp_path: Path) -> None:
    lines = [
        _NODE.format(name=f"test_run[{model}-{task}-{k}-2] {'PASSED' if k == 1 else 'FAILED'}")
        for model in ("gpt-4", "gpt-4o")
        for task in ("sort", "parse-json")
        for k in (1, 2)
    ]
    path = tmp_path / "run.log"
    path.write_text("\n".join([_SESSION, *lines, "=== 4 failed, 4 passed in 1.00s ==="]))
    assert _figures(path) == {"gpt-4": (2, 2, 4, 0), "gpt-4o": (2, 2, 4, 0)}


def test_pytest_without_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(f"{_SESSION}\n\ntests/test_a.py ..F\n\nFAILED tests/test_a.py::test_x - no\n")
    with pytest.raises(ReadError, match="without the names of its tests"):
        read(path)


_MARKS = {
    "headings": (
        "\x1b[1m$ bench run\x1b[0m\n\x1b[36m▶ gpt-4\x1b[0m\n"
        "  sort   \x1b[32m✔\x1b[0m ✖ ✔  \x1b[2m(64.0s)\x1b[0m\n  find   ✔ ✔ ✔  (3s)\n"
        "  5 passed, 1 failed\n\n▶ kimi-k2\n  sort   ✖ ✖ ✔  (64.0s)\n  find   ✔ ✔ ⚠  (3s)\n",
        {"gpt-4": (2, 5, 6, 0), "kimi-k2": (2, 3, 5, 1)},
    ),
    "tasks above": (
        "notes\n3 tries each.   + worked   - did not   ? laptop slept\n\nlogin flow\n"
        "    sonnet:   +-+   weird\n    qwen coder:   ---\ncsv import\n    sonnet:   ++?\n"
        "    qwen coder:   +--   (slow)\n\ntodo: rerun the ? ones\n",
        {"sonnet": (2, 4, 5, 1), "qwen coder": (2, 1, 6, 0)},
    ),
    "legend": ("x = passed, o = failed\n\nsort  x x o\nfind  o o o\n", {"mine": (2, 2, 6, 0)}),
    "dashes": (
        "task     r1 r2 r3\n-----------------\nsort     +  -  +\nfind     -  -  -\n",
        {"mine": (2, 2, 6, 0)},
    ),
    "letters": ("sort: PPF\nfind: FFF (3 min)\n", {"mine": (2, 2, 6, 0)}),
    "label": (
        "Model: alpha\n  1 2\nsort  ✓ ✗\nfind  ✓ ✓\nModel: beta\nsort  ✗ ✗\nfind  ✓ ✓\n",
        {"alpha": (2, 3, 4, 0), "beta": (2, 2, 4, 0)},
    ),
}


@pytest.mark.parametrize("form", _MARKS)
def test_marks_behind_names(tmp_path: Path, form: str) -> None:
    text, expected = _MARKS[form]
    path = tmp_path / "mine.txt"
    path.write_text(text, encoding="utf-8")
    assert {name.removesuffix(".txt"): each for name, each in _figures(path).items()} == expected


@pytest.mark.parametrize(
    "text",
    [
        "sort  o o x x\nfind  o o o o\n",  # of two meanings
        "sort  + + -   3/3\nfind  + - -   1/3\n",  # not what the lines state
        "steps: 100\nlimit: 110\n",
        "gpt-4: ++-+\nclaude: +--+\n",  # tasks or attempts
    ],
)
def test_marks_that_are_not_clear_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PasshatError):
        read(path)


def _case(group: str, name: str, end: str = "") -> str:
    return f'<testcase classname="{group}" name="{name}">{end}</testcase>'


@pytest.mark.parametrize("name", ["attempt 1", "run_2", "(trial 3)", "4"])
@pytest.mark.parametrize("is_class", [False, True])
def test_the_name_or_the_class_of_a_test_may_number_attempts(
    tmp_path: Path, name: str, is_class: bool
) -> None:
    numbers = [name.replace(name.strip("()")[-1], str(number)) for number in (1, 2)]
    pairs = [(f"tasks.{task}", number) for task in "abc" for number in numbers]
    pairs = [(number, task) for task, number in pairs] if is_class else pairs
    ends = ["", _FAILURE, _SKIPPED, "", "", ""]
    cases = "".join(_case(*pair, end) for pair, end in zip(pairs, ends, strict=True))
    path = tmp_path / "r.xml"
    path.write_text(f'<testsuite name="x">{cases}</testsuite>', encoding="utf-8")
    (run,) = read(path)
    assert run.outcomes.tasks == ("tasks.a", "tasks.b", "tasks.c")
    assert (run.outcomes.scored, run.outcomes.passes, run.outcomes.total_missing) == (5, 4, 1)
    assert any("is an attempt at 'tasks.a'" in line for line in run.decisions)


@pytest.mark.parametrize("form", ["{} attempt {}", "{}-run{}", "trial {1}: {0}", "{} (seed {})"])
def test_suites_with_a_model_and_a_number_are_attempts_of_models(tmp_path: Path, form: str) -> None:
    tests = {"a": "", "b": _FAILURE}
    suites = {form.format(model, number): tests for model in "xy" for number in (1, 2)}
    path = tmp_path / "r.xml"
    path.write_text(_report(suites), encoding="utf-8")
    found = {run.agent: (run.outcomes.attempts, run.outcomes.passes) for run in read(path)}
    assert found == {"x": (4, 2), "y": (4, 2)}


def test_names_with_the_number_of_an_attempt_and_ids_of_repeats(tmp_path: Path) -> None:
    for place, form in enumerate(("test_{} attempt {}", "test_{}[{}-2]")):
        cases = "".join(_case("m", form.format(task, n)) for task in "ab" for n in (1, 2))
        path = tmp_path / f"r{place}.xml"
        path.write_text(f"<testsuite>{cases}</testsuite>", encoding="utf-8")
        (run,) = read(path)
        assert (len(run.outcomes), run.outcomes.attempts) == (2, 4)


def test_a_report_without_counts_states_no_accuracy(tmp_path: Path) -> None:
    path = tmp_path / "r.xml"
    path.write_text(f'<testsuite tests="1">{_case("m", "a", _FAILURE)}</testsuite>')
    assert not read(path)[0].source_says


@pytest.mark.parametrize(
    "line",
    ["a.py" + "::a" * 300 + " !", "a.py::a[" + "] " * 400, "ok " * 300, "a " * 140, "x: " * 95],
)
def test_lines_that_nearly_fit_take_no_time(tmp_path: Path, line: str) -> None:
    path = tmp_path / "run.log"
    node = _NODE.format(name="test_a")
    path.write_text("\n".join([_SESSION, *[line] * 200, f"{node} PASSED", f"{node} FAILED"]))
    assert _figures(path) == {"run": (1, 1, 2, 0)}
