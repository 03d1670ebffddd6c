"""Fits of runs at several temperatures."""

from __future__ import annotations

import gzip
import runpy
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import Outcomes, Protocol, Run, read
from passhat.errors import InvalidValue, NotComparable
from passhat.examples import smollm2, transformer
from passhat.stats.temperature import (
    KnownRates,
    TemperatureFit,
    best_temperatures,
    family,
    fit_temperatures,
)
from passhat.stats.temperature.optimum import log_chances
from passhat.stats.temperature.temperature_result import Exponent


def run(
    temperature: float | None, passes: Sequence[int], n: int = 4, agent: str = "a", **more: str
) -> Run:
    decoding = {} if temperature is None else {"temperature": temperature}
    tasks = [f"t{i}" for i in range(len(passes))]
    protocol = Protocol(decoding=decoding, **more)  # type: ignore[arg-type]
    return Run(f"{agent} {temperature}", agent, Outcomes.from_counts(n, passes, tasks), protocol)


def test_two_temperatures_are_compared() -> None:
    found = fit_temperatures([run(0.8, [3, 1] * 40), run(0.2, [4, 0] * 40)], [1, 4])
    (agent,) = found.agents
    assert agent.temperatures == (0.2, 0.8)
    assert str(agent.advice) == "raise T from 0.2 to 0.8 for k >= 4: +50.0 points, 35.8 to 62.2."
    cell = agent.find(4, 0.8)
    assert cell is not None
    assert (cell.estimate.value, cell.share_best) == (1.0, 1.0)
    assert agent.exponent is None
    assert agent.best[0].between is None
    note = "two temperatures are compared; three or more would give a curve of T*"
    assert note in agent.notes
    three = [run(t, [2, 1] * 20) for t in (0.2, 0.5, 0.8)]
    assert note not in fit_temperatures(three, [1]).agents[0].notes


def test_colder_can_be_the_advice_too() -> None:
    turned = fit_temperatures([run(0.2, [2, 1] * 40), run(1.5, [4, 0] * 40)], [1, 4])
    assert str(turned.agents[0].advice).startswith(
        "lower T from 1.5 to 0.2 for k >= 4: +50.0 points"
    )
    worse = fit_temperatures([run(0.2, [2] * 50), run(1.5, [0] * 50)], [1, 4])
    assert str(worse.agents[0].advice) == (
        "keep T = 0.2: none of the others does better at any k looked at."
    )
    unclear = fit_temperatures([run(0.2, [2, 2, 2]), run(0.8, [2, 2, 1])], [1, 2])
    assert str(unclear.agents[0].advice).startswith("keep T = 0.2")


def test_one_temperature_says_so() -> None:
    (agent,) = fit_temperatures([run(0.2, [1, 2])]).agents
    assert "only temperature tried" in str(agent.advice)
    assert agent.ks == (1, 2, 4)


def test_greedy_decoding_can_be_the_best() -> None:
    passes = {0.0: [4, 3], 0.2: [3, 3], 0.4: [3, 2], 0.8: [2, 1]}
    (agent,) = fit_temperatures([run(t, c * 30) for t, c in passes.items()], [1, 2]).agents
    assert agent.temperatures == (0.0, 0.2, 0.4, 0.8)
    at_one = agent.best[0]
    assert (at_one.tried, at_one.edge) == (0.0, False)
    assert at_one.between is not None
    assert at_one.low == 0.0
    assert at_one.between < 0.2
    assert agent.exponent is None


def test_the_best_may_lie_next_to_greedy_decoding() -> None:
    passes = {0.0: [4, 0, 0], 0.3: [4, 2, 1], 0.6: [3, 2, 1], 0.9: [1, 1, 0]}
    (agent,) = fit_temperatures([run(t, c * 30) for t, c in passes.items()], [1, 2]).agents
    for best in agent.best:
        assert best.tried == 0.3
        assert best.between == pytest.approx(0.3, abs=0.15)
        assert best.low is not None
        assert best.high is not None
        assert 0 < best.low <= 0.3 <= best.high < 0.9


