"""Millions of attempts are counted where they lie, and give the numbers that reading gives."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from passhat.cli.shared.options import ReadingOptions, needs_of_page
from passhat.errors import OrderUnknown, ReadError
from passhat.protocol import Protocol
from passhat.readers import Needs, base, read
from passhat.readers.store import run_from_store
from passhat.stats.estimate import estimate
from passhat.stats.outcomes import Outcomes, Run, Verdict
from passhat.store import (
    AttemptRecord,
    JudgementSource,
    PlannedAttempts,
    RunRecord,
    Store,
    StoredJudgement,
    open_store,
)
from passhat.store.sqlite import SqliteStore
from passhat.suites.base import Judgement, Task

Passhat = Callable[..., Any]


Limits = Callable[..., None]
"""From here on ten attempts are many: ``limits()``, or up to ``most`` are read if needed."""

InStore = Callable[[str], None]
"""The store that commands take runs from."""


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Limits:
    def lower(most: int = 10, page: int | None = None) -> None:
        monkeypatch.setattr(base, "FEW_ATTEMPTS", 10)
        monkeypatch.setattr(base, "MOST_ATTEMPTS", most)
        if page is not None:
            monkeypatch.setattr(base, "PAGE_ATTEMPTS", page)

    return lower


@pytest.fixture
def few(limits: Limits) -> None:
    """From here on ten attempts are many."""
    limits()


@pytest.fixture
def in_store(monkeypatch: pytest.MonkeyPatch) -> InStore:
    return lambda place: monkeypatch.setenv("PASSHAT_STORE", place)


@pytest.fixture
def rows_asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Count from here on how often single attempts are asked for; none are given."""

    def watch() -> list[str]:
        asked: list[str] = []
        monkeypatch.setattr(Store, "rows", lambda *_: asked.append("rows"))
        monkeypatch.setattr(SqliteStore, "rows", lambda *_: asked.append("rows"))
        return asked

    return watch


def same(one: Run, other: Run) -> None:
    """Everything but the order and the attempts themselves."""
    a, b = one.outcomes, other.outcomes
    assert list(a.tasks) == list(b.tasks)
    for name in ("n", "c", "missing"):
        assert getattr(a, name).tolist() == getattr(b, name).tolist()
    assert a.labels == b.labels
    assert one.protocol == other.protocol
    assert (one.name, one.agent) == (other.name, other.agent)
    assert one.missing_by_reason == other.missing_by_reason
    assert one.failures_by_category == other.failures_by_category
    for measure in ("seconds", "steps", "tokens", "cost"):
        assert one.measured(measure) == other.measured(measure)


def fill(store: Store, agent: str, shift: int) -> str:
    """A run with missing attempts, gaps, labels, a task never tried, and later words."""
    tasks = [
        Task(f"t{i}", "?", {"kind": f"k{i % 2}", "template": f"m{i % 3}"} if i else {})
        for i in (3, 0, 1, 2, 4, 5, 6)
    ]
    record = RunRecord(agent, Protocol(suite="s"), tasks)
    wanted = [(task.id, number) for task in tasks[:-1] for number in range(1, 7)]
    wanted.remove(("t1", 2))
    store.begin(record, 6)
    store.claim(record.id, [*wanted, ("t1", 2)])  # one is still being made
    verdicts = [Verdict((i + shift) ** 2 % 7 % 3 - 1) for i in range(len(wanted))]
    whys = {Verdict.PASSED: "", Verdict.FAILED: "timeout", Verdict.MISSING: "budget"}
    store.finish(
        record.id,
        [
            AttemptRecord(
                *(*one, Judgement(verdict, whys[verdict])),
                seconds=0.5 * one[1],
                cost=None if one[1] == 2 else 0.25,
                answer_hash="same" if one[0] == "t2" else f"{one}",
            )
            for one, verdict in zip(wanted, verdicts, strict=True)
        ],
    )
    missing = [one for one, verdict in zip(wanted, verdicts, strict=True) if verdict < 0]
    for (task, number), words in (
        (missing[0], (Verdict.FAILED, Verdict.PASSED)),  # the newest word counts
        (missing[1], (Verdict.FAILED,)),
        (("t0", 1), (Verdict.FAILED,)),
        (("t3", 1), (Verdict.PASSED,)),
    ):
        for verdict in words:
            why = "wrong_state" if verdict is Verdict.FAILED else ""
            later = StoredJudgement(verdict, why, "looked again", JudgementSource.HUMAN)
            store.add_judgement(record.id, task, number, later)
    return record.id


