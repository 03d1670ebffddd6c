"""Logs of harnesses, written again with the same meaning: the same numbers as a plain reading.

Each writer below is the plain second reading: a few lines from a list of attempts to a log. Keys,
rows, white space, number forms, encodings, and the file's name differ from example to example.
"""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pyarrow
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import read

pytestmark = pytest.mark.hypothesis

Attempt = tuple[str, int, bool | None]
Counts = list[tuple[int, int, int]]
Form = Callable[[list[Attempt], random.Random, Path], None]

_NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,6}[a-z]", fullmatch=True)


@st.composite
def attempts(draw: st.DrawFn) -> list[Attempt]:
    tasks = draw(st.lists(_NAMES, min_size=2, max_size=5, unique=True))
    verdicts = st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=4)
    rows = [(task, i, verdict) for task in tasks for i, verdict in enumerate(draw(verdicts))]
    others = [row for row in rows if row[1] or row[0] not in tasks[:2]]
    return [(tasks[0], 0, True), (tasks[1], 0, False), *others]


def _plain(rows: list[Attempt]) -> Counts:
    """n, c and missing of every task, counted by hand."""
    counts = {task: [0, 0, 0] for task, _, _ in rows}
    for task, _, verdict in rows:
        counts[task][0] += verdict is not None
        counts[task][1] += verdict is True
        counts[task][2] += verdict is None
    return sorted((n, c, m) for n, c, m in counts.values())


def _encode(value: object, seed: random.Random, space: str) -> str:
    """JSON with its keys in any order and numbers in any form."""
    if isinstance(value, dict):
        pairs = [
            f"{json.dumps(str(key))}:{space}{_encode(inner, seed, space)}"
            for key, inner in seed.sample(list(value.items()), len(value))
        ]
        return "{" + f",{space}".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + f",{space}".join(_encode(inner, seed, space) for inner in value) + "]"
    if isinstance(value, float):
        return seed.choice([repr(value), f"{value:e}", f"{value:.3f}", f"{value * 10!r}e-1"])
    return json.dumps(value, ensure_ascii=seed.random() < 0.5)


def _write(folder: Path, data: bytes, seed: random.Random, ending: str) -> None:
    if seed.random() < 0.2:
        data = b"\xef\xbb\xbf" + data
    name = seed.choice(["log", "my results", "ü-1"]) + seed.choice([ending, ".txt"])
    if seed.random() < 0.2:
        data, name = gzip.compress(data), f"{name}.gz"
    (folder / name).write_bytes(data)


def _document(make: Callable[[list[Attempt]], object]) -> Form:
    def write(rows: list[Attempt], seed: random.Random, folder: Path) -> None:
        space = seed.choice(["", " ", "\n  ", "\r\n\t"])
        text = _encode(make(rows), seed, space) + seed.choice(["", "\n", " \n\n"])
        _write(folder, text.encode(), seed, ".json")

    return write


def _lines(make: Callable[[list[Attempt]], list[dict[str, Any]]], first: int = 0) -> Form:
    """Lines in any order behind the ``first`` ones."""

    def write(rows: list[Attempt], seed: random.Random, folder: Path) -> None:
        records = make(rows)
        records = [*records[:first], *seed.sample(records[first:], len(records) - first)]
        end = seed.choice(["\n", "\r\n", "\n\n"])
        text = end.join(_encode(record, seed, seed.choice(["", " "])) for record in records) + end
        _write(folder, text.encode(), seed, ".jsonl")

    return write


def _by_task(rows: list[Attempt], words: dict[bool | None, Any]) -> dict[str, list[Any]]:
    lists: dict[str, list[Any]] = {}
    for task, _, verdict in rows:
        lists.setdefault(task, []).append(words[verdict])
    return lists


_REWARDS: dict[bool | None, float | None] = {True: 1.0, False: 0.0, None: None}


