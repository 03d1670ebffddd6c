"""Counts that the database computes, against the same counted in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from passhat.protocol import Protocol
from passhat.stats.outcomes import Verdict
from passhat.store import (
    AttemptRecord,
    CallRecords,
    JudgementSource,
    RunRecord,
    Store,
    StoredJudgement,
    open_store,
)
from passhat.store.copy import digest_of
from passhat.store.counting import _Tally
from passhat.suites.base import Judgement, Task

PASSED, FAILED, MISSING = Verdict.PASSED, Verdict.FAILED, Verdict.MISSING
# Not in alphabetical order, and with characters that SQL, JSON and a shell take for their own.
NAMES = ["z", "a'b", 'say "x"', "%_", "漢字", "a\\n", "new\nline", "x" * 300, "never tried", "é"]
WHY = {PASSED: [""], FAILED: ["timeout", "wrong_answer", "it's"], MISSING: ["rate_limit", "budget"]}
MEASURES = ("seconds", "steps", "tokens", "cost")


@dataclass
class Truth:
    """What was written, attempt by attempt, with the judgement that counts."""

    records: dict[tuple[str, int], AttemptRecord] = field(default_factory=dict)
    newest: dict[tuple[str, int], tuple[Verdict, str]] = field(default_factory=dict)

    def of(self, task: str) -> list[Verdict]:
        return [verdict for (name, _), (verdict, _) in sorted(self.newest.items()) if name == task]


def _record(draw: random.Random, task: str, number: int) -> AttemptRecord:
    verdict = draw.choice([PASSED, PASSED, FAILED, FAILED, MISSING])
    judgement = Judgement(verdict, draw.choice(WHY[verdict]), "detail")

    def some(value: float) -> float | None:
        return draw.choice([None, 0.0, value])

    return AttemptRecord(
        *(task, number, judgement, draw.choice([None, 0, 2**53])),
        *(some(1.25 * number), some(number), some(1e15), some(0.1)),
        answer_hash=draw.choice(["", "same", "same", "other"]),
    )


def _write(store: Store, seed: int, *, shuffle: int | None = None) -> tuple[str, Truth]:
    """A run with ragged attempts, gaps in their numbers, and later judgements of some."""
    draw, truth = random.Random(seed), Truth()
    run = RunRecord("agent", Protocol(suite="s"), [Task(n, "?", {"k": n[:1]}) for n in NAMES])
    for place, task in enumerate(NAMES):
        if task != "never tried":
            for number in draw.sample(range(1, 9), 1 + place % 6):
                truth.records[task, number] = _record(draw, task, number)
    truth.newest = {at: (r.judgement.verdict, r.judgement.why) for at, r in truth.records.items()}
    later = [
        (at, draw.choice([PASSED, FAILED])) for at in draw.sample(sorted(truth.records), 12) * 2
    ]
    order = list(truth.records)
    if shuffle is not None:
        random.Random(shuffle).shuffle(order)
    store.begin(run, 8)
    assert store.claim(run.id, order) == order
    assert store.finish(run.id, [truth.records[at] for at in order]) == []
    for at, verdict in later:
        why = "" if verdict is PASSED else "judged again"
        said = StoredJudgement(verdict, why, "", JudgementSource.HUMAN, "2026-01-01")
        store.add_judgement(run.id, *at, said)
        truth.newest[at] = (verdict, why)
    return run.id, truth


@pytest.fixture(params=[1, 2, 3], scope="module")
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Store, str, Truth]]:
    """Only read by the tests."""
    with open_store(str(tmp_path_factory.mktemp("counting") / "store.db")) as store:
        yield store, *_write(store, request.param)


Written = tuple[Store, str, Truth]


def test_counts_by_task_and_reason(written: Written) -> None:
    store, run, truth = written
    counts = store.counts(run)
    tried = [name for name in NAMES if truth.of(name)]
    assert list(counts.tasks) == tried
    for place, task in enumerate(tried):
        tally = Counter(truth.of(task))
        assert counts.n[place] == tally[PASSED] + tally[FAILED]
        assert counts.c[place] == tally[PASSED]
        assert counts.m[place] == tally[MISSING]
    reasons: dict[Verdict, Counter[str]] = {}
    for verdict, why in truth.newest.values():
        if verdict is not PASSED:
            reasons.setdefault(verdict, Counter())[why] += 1
    assert {verdict: dict(found) for verdict, found in counts.reasons.items()} == reasons
    for found in counts.reasons.values():
        assert list(found.values()) == sorted(found.values(), reverse=True)


def test_the_list_of_runs_counts_the_same(written: Written) -> None:
    store, run, truth = written
    (listed,) = store.runs()
    tally = Counter(verdict for verdict, _ in truth.newest.values())
    assert (listed.attempts, listed.passed, listed.missing) == (
        *(len(truth.newest), tally[PASSED], tally[MISSING]),
    )
    assert (listed.tasks, listed.total, listed.id) == (len(NAMES), 8 * len(NAMES), run)


def test_verdicts_come_in_the_order_of_the_suite(written: Written) -> None:
    store, run, truth = written
    places = sorted(truth.newest, key=lambda at: (NAMES.index(at[0]), at[1]))
    assert list(store.verdicts(run)) == [(*at, truth.newest[at][0]) for at in places]
    for task in NAMES:
        failed = [n for n in range(9) if truth.newest.get((task, n), (None,))[0] is FAILED]
        assert store.first_failure(run, task) == min(failed, default=None)


def test_measures(written: Written) -> None:
    store, run, truth = written
    sums, columns = store.measure_sums(run), store.load_measures(run)
    places = sorted(truth.records, key=lambda at: (NAMES.index(at[0]), at[1]))
    assert columns.verdicts.tolist() == [int(truth.newest[at][0]) for at in places]
    sizes = [len(truth.of(task)) for task in NAMES if truth.of(task)]
    assert np.diff(columns.starts).tolist() == sizes
    for name in MEASURES:
        cells = {at: getattr(truth.records[at], name) for at in places}
        known = {at: value for at, value in cells.items() if value is not None}
        assert sums[name].recorded == len(known)
        assert sums[name].total == pytest.approx(sum(known.values()))
        assert sums[name].passed == sum(truth.newest[at][0] is PASSED for at in known)
        column = [None if np.isnan(x) else x for x in columns.measures[name].tolist()]
        assert column == list(cells.values())  # 0 stays 0, and not recorded is not 0


@pytest.mark.parametrize("priced", [False, True])
def test_usage_counts_unknown_apart(written: Written, priced: bool) -> None:
    store, run, truth = written
    known = [
        record
        for record in truth.records.values()
        if record.tokens is not None and not (priced and record.cost is None)
    ]
    usage = store.load_usage(run, priced=priced)
    assert usage.unknown == len(truth.records) - len(known)
    assert usage.tokens == sum(record.tokens or 0 for record in known)
    assert usage.cost == pytest.approx(sum(record.cost or 0 for record in known))
    assert usage.attempt_count == sum(bool(record.tokens or record.cost) for record in known)
    assert usage.most_cost == max((record.cost or 0 for record in known), default=0)


def test_answers_that_are_all_alike(written: Written) -> None:
    store, run, truth = written
    several = same = 0
    for task in NAMES:
        answers = [
            record.answer_hash for (name, _), record in truth.records.items() if name == task
        ]
        if len(answers) >= 2 and all(answers):
            several += 1
            same += len(set(answers)) == 1
    assert store.count_same_answers(run) == (several, same)


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize("few", [0, 200])
def test_attempts_that_are_there(
    written: Written, finished: bool, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways of looking up tasks whose numbers have gaps."""
    monkeypatch.setattr("passhat.store.counting._FEW", few)
    store, run, truth = written
    made = store.load_attempts(run, finished=finished)
    there = {at for at, (verdict, _) in truth.newest.items() if not finished or verdict >= 0}
    assert {(task, n) for task in NAMES for n in range(10) if (task, n) in made} == there
    assert len(made) == len(there)


