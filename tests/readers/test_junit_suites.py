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
