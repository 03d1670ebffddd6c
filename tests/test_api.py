"""The public functions: agents run from Python, and statistics on what people have at hand."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import passhat
from passhat.errors import InvalidValue, PasshatError
from passhat.stats.outcomes import FailureCategory

TASKS: list[Mapping[str, Any]] = [
    {"id": "sum", "prompt": "2+2?", "answer": "4"},
    {"id": "product", "prompt": "2*3?", "answer": "6"},
]
MATRIX = [[1, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 1]]


def four(_prompt: str) -> str:
    return "4"


async def patient_four(_prompt: str) -> str:
    await asyncio.sleep(0)
    return "4"


class Careful(passhat.Agent):
    name = "careful"

    async def session(self, attempt: object) -> passhat.Session:  # noqa: ARG002
        return _Careful()


class _Careful(passhat.Session):
    async def answer(self, turn: passhat.Turn) -> str:
        return {"2+2?": "4", "2*3?": "6"}[turn.text]


@pytest.mark.parametrize("agent", [four, patient_four], ids=["function", "async function"])
def test_a_function_is_run_at_every_task(agent: Any) -> None:
    run = passhat.run(agent, TASKS, n=3)
    assert run.outcomes.tasks == ("sum", "product")
    assert run.outcomes.c.tolist() == [3, 0]
    assert run.outcomes.n.tolist() == [3, 3]


def test_an_agent_object_and_a_word_are_run() -> None:
    assert passhat.run(Careful(), TASKS, n=2).outcomes.passes == 4
    run = passhat.run("demo:careful", "orderdesk/retail", n=1, tasks=["retail/001"])
    assert run.agent == "demo:careful"
    assert run.outcomes.attempts == 1


def test_the_issue_of_the_first_line() -> None:
    text = str(passhat.run(lambda _: "4", [{"id": "a", "prompt": "2+2?", "answer": "4"}], n=8))
    assert "1 task x 8 attempts" in text
    assert "pass^8 = 1.000 [" in text
    assert "1 task, 8 attempts" in text


def test_a_judge_in_python_decides_tasks_without_an_answer() -> None:
    tasks = [passhat.Task("short", "Say less."), passhat.Task("long", "Say more.")]
    run = passhat.run(four, tasks, n=2, judge=lambda task, _: task.id == "short")
    assert run.outcomes.c.tolist() == [2, 0]
    refused = passhat.Judgement.failed(FailureCategory.POLICY_VIOLATION)
    run = passhat.run(four, TASKS, n=1, judge=lambda _, __: refused)
    assert run.failures_by_category == {"policy_violation": 2}


def test_a_store_resumes(tmp_path: Path) -> None:
    calls: list[str] = []

    def agent(prompt: str) -> str:
        calls.append(prompt)
        return "4"

    store = tmp_path / "runs.db"
    passhat.run(agent, TASKS, n=2, store=store)
    assert len(calls) == 4
    run = passhat.run(agent, TASKS, n=3, store=store)
    assert len(calls) == 6
    assert run.outcomes.attempts == 6
    with passhat.open_store(store) as opened:
        assert len(list(opened.runs())) == 1


def test_two_lambdas_are_two_agents(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    first = passhat.run(lambda _: "4", TASKS, n=1, store=store)
    second = passhat.run(lambda _: "6", TASKS, n=1, store=store)
    assert first.agent != second.agent
    assert second.outcomes.c.tolist() == [0, 1]


def test_it_runs_inside_an_event_loop() -> None:
    async def notebook_cell() -> tuple[passhat.Run, passhat.Run]:
        return passhat.run(four, TASKS, n=1), await passhat.arun(patient_four, TASKS, n=2)

    here, awaited = asyncio.run(notebook_cell())
    assert here.outcomes.attempts == 2
    assert awaited.outcomes.attempts == 4


def test_progress_is_called_with_the_counts() -> None:
    seen: list[int] = []
    passhat.run(four, TASKS, n=2, progress=lambda counts: seen.append(counts.done))
    assert seen[-1] == 4


@pytest.mark.parametrize(
    ("agent", "suite", "options", "message"),
    [
        (four, [], {}, "the list of tasks is empty"),
        (four, [*TASKS, TASKS[0]], {}, "'sum' is listed twice"),
        (four, ["2+2?"], {}, "task 1 is a str"),
        (four, TASKS[0], {}, "expected a list of tasks"),
        (four, [passhat.Task("a", "b")], {}, "no expected answer"),
        (four, [{"id": "a"}], {}, "prompt"),
        (four, TASKS, {"n": 0}, "at least 1"),
        (42, TASKS, {}, "Agent"),
        ("nonsense", TASKS, {}, "is not an agent"),
        (four, "nonsense", {}, "nonsense"),
    ],
)
def test_wrong_input_is_refused(
    agent: Any, suite: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PasshatError, match=message):
        passhat.run(agent, suite, **options)


def test_a_misspelt_option_is_pointed_out() -> None:
    with pytest.raises(TypeError, match=r"'temprature'\. Did you mean 'temperature'"):
        passhat.run(four, TASKS, temprature=1.0)  # type: ignore[call-arg]


def test_ctrl_c_keeps_what_is_in_flight(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import os, signal, passhat
        calls = []
        def agent(prompt):
            calls.append(prompt)
            if len(calls) == 3:
                os.kill(os.getpid(), signal.SIGINT)
            return "4"
        tasks = [{"id": str(i), "prompt": "2+2?", "answer": "4"} for i in range(50)]
        try:
            passhat.run(agent, tasks, n=8, store="runs.db", jobs=1)
        except KeyboardInterrupt as stopped:
            print("stopped", len(calls) < 400)
        print(passhat.run(agent, tasks, n=8, store="runs.db").outcomes.attempts)
        """)
    )
    ended = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.stdout.split() == ["stopped", "True", "400"], ended.stderr
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _frame_columns() -> dict[str, list[object]]:
    rows = [(f"t{i}", j, value) for i, row in enumerate(MATRIX) for j, value in enumerate(row)]
    random.Random(1).shuffle(rows)
    return {
        "task": [row[0] for row in rows],
        "trial": [row[1] for row in rows],
        "success": [row[2] for row in rows],
    }


