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


def _write_markdown(header: str, *rows: str) -> str:
    width = header.count("|") - 1
    return "\n".join(["", header, "|" + "---|" * width, *rows, ""])


_SETTINGS = _write_markdown("| Setting | Value |", "| repeats | 2 |", "| seed | 1 |")


@pytest.mark.parametrize(
    ("headings", "names"),
    [
        (("## North", "## South"), ["North", "South"]),
        (("## North\n### Results", "## South\n### Results"), ["North", "South"]),
        (("**North**", "**South**"), ["North", "South"]),
        (("North:", "South:"), ["North", "South"]),
    ],
)
def test_tables_of_one_header_below_other_tables(
    tmp_path: Path, headings: tuple[str, str], names: list[str]
) -> None:
    summary = _write_markdown("| Agent | Passed |", "| North | 3 |", "| South | 1 |")
    header, path = "| Flow | #1 | #2 |", tmp_path / "report.md"
    first = _write_markdown(header, "| book | ✅ | ❌ |", "| cancel | ✅ | ✅ |")
    second = _write_markdown(header, "| book | ❌ | ❌ |", "| cancel | ✅ | ⚠️ |")
    above = f"# Report\n{_SETTINGS}\n## Summary\n{summary}"
    path.write_text(f"{above}\n{headings[0]}\n{first}\n{headings[1]}\n{second}")
    runs = read(path)
    assert [run.agent for run in runs] == names
    figures = [(r.outcomes.passes, r.outcomes.scored, r.outcomes.total_missing) for r in runs]
    assert figures == [(3, 4, 0), (1, 3, 1)]


def test_tables_below_the_numbers_of_attempts(tmp_path: Path) -> None:
    table = "| task | verdict |\n|---|---|\n| a | {} |\n| b | fail |\n"
    path = tmp_path / "report.md"
    path.write_text(f"## Run 1\n\n{table.format('pass')}\n## Run 2\n\n{table.format('fail')}")
    (run,) = read(path)
    assert (len(run.outcomes), run.outcomes.passes, run.outcomes.scored) == (2, 1, 4)


def test_a_table_that_leaves_rows_out_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    path.write_text("| task | ok |\n|---|---|\n| a | 1 |\n| ... | ... |\n| z | 0 |\n")
    with pytest.raises(ReadError, match="without some of its rows"):
        read(path)


_FRAME = [["", "task", "model", "run 1", "run 2"]] + [
    [str(n), task, model, "1", str(n % 2)]
    for n, (task, model) in enumerate([(t, m) for t in "abc" for m in ("gpt-4", "claude")])
]


def _write_notebook(path: Path, *outputs: dict[str, object]) -> Path:
    cells = [{"cell_type": "markdown", "source": ["# Results\n", "of two models"]}] + [
        {"cell_type": "code", "source": ["df"], "outputs": [output]} for output in outputs
    ]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    return path


def _frame_forms() -> dict[str, dict[str, object]]:
    html = "".join(f"<tr>{''.join(f'<td>{c}</td>' for c in row)}</tr>" for row in _FRAME[1:])
    head = "".join(f"<th>{cell}</th>" for cell in _FRAME[0])
    plain = "\n".join("  ".join(f"{cell:>6}" for cell in row) for row in _FRAME)
    plain = "\n".join(line if n == 0 else line.lstrip() for n, line in enumerate(plain.split("\n")))
    return {
        "html": {
            "data": {"text/html": [f"<table><tr>{head}</tr>{html}</table>"], "text/plain": ["?"]}
        },
        "plain": {"data": {"text/plain": plain.splitlines(keepends=True)}},
        "printed": {"output_type": "stream", "text": plain.splitlines(keepends=True)},
    }


@pytest.mark.parametrize("form", ["html", "plain", "printed"])
def test_the_table_that_a_notebook_shows(tmp_path: Path, form: str) -> None:
    means = "         run 1  run 2\nclaude     1.0    1.0\ngpt-4      1.0    0.0"
    path = _write_notebook(
        tmp_path / "eval.ipynb", _frame_forms()[form], {"data": {"text/plain": [means]}}
    )
    runs = read(path)
    figures = {run.agent: (run.outcomes.passes, run.outcomes.scored) for run in runs}
    assert figures == {"gpt-4": (3, 6), "claude": (6, 6)}


def test_a_page_with_cells_over_several_rows_and_a_sum(tmp_path: Path) -> None:
    rows = "".join(
        f"<tr><td rowspan=2>{model}<td>a<td>{first}</tr><tr><td>b<td>fail</tr>"
        for model, first in (("gpt-4", "pass"), ("claude", "fail"))
    )
    head = "<tr><th>model</th><th>task</th><th>result</th></tr>"
    path = tmp_path / "page.html"
    path.write_text(
        f"<table>{head}{rows}<tfoot><tr><td>Passed</td><td></td><td>1/4</td></tr></table>"
    )
    runs = read(path)
    assert {run.agent: (run.outcomes.passes, run.outcomes.scored) for run in runs} == {
        "gpt-4": (1, 2),
        "claude": (0, 2),
    }


def test_latex_of_two_tables_with_headings_over_columns(tmp_path: Path) -> None:
    path = tmp_path / "paper.tex"
    path.write_text(
        r"""
        \begin{tabular}{ll} Setting & Value \\ \hline steps & 40 \\ \end{tabular}
        \begin{table} \caption{Plans.} \begin{tabular}{lcc}
        \hline Domain & GPT-4 & PaLM 2 \\ \cmidrule(lr){2-3}
        Depots & \textbf{\underline{3/5}} & \cellcolor{gray!20} $2/5$ \\
        Rovers & \multirow{1}{*}{1/5} & \textcolor{red}{0/5} \\ \hline
        \end{tabular} \end{table}
        """
    )
    runs = read(path)
    assert {run.agent: (run.outcomes.passes, run.outcomes.scored) for run in runs} == {
        "GPT-4": (4, 10),
        "PaLM 2": (2, 10),
    }


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


def test_a_notebook_without_a_table_is_refused(tmp_path: Path) -> None:
    path = _write_notebook(tmp_path / "eval.ipynb", {"data": {"text/plain": ["42"]}})
    with pytest.raises(ReadError, match="shows no table of attempts"):
        read(path)
