"""Joining, copies and retries of runs, against the same done with plain Python lists."""

from __future__ import annotations

import math
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import InvalidValue
from passhat.protocol import Protocol
from passhat.readers.identity import count_once, join_group, join_runs, without_retries
from passhat.readers.records import steps_of, value_at
from passhat.stats.outcomes import Attempts, Loss, Outcomes, Run, Tally
from passhat.stats.outcomes.attempts import Categorical
from passhat.stats.outcomes.gathering import columns_of

BANDS = {"a": "easy", "b": "hard", "c": "hard"}
# task, verdict, why, seconds
Attempt = tuple[str, int, str, float]

attempts = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from([1, 0, -1]),
        st.sampled_from(["", "timeout", "odd"]),
        st.sampled_from([math.nan, 0.25, 1.75]),
    ),
    min_size=1,
    max_size=6,
)


def _run(
    rows: list[Attempt],
    source: str,
    *,
    name: str = "agent",
    origin: str = "",
    guessed: bool = False,
    ids: list[str] | None = None,
    suite: str | None = None,
) -> Run:
    """A run of attempts, task after task in the order of first appearance."""
    tasks = list(dict.fromkeys(task for task, *_ in rows))
    places = [place for task in tasks for place, row in enumerate(rows) if row[0] == task]
    ordered = [rows[place] for place in places]
    starts = np.cumsum([0, *(sum(row[0] == task for row in rows) for task in tasks)])
    words = list(dict.fromkeys(row[2] for row in ordered))
    extras = {}
    if ids is not None:
        own = [ids[place] for place in places]
        extras = {"source_id": Categorical(tuple(own), np.arange(len(own)))}
    made = Attempts(
        tuple(tasks),
        starts,
        np.array([row[1] for row in ordered], np.int8),
        Categorical(tuple(words), np.array([words.index(row[2]) for row in ordered])),
        MappingProxyType({"seconds": np.array([row[3] for row in ordered])}),
        None,
        MappingProxyType(extras),
    )
    labels = {"band": tuple(BANDS[task] for task in tasks)}
    outcomes = Outcomes.from_columns(columns_of(made, ordered=True, labels=labels))
    tally = Tally(len(rows) + 1, len(rows), MappingProxyType({"cached": 1}))
    return Run(
        name,
        name,
        outcomes,
        Protocol(suite=suite),
        attempts=made,
        source=source,
        tally=tally,
        origin=origin,
        agent_guessed=guessed,
    )


@given(st.lists(attempts, min_size=2, max_size=3))
def test_a_joined_run_has_every_attempt_in_the_order_of_the_files(
    files: list[list[Attempt]],
) -> None:
    joined = join_group([_run(rows, f"{place}.csv") for place, rows in enumerate(files)])
    everything = [row for rows in files for row in rows]
    tasks = list(dict.fromkeys(row[0] for row in everything))
    assert list(joined.outcomes.tasks) == tasks
    assert joined.outcomes.labels["band"] == tuple(BANDS[task] for task in tasks)
    assert joined.attempts is not None
    assert joined.outcomes.order is not None
    for place, task in enumerate(tasks):
        own = [row for row in everything if row[0] == task]
        assert [int(v) for v in joined.outcomes.order.of(place)] == [row[1] for row in own]
        for attempt, row in zip(joined.attempts.of(place), own, strict=True):
            assert attempt.measures == ({} if math.isnan(row[3]) else {"seconds": row[3]})
            assert (attempt.detail or "") == row[2]
    assert joined.tally is not None
    assert joined.tally.attempts == len(everything)
    assert joined.tally.rows == len(everything) + len(files)
    assert joined.tally.skipped == {"cached": len(files)}
    sizes = {sum(row[0] == task for row in everything) for task in tasks}
    assert joined.protocol.attempts == (sizes.pop() if len(sizes) == 1 else None)
    assert joined.source == ", ".join(f"{place}.csv" for place in range(len(files)))


def test_one_file_is_counted_once_though_two_of_its_runs_are_joined() -> None:
    first = _run([("a", 1, "", 0.25)], "one.csv")
    second = Run(**{slot: getattr(first, slot) for slot in Run.__slots__})
    joined = join_group([first, second])
    assert joined.tally is not None
    assert joined.tally.rows == 2  # the same tally object, not 4


