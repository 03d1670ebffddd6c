"""`passhat explain`: a metric's question, its formula, and Python code that computes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Unpack

from passhat._display import counted
from passhat.stats.estimate import Estimate, estimate, metric
from passhat.stats.estimate.intervals.frontier import Calibration
from passhat.stats.estimate.metrics import CountMetric, Mean, Metric, OrderedMetric, ScoreMetric
from passhat.stats.outcomes import Completion, Histogram, MissingPolicy, Outcomes, Run
from passhat.stats.terms import Population, TermOptions, Terms

__all__ = ["Explanation", "explain"]

_MOST_ROWS = 400
"""Attempt rows printed in full; a longer list would bury the formula."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A metric in words, and the code that reproduces its value."""

    metric: Metric
    estimate: Estimate | None
    inputs: str
    python: str
    interval_python: str = ""

    def lines(self) -> Iterator[str]:
        """The explanation as text."""
        yield f"{self.metric}"
        yield f"  asks      {self.metric.asks}"
        yield f"  formula   {self.metric.formula}"
        yield f"  paper     {self.metric.paper}"
        yield f"  needs     {_needs(self.metric)}"
        yield f"  inputs    {self.inputs}"
        if self.estimate is not None:
            yield f"  value     {self.estimate.value!r}"
            yield f"  interval  {self._interval()}"
            yield f"  method    {self.estimate.method}"
            if self.estimate.value_if_passed not in (None, self.estimate.value):
                upper = self.estimate.value_if_passed
                yield f"  if passed {upper!r} had every missing attempt passed"
            if self.estimate.bounds is not None:
                low, high = self.estimate.bounds
                yield f"  bounds    the truth lies between {low:g} and mu - mu^k, here {high!r}"
        yield ""
        yield "The same number in Python, standard library only:"
        yield ""
        yield from (f"    {line}" for line in self.python.splitlines())
        if self.interval_python:
            yield ""
            yield "Its interval, with missing attempts as failed (to about 0.005):"
            yield ""
            yield from (f"    {line}" for line in self.interval_python.splitlines())

    def _interval(self) -> str:
        estimate = self.estimate
        if (
            estimate is None
            or estimate.low is None
            or estimate.high is None
            or estimate.level is None
        ):
            return "none"
        ends = f"{estimate.low!r} to {estimate.high!r}"
        return f"{ends}, {100 * estimate.level:g}% for {estimate.population}"


def explain(
    word: str | Metric,
    run: Run | None = None,
    terms: Terms | None = None,
    **options: Unpack[TermOptions],
) -> Explanation:
    """Explain a metric, on the outcomes of a run or on a small example."""
    parsed_metric = metric(word)
    terms = Terms.from_options(options, terms, takes=("missing", "level", "drop_short", "about"))
    if run is None:
        return Explanation(
            parsed_metric,
            None,
            "without a SOURCE: three tasks made up for this page",
            _python(parsed_metric, _example_outcomes(parsed_metric)),
        )
    completion = terms.missing.completion
    result = estimate(run.outcomes, parsed_metric, terms)
    outcomes = run.outcomes
    if result.tasks < len(outcomes):
        n, _ = outcomes.counts(completion)
        outcomes = outcomes.take(n >= parsed_metric.k)
    inputs = f"{run.name}: {outcomes}; {_ways(terms.missing)}"
    python = _python(parsed_metric, outcomes, completion)
    return Explanation(
        parsed_metric,
        result,
        inputs,
        python,
        _score_interval_python(parsed_metric, outcomes, terms)
        or _interval_python(parsed_metric, outcomes.histogram(completion), terms),
    )


def _python(
    chosen: Metric, outcomes: Outcomes, completion: Completion = Completion.AS_FAILED
) -> str:
    if isinstance(chosen, OrderedMetric):
        data = _rows(outcomes, completion)
    elif isinstance(chosen, ScoreMetric):
        data = _score_rows(outcomes, completion)
    else:
        cells = outcomes.histogram(completion)
        triples = zip(cells.n.tolist(), cells.c.tolist(), cells.tasks.tolist(), strict=True)
        triples_text = ", ".join(map(str, triples))
        data = f"# (attempts n, passed c, how many tasks have that)\ncells = [{triples_text}]"
    return f"{data}\n{chosen.python()}\nprint(value)"


def _score_rows(outcomes: Outcomes, completion: Completion) -> str:
    if len(outcomes) > _MOST_ROWS:
        return "rows = ...  # one list of scores per task"
    scores = outcomes.graded(completion)
    rows = [scores.of(index).tolist() for index in range(len(outcomes))]
    return f"# the scores of each task\nrows = {rows}"


def _score_interval_python(chosen: Metric, outcomes: Outcomes, terms: Terms) -> str:
    """Lines for the interval of a metric of scores about new tasks, where its rows are printed."""
    is_printed = isinstance(chosen, ScoreMetric) and len(outcomes) <= _MOST_ROWS
    if not is_printed or terms.about() is not Population.NEW_TASKS:
        return ""
    tail = (1 - terms.level) / 2
    value = "sum(row) / len(row)" if isinstance(chosen, Mean) else "task_value(row)"
    return _GAFFKE_ROWS.format(value=value, tail=f"{tail:.6g}", rest=f"{1 - tail:.6g}")