def _tau2(rows: list[Attempt]) -> object:
    return {
        "info": {
            "agent_info": {"llm": "gpt", "implementation": "llm_agent", "llm_args": {}},
            "user_info": {"llm": "gpt", "implementation": "user_simulator"},
            "environment_info": {"domain_name": "retail"},
        },
        "tasks": [{"id": task} for task, _, _ in rows],
        "simulations": [
            {
                "id": f"{task}-{trial}",
                "task_id": task,
                "trial": trial,
                "termination_reason": "infrastructure_error" if verdict is None else "user_stop",
                "reward_info": None if verdict is None else {"reward": float(verdict)},
                "messages": [],
            }
            for task, trial, verdict in rows
        ],
    }


def _inspect(rows: list[Attempt]) -> object:
    samples = [
        {"id": task, "epoch": trial + 1, "scores": {"match": {"value": "C" if verdict else "I"}}}
        if verdict is not None
        else {"id": task, "epoch": trial + 1, "scores": {}, "error": {"message": "docker died"}}
        for task, trial, verdict in rows
    ]
    about = {"task": "quiz", "task_id": "T", "model": "gpt", "config": {}, "dataset": {"name": "q"}}
    return {"version": 2, "status": "success", "eval": about, "plan": {}, "samples": samples}


def _promptfoo(rows: list[Attempt]) -> object:
    shared = {"prompt": {"raw": "x", "label": "ask"}, "promptIdx": 0, "provider": {"id": "p"}}
    results = [
        {
            **shared,
            "vars": {"a": task},
            "success": bool(verdict),
            "response": {"output": str(trial)},
        }
        for task, trial, verdict in rows
    ]
    for result, (_, _, verdict) in zip(results, rows, strict=True):
        if verdict is None:
            result |= {"error": "429 Too many requests", "response": None}
    return {"evalId": "e", "results": {"version": 3, "results": results, "prompts": []}}


def _terminal_bench(rows: list[Attempt]) -> object:
    return {
        "id": "x",
        "results": [
            {
                "id": f"{task}-{trial}",
                "task_id": task,
                "trial_name": f"{task}.{trial + 1}-of-9.run",
                "is_resolved": verdict,
                "failure_mode": "test_timeout" if verdict is None else "unset",
            }
            for task, trial, verdict in rows
        ],
        "pass_at_k": {},
        "accuracy": None,
    }


def _helm(rows: list[Attempt]) -> object:
    def stats(verdict: bool | None) -> list[dict[str, Any]]:
        names = [("num_output_tokens", 5.0), ("exact_match", float(verdict or 0))]
        return [
            {"name": {"name": name, "split": "test"}, "count": 1, "mean": mean}
            for name, mean in names
        ]

    return [
        {"instance_id": task, "train_trial_index": trial, "stats": stats(verdict)}
        for task, trial, verdict in rows
    ]


def _helm_folder(rows: list[Attempt], seed: random.Random, folder: Path) -> None:
    """A run folder: the statistics, beside files about the run that hold no attempts."""
    share = sum(bool(verdict) for *_, verdict in rows) / len(rows)
    metric = {"name": "exact_match", "split": "test"}
    files = {
        "per_instance_stats.json": _helm(seed.sample(rows, len(rows))),
        "run_spec.json": {"name": "quiz:x=1", "adapter_spec": {"model": "m", "temperature": 0.5}},
        "stats.json": [{"name": metric, "count": 1, "mean": share}],
        "scenario.json": {"name": "quiz", "tags": ["x"]},
        "scenario_state.json": {
            "adapter_spec": {"model": "m"},
            "request_states": [
                {"instance": {"id": task, "split": "test"}, "result": {"success": True}}
                for task, _, _ in rows
            ],
        },
        "instances.json": [{"id": task, "input": {"text": "?"}} for task, _, _ in rows],
        "display_predictions.json": [
            {"instance_id": task, "predicted_text": "x", "stats": {"exact_match": 0.0}}
            for task, _, _ in rows
        ],
    }
    for name in seed.sample([*files], len(files)):
        path = folder / "quiz,model=m" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(_encode(files[name], seed, seed.choice(["", " ", "\n"])))


