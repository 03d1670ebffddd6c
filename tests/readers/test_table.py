"""Tables people have: read as they are, or refused with file and line."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import PasshatError, estimate, read
from passhat.errors import ReadError
from passhat.stats.outcomes import Verdict

Table = Callable[..., Path]

LONG = "model,task,trial,success\nm,a,0,1\nm,a,1,0\nm,b,0,1\nm,b,1,\n"


def test_a_long_table(table: Table) -> None:
    (run,) = read(table(LONG))
    assert (run.name, run.agent) == ("m", "m")
    assert run.outcomes.tasks == ("a", "b")
    assert run.outcomes.n.tolist() == [2, 1]
    assert run.outcomes.missing.tolist() == [0, 1]
    assert run.missing_by_reason == {"not_recorded": 1}
    assert run.protocol.attempts == 2
    assert run.outcomes.order is not None
    assert [str(attempt) for attempt in run.attempts or ()] == [
        "a#1 passed",
        "a#2 failed (unknown_failure)",
        "b#1 passed",
        "b#2 missing (not_recorded)",
    ]


def test_trials_sort_attempts_by_number_not_by_line_or_letter(table: Table) -> None:
    rows = "".join(f"a,{trial},{int(trial in (2, 10))}\n" for trial in (10, 9, 2, 1))
    (run,) = read(table("task,trial,success\n" + rows))
    assert run.outcomes.order is not None
    assert [int(v) for v in run.outcomes.order.of(0)] == [0, 1, 0, 1]


def test_seeds_tell_attempts_apart_but_give_no_order(table: Table) -> None:
    (run,) = read(table("task,seed,success\na,42,1\na,7,0\n"))
    assert run.outcomes.order is None
    assert any("gives no order" in line for line in run.reading)


def test_no_trial_column_is_said(table: Table) -> None:
    (run,) = read(table("task,success\na,1\na,0\n", "mine.csv"))
    assert run.name == "mine"
    assert run.outcomes.order is None
    assert "no column for the trial: the order of attempts is unknown" in run.reading
    assert "no column for the model: the run is named after the file" in run.reading


def test_counts(table: Table) -> None:
    (run,) = read(table("model;task;n;c;missing\nm;a;5;0;1\nm;b;5;5;0\n"))
    assert run.outcomes.n.tolist() == [5, 5]
    assert run.outcomes.missing.tolist() == [1, 0]
    assert run.attempts is None
    assert estimate(run.outcomes, "pass^5").value == 0.5


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("packed", [False, True])
def test_line_ends_byte_order_mark_and_gzip(
    table: Table, newline: str, mark: str, packed: bool
) -> None:
    content = (mark + LONG.replace("\n", newline)).encode()
    (run,) = read(table(gzip.compress(content) if packed else content, "anything.dat"))
    assert run.outcomes.n.tolist() == [2, 1]


def test_json_lines(table: Table) -> None:
    rows = [
        {"agent": "m", "task_id": 1, "attempt": 1, "reward": 1.0, "extra": {"a": [1]}},
        {"agent": "m", "task_id": 1, "attempt": 2, "reward": 0.4},
        {"agent": "m", "task_id": "2", "attempt": 1, "reward": None},
        {"agent": "m", "task_id": "2", "attempt": 2},
    ]
    text = "\n\n".join(json.dumps(row) for row in rows)
    (run,) = read(table(text, "rows.jsonl"))
    assert run.outcomes.tasks == ("1", "2")
    assert run.outcomes.c.tolist() == [1, 0]
    assert run.outcomes.missing.tolist() == [0, 2]


def test_a_key_that_appears_late_is_still_read(table: Table) -> None:
    rows = [{"task": f"t{i}", "success": 1} for i in range(4000)]
    rows += [{"task": "late", "success": None, "failure": "rate_limit"}]
    (run,) = read(table("\n".join(map(json.dumps, rows)), "rows.jsonl"))
    assert run.outcomes.total_missing == 1


def test_parquet(tmp_path: Path, table: Table) -> None:
    path = tmp_path / "table.parquet"
    source = table(LONG)
    duckdb.sql(f"COPY (FROM read_csv('{source}')) TO '{path}' (FORMAT parquet)")
    (run,), (same,) = read(path), read(source)
    assert run.outcomes.to_dict() == same.outcomes.to_dict()
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ReadError, match="cannot be read as Parquet"):
        read(broken)


def test_extra_columns_are_kept(table: Table) -> None:
    (run,) = read(
        table(
            "model,task,trial,success,temperature,duration,steps,cost,tokens,failure,slice:band\n"
            "m,a,0,0,0.7,1.5,12,0.01,300,timeout,easy\n"
            "m,a,1,,0.7,,,,,rate_limit,easy\n"
        )
    )
    assert run.attempts is not None
    first, second = run.attempts
    assert first.to_dict() == {
        "task": "a",
        "attempt": 1,
        "passed": False,
        "score": None,
        "category": "timeout",
        "reason": None,
        "detail": "timeout",
        "seconds": 1.5,
        "steps": 12.0,
        "tokens": 300.0,
        "cost": 0.01,
    }
    assert second.verdict is Verdict.MISSING
    assert second.to_dict()["cost"] is None
    assert run.missing_by_reason == {"rate_limit": 1}
    assert run.failures_by_category == {"timeout": 1}
    assert run.outcomes.labels["band"] == ("easy",)
    assert dict(run.protocol.decoding) == {"temperature": 0.7}


def test_a_failure_that_is_ours_but_counted_as_failed_is_pointed_out(table: Table) -> None:
    (run,) = read(table("task,trial,success,failure\na,0,0,rate_limit\na,1,1,\n"))
    assert run.outcomes.total_missing == 0
    assert any("1 attempt with failure 'rate_limit' counted as failed" in s for s in run.reading)


def test_one_run_per_model_suite_and_temperature(table: Table) -> None:
    rows = "".join(
        f"{model},{suite},a,0,{temperature},1\n"
        for model in ("m", "o")
        for suite in ("x", "y")
        for temperature in ("0.2", "0.8")
    )
    runs = read(table("model,suite,task,trial,temp,success\n" + rows))
    assert [run.name for run in runs][:2] == ["m on x T=0.2", "m on x T=0.8"]
    assert len({run.name for run in runs}) == 8


def test_the_same_name_in_two_files_stays_two_runs(table: Table) -> None:
    runs = read([table(LONG, "one.csv"), table(LONG, "two.csv")])
    assert len(runs) == 2
    assert runs[0].name != runs[1].name


def test_a_map_wins(table: Table) -> None:
    (run,) = read(
        table("llm,question,won\nm,a,yes\n"),
        columns={"model": "llm", "task": "question", "success": "won"},
    )
    assert (run.name, run.outcomes.passes) == ("m", 1)


def test_a_stated_threshold_is_recorded_in_the_protocol(table: Table) -> None:
    path = table("task,trial,score\na,0,40\na,1,80\n")
    with pytest.raises(ReadError, match=r"rewards go up to 80.*pass_at=80"):
        read(path)
    (run,) = read(path, pass_at=50)
    assert run.outcomes.passes == 1
    assert run.protocol.pass_at == 50


BROKEN = {
    "missing column": ("model,trial,success\nm,0,1\n", "line 1: no column was recognized as task"),
    "no verdict": ("model,task\nm,a\n", "line 1: no column was recognized as success"),
    "c above n": ("task,n,c\na,5,1\nb,5,7\n", "line 3: n = 5, c = 7: more passes"),
    "no attempts": ("task,n,c\na,0,0\n", "line 2: .*at least one attempt"),
    "duplicate trial": (LONG + "\nm,a,1,1\n", r"line 7: trial '1' of task 'a'.*\(see line 3\)"),
    "duplicate count": ("task,n,c\na,5,1\na,5,1\n", r"line 3: task 'a'.*\(see line 2\)"),
    "empty file": ("", "the file is empty"),
    "only a header": ("model,task,trial,success\n", "has no rows"),
    "binary junk": (bytes(range(256)) * 20, "is a binary file"),
    "zip": (b"PK\x03\x04" + bytes(100), "is a binary file"),
    "long header": ("a" * 10**7 + ",success\nx,1\n", "line 1: no column was recognized as task"),
    "many commas": ("task,success\n" + "," * 10**7 + "\n", "line 2: 10,000,001 cells"),
    "open quote": ('task,success\n"a,1\n', "line 2: is not a CSV record"),
    "twice in header": (
        "task,task,success\na,b,1\n",
        "line 1: column 'task' is .* twice",
    ),
    "truncated gzip": (gzip.compress(LONG.encode() * 99)[:40], "compressed data is broken"),
    "slice that varies": (
        "task,trial,success,slice:band\na,0,1,easy\na,1,1,hard\n",
        r"line 3: slice 'band' is 'hard' here and 'easy' earlier.*\(see line 2\)",
    ),
    "json list": ("[1, 2]", "valid JSON, but not of a format passhat knows"),
}


LOST = {
    "text in success": (LONG + "m,c,0,maybe\n", 4, "line 6: .*'maybe'"),
    "text in a number": ("task,success,cost\na,1,\nb,1,dear\n", 1, "line 3: .*'cost'.*'dear'"),
    "text in n": ("task,n,c\na,5,1\nb,many,1\n", 5, "line 3: .*a whole number, not 'many'"),
    "too few cells": (LONG + "m,c\n", 4, "line 6: 2 cells where the header has 4"),
    "late latin-1": (
        b"task,success\n" + b"a,1\n" * 40_000 + b"\xe9,1\n",
        40_000,
        "line 40002: is not UTF-8",
    ),
    "no task": ("task,success\na,1\n,1\n", 1, "line 3: the task id is empty"),
    "a cell that goes on": ('task,success\na,1\n"b"x,1\nc,0\n', 2, "line 3: is not a CSV record"),
    "json that is no object": ('{"task": "a", "success": 1}\n[1]\n', 1, "line 2: is not what"),
    "broken json": ('{"task": "a", "success": 1}\n{"task": \n', 1, "line 2: is not JSON"),
    "a number of 400 digits": (
        '{"task": "a", "success": 1}\n{"task": "a", "success": ' + "9" * 400 + "}\n",
        1,
        "line 2: .*400 characters",
    ),
    "a line of 40 MB": ("task,success\na,1\nb" + "x" * 40_000_000 + ",1\nc,1\n", 2, "longer than"),
}


@pytest.mark.parametrize("case", LOST)
def test_a_row_that_cannot_be_used_is_lost_and_the_others_are_read(table: Table, case: str) -> None:
    content, attempts, message = LOST[case]
    (run,) = read(table(content))
    assert run.outcomes.attempts == attempts
    assert re.search(message, str(run.losses[0]))
    tally = run.tally
    assert tally is not None
    assert tally.rows == tally.attempts + tally.lost


@pytest.mark.parametrize("case", BROKEN)
def test_a_malformed_table_is_refused_with_file_and_line(table: Table, case: str) -> None:
    content, message = BROKEN[case]
    path = table(content)
    with pytest.raises(ReadError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 700
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=400))
def test_no_bytes_break_the_reader(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:
    path = tmp_path_factory.mktemp("junk") / "junk"
    for content in (junk, b"task,success\n" + junk, b'{"task": "a"}\n' + junk, b"PAR1" + junk):
        path.write_bytes(content)
        try:
            runs = read(path)
        except PasshatError as error:
            assert "\n" not in str(error)  # noqa: PT017 - either outcome is fine
        else:
            assert sum(run.outcomes.attempts for run in runs) >= 1


@given(
    st.lists(
        st.tuples(
            st.sampled_from("mo"),
            st.text("abc é\"',;\n", min_size=1, max_size=4).filter(str.strip),
            st.sampled_from(["1", "0", ""]),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_every_row_is_counted_once(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]
) -> None:
    import csv

    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["model", "task", "success"])
        writer.writerows(rows)
    runs = read(path)
    assert sum(run.outcomes.attempts for run in runs) == len(rows)
    assert sum(run.outcomes.passes for run in runs) == sum(s == "1" for _, _, s in rows)
    assert sum(run.outcomes.total_missing for run in runs) == sum(s == "" for _, _, s in rows)
    assert {(r.agent, t) for r in runs for t in r.outcomes.tasks} == {
        (model, task.strip()) for model, task, _ in rows
    }