ROWS: list[Attempt] = [("a", 1, "", 0.25), ("b", 0, "timeout", 1.75)]


def test_only_runs_of_one_agent_and_one_protocol_are_joined() -> None:
    runs = [
        _run(ROWS, "1.csv", suite="s"),
        _run(ROWS, "2.csv", suite="s"),
        _run(ROWS, "3.csv", suite="other"),
        _run(ROWS, "4.csv", name="another", suite="s"),
    ]
    joined = join_runs(runs)
    assert [run.source for run in joined] == ["1.csv, 2.csv", "3.csv", "4.csv"]
    assert [run.outcomes.attempts for run in joined] == [4, 2, 2]


def test_a_guessed_name_is_not_joined_on_and_the_command_is_quoted() -> None:
    runs = [_run(ROWS, f"my run {n}.csv", guessed=True, name="my bot") for n in (1, 2)]
    with pytest.raises(InvalidValue, match="'my bot' is a guess") as caught:
        join_runs(runs, ["my run 1.csv", "my run 2.csv"])
    assert "--join --agent 'my bot' 'my run 1.csv' 'my run 2.csv'" in str(caught.value.hint)
    assert len(join_runs(runs[:1])) == 1


def test_of_a_run_begun_again_the_file_that_got_further_is_kept() -> None:
    short = _run(ROWS[:1], "first.json", origin="run-1")
    long = _run(ROWS, "second.json", origin="run-1")
    other = _run(ROWS, "third.json", origin="run-2")
    for order in ([short, long, other], [long, short, other]):
        kept = without_retries(order)
        assert [run.source for run in kept] == ["second.json", "third.json"]
        assert kept[0].reading == (
            "first.json holds the same run (run-1), begun another time: left aside with 1 attempt",
        )
    # Runs without an id of their own, and two runs of one file, are nothing that was begun again.
    apart = [_run(ROWS, "a.json"), _run(ROWS, "b.json")]
    assert without_retries(apart) == apart
    same_file = [_run(ROWS, "a.json", origin="x"), _run(ROWS, "a.json", origin="x")]
    assert len(without_retries(same_file)) == 2


def test_copies_are_told_by_what_they_record() -> None:
    """Fractions of seconds are never equal by chance; verdicts alone may be."""
    kept = count_once([_run(ROWS, "one.csv"), _run(ROWS, "backup/one.csv")])
    assert [run.source for run in kept] == ["one.csv"]
    assert kept[0].reading == ("the same attempts are also in backup/one.csv: counted once",)
    bare: list[Attempt] = [("a", 1, "", math.nan), ("b", 0, "", math.nan)]
    runs = [_run(bare, "one.csv"), _run(bare, "backup/one.csv")]
    assert len(count_once(runs)) == 2
    assert len(count_once(runs, joining=True)) == 1
    numbered = [_run(bare, "run1.csv"), _run(bare, "run2.csv")]
    assert len(count_once(numbered, joining=True)) == 2
    others = [_run(ROWS, "one.csv"), _run(ROWS, "two.csv", name="another")]
    assert len(count_once(others)) == 2
    assert len(count_once([_run(ROWS, "one.csv"), _run(ROWS, "one.csv")])) == 2


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True), st.data())
def test_attempts_that_an_earlier_file_has_brought_are_left_out(
    numbers: list[int], data: st.DataObject
) -> None:
    """Two files that share some attempts by id; together every id counts once."""
    shared = data.draw(st.lists(st.sampled_from(numbers), unique=True))
    more = data.draw(st.lists(st.integers(10, 19), min_size=1, max_size=4, unique=True))

    def rows_of(chosen: list[int]) -> tuple[list[Attempt], list[str]]:
        # What is recorded depends on the id alone, so that one id is one attempt.
        rows: list[Attempt] = [("abc"[n % 3], n % 2, "", n + 0.5) for n in chosen]
        return rows, [f"attempt-{n:08}" for n in chosen]

    (first, first_ids), (second, second_ids) = rows_of(numbers), rows_of([*shared, *more])
    runs = [
        _run(first, "one.json", ids=first_ids),
        _run(second, "two.json", ids=second_ids, suite=None),
    ]
    kept = count_once(runs)
    assert [run.outcomes.attempts for run in kept] == [len(numbers), len(more)]
    listed = [attempt.extras["source_id"] for run in kept for attempt in run.attempts or ()]
    assert sorted(listed) == sorted(f"attempt-{n:08}" for n in {*numbers, *more})
    if shared:
        verb = "is" if len(shared) == 1 else "are"
        noun = "attempt" if len(shared) == 1 else "attempts"
        assert kept[0].reading == (
            f"{len(shared)} {noun} of two.json {verb} also here, by their own ids: counted once",
        )
    else:
        assert kept[0].reading == ()


