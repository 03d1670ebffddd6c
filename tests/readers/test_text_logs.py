"""Plain texts: a line for each attempt, and a log for each attempt."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from passhat import read
from passhat.errors import PasshatError
from passhat.readers import text_logs

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(text: str, name: str = "mine.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


_LINES = {
    "progress": "[{n}/4] {model} :: {task} ... {word} (3.2s)",
    "sentence": "12:00:0{n} INFO run: {model} finished task {task} with {word} after 3 steps",
    "level": "2025-01-03 12:00:0{n},113 INFO agent={model} | {task} | {word}",
    "first": "{word}: {task} model={model}",
}


@pytest.mark.parametrize("form", _LINES)
def test_lines_with_a_verdict_are_attempts(write: Write, form: str) -> None:
    rows = [("gpt-4", "a-1", "PASSED"), ("gpt-4", "b-2", "FAILED")]
    rows += [("claude", "a-1", "FAILED"), ("claude", "b-2", "FAILED")]
    lines = [
        _LINES[form].format(n=n, model=model, task=task, word=word)
        for n, (model, task, word) in enumerate(rows, 1)
    ]
    runs = read(write("\n".join(["Loading ...", *lines, "total: 1 passed, 3 failed"]), "run.log"))
    passes = {run.name: (run.outcomes.passes, run.outcomes.scored) for run in runs}
    assert passes == {"gpt-4": (1, 2), "claude": (0, 2)}
    assert any("line with a verdict is an attempt" in line for line in runs[0].decisions)


def test_names_in_lines_above_hold_below(write: Write) -> None:
    text = "Task: sort\n  attempt 1: PASS\n  attempt 2: FAIL\nTask: find\n  attempt 1: PASS\n"
    (run,) = read(write(text + "  attempt 2: PASS\n", "run.log"))
    assert (sorted(run.outcomes.tasks), run.outcomes.passes) == (["find", "sort"], 3)


def test_lines_of_two_forms_are_not_read_in_part(write: Write) -> None:
    text = (
        "sort: PASS\nfind: PASS\nmerge: PASS\n[4] test of copy -> FAIL\n[5] test of move -> FAIL\n"
    )
    with pytest.raises(PasshatError):
        read(write(text, "run.txt"))


def test_a_begin_and_an_end_are_one_attempt(write: Write) -> None:
    lines = [
        f"start task={t} sample={s}\nend task={t} sample={s} result={w}"
        for t, s, w in (("a", 0, "pass"), ("a", 1, "fail"), ("b", 0, "pass"), ("b", 1, "pass"))
    ]
    (run,) = read(write("\n".join([*lines, "start task=c sample=0"]), "run.log"))
    assert (run.outcomes.passes, run.outcomes.scored, run.outcomes.total_missing) == (3, 4, 1)


def test_a_log_for_each_attempt(tmp_path: Path) -> None:
    for task, number, word in (
        ("a", 1, "PASS"),
        ("a", 2, "FAIL"),
        ("b", 1, "PASS"),
        ("b", 2, "PASS"),
    ):
        path = tmp_path / "logs" / task / f"attempt_{number}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"begin {task}\nstep 1\nRESULT: {word}\n")
    (run,) = read(tmp_path / "logs")
    assert (len(run.outcomes), run.outcomes.passes, run.outcomes.scored) == (2, 3, 4)


def test_what_python_prints_is_read(write: Write) -> None:
    text = "".join(f"{ {'task': t, 'passed': p} }\n" for t, p in (("a", True), ("b", False)))
    (run,) = read(write(text, "out.txt"))
    assert (run.outcomes.passes, run.outcomes.scored) == (1, 2)


def test_a_table_of_latex_is_read(write: Write) -> None:
    rows = r"a & \cmark & \xmark \\ b & \cmark & \textbf{\cmark} \\"
    text = r"\begin{tabular}{lcc} \toprule Task & GPT-4 & Llama \\ \midrule " + rows
    runs = read(write(text + r" \bottomrule \end{tabular}", "table.tex"))
    assert {run.name: run.outcomes.passes for run in runs} == {"GPT-4": 2, "Llama": 1}


def test_a_matrix_beside_the_names_of_its_columns(write: Write) -> None:
    runs = read(
        write('{"tasks": ["a", "b", "c"], "results": {"x": [1, 0, 1], "y": [0, 0, 1]}}', "m.json")
    )
    assert {run.name: run.outcomes.passes for run in runs} == {"x": 2, "y": 1}


def test_empty_files_whose_names_say_what_passed_get_their_pattern(tmp_path: Path) -> None:
    (tmp_path / "case").mkdir()
    for name in ("sort.1.ok", "sort.2.fail", "find.1.ok", "find.2.ok"):
        (tmp_path / "case" / name).touch()
    with pytest.raises(PasshatError) as caught:
        read(tmp_path / "case")
    pattern = "{task}.{trial}.{success}"
    assert pattern in str(caught.value.hint)
    (run,) = read(tmp_path / "case", records=pattern)
    assert (run.outcomes.passes, run.outcomes.scored) == (3, 4)


@pytest.mark.parametrize(
    "near", [" " * 5000, ": - " * 2000, "1 / " * 2000, "a=" * 3000, "1 tests " * 900, "[" * 5000]
)
def test_long_lines_are_not_searched(
    write: Write, near: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work on a line grows with its length squared: long ones are no message."""
    looked_at: list[str] = []
    parse = text_logs._parse_lines

    def count(texts: Sequence[str]) -> Iterator[text_logs._Line]:
        looked_at.extend(texts)
        return parse(texts)

    monkeypatch.setattr(text_logs, "_parse_lines", count)
    lines = [f"task {name}: {word}" for name, word in (("a", "pass"), ("b", "fail"), ("c", "pass"))]
    path = write("\n".join([*lines, *[f"task d{near}: pass"] * 50]), "mine.log")
    (run,) = read(path)
    assert (len(run.outcomes), run.outcomes.passes) == (3, 2)
    assert max(map(len, looked_at)) <= 300


