"""Any file, by a mapping: stated, saved as TOML, guessed, and shipped."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passhat import read
from passhat.errors import InvalidValue, ReadError, UnknownFormat
from passhat.readers.base import ReadOptions
from passhat.readers.guessing import guess_mapping
from passhat.readers.mapping import _load_shipped_mappings
from passhat.readers.record_map import RecordMap
from passhat.readers.records import steps_of, value_at
from passhat.readers.sources import Source

Passhat = Callable[..., Any]

NESTED: dict[str, Any] = {
    "meta": {"tool": "mine"},
    "results": [
        {"instance_id": "a", "report": {"resolved": True}, "meta": {"seed": 7}, "score": 80},
        {"instance_id": "a", "report": {"resolved": False}, "meta": {"seed": 3}, "score": 35},
        {"instance_id": "b", "report": {"resolved": True}, "meta": {"seed": 7}, "score": 90},
    ],
}
FIELDS = {"task": "instance_id", "success": "report.resolved", "trial": "meta.seed"}


def _write(folder: Path, data: object, name: str = "mine.json") -> Path:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


# -- paths -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b", 1),
        ("list[1]", "y"),
        ("list[-1]", "z"),
        ("rows[name=two].value", 2),
        ("rows[*].value", [1, 2]),
        ('"odd.key"', 5),
        ("odd.key", 5),
        ("a.nothing.here", None),
        ("list[9]", None),
        ("text.inner", 3),
    ],
)
def test_a_path_leads_to_a_value(path: str, value: object) -> None:
    data = {
        "a": {"b": 1},
        "list": ["x", "y", "z"],
        "rows": [{"name": "one", "value": 1}, {"name": "two", "value": 2}],
        "odd.key": 5,
        "text": '{"inner": 3}',
    }
    assert value_at(data, steps_of(path)) == value


# -- what a user states ----------------------------------------------------------------------


def test_records_and_fields_inside_them(tmp_path: Path) -> None:
    path = _write(tmp_path, NESTED)
    (run,) = read(path, records="results[*]", columns=FIELDS)
    assert dict(zip(run.outcomes.tasks, run.outcomes.c.tolist(), strict=True)) == {"a": 1, "b": 1}
    assert run.outcomes.order is None  # a seed gives no order
    lines = "\n".join(json.dumps(row) for row in NESTED["results"])
    (same,) = read(_write(tmp_path, lines, "mine.jsonl"), columns=FIELDS)
    assert same.outcomes.c.tolist() == run.outcomes.c.tolist()


def test_a_rule_decides_what_passes(tmp_path: Path) -> None:
    path = _write(tmp_path, NESTED)
    for rule, passed in (("score >= 50", 2), ("score > 80", 1), ("report.resolved == true", 2)):
        (run,) = read(path, records="results[*]", columns={"task": "instance_id"}, passes=rule)
        assert run.outcomes.passes == passed, rule
    with pytest.raises(InvalidValue, match="not a rule"):
        read(path, records="results[*]", columns={"task": "instance_id"}, passes="good enough")


def test_wide_becomes_long(tmp_path: Path) -> None:
    path = _write(tmp_path, "task,run_1,run_2,run_10\na,1,0,1\nb,0,,1\n", "wide.csv")
    (run,) = read(path, trials="run_*")
    assert run.outcomes.n.tolist() == [3, 2]
    assert run.outcomes.missing.tolist() == [0, 1]
    assert run.outcomes.order is not None
    assert [int(v) for v in run.outcomes.order.of(0)] == [1, 0, 1]
    scores = _write(tmp_path, "task,run_1,run_2\na,0.4,0.7\n", "scores.csv")
    (run,) = read(scores, trials="run_*", passes="value >= 0.5")
    assert run.outcomes.c.tolist() == [1]


def test_objects_by_key_and_lists_of_verdicts(tmp_path: Path) -> None:
    path = _write(tmp_path, {"tasks": {"a": {"verdicts": [1, 0, 1]}, "b": {"verdicts": [1]}}})
    (run,) = read(path, records="tasks.*", columns={"task": "@key", "success": "verdicts"})
    assert (run.outcomes.n.tolist(), run.outcomes.c.tolist()) == ([3, 1], [2, 1])


def test_a_mapping_is_a_file_that_can_be_shared(tmp_path: Path, passhat: Passhat) -> None:
    path = _write(tmp_path, NESTED)
    mapping = tmp_path / "mine.toml"
    mapping.write_text(
        'name = "mine"\nrecords = "results[*]"\n[fields]\ntask = "instance_id"\n'
        'success = "report.resolved"\n"slice:seed" = "instance_id"\n[run]\nmodel = "/meta.tool"\n'
    )
    (run,) = read(path, mapping=mapping)
    assert (run.agent, run.agent_guessed, run.outcomes.passes) == ("mine", False, 2)
    assert run.outcomes.labels["seed"] == ("a", "b")
    ended = passhat("report", path, "--map", mapping, "-k", "1")
    assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("records = ", "not TOML"),
        ('record = "x"', "'record' is not part of a mapping"),
        ('[fields]\ntsk = "x"', "'tsk' is not a field passhat knows"),
        ('records = "a[b"', "is not a path"),
        ('order = "any"', "order is trial"),
        ('pass = "high"', "not a rule"),
    ],
)
def test_a_broken_mapping_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = _write(tmp_path, NESTED)
    with pytest.raises(InvalidValue, match=message):
        read(path, mapping=_write(tmp_path, text, "broken.toml"))


# -- guessing --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["instance_id", "example_id", "question_id", "sample_id"])
@pytest.mark.parametrize("verdict", ["resolved", "correct", "passed", "is_correct"])
def test_plain_names_need_no_mapping(tmp_path: Path, name: str, verdict: str) -> None:
    rows = [{name: task, verdict: task == "a"} for task in "aab"]
    for data in (rows, {"results": rows}, {"info": {"x": 1}, "items": rows}):
        (run,) = read(_write(tmp_path, data))
        assert (run.outcomes.n.tolist(), run.outcomes.c.tolist()) == ([2, 1], [2, 0])


def test_a_guess_inside_a_record_is_proposed_and_not_used(tmp_path: Path, passhat: Passhat) -> None:
    path = _write(tmp_path, NESTED)
    rows = [{k: v for k, v in row.items() if k != "score"} for row in NESTED["results"]]
    path = _write(tmp_path, {**NESTED, "results": rows})
    with pytest.raises(UnknownFormat, match="valid JSON, but not of a format") as caught:
        read(path)
    assert "top keys are 'meta', 'results'" in str(caught.value)
    assert "--map 'records=results[*],task=instance_id," in str(caught.value)
    assert "truncated" not in str(caught.value)
    ended = passhat("read", path, "--guess")
    assert ended.code == 0
    mapping = _write(tmp_path, ended.out, "guess.toml")
    (run,) = read(path, mapping=mapping)
    assert run.outcomes.passes == 2


def test_the_hint_for_a_threshold_names_several_with_what_passes(tmp_path: Path) -> None:
    path = _write(tmp_path, "task,trial,score\na,0,80\na,1,35\n", "scores.csv")
    with pytest.raises(ReadError) as caught:
        read(path)
    hint = str(caught.value.hint)
    assert "from 100 on 0, from 80 on 1, from 50 on 1 of 2 do" in hint
    assert hint.endswith("pass_at=80 score_range='0..100'")


def test_a_guess_is_toml_that_is_read_back(tmp_path: Path) -> None:
    path = _write(tmp_path, NESTED)
    mapping, _ = guess_mapping(Source(str(path), path), ReadOptions())
    assert RecordMap.from_toml(mapping.to_toml(["a comment"]), "x") == mapping


def test_objects_by_task_are_records_even_with_a_single_field(tmp_path: Path) -> None:
    path = _write(tmp_path, json.dumps({"a": {"passed": True}, "b": {"passed": False}}))
    mapping, _ = guess_mapping(Source(str(path), path), ReadOptions())
    assert mapping.records == "*"
    assert dict(mapping.fields) == {"task": ("@key",), "success": ("passed",)}


# -- what ships ------------------------------------------------------------------------------


def test_at_least_ten_formats_are_mappings_alone() -> None:
    names = [mapping.name for mapping in _load_shipped_mappings()]
    assert len(names) >= 10
    assert len(names) == len(set(names))


def test_several_scorers_must_be_chosen_from(tmp_path: Path) -> None:
    row = {"run_id": "r", "data_source_idx": 0, "passes": {"exact": True, "tone": False}}
    path = _write(tmp_path, json.dumps(row) + "\n" + json.dumps({**row, "data_source_idx": 1}))
    with pytest.raises(ReadError, match=r"2 scorers.*--scorer: exact, tone"):
        read(path)
    assert read(path, scorer="exact")[0].outcomes.passes == 2
    assert read(path, scorer="tone")[0].outcomes.passes == 0


def test_predictions_without_verdicts_are_named_as_such(tmp_path: Path) -> None:
    row = {"model_name_or_path": "m", "instance_id": "a", "model_patch": "diff"}
    for data in (json.dumps(row) + "\n" + json.dumps(row), {"a": row}, [row]):
        with pytest.raises(ReadError, match=r"patches .* and no verdicts"):
            read(_write(tmp_path, data))


@pytest.mark.parametrize("scorer", ["exact.match v1.2", "exact[", "a]b", 'it\'s "x"', "*", "7"])
def test_a_scorer_may_be_called_anything(tmp_path: Path, scorer: str) -> None:
    path = tmp_path / "rows.jsonl"
    rows: list[dict[str, Any]] = [
        {"reference_example_id": task, "feedback": [{"key": scorer, "score": passed}]}
        for task, passed in (("a", 1), ("b", 0))
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert read(path)[0].outcomes.c.tolist() == [1, 0]
    rows = [
        {"run_id": "r", "data_source_idx": task, "passes": {scorer: passed}}
        for task, passed in ((0, True), (1, False))
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert read(path, scorer=scorer)[0].outcomes.c.tolist() == [1, 0]
    rows = [{"traceId": str(task), "name": scorer, "value": task} for task in (0, 1)]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert read(path)[0].outcomes.c.tolist() == [0, 1]


def test_experiments_stay_apart_until_the_agent_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [
        {"reference_example_id": "a", "session_name": f"exp-{i}", "feedback": {"ok": i}}
        for i in range(2)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert [run.name for run in read(path, join=True)] == ["exp-0", "exp-1"]
    (joined,) = read(path, join=True, agent="bot")
    assert (joined.outcomes.n.tolist(), joined.outcomes.c.tolist()) == ([2], [1])
