"""Figures by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from passhat._display import some
from passhat.errors import InvalidValue
from passhat.reporting.figures import agents, article, over_k, spread, temperatures
from passhat.reporting.figures.base import Figure, labels_of
from passhat.reporting.task_changes import TaskChange
from passhat.reporting.view import Report, RunReport
from passhat.stats.compare import Comparison
from passhat.stats.outcomes import Run
from passhat.stats.temperature import TemperatureFit
from passhat.stats.terms import Terms


@dataclass(frozen=True, slots=True)
class Material:
    """Data for figures: a report with details, and a comparison where there is one."""

    report: Report
    comparison: Comparison | None = None
    changes: tuple[TaskChange, ...] = ()
    terms: Terms = field(default_factory=Terms)
    unreported: tuple[Run, ...] = ()
    """Runs without a report, which is all that a figure in ``FITTED`` needs."""

    @property
    def runs(self) -> Sequence[RunReport]:
        return self.report.runs

    @property
    def names(self) -> tuple[str, str]:
        """A and B, by the labels that every chart uses."""
        first, second = labels_of(self.runs)[:2]
        return first, second

    @property
    def word(self) -> str:
        """The metric that changes are about."""
        return str(self.comparison.results[0].metric) if self.comparison else ""

    def from_fit(self, draw: Callable[[TemperatureFit], Figure | None]) -> Figure | None:
        """A figure of the temperature fit, where the runs have one."""
        runs = [*(run.run for run in self.runs), *self.unreported]
        fit = temperatures.fit_of(runs, self.terms)
        return None if fit is None else draw(fit)


Drawn = Callable[[Material], Figure | None]

_ARTICLE: dict[str, tuple[str, Callable[[article.Shapes], Figure]]] = {
    "article-sweep": ("pass@k and pass^k of four shapes with one average", article.article_sweep),
    "article-delta": ("delta^k of the same shapes", article.article_delta),
}
_DRAWN: dict[str, tuple[str, Drawn, str]] = {
    "curves": (
        "pass@k and pass^k over k with intervals",
        lambda given: over_k.curves(given.runs),
        "at least two attempts at every task",
    ),
    "delta": (
        "delta^k over k with its bound",
        lambda given: over_k.delta(given.runs),
        "at least three attempts at every task",
    ),
    "scores": (
        "worst and best score of k attempts over k",
        lambda given: over_k.scores(given.runs),
        "scores, and at least two attempts at every task",
    ),
    "thresholds": (
        "pass^1 and pass^k over the score that passes",
        lambda given: over_k.thresholds(given.runs),
        "scores",
    ),
    "forecast": (
        "the band beyond n",
        lambda given: over_k.forecast(given.runs),
        "attempts that have a verdict",
    ),
    "forest": (
        "every run with its intervals",
        lambda given: agents.forest(given.runs),
        "a metric that all runs share",
    ),
    "flips": (
        "the change on every task from A to B",
        lambda given: (
            agents.flips(given.changes, given.word, given.names) if given.changes else None
        ),
        "two runs of the same tasks",
    ),
    "lift": (
        "the lift of B over A over k with a simultaneous band",
        lambda given: (
            over_k.lift(given.comparison.curves, given.names) if given.comparison else None
        ),
        "two runs of the same tasks, with two attempts each",
    ),
    "width": (
        "interval width against tasks and attempts",
        lambda given: spread.width(given.runs),
        "at least two attempts at every task",
    ),
    "failures": (
        "why attempts fail",
        lambda given: spread.failures(given.runs),
        "failed or missing attempts with a category",
    ),
    "distributions": (
        "seconds, steps, tokens and cost of attempts",
        lambda given: spread.distributions(given.runs),
        "a source that records seconds, steps, tokens or cost",
    ),
    "temperature": (
        "pass@k over temperature",
        lambda given: given.from_fit(temperatures.curve_figure),
        "runs of one agent and the same tasks at two temperatures or more",
    ),
    "best-temperature": (
        "T* over k with its interval",
        lambda given: given.from_fit(temperatures.best_figure),
        "runs of one agent and the same tasks at three temperatures or more",
    ),
    "heatmap": (
        "pass@k over k and temperature, as a table",
        lambda given: given.from_fit(temperatures.heat_figure),
        "runs of one agent and the same tasks at two temperatures or more",
    ),
}

FIGURES = MappingProxyType(
    {name: what for name, (what, _, _) in _DRAWN.items()}
    | {name: what for name, (what, _) in _ARTICLE.items()}
)
"""Every name, and what it shows."""


DETAILED = ("curves", "delta", "forecast", "width", "distributions")
"""Figures that a report must have been built with details for."""

FITTED = ("temperature", "best-temperature", "heatmap")
"""Figures of a temperature fit, which need the runs and no report of them."""


def make_figure(
    name: str, material: Material | None, shapes: article.Shapes | None = None
) -> Figure | None:
    """The figure called ``name``; ``None`` where the data for it are missing.

    ``shapes`` replace the four suites of the article's figures.
    """
    if name in _ARTICLE:
        return _ARTICLE[name][1](shapes or article.SHAPES_OF_DIFFICULTY)
    if name not in _DRAWN:
        raise InvalidValue(
            f"no figure is called {name!r}.", hint=f"There are: {some(list(FIGURES), 20)}"
        )
    if material is None:
        raise InvalidValue(
            f"the figure {name!r} needs a SOURCE.",
            hint=f"passhat figure {name} runs.csv -o fig.svg",
        )
    return _DRAWN[name][1](material)


def needs(name: str) -> str:
    """The data that a source must hold for this figure."""
    return _DRAWN[name][2] if name in _DRAWN else "nothing"