def test_small_blocks_count_the_same(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    store, run, _ = written
    whole, taken, digests = store.counts(run), store.load_measures(run), digest_of(store, run)
    monkeypatch.setattr("passhat.store.counting._BLOCK", 2)
    monkeypatch.setattr("passhat.store.copy._ATTEMPTS", 3)
    parts = store.counts(run)
    assert list(parts.tasks) == list(whole.tasks)
    assert np.array_equal([parts.n, parts.c, parts.m], [whole.n, whole.c, whole.m])
    assert parts.reasons == whole.reasons
    assert np.array_equal(store.load_measures(run).starts, taken.starts)
    assert digest_of(store, run) == digests


def test_a_digest_depends_on_content_and_not_on_the_order_of_writing(tmp_path: Path) -> None:
    digests = []
    for place, (seed, shuffle) in enumerate(((1, None), (1, 7), (2, None))):
        with open_store(str(tmp_path / f"{place}.db")) as store:
            run, _ = _write(store, seed, shuffle=shuffle)
            finished = store._db.execute("UPDATE attempts SET finished = 'x'").rowcount
            digests.append(digest_of(store, run))
            assert digests[-1]["attempts"].rows == finished
    assert digests[0] == digests[1]
    assert digests[0]["attempts"].value != digests[2]["attempts"].value


def test_a_run_without_attempts(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db")) as store:
        run = RunRecord("agent", Protocol(suite="s"), [Task("a", "?")])
        store.begin(run, 3)
        counts = store.counts(run.id)
        assert (list(counts.tasks), counts.n.tolist(), counts.reasons) == ([], [], {})
        assert store.measure_sums(run.id) == {}
        assert store.load_measures(run.id).verdicts.tolist() == []
        assert store.count_same_answers(run.id) == (0, 0)
        assert len(store.load_attempts(run.id)) == 0
        assert store.load_usage(run.id, priced=True).attempt_count == 0
        assert digest_of(store, run.id)["attempts"].rows == 0
        assert [listed.status for listed in store.runs()] == ["stopped"]


@pytest.mark.parametrize("options", [{"missing": True}, {"account": True}])
def test_an_attempt_that_was_judged_later_is_not_made_again(
    store_place: str, options: dict[str, bool]
) -> None:
    """Made again, it would be counted by the judgement of the attempt before."""
    calls = CallRecords(3, 1, 14, 0, 0, 0, b'[{"name": "m"}]')
    talk = [{"role": "user", "text": "hello"}]
    with open_store(store_place) as store:
        run = RunRecord("agent", Protocol(suite="s"), [Task("a", "?")])
        store.begin(run, 3)
        store.claim(run.id, [("a", 1), ("a", 2), ("a", 3)])
        lost = Judgement(MISSING, "account")
        endings = {1: lost, 2: lost, 3: Judgement(PASSED)}
        store.finish(
            run.id,
            [
                AttemptRecord("a", n, ended, transcript=talk, calls=calls)
                for n, ended in endings.items()
            ],
        )
        said = StoredJudgement(FAILED, "wrong_answer", "", JudgementSource.REGRADE)
        store.add_judgement(run.id, "a", 1, said)
        assert store.release(run.id, **options) == 1
        assert list(store.verdicts(run.id)) == [("a", 1, FAILED), ("a", 3, PASSED)]
        assert store.call_counts(run.id).answers == 6  # none of the attempt that is gone
        # The new attempt has no conversation, and does not show the one before.
        store.claim(run.id, [("a", 2)])
        store.finish(run.id, [AttemptRecord("a", 2, Judgement(PASSED))])
        again = store.attempt(run.id, "a", 2)
        assert again is not None
        assert (again.verdict, list(again.transcript)) == (PASSED, [])
        assert store.calls(run.id, "a", 2) == []


def test_only_reasons_of_the_account_are_made_again(store_place: str) -> None:
    with open_store(store_place) as store:
        run = RunRecord("agent", Protocol(suite="s"), [Task("a", "?")])
        store.begin(run, 2)
        store.claim(run.id, [("a", 1), ("a", 2)])
        for number, why in ((1, "account"), (2, "rate_limit")):
            store.finish(run.id, [AttemptRecord("a", number, Judgement(MISSING, why))])
        assert store.release(run.id, account=True) == 1
        assert list(store.verdicts(run.id)) == [("a", 2, MISSING)]
        assert store.release(run.id, missing=True) == 1
        assert list(store.verdicts(run.id)) == []


def test_counts_without_tasks_or_rows_are_empty() -> None:
    counter = _Tally(np.array([], np.int64))
    counter.add([(1, 1, "", 3)])
    assert counter.by_verdict.shape == (3, 0)
    counter = _Tally(np.array([5, 2], np.int64))
    counter.add([])
    counter.add([(2, 1, "", 3), (5, 0, "timeout", 1), (9, 1, "", 4)])  # 9 is no task
    assert counter.by_verdict.sum() == 4


@pytest.mark.parametrize("keys", [[4], [0], [4, 4, 9]])
@pytest.mark.parametrize("has_scores", [True, False])
def test_attempts_without_their_task_are_left_out(keys: list[int], has_scores: bool) -> None:
    """A task that is gone is a damage: what it leaves behind is neither counted nor measured."""
    with open_store(":memory:") as store:
        run = RunRecord("agent", Protocol(suite="s"), [Task(name, "?") for name in "abc"])
        store.begin(run, 1)
        places = [(name, 1) for name in "abc"]
        store.claim(run.id, places)
        score = 0.5 if has_scores else None
        judgements = [Judgement(PASSED, score=score), Judgement(FAILED, "timeout", score=score)]
        records = [
            AttemptRecord(*place, judgements[number % 2], seconds=float(number))
            for number, place in enumerate(places)
        ]
        store.finish(run.id, records)
        store._db.execute("PRAGMA foreign_keys = OFF")
        for number, key in enumerate(keys):
            store._db.execute(
                "INSERT INTO attempts (run, task, number, verdict, why, seconds, finished) "
                "VALUES (1, ?, ?, 1, '', 9.0, '')",
                (key, 9 + number),
            )
        columns = store.load_measures(run.id)
        assert columns.verdicts.tolist() == [1, 0, 1]
        assert columns.starts.tolist() == [0, 1, 2, 3]
        assert columns.measures["seconds"].tolist() == [0.0, 1.0, 2.0]
        counts = store.counts(run.id)
        assert (counts.n.tolist(), counts.c.tolist()) == ([1, 1, 1], [1, 0, 1])


@pytest.mark.parametrize(
    ("rows", "n", "c", "m"),
    [
        ([], [0, 0], [0, 0], [0, 0]),
        ([(5, 1, "", 2)], [0, 0], [0, 2], [0, 0]),
        ([(3, 0, "x", 1), (5, -1, "y", 4)], [1, 0], [0, 0], [0, 4]),
        ([(4, 1, "", 2), (6, 1, "", 2), (2, 1, "", 2)], [0, 0], [0, 0], [0, 0]),
    ],
)
@pytest.mark.parametrize("is_sorted", [True, False])
def test_a_tally_counts_by_verdict_and_task(
    rows: list[tuple[int, int, str, int]], n: list[int], c: list[int], m: list[int], is_sorted: bool
) -> None:
    step = 1 if is_sorted else -1
    tally = _Tally(np.array([3, 5][::step]))
    tally.add(rows)
    assert tally.by_verdict.tolist() == [m[::step], n[::step], c[::step]]


def test_reasons_are_ordered_by_how_often_they_occur_and_then_by_name() -> None:
    tally = _Tally(np.array([1]))
    tally.add([(1, 0, "b", 2), (1, 0, "a", 2), (1, 0, "c", 3), (1, 0, None, 1), (1, -1, "z", 1)])
    tally.add([(1, 0, "c", -3), (1, 1, "passed", 4)])
    reasons = tally.reasons()
    assert [list(words.items()) for words in reasons.values()] == [
        [("a", 2), ("b", 2), ("", 1)],
        [("z", 1)],
    ]
    assert list(reasons) == [FAILED, MISSING]