def test_a_store_counted_is_the_store_read(store_place: str, limits: Limits) -> None:
    with open_store(store_place) as store:
        run = fill(store, "agent", 0)
        whole = run_from_store(store, store.find(run))
        limits()
        large = run_from_store(store, store.find(run))
        again = run_from_store(store, store.find(run), Needs(one_by_one=True))
        stored = store.find(run)
    assert whole.attempts is not None
    assert again.attempts is not None
    assert large.attempts is None
    same(whole, large)
    assert (stored.attempts, stored.missing, stored.passed) == (
        *(whole.outcomes.attempts, whole.outcomes.total_missing, whole.outcomes.passes),
    )
    assert "counted in the database" in large.reading[-1]
    assert estimate(large.outcomes, "pass^2") == estimate(whole.outcomes, "pass^2")
    with pytest.raises(OrderUnknown, match="only counts are kept"):
        estimate(large.outcomes, "first@2")


# Not forecast: it reads small runs one by one, to see whether the order of attempts matters.
COMMANDS = [
    ("report", "{a}", "--full", "--drop-short"),
    ("report", "{a}", "--by", "kind", "--cluster", "template", "-o", "md", "--drop-short"),
    ("report", "{a}", "-o", "csv", "--missing", "fail"),
    ("compare", "{a}", "{b}", "-k", "1,2", "--by", "kind", "--drop-short"),
    ("compare", "{a}", "{b}", "--json", "--drop-short"),
    ("gate", "{a}", "pass^2 >= 0.1", "cost <= 1", "seconds/solved <= 9", "missing <= 50%"),
    ("plan", "{a}", "--half-width", "0.1"),
]


def test_every_command_says_the_same_of_counts_and_of_attempts(
    tmp_path: Path,
    limits: Limits,
    in_store: InStore,
    rows_asked: Callable[[], list[str]],
    passhat: Passhat,
) -> None:
    place = str(tmp_path / "s.db")
    with open_store(place) as store:
        names = {"a": fill(store, "one", 0), "b": fill(store, "two", 3)}
    in_store(place)

    def said() -> list[tuple[int, str]]:
        found = []
        for command in COMMANDS:
            ended = passhat(*(word.format(**names) for word in command))
            words = " ".join(ended.out.split()).replace(", order known", "")
            words = re.sub(r"(;|·|-) \S+ attempts were counted.*?by one", "", words)
            # Several lines of one kind are a list, a single one is not.
            for mark, plain in (("· ", ""), ("**: ", "** "), ("** - ", "** ")):
                words = words.replace(mark, plain)
            found.append((ended.code, words))
        return found

    read_one_by_one = said()
    assert {code for code, _ in read_one_by_one} <= {0, 3, 4}
    limits(most=1000)
    asked = rows_asked()
    for one, other in zip(said(), read_one_by_one, strict=True):
        assert one[0] == other[0]
        assert one[1].split() == other[1].split()
    assert not asked
    assert "all tasks every attempt" in read_one_by_one[0][1] or "1 of 6" in read_one_by_one[0][1]


def test_what_needs_attempts_reads_them(
    tmp_path: Path, limits: Limits, in_store: InStore, passhat: Passhat
) -> None:
    place = str(tmp_path / "s.db")
    with open_store(place) as store:
        source = fill(store, "agent", 0)
    in_store(place)
    limits(most=1000)
    ordered = ("report", source, "--metric", "first@2")
    assert passhat(*ordered).code == 0
    assert json.loads(passhat("report", source, "--json").out)["runs"][0]["measures"]
    limits()
    refused = passhat(*ordered)
    assert refused.code == 2
    assert "--one-by-one" in refused.err
    runs = tmp_path / "runs.jsonl"
    assert passhat("read", source, "--one-by-one", "-o", runs).code == 0
    assert passhat("report", runs, *ordered[2:]).code == 0


def read_every_attempt(patch: pytest.MonkeyPatch) -> None:
    """Let commands read sources as ``passhat read --one-by-one`` does."""
    fields = ReadingOptions.options

    def options(self: ReadingOptions, *arguments: Any) -> dict[str, Any]:
        return fields(replace(self, one_by_one=True), *arguments)

    patch.setattr(ReadingOptions, "options", options)


