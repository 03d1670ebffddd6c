"""JSON records: Python's dialect, broken records lost alone, long texts cut to valid JSON."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat import read
from passhat.errors import ReadError
from passhat.readers import json_records
from passhat.readers.json_records import (
    decode,
    expand_frame,
    json_lines,
    open_document,
    read_bytes,
    short_lines,
)
from passhat.readers.sources import Source


@dataclass
class Losses:
    """Losses in the order in which they were reported."""

    lost: list[tuple[str, str, int]] = field(default_factory=list)

    def lose(self, where: str, what: str, rows: int = 1) -> None:
        self.lost.append((where, what, rows))


class Record(msgspec.Struct):
    id: int
    score: float | None = None


class Whole(msgspec.Struct):
    model: str = ""
    results: list[Record] | dict[str, Record] = []


def _source(folder: Path, content: bytes) -> Source:
    path = folder / "log.json"
    path.write_bytes(content)
    return Source(str(path), path)


def _opened(data: bytes, log: Losses) -> tuple[str, list[tuple[str, int]]]:
    document = open_document(
        *(data, log),
        whole=Whole,
        item=Record,
        items=lambda whole: whole.results,
        paths=[("results",)],
        noun="result",
    )
    return document.head.model, [(key, record.id) for key, record in document.items]


def test_numbers_that_are_no_json_are_null_and_texts_stay() -> None:
    data = b'{"a": NaN, "b": [-Infinity, Infinity], "c": "NaN is \\"NaN\\"", "NaN": 1}'
    assert decode(data, dict[str, Any]) == {
        "a": None,
        "b": [None, None],
        "c": 'NaN is "NaN"',
        "NaN": 1,
    }
    with pytest.raises(msgspec.DecodeError):
        decode(b'{"a": nan}', dict[str, Any])
    with pytest.raises(msgspec.ValidationError):
        decode(b'{"id": "NaN"}', Record)


def test_lines_that_are_broken_are_lost_alone(tmp_path: Path) -> None:
    lines = [
        b'\xef\xbb\xbf{"id": 1}',
        b"",
        b"{broken",
        b'{"id": 2, "score": NaN}\r',
        b'{"id": "two"}',
        b"\xff\xfe",
        b"   ",
        b'{"id": 3}',  # no line end
    ]
    log = Losses()
    found = list(json_lines(_source(tmp_path, b"\n".join(lines)), log, Record))
    assert [(line, record.id) for line, record in found] == [(1, 1), (4, 2), (8, 3)]
    assert [(where, rows) for where, _, rows in log.lost] == [
        ("line 3", 1),
        ("line 5", 1),
        ("line 6", 1),
    ]
    assert "{broken" in log.lost[0][1]
    assert "is not what it should be" in log.lost[1][1]


@pytest.mark.parametrize("keyed", [False, True])
def test_a_sound_document_loses_nothing(keyed: bool) -> None:
    log = Losses()
    results = {"a": {"id": 1}, "b": {"id": 2}} if keyed else [{"id": 1}, {"id": 2}]
    model, found = _opened(json.dumps({"model": "m", "results": results}).encode(), log)
    assert model == "m"
    assert found == ([("a", 1), ("b", 2)] if keyed else [("", 1), ("", 2)])
    assert log.lost == []


def test_one_broken_record_takes_no_other_with_it() -> None:
    log = Losses()
    data = b'{"model": "m", "results": [{"id": 1}, {"id": "x"}, {"id": 3}], "more": 1}'
    assert _opened(data, log) == ("m", [("", 1), ("", 3)])
    assert [(where, rows) for where, _, rows in log.lost] == [("result 2", 1)]


def test_a_broken_record_is_named_by_its_key() -> None:
    log = Losses()
    assert _opened(b'{"results": {"a": {"id": 1}, "odd, key": {"id": []}}}', log)[1] == [("a", 1)]
    assert log.lost[0][0] == "result odd, key"


def test_a_document_that_ends_early_keeps_what_is_whole() -> None:
    whole = b'{"model": "m", "results": [{"id": 1}, {"id": 2}, {"id": 3}]}'
    for length in range(whole.index(b"[") + 1, len(whole)):
        log = Losses()
        model, found = _opened(whole[:length], log)
        assert model == "m"
        ids = [number for _, number in found]
        assert ids == [1, 2, 3][: len(ids)]
        closed = whole[:length].count(b"}")
        assert len(ids) == min(3, closed)
        assert log.lost, length  # never without a word
        assert sum(rows for *_, rows in log.lost) <= 1


def test_what_has_no_records_says_so() -> None:
    log = Losses()
    assert _opened(b'{"model": "m", "other": [', log) == ("", [])
    ((where, what, rows),) = log.lost
    assert (where, rows) == ("the file", 0)
    assert "is not JSON" in what


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    assert read_bytes(_source(tmp_path, b"\xef\xbb\xbf[1]"), Losses()) == b"[1]"
    assert read_bytes(_source(tmp_path, b"[1]\xef\xbb\xbf"), Losses()) == b"[1]\xef\xbb\xbf"


TEXTS = st.text('ab"\\é漢\n\U0001f600', max_size=60)


@settings(max_examples=60)
@given(
    lines=st.lists(st.dictionaries(st.sampled_from("xyz"), TEXTS, max_size=3), max_size=4),
    ascii_only=st.booleans(),
)
def test_long_texts_are_cut_and_the_line_is_json_again(
    lines: list[dict[str, str]], ascii_only: bool
) -> None:
    """Limits of 16 MB and 1 MB are lowered to 16 and 12 bytes."""
    data = b"".join(json.dumps(row, ensure_ascii=ascii_only).encode() + b"\n" for row in lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_records, "_LONG_LINE", 16)
        patch.setattr(json_records, "_LONGEST_TEXT", 12)
        found = list(short_lines(io.BytesIO(data)))
    assert len(found) == len(lines)
    for line, row in zip(found, lines, strict=True):
        cut = json.loads(line)
        assert set(cut) == set(row)
        for key, text in cut.items():
            assert row[key].startswith(text)
            if len(json.dumps(row[key], ensure_ascii=ascii_only).encode()) <= 12:
                assert text == row[key]


_FRAME = [
    {"clinic": clinic, "vignette": f"V-{task}", "go": go, "verdikt": verdict}
    for clinic, verdicts in (("north", "ABBA"), ("south", "AAAB"))
    for task in (1, 2)
    for go, verdict in enumerate(verdicts[2 * task - 2 : 2 * task])
]
_NAMES = list(_FRAME[0])
_CELLS = [list(row.values()) for row in _FRAME]
FRAMES = {
    "split": {"columns": _NAMES, "index": list(range(8)), "data": _CELLS},
    "headers": {"headers": _NAMES, "rows": _CELLS},
    "values": [_NAMES, *_CELLS],
    "columns": {n: {str(i): row[n] for i, row in enumerate(_FRAME)} for n in _NAMES},
    "lists": {n: [row[n] for row in _FRAME] for n in _NAMES},
    "index": {str(i): row for i, row in enumerate(_FRAME)},
    "table": {"schema": {"fields": [{"name": n} for n in _NAMES]}, "data": _FRAME},
}


@pytest.mark.parametrize("form", FRAMES)
def test_a_frame_of_any_form_is_the_table_that_it_holds(tmp_path: Path, form: str) -> None:
    path = tmp_path / "frame.json"
    path.write_text(json.dumps(FRAMES[form]))
    with pytest.raises(ReadError) as caught:
        read(path)
    assert "task=vignette,model=clinic,trial=go,success=verdikt == A" in str(caught.value.hint)
    columns = {"task": "vignette", "model": "clinic", "trial": "go"}
    records = "data[*]" if form == "table" else None
    runs = read(path, columns=columns, passes="verdikt == A", records=records)
    assert {r.agent: (r.outcomes.passes, r.outcomes.attempts) for r in runs} == {
        "north": (2, 4),
        "south": (3, 4),
    }


@pytest.mark.parametrize(
    "data",
    [
        {"passed": ["a", "b"], "failed": ["c", "d"]},
        {"easy": ["a", "b"], "hard": ["c", "d"]},
        {"gpt": [1, 0, 1], "claude": [0, 1, 1]},
    ],
)
def test_lists_of_ids_or_verdicts_are_no_columns_of_a_table(
    tmp_path: Path, data: dict[str, list[object]]
) -> None:
    path = tmp_path / "lists.json"
    path.write_text(json.dumps(data))
    assert expand_frame(Source(str(path), path)) is None


_IDS = {
    "SWE-bench": {
        f"agent.run{number}": {
            "total_instances": 4,
            "resolved_ids": ["a"] if number == 1 else ["a", "b"],
            "unresolved_ids": ["b"] if number == 1 else [],
            "empty_patch_ids": ["c"],
            "incomplete_ids": ["d"] if number == 1 else [],
            "error_ids": ["d"] if number == 2 else [],
        }
        for number in (1, 2)
    },
    "lists by run": {
        "run 1": {"passed": ["a"], "failed": ["b", "c"], "skipped": ["d"]},
        "run 2": {"passed": ["a", "b"], "timeout": ["c"], "failed": [], "errored": ["d"]},
    },
    "runs in a list": {
        "runs": [
            {"trial": 1, "solved": ["a"], "completed": ["a", "b", "c"], "submitted": list("abcd")},
            {"trial": 2, "solved": ["a", "b"], "completed": list("abc"), "submitted": list("abcd")},
        ]
    },
}


@pytest.mark.parametrize("form", _IDS)
def test_lists_of_ids_by_how_they_ended_are_attempts(tmp_path: Path, form: str) -> None:
    path = tmp_path / "agent.json"
    path.write_text(json.dumps(_IDS[form]))
    (run,) = read(path)
    outcomes = run.outcomes
    assert (run.agent, len(outcomes.tasks)) == ("agent", 4)
    assert (outcomes.attempts, outcomes.passes, int(outcomes.missing.sum())) == (8, 3, 2)
    assert any("= passed" in line for line in run.decisions)


def test_lists_of_ids_by_model_and_run(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    lists = {"passed": ["a"], "failed": ["b"]}
    path.write_text(json.dumps({m: {"seed_1": lists, "seed_2": lists} for m in ("x", "y")}))
    assert {run.agent: run.outcomes.attempts for run in read(path)} == {"x": 4, "y": 4}


@pytest.mark.parametrize(
    "lists",
    [
        {"sort": {"passed": ["test_a"], "failed": ["test_b"]}},
        {"one": {"passed": ["a"], "failed": ["b"]}, "two": {"passed": ["c"], "failed": ["d"]}},
        {"m": {"passed": ["a", "a"], "failed": ["a", "b"]}},
        {"m": {"passed": ["a"], "failed": ["b"], "flaky": ["c"]}},
        {"run1": {"passed": ["a"]}, "run2": {"passed": ["a", "b"]}},
    ],
)
def test_lists_whose_meaning_is_open_are_asked_about(tmp_path: Path, lists: object) -> None:
    path = tmp_path / "lists.json"
    path.write_text(json.dumps(lists))
    with pytest.raises(ReadError):
        read(path)