def test_ids_that_join_parameters_are_asked_about(write: Write) -> None:
    ids = [f"test_all[{m}-{t}-{i}]" for m in ("s", "l") for t in ("a_b", "c") for i in (0, 1)]
    path = write("".join(f"tests/x.py::{name} PASSED\n" for name in ids), "mine.txt")
    with pytest.raises(PasshatError, match="joins parameters") as caught:
        read(path)
    options = {"task": "parameter 2", "model": "parameter 1"}
    assert f"--map 'task={options['task']},model={options['model']}'" in str(caught.value.hint)
    runs = read(path, columns=options)
    assert {(run.name, len(run.outcomes), run.outcomes.passes) for run in runs} == {
        ("s", 2, 4),
        ("l", 2, 4),
    }
    assert len(read(path, columns={"task": "task"})[0].outcomes) == 8
    path = write("".join(f"tests/x.py::{name} PASSED\n" for name in ids[:6]), "mine.txt")
    assert len(read(path)[0].outcomes) == 6


@pytest.mark.parametrize("begin", ["", "1", "tests 1 / 1", "run"])
def test_long_lines_of_spaces_are_searched_in_linear_time(begin: str) -> None:
    line = begin + " " * 30_000
    start = time.process_time()
    for pattern in (text_logs._SUMMARY, text_logs.TRIAL, text_logs._SIGN):
        pattern.findall(line)
    assert time.process_time() - start < 2  # a few ms; more than a minute in quadratic time


def test_stated_accuracy_chooses_the_first_hint(tmp_path: Path) -> None:
    """Two columns of predictions: the readings with the share that the last line states lead."""
    answers = [("A", "A", "B"), ("B", "C", "B"), ("C", "C", "C"), ("D", "A", "D")] * 3
    blocks = [
        f"Question: item {i}\nFirst prediction: {first}\nLast prediction: {last}\nGT: {gold}\n"
        for i, (gold, first, last) in enumerate(answers)
    ]
    for rate, name in (("accuracy : 50.0", "First"), ("Accuracy: 0.75 (n = 12)", "Last")):
        path = tmp_path / "run.log"
        path.write_text("\n".join([*blocks, rate]) + "\n")
        with pytest.raises(PasshatError) as caught:
            read(path)
        first_hint = str(caught.value.hint).splitlines()[1]
        assert f"{name} prediction == @GT" in first_hint
    (run,) = read(path, columns={"task": "Question"}, passes="Last prediction == @GT")
    assert dict(run.source_says) == {"pass^1": 0.75}


@pytest.mark.parametrize(
    ("line", "rate"),
    [
        ("accuracy : 69.6", 0.696),
        ("Final accuracy = 7/10", None),
        ("=== Pass rate: 80% ===", 0.8),
        ("acc 1", 1.0),
        ("accuracy: 690", None),
    ],
)
def test_stated_rate(line: str, rate: float | None) -> None:
    assert text_logs.find_stated_rate(["x", line, ""]) == rate


def test_lines_below_arrows_that_begin_with_marks(tmp_path: Path) -> None:
    """The comma between a time and a cost makes no table."""
    line = "  {} attempt {} (1.5s, $0.02)\n"
    text = "▶ pay\n" + line.format("✔", 1) + line.format("✖", 2)
    path = tmp_path / "log.txt"
    path.write_text(text + text.replace("pay", "ship"), encoding="utf-8")
    (run,) = read(path)
    assert (list(run.outcomes.tasks), run.outcomes.passes) == (["pay", "ship"], 2)


