"""What a runner adds up of its own attempts is what the store says of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import InvalidValue
from passhat.protocol import Protocol
from passhat.runner.budget import Sum, Used
from passhat.runner.spending import Spending, _load_usage, _plus_attempt
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, RunRecord, open_store
from passhat.suites.base import Judgement, Task

AMOUNTS = st.lists(
    st.tuples(st.sampled_from([None, 0.0, 3.0, 8.0]), st.sampled_from([None, 0.0, 0.25, 2.0])),
    max_size=9,
)


@settings(max_examples=6)
@given(amounts=AMOUNTS, priced=st.booleans())
def test_usage_is_counted_as_the_store_counts(
    tmp_path_factory: pytest.TempPathFactory,
    amounts: list[tuple[float | None, float | None]],
    priced: bool,
) -> None:
    records = [
        AttemptRecord("t", number, Judgement(Verdict.PASSED), tokens=tokens, cost=cost)
        for number, (tokens, cost) in enumerate(amounts, 1)
    ]
    used = Used()
    for record in records:
        used = _plus_attempt(used, record.tokens, record.cost, priced)
    run = RunRecord("agent", Protocol(suite="s"), [Task("t", "?")])
    place: Path = tmp_path_factory.mktemp("usage") / "store.db"
    with open_store(str(place)) as store:
        store.begin(run, 9)
        store.claim(run.id, [("t", record.number) for record in records])
        store.finish(run.id, records)
        assert _load_usage(store, run.id, priced=priced) == used
    known = [(t, c) for t, c in amounts if t is not None and not (priced and c is None)]
    assert used.unknown == len(amounts) - len(known)
    assert used.total == Sum(sum(t for t, _ in known), sum(c or 0.0 for _, c in known))


def test_what_others_used_is_the_rest_and_never_negative() -> None:
    total = Used(Sum(10.0, 2.0), Sum(6.0, 1.5), 3, 1)
    own = Used(Sum(4.0, 0.5), Sum(4.0, 0.5), 1, 0)
    assert total.without(own) == Used(Sum(6.0, 1.5), Sum(6.0, 1.5), 2, 1)
    assert own.without(total) == Used(Sum(0.0, 0.0), Sum(4.0, 0.5), 0, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost": 0.0}, "--budget must be more than 0, not 0"),
        ({"cost": float("nan")}, "--budget must be more than 0, not nan"),
        ({"tokens": -5}, "max_tokens must be more than 0, not -5"),
        ({"retries": -1}, "retries must be at least 0"),
    ],
)
def test_a_cap_that_allows_nothing_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Spending(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "is_capped"),
    [({}, False), ({"cost": 0.01}, True), ({"tokens": 1}, True), ({"retries": 0}, False)],
)
def test_either_cap_is_one(options: dict[str, float], is_capped: bool) -> None:
    assert Spending(**options).is_capped is is_capped  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tokens", "cost", "priced", "expected"),
    [
        (None, 1.0, False, Used(Sum(4.0, 0.5), Sum(3.0, 0.5), 2, 2)),
        (2.0, None, True, Used(Sum(4.0, 0.5), Sum(3.0, 0.5), 2, 2)),
        (2.0, None, False, Used(Sum(6.0, 0.5), Sum(3.0, 0.5), 3, 1)),
        (5.0, 0.25, True, Used(Sum(9.0, 0.75), Sum(5.0, 0.5), 3, 1)),
        (0.0, 0.0, True, Used(Sum(4.0, 0.5), Sum(3.0, 0.5), 2, 1)),
        (0.0, 0.25, True, Used(Sum(4.0, 0.75), Sum(3.0, 0.5), 3, 1)),
        (1.0, 0.0, True, Used(Sum(5.0, 0.5), Sum(3.0, 0.5), 3, 1)),
        (0.0, None, False, Used(Sum(4.0, 0.5), Sum(3.0, 0.5), 2, 1)),
    ],
)
def test_another_attempt_is_added(
    tokens: float | None, cost: float | None, priced: bool, expected: Used
) -> None:
    used = Used(Sum(4.0, 0.5), Sum(3.0, 0.5), 2, 1)
    assert _plus_attempt(used, tokens, cost, priced) == expected