def _phoenix(rows: list[Attempt]) -> object:
    return [
        {
            "id": f"{task}{trial}",
            "example_id": task,
            "repetition_number": trial + 1,
            "annotations": [{"name": "exact", "score": _REWARDS[verdict]}],
            "error": "429" if verdict is None else None,
        }
        for task, trial, verdict in rows
    ]


def _summary(rows: list[Attempt]) -> object:
    words = {True: "resolved_ids", False: "unresolved_ids", None: "error_ids"}
    lists: dict[str, list[str]] = {word: [] for word in words.values()}
    for task, _, verdict in rows:
        lists[words[verdict]].append(task)
    return {**lists, "submitted_ids": [task for task, _, _ in rows], "total_instances": len(rows)}


def _openai_events(rows: list[Attempt]) -> list[dict[str, Any]]:
    events = [
        {"run_id": "r", "event_id": 1, "sample_id": task, "type": "match", "data": {"correct": v}}
        if v is not None
        else {"run_id": "r", "event_id": 1, "sample_id": task, "type": "error",
              "data": {"message": "rate limit"}}
        for task, _, v in rows
    ]  # fmt: skip
    return [{"spec": {"completion_fns": ["f"], "eval_name": "e", "run_id": "r"}}, *events]


def _junit(rows: list[Attempt], seed: random.Random, folder: Path) -> None:
    cases = [
        f"<testcase classname='c' name={quoteattr(task)} time='{seed.random():.3f}'"
        + ("/>" if verdict else "><failure message='no'/></testcase>")
        for task, _, verdict in rows
    ]
    text = seed.choice(["", " ", "\n  "]).join(cases)
    text = f"<testsuites><testsuite name='s'>{text}</testsuite></testsuites>"
    _write(folder, text.encode(), seed, ".xml")


def _osworld(rows: list[Attempt], seed: random.Random, folder: Path) -> None:
    for task, _, verdict in rows:
        path = folder / "pyautogui" / "screenshot" / "gpt" / "chrome" / task
        path.mkdir(parents=True)
        word = {True: ["1", "1.0", "1.0\n"], False: ["0", "0.0", "0.00\n"], None: [""]}[verdict]
        (path / "result.txt").write_text(seed.choice(word))
        (path / "traj.jsonl").write_text("{}\n")


def _webarena(rows: list[Attempt], seed: random.Random, folder: Path) -> None:
    lines = []
    for task, _, verdict in rows:
        lines.append(f"2024 [Config file]: /tmp/{seed.randrange(9)}/{task}.json")
        word = {True: "[Result] (PASS)", False: "[Result] (FAIL)", None: "[Unhandled Error] x"}
        lines.append(f"{word[verdict]} /tmp/{task}.json")
    _write(folder, seed.choice(["\n", "\r\n", "\n\n"]).join(lines).encode(), seed, ".log")


def _sqlite(rows: list[Attempt], seed: random.Random, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "runs.db")) as base:
        columns = seed.sample(["task", "trial", "passed"], 3)
        base.execute(f"CREATE TABLE results ({', '.join(columns)})")
        for task, trial, verdict in seed.sample(rows, len(rows)):
            cells = {"task": task, "trial": trial, "passed": verdict}
            base.execute("INSERT INTO results VALUES (?, ?, ?)", [cells[c] for c in columns])
        base.commit()


