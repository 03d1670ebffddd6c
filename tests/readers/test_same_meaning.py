"""Changes that keep the meaning of a file keep its numbers, by an independent plain reading.

The plain reading is the list of attempts that the file is written from: no parser of passhat's.
"""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import read

pytestmark = pytest.mark.hypothesis

Attempt = tuple[str, int, bool | None]
_NAMES = st.text("abcxyz019 -_.äß", min_size=1, max_size=8).map(str.strip).filter(bool)
_TASKS = st.lists(_NAMES.filter(lambda name: not name.startswith("#")), min_size=1, max_size=6,
                  unique=True)  # fmt: skip
_VERDICTS = st.lists(st.sampled_from([True, False, None]), min_size=2, max_size=5)


@st.composite
def attempts(draw: st.DrawFn) -> list[Attempt]:
    rows = [
        (task, number, verdict)
        for task in draw(_TASKS)
        for number, verdict in enumerate(draw(_VERDICTS), 1)
    ]
    if all(verdict is None for _, _, verdict in rows):
        rows[0] = (*rows[0][:2], True)
    return rows


def _plain(rows: list[Attempt]) -> dict[str, tuple[int, int, int]]:
    """n, c and missing of every task, counted by hand."""
    n, c, m = Counter[str](), Counter[str](), Counter[str]()
    for task, _, verdict in rows:
        n[task] += verdict is not None
        c[task] += verdict is True
        m[task] += verdict is None
    return {task: (n[task], c[task], m[task]) for task, _, _ in rows}


_WORDS = [
    {True: "1", False: "0", None: ""},
    {True: "true", False: "FALSE", None: "null"},
    {True: "1.0", False: "0.00", None: "NaN"},
    {True: "pass", False: "Fail", None: "N/A"},
    {True: "100%", False: "0%", None: ""},
    {True: "1e0", False: "0e5", None: "nan"},
]


def _csv(rows: list[Attempt], seed: random.Random) -> bytes:
    words, sign = seed.choice(_WORDS), seed.choice(",;\t|")
    header = {
        "task": seed.choice(["task", "Task ID", "question_id"]),
        "trial": seed.choice(["trial", "Attempt", "run"]),
        "success": seed.choice(["success", "passed", "Is Correct", "Passed?"]),
    }
    order = seed.sample(list(header), 3)
    quote = seed.choice(["", '"'])
    lines = [sign.join(header[word] for word in order)]
    for task, number, verdict in rows:
        cells = {"task": task, "trial": str(number), "success": words[verdict]}
        lines.append(sign.join(f"{quote}{cells[word]}{quote}" for word in order))
    end = seed.choice(["\n", "\r\n"])
    text = end.join(lines) + seed.choice(["", end])
    if seed.random() < 0.2:
        text = "# made by hand" + end + text
    return text.encode(seed.choice(["utf-8", "utf-8-sig", "utf-16"]))


def _records(rows: list[Attempt], seed: random.Random) -> list[dict[str, object]]:
    records = []
    for task, number, verdict in rows:
        value: object = verdict if seed.random() < 0.5 or verdict is None else float(verdict)
        pairs = [("task", task), ("trial", number), ("success", value), ("note", seed.random())]
        seed.shuffle(pairs)
        records.append(dict(pairs))
    return records


def _json(rows: list[Attempt], seed: random.Random) -> bytes:
    data: object = _records(rows, seed)
    form = seed.choice(["list", "wrapped", "columns"])
    if form == "wrapped":
        data = {"about": "me", "results": data}
    elif form == "columns":
        data = {
            "task": [task for task, _, _ in rows],
            "trial": [number for _, number, _ in rows],
            "success": [verdict for _, _, verdict in rows],
        }
    return json.dumps(data, indent=seed.choice([None, 1, 4])).encode()


def _lines(rows: list[Attempt], seed: random.Random) -> bytes:
    blank = seed.choice(["", "\n"])
    text = "\n".join(json.dumps(record) + blank for record in _records(rows, seed))
    data = (text + "\n").encode(seed.choice(["utf-8", "utf-8-sig"]))
    return gzip.compress(data) if seed.random() < 0.5 else data


def _markdown(rows: list[Attempt], seed: random.Random) -> bytes:
    words = seed.choice(_WORDS[:4])
    lines = ["# Results", "", "| task | trial | passed |", "|---|:-:|---|"]
    lines += [f"| {task} | {number} | {words[verdict]} |" for task, number, verdict in rows]
    return "\n".join(lines).encode()


FORMS = {"csv": _csv, "json": _json, "lines": _lines, "markdown": _markdown}


@pytest.mark.parametrize("form", FORMS)
@given(rows=attempts(), number=st.integers(0, 2**32))
def test_the_numbers_stay_the_same(form: str, rows: list[Attempt], number: int) -> None:
    seed = random.Random(number)
    expected = _plain(rows)
    shuffled = seed.sample(rows, len(rows))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, seed.choice(["a.txt", "b.csv", "c.json", "no ending", "ü.log"]))
        path.write_bytes(FORMS[form](shuffled, seed))
        (run,) = read(path)
    outcomes = run.outcomes
    counts = zip(outcomes.n, outcomes.c, outcomes.missing, strict=True)
    found = dict(zip(outcomes.tasks, ((int(n), int(c), int(m)) for n, c, m in counts), strict=True))
    assert found == expected
    assert run.tally is not None
    assert run.tally.rows == len(rows) == run.tally.attempts


@given(rows=attempts(), number=st.integers(0, 2**32))
def test_a_file_that_is_split_and_joined_again(rows: list[Attempt], number: int) -> None:
    seed = random.Random(number)
    cut = seed.randrange(1, len(rows))
    with tempfile.TemporaryDirectory() as folder:
        for place, part in enumerate((rows[:cut], rows[cut:])):
            lines = [{"model": "m", "task": task, "trial": i, "passed": v} for task, i, v in part]
            Path(folder, f"part{place}.jsonl").write_text("\n".join(map(json.dumps, lines)))
        if all(v is None for _, _, v in rows[:cut]) or all(v is None for _, _, v in rows[cut:]):
            return  # a part without any verdict is a run of its own, and refused
        runs = read(folder, join=True)
    assert sum(run.outcomes.passes for run in runs) == sum(c for _, c, _ in _plain(rows).values())
    assert sum(run.outcomes.scored for run in runs) == sum(n for n, _, _ in _plain(rows).values())
