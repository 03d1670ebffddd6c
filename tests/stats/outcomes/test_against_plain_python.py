"""Tables gathered into runs, against the same done with plain Python lists and dictionaries."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from passhat import Outcomes
from passhat.stats.outcomes import Completion, Verdict
from passhat.stats.outcomes.cells import CellCodes, RowError
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.gathering import AttemptGatherer, CountGatherer, Gathered

NAMES = ("model", "suite", "task", "trial", "success", "failure", "seconds", "slice:band")
MEANING = {"1": 1, "yes": 1, "0": 0, "fail": 0, "": -1, "n/a": -1}
BANDS = {"a": "easy", "b": "hard", "c": "easy", "d": ""}
Row = tuple[str, str, str, int, str, str, str]

rows = st.lists(
    st.tuples(
        st.sampled_from(["m1", "m2"]),
        st.sampled_from(["s1", "s2"]),
        st.sampled_from(list(BANDS)),
        st.integers(0, 4),
        st.sampled_from(list(MEANING)),
        st.sampled_from(["", "timeout", "wrong_answer", "ValueError", "odd words"]),
        st.sampled_from(["", "0.5", "2"]),
    ),
    min_size=1,
    max_size=25,
    unique_by=lambda row: row[:4],
)


def _chunk(table: list[Row]) -> dict[str, list[object]]:
    columns = dict(zip(NAMES[:-1], map(list, zip(*table, strict=True)), strict=True))
    return columns | {"slice:band": [BANDS[row[2]] for row in table]}


def _gathered(table: list[Row], cuts: list[int]) -> list[Gathered]:
    gatherer = AttemptGatherer(ColumnMap.resolve(NAMES))
    edges = sorted({0, len(table), *(cut % len(table) for cut in cuts)})
    for start, stop in pairwise(edges):
        gatherer.add(_chunk(table[start:stop]))
    return gatherer.runs()


@given(rows, st.lists(st.integers(0, 40), max_size=3))
def test_attempts_of_several_runs(table: list[Row], cuts: list[int]) -> None:
    runs = _gathered(table, cuts)
    keys = list(dict.fromkeys(row[:2] for row in table))
    assert [(run.model, run.suite) for run in runs] == keys
    for key, run in zip(keys, runs, strict=True):
        own = [row for row in table if row[:2] == key]
        names = list(dict.fromkeys(row[2] for row in own))
        outcomes = Outcomes.from_columns(run.columns)
        assert list(outcomes.tasks) == names
        assert outcomes.labels["band"] == tuple(BANDS[name] for name in names)
        assert run.attempts is not None
        assert outcomes.order is not None
        for place, name in enumerate(names):
            mine = sorted((row for row in own if row[2] == name), key=lambda row: row[3])
            verdicts = [MEANING[row[4]] for row in mine]
            assert [int(v) for v in outcomes.order.of(place)] == verdicts
            assert outcomes.n[place] == sum(v != -1 for v in verdicts)
            assert outcomes.c[place] == sum(v == 1 for v in verdicts)
            assert outcomes.missing[place] == sum(v == -1 for v in verdicts)
            for attempt, row, verdict in zip(run.attempts.of(place), mine, verdicts, strict=True):
                assert attempt.verdict == verdict
                assert attempt.measures == ({"seconds": float(row[6])} if row[6] else {})
                if verdict == 1:
                    assert attempt.why is None
                elif row[5] == "timeout":
                    assert attempt.why == "timeout"
                elif verdict == -1:
                    assert attempt.why == "not_recorded"
                else:
                    wanted = {"wrong_answer": "wrong_answer", "ValueError": "exception"}
                    assert attempt.why == wanted.get(row[5], "unknown_failure")


@given(rows)
def test_reasons_and_measures_add_up_over_a_run(table: list[Row]) -> None:
    for run in _gathered(table, []):
        assert run.attempts is not None
        for verdict in (Verdict.FAILED, Verdict.MISSING):
            counted = run.attempts.reasons(verdict)
            assert sum(counted.values()) == int((run.attempts.verdicts == verdict).sum())
            by_hand: dict[str, int] = {}
            for attempt in run.attempts:
                if attempt.verdict is verdict:
                    by_hand[str(attempt.why)] = by_hand.get(str(attempt.why), 0) + 1
            assert counted == by_hand
            assert list(counted.values()) == sorted(counted.values(), reverse=True)


@given(rows, st.integers(0, 2**31))
def test_columns_as_codes_are_read_as_their_cells(table: list[Row], seed: int) -> None:
    """A reader may hand over each different cell once, with a number per row."""
    cells = _chunk(table)
    shuffled = np.random.default_rng(seed)
    coded: dict[str, CellCodes] = {}
    for name, column in cells.items():
        values = list(dict.fromkeys(column))
        shuffled.shuffle(values)
        coded[name] = CellCodes(values, np.array([values.index(cell) for cell in column]))
    gatherer = AttemptGatherer(ColumnMap.resolve(NAMES))
    gatherer.add(coded)
    for one, other in zip(gatherer.runs(), _gathered(table, []), strict=True):
        assert Outcomes.from_columns(one.columns).to_dict() == (
            Outcomes.from_columns(other.columns).to_dict()
        )
        assert one.attempts is not None
        assert other.attempts is not None
        assert [attempt.to_dict() for attempt in one.attempts] == [
            attempt.to_dict() for attempt in other.attempts
        ]


@given(rows, st.data())
def test_a_trial_that_is_listed_twice_is_refused_with_both_rows(
    table: list[Row], data: st.DataObject
) -> None:
    # An attempt without a verdict that is listed again gives way to the later row.
    scored = [place for place, row in enumerate(table) if MEANING[row[4]] != -1]
    assume(scored)
    first = data.draw(st.sampled_from(scored))
    again = data.draw(st.integers(first + 1, len(table)))
    doubled = [*table[:again], table[first], *table[again:]]
    gatherer = AttemptGatherer(ColumnMap.resolve(NAMES))
    gatherer.add(_chunk(doubled))
    with pytest.raises(RowError, match=f"of task '{table[first][2]}' is listed twice") as caught:
        gatherer.runs()
    assert (caught.value.other, caught.value.row) == (first, again)


counts = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)),
    min_size=1,
    max_size=6,
    unique_by=lambda row: row[0],
    # Mostly possible counts, some with no scored attempt at all; one more pass than n is rare.
).map(lambda rows: [(t, n, min(c, n) if c < 5 else n + (m == 3), m) for t, n, c, m in rows])


@given(counts)
def test_counts_are_what_they_say_or_the_first_bad_row_is_named(
    table: list[tuple[str, int, int, int]],
) -> None:
    gatherer = CountGatherer(ColumnMap.resolve(["task", "n", "c", "missing"]))
    columns = [[str(row[place]) for row in table] for place in range(4)]
    gatherer.add(dict(zip(("task", "n", "c", "missing"), columns, strict=True)))
    more = [place for place, (_, n, c, _) in enumerate(table) if c > n]
    none = [place for place, (_, n, _, m) in enumerate(table) if n + m == 0]
    if more or none:
        with pytest.raises(RowError, match="more passes" if more else "at least one") as caught:
            gatherer.runs()
        assert caught.value.row == (more or none)[0]
        return
    (run,) = gatherer.runs()
    outcomes = Outcomes.from_columns(run.columns)
    assert outcomes.n.tolist() == [n for _, n, _, _ in table]
    assert outcomes.c.tolist() == [c for _, _, c, _ in table]
    assert outcomes.missing.tolist() == [m for _, _, _, m in table]
    for completion, fill in (
        (Completion.DROPPED, (0, 0)),
        (Completion.AS_FAILED, (1, 0)),
        (Completion.AS_PASSED, (1, 1)),
    ):
        pairs = [(n + fill[0] * m, c + fill[1] * m) for _, n, c, m in table]
        cells = outcomes.histogram(completion)
        listed = zip(cells.n.tolist(), cells.c.tolist(), cells.tasks.tolist(), strict=True)
        assert sorted(pairs) == [(n, c) for n, c, tasks in listed for _ in range(tasks)]
        places = cells.places(*outcomes.counts(completion))
        found = zip(cells.n[places].tolist(), cells.c[places].tolist(), strict=True)
        assert list(found) == pairs


def test_a_task_counted_twice_names_both_rows_and_what_may_tell_them_apart() -> None:
    gatherer = CountGatherer(ColumnMap.resolve(["model", "task", "n", "c"]))
    gatherer.add({"model": ["x", "y", "x", "x"], "task": list("aaba"), "n": [4] * 4, "c": [1] * 4})
    with pytest.raises(RowError, match="task 'a' was counted before") as caught:
        gatherer.runs()
    assert (caught.value.row, caught.value.other) == (3, 0)
    assert "columns={'suite': 'COLUMN'}" in str(caught.value.hint)


@pytest.mark.parametrize("gives", [0, 1, 2])
def test_gaps_count_from_the_first_trial_if_that_is_zero_or_one(gives: int) -> None:
    """Trials 0, 2 or 1, 3 miss one in between; trials from 2 on number something else."""
    gatherer = AttemptGatherer(ColumnMap.resolve(["task", "trial", "success"]))
    gatherer.add({"task": ["a"] * 2, "trial": [gives, gives + 2], "success": [1, 0]})
    (run,) = gatherer.runs()
    order = Outcomes.from_columns(run.columns).order
    assert order is not None
    if gives < 2:
        assert order.numbers is not None
        assert order.numbers.tolist() == [0, 2]
        assert order.filled(3).verdicts.tolist() == [1, -1, 0]
    else:
        assert order.numbers is None
        assert order.filled(3).verdicts.tolist() == [1, 0, -1]


def test_a_first_trial_that_is_known_shows_that_the_first_ones_are_absent() -> None:
    gatherer = AttemptGatherer(ColumnMap.resolve(["task", "trial", "success"]), first_trial=0)
    gatherer.add({"task": ["a"] * 2, "trial": [1, 2], "success": [1, 0]})
    (run,) = gatherer.runs()
    assert run.columns.order is not None
    assert run.columns.order.filled(3).verdicts.tolist() == [-1, 1, 0]


def test_a_number_before_the_first_trial_counts_nothing() -> None:
    """Trials said to start at 1, and one is 0: then the numbers are not places in a plan."""
    gatherer = AttemptGatherer(ColumnMap.resolve(["task", "trial", "success"]), first_trial=1)
    gatherer.add({"task": ["a"] * 2, "trial": [0, 3], "success": [1, 0]})
    (run,) = gatherer.runs()
    assert run.columns.order is not None
    assert run.columns.order.numbers is None
    assert run.columns.order.filled(3).verdicts.tolist() == [1, 0, -1]


def test_a_number_at_the_end_of_the_plan_is_beyond_it() -> None:
    """Attempts 0 and 2 of a plan of two: number 2 must not land in the next task."""
    records = [
        {"task": "a", "trial": 0, "success": 1},
        {"task": "a", "trial": 2, "success": 0},
        {"task": "b", "trial": 0, "success": 1},
        {"task": "b", "trial": 1, "success": 1},
    ]
    order = Outcomes.from_records(records).order
    assert order is not None
    filled = order.filled(2)
    assert [[int(v) for v in filled.of(task)] for task in (0, 1)] == [[1, 0], [1, 1]]
    longer = order.filled(np.array([2, 3]))
    assert [[int(v) for v in longer.of(task)] for task in (0, 1)] == [[1, 0], [1, 1, -1]]


tries = st.lists(
    st.lists(st.sampled_from([1, 0, -1]), min_size=1, max_size=5), min_size=1, max_size=5
)


@given(tries, st.data())
def test_attempts_that_are_not_there_are_missing_where_their_number_says(
    table: list[list[int]], data: st.DataObject
) -> None:
    """Some attempts are taken out of full sequences; filled up again, they are missing there."""
    kept: list[list[int]] = []
    for row in table:
        chosen = data.draw(
            st.lists(st.integers(0, len(row) - 1), min_size=1, max_size=len(row), unique=True)
        )
        kept.append(sorted(chosen))
    # One attempt has the first number, so that numbers are known to start there.
    kept[0] = sorted({0, *kept[0]})
    records = [
        {"task": f"t{task}", "trial": place, "success": None if row[place] == -1 else row[place]}
        for task, (row, places) in enumerate(zip(table, kept, strict=True))
        for place in places
    ]
    outcomes = Outcomes.from_records(records)
    assert outcomes.order is not None
    planned = np.array([len(row) for row in table])
    filled = outcomes.order.filled(planned)
    for task, (row, places) in enumerate(zip(table, kept, strict=True)):
        wanted = [v if place in places else -1 for place, v in enumerate(row)]
        assert [int(v) for v in filled.of(task)] == wanted
    gaps = sum(places != list(range(len(places))) for places in kept)
    assert outcomes.order.gaps_before() == gaps
    first_two = sum(places[:2] != list(range(len(places[:2]))) for places in kept)
    assert outcomes.order.gaps_before(2) == first_two


@pytest.mark.parametrize(
    ("success", "passed"),
    [
        (np.bool_(True), 1),
        (np.int64(0), 0),
        (np.float32(1.0), 1),
        (np.float64("nan"), -1),
        (np.str_("pass"), 1),
    ],
)
def test_numbers_and_words_of_numpy_are_those_of_python(success: object, passed: int) -> None:
    outcomes = Outcomes.from_records(
        [{"task": "a", "trial": np.int64(1), "success": success, "cost": np.float32(0.5)}]
    )
    assert outcomes.order is not None
    assert outcomes.order.verdicts.tolist() == [passed]


@pytest.mark.parametrize("cell", [math.inf, -math.inf, np.float64("inf"), "inf", "-Infinity"])
def test_an_infinite_reward_is_refused_with_its_row(cell: object) -> None:
    gatherer = AttemptGatherer(ColumnMap.resolve(["task", "success"]))
    with pytest.raises(RowError, match="should hold true or false") as caught:
        gatherer.add({"task": ["a", "b"], "success": [1, cell]})
    assert caught.value.row == 1


@given(
    st.lists(
        st.sampled_from([0.0, 1.0, -1.0, math.nan, 0.5, 0.999999, 0.9999999, 1.0000001, -3.0]),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from([None, 0.5, 1.0, -2.0]),
)
def test_rewards_against_the_rule_in_words(rewards: list[float], pass_at: float | None) -> None:
    """Only 0, 1, -1 and nothing: -1 is missing. Anything else: passed from the threshold on."""
    from passhat.stats.outcomes.rewards import verdicts_from_rewards

    made = verdicts_from_rewards(np.array(rewards), pass_at)
    graded = [r for r in rewards if not math.isnan(r) and r not in (0.0, 1.0, -1.0)]
    threshold = 1.0 if pass_at is None else pass_at
    for reward, verdict in zip(rewards, made.verdicts.tolist(), strict=True):
        if math.isnan(reward) or (reward == -1 and not graded):
            assert verdict == -1
        else:
            assert verdict == int(reward >= threshold - 1e-6)
    if graded:
        plural = "reward" if len(graded) == 1 else "rewards"
        assert made.notes == (
            f"{len(graded)} {plural} between or beyond 0 and 1; passed means reward >= "
            f"{threshold:g}",
        )
    elif -1.0 in rewards:
        assert made.notes[0].startswith("-1 was read as missing")
    else:
        assert made.notes == ()