def _excel(rows: list[Attempt], seed: random.Random, folder: Path) -> None:
    def row(number: int, cells: list[object]) -> str:
        texts = [
            f'<c r="{"ABC"[i]}{number}"><v>{cell}</v></c>'
            if isinstance(cell, int)
            else f'<c r="{"ABC"[i]}{number}" t="inlineStr"><is><t>{cell}</t></is></c>'
            for i, cell in enumerate(cells)
            if cell is not None
        ]
        return f'<row r="{number}">{"".join(texts)}</row>'

    order = seed.sample(range(3), 3)
    table = [["task", "trial", "passed"]]
    table += [[t, i, None if v is None else int(v)] for t, i, v in seed.sample(rows, len(rows))]  # type: ignore[list-item]
    text = "".join(row(n, [cells[i] for i in order]) for n, cells in enumerate(table, 1))
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    with zipfile.ZipFile(folder / "book.xlsx", "w", seed.choice([0, 8])) as book:
        book.writestr("xl/workbook.xml", f'<workbook xmlns="{space}"><sheets/></workbook>')
        sheet = f'<worksheet xmlns="{space}"><sheetData>{text}</sheetData></worksheet>'
        book.writestr("xl/worksheets/sheet1.xml", sheet)


def _yaml(rows: list[Attempt], seed: random.Random, folder: Path) -> None:
    words: dict[bool | None, str] = {True: "true", False: "false", None: "null"}
    words |= seed.choice([{}, {True: "1.0", False: "0"}])
    lines = [
        f"- task: {json.dumps(task)}\n  trial: {trial}\n  passed: {words[verdict]}"
        for task, trial, verdict in rows
    ]
    (folder / "runs.yaml").write_text("\n".join(lines) + "\n")


def _harbor(rows: list[Attempt], seed: random.Random, folder: Path) -> None:
    """A folder for each trial of a job."""
    for task, trial, verdict in rows:
        result = {
            "task_name": task,
            "trial_name": f"{task}__{trial}",
            "agent_info": {"name": "claude-code", "model_info": {"name": "opus"}},
            "agent_result": {"n_input_tokens": 5, "n_output_tokens": 6, "cost_usd": 0.25},
            "verifier_result": {"rewards": {"reward": _REWARDS[verdict]}},
            "exception_info": None,
        }
        path = folder / "job" / f"{task}__{trial}" / "result.json"
        path.parent.mkdir(parents=True)
        path.write_text(_encode(result, seed, seed.choice(["", " ", "\n"])))


def _columns(rows: list[Attempt], seed: random.Random) -> dict[str, list[Any]]:
    mixed_rows = seed.sample(rows, len(rows))
    cells = {"task": 0, "trial": 1, "passed": 2}
    return {n: [row[cells[n]] for row in mixed_rows] for n in seed.sample([*cells], 3)}


def _parquet(rows: list[Attempt], seed: random.Random, folder: Path) -> None:
    table = pyarrow.table(_columns(rows, seed))
    path = folder / seed.choice(["runs.parquet", "my runs.pq"])
    parquet.write_table(table, path, compression=seed.choice(["NONE", "SNAPPY", "ZSTD"]))


def _arrow(rows: list[Attempt], seed: random.Random, folder: Path) -> None:
    table = pyarrow.table(_columns(rows, seed))
    make = seed.choice([pyarrow.ipc.new_file, pyarrow.ipc.new_stream])
    with make(str(folder / "runs.arrow"), table.schema) as writer:
        writer.write_table(table)


def _mlflow(rows: list[Attempt]) -> object:
    return {
        "columns": ["inputs", "outputs", "exact_match/v1/score", "latency"],
        "data": [[task, "x", _REWARDS[verdict], 0.25] for task, _, verdict in rows],
    }


def _bfcl(rows: list[Attempt]) -> list[dict[str, Any]]:
    """The entries that failed, below the counts of all."""
    passed = sum(verdict is True for _, _, verdict in rows)
    counts = {"accuracy": passed / len(rows), "correct_count": passed, "total_count": len(rows)}
    failed = [task for task, _, verdict in rows if not verdict]
    more = {"model_name": "m", "test_category": "simple", "valid": False, "error_type": "x"}
    return [counts, *({**more, "id": task} for task in failed)]