def test_numbers_in_brackets_are_a_decision(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("t.py::pay[0] PASSED\nt.py::pay[1] FAILED\nt.py::ship[0] PASSED\n")
    (run,) = read(path)
    assert len(run.outcomes) == 3
    assert any("different tests" in line for line in run.decisions)


_VERDICTS = {
    "Task {t} (model {m}), attempt {k}: {v}": ("passed", "not passed"),
    "{m} {t} attempt {k} {v} after 3s": ("succeeded", "did not succeed"),
    "{m} | {t} | try {k} | {v}": ("solved", "wasn't solved"),
    "2025-01-01T00:00:00.0000000Z [{k}/2] {m} > {t}: {v} in 41s": ("passed", "failed to pass"),
    "[{m}] {t} #{k} {v}": ("has passed", "has not yet passed"),
    "agent={m} task={t} attempt={k} {v}": ("was successful", "was unsuccessful"),
    "Modell {m}, Aufgabe {t}, Versuch {k}: {v}": ("bestanden", "nicht bestanden"),
    "{m}: {t}: run {k}: exited with code {v}": ("0", "137"),
    "ts=1 agent={m} task={t} attempt={k} rc={v} dur=3s": ("0", "2"),
}


@pytest.mark.parametrize("form", _VERDICTS)
def test_verdicts_that_are_negated_or_exit_codes(write: Write, form: str) -> None:
    good, bad = _VERDICTS[form]
    lines = [
        form.format(m=m, t=t, k=k, v=good if (m == "gpt-4o") == (k == 1) or t == "sort" else bad)
        for m in ("gpt-4o", "claude-3")
        for t in ("parse-json", "sort", "find_all")
        for k in (1, 2)
    ]
    noise = ["ts=2 level=debug msg='gc of volumes' n=5"] if "ts=" in form else ["Starting run"]
    runs = read(write("\n".join([*noise, *lines]), "run.log"))
    figures = {
        run.name: (len(run.outcomes), run.outcomes.passes, run.outcomes.scored) for run in runs
    }
    assert figures == {"gpt-4o": (3, 4, 6), "claude-3": (3, 4, 6)}


def test_the_agent_that_a_command_in_the_log_names(write: Write) -> None:
    blocks = [
        f"2025-07-03T02:00:00.1234567Z ##[group]Run agent-eval --agent {agent}\n"
        "2025-07-03T02:00:01.0000000Z [1/1] sort: started\n"
        f"2025-07-03T02:00:02.0000000Z [1/1] sort: {verdict} in 4s\n"
        "2025-07-03T02:00:03.0000000Z   warning: rate limit, waiting 20s\n"
        f"2025-07-03T02:00:04.0000000Z [1/1] find: did not succeed in 5s\n"
        for agent, verdict in (("alpha", "succeeded"), ("beta", "did not succeed"))
    ]
    runs = read(write("".join(blocks), "job.log"))
    assert {run.name: (run.outcomes.passes, run.outcomes.scored) for run in runs} == {
        "alpha": (1, 2),
        "beta": (0, 2),
    }


def test_a_table_with_spaces_behind_its_commas_has_a_header(write: Write) -> None:
    (run,) = read(write("task, passed\na, pass\nb, fail\nc, pass\n"))
    assert (len(run.outcomes), run.outcomes.passes, run.outcomes.scored) == (3, 2, 3)


def _event_lines(
    *, without: tuple[int, ...] = (), verdict: str = "success", in_order: bool = True
) -> list[str]:
    starts, ends = [], []
    cases = [(m, t, n) for m in ("x", "y") for t in "abc" for n in (1, 2)]
    for place, (model, task, number) in enumerate(cases):
        start = {"type": "start", "run_id": place, "model": model, "task": task, "trial": number}
        end = {"type": "finish", "run_id": place, verdict: place % 3 > 0, "steps": place}
        step = {"type": "step", "run_id": place, "tool": "search"}
        starts.append([start, step, step])
        ends.append([end] if place not in without else [])
    pairs = zip(starts, ends, strict=True)
    groups = [[*s, *end] for s, end in pairs] if in_order else [*starts, *ends]
    rows = [event for group in groups for event in group]
    return [json.dumps(row) for row in rows]


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("form", ["lines", "document"])
def test_events_of_an_attempt_are_joined_by_its_id(
    tmp_path: Path, form: str, in_order: bool
) -> None:
    lines = _event_lines(without=(1, 7), in_order=in_order)
    text = "\n".join(['{"date": "May", "note": "rerun"}', *lines])
    document = f'{{"date": "May", "events": [{",".join(lines)}]}}'
    path = tmp_path / "events.jsonl"
    path.write_text(text if form == "lines" else document)
    runs = {run.agent: run.outcomes for run in read(path)}
    assert {m: (o.scored, o.passes, o.total_missing) for m, o in runs.items()} == {
        "x": (5, 3, 1),
        "y": (5, 3, 1),
    }
    (line,) = (line for line in read(path)[0].decisions if "'run_id'" in line)
    assert line.endswith("are one attempt; missing, without 'finish': 2")


def test_events_with_a_verdict_of_another_name(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(_event_lines(verdict="goal")))
    columns = {"task": "task", "model": "model", "trial": "trial", "success": "goal"}
    assert [run.outcomes.attempts for run in read(path, columns=columns)] == [6, 6]


def test_starts_that_state_the_task_as_ends_do_are_no_attempts_of_their_own(tmp_path: Path) -> None:
    rows = [
        {"event": event, "id": n, "task": f"t{n % 3}"} | ({"passed": n < 3} if n and end else {})
        for n in range(1, 7)
        for end, event in enumerate(("begin", "end"))
    ]
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    (run,) = read(path)
    assert (len(run.outcomes), run.outcomes.attempts, run.outcomes.passes) == (3, 6, 2)