COUNTS = {"task": ["a", "b", "c"], "n": [4, 4, 4], "c": [3, 1, 4]}


@pytest.mark.parametrize(
    "data",
    [
        MATRIX,
        np.array(MATRIX),
        np.array(MATRIX, dtype=bool),
        passhat.Outcomes.from_matrix(MATRIX),
        pd.DataFrame(_frame_columns()),
        pl.DataFrame(_frame_columns()),
        pd.DataFrame(COUNTS),
        pl.DataFrame(COUNTS),
        [{"task": f"t{i}", "success": v} for i, row in enumerate(MATRIX) for v in row],
    ],
    ids=["list", "int", "bool", "outcomes", "pandas", "polars", "n-c pd", "n-c pl", "records"],
)
def test_everything_at_hand_gives_the_same_estimate(data: Any) -> None:
    expected = passhat.estimate(passhat.Outcomes.from_counts(4, [3, 1, 4]), "pass^2")
    assert passhat.estimate(data, "pass^2").value == expected.value
    assert passhat.gate(data, "pass^2 >= 0.01").results
    assert [one.lift for one in passhat.compare(data, data, "pass^2").results] == [0]
    assert passhat.plan_tasks(data, half_width=0.1).rows
    assert passhat.forecast(data, "pass^8").high > 0
    assert {"pass^4", "pass@4"} <= {
        one.metric.name for one in passhat.report(data).runs[0].estimates
    }


def test_missing_values_of_a_frame_are_missing_attempts() -> None:
    values = [1.0, None, 0.0, 1.0]
    columns = {"task": ["a", "a", "b", "b"], "success": values}
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        estimate = passhat.estimate(frame, "pass^1")
        assert (estimate.value, estimate.value_if_passed) == (0.5, 0.75)


def test_a_frame_of_two_models_is_refused() -> None:
    frame = pd.DataFrame({"model": ["x", "y"], "task": ["a", "a"], "success": [1, 0]})
    with pytest.raises(InvalidValue, match=r"holds 2 runs \(x, y\)"):
        passhat.estimate(frame, "pass^1")


@pytest.mark.parametrize("function", [passhat.estimate, passhat.forecast])
@pytest.mark.parametrize("data", [0.5, None, {"a": 1}, object()])
def test_anything_else_is_refused_with_what_is_taken(function: Any, data: Any) -> None:
    with pytest.raises(InvalidValue, match=r"expected a Run .*a matrix of 0 and 1 .*frame"):
        function(data, "pass^1")