def test_the_json_of_counts_holds_the_same_numbers(
    store_place: str,
    limits: Limits,
    in_store: InStore,
    rows_asked: Callable[[], list[str]],
    passhat: Passhat,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open_store(store_place) as store:
        source = fill(store, "agent", 0)
    in_store(store_place)
    limits(most=1000)

    def said(*how: str) -> dict[str, Any]:
        ended = passhat("report", source, "--json", "--drop-short", *how)
        (run,) = json.loads(ended.out.replace(", order known", ""))["runs"]
        return dict(run)

    with monkeypatch.context() as patch:
        read_every_attempt(patch)
        whole = said()
    asked = rows_asked()
    found = said()
    assert not asked
    assert "counted in the database" in found.pop("reading")[-1]
    assert found["measures"]["seconds"]["spread"]
    assert found == {name: value for name, value in whole.items() if name != "reading"}


def test_a_page_of_counts_holds_the_same_tasks(
    tmp_path: Path,
    limits: Limits,
    in_store: InStore,
    passhat: Passhat,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open_store(str(tmp_path / "s.db")) as store:
        source = fill(store, "agent", 0)
    in_store(str(tmp_path / "s.db"))
    limits(most=1000, page=10)

    def shown(*how: str) -> Any:
        page = tmp_path / "page.html"
        assert passhat("report", source, "-o", page, "--drop-short", *how).code == 0
        embedded = re.search(r'id="attempts-data">(.*?)</script>', page.read_text("utf-8"))
        assert embedded is not None
        return json.loads(embedded[1])

    with monkeypatch.context() as patch:
        read_every_attempt(patch)
        single = shown()
    counts = shown()
    assert counts["tasks"] == single["tasks"]
    assert counts["labels"] == single["labels"]
    assert counts["runs"][0]["counts"] == [
        [marks.count("1"), marks.count("0"), marks.count("-")]
        for marks in single["runs"][0]["marks"]
    ]
    # Conversations and ordered metrics need single attempts.
    assert needs_of_page((), page=True, transcripts=None).attempts_up_to == 10
    assert needs_of_page((), page=True, transcripts=True).attempts_up_to is None
    assert needs_of_page(("first@2",), page=True, transcripts=None).attempts_up_to is None


def table(folder: Path, rows: str) -> Path:
    path = folder / "table.parquet"
    duckdb.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    return path


TABLES = {
    "numbers": "SELECT 'agent' AS model, 't' || (i // 5) AS task, i % 5 AS trial, "
    "CASE WHEN i % 7 = 0 THEN NULL ELSE i % 3 % 2 END AS success, i * 0.5 AS duration, "
    "CASE WHEN i % 4 = 0 THEN NULL ELSE i END AS cost FROM range(60) t(i)",
    "booleans and two models": "SELECT 'm' || (i % 2) AS model, 0.5 * (i % 2) AS temperature, "
    "'t' || (i // 10) AS task, i // 2 % 5 AS trial, i % 3 = 0 AS success, "
    "'kind ' || (i // 10 % 2) AS \"slice:kind\" FROM range(60) t(i)",
    "words": "SELECT i % 4 AS task, 'x' || i AS trial, "
    "CASE i % 4 WHEN 0 THEN 'Pass' WHEN 1 THEN 'fail' WHEN 2 THEN 'it''s 1' ELSE 'n/a' END "
    "AS result, CASE WHEN i % 4 = 1 THEN 'timeout: 3 s' END AS failure "
    "FROM range(40) t(i) WHERE i % 4 <> 2",
    "rewards": "SELECT 't' || (i // 4) AS task, i AS seed, (i % 5) / 4.0 AS reward "
    "FROM range(40) t(i)",
    "blamed": "SELECT 't' || (i // 4) AS task, i % 4 AS trial, i % 2 AS success, "
    "CASE WHEN i % 4 = 0 THEN 'rate_limit' WHEN i % 2 = 0 THEN 'timeout' END AS failure "
    "FROM range(40) t(i)",
    "many trials": "SELECT 't' || (i // 150) AS task, i % 150 AS trial, i % 3 = 0 AS success "
    "FROM range(300) t(i)",
    "minus one": "SELECT 't' || (i // 4) AS task, (i % 3) - 1 AS success FROM range(40) t(i)",
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_counted_is_the_table_read(tmp_path: Path, limits: Limits, name: str) -> None:
    path = table(tmp_path, TABLES[name])
    columns = {"success": "result"} if name == "words" else None
    whole = read(path, columns=columns)
    limits()
    large = read(path, columns=columns)
    assert len(whole) == len(large)
    for one, other in zip(whole, large, strict=True):
        assert other.attempts is None
        same(one, other)
        assert list(other.reading) == [
            line for line in one.reading if "order of attempts" not in line
        ] or set(one.reading) <= set(other.reading)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("SELECT 't' AS task, i % 20 AS trial, 1 AS success FROM range(21) t(i)", "twice"),
        ("SELECT 't' AS task, 'x' || i % 20 AS trial, 1 AS success FROM range(21) t(i)", "twice"),
        ("SELECT 't' AS task, 'maybe' AS success FROM range(21) t(i)", "maybe"),
        ("SELECT 't' AS task, i AS success FROM range(21) t(i)", "pass_at"),
        ("SELECT '' AS task, 1 AS success FROM range(21) t(i)", "task id is empty"),
        ("SELECT 't' AS task, 1 AS success, 'x' AS cost FROM range(21) t(i)", "should hold a num"),
        (
            "SELECT 't' AS task, 1 AS success, i AS \"slice:x\" FROM range(21) t(i)",
            "belongs to the task",
        ),
    ],
)
def test_what_is_broken_is_refused_here_too(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(ReadError, match=message):
        read(table(tmp_path, rows))


@pytest.mark.usefixtures("few")
def test_every_command_works_on_counts(passhat: Passhat, tmp_path: Path) -> None:
    path = table(tmp_path, TABLES["numbers"])
    assert passhat("report", path).code == 0
    assert "counted in the database" in passhat("report", path, "--full").out
    two = table(tmp_path, TABLES["booleans and two models"])
    assert passhat("compare", two, "--allow", "--metric", "pass^2").code == 0
    path = table(tmp_path, TABLES["numbers"])
    # 9 of 60 attempts have no verdict: the gate calls that incomplete.
    assert passhat("gate", path, "pass^2 >= 0.01", "seconds <= 100").code == 4
    assert passhat("forecast", path, "--metric", "pass^10").code == 0
    ended = passhat("report", path, "--metric", "window^2")
    assert ended.code == 2
    assert "--one-by-one" in ended.err


MEMORY = """
import re, sys
from pathlib import Path
from passhat.cli import main
code = main(["report", sys.argv[1], "--full"])
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
print(code, peak // 1024, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_a_million_attempts_are_reported_in_under_200_mb(tmp_path: Path) -> None:
    rows = (
        "SELECT 'a' AS model, 'task-' || (i // 100) AS task, i % 100 AS trial, "
        "(hash(i) % 1000 < i // 100 % 1000)::INT AS success FROM range(1000000) t(i)"
    )
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, table(tmp_path, rows)], capture_output=True, text=True
    )
    code, peak = map(int, done.stderr.split())
    assert code == 0
    assert "10,000 tasks x 100 attempts" in done.stdout
    assert "1,000,000 attempts were counted in the database" in " ".join(done.stdout.split())
    assert peak < 200, f"{peak} MB"


def test_counts_of_a_run_need_a_row_per_task_only() -> None:
    outcomes = Outcomes.from_counts([10**8, 10**8], [5, 10**7])
    assert outcomes.attempts == 2 * 10**8


def test_a_report_of_a_counted_store_has_the_scores(
    tmp_path: Path, passhat: Passhat, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"a,t{i},{k},{0.25 * ((i + k) % 5)}" for i in range(6) for k in range(4)]
    (tmp_path / "s.csv").write_text("agent,task,trial,score\n" + "\n".join(rows))
    store = str(tmp_path / "s.db")
    assert passhat("import", str(tmp_path / "s.csv"), "--store", store).code == 0
    one_by_one = json.loads(passhat("report", store, "--json").out)["runs"][0]["estimates"]
    monkeypatch.setattr(base, "FEW_ATTEMPTS", 3)
    assert json.loads(passhat("report", store, "--json").out)["runs"][0]["estimates"] == one_by_one
    assert "mean" in {entry["metric"] for entry in one_by_one}


@pytest.mark.parametrize("by_task", [{}, {"a": 3, "b": 2}])
def test_a_plan_by_task_is_read_and_one_for_all_tasks_is_none(
    tmp_path: Path, by_task: dict[str, int]
) -> None:
    place = tmp_path / "store.db"
    with open_store(str(place)) as store:
        record = RunRecord("me", Protocol(), [Task(task, "?") for task in "ab"])
        store.begin(record, PlannedAttempts(3, by_task))
        store.claim(record.id, [("a", 1), ("b", 1)])
        passed = Judgement(Verdict.PASSED)
        store.finish(record.id, [AttemptRecord(task, 1, passed) for task in "ab"])
    (run,) = read(place)
    assert (None if run.planned is None else run.planned.tolist()) == ([3, 2] if by_task else None)