def test_the_advice_names_the_best_temperature_of_every_k() -> None:
    (agent,) = fit_temperatures(smollm2().draw(64, np.random.default_rng(1)), [1, 8, 64]).agents
    for temperature, ks in agent.advice.steps:
        for k in ks:
            values = {t: agent.find(k, t) for t in agent.temperatures}
            best = max(c.estimate.value for c in values.values() if c is not None)
            recommended = values[temperature]
            assert recommended is not None
            assert recommended.estimate.value == best
    assert str(agent.advice).startswith("raise T with k: 0.1 at k = 1, ")


def test_a_flat_curve_says_that_any_temperature_may_be_the_best() -> None:
    same = [run(t, [2, 1, 3] * 5) for t in (0.2, 0.4, 0.8, 1.0)]
    (agent,) = fit_temperatures(same, [1, 2]).agents
    for best in agent.best:
        assert (best.low, best.high) == (0.2, 1.0)
        assert best.edge
    assert agent.find(1, 0.4).share_best == pytest.approx(0.25)  # type: ignore[union-attr]
    assert "none of the others does better" in str(agent.advice)


def test_what_cannot_be_lined_up() -> None:
    with pytest.raises(InvalidValue, match="no run records its temperature"):
        fit_temperatures([run(None, [1])])
    with pytest.raises(InvalidValue, match=r"more than one run at temperature 0\.2"):
        fit_temperatures([run(0.2, [1]), run(0.2, [2])])
    with pytest.raises(NotComparable, match="more than temperature: suite"):
        fit_temperatures([run(0.2, [1], suite="x"), run(0.8, [2], suite="y")])
    with pytest.raises(InvalidValue, match="enough attempts"):
        fit_temperatures([run(0.2, [1]), run(0.8, [2])], [9])
    with pytest.raises(InvalidValue, match="at least one run"):
        fit_temperatures([])
    with pytest.raises(InvalidValue, match="k must be at least 1"):
        fit_temperatures([run(0.2, [1])], [0])
    with pytest.raises(InvalidValue, match="level must lie between 0 and 1"):
        fit_temperatures([run(t, [1, 2]) for t in (0.2, 0.4, 0.8)], level=2)


def test_short_and_missing_attempts_are_said() -> None:
    ragged = Outcomes.from_counts([4, 2], [1, 1], ["t0", "t1"], missing=[0, 1])
    runs = [
        Run("cold", "a", ragged, Protocol(decoding={"temperature": 0.2})),
        run(0.8, [1, 1]),
        run(None, [1], agent="b"),
    ]
    (agent,) = fit_temperatures(runs, [1, 4], missing="exclude").agents
    assert agent.ks == (1,)
    notes = " ".join(agent.notes)
    assert "pass@4 not answered" in notes
    assert "1 attempt without a verdict" in notes
    assert "no temperature is recorded: b" in notes
    (dropped,) = fit_temperatures(runs, [1, 4], missing="exclude", drop_short=True).agents
    assert (dropped.tasks, dropped.ks) == (1, (1, 4))


def test_rankings_flip_over_k_and_temperature() -> None:
    steady = [run(t, passes, 8, "steady") for t, passes in ((0.2, [8, 0] * 60), (0.8, [7, 1] * 60))]
    wide = [run(t, passes, 8, "wide") for t, passes in ((0.2, [4, 2] * 60), (0.8, [3, 4] * 60))]
    (flip,) = fit_temperatures([*steady, *wide], [1, 4]).flips
    assert {lead.leader for lead in flip.leads} == {"steady", "wide"}
    assert flip.surest("wide").k == 4
    assert flip.shown > 0.99
    assert "the ranking depends on k and T" in str(flip)


