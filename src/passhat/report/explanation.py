"""`passhat explain`: what a metric asks, how it is computed, and lines of Python that agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Unpack

from passhat._display import counted
from passhat.stats.estimate import Estimate, estimate, metric
from passhat.stats.estimate.metrics import CountMetric, Metric, OrderedMetric
from passhat.stats.outcomes import Completion, MissingPolicy, Outcomes, Run
from passhat.stats.terms import Population, TermOptions, Terms

__all__ = ["Explanation", "explain"]

_MOST_ROWS = 400
"""Attempt rows printed in full; a longer list would bury the formula."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A metric in words, and the lines that reproduce its value."""

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
            yield "Its interval by simulation, with missing attempts as failed (to about 0.002):"
            yield ""
            yield from (f"    {line}" for line in self.interval_python.splitlines())

    def _interval(self) -> str:
        found = self.estimate
        if found is None or found.low is None or found.high is None or found.level is None:
            return "none"
        return f"{found.low!r} to {found.high!r}, {found.level:.0%} for {found.about}"


def explain(
    word: str | Metric,
    run: Run | None = None,
    terms: Terms | None = None,
    **options: Unpack[TermOptions],
) -> Explanation:
    """Explain a metric, on the outcomes of a run or on a small example."""
    chosen = metric(word)
    terms = Terms.from_options(options, terms, takes=("missing", "level", "drop_short", "about"))
    if run is None:
        return Explanation(
            chosen,
            None,
            "without a SOURCE: three tasks made up for this page",
            _python(chosen, _made_up(chosen)),
        )
    completion = terms.missing.completion
    found = estimate(run.outcomes, chosen, terms)
    kept = run.outcomes
    if found.tasks < len(kept):
        n, _ = kept.counts(completion)
        kept = kept.take(n >= chosen.k)
    inputs = f"{run.name}: {kept}; {_ways(terms.missing)}"
    python = _python(chosen, kept, completion)
    return Explanation(chosen, found, inputs, python, _interval_python(chosen, terms))


def _python(
    chosen: Metric, outcomes: Outcomes, completion: Completion = Completion.AS_FAILED
) -> str:
    if isinstance(chosen, OrderedMetric):
        data = _rows(outcomes, completion)
    else:
        cells = outcomes.histogram(completion)
        triples = zip(cells.n.tolist(), cells.c.tolist(), cells.tasks.tolist(), strict=True)
        listed = ", ".join(map(str, triples))
        data = f"# (attempts n, passed c, how many tasks have that)\ncells = [{listed}]"
    return f"{data}\n{chosen.python()}\nprint(value)"


def _interval_python(chosen: Metric, terms: Terms) -> str:
    """Gaffke's bound drawn rather than computed, continuing the lines that give the value."""
    if not isinstance(chosen, CountMetric) or terms.about() is not Population.NEW_TASKS:
        return ""
    tail = (1 - terms.level) / 2
    return (
        "import numpy as np\n"
        "h = np.array([h for n, c, h in cells])\n"
        f"u = np.array([{chosen.cell_python} for n, c, h in cells])\n"
        "rng = np.random.default_rng(0)\n"
        "seen = rng.gamma(h, size=(200_000, len(h)))   # a weight for every cell\n"
        "unseen = rng.gamma(1, size=200_000)           # and one for a task nobody has seen\n"
        "total = seen.sum(axis=1) + unseen\n"
        f"low = np.quantile(seen @ u / total, {tail:.6g})\n"
        f"high = np.quantile((seen @ u + unseen) / total, {1 - tail:.6g})\n"
        "print(low, high)"
    )


def _rows(outcomes: Outcomes, completion: Completion) -> str:
    if outcomes.order is None or len(outcomes) > _MOST_ROWS:
        return "rows = ...  # one list of 1 and 0 per task, in the order of the attempts"
    sequences = outcomes.order.completed(completion)
    rows = [
        sequences.passed[start:stop].astype(int).tolist()
        for start, stop in pairwise(sequences.starts.tolist())
    ]
    return f"# one list per task, in the order of the attempts\nrows = {rows}"


def _made_up(chosen: Metric) -> Outcomes:
    """Three tasks with k + 2 attempts: one passes always, one half of the time, one never."""
    n = chosen.k + 2
    half = [1, 0] * n
    return Outcomes.from_matrix([[1] * n, half[:n], [0] * n])


def _needs(chosen: Metric) -> str:
    order = ", and the order in which they were made" if isinstance(chosen, OrderedMetric) else ""
    return f"at least {counted(chosen.k, 'attempt')} on every task{order}"


def _ways(missing: MissingPolicy) -> str:
    if missing is MissingPolicy.EXCLUDE:
        return "missing attempts left out"
    return "missing attempts count as failed"