def test_a_path_is_read_wherever_results_are_taken(tmp_path: Path) -> None:
    table = tmp_path / "one.csv"
    table.write_text("task,passed\na,1\na,0\nb,1\nb,1\n")
    assert passhat.estimate(table, "pass^1").value == 0.75
    assert passhat.estimate(data=str(table), metric="pass^1").value == 0.75
    assert passhat.compare(table, str(table)).paired == 2
    assert "75% of single attempts" in str(passhat.report(str(table)))
    assert repr(passhat.report([table, table])) == "<Report on 2 runs: one, one>"
    assert passhat.gate(table, "pass^1 >= 0.01").exit_code == 0
    with pytest.raises(PasshatError, match="there is no such file"):
        passhat.estimate("table.csv", "pass^1")
    both = tmp_path / "both.csv"
    both.write_text("model,task,passed\nx,a,1\ny,a,0\n")
    with pytest.raises(InvalidValue, match=r"holds 2 runs \(x, y\); one is needed"):
        passhat.estimate(both, "pass^1")
    assert repr(passhat.report(both)) == "<Report on 2 runs: x, y>"
    assert repr(passhat.report({"x": table, "y": str(table)})) == "<Report on 2 runs: x, y>"


OLD, NEW = [[1, 0, 1], [1, 1, 1]], [[1, 1, 1], [0, 1, 1]]


@pytest.mark.parametrize(
    ("runs", "names"),
    [
        ({"old": OLD, "new": NEW}, "old, new"),
        ({"old": np.array(OLD), "new": pd.DataFrame(NEW)}, "old, new"),
        ({"old": {"a": [1, 0], "b": [1, 1]}, "new": {"a": [1, 1], "b": [1, 1]}}, "old, new"),
        ([OLD, NEW], "outcomes 1, outcomes 2"),
        ((np.array(OLD), np.array(NEW)), "outcomes 1, outcomes 2"),
        (OLD, "outcomes"),
        ({"a": [1, 0], "b": [1, 1]}, "outcomes"),
        ({"task": ["a", "b"], "success": [1, 0]}, "outcomes"),
        ([{"task": "a", "success": 1}, {"task": "b", "success": 0}], "outcomes"),
    ],
)
def test_several_runs_are_a_list_or_a_dict_by_name(runs: Any, names: str) -> None:
    assert repr(passhat.report(runs)).rpartition(": ")[2] == f"{names}>"


def test_ranked_runs_may_have_names() -> None:
    ranks = passhat.compare_all({"x": OLD, "y": NEW, "z": OLD})
    assert ranks.names == ("x", "y", "z")


def test_why_of_verdicts_alone_is_refused_in_python_words() -> None:
    with pytest.raises(InvalidValue, match=r"a log with conversations; got a list"):
        passhat.why(OLD)  # type: ignore[arg-type]


def test_a_list_of_runs_is_not_one_run() -> None:
    run = passhat.run(four, TASKS, n=1)
    with pytest.raises(InvalidValue, match="expected one run, got a list of 2"):
        passhat.estimate([run, run], "pass^1")


def test_a_report_is_printed_and_saved(tmp_path: Path) -> None:
    report = passhat.report(passhat.run(four, TASKS, n=2), by=None, level=0.9)
    assert "90%" in str(report)
    assert repr(report).startswith("<Report on 1 run: ")
    assert len(str(report).splitlines()) < 16 < len(report.text().splitlines())
    assert "passhat plan" not in str(report)  # the run is in memory only
    assert str(report).endswith(".save('report.html')")
    assert "monospace" in report._repr_html_()
    for name in ("report.html", "report.md", "report.json", "report.csv"):
        assert "pass^2" in report.save(tmp_path / name).read_text()
    with pytest.raises(InvalidValue, match="does not name a form"):
        report.save(tmp_path / "report.docx")


LABELED: list[Mapping[str, Any]] = [
    {"id": "sum", "prompt": "2 + 2?", "answer": "4", "topic": "plus", "tags": ["a"]},
    {"id": "product", "prompt": "2 x 3?", "answer": 6, "grader": "numeric", "labels": {"topic": 1}},
]


@pytest.mark.parametrize(
    "grader", ["contains", lambda answer, expected: str(expected) in answer], ids=["name", "own"]
)
def test_a_grader_decides_where_a_task_names_none(grader: Any) -> None:
    run = passhat.run(lambda _prompt: "it is 4", LABELED, n=2, grader=grader)
    assert run.outcomes.c.tolist() == [2, 0]
    assert run.outcomes.labels == {"topic": ("plus", "1")}