# -- where the truth is known ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def stages() -> dict[str, KnownRates]:
    return transformer()


def test_the_transformer_is_what_the_full_table_says(shared_data: Path) -> None:
    root = Path(__file__).parents[3]
    script = root / "tools" / "make_transformer_example.py"
    compact = runpy.run_path(str(script))["compact"]
    table = shared_data / "transformer_multiplication_p.csv.gz"
    shipped = root / "src/passhat/examples/transformer_multiplication.rates.csv.gz"
    # The content, not the bytes: a gzip header differs between versions of Python.
    assert gzip.decompress(compact(table)) == gzip.decompress(shipped.read_bytes())
    assert shipped.stat().st_size < 300_000


def test_the_transformer_levels_off(stages: dict[str, KnownRates]) -> None:
    expected = {
        "early": (0.05, 0.29, 0.56, 0.80, 1.02, 1.14),
        "middle": (0.05, 0.37, 0.90, 1.02, 1.20, 1.55),
        "late": (0.05, 0.45, 1.03, 1.26),
    }
    for stage, temperatures in expected.items():
        for k, best in zip((1, 2, 16, 256, 4096, 65536), temperatures, strict=False):
            assert stages[stage].best_temperature(k) == pytest.approx(best, abs=0.011), (stage, k)
    cold = [float(rates.pass_at_k(1)[0]) for rates in stages.values()]
    assert cold == pytest.approx([0.037, 0.251, 0.744, 0.940], abs=6e-4)


def test_a_fit_comes_close_to_the_truth(stages: dict[str, KnownRates]) -> None:
    rates = stages["middle"].at(0.1, 0.2, 0.4, 0.57, 0.8, 1.13, 1.6)
    (agent,) = fit_temperatures(rates.draw(32, np.random.default_rng(5))).agents
    for best in agent.best[1:]:
        truth = stages["middle"].best_temperature(best.k)
        assert best.between == pytest.approx(truth, rel=0.45)
        assert best.low is not None
        assert best.high is not None
        assert best.low <= truth <= best.high
    # The gain of T = 0.4 at k = 2 is under a point: its interval reaches below 0, so T stays.
    assert agent.advice.steps == ((0.1, (1, 2)), (0.8, (4, 8, 16, 32)))
    assert str(agent.advice).startswith("raise T from 0.1 to 0.8 for k >= 4: ")
    truth_at_8 = rates.pass_at_k(8)
    for index, heat in enumerate(rates.temperatures):
        cell = agent.find(8, heat)
        assert cell is not None
        assert cell.estimate.low is not None
        assert cell.estimate.high is not None
        assert cell.estimate.low < truth_at_8[index] < cell.estimate.high


def test_a_real_language_model() -> None:
    """The temperatures that are best by 18.6 million samples lie in the intervals of T*."""
    (agent,) = fit_temperatures(read("example:smollm2"), [1, 2, 8, 64, 512]).agents
    for best, held in zip(agent.best, ((0.1,), (0.3,), (0.5, 0.6), (0.8,), (0.9,)), strict=True):
        assert best.low is not None
        assert best.high is not None
        assert any(best.low <= t <= best.high for t in held)
        assert best.high - best.low < 0.2
    assert agent.best[0].edge
    assert not agent.best[-1].edge


