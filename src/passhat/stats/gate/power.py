"""The power of the gate without a rule, by simulation.

Rates are drawn from those that fit the baseline, a drop is put into them, and the same decision is
made on both simulated runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from passhat._serialize import Plain
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.compare.claims import points
from passhat.stats.compare.comparison import MEAN_SHARE
from passhat.stats.compare.pairing import Pairing, pair
from passhat.stats.compare.prospects import FittedRates, Reach, draw_estimates
from passhat.stats.compare.significance import pair_drop_p_value
from passhat.stats.compare.task_changes import find_changed_tasks
from passhat.stats.compare.these_tasks import bound_lift
from passhat.stats.estimate.metrics import CountMetric, Metric
from passhat.stats.gate.confirm import (
    CONFIRMED_MEAN_SHARE,
    FRESH_ATTEMPTS,
    Confirmation,
    FreshRun,
    Suspects,
    choose_suspects,
    confirm_suspects,
    count_mean_attempts,
)
from passhat.stats.outcomes import Completion, MissingPolicy, Outcomes
from passhat.stats.terms import Population, Terms

Ends = tuple[float, float]
"""The lower and the upper bound of a value."""
_LIKELY = 0.8
_MOST_TASKS, _MOST_ATTEMPTS = 20_000, 2_000
"""Larger runs take seconds to simulate, and detect drops that are smaller than any of interest."""


@dataclass(frozen=True, slots=True)
class GatePower:
    """How often a gate of this size calls a drop a regression, in simulated runs."""

    drop: float
    caught: int
    runs: int

    @property
    def size(self) -> str:
        """The drop in points."""
        return points(self.drop, signed=False).removesuffix(".0")

    @property
    def is_likely(self) -> bool:
        """Whether the drop is caught in at least 8 of 10 runs."""
        return self.caught >= _LIKELY * self.runs

    def __str__(self) -> str:
        return (
            f"this gate would have caught a drop of {self.size} points in {self.caught} of "
            f"{self.runs} simulated runs"
        )


@dataclass(frozen=True, slots=True)
class RulePower(Plain):
    """How often a rule is refuted by runs of this size whose value is beyond its limit.

    ``subject`` is what lies there: a value of all tasks, or a single task; ``side`` is below or
    above.
    """

    WRITTEN = ("rule", "drop", "caught", "runs", "sentence")

    rule: str
    drop: float
    caught: int
    runs: int
    subject: str = "a value"
    side: str = "below"

    @property
    def is_likely(self) -> bool:
        """Whether it is refuted in at least 8 of 10 runs."""
        return self.caught >= _LIKELY * self.runs

    @property
    def sentence(self) -> str:
        size = points(self.drop, signed=False).removesuffix(".0")
        return (
            f"With {self.subject} {size} points {self.side} its limit, {self.rule} would have been "
            f"refuted in {round(10 * self.caught / self.runs)} of 10 simulated runs."
        )


@dataclass(frozen=True, slots=True)
class PowerCurve(Plain):
    """The power of a gate at a few drops; without any, the reason."""

    WRITTEN = ("powers", "detectable", "reason", "sentence")

    powers: tuple[GatePower, ...] = ()
    reason: str = ""

    @property
    def detectable(self) -> float | None:
        """The smallest of the simulated drops that is caught in at least 8 of 10 runs."""
        drops = [power.drop for power in self.powers if power.is_likely]
        return min(drops, default=None)

    @property
    def sentence(self) -> str:
        """How often the gate would have caught a drop of 10 points, and the drop it does catch."""
        if not self.powers:
            return f"Power was not simulated: {self.reason}"
        first, last = self.powers[0], self.powers[-1]
        text = str(first)[0].upper() + str(first)[1:]
        if first.is_likely or last is first:
            return f"{text}."
        return f"{text}, and one of {last.size} points in {last.caught} of {last.runs}."


def simulate_curve(
    base: Outcomes,
    attempts: IntArray,
    metric: object,
    level: float = 0.95,
    confirmation: Confirmation | None = None,
    *,
    missing: IntArray | None = None,
    policy: MissingPolicy = MissingPolicy.BOUND,
) -> PowerCurve:
    """Simulate a drop of 10 points, then a smaller one or larger ones, until one is caught.

    Takes about 0.2 s: 20 simulated gates at 10 points, 10 at each other drop.
    """
    n, _ = base.counts(Completion.AS_FAILED)
    if not isinstance(metric, CountMetric):
        return PowerCurve(reason=f"{metric} depends on the order of attempts.")
    if len(n) > _MOST_TASKS or max(int(n.max()), int(attempts.max())) > _MOST_ATTEMPTS:
        return PowerCurve(reason=f"{len(n):,} tasks with up to {int(n.max()):,} attempts.")
    powers: list[GatePower] = []
    for drop, runs in ((0.1, 20), (0.05, 10), (0.2, 10), (0.4, 10)):
        if powers and (powers[0].is_likely != (drop < 0.1) or powers[-1].is_likely is (drop > 0.1)):
            continue
        power = simulate_power(
            *(base, attempts, metric, drop, level, confirmation),
            missing=missing,
            policy=policy,
            runs=runs,
        )
        if power is None:
            break
        powers.append(power)
    if not powers:
        few = "one attempt per task tells no tasks apart."
        return PowerCurve(reason=few if int(n.max()) < 2 else f"{metric} is below 10 points.")
    return PowerCurve(tuple(powers))


def simulate_power(
    base: Outcomes,
    attempts: IntArray,
    metric: CountMetric,
    drop: float = 0.1,
    level: float = 0.95,
    confirmation: Confirmation | None = None,
    *,
    missing: IntArray | None = None,
    policy: MissingPolicy = MissingPolicy.BOUND,
    runs: int = 20,
    seed: int = 0,
) -> GatePower | None:
    """Simulate the gate without a rule on the baseline's tasks, with a drop of the metric.

    The baseline's rates are drawn from the distribution that fits it. ``attempts`` are those of the
    new run at each task, ``missing`` how many of them have no verdict; as many are missing in each
    simulated run, and as many fresh attempts are made as ``confirmation`` has. ``None`` where the
    baseline cannot tell tasks apart (one attempt each), or the drop is larger than the value.
    """
    if int(base.n.max()) < 2 or int(attempts.min()) < metric.k:
        return None
    rng = np.random.default_rng(seed)
    judged = attempts if missing is None else attempts - missing
    gate = _SimulatedGate(
        metric, Terms(level=level, missing=policy, alternative="less"), confirmation, rng
    )
    caught = 0
    for rates in FittedRates.of(base).draw(rng, runs):
        lowered = _lower_rates(rates, metric, drop)
        if lowered is None:
            return None
        old, new = rng.binomial(base.n, rates), rng.binomial(judged, lowered)
        pairing = pair(
            Outcomes.from_counts(base.n, old, base.tasks, missing=base.missing),
            Outcomes.from_counts(judged, new, base.tasks, missing=missing),
        )
        caught += gate.is_red(pairing, rates, lowered)
    return GatePower(drop, caught, runs)


@dataclass(frozen=True, slots=True)
class _SimulatedGate:
    """The decision of the gate without a rule, with fresh attempts drawn where it makes some."""

    metric: CountMetric
    terms: Terms
    confirmation: Confirmation | None
    rng: np.random.Generator

    def is_red(self, pairing: Pairing, rates: FloatArray, lowered: FloatArray) -> bool:
        """Whether a pair drawn with these rates is called a regression."""
        terms, alpha = self.terms, 1 - self.terms.level
        if self.confirmation is None:
            tasks_alpha = (1 - MEAN_SHARE) * alpha
            return self._is_drop(pairing, MEAN_SHARE * alpha) or bool(
                find_changed_tasks(pairing, terms.missing, tasks_alpha, "less")
            )
        suspects = choose_suspects(pairing, terms.missing, terms.level)
        if not suspects.tasks:
            return False
        confirmation = self._confirm(suspects, rates, lowered)
        if confirmation.confirmed or confirmation.others:
            return True
        combined = confirmation.shows_drop(pairing, self.metric, terms.missing, alpha)
        share = CONFIRMED_MEAN_SHARE if combined is None else MEAN_SHARE
        return bool(combined) or self._is_drop(pairing, share * alpha)

    def _is_drop(self, pairing: Pairing, tail: float) -> bool:
        """Whether the mean dropped; the exact test is quick, and implies what the bound shows."""
        p_value = pair_drop_p_value(pairing, self.metric, self.terms.missing)
        if p_value is not None:
            return p_value <= tail
        return bound_lift(pairing, self.metric, self.terms, tail).high < 0

    def _confirm(self, suspects: Suspects, rates: FloatArray, lowered: FloatArray) -> Confirmation:
        """Draw as many fresh attempts at suspects as the gate made at its own."""
        assert self.confirmation is not None
        sizes = [
            int(run.outcomes.counts(Completion.AS_FAILED)[0].max())
            for run in self.confirmation.runs
            if run is not self.confirmation.everywhere
        ]
        size = max(sizes, default=FRESH_ATTEMPTS)
        pairing, alpha = suspects.pairing, 1 - self.terms.level
        place_of = {task: i for i, task in enumerate(pairing.a.tasks)}
        places = [place_of[name] for name in suspects.names]
        is_base_fresh = not self.confirmation.kept and len(sizes) > 1
        base = self._draw(rates[places], size, suspects.names) if is_base_fresh else None
        new = self._draw(lowered[places], size, suspects.names)
        everywhere = None
        if more := count_mean_attempts(pairing, self.metric, suspects.policy, alpha):
            everywhere = self._draw(lowered, more, pairing.b.tasks)
        return confirm_suspects(suspects, new, base, everywhere=everywhere)

    def _draw(self, rates: FloatArray, attempts: int, tasks: Sequence[str]) -> FreshRun:
        counts = self.rng.binomial(attempts, rates)
        return FreshRun("", "", Outcomes.from_counts(attempts, counts, tasks))


def simulate_rule(
    rule: str,
    sides: Sequence[Outcomes],
    metric: Metric,
    limit: float,
    reach: Reach,
    population: Population,
    bound: Callable[[Sequence[Outcomes]], Ends] | None = None,
    drop: float = 0.1,
    *,
    wants_more: bool = True,
) -> RulePower | None:
    """Put the value that a rule bounds ``drop`` beyond its limit, and judge it again.

    ``bound`` gives the rule's own bounds of simulated outcomes, so that few tasks or attempts are
    not credited with what they cannot show. Without it values are drawn as they spread at this
    size, with bounds as far away as those of the run. ``None`` where there is no such value, or
    too little to fit.
    """
    goal = limit - drop if wants_more else limit + drop
    lowest, highest = (-1.0, 1.0) if len(sides) > 1 else (metric.lowest, metric.highest)
    if not lowest <= goal <= highest:
        return None
    side = "below" if wants_more else "above"
    total = sum(len(outcomes) for outcomes in sides)
    if bound is not None and isinstance(metric, CountMetric) and total <= _MOST_TASKS:
        ends = [bound(drawn) for drawn in _draw_sides(sides, metric, goal, population)]
        refuted = [high < limit if wants_more else low > limit for low, high in ends]
        return RulePower(rule, drop, sum(refuted), len(ends), side=side) if ends else None
    values = draw_estimates(sides, metric, population)
    if values is None:
        return None
    moved = values - values.mean() + goal
    is_refuted = moved + reach.above < limit if wants_more else moved - reach.below > limit
    return RulePower(rule, drop, int(is_refuted.sum()), len(values), side=side)


def _draw_sides(
    sides: Sequence[Outcomes],
    metric: CountMetric,
    goal: float,
    population: Population,
    runs: int = 10,
    seed: int = 0,
) -> Iterator[list[Outcomes]]:
    """Outcomes of this size in which the metric of the last side, or its lift, has the goal.

    About new tasks the tasks are drawn again, too. Nothing where no rates have the goal.
    """
    rng = np.random.default_rng(seed)
    rates = [FittedRates.of(side).draw(rng, runs) for side in sides]
    if population is Population.NEW_TASKS:
        chosen = rng.integers(len(sides[0]), size=(runs, len(sides[0])))
        rates = [np.take_along_axis(side, chosen, axis=1) for side in rates]
    if len(rates) > 1:
        goal += float(metric.value_at_rate(rates[0]).mean())
    moved = _move_rates(rates[-1], metric, goal)
    if moved is None:
        return
    for draw in range(runs):
        drawn = [*(side[draw] for side in rates[:-1]), moved[draw]]
        yield [
            Outcomes.from_counts(side.n, rng.binomial(side.n, p), side.tasks, missing=side.missing)
            for side, p in zip(sides, drawn, strict=True)
        ]


def _lower_rates(rates: FloatArray, metric: CountMetric, drop: float) -> FloatArray | None:
    """All rates times one factor, so that the metric's mean falls by ``drop``."""
    return _move_rates(rates, metric, float(metric.value_at_rate(rates).mean()) - drop)


def _move_rates(rates: FloatArray, metric: CountMetric, goal: float) -> FloatArray | None:
    """The rates with the metric's mean at the goal: failures or passes times one factor."""
    ends = (float(metric.value_at_rate(np.full(1, end)).mean()) for end in (0.0, 1.0))
    if not next(ends) <= goal <= next(ends):
        return None
    is_raised = float(metric.value_at_rate(rates).mean()) < goal
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        moved = 1 - middle * (1 - rates) if is_raised else middle * rates
        is_above = float(metric.value_at_rate(moved).mean()) > goal
        low, high = (low, middle) if is_above is not is_raised else (middle, high)
    return 1 - low * (1 - rates) if is_raised else low * rates
