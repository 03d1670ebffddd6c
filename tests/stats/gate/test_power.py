"""The power of a gate by simulation: it grows with the drop, and a tiny drop is rarely called."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from passhat import Outcomes, gate
from passhat.stats.compare.pairing import pair
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.gate import GateOptions, judge, power, simulate_power
from passhat.stats.gate.confirm import Confirmation
from passhat.stats.gate.gate_result import GateVerdict
from passhat.stats.gate.power import GatePower, _lower_rates, simulate_curve
from passhat.stats.terms import Terms

RNG = np.random.default_rng(3)
BASE = Outcomes.from_counts(8, RNG.binomial(8, RNG.beta(2.2, 0.7, 30)))
EIGHT = np.full(30, 8)


def _caught(drop: float, attempts: int = 8) -> int:
    power = simulate_power(BASE, np.full(30, attempts), PassHat(1), drop, runs=12)
    assert power is not None
    assert power.runs == 12
    return power.caught


def test_power_grows_with_the_drop_and_with_attempts() -> None:
    tiny, large = _caught(0.002), _caught(0.25)
    assert tiny <= 2
    assert large >= 11
    assert tiny <= _caught(0.1) <= large
    assert _caught(0.1, 2) <= _caught(0.1, 32)


def test_the_same_seed_gives_the_same_power() -> None:
    powers = [simulate_power(BASE, EIGHT, PassHat(1), runs=4, seed=7) for _ in range(2)]
    assert powers[0] == powers[1]


@pytest.mark.parametrize("k", [1, 4])
def test_lowered_rates_have_the_drop(k: int) -> None:
    rates = np.array([0.2, 0.9, 1.0, 0.7])
    metric = PassHat(k)
    lowered = _lower_rates(rates, metric, 0.1)
    assert lowered is not None
    drop = metric.value_at_rate(rates).mean() - metric.value_at_rate(lowered).mean()
    assert drop == pytest.approx(0.1, abs=1e-6)
    assert _lower_rates(np.array([0.01]), metric, 0.5) is None


def test_where_nothing_can_be_said() -> None:
    once = Outcomes.from_counts(1, [1, 0, 1])
    assert simulate_power(once, np.full(3, 1), PassHat(1)) is None
    assert simulate_power(BASE, np.full(30, 2), PassHat(4)) is None
    assert simulate_power(BASE, np.full(30, 4), PassHat(4), runs=2) is not None
    never = Outcomes.from_counts(8, [0] * 5)
    assert simulate_power(never, np.full(5, 8), PassHat(1), 0.9) is None


def test_in_words() -> None:
    assert str(GatePower(0.1, 16, 20)) == (
        "this gate would have caught a drop of 10 points in 16 of 20 simulated runs"
    )


def test_a_gate_says_how_often_it_would_have_caught_a_drop() -> None:
    result = judge(BASE, (), BASE, GateOptions(details=True))
    assert result.power is not None
    assert next(power.drop for power in result.power.powers) == 0.1
    assert result.power.sentence in str(result)
    data = result.to_dict()["power"]
    assert data["powers"][0]["runs"] == 20
    assert data["detectable"] == result.power.detectable
    assert judge(BASE, (), BASE, GateOptions()).power is None


def test_a_weak_gate_names_the_drop_that_it_catches_and_a_strong_one_looks_below() -> None:
    weak = simulate_curve(Outcomes.from_counts(4, [3] * 8), np.full(8, 4), PassHat(1))
    assert not weak.powers[0].is_likely
    assert weak.powers[-1].drop > 0.1
    assert f"one of {weak.powers[-1].size} points in" in weak.sentence
    strong = simulate_curve(Outcomes.from_counts(40, [36] * 60), np.full(60, 40), PassHat(1))
    assert [power.drop for power in strong.powers] == [0.1, 0.05]
    assert strong.detectable == 0.05


@pytest.mark.parametrize(
    ("base", "metric", "reason"),
    [
        (Outcomes.from_counts(1, [1, 0, 1]), PassHat(1), "one attempt per task"),
        (Outcomes.from_counts(8, [0] * 5), PassHat(1), "below 10 points"),
        (Outcomes.from_counts(3_000, [9] * 5), PassHat(1), "up to 3,000 attempts"),
        (BASE, "first^2", "order of attempts"),
    ],
)
def test_a_power_that_is_not_simulated_has_a_reason(
    base: Outcomes, metric: object, reason: str
) -> None:
    curve = simulate_curve(base, base.n, metric)
    assert curve.detectable is None
    assert reason in curve.sentence


def test_rules_from_above_and_on_each_task_have_a_power() -> None:
    run = Outcomes.from_counts(40, [36, 30, 38, 24, 34] * 6)
    (above,) = gate(run, "pass^1 <= 0.6").rule_powers
    assert above.sentence.startswith("With a value 10 points above its limit, pass^1 <= 0.6")
    near, far = gate(run, "each pass^1 >= 0.7").rule_powers
    assert "With a task 10 points below its limit, each pass^1 >= 0.7" in near.sentence
    # Exact: at most 18 of 40 passes refute 0.7 at .05 / 30.
    assert near.caught / near.runs == pytest.approx(binom(40, 0.6).cdf(18), abs=0.001)
    assert far.caught / far.runs == pytest.approx(binom(40, 0.3).cdf(18), abs=0.001)


def test_missing_attempts_never_add_power() -> None:
    """Half of a run without a verdict: a simulated gate has the bounds of the gate."""
    whole, half = np.full(30, 8), np.where(np.arange(30) < 15, 8, 1)
    caught = []
    for judged in (whole, half):
        base = Outcomes.from_counts(judged, judged * 3 // 4, missing=8 - judged)
        power = simulate_power(base, EIGHT, PassHat(1), 0.2, runs=10)
        assert power is not None
        caught.append(power.caught)
    new = simulate_power(BASE, EIGHT, PassHat(1), 0.2, missing=8 - half, runs=10)
    assert new is not None
    assert caught[0] >= 8
    assert max(caught[1], new.caught) <= 2


@pytest.mark.parametrize("rows", [[[1] * 4] * 3, [[1]], [[1, 1, 0, 1]] * 3])
def test_what_no_run_of_this_size_can_refute_is_not_said_to_be(rows: list[list[int]]) -> None:
    worst = gate([[0] * len(row) for row in rows], "pass^1 >= 0.5")
    assert worst.results[0].verdict is GateVerdict.NOT_SETTLED
    powers = gate(rows, "pass^1 >= 0.5").rule_powers
    assert all(power.caught == 0 for power in powers)


@pytest.mark.parametrize(("tasks", "least", "most"), [(8, 0, 1), (20, 0, 5), (40, 6, 10)])
def test_the_power_of_a_rule_is_how_often_the_gate_itself_refutes(
    tasks: int, least: int, most: int
) -> None:
    run = Outcomes.from_counts(8, [6] * tasks)
    (power,) = gate(run, "pass^1 >= 0.3").rule_powers
    rng = np.random.default_rng(5)
    redrawn = [Outcomes.from_counts(8, rng.binomial(8, 0.2, tasks)) for _ in range(20)]
    judged = [judge(one, "pass^1 >= 0.3", None, GateOptions()) for one in redrawn]
    verdicts = [result.results[0].verdict for result in judged]
    assert least <= power.caught * 10 / power.runs <= most
    assert least <= verdicts.count(GateVerdict.REFUTED) / 2 <= most


def test_a_run_that_is_not_complete_has_a_power_as_its_bounds_count_it() -> None:
    run = Outcomes.from_counts([8] * 19 + [3], [6] * 19 + [2])
    (power,) = gate(run, "pass^4 >= 0.3", attempts=8, max_missing=0.2).rule_powers
    assert power.caught <= power.runs == 10


@pytest.mark.parametrize(
    ("confirmed", "others", "shows_drop", "is_red"),
    [
        (("a",), (), False, True),
        ((), ("b",), False, True),
        ((), (), True, True),
        ((), (), False, False),
        ((), (), None, False),
    ],
)
def test_a_simulated_gate_is_red_by_a_task_or_by_the_mean(
    confirmed: tuple[str, ...],
    others: tuple[str, ...],
    shows_drop: bool | None,
    is_red: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = SimpleNamespace(confirmed=confirmed, others=others, shows_drop=lambda *_: shows_drop)
    monkeypatch.setattr(power._SimulatedGate, "_confirm", lambda *_: found)
    monkeypatch.setattr(power._SimulatedGate, "_is_drop", lambda *_: False)
    terms = Terms(alternative="less")
    gate = power._SimulatedGate(PassHat(1), terms, Confirmation((), (), (), 0.01), None)  # type: ignore[arg-type]
    pairing = pair(Outcomes.from_counts(4, [4, 4]), Outcomes.from_counts(4, [4, 3]))
    rates = np.ones(2)
    assert gate.is_red(pairing, rates, rates) is is_red
    equal = pair(Outcomes.from_counts(4, [4, 4]), Outcomes.from_counts(4, [4, 4]))
    assert gate.is_red(equal, rates, rates) is False
