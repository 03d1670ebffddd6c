"""Every question about a store with all kinds of rows in it, and the whole answers.

Other tests say why an answer is right; ``facts.json`` says that all of them are still the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kept_results import check_results
from passhat.agents.base import ModelCall
from passhat.errors import PasshatError
from passhat.protocol import Protocol
from passhat.runner.attempt import call_records
from passhat.runner.redaction import Redactor
from passhat.stats.outcomes import Verdict
from passhat.store import (
    AttemptRecord,
    JudgementSource,
    PlannedAttempts,
    RunRecord,
    Store,
    StoredJudgement,
    check,
    copy,
    open_store,
)
from passhat.store.check import forget_orphans, forget_transcripts
from passhat.store.labels import (
    DrawnAttempt,
    Label,
    StoredLabel,
    add_labels,
    choose_anchors,
    label_texts,
    load_all_draws,
    load_anchors,
    load_draws,
    load_label_counts,
    load_labels,
    load_votes,
    parse_labels,
    save_anchor,
    save_draw,
    save_drawn_attempts,
)
from passhat.store.opening import StoredPlan, load_plan, restore_plan
from passhat.store.queries import AttemptFilter
from passhat.store.sqlite import SqliteStore
from passhat.suites.base import Judgement, Task

PASSED, FAILED, MISSING = Verdict.PASSED, Verdict.FAILED, Verdict.MISSING
NAMES = ("b", "a", "d", "c", "e")
TASKS = [Task(name, "?", {"band": "low" if name in "ab" else "high"}) for name in NAMES]
MANY = RunRecord("agent", Protocol(suite="s"), TASKS, started="2026-01-02T00:00:00", revision="r1")
UNEVEN = RunRecord("agent", Protocol(suite="s"), TASKS[:2], "uneven", started="2026-01-03T00:00:00")
FRESH = RunRecord("other", Protocol(suite="s"), TASKS[:1], "gate:x", started="2026-01-04T00:00:00")
EMPTY = RunRecord("other", Protocol(suite="z"), TASKS[:3], "empty", started="2026-01-01T00:00:00")
JUDGEMENTS = (
    Judgement(PASSED, "", "", score=1.0),
    Judgement(FAILED, "wrong_answer", "4, not 5", score=0.25),
    Judgement(FAILED, "timeout", "wall clock"),
    Judgement(PASSED),
    Judgement(MISSING, "rate_limit", "429"),
    Judgement(FAILED, "wrong_answer", "", score=0.5),
    Judgement(MISSING, "account", "no credit"),
)


def _record(task: str, number: int, place: int) -> AttemptRecord:
    judgement = JUDGEMENTS[place % len(JUDGEMENTS)]
    calls = [
        ModelCall(
            f"p:m{place % 2}",
            model=f"m{place % 3}",
            stop=("stop", "length", "refused", "filtered", "")[place % 5],
            limit=64 + place,
            priced=("", "list", "own file")[place % 3],
            empty="empty" if place % 4 == 1 else "",
        ),
        ModelCall("judge:j", role="judge", votes=[True, place % 2 == 0], lost_votes=place % 3),
    ]
    return AttemptRecord(
        *(task, number, judgement, None if place % 4 == 2 else place),
        seconds=None if place % 6 == 5 else 0.5 * place,
        steps=place % 5,
        tokens=None if place % 5 == 4 else 10.0 * (place % 7),
        cost=None if place % 3 == 2 else 0.25 * (place % 4),
        retries=place % 2,
        answer_hash="same" if task in "bd" else f"h{place % 2}" if task != "c" else "",
        leak="d#1" if place in (3, 12) else "",
        transcript=[
            {"role": "user", "text": f"{task}?" + "x" * (400 * (place % 2))},
            {"role": "agent", "text": "as before" if task in "bd" else f"answer {place % 2}"},
            {"role": "expected", "text": f"right {task}"},
        ],
        calls=call_records(calls[: 1 + place % 2], Redactor()) if place % 4 else None,
        conversation=("", f"context {place // 2}", "ref-abc")[place % 3],
    )


def _begin(store: Store, run: RunRecord, planned: int | PlannedAttempts, *tried: str) -> None:
    """Attempts at some tasks, as many as its place in the alphabet and one more; gaps at d."""
    store.begin(run, planned)
    places = [
        (task, number)
        for task in tried
        for number in range(1, "abcd".index(task) + 3)
        if (task, number) != ("d", 3)
    ]
    store.claim(run.id, [*places, ("b", 5)])
    store.finish(run.id, [_record(*at, place) for place, at in enumerate(places)])
    key = store._key(run.id)
    for place, (task, number) in enumerate(places):
        store._db.execute(
            "UPDATE attempts SET finished = ? WHERE run = ? AND task = ? AND number = ?",
            (f"2026-01-05T00:00:{(place * 7) % 20:02}", key, store._tasks(run.id)[task], number),
        )


def _judge(store: Store, task: str, number: int, verdict: Verdict, why: str = "") -> None:
    source = JudgementSource.HUMAN if verdict is PASSED else JudgementSource.REGRADE
    said = StoredJudgement(verdict, why, f"said of {task}", source, "2026-02-01", "f2")
    store.add_judgement(MANY.id, task, number, said)


def _label(store: Store) -> list[object]:
    """Labels of two people, one changed and one taken back; draws of three kinds; an anchor."""
    given: tuple[list[tuple[str, int, str, Label | None]], ...] = (
        [("b", 1, "ann", Label.RIGHT), ("b", 2, "ann", Label.WRONG), ("b", 2, "bob", Label.WRONG)],
        [
            ("b", 1, "ann", Label.RIGHT),
            ("b", 2, " bob ", Label.RIGHT),
            ("a", 2, "bob", Label.SKIPPED),
        ],
        [("d", 1, "ann", Label.WRONG), ("d", 5, "bob", Label.RIGHT), ("d", 4, "ann", None)],
        [("d", 5, "bob", None), ("d", 4, "ann", Label.RIGHT), ("d", 4, "bob", Label.RIGHT)],
    )
    added: list[object] = [
        add_labels(
            store,
            MANY.id,
            [StoredLabel(*label, f"n{at}", f"2026-03-0{at + 1}") for label in labels],
        )
        for at, labels in enumerate(given)
    ]
    single, either = "sample 1 of 9 passed and 2 of 3 failed, seed 1", "sample 2 of 9, seed 2"
    save_draw(store, MANY.id, single, [("d", 1), ("b", 1)])
    save_draw(store, MANY.id, single, [("d", 1), ("a", 1)])
    save_draw(
        store, MANY.id, "whole tasks 2 of 4, seed 3", [("b", 1), ("b", 2), ("d", 1), ("d", 4)]
    )
    again = [DrawnAttempt(either, 2, "c", 1), DrawnAttempt("my own", 1, "d", 1)]
    save_drawn_attempts(store, MANY.id, [*again, DrawnAttempt(either, 1, "b", 2)])
    store._db.execute("UPDATE label_draws SET at = '2026-03-09'")
    added.append(choose_anchors(store, UNEVEN.id, "s"))
    save_anchor(store, MANY.id, "b", 1, UNEVEN.id, passed=True)
    save_anchor(store, MANY.id, "b", 1, UNEVEN.id, passed=False)
    save_anchor(store, MANY.id, "d", 4, UNEVEN.id, passed=False)
    save_anchor(store, MANY.id, "c", 1, UNEVEN.id, passed=False)
    return [*added, choose_anchors(store, UNEVEN.id, "s"), choose_anchors(store, FRESH.id, "z")]


def _fill(store: Store) -> list[object]:
    _begin(store, MANY, 6, "b", "a", "d", "c")
    for task, number, verdict, why in (
        *(("b", 1, FAILED, "wrong_state"), ("b", 2, PASSED, ""), ("a", 2, PASSED, "")),
        *(("b", 1, PASSED, ""), ("d", 1, FAILED, "timeout"), ("c", 4, FAILED, "wrong_answer")),
    ):
        _judge(store, task, number, verdict, why)
    _begin(store, UNEVEN, PlannedAttempts(4, {"b": 4, "a": 1}, {"id": "x"}), "b", "a")
    _begin(store, FRESH, 2, "b")
    store.begin(EMPTY, 3)
    return _label(store)


@pytest.fixture(scope="module")
def labeled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, list[object]]]:
    """Only read by the tests."""
    with open_store(str(tmp_path_factory.mktemp("facts") / "store.db")) as store:
        yield store, _fill(store)


RUNS = {"many": MANY.id, "uneven": UNEVEN.id, "fresh": FRESH.id, "empty": EMPTY.id}


def _attempt_set(store: Store, run: str, **which: bool) -> list[str]:
    there = store.load_attempts(run, **which)
    return [f"{task}#{number}" for task in NAMES for number in range(9) if (task, number) in there]


def _of_run(store: Store, run: str) -> dict[str, object]:
    """Every question about a run."""
    counts, scores = store.counts(run), store.load_scores(run)
    return {
        "counts": [
            [list(counts.tasks), counts.labels, counts.n, counts.c, counts.m],
            {str(verdict): dict(words) for verdict, words in counts.reasons.items()},
        ],
        "sums": store.measure_sums(run),
        "measures": _columns(store.load_measures(run)),
        "scores": None if scores is None else _columns(scores),
        "rows": list(store.rows(run, 4)),
        "detailed rows": [
            [[*row[:14], row[14] is not None, row[15]] for row in block]
            for block in store.rows(run, 4, details=True)
        ],
        "results": [list(row) for row in store.iterate_results(run)],
        "verdicts": [f"{task}#{number} {verdict}" for task, number, verdict in store.verdicts(run)],
        "usage": [store.load_usage(run, priced=priced) for priced in (True, False)],
        "same answers": store.count_same_answers(run),
        "same answer": store._queries.find_same_answer(store._key(run)),
        "leaks": store.leaks(run),
        "labels of tasks": store.labels(run),
        "allocation": store.load_allocation(run),
        "attempts": [_attempt_set(store, run, **{name: True}) for name in ("finished", "ended")],
        "claimed": _attempt_set(store, run),
        "call counts": store.call_counts(run),
        "origins": {
            field.name: str(getattr(store.origins(run), field.name))
            for field in fields(store.origins(run))
        },
        "prices": store.price_sources(run),
        "failures": store.failure_messages(run),
        "failures at d": store.failure_messages(run, "d"),
        "failures at nothing": store.failure_messages(run, "nothing"),
        "missing": store.missing_messages(run),
        "first failures": [store.first_failure(run, task) for task in (*NAMES, "nothing")],
        "found": store.find(run),
        "protocol": store.protocol(run).to_dict(),
    }


def _columns(columns: Any) -> list[object]:
    return [getattr(columns, field.name) for field in fields(columns)]


def _of_pages(store: Store) -> dict[str, object]:
    """Every question that pages ask about one run."""
    ask, key = store._queries, store._key(MANY.id)
    keys = store._tasks(MANY.id)
    filters = {
        "all": AttemptFilter(),
        "failed": AttemptFilter(FAILED),
        "passed": AttemptFilter(PASSED),
        "timeouts": AttemptFilter(why="timeout"),
        "of d": AttemptFilter(task=keys["d"]),
        "late at d": AttemptFilter(FAILED, "timeout", keys["d"]),
    }
    middle = (keys["d"], 2)
    answers: dict[str, object] = {
        "heads": ask.heads(),
        "head": ask.heads(key),
        "versions": [head.version for head in ask.heads()],
        "newer judgements": [ask.newest_judgements(after) for after in (0, 5, 99)],
        "runs": ask.runs(),
        "titles": [(run.title, run.is_fresh, run.plan.text) for run in ask.runs()],
        "run": ask.runs(key),
        "run counts": [ask.counts(), ask.counts(key), ask.counts(99)],
        "groups": ask.groups(key),
        "task counts": ask.task_counts(key),
        "task keys": [
            ask.task_keys(key, ["d", "x"]),
            ask.task_keys(key, []),
            ask.task_key(key, "x"),
        ],
        "task labels": [ask.task_labels(key, task) for task in ("b", "e", "x")],
        "plan": [ask.plan_of(store._key(run)) for run in RUNS.values()],
        "marks": [ask.marks(key, [keys["d"], keys["b"], 99]), ask.marks(key, [])],
        "line": [ask.line(key, middle), ask.line(key, (keys["d"], 3)), ask.line(99, middle)],
        "judgements": {
            f"{task}#{number}": store.judgements(MANY.id, task, number)
            for task, number in (("b", 1), ("d", 1), ("c", 4), ("e", 1))
        },
        "attempts": [store.attempt(MANY.id, *at) for at in (("b", 1), ("c", 4), ("d", 3))],
        "calls": [store.calls(MANY.id, *at) for at in (("b", 2), ("b", 1), ("x", 1))],
        "measures": [store.measures("agent", "s"), store.measures("agent", "s", 3)],
        "of no run": [ask.call_counts(None), str(ask.origins(None)), ask.price_sources(None)],
        "states": [summary.status for summary in store.runs()],
    }
    for name, wanted in filters.items():
        newest = ask.newest(key, wanted, 4)
        last = (newest[-1].finished, *newest[-1].place) if newest else None
        answers[name] = {
            "lines": [_short(one) for one in ask.lines(key, wanted, 5, None)],
            "lines after": [_short(one) for one in ask.lines(key, wanted, 3, middle)],
            "newest": [_short(one) for one in newest],
            "older": [_short(one) for one in ask.newest(key, wanted, 4, last)],
            "neighbors": [
                _short(ask.neighbor(key, wanted, at, before=before))
                for at in (middle, (keys["b"], 1), (keys["c"], 5))
                for before in (True, False)
            ],
        }
    answers["as export"] = [one.to_dict() for one in ask.lines(key, AttemptFilter(), 4, None)]
    return answers


def _short(line: Any) -> object:
    return line and f"{line.task}#{line.number} {line.verdict} {line.why}, {line.finished[-2:]}"


def _of_labels(store: Store) -> dict[str, object]:
    ask, key = store._queries, store._key(MANY.id)
    texts, counts = label_texts(ask, key), load_label_counts(ask, key)
    return {
        "labels": load_labels(ask, key),
        "counts": counts
        and {field.name: _sorted(getattr(counts, field.name)) for field in fields(counts)},
        "no counts": load_label_counts(ask, store._key(EMPTY.id)),
        "draws": load_draws(ask, key),
        "all draws": load_all_draws(ask, key),
        "anchors": [load_anchors(ask, run) for run in RUNS.values()],
        "votes": load_votes(ask, key),
        "texts": {f"{task}#{number}": text for (task, number), text in texts.items()},
        "read again": [parse_labels(*place, text) for place, text in texts.items()],
    }


def _sorted(value: object) -> object:
    return sorted(value) if isinstance(value, frozenset) else value


def test_the_whole_answers_of_a_store(labeled: tuple[Store, list[object]]) -> None:
    store, added = labeled
    facts: dict[str, object] = {"added labels": added}
    for name, run in RUNS.items():
        facts |= {f"{name}: {what}": answer for what, answer in _of_run(store, run).items()}
    facts |= {f"page: {what}": answer for what, answer in _of_pages(store).items()}
    facts |= {f"labels: {what}": answer for what, answer in _of_labels(store).items()}
    health = check.check(store)
    facts["health"] = [replace(health, size=0), health.whole]
    check_results(Path(__file__).with_name("facts.json"), facts)


# -- writing ---------------------------------------------------------------------------------------


def _open(stack: ExitStack, place: Path) -> Store:
    """A store that does not wait for the disk."""
    store = stack.enter_context(open_store(str(place)))
    store._db.execute("PRAGMA synchronous = OFF")
    return store


class _Heard(SqliteStore):
    """A store that notes which runs it tells listeners about, and when it commits."""

    heard: list[str]

    def _tell(self, run: str) -> None:
        inside = "" if self._db.in_transaction else " outside"
        name = next(name for name, id_ in RUNS.items() if id_ == run)
        self.heard.append(f"{name}{inside}")


_TABLES = {
    "runs": "SELECT r.name, r.planned, r.total, r.allocation, r.revision, r.generation IS NULL "
    "FROM runs r ORDER BY r.key",
    "tasks": "SELECT r.name, t.position, t.task, t.labels FROM tasks t JOIN runs r "
    "ON r.key = t.run ORDER BY r.name, t.position, t.task",
    "attempts": "SELECT r.name, t.task, a.number, a.verdict, a.why, a.owner IS NULL, "
    "a.finished IS NULL, a.seconds, a.score, a.leak FROM attempts a JOIN tasks t ON t.key = a.task "
    "JOIN runs r ON r.key = a.run ORDER BY r.name, t.position, a.number",
    **{
        table: f"SELECT r.name, t.task, x.number FROM {table} x JOIN tasks t ON t.key = x.task "
        "JOIN runs r ON r.key = x.run ORDER BY r.name, t.position, x.number"
        for table in ("transcripts", "calls", "origins", "judgements", "labels", "anchors")
    },
    "leases": "SELECT count(*) FROM leases",
}


class _Diary:
    """What a series of writes returned and raised, and all that it changed in the tables."""

    def __init__(self, store: _Heard) -> None:
        self.store = store
        self.tables: dict[str, list[str]] = {}
        self.entries: dict[str, object] = {}

    def note(self, what: str, write: Callable[[], object]) -> None:
        self.store.heard = []
        try:
            result = write()
        except PasshatError as error:
            result = f"{type(error).__name__}: {str(error).replace(self.store.path, 'PLACE')}"
        tables = {
            name: [json.dumps(row) for row in self.store.read(query)]
            for name, query in _TABLES.items()
        }
        changes = {
            name: [
                *(f"- {row}" for row in self.tables.get(name, ()) if row not in rows),
                *(f"+ {row}" for row in rows if row not in self.tables.get(name, ())),
            ]
            for name, rows in tables.items()
        }
        self.tables = tables
        changes = {name: rows for name, rows in changes.items() if rows}
        entry = {"returned": result, "changed": changes, "told": self.store.heard}
        self.entries[f"{len(self.entries) + 1}. {what}"] = entry


def _places(records: Sequence[AttemptRecord]) -> list[str]:
    return [f"{record.task}#{record.number}" for record in records]


def _expire(store: Store, token: str) -> None:
    store._db.execute("UPDATE leases SET seen = seen - 1e6 WHERE token = ?", (token,))


def _write_all(diary: _Diary, other: Store) -> None:
    """Two runners: claims, results, lost leases, later judgements, releases and removals."""
    store, note, run = diary.store, diary.note, UNEVEN.id
    attempts = [("b", 1), ("b", 2), ("b", 3), ("b", 4), ("a", 1), ("a", 2)]
    records = [_record(*at, place) for place, at in enumerate(attempts)]
    note("no run yet", lambda: [store.release(run), store.load_generation(run)])
    note("a claim of no run", lambda: store.claim(run, attempts))
    note("begin", lambda: len(store.begin(UNEVEN, 2)))
    note("begin with fewer", lambda: store.begin(UNEVEN, 1) == store.load_generation(run))
    note("begin with more", lambda: store.begin(UNEVEN, 4) == store.load_generation(run))
    more = replace(UNEVEN, tasks=TASKS[:3])
    note("begin with another task", lambda: bool(store.begin(more, 4)))
    note("claim", lambda: store.claim(run, attempts[:4]))
    note("claim again and more", lambda: store.claim(run, attempts[1:5]))
    note(
        "another claims",
        lambda: [other.begin(UNEVEN, 4) != "", other.claim(run, [*attempts, ("a", 3)])],
    )
    note("claims of the other", lambda: [held.expired for held in store.list_claims(run)])
    note("finish", lambda: _places(store.finish(run, records[:3])))
    note("finish again", lambda: _places(store.finish(run, records[2:4])))
    note("finish the other's", lambda: _places(store.finish(run, records[4:])))
    note("the other finishes", lambda: _places(other.finish(run, records[5:])))
    note("the other's lease ends", lambda: _expire(store, other._token))
    note("claims that are free", lambda: [held.expired for held in store.list_claims(run)])
    note("release them", lambda: store.release_expired(run))
    late = _record("a", 3, 0)
    note("the other finishes what was released", lambda: _places(other.finish(run, [late])))
    note("release our own", lambda: store.release(run))
    said = StoredJudgement(PASSED, "", "by hand", JudgementSource.HUMAN, "2026-02-01")
    note("judge", lambda: store.add_judgement(run, "b", 2, said))
    for number, verdict in ((4, PASSED), (2, MISSING)):
        wrong = replace(said, verdict=verdict)
        note(f"judge {verdict} b#{number}", partial(store.add_judgement, run, "b", number, wrong))
    note("claim the rest", lambda: store.claim(run, [("d", 1), ("d", 2), ("b", 4)]))
    ends = [_record("d", 1, 4), _record("d", 2, 6)]
    note("two end without a verdict", lambda: _places(store.finish(run, ends)))
    note("release none of the missing", lambda: store.release(run))
    note("release for an account", lambda: store.release(run, account=True))
    note("release the missing", lambda: store.release(run, missing=True, ours=False))
    note("nothing to release", lambda: store.release(run, ours=False))
    uneven = PlannedAttempts(4, {"b": 4, "a": 1, "d": 2})
    note("begin with numbers by task", lambda: bool(store.begin(more, uneven)))
    note("plan", lambda: load_plan(store, run))
    note("restore an earlier plan", lambda: restore_plan(store, run, StoredPlan(5, None, None)))
    note("restore one that is too small", lambda: restore_plan(store, run, StoredPlan(1, 9, "")))
    note("no plan", lambda: load_plan(store, "none"))
    note("the other claims", lambda: other.claim(run, [("a", 3)]))
    note("remove while it is made", lambda: store.remove(run))
    note("forget old talk", lambda: forget_transcripts(store, timedelta(days=1)))
    store._db.execute("UPDATE attempts SET finished = '2020-01-01' WHERE number = 1")
    told: list[int] = []
    note("forget it now", lambda: [forget_transcripts(store, timedelta(days=1), told.append), told])
    note("forget orphans", lambda: forget_orphans(store))
    note("remove by force", lambda: store.remove(run, force=True))
    note("finish what was removed", lambda: other.finish(run, [late]))
    note("remove what is not there", lambda: store.remove(run))


def _copy_all(place: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Copies and merges in small blocks: what is told, and what comes of it."""
    monkeypatch.setattr(copy, "_ATTEMPTS", 3)
    monkeypatch.setattr(copy, "_ROWS", 2)
    answers: dict[str, object] = {}
    told: list[object] = []

    def copied(results: Iterable[copy.Copied]) -> list[object]:
        return [[one.run, one.attempts, one.added, one.equal] for one in results]

    def tell(doing: str, run: str, attempts: int) -> None:
        told.append(f"{doing} {run} {attempts}")

    with ExitStack() as stack:
        first, second, third, fourth = (_open(stack, place / f"{name}.db") for name in "1234")
        _fill(first)
        _begin(second, MANY, 7, "b", "a")  # the same attempts, without what was said later
        answers["digests"] = {
            table: digest.rows for table, digest in copy.digest_of(first, MANY.id).items()
        }
        answers["copied"] = copied(copy.copy_runs(first, third, list(RUNS.values()), tell))
        answers["merged"] = copied(copy.merge_runs([second, first], fourth, tell))
        answers["again"] = copied(copy.merge_runs([third], fourth, tell))
        answers["told"] = list(told)
        answers["runs"] = [store.runs() for store in (third, fourth)]
        answers["tables"] = [
            {name: len(store.read(query)) for name, query in _TABLES.items()}
            for store in (first, third, fourth)
        ]
        answers["blocks"] = [
            [list(block.names.values()), block.attempts, block.after, block.upto]
            for block in copy.blocks(first, MANY.id)
        ]
        answers["backup"] = copy.back_up(first, str(place / "backup.db"))
        backup = stack.enter_context(open_store(str(place / "backup.db"), read_only=True))
        empty = _open(stack, place / "5.db")
        answers["restored"] = copied(copy.restore(backup, empty, tell))
        for number, (statement, runs) in enumerate(
            (
                ("UPDATE runs SET agent = 'x', name = 'y'", [MANY.id]),
                ("UPDATE runs SET allocation = '{}'", [UNEVEN.id]),
                ("UPDATE tasks SET labels = '{}' WHERE task = 'd'", [MANY.id]),
                ("UPDATE attempts SET seconds = 99 WHERE number = 4", [MANY.id]),
                ("UPDATE transcripts SET body = x'5b5d' WHERE number = 3", [MANY.id]),
            )
        ):
            target = _open(stack, place / f"conflict {number}.db")
            list(copy.copy_runs(first, target, runs))
            target._db.execute(statement)
            with pytest.raises(PasshatError) as caught:
                list(copy.merge_runs([first], target))
            answers[statement] = str(caught.value).replace(str(place), "PLACE")
    return answers


def test_the_whole_course_of_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "store.db")
    with _Heard(place) as store, open_store(place) as other:
        diary = _Diary(store)
        _write_all(diary, other)
    results = diary.entries | _copy_all(tmp_path, monkeypatch)
    check_results(Path(__file__).with_name("writes.json"), results)
