"""`passhat explain`: a metric's question, its formula, and Python code that computes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Unpack

from passhat._display import counted
from passhat.errors import InvalidValue
from passhat.stats.estimate import Estimate, estimate, metric
from passhat.stats.estimate.intervals.frontier import Calibration
from passhat.stats.estimate.intervals.score_levels import choose_thresholds
from passhat.stats.estimate.metrics import (
    CountMetric,
    Delta,
    Mean,
    Metric,
    OrderedMetric,
    PassAt,
    ScoreMetric,
)
from passhat.stats.estimate.task_values import verdict_twin
from passhat.stats.labels.correction import Corrected, Correction, correct
from passhat.stats.labels.judge_error import Strata
from passhat.stats.labels.lifts import require_labels
from passhat.stats.labels.task_choice import label_tasks
from passhat.stats.outcomes import Completion, Histogram, MissingPolicy, Outcomes, Run
from passhat.stats.terms import Population, TermOptions, Terms

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
    corrected: Corrected | None = None

    def lines(self) -> Iterator[str]:
        """The explanation as text."""
        yield f"{self.metric}"
        yield f"  asks      {self.metric.asks}"
        yield f"  formula   {self.metric.formula}"
        if self.corrected is not None:
            yield f"  corrected {_FORMULAS[self.corrected.correction]}"
        yield f"  paper     {self.metric.paper}"
        yield f"  needs     {_needs(self.metric)}"
        yield f"  inputs    {self.inputs}"
        if self.estimate is not None:
            yield f"  value     {self.estimate.value!r}"
            if self.corrected is not None:
                yield f"  judged    {self.corrected.judged.value!r} by the judge alone"
            yield f"  interval  {self._interval()}"
            yield f"  method    {self.estimate.method}"
            if self.estimate.value_if_passed not in (None, self.estimate.value):
                upper = self.estimate.value_if_passed
                yield f"  if passed {upper!r} had every missing attempt passed"
            if isinstance(self.metric, Delta) and self.estimate.value_range is not None:
                least, largest = self.estimate.value_range
                yield f"  range     {least!r} to {largest!r}, however missing attempts come out"
            if self.corrected is not None:
                yield from (f"  note      {note}" for note in self.estimate.notes)
            if self.estimate.bounds is not None:
                low, high = self.estimate.bounds
                yield f"  bounds    the truth lies between {low:g} and mu - mu^k, here {high!r}"
        yield ""
        only = "" if self.corrected is not None else ", standard library only"
        yield f"The same number in Python{only}:"
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
    corrected: str | None = None,
    **options: Unpack[TermOptions],
) -> Explanation:
    """Explain a metric, on the outcomes of a run or on a small example.

    ``corrected`` explains the number that labels correct: by ``whole tasks`` or ``errors``.
    """
    parsed_metric = metric(word)
    terms = Terms.from_options(options, terms, takes=("missing", "level", "drop_short", "about"))
    if corrected is not None and run is None:
        raise InvalidValue(
            "a corrected number needs a run with labels.",
            hint="Name it: passhat explain pass^4 RUN",
        )
    if corrected is not None and run is not None:
        kind = Correction.of(corrected)
        found = correct(run.outcomes, require_labels(run), parsed_metric, terms, correction=kind)
        python = _correction_python(parsed_metric, run, terms, kind)
        inputs = f"{run.name}: {run.outcomes}; {counted(found.labels, 'label')}"
        return Explanation(parsed_metric, found.estimate, inputs, python, corrected=found)
    if run is None:
        return Explanation(
            parsed_metric,
            None,
            "without a SOURCE: three tasks made up for this page",
            _python(parsed_metric, _example_outcomes(parsed_metric)),
        )
    completion = terms.missing.completion
    terms = terms.for_tasks(len(run.outcomes))
    result = estimate(run.outcomes, parsed_metric, terms)
    outcomes = run.outcomes
    if result.tasks < len(outcomes):
        n, _ = outcomes.counts(completion)
        outcomes = outcomes.take(n >= parsed_metric.k)
    inputs = f"{run.name}: {outcomes}; {_ways(terms.missing)}"
    twin = verdict_twin(parsed_metric, outcomes)
    return Explanation(
        parsed_metric,
        result,
        inputs,
        _python(twin, outcomes, completion),
        _interval_python(twin, outcomes, terms),
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


def _interval_python(chosen: Metric, outcomes: Outcomes, terms: Terms) -> str:
    """Lines that give the interval, continuing those that give the value; none where too long."""
    cells, tail = outcomes.histogram(terms.missing.completion), (1 - terms.level) / 2
    ends = {"tail": f"{tail:.6g}", "rest": f"{1 - tail:.6g}"}
    is_equal = cells.size > 1 and int(cells.n.min()) == int(cells.n.max()) > 1
    about_new = terms.about() is Population.NEW_TASKS
    if isinstance(chosen, ScoreMetric):
        if len(outcomes) > _MOST_ROWS:
            return ""
        if about_new:
            value = "sum(row) / len(row)" if isinstance(chosen, Mean) else "task_value(row)"
            return _GAFFKE_ROWS.format(value=value, **ends)
        if is_equal:
            levels = choose_thresholds(outcomes.graded(terms.missing.completion))
            pairs = [(round(level.cut, 9), round(level.weight, 9)) for level in levels]
            twin, sizes = chosen.verdict_metric, "n, tasks = len(rows[0]), len(rows)\n"
            solver = _frontier_python(twin, cells, terms)
            return f"{twin.set_up_python}\n{sizes}{solver}{_OF_LEVELS.format(levels=pairs)}"
    elif not isinstance(chosen, CountMetric):
        return ""
    elif about_new:
        return _GAFFKE.format(cell=chosen.cell_python, **ends)
    elif int(cells.n.max()) == 1:
        return _CLOPPER_PEARSON.format(**ends)
    elif is_equal:
        return f"n = cells[0][0]\n{_frontier_python(chosen, cells, terms)}{_OF_CELLS}"
    data = _ROWS if isinstance(chosen, ScoreMetric) else _COUNTS
    return _BY_PASSHAT.format(outcomes=data, metric=chosen, level=terms.level)


def _frontier_python(metric: CountMetric, cells: Histogram, terms: Terms) -> str:
    constants = Calibration.at(terms.level, cells.size)
    return _FRONTIER.format(
        cell=metric.cell_python,
        b=f"{constants.surprise:.6g}",
        kappa=f"{constants.fit:.6g}",
        d=f"{constants.step:g}",
    )


_CLOPPER_PEARSON = """\
from scipy.stats import beta
x = sum(h * c for n, c, h in cells)                  # passes in `tasks` attempts
low = beta.ppf({tail}, x, tasks - x + 1) if x else 0.0
high = beta.ppf({rest}, x + 1, tasks - x) if x < tasks else 1.0
low = min(low, {tail} / tasks) if x == 1 else low    # rates of tasks may differ
high = max(high, 1 - {tail} / tasks) if x == tasks - 1 else high
print(low, high)"""

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
u = np.array([{cell} for c in range(n + 1)])
p = np.sin(np.linspace(0, np.pi / 2, 41)) ** 2       # rates at which G may have mass
chance = binom.pmf(np.arange(n + 1)[:, None], n, p)
def ends(seen, h, value):                             # h tasks with so many passes
    fit = lambda g: h @ np.log(np.maximum(chance[seen] @ g, 1e-300))
    g = np.full(len(p), 1 / len(p))
    for _ in range(20_000):                           # the most likely G, by EM
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
        yield sign * end.fun
"""
_OF_CELLS = """\
print(*ends(np.array([c for n, c, h in cells]), np.array([h for n, c, h in cells]), value))"""
_OF_LEVELS = """\
low = high = value
for cut, weight in {levels}:  # scores from there on pass
    seen, h = np.unique([sum(round(x, 9) >= cut for x in row) for row in rows], return_counts=True)
    mean = h @ u[seen] / tasks
    below, above = ends(seen, h, mean)
    low, high = low + weight * min(below - mean, 0), high + weight * max(above - mean, 0)
print(low, high)"""
_BY_PASSHAT = """\
import passhat                                        # the solver is too long to be printed
data = {outcomes}
found = passhat.estimate(data, "{metric}", about="these tasks", level={level:g}, missing="exclude")
print(found.low, found.high)"""
_COUNTS = "passhat.Outcomes.from_counts(*zip(*((n, c) for n, c, h in cells for _ in range(h))))"
_ROWS = "[row + [float('nan')] * (max(map(len, rows)) - len(row)) for row in rows]"


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