@pytest.mark.parametrize(
    ("text", "seconds", "copies"),
    [
        ("attempt-0001", math.nan, True),  # long enough to be an id of its own
        ("a1", math.nan, False),  # may be a counter that every file starts anew
        ("123456789012", math.nan, False),  # a number, however long, may be one
        ("a1", 0.25, True),  # the same counter and the same fraction of a second
    ],
)
def test_one_id_is_one_attempt_if_it_can_be_no_counter(
    text: str, seconds: float, copies: bool
) -> None:
    """Two files with one attempt in common by its id, and one more each."""
    runs = [
        _run([("a", 1, "", seconds), ("b", 0, "", place + 0.5)], name, ids=[text, f"own-{name}"])
        for place, name in enumerate(("one.json", "two.json"))
    ]
    assert sum(run.outcomes.attempts for run in count_once(runs)) == (3 if copies else 4)


@pytest.mark.parametrize(
    ("tally", "sentences"),
    [
        (Tally(1, 1), ("1 row, 1 attempt read",)),
        (
            Tally(0, 0, absent=1),
            ("0 rows, 0 attempts read", "1 planned attempt without a row: missing"),
        ),
        (
            Tally(
                1203, 1200, MappingProxyType({"a cached answer": 1}), (Loss("line 3", "bad", 2),)
            ),
            (
                "1,203 rows, 1,200 attempts read",
                "1 row skipped: a cached answer",
                "LOST 2 rows: line 3: bad",
            ),
        ),
        (
            Tally(5, 0, losses=tuple(Loss(f"line {n}", "bad") for n in range(5))),
            (
                "5 rows, 0 attempts read",
                "LOST 5 rows: line 0: bad; line 1: bad; line 2: bad and 2 more",
            ),
        ),
        (
            Tally(1, 0, losses=(Loss("", "ends too early", 0),)),
            ("1 row, 0 attempts read", "LOST 0 rows: ends too early"),
        ),
    ],
)
def test_what_became_of_the_rows(tally: Tally, sentences: tuple[str, ...]) -> None:
    assert tally.sentences() == sentences


# -- paths into records ----------------------------------------------------------------------------

names = st.sampled_from(["a", "b", "odd.key", "two words", "x-y"])
documents = st.recursive(
    st.integers(0, 5) | st.sampled_from(["", "text"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


def _places(data: object, path: str = "") -> list[tuple[str, object]]:
    """Every path into a document, with the value that plain indexing finds there."""
    found = [(path, data)] if path else []
    if isinstance(data, dict):
        for key, value in data.items():
            found += _places(value, f'{path}."{key}"' if path else f'"{key}"')
    if isinstance(data, list):
        for place, value in enumerate(data):
            found += _places(value, f"{path}[{place}]")
            found += [(f"{path}[{place - len(data)}]", value)]
    return found


@given(documents)
def test_every_place_of_a_document_has_a_path(document: object) -> None:
    for path, value in _places(document):
        assert value_at(document, steps_of(path)) == value
        assert value_at(document, steps_of(f"{path}.nothing_like_this")) is None


def test_a_wildcard_goes_over_lists_and_objects() -> None:
    """Over an object it found nothing."""
    data = {"scores": {"one": {"v": 1}, "two": {"v": 2}}, "rows": [{"v": 3}, {"w": 4}]}
    assert value_at(data, steps_of("scores.*.v")) == [1, 2]
    assert value_at(data, steps_of("rows[*].v")) == [3, None]
    assert value_at(data, steps_of("rows.*.v")) == [3, None]
    assert value_at(data, steps_of("scores.one.*")) == [1]
    assert value_at({"scores": 5}, steps_of("scores.*.v")) is None


@pytest.mark.parametrize("path", ["a[", "a[x", "[]", 'a"b', "a..b"])
def test_what_is_no_path_is_refused_with_the_place(path: str) -> None:
    with pytest.raises(ValueError, match="is not a path"):
        steps_of(path)
