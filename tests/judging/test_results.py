"""Samples, verdicts and rows of results: names, fingerprints, and judging that goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from passhat.errors import ReadError
from passhat.judging.tasks import CodeSuite, CodeTask
from passhat.judging.verdict import CodeVerdict
from passhat.stats.outcomes.vocabulary import MissingReason
from passhat.suites.code_results import Results, row_of
from passhat.suites.code_samples import Sample, normalize, printable, read_samples

PROMPT = "def f(x):\n"
SUITE = CodeSuite.of(
    "s", [CodeTask("a", prompt=PROMPT, entry_point="f"), CodeTask("b", tests="assert g(1)")]
)


def _file(folder: Path, *rows: object) -> str:
    path = folder / "samples.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return str(path)


ALIKE = [
    ("def f(x): return x+1", "def f(n):\n    # add\n    return n + 1"),
    ("def f(x):\n    'doc'\n    y = x\n    return y", "def f(a):\n    b = a\n    return b"),
    ("x = 1\n", "x   =   1"),
    ("not python (", "not   python\n ("),
]
DIFFERENT = [
    ("def f(x): return x+1", "def f(x): return x-1"),
    ("def f(x, y): return x - y", "def f(x, y): return y - x"),
    ("def f(x): return x", "def g(x): return x"),
    ("x = 1", "y = 1"),  # tests may use names of the module
    ("def f(x): return 'a'", "def f(x): return 'b'"),
    ("def f(x): return 1", "def f(x): return 1.0"),
    ("def f(x): return x.a", "def f(x): return x.b"),
    ("def f(x): return g(a=x)", "def f(x): return g(b=x)"),
    ("not python (", "not python )"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_layout_comments_and_local_names_do_not_matter(one: str, other: str) -> None:
    assert normalize(one) == normalize(other)
    task = SUITE.tasks["a"]
    assert Sample(task, 0, one).fingerprint == Sample(task, 9, other).fingerprint


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_programs_that_do_something_else_stay_apart(one: str, other: str) -> None:
    assert normalize(one) != normalize(other)


def test_odd_programs_have_a_fingerprint() -> None:
    for program in ("", "\x00", "(" * 5000, "x = " + "9" * 10_000, "\ud800", "x = '\ud800'"):
        assert len(Sample(SUITE.tasks["a"], 0, program).fingerprint) == 16
    assert printable("a\ud800b") == "a?b"
    assert printable("é漢\U0001f600") == "é漢\U0001f600"


def test_the_kth_line_of_a_task_is_its_kth_attempt(tmp_path: Path) -> None:
    path = _file(
        tmp_path,
        {"task_id": "b", "solution": "g = str"},
        {"task_id": "a", "completion": "    return x\n"},
        {"task_id": "b", "program": "g = int"},
        {"task_id": "a", "response": "So:\n```python\ndef f(x):\n    return 2\n```\n"},
        {"task_id": "a", "completion": "```\n    return 3\n```"},
    )
    samples = read_samples(path, SUITE)
    assert [sample.key for sample in samples] == [("b", 0), ("a", 0), ("b", 1), ("a", 1), ("a", 2)]
    assert samples[0].program == "g = str"
    assert samples[1].program == f"{PROMPT}    return x\n\n"
    assert [bool(sample.raw) for sample in samples] == [False, False, False, True, True]
    for sample, value in ((samples[1], 7), (samples[3], 2), (samples[4], 3)):
        names: dict[str, object] = {}
        exec(sample.program, names)
        assert callable(names["f"])
        assert names["f"](7) == value


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"task_id": "c", "completion": ""}, "task 'c' is not in s; that has a, b"),
        ({"completion": ""}, "is not in s"),
        ({"task_id": "a", "text": "x"}, "has no text; its fields are task_id, text"),
        ({"task_id": "a", "completion": 1}, "has no text"),
        ("[1]", "one JSON object was expected"),
        ("{", "is not JSON"),
    ],
)
def test_a_sample_that_cannot_be_used_is_named_by_its_line(
    tmp_path: Path, row: object, words: str
) -> None:
    path = _file(tmp_path, {"task_id": "a", "completion": ""}, row)
    with pytest.raises(ReadError, match=r"line 2|:2") as caught:
        read_samples(path, SUITE)
    assert words in str(caught.value)


def test_no_samples(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="holds no sample"):
        read_samples(_file(tmp_path, "", ""), SUITE)


# -- verdicts -------------------------------------------------------------------------------------


def test_a_failure_has_a_category_and_keeps_the_exception() -> None:
    assert CodeVerdict.failed("wrong_answer", "1 != 2").words == "failed, wrong_answer: 1 != 2"
    assert CodeVerdict.failed("PermissionError", "no").category == "sandbox_violation"
    for own in ("Refused", "Timeout", "Memory", "StopIteration"):  # a program's own exception
        odd = CodeVerdict.failed(own, "not today")
        assert (odd.category, odd.detail) == ("exception", f"{own}: not today")
    assert CodeVerdict.failed("timeout", "10 s").words == "failed, timeout: 10 s"
    assert CodeVerdict.failed("TimeoutError", "10 s").category == "timeout"
    zero = CodeVerdict.failed("ZeroDivisionError", "division")
    assert (zero.why, zero.category) == ("ZeroDivisionError", "exception")
    assert "ZeroDivisionError" in zero.detail


def test_a_detail_is_one_printable_line() -> None:
    detail = CodeVerdict.failed("wrong_answer", "a\n\tb\x1b[2J\x00" + "c" * 1000).detail
    assert detail.isprintable()
    assert detail.startswith("a b")
    assert len(detail) <= 300


def test_passed_and_missing() -> None:
    assert CodeVerdict.passed().words == "passed"
    lost = CodeVerdict.missing(MissingReason.SANDBOX_ERROR, "gone")
    assert (lost.words, lost.category) == ("missing, sandbox_error: gone", "sandbox_error")


# -- results --------------------------------------------------------------------------------------


def _sample(trial: int, program: str = "x = 1") -> Sample:
    return Sample(SUITE.tasks["a"], trial, program)


def test_rows_that_were_written_are_read_again(tmp_path: Path) -> None:
    path = str(tmp_path / "out.jsonl")
    samples = [_sample(0), _sample(1, "x = '\ud800 é'"), _sample(2), _sample(3)]
    verdicts = [
        CodeVerdict.passed(),
        CodeVerdict.failed("timeout"),
        CodeVerdict.missing(MissingReason.SANDBOX_ERROR),
        CodeVerdict.missing(MissingReason.JUDGE_ERROR),
    ]
    first = Results.open(path, samples, "judge")
    for sample, verdict in zip(samples, verdicts, strict=True):
        first.add(row_of(sample, verdict, "s", "judge"))
    assert [row["success"] for row in first.rows.values()] == [1, 0, None, None]
    again = Results.open(path, samples, "judge")
    # What a broken sandbox left without a verdict is judged again; broken tests stay broken.
    assert list(again.rows) == [("a", 0), ("a", 1), ("a", 3)]
    assert all(again.rows[key] == first.rows[key] for key in again.rows)
    assert Results.open(path, samples, "judge").rows == again.rows


def test_a_line_that_was_cut_off_is_judged_again(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    samples = [_sample(0), _sample(1)]
    results = Results.open(str(path), samples, "judge")
    for sample in samples:
        results.add(row_of(sample, CodeVerdict.passed(), "s", "judge"))
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for length in (0, 1, first - 1, first, first + 1, len(whole) - 1, len(whole)):
        path.write_bytes(whole[:length])
        kept = Results.open(str(path), samples, "judge")
        assert len(kept.rows) == whole[:length].count(b"\n")
        assert path.read_bytes() == whole[: whole[:length].rfind(b"\n") + 1]


def test_results_of_other_samples_or_another_judge_are_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "out.jsonl")
    Results.open(path, [_sample(0)], "judge").add(
        row_of(_sample(0), CodeVerdict.passed(), "s", "judge")
    )
    for samples, judge, words in (
        ([_sample(0, "x = 2")], "judge", "another sample"),
        ([_sample(1)], "judge", "another sample"),
        ([_sample(0)], "stricter", r"another judge \(judge\)"),
    ):
        with pytest.raises(ReadError, match=words) as caught:
            Results.open(path, samples, judge)
        assert "-o" in str(caught.value.hint)
    assert len(Results.open(path, [_sample(0, "x   = 1  # same")], "judge").rows) == 1


def test_without_a_file_nothing_is_written(tmp_path: Path) -> None:
    results = Results.open(None, [_sample(0)], "judge")
    results.add(row_of(_sample(0), CodeVerdict.passed(), "s", "judge"))
    assert list(results.rows) == [("a", 0)]
    assert list(tmp_path.iterdir()) == []