def _interval_python(chosen: Metric, cells: Histogram, terms: Terms) -> str:
    """Lines that give the interval, continuing those that give the value; none where too long."""
    if not isinstance(chosen, CountMetric):
        return ""
    if int(cells.n.max()) == 1:
        return _BLAKER.format(alpha=f"{1 - terms.level:.6g}")
    if terms.about() is Population.NEW_TASKS:
        tail = (1 - terms.level) / 2
        return _GAFFKE.format(cell=chosen.cell_python, tail=f"{tail:.6g}", rest=f"{1 - tail:.6g}")
    if cells.size == 1 or int(cells.n.min()) < int(cells.n.max()):
        return ""
    constants = Calibration.at(terms.level, cells.size)
    return _FRONTIER.format(
        cell=chosen.cell_python,
        b=f"{constants.surprise:.6g}",
        kappa=f"{constants.fit:.6g}",
        d=f"{constants.step:g}",
    )


_BLAKER = """\
import numpy as np
from scipy.stats import binom
x = sum(h * c for n, c, h in cells)                  # passes; Blaker's interval of x in `tasks`
y, p = np.arange(tasks + 1), np.linspace(0, 1, 4001)[:, None]
tail = np.minimum(binom.cdf(y, tasks, p), binom.sf(y - 1, tasks, p))
as_extreme = tail <= tail[:, [x]] * (1 + 1e-9)
accepted = (binom.pmf(y, tasks, p) * as_extreme).sum(axis=1) > {alpha}
print(p[accepted].min(), p[accepted].max())"""

_GAFFKE = """\
import numpy as np
h = np.array([h for n, c, h in cells])
u = np.array([{cell} for n, c, h in cells])
rng = np.random.default_rng(0)
seen = rng.gamma(h, size=(200_000, len(h)))   # a weight for every cell
unseen = rng.gamma(1, size=200_000)           # and one for a task that was not seen
total = seen.sum(axis=1) + unseen
low = np.quantile(seen @ u / total, {tail})
high = np.quantile((seen @ u + unseen) / total, {rest})
print(low, high)"""

_GAFFKE_ROWS = """\
import numpy as np
u = np.array([{value} for row in rows])
rng = np.random.default_rng(0)
lows, highs = [], []
for _ in range(50_000):                       # a weight for every task, one for an unseen task
    seen, unseen = rng.exponential(size=len(u)), rng.exponential()
    lows.append(seen @ u / (seen.sum() + unseen))
    highs.append((seen @ u + unseen) / (seen.sum() + unseen))
print(np.quantile(lows, {tail}), np.quantile(highs, {rest}))"""

# The truth at a rate p is the mean of u over n attempts: u is unbiased.
_FRONTIER = """\
import numpy as np
from scipy.optimize import minimize
from scipy.stats import binom
n = cells[0][0]
u = np.array([{cell} for c in range(n + 1)])
seen, h = np.array([c for n, c, h in cells]), np.array([h for n, c, h in cells])
p = np.sin(np.linspace(0, np.pi / 2, 41)) ** 2       # rates at which G may have mass
chance = binom.pmf(np.arange(n + 1)[:, None], n, p)
fit = lambda g: h @ np.log(np.maximum(chance[seen] @ g, 1e-300))
g = np.full(len(p), 1 / len(p))
for _ in range(20_000):                               # the most likely G, by EM
    g *= (h / (chance[seen] @ g)) @ chance[seen] / tasks
best = fit(g)
s = np.geomspace(0.7 * np.sqrt(8 * {b} / tasks), 25, 20)
s = np.concatenate([-s, s])
moments = np.log(np.exp(np.outer(s, u)) @ chance)
d = {d} * np.abs(np.diff(u)).max() / tasks
limit = {b} / tasks - s * value + np.abs(s) * d
rules = [dict(type="eq", fun=lambda g: g.sum() - 1),
         dict(type="ineq", fun=lambda g: limit + moments @ g),
         dict(type="ineq", fun=lambda g: fit(g) - best + {kappa})]
for sign in (1, -1):
    end = minimize(lambda g: sign * (u @ chance @ g), g, bounds=[(0, 1)] * len(p),
                   constraints=rules, method="SLSQP", options=dict(maxiter=500))
    print(sign * end.fun)"""


def _rows(outcomes: Outcomes, completion: Completion) -> str:
    if outcomes.order is None or len(outcomes) > _MOST_ROWS:
        return "rows = ...  # one list of 1 and 0 per task, in the order of the attempts"
    sequences = outcomes.order.completed(completion)
    rows = [
        sequences.passed[start:stop].astype(int).tolist()
        for start, stop in pairwise(sequences.starts.tolist())
    ]
    return f"# one list per task, in the order of the attempts\nrows = {rows}"


def _example_outcomes(chosen: Metric) -> Outcomes:
    """Three tasks with k + 2 attempts: one passes always, one half of the time, one never."""
    n = chosen.k + 2
    if isinstance(chosen, ScoreMetric):
        thirds = [0.25, 1.0, 0.5] * n
        return Outcomes.from_scores([[1.0] * n, thirds[:n], [0.0] * n])
    half = [1, 0] * n
    return Outcomes.from_matrix([[1] * n, half[:n], [0] * n])


def _needs(chosen: Metric) -> str:
    order = ", and the order in which they were made" if isinstance(chosen, OrderedMetric) else ""
    return f"at least {counted(chosen.k, 'attempt')} on every task{order}"


def _ways(missing: MissingPolicy) -> str:
    if missing is MissingPolicy.EXCLUDE:
        return "missing attempts left out"
    return "missing attempts count as failed"
