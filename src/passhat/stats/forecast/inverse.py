"""The inverse of a forecast: the k at which a target is met, surely and possibly."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Unpack

from passhat._display import html_table
from passhat._serialize import Plain
from passhat.errors import InvalidValue
from passhat.stats.estimate.metrics import CountMetric, PassAt, PassHat
from passhat.stats.forecast.views import TAKES, Views, cells_for, outcomes_of
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.terms import TermOptions, Terms

FURTHEST = 1_000_000
"""The largest k that is looked at."""

_EXACT_TO = 100  # beyond, k is found to 1%, rounded to the careful side


@dataclass(frozen=True, slots=True)
class Reach(Plain):
    """The k at which a target is met."""

    WRITTEN = ("family", "target", "surely", "possibly", "level", "furthest", "sentence")

    metric: PassAt | PassHat
    """The metric, at any k. Of pass@k the smallest k at the target or above is meant, of pass^k the
    largest; JSON names it ``family``: ``pass@`` or ``pass^``.
    """
    target: float
    """The target value."""
    surely: int | None
    """By the band's lower end."""
    possibly: int | None
    """By its upper end. ``None``: at no k up to ``furthest``."""
    level: float
    """The confidence of the band, for each k by itself."""
    furthest: int = FURTHEST
    """The largest k looked at; for ``pass^`` this number means "this or more"."""

    def __str__(self) -> str:
        at_all = isinstance(self.metric, PassAt)
        verb = f"reaches {self.target:g}" if at_all else f"stays at {self.target:g} or above"
        word_k = self._from if at_all else self._up_to
        return (
            f"{self.metric.family} {verb} {word_k(self.surely, 'surely')}, "
            f"{word_k(self.possibly, 'possibly')} ({100 * self.level:g}% band)"
        )

    def _from(self, k: int | None, how: str) -> str:
        if k is None:
            return f"{how} at no k up to {self.furthest:,}"
        return f"{how} from k = {k:,} on"

    def _up_to(self, k: int | None, how: str) -> str:
        if k is None:
            return f"{how} at no k"
        rest_text = " and beyond" if k >= self.furthest else ""
        return f"{how} up to k = {k:,}{rest_text}"

    def _repr_html_(self) -> str:
        rows = [(name, str(value)) for name, value in self.to_dict().items()]
        return html_table(str(self), ("", ""), rows)

    @property
    def family(self) -> str:
        """The word before the k."""
        return self.metric.word

    @property
    def sentence(self) -> str:
        """The result in words."""
        return str(self)


def reaches(
    source: Outcomes | Run,
    target: float,
    terms: Terms | None = None,
    **options: Unpack[TermOptions],
) -> Reach:
    """The smallest k with pass@k >= target: how many tries must be paid for.

    Two agents are easiest to distinguish where pass@k is near 0.5: use that target to plan k.

    Examples
    --------
    >>> from passhat.stats.outcomes import Outcomes
    >>> print(reaches(Outcomes.from_counts(8, [1, 2, 3, 4, 5, 6, 7] * 8), 0.9))
    pass@k reaches 0.9 surely from k = 8 on, possibly from k = 4 on (95% band)
    """
    views = _views(
        source, PassAt(FURTHEST), target, Terms.from_options(options, terms, takes=TAKES)
    )
    return Reach(
        PassAt(1),
        target,
        _first(lambda k: views.low(PassAt(k)) >= target, careful=True),
        _first(lambda k: views.high(PassAt(k)) >= target, careful=False),
        views.level,
    )


def keeps(
    source: Outcomes | Run,
    target: float,
    terms: Terms | None = None,
    **options: Unpack[TermOptions],
) -> Reach:
    """The largest k with pass^k >= target: how many times in a row can be promised.

    Examples
    --------
    >>> from passhat.stats.outcomes import Outcomes
    >>> print(keeps(Outcomes.from_counts(8, [8, 8, 8, 7] * 10), 0.8))
    pass^k stays at 0.8 or above surely up to k = 3, possibly up to k = 15 (95% band)
    """
    views = _views(
        source, PassHat(FURTHEST), target, Terms.from_options(options, terms, takes=TAKES)
    )
    return Reach(
        PassHat(1),
        target,
        _before(_first(lambda k: views.low(PassHat(k)) < target, careful=False)),
        _before(_first(lambda k: views.high(PassHat(k)) < target, careful=True)),
        views.level,
    )


def _views(source: Outcomes | Run, furthest: CountMetric, target: float, terms: Terms) -> Views:
    if not 0 < target < 1:
        raise InvalidValue(
            f"the target must lie between 0 and 1, not {target:g}.", hint="For example 0.9."
        )
    outcomes = outcomes_of(source)
    return Views.of(outcomes, cells_for(outcomes, terms.missing), [furthest], terms)


def _first(holds: Callable[[int], bool], *, careful: bool) -> int | None:
    """The smallest k from which on it holds; ``careful`` is the side to which k may be rounded."""
    if holds(1):
        return 1
    if not holds(FURTHEST):
        return None
    no, yes = 1, FURTHEST
    while yes - no > max(1, no // _EXACT_TO):
        middle = min(max(round(math.sqrt(no * yes)), no + 1), yes - 1)
        no, yes = (no, middle) if holds(middle) else (middle, yes)
    return yes if careful else no + 1


def _before(k: int | None) -> int | None:
    """The last k before; ``None`` when there is none."""
    if k is None:
        return FURTHEST
    return None if k == 1 else k - 1
