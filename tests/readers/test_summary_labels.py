"""Rows that sum up others, in the column of the attempt, the model or a group of tasks."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from passhat import read
from passhat.errors import PasshatError
from passhat.readers.summary_labels import LabelFilter

_VERDICTS = {"a": (1, 0), "b": (1, 1), "c": (0, 0)}


def _rows(word: str, names: tuple[object, object] = (1, 2)) -> list[tuple[object, ...]]:
    """A row for each attempt and, below those of a task, their average."""
    return [
        row
        for task, verdicts in _VERDICTS.items()
        for row in (
            *((task, name, verdict) for name, verdict in zip(names, verdicts, strict=True)),
            (task, word, sum(verdicts) / 2),
        )
    ]


def _csv(header: str, rows: Sequence[tuple[object, ...]]) -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


def _read(folder: Path, text: str, name: str = "mine.csv") -> tuple[list[tuple[int, int]], str]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    runs = read(path)
    counts = [(run.outcomes.passes, run.outcomes.scored) for run in runs]
    return sorted(counts), "; ".join(runs[0].decisions)


@pytest.mark.parametrize(
    "word", ["mean", "AVG.", "std", "Summe", "moyenne", "best", "all", "pass@2", "mean (n=2)"]
)
def test_summary_among_numbers_of_attempts_is_no_attempt(tmp_path: Path, word: str) -> None:
    counts, decisions = _read(tmp_path, _csv("task,run,score", _rows(word)))
    assert counts == [(3, 6)]
    assert f"left out as summaries of other rows: {word!r} in 'run' (3)" in decisions


def test_summaries_below_all_attempts(tmp_path: Path) -> None:
    rows = sorted(_rows("mean"), key=lambda row: row[1] == "mean")
    assert _read(tmp_path, _csv("task,run,score", rows))[0] == [(3, 6)]


@pytest.mark.parametrize("header", ["task,agent,passed", "task,config,passed", "task,set,passed"])
def test_average_over_models_or_settings_is_no_run(tmp_path: Path, header: str) -> None:
    counts, decisions = _read(tmp_path, _csv(header, _rows("average", ("base", "tools"))))
    assert counts == [(1, 3), (2, 3)]
    assert "'average' in" in decisions


def test_overall_beside_subjects_is_no_task(tmp_path: Path) -> None:
    rows = _rows("overall", ("math", "biology"))
    assert _read(tmp_path, _csv("task,subject,passed", rows))[0] == [(3, 6)]


def test_row_type(tmp_path: Path) -> None:
    rows = _rows("summary", ("attempt", "attempt"))
    assert _read(tmp_path, _csv("task,row_type,passed", rows))[0] == [(3, 6)]


def test_average_below_a_column_for_each_task(tmp_path: Path) -> None:
    text = "model,t1,t2,t3\ngpt-4,1,0,1\nclaude,1,1,0\naverage,1,0.5,0.5\n"
    assert _read(tmp_path, text)[0] == [(2, 3), (2, 3)]


@pytest.mark.parametrize("kind", ["markdown", "list", "nested", "sqlite"])
def test_summaries_in_other_files(tmp_path: Path, kind: str) -> None:
    names = ("task", "run", "score")
    rows = _rows("mean")
    records = [dict(zip(names, row, strict=True)) for row in rows]
    path = tmp_path / "mine.json"
    if kind == "markdown":
        lines = [names, ("---",) * 3, *((t, f"**{r}**", s) for t, r, s in rows)]
        path = path.with_suffix(".md")
        path.write_text("".join(f"| {' | '.join(map(str, line))} |\n" for line in lines))
    elif kind == "sqlite":
        path = path.with_suffix(".db")
        with sqlite3.connect(path) as database:
            database.execute("create table attempts (task text, run text, score real)")
            database.executemany("insert into attempts values (?, ?, ?)", rows)
        database.close()
    else:
        data = records if kind == "list" else {"gpt-4": records, "claude": records}
        path.write_text(json.dumps(data))
    runs = read(path)
    assert {(run.outcomes.passes, run.outcomes.scored) for run in runs} == {(3, 6)}
    assert all("left out as summaries of other rows" in "".join(r.decisions) for r in runs)


def test_a_table_of_averages_holds_no_attempts(tmp_path: Path) -> None:
    rows = [(task, word, 0.5) for task in "abc" for word in ("mean", "std")]
    with pytest.raises(PasshatError, match="holds no attempts: mean, std in column 'run'"):
        _read(tmp_path, _csv("task,run,score", rows))


def test_labels_that_are_names_stay(tmp_path: Path) -> None:
    kinds = ("sum", "average", "lookup")
    rows = [(f"q{i}", kinds[i % 3], int(i % 4 > 0)) for i in range(12)]
    assert _read(tmp_path, _csv("task,question_type,passed", rows))[0] == [(9, 12)]
    numbered = [(task, f"max-{i}", i % 2) for task in "ab" for i in (1, 2, 3)]
    assert _read(tmp_path, _csv("task,run,passed", numbered))[0] == [(4, 6)]
    everything = [(task, "all", 1) for task in "ab"]
    assert _read(tmp_path, _csv("task,dataset,passed", everything))[0] == [(2, 2)]


def test_words_before_other_labels_are_refused() -> None:
    labels = LabelFilter({})
    labels.take({"task": ["a", "b"], "model": ["average"] * 2, "passed": [1, 0]}, [2, 3])
    with pytest.raises(PasshatError, match="rows with 'average' in column 'model', and others"):
        labels.take({"task": ["a", "b"], "model": ["gpt-4"] * 2, "passed": [1, 0]}, [4, 5])


def test_spread_below_an_average_of_tasks(tmp_path: Path) -> None:
    text = "task,score\na,1\nb,0\nc,1\nd,0\nMean:,0.5\nstd,0.5\n"
    counts, decisions = _read(tmp_path, text)
    assert counts == [(2, 4)]
    assert "line 6 (Mean:), line 7 (std)" in decisions


def test_an_average_among_the_fields_of_attempts(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"task": "a", "r_1": 1, "r_2": 0, "r_mean": 0.5}\n')
    (run,) = read(path, trials="r_*")
    assert (run.outcomes.passes, run.outcomes.scored) == (1, 2)
    assert "'mean' in 'trial' (1)" in "".join(run.decisions)


def test_averages_of_each_attempt_are_no_task(tmp_path: Path) -> None:
    text = "task,run,passed\na,1,1\na,2,0\nb,1,1\nb,2,1\n{0},1,1\n{0},2,{1}\n"
    for word in ("mean", "Overall"):
        counts, decisions = _read(tmp_path, text.format(word, 0.5))
        assert counts == [(3, 4)]
        assert f"line 6 ({word}), line 7 ({word})" in decisions
    counts, decisions = _read(tmp_path, text.format("all", 0))
    assert counts == [(4, 6)]
    assert "read as tasks with several attempts: 'all'" in decisions


def test_other_words_among_numbers_of_attempts_are_said(tmp_path: Path) -> None:
    text = "task,run,passed\na,1,1\na,2,0\na,final,0\n"
    counts, decisions = _read(tmp_path, text)
    assert counts == [(1, 3)]
    assert "read as attempts: 'final' in 'run'" in decisions


@pytest.mark.parametrize("name", ["Gesamt", "Moyenne", "promedio", "平均", "Total"])
def test_column_of_totals_in_other_languages(tmp_path: Path, name: str) -> None:
    text = f"task,gpt-4,claude,{name}\na,1,0,1\nb,1,1,1\nc,0,0,0\n"
    assert _read(tmp_path, text)[0] == [(1, 3), (2, 3)]
    text = f"model,t1,t2,{name}\ngpt-4,1,0,1\nclaude,1,1,1\n"
    assert _read(tmp_path, text)[0] == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    "label", ["Total passed", "Summe ja", "Total (of 3)", "Σ", "Overall pass rate", "all tasks"]
)
def test_rows_of_totals_that_say_what_is_counted(tmp_path: Path, label: str) -> None:
    text = f"model,t1,t2,t3\ngpt-4,1,0,1\nclaude,1,1,1\n{label},2,1,2\n"
    assert _read(tmp_path, text)[0] == [(2, 3), (3, 3)]


def test_a_task_whose_name_begins_with_total(tmp_path: Path) -> None:
    text = "task,run,passed\ntotal eclipse,1,1\ntotal eclipse,2,0\nsum of digits,1,1\n"
    assert _read(tmp_path, text + "sum of digits,2,1\n")[0] == [(3, 4)]