@settings(max_examples=max_examples(25))
@given(
    st.lists(st.floats(0, 1), min_size=3, max_size=7),
    st.integers(4, 30),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_the_interval_holds_the_best_tried_whatever_the_curve(
    rates: list[float], tasks: int, greedy: bool, seed: int
) -> None:
    """Lopsided, flat, with a peak at an end: a temperature best in half the redraws is held."""
    rng = np.random.default_rng(seed)
    temperatures = (
        [i / 5 for i in range(len(rates))] if greedy else np.geomspace(0.1, 2, len(rates))
    )
    difficulty = rng.uniform(0.3, 1.7, tasks)
    runs = [
        run(float(t), rng.binomial(8, np.clip(rate * difficulty, 0, 1)).tolist(), 8)
        for t, rate in zip(temperatures, rates, strict=True)
    ]
    (agent,) = fit_temperatures(runs, [1, 4, 8]).agents
    for best in agent.best:
        assert best.low is not None
        assert best.between is not None
        assert best.high is not None
        assert best.low <= best.between <= best.high
        for t in agent.temperatures:
            cell = agent.find(best.k, t)
            assert cell is not None
            if cell.share_best > 0.5:
                assert best.low <= t <= best.high


def toy_runs(name: str, tasks: int, temperatures: npt.NDArray[np.float64]) -> list[Run]:
    rng = np.random.default_rng([tasks, len(name)])
    population = family(name, 4)
    drawn = rng.choice(population.difficulty, size=tasks, p=population.weight)
    return [
        run(float(t), rng.binomial(64, np.exp(log_chances(drawn, np.array([t]))[0])).tolist(), 64)
        for t in temperatures
    ]


def test_telling_two_families_apart_takes_a_thousand_tasks() -> None:
    temperatures, ks = np.geomspace(1, 64, 14), [4, 8, 16, 32]
    names = ("gaussian", "exponential")
    truth = [
        float(np.polyfit(np.log(ks), np.log([best.temperature for best in found]), 1)[0])
        for found in (best_temperatures(family(name, 4), ks) for name in names)
    ]

    def exponent(tasks: int, of: int) -> Exponent:
        (agent,) = fit_temperatures(toy_runs(names[of], tasks, temperatures), ks).agents
        assert agent.exponent is not None
        return agent.exponent

    assert truth == pytest.approx([0.761, 1.087], abs=0.001)
    for family_, other in ((0, 1), (1, 0)):
        many, few = exponent(1000, family_), exponent(100, family_)
        assert many.low < truth[family_] < many.high
        assert not many.low < truth[other] < many.high
        assert few.low < truth[other] < few.high


# -- real runs -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cruxeval(shared_data: Path) -> TemperatureFit:
    return fit_temperatures(read(shared_data / "cruxeval_output_small.csv"), [1, 5])


def test_cruxeval_by_temperature(cruxeval: TemperatureFit) -> None:
    assert len(cruxeval.agents) == 7
    assert sum(len(agent.temperatures) == 2 for agent in cruxeval.agents) == 6
    codellama = cruxeval.find("codellama-34b")
    assert codellama is not None
    cell = codellama.find(1, 0.2)
    assert cell is not None
    assert cell.estimate.value == pytest.approx(841 / 2000)
    lone = cruxeval.find("gpt-4o+cot")
    assert lone is not None
    assert (lone.ks, lone.temperatures) == ((1,), (0.2,))
    assert any("pass@5 not answered" in note for note in lone.notes)


def test_cruxeval_where_the_better_temperature_changes(cruxeval: TemperatureFit) -> None:
    changes = {
        agent.agent: round(change.share, 1) for agent in cruxeval.agents for change in agent.changes
    }
    assert changes == {
        "codellama-34b": 1.0,
        "codellama-7b": 1.0,
        "deepseek-base-6.7b": 1.0,
        "gpt-3.5-turbo-0613": 0.6,
        "gpt-4-0613": 0.9,
    }
    raised = [agent.agent for agent in cruxeval.agents if str(agent.advice).startswith("raise")]
    assert raised == ["codellama-34b", "codellama-7b", "gpt-3.5-turbo-0613"]
    assert any("do not carry over" in note for note in cruxeval.notes)


def test_the_same_seed_gives_the_same_answer(cruxeval: TemperatureFit, shared_data: Path) -> None:
    again = fit_temperatures(read(shared_data / "cruxeval_output_small.csv"), [1, 5])
    assert again.to_dict() == cruxeval.to_dict()