def test_a_grader_may_give_a_score() -> None:
    run = passhat.run(four, LABELED[:1], n=2, grader=lambda _answer, _expected: 0.25)
    assert passhat.estimate(run, "mean").value == 0.25


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"grader": "contain"}, "'contain' is not a grader"),
        ({"grader": lambda answer: bool(answer)}, "cannot be called with answer and expected"),
        ({"grader": "exact", "judge": lambda *_: True}, "grader= and judge= both decide"),
        ({"grader": "exact", "suite": "orderdesk"}, "grader= is for a list of tasks"),
    ],
)
def test_a_grader_that_cannot_work_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(passhat.PasshatError, match=message):
        passhat.run(four, settings.pop("suite", LABELED), n=1, **settings)


def test_a_run_as_a_frame_has_the_same_estimates() -> None:
    matrix = np.array([[1, 0, 1], [1, np.nan, 1], [0, 0, 0]])
    for run in (
        passhat.run(four, LABELED, n=3),
        passhat.Run("counts", "x", passhat.Outcomes.from_counts(4, [1, 4])),
        passhat.Run("nothing", "x", passhat.Outcomes.from_matrix(matrix)),
    ):
        for frame in (run.to_pandas(), run.to_polars()):
            assert list(frame.columns[:5]) == ["run", "agent", "task", "attempt", "passed"]
            again = passhat.estimate(frame, "pass^2")
            assert str(again) == str(passhat.estimate(run, "pass^2"))
    assert run.to_pandas()["passed"].isna().sum() == 1


def test_a_value_and_a_lift_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = [[1, 0, 1], [1, 1, 1], [0, 0, 1]]
    results = passhat.estimate(matrix, "pass^2"), passhat.compare(matrix, matrix[::-1])
    for result in results:
        assert "layer" in result.plot().to_dict()  # Altair is installed here
    monkeypatch.setitem(sys.modules, "altair", None)
    for result in results:
        result.plot().save(str(tmp_path / "plot.svg"))
        assert result.plot()._repr_svg_() == (tmp_path / "plot.svg").read_text()
        drawing = ElementTree.fromstring(result.plot().svg)
        circle = drawing.find("{*}circle")
        line = drawing.find("{*}line[@stroke-width='2']")
        assert circle is not None
        assert line is not None
        assert float(line.get("x1", "")) < float(circle.get("cx", "")) < float(line.get("x2", ""))


@pytest.mark.parametrize(
    "name",
    [
        *("run", "arun", "estimate", "estimate_all", "diagnose", "compare", "compare_all", "gate"),
        *("plan_tasks", "plan_attempts", "allocate", "forecast", "report", "read"),
    ],
)
def test_a_function_lists_its_parameters_and_answers_a_misspelt_one(name: str) -> None:
    function = getattr(passhat, name)
    parameters = inspect.signature(function).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    assert kinds.isdisjoint({inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL})
    last = list(parameters)[-1]
    with pytest.raises(TypeError, match=f"Did you mean '{last}'\\? It takes: .*{last}"):
        function(**{f"{last}x": 1})


def test_a_margin_is_a_share_in_python_and_in_its_error() -> None:
    run = [[1, 1, 1, 1]] * 30
    assert passhat.gate(run, against=run, margin=0.2).exit_code == 0
    with pytest.raises(PasshatError, match=r"margin=0\.05"):
        passhat.gate(run, against=run, margin=20)


LONG = pd.DataFrame(
    {
        "task": list("aaabbbccc"),
        "attempt": [1, 2, 3] * 3,
        "success": [1, 1, 0, 1, 0, 1, 1, 1, 1],
    }
)


@pytest.mark.parametrize(
    "data",
    [
        LONG.set_index(["task", "attempt"])["success"],  # once 9 tasks of one attempt each
        LONG.groupby("task")["success"].apply(list),
        {task: pd.Series(part["success"]) for task, part in LONG.groupby("task")},
        (row for row in [[1, 1, 0], [1, 0, 1], [1, 1, 1]]),
        [["pass", "pass", "fail"], ["pass", "fail", "pass"], ["pass", "pass", "pass"]],
    ],
    ids=["two levels", "series of lists", "dict of series", "generator", "words"],
)
def test_other_forms_of_the_same_attempts(data: Any) -> None:
    value = passhat.estimate(data, "pass^2")
    assert (value.tasks, value.attempts) == (3, 9)
    assert value.value == pytest.approx((1 / 3 + 1 / 3 + 1) / 3)