def _row(names: str, **more: Any) -> Callable[[list[Attempt]], list[dict[str, Any]]]:
    """A record per attempt: the names of task and trial, and more with the verdict filled in."""
    task_name, trial_name = names.split()

    def fill(value: Any, verdict: bool | None) -> Any:
        if isinstance(value, dict):
            return {key: fill(inner, verdict) for key, inner in value.items()}
        return value(verdict) if callable(value) else value

    def make(rows: list[Attempt]) -> list[dict[str, Any]]:
        return [
            {task_name: task, trial_name: f"{task}-{i}" if trial_name == "id" else i,
             **{key: fill(value, verdict) for key, value in more.items()}}
            for task, i, verdict in rows
        ]  # fmt: skip

    return make


_reward = _REWARDS.__getitem__
WITH_MISSING: dict[str, Form] = {
    "tau_bench": _document(_row("task_id trial", reward=_reward, info={}, traj=[])),
    "tau2_bench": _document(_tau2),
    "inspect_ai": _document(_inspect),
    "promptfoo": _document(_promptfoo),
    "terminal_bench": _document(_terminal_bench),
    "livecodebench": _document(
        lambda rows: [
            {"question_id": task, "contest_id": "1", "graded_list": grades}
            for task, grades in _by_task(rows, {True: True, False: False, None: -1}).items()
        ]
    ),
    "phoenix": _document(_phoenix),
    "braintrust": _lines(_row("input id", scores={"exact": _reward}, is_root=True)),
    "weave": _lines(
        lambda rows: [
            {
                "inputs": {"example": {"id": task}, "trial_index": trial, "model": "m"},
                "output": {"scores": {"exact": {"correct": verdict}}},
            }
            for task, trial, verdict in rows
        ]
    ),
    "export": _lines(
        _row(
            "task attempt",
            run="r",
            agent="a",
            passed=lambda v: v,
            category=None,
            reason=lambda v: "rate_limit" if v is None else None,
        )
    ),
    "every_eval_ever": _lines(
        lambda rows: [
            {
                "schema_version": "0.3.0",
                "evaluation_id": "e",
                "model_id": "m",
                "evaluation_name": "s",
                "sample_id": task,
                "evaluation": {"score": _REWARDS[verdict], "is_correct": verdict},
                "metadata": {"attempt": str(trial)},
            }
            for task, trial, verdict in rows
        ]
    ),
    "langsmith": _lines(_row("reference_example_id id", feedback={"exact": _reward}, error=None)),
    "mlflow": _document(_mlflow),
    "parquet": _parquet,
    "arrow": _arrow,
    "sqlite": _sqlite,
    "excel": _excel,
    "yaml": _yaml,
}
WITHOUT_MISSING: dict[str, Form] = {
    "human_eval": _lines(
        _row("task_id id", completion="x", passed=bool, result={True: "passed", False: "no"}.get)
    ),
    "evalplus": _document(
        lambda rows: {
            "hash": "h",
            "eval": {
                task: [
                    {"solution": "x", "base_status": word, "plus_status": word} for word in words
                ]
                for task, words in _by_task(rows, {True: "pass", False: "fail"}).items()
            },
        }
    ),
    "evalplus older": _document(
        lambda rows: {
            "date": "x",
            "hash": "h",
            "eval": {
                task: {"nfiles": len(ends), "base": ends, "plus": ends}
                for task, ends in _by_task(
                    rows, {True: ["success", [True]], False: ["failed", []]}
                ).items()
            },
        }
    ),
    "cruxeval": _document(
        lambda rows: {
            "raw_generations": {},
            "raw_scored_generations": _by_task(rows, {True: True, False: False}),
            "pass_at_1": 50.0,
        }
    ),
    "helm": _document(_helm),
    "helm folder": _helm_folder,
    "deepeval": _document(
        lambda rows: {"testCases": _row("input order", success=bool, metricsData=[])(rows)}
    ),
    "openai_evals_api": _lines(
        _row("data_source_idx run_id", passes={"exact": bool}, grades={"exact": _reward})
    ),
    "langfuse": _lines(
        _row("datasetItemId id", name="exact", value=_reward, dataType="NUMERIC", traceId="")
    ),
    "mlflow traces": _lines(
        lambda rows: [
            {
                "trace_id": f"tr-{task}-{trial}",
                "request": task,
                "execution_duration": 0.5,
                "assessments": [{"assessment_name": "exact", "feedback": {"value": verdict}}],
            }
            for task, trial, verdict in rows
        ]
    ),
    "harbor": _harbor,
    "junit": _junit,
}
SINGLE: dict[str, Form] = {
    "swe_bench": _document(
        lambda rows: {
            "name": "m",
            "per_instance_details": {t: {"resolved": v, "cost": 0.5} for t, _, v in rows},
        }
    ),
    "swe_bench summary": _document(_summary),
    "hal": _document(
        lambda rows: {
            "config": {"agent_name": "a", "benchmark_name": "b"},
            "raw_eval_results": {t: {"reward": _REWARDS[v], "cost": 0.25} for t, _, v in rows},
        }
    ),
    "openhands": _lines(
        _row("instance_id id", test_result={"report": {"resolved": lambda v: v}}, metadata={})
    ),
    "openai_evals": _lines(_openai_events, first=1),
    "mmlu_pro": _document(
        _row("question_id answer_index", answer="A", pred={True: "A", False: "B", None: None}.get)
    ),
    "osworld": _osworld,
    "webarena": _webarena,
}
SINGLE_WITHOUT_MISSING: dict[str, Form] = {
    "agentbeats": _document(
        lambda rows: {
            "participants": {"agent": "toy"},
            "results": [
                {
                    "evaluation_results": {
                        "raw_results": [
                            {"task_id": t, "success": bool(v), "duration": 1.5} for t, _, v in rows
                        ]
                    }
                }
            ],
        }
    ),
    "bfcl": _lines(_bfcl, first=1),
    "lm_eval": _lines(_row("doc_id target", filter="none", resps=[["x"]], metrics=["em"], em=int)),
}


