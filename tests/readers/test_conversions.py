"""Databases, Arrow datasets, YAML, archives and trees of files, read as the tables they hold."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pytest

from passhat import read
from passhat.errors import MissingExtra, ReadError
from passhat.readers import read_all

FIXTURES = Path(__file__).parent / "fixtures"
ROWS: list[dict[str, Any]] = [
    {"model": "m", "task": "a", "trial": 1, "passed": True},
    {"model": "m", "task": "a", "trial": 2, "passed": False},
    {"model": "m", "task": "b", "trial": 1, "passed": True},
]


def _sqlite(folder: Path) -> Path:
    path = folder / "results.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE settings (name, value)")
    database.execute("INSERT INTO settings VALUES ('k', 4)")
    database.execute('CREATE TABLE "../results" (model, task, trial, passed)')
    rows = [tuple(row.values()) for row in ROWS]
    database.executemany('INSERT INTO "../results" VALUES (?, ?, ?, ?)', rows)
    database.commit()
    database.close()
    return path


def _arrow(folder: Path) -> Path:
    table = arrow.Table.from_pylist(ROWS)
    path = folder / "rows.arrow"
    with arrow.OSFile(str(path), "wb") as file, arrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return path


def _dataset(folder: Path) -> Path:
    (folder / "saved").mkdir()
    for place, rows in enumerate((ROWS[:1], ROWS[1:])):
        table = arrow.Table.from_pylist(rows)
        path = folder / "saved" / f"data-0000{place}-of-00002.arrow"
        with arrow.OSFile(str(path), "wb") as f, arrow.ipc.new_stream(f, table.schema) as writer:
            writer.write_table(table)
    (folder / "saved" / "state.json").write_text('{"_split": null}')
    (folder / "saved" / "dataset_info.json").write_text('{"features": {}}')
    return folder / "saved"


def _yaml(folder: Path) -> Path:
    path = folder / "rows.yaml"
    lines = ["runs:"]
    for row in ROWS:
        lines += ["  - " + "\n    ".join(f"{key}: {json.dumps(v)}" for key, v in row.items())]
    path.write_text("\n".join(lines))
    return path


def _zip(folder: Path) -> Path:
    (folder / "inner").mkdir()
    with zipfile.ZipFile(folder / "inner" / "logs.zip", "w") as archive:
        archive.writestr("run/rows.jsonl", "\n".join(map(json.dumps, ROWS)))
    return folder / "inner"


def _by_index(folder: Path) -> Path:
    path = folder / "frame.json"
    path.write_text(json.dumps({str(number): row for number, row in enumerate(ROWS)}))
    return path


@pytest.mark.parametrize("make", [_sqlite, _arrow, _dataset, _yaml, _zip, _by_index])
def test_the_rows_of_a_file_are_read(make: Any, tmp_path: Path) -> None:
    (run,) = read(make(tmp_path))
    assert (run.agent, run.outcomes.tasks) == ("m", ("a", "b"))
    assert (run.outcomes.n.tolist(), run.outcomes.c.tolist()) == ([2, 1], [1, 1])
    assert run.outcomes.order is not None


@pytest.mark.parametrize(("extra", "module"), [("yaml", "yaml"), ("arrow", "pyarrow")])
def test_the_package_that_is_needed_is_named(
    extra: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.yaml"
    path.write_bytes(b"ARROW1\0\0" if extra == "arrow" else b"a: 1\n")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"\[{extra}\]"):
        read(path)


def test_damaged_files_are_refused_with_a_message(tmp_path: Path) -> None:
    path = tmp_path / "broken"
    for head in (b"ARROW1\0\0nothing", b"\xff\xff\xff\xff\x10\0\0\0", b"SQLite format 3\0junk"):
        path.write_bytes(head * 50)
        with pytest.raises(ReadError, match=r"Arrow file|database"):
            read(path)


def test_aliases_in_yaml_are_no_bomb(tmp_path: Path) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join(levels))
    with pytest.raises(ReadError, match="unpacks to more than"):
        read(path)


def test_an_osworld_tree_keeps_model_domain_and_score(tmp_path: Path) -> None:
    endings = {"chrome/t1": "1.0\n", "chrome/t2": "0", "gimp/t3": "0.5"}
    for model in ("gpt", "opus"):
        for task, score in endings.items():
            folder = tmp_path / "pyautogui" / "screenshot" / model / task
            folder.mkdir(parents=True)
            (folder / "result.txt").write_text(score)
            (folder / "traj.jsonl").write_text('{"step_num": 1}\n')
    runs = read(tmp_path)
    assert [run.agent for run in runs] == ["gpt", "opus"]
    for run in runs:
        assert (run.outcomes.tasks, run.outcomes.passes) == (("t1", "t2", "t3"), 1)
        assert run.outcomes.labels["domain"] == ("chrome", "chrome", "gimp")
        assert run.outcomes.scores is not None
        assert run.outcomes.scores.mean == 0.5


def test_a_table_beside_logs_is_not_counted_with_them(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "inspect_ai" / "quiz.json", tmp_path / "quiz.json")
    (tmp_path / "analysis.csv").write_text("model,task,passed\ngpt,0,1\n")
    (tmp_path / "board.yaml").write_text("- model: m\n  test_cases: 2\n  pass_rate_1: 50.0\n")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "mine.csv").write_text("model,task,passed\nmine,0,1\n")
    reading = read_all(tmp_path)
    assert [run.agent for run in reading.runs] == ["openai/gpt", "mine"]
    assert reading.refused == ()
    reasons = {Path(name).name: why for name, why in reading.passed_over}
    assert "a table beside logs" in reasons["analysis.csv"]
    assert "leaderboard of aider" in reasons["board.yaml"]


def test_a_document_that_states_its_model_and_camel_case_names(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    rows = [{"taskId": "a", "isCorrect": True}, {"taskId": "b", "isCorrect": False}]
    path.write_text(json.dumps({"modelId": "gpt", "tasks": rows}))
    (run,) = read(path)
    assert (run.agent, run.agent_guessed, run.outcomes.passes) == ("gpt", False, 1)


def test_tables_below_headings_with_a_model_are_runs(tmp_path: Path) -> None:
    table = "| task_id | success |\n| --- | --- |\n| a | {} |\n| b | false |\n"
    overview = "| Runs | Average |\n| --- | --- |\n| 1 | 50% |\n"
    path = tmp_path / "report.md"
    path.write_text(
        f"# Report\n\n## Model: `one`\n\n{overview}\n{table.format('true')}\n"
        f"## Model: `two`\n\n{overview}\n{table.format('false')}\n"
    )
    runs = read(path)
    assert [(run.agent, run.outcomes.passes) for run in runs] == [("one", 1), ("two", 0)]
    assert "of 4 tables in the text 2 are read" in " ".join(runs[0].decisions)
    path.write_text(f"{overview}\n{table.format('true')}")
    (run,) = read(path)
    assert "of 2 tables in the text the first with tasks is read" in run.decisions


DATABASES = {
    "tables that refer by stated keys": """
        CREATE TABLE models(id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE tasks(id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE runs(id INTEGER PRIMARY KEY, model INTEGER REFERENCES models, seed INTEGER);
        CREATE TABLE attempts(run INTEGER REFERENCES runs(id), task INTEGER REFERENCES tasks(id),
                              passed INTEGER);""",
    "tables that refer by the names of keys": """
        CREATE TABLE agent(agent_id INTEGER PRIMARY KEY, label TEXT);
        CREATE TABLE scenario(scenario_id INTEGER PRIMARY KEY, slug TEXT);
        CREATE TABLE run(run_id INTEGER PRIMARY KEY, agent_id INTEGER, seed INTEGER);
        CREATE TABLE outcome(run_id INTEGER, scenario_id INTEGER, passed INTEGER);""",
    "names with capitals": """
        CREATE TABLE model(modelId INTEGER PRIMARY KEY, modelName TEXT);
        CREATE TABLE task(taskId INTEGER PRIMARY KEY, title TEXT);
        CREATE TABLE run(runId INTEGER PRIMARY KEY, modelId INTEGER, seed INTEGER);
        CREATE TABLE attempt(runId INTEGER, taskId INTEGER, passed INTEGER);""",
}


@pytest.mark.parametrize("schema", DATABASES.values(), ids=DATABASES.keys())
def test_rows_of_a_database_carry_names_in_place_of_keys(tmp_path: Path, schema: str) -> None:
    path = tmp_path / "evals.db"
    database = sqlite3.connect(path)
    database.executescript(schema)
    names = [n for (n,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    tables: list[list[tuple[Any, ...]]] = [
        [(1, "alpha"), (2, "beta")],
        [(1, "sort"), (2, "find"), (3, "zip")],
        [(1, 1, 7), (2, 1, 8), (3, 2, 7), (4, 2, 8)],
        [(run, task, int(run + task > 4)) for run in (1, 2, 3, 4) for task in (1, 2, 3)],
    ]
    for name, rows in zip(names, tables, strict=True):
        marks = ", ".join("?" * len(rows[0]))
        database.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    database.commit()
    database.close()
    runs = {run.agent: run.outcomes for run in read(path)}
    assert {name: (o.attempts, o.passes) for name, o in runs.items()} == {
        "alpha": (6, 1),
        "beta": (6, 5),
    }
    assert runs["beta"].tasks == ("sort", "find", "zip")