@pytest.mark.parametrize(
    "data",
    [
        {"a": [1, pd.NA], "b": [1, 1]},
        np.array([[1, pd.NA], [1, 1]], object),
        {
            "a": np.ma.masked_array([1, 0], [False, True]),
            "b": np.ma.masked_array([1, 1], [False, False]),
        },
    ],
)
def test_every_mark_of_a_missing_value_is_a_missing_attempt(data: Any) -> None:
    value = passhat.estimate(data, "pass^1")
    assert (value.value, value.value_if_passed) == (0.75, 1.0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pd.DataFrame({"task": ["a", None], "success": [1, 0]}), "row 2 of the frame has no task"),
        (pd.DataFrame({"task": ["a", "b"], "reward": [1, -1]}), "reward holds -1"),
        (pd.DataFrame([["a", 1, 1]], columns=["task", "success", "success"]), "several columns"),
        (LONG[:0], "has no rows"),
        ({1: [1, 0], "1": [1, 1]}, "several tasks named 1"),
        (pd.Series([[1, 0], [1, 1]], index=["a", "a"]), "several rows named a"),
        (np.array(1), "expected a Run"),
        (np.array([[1j, 0]]), "expected a Run"),
        (pl.Series([1, 0]), "without an index"),
    ],
)
def test_what_could_be_misread_is_refused(data: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        passhat.estimate(data, "pass^1")


def test_a_result_is_one_short_line_in_a_list() -> None:
    for result in (
        passhat.estimate(OLD, "pass^2"),
        passhat.compare(OLD, NEW),
        passhat.compare_all([OLD, NEW, OLD]),
        passhat.gate(OLD, "pass^1 >= 0.5"),
        passhat.forecast(OLD, "pass^8"),
        passhat.plan_tasks(OLD, half_width=0.1),
        passhat.diagnose(OLD),
    ):
        assert repr(result).startswith(f"<{type(result).__name__}: ")
        assert len(repr(result)) < 120
        assert "\n" not in repr(result)


@pytest.mark.parametrize(
    "make",
    [
        lambda: passhat.plan_tasks(MATRIX, half_width=0.1),
        lambda: passhat.allocate(MATRIX, budget=30),
        lambda: passhat.diagnose(MATRIX),
        lambda: passhat.estimate(MATRIX, "pass^2"),
        lambda: passhat.compare(MATRIX, MATRIX[::-1]),
        lambda: passhat.compare_all({"a": MATRIX, "b": MATRIX, "c": MATRIX}),
        lambda: passhat.forecast(MATRIX, "pass^8"),
        lambda: passhat.gate(MATRIX, "pass^1 >= 0.5"),
        lambda: passhat.report(MATRIX),
        lambda: passhat.why(passhat.run(four, TASKS, n=2, progress=False)),
        lambda: passhat.run(four, TASKS, n=2, progress=False),
        lambda: passhat.Outcomes.from_matrix(MATRIX),
    ],
)
def test_every_result_is_a_line_in_a_list_and_a_table_or_text_in_a_notebook(make: Any) -> None:
    result = make()
    assert repr(result).startswith(f"<{type(result).__name__}")
    assert "\n" not in repr(result)
    assert len(repr(result)) < 250
    page = result._repr_html_()
    assert page.startswith(("<table", "<pre style"))
    for text in (str(result), page):
        assert "--" not in text
        assert "passhat why" not in text


@pytest.mark.parametrize("data", [[1, 0, 1], np.array([True, False]), []])
def test_a_row_alone_is_answered_with_how_to_write_it(data: Any) -> None:
    with pytest.raises(InvalidValue, match=r"one row: \[\[1, 0, 1\]\].*\[\[1\], \[0\], \[1\]\]"):
        passhat.estimate(data, "pass^1")


def test_counts_in_place_of_verdicts_are_answered_with_their_constructor() -> None:
    with pytest.raises(InvalidValue, match="from_counts"):
        passhat.estimate([(4, 2), (4, 3)], "pass^1")


def test_print_shows_the_screen_of_the_command_without_its_options() -> None:
    careful, hasty = passhat.read("example:helpdesk")
    lift = passhat.compare(careful, hasty)
    assert str(lift).startswith("pass^1 dropped by 5 to 24 points on these 24 tasks, from 76%")
    ruled = passhat.gate(careful, ["pass^4 >= 0.5"])
    assert str(ruled).startswith("careful  Not settled: pass^4 >= 0.5.\n")
    planned = passhat.plan_tasks(careful, detect=0.05)
    assert "Ways to reach it" in str(planned)
    for result in (lift, ruled, planned):
        assert max(map(len, str(result).splitlines())) <= 80
        assert "--" not in str(result)


def test_two_runs_in_one_source_are_compared_by_the_printed_hint() -> None:
    with pytest.raises(InvalidValue) as caught:
        passhat.compare("example:helpdesk", "example:helpdesk")
    hint = str(caught.value.hint).partition("or compare the two: ")[2]
    assert eval(hint).title == "hasty against careful: 24 paired tasks"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"seed": "x"}, "seed must be a whole number; got a str"),
        ({"seed": True}, "seed must be a whole number"),
        ({"jobs": 0}, "jobs must be a whole number from 1 on"),
        ({"retries": -1}, "retries must be a whole number from 0 on"),
        ({"max_tokens": 2.5}, "max_tokens must be a whole number from 1 on"),
        ({"temperature": "hot"}, "temperature must be a number from 0 on; got a str"),
        ({"temperature": -3}, "temperature must be a number from 0 on"),
        ({"top_p": float("nan")}, "top_p must be a number from 0 on"),
        ({"rate": 0}, "rate must be a number above 0"),
        ({"budget": "1"}, "budget must be a number above 0"),
        ({"attempt_seconds": 0}, "attempt_seconds must be a number above 0"),
        ({"name": 5}, "name must be text"),
        ({"store": 5}, "store must be a path, a URL or a Store"),
    ],
)
def test_a_setting_of_another_type_is_refused_before_anything_is_made(
    setting: dict[str, Any], message: str
) -> None:
    def answer(prompt: str) -> str:
        raise AssertionError(prompt)

    tasks = [{"id": "a", "prompt": "2+2?", "answer": "4"}]
    with pytest.raises(InvalidValue, match=message):
        passhat.run(answer, tasks, n=1, **setting)