def _check(form: Form, rows: list[Attempt], number: int) -> None:
    seed = random.Random(number)
    with tempfile.TemporaryDirectory() as folder:
        form(seed.sample(rows, len(rows)), seed, Path(folder))
        files = list(Path(folder).iterdir())
        runs = read(files[0] if files[0].is_file() else folder)
    for run in runs:
        outcomes = run.outcomes
        columns = (outcomes.n, outcomes.c, outcomes.missing)
        found = sorted(zip(*(map(int, column) for column in columns), strict=True))
        assert found == _plain(rows)
        assert run.tally is not None
        skipped = sum(run.tally.skipped.values())
        assert (run.tally.lost, run.tally.rows) == (0, run.tally.attempts + skipped)


EXAMPLES = settings(max_examples=max_examples(6))
NUMBERS = st.integers(0, 2**32)


@pytest.mark.parametrize("form", WITH_MISSING)
@EXAMPLES
@given(rows=attempts(), number=NUMBERS)
def test_attempts_with_missing_ones(form: str, rows: list[Attempt], number: int) -> None:
    _check(WITH_MISSING[form], rows, number)


@pytest.mark.parametrize("form", WITHOUT_MISSING)
@EXAMPLES
@given(rows=attempts(), number=NUMBERS)
def test_attempts_with_a_verdict_each(form: str, rows: list[Attempt], number: int) -> None:
    _check(WITHOUT_MISSING[form], [(task, i, bool(v)) for task, i, v in rows], number)


@pytest.mark.parametrize("form", SINGLE)
@EXAMPLES
@given(rows=attempts(), number=NUMBERS)
def test_one_attempt_per_task(form: str, rows: list[Attempt], number: int) -> None:
    _check(SINGLE[form], [row for row in rows if row[1] == 0], number)


@pytest.mark.parametrize("form", SINGLE_WITHOUT_MISSING)
@EXAMPLES
@given(rows=attempts(), number=NUMBERS)
def test_one_verdict_per_task(form: str, rows: list[Attempt], number: int) -> None:
    first: list[Attempt] = [(task, i, bool(v)) for task, i, v in rows if i == 0]
    _check(SINGLE_WITHOUT_MISSING[form], first, number)