# -- corrected numbers

_FORMULAS = {
    Correction.WHOLE_TASKS: "mean over labeled tasks of (true - w judged) + w mean over other "
    "tasks of judged;  w = slope of true on judged x share of other tasks",
    Correction.ERRORS: "sum over j of C(k, j) A^(k-j) B^j pass^j(judged);  A = -a / (1 - a - b), "
    "B = 1 / (1 - a - b), a = false passes, b = false failures",
}


def _correction_python(metric: Metric, run: Run, terms: Terms, correction: Correction) -> str:
    """Lines of Python that give the corrected value; for whole tasks its interval, too."""
    if not isinstance(metric, CountMetric):
        raise InvalidValue(
            f"the correction of {metric} is not printed as Python.",
            hint=f"Explain what it is made of: pass^{metric.k} and pass^1.",
        )
    by = _whole_tasks_python if correction is Correction.WHOLE_TASKS else _errors_python
    return by(metric, run, terms)


def _whole_tasks_python(metric: CountMetric, run: Run, terms: Terms) -> str:
    n, c = run.outcomes.counts(terms.missing.completion)
    places, right = label_tasks(run.outcomes, require_labels(run))
    labeled = Counter(zip(n[places].tolist(), c[places].tolist(), right.tolist(), strict=True))
    whole = set(places.tolist())
    others = Counter(
        (size, passed)
        for place, (size, passed) in enumerate(zip(n.tolist(), c.tolist(), strict=True))
        if place not in whole
    )
    tail = (1 - terms.level) / 2
    return _WHOLE.format(
        setup=metric.set_up_python,
        cell=metric.cell_python,
        labeled=[(*cell, count) for cell, count in sorted(labeled.items())],
        others=[(*cell, count) for cell, count in sorted(others.items())],
        tail=f"{tail:.6g}",
        rest=f"{1 - tail:.6g}",
    )