def test_k_alone_and_k_that_are_none() -> None:
    matrix = [[1, 0], [1, 1]]
    metrics = [str(one.metric) for one in passhat.report(matrix, ks=2).runs[0].estimates]
    assert "pass^2" in metrics
    for ks in ("2", [0], [1.5], None):
        with pytest.raises(InvalidValue, match="ks must be whole numbers"):
            passhat.report(matrix, ks=ks)  # type: ignore[arg-type]


def test_a_report_that_cannot_be_written_is_an_error_with_the_place(tmp_path: Path) -> None:
    place = tmp_path / "away" / "report.html"
    with pytest.raises(InvalidValue, match=r"report\.html cannot be written: No such"):
        passhat.report([[1, 0]]).save(place)


def test_a_frame_that_names_models_is_a_run_of_each() -> None:
    frame = pd.DataFrame(
        {"model": ["a", "a", "b"], "task": ["x", "y", "x"], "passed": [True, False, True]}
    )
    runs = json.loads(passhat.report(frame).json())["runs"]
    assert [(run["name"], run["scored"], run["passed"]) for run in runs] == [
        ("a", 2, 1),
        ("b", 1, 1),
    ]
    with pytest.raises(InvalidValue, match=r"2 runs \(a, b\), and one is needed"):
        passhat.estimate(frame, "pass^1")


def test_names_of_a_dict_are_those_of_the_report() -> None:
    text = str(passhat.report({"old": [[1, 0]], "new": [[1, 1]]}))
    assert "not named" not in text
    assert "old" in text
    assert "new" in text


def test_tasks_of_one_side_alone_are_said_on_the_short_screen() -> None:
    result = passhat.compare({"a": [1, 1], "b": [0, 1], "c": [1, 1]}, {"a": [1, 1], "b": [1, 1]})
    assert "Left out: 1 task only in A (c)." in str(result)


def test_minus_one_in_a_frame_is_asked_about_whatever_its_column_is_called() -> None:
    frame = pd.DataFrame({"task": ["a", "b"], "success": [1, -1]})
    with pytest.raises(InvalidValue, match="may be a failure or a missing attempt"):
        passhat.estimate(frame, "pass^1")


def test_a_relation_of_duckdb_is_a_table() -> None:
    relation = duckdb.sql("select 'a' as task, 1 as success union all select 'a', 0")
    assert passhat.estimate(relation, "pass^1").value == 0.5
