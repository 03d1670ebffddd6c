"""JUnit reports with a suite for each agent, and with skipped tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from passhat import read


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