def _errors_python(metric: CountMetric, run: Run, terms: Terms) -> str:
    labels = require_labels(run)
    strata = Strata.of(run.outcomes, labels)
    cells = run.outcomes.histogram(terms.missing.completion)
    triples = zip(cells.n.tolist(), cells.c.tolist(), cells.tasks.tolist(), strict=True)
    at = isinstance(metric, PassAt)
    return _ERRORS.format(
        k=metric.k,
        cells=list(triples),
        passed=(strata.passed, strata.labeled_passed, labels.wrong_passed_total),
        failed=(strata.failed, strata.labeled_failed, labels.right_failed_total),
        shift="1 - A - B" if at else "A",
        count="n - c" if at else "c",
        value="1 - mean" if at else "mean",
    )


_WHOLE = """\
{setup}
u = lambda n, c: {cell}
# (attempts n, passed by the judge, right by the labels, how many tasks)
labeled = {labeled}
# (attempts n, passed by the judge, how many tasks)
others = {others}
mean = lambda rows: sum(h * x for x, h in rows) / sum(h for x, h in rows)
true = [(u(n, r), h) for n, c, r, h in labeled]
judged = [(u(n, c), h) for n, c, r, h in labeled]
elsewhere = [(u(n, c), h) for n, c, h in others]
L, U = sum(h for _, h in true), sum(h for _, h in elsewhere)
t, j = mean(true), mean(judged)
cov = sum(h * (x - t) * (y - j) for (x, h), (y, _) in zip(true, judged))
var = sum(h * (y - j) ** 2 for y, h in judged)
w = min(max(cov / var if var else 1.0, 0.0), 1.0) * U / (L + U)
value = t - w * j + (w * mean(elsewhere) if U else 0.0)
print(value)
import numpy as np                            # and its interval for new tasks, to about 0.005
rng = np.random.default_rng(0)
d, h = np.array([x - w * y for (x, _), (y, _) in zip(true, judged)]), [h for _, h in true]
seen = rng.gamma(h, size=(200_000, len(h)))   # weights of labeled tasks
unseen = rng.gamma(1, size=200_000) * (rng.random(200_000) < 0.5)
total = seen.sum(axis=1) + unseen
rest = 0.0
if U:
    more = rng.gamma([h for _, h in elsewhere], size=(200_000, len(elsewhere)))
    rest = w * more @ [y for y, _ in elsewhere] / more.sum(axis=1)
print(np.quantile((seen @ d - w * unseen) / total + rest, {tail}),
      np.quantile((seen @ d + unseen) / total + rest, {rest}))"""

_ERRORS = """\
from math import comb
k = {k}
# (attempts n, passed by the judge c, how many tasks have that)
cells = {cells}
passed, labeled_passed, wrong_passed = {passed}   # by the judge; labeled; wrong among them
failed, labeled_failed, right_failed = {failed}
wp, rp = passed * wrong_passed / labeled_passed, passed * (1 - wrong_passed / labeled_passed)
rf, wf = failed * right_failed / labeled_failed, failed * (1 - right_failed / labeled_failed)
a, b = wp / (wp + wf), rf / (rf + rp)              # false passes, false failures
A, B = -a / (1 - a - b), 1 / (1 - a - b)
term = lambda n, c: sum(
    comb(k, j) * ({shift}) ** (k - j) * B**j * comb(c, j) / comb(n, j) for j in range(k + 1)
)
mean = sum(h * term(n, {count}) for n, c, h in cells) / sum(h for n, c, h in cells)
value = {value}
print(value)"""
