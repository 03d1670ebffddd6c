"""A judge's error: false passes and false failures, and whether they look alike over tasks.

A false pass is a wrong attempt that the judge passed, a false failure a right attempt that it
failed. Attempts at one task resemble each other, so the intervals draw whole tasks (Gaffke's bound
over clusters; Clopper and Pearson's where every task has one labeled attempt). Where more of the
judge's failures than of its passes were labeled, each attempt counts for those that it stands for.

A judge's weak spots are verdicts that flip when only the form of an answer changes.

References
----------
R. F. Potthoff and M. Whittinghill (1966), Testing for homogeneity, Biometrika 53 (the number of
    pairs of errors at the same task).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from passhat._serialize import Plain
from passhat.stats.arrays import FloatArray, IntArray
from passhat.stats.estimate.intervals.new_tasks import Clusters, gaffke_groups
from passhat.stats.estimate.intervals.these_tasks import clopper_pearson
from passhat.stats.outcomes import Outcomes
from passhat.stats.outcomes.labels import Anchor, LabelCounts

_SEED = 20_251_118
_DRAWS = 2_000
_DEVIATIONS = 3.0
"""Passes and failures were drawn in shares of their own where chance would not do that."""


@dataclass(frozen=True, slots=True)
class Strata:
    """The attempts that the judge passed and failed, and how many of them are labeled."""

    passed: int
    failed: int
    labeled_passed: int
    labeled_failed: int

    @classmethod
    def of(cls, outcomes: Outcomes, labels: LabelCounts) -> Strata:
        passed, scored = int(outcomes.c.sum()), int(outcomes.n.sum())
        labeled_passed = int((labels.right_passed + labels.wrong_passed).sum())
        return cls(passed, scored - passed, labeled_passed, labels.attempts - labeled_passed)

    @property
    def weights(self) -> tuple[float, float]:
        """Attempts that a labeled pass and a labeled failure stand for."""
        return (
            self.passed / self.labeled_passed if self.labeled_passed else 0.0,
            self.failed / self.labeled_failed if self.labeled_failed else 0.0,
        )

    @property
    def is_weighted(self) -> bool:
        """Whether passes and failures were labeled in shares that differ by more than chance."""
        total, labeled = self.passed + self.failed, self.labeled_passed + self.labeled_failed
        if not (self.labeled_passed and self.labeled_failed) or labeled == total:
            return False
        share = self.passed / total
        deviation: float = (labeled * share * (1 - share) * (1 - labeled / total)) ** 0.5
        return bool(abs(self.labeled_passed - labeled * share) > _DEVIATIONS * deviation)


@dataclass(frozen=True, slots=True)
class ErrorRate(Plain):
    """A share of errors with its interval."""

    errors: int
    labeled: int
    """``errors``, ``labeled``: errors among the labeled attempts that could have been one."""
    rate: float | None
    low: float
    high: float
    """``rate``, ``low``, ``high``: the share and its interval; ``None`` where nothing of the kind
    is labeled.
    """


@dataclass(frozen=True, slots=True)
class Alikeness(Plain):
    """Whether errors strike attempts of all tasks alike."""

    p_value: float | None
    """The chance of as many pairs of errors at the same task, were they spread at random over the
    labeled attempts; ``None`` where fewer than two errors of one kind are labeled.
    """
    pairs: int
    expected_pairs: float
    """``pairs``, ``expected_pairs``: pairs of errors of one kind at the same task, and how many to
    expect at random.
    """

    @property
    def is_rejected(self) -> bool:
        """Whether errors depend on the task."""
        return self.p_value is not None and self.p_value < REJECTED_BELOW

    @property
    def is_doubtful(self) -> bool:
        """Whether errors seem to depend on the task, without proof."""
        return self.p_value is not None and self.p_value < DOUBTFUL_BELOW


REJECTED_BELOW, DOUBTFUL_BELOW = 0.05, 0.2
"""p-values of the test of alikeness below which a correction by error rates is refused or warned
about. The second one is high, because the price of a warning is small: see
docs/benchmarks/judge_errors.md for how often dependence goes unnoticed."""


@dataclass(frozen=True, slots=True)
class JudgeError(Plain):
    """The error of a run's judge, from labels."""

    false_passes: ErrorRate
    false_failures: ErrorRate
    """``false_passes``, ``false_failures``: among wrong and among right attempts."""
    labels: LabelCounts
    """What they were counted from."""
    alike: Alikeness
    """The test whether errors depend on the task."""
    groups: Mapping[str, Mapping[str, tuple[ErrorRate, ErrorRate]]]
    """Both rates for each value of each slice, as ``{"domain": {"retail": (...)}}``."""
    categories: Mapping[str, ErrorRate]
    """For each failure category of the judge, the share of its attempts that people call right."""
    level: float
    """The confidence of the intervals."""
    weighted: bool
    """Whether labels were weighted, because passes and failures were labeled in other shares."""


def judge_error(outcomes: Outcomes, labels: LabelCounts, level: float = 0.95) -> JudgeError:
    """The judge's error rates with intervals: overall, by slice and by failure category."""
    labels.check(outcomes)
    strata = Strata.of(outcomes, labels)
    weights = strata.weights if strata.is_weighted else (1.0, 1.0)
    groups: dict[str, dict[str, tuple[ErrorRate, ErrorRate]]] = {}
    places = labels.places_in(outcomes)
    for name, values in outcomes.labels.items():
        slice_of = np.array([values[place] if place >= 0 else "" for place in places.tolist()])
        parts = {
            str(value): error_rates(labels.take(slice_of == value), level, weights)
            for value in sorted(set(slice_of.tolist()) - {""})
        }
        if len(parts) > 1:
            groups[name] = parts
    passes, failures = error_rates(labels, level, weights)
    categories = {
        why: _rate(part.right_failed, part.wrong_failed, 1.0, 1.0, level)
        for why, part in labels.categories.items()
    }
    return JudgeError(
        *(passes, failures, labels, alikeness(labels), groups, categories, level),
        weighted=strata.is_weighted,
    )


def error_rates(
    labels: LabelCounts, level: float = 0.95, weights: tuple[float, float] = (1.0, 1.0)
) -> tuple[ErrorRate, ErrorRate]:
    """False passes among wrong attempts, and false failures among right ones."""
    passed, failed = weights
    return (
        _rate(labels.wrong_passed, labels.wrong_failed, passed, failed, level),
        _rate(labels.right_failed, labels.right_passed, failed, passed, level),
    )


def _rate(
    errors: IntArray, others: IntArray, error_weight: float, other_weight: float, level: float
) -> ErrorRate:
    """The share of errors over tasks as clusters; sizes are labeled attempts, or their weights."""
    sizes = error_weight * errors + other_weight * others
    at = sizes > 0
    labeled = int((errors + others).sum())
    if not at.any():
        return ErrorRate(0, labeled, None, 0.0, 1.0)
    size = sizes[at] / sizes[at].sum() * labeled  # on the scale of attempts
    means = np.round(error_weight * errors[at] / sizes[at], 12)
    order = np.lexsort((size, means))
    groups = Clusters(means[None, order], size[order], float((size**2).sum() / size.sum()))
    interval = gaffke_groups(groups, level=level)
    return ErrorRate(
        int(errors.sum()),
        labeled,
        float(interval.points[0]),
        float(interval.lows[0]),
        float(interval.highs[0]),
    )


def alikeness(labels: LabelCounts) -> Alikeness:
    """Test whether errors are spread over tasks as if at random, given the labels of each task.

    The statistic is the number of pairs of errors of one kind at the same task, in units of its
    deviation, both kinds added; the p-value is that of random spreads with the same totals.
    """
    rng = np.random.default_rng(_SEED)
    statistic, drawn = 0.0, np.zeros(_DRAWS)
    pairs_seen, expected = 0, 0.0
    is_tested = False
    for errors, attempts in (
        (labels.right_failed, labels.right),
        (labels.wrong_passed, labels.wrong),
    ):
        count, total = int(errors.sum()), int(attempts.sum())
        if count < 2 or total <= count or attempts.max(initial=0) < 2:
            continue
        draws = rng.multivariate_hypergeometric(attempts, count, size=_DRAWS)
        pairs = _pairs(draws)
        mean, deviation = float(pairs.mean()), float(pairs.std())
        if deviation == 0:
            continue
        is_tested = True
        seen = int(_pairs(errors[None])[0])
        pairs_seen, expected = pairs_seen + seen, expected + mean
        statistic += (seen - mean) / deviation
        drawn += (pairs - mean) / deviation
    if not is_tested:
        return Alikeness(None, pairs_seen, expected)
    p_value = (1 + int((drawn >= statistic - 1e-9).sum())) / (_DRAWS + 1)
    return Alikeness(p_value, pairs_seen, expected)


def _pairs(errors: IntArray) -> FloatArray:
    return np.asarray((errors * (errors - 1) / 2).sum(axis=-1), np.float64)


# -- weak spots

AGAIN = "the same answer"
"""The variant that changes nothing: what flips here is the judge's own noise."""


@dataclass(frozen=True, slots=True)
class CheckedAttempt:
    """An attempt judged again: whether it passed then, and now in each form.

    ``right`` is what people call it, where it is labeled.
    """

    id: str
    passed_then: bool
    verdicts: Mapping[str, bool]
    right: bool | None = None


@dataclass(frozen=True, slots=True)
class AnchorCheck(Plain):
    """Anchors of a run: how many verdicts changed, and how many were and are right."""

    anchors: int
    to_failed: int
    to_passed: int
    right_then: int
    right_now: int

    @classmethod
    def of(cls, anchors: Sequence[Anchor]) -> AnchorCheck:
        return cls(
            len(anchors),
            sum(one.passed_then and not one.passed_now for one in anchors),
            sum(one.passed_now and not one.passed_then for one in anchors),
            sum(one.passed_then == one.right for one in anchors),
            sum(one.passed_now == one.right for one in anchors),
        )


@dataclass(frozen=True, slots=True)
class VariantFlips(Plain):
    """Verdicts on one form of the answers against those on the answers as they are."""

    variant: str
    attempts: int
    to_failed: int
    to_passed: int
    """``attempts``, ``to_failed``, ``to_passed``: attempts judged in both forms, and flips in each
    direction.
    """
    rate: float
    low: float
    high: float
    """``rate``, ``low``, ``high``: the share of flips with Clopper and Pearson's interval."""


@dataclass(frozen=True, slots=True)
class JudgeCheck(Plain):
    """A check of a judge: flips by variant, and drift since the run."""

    run: str
    judge: str
    drift: VariantFlips
    """The same answers now, against the verdicts of the run."""
    variants: tuple[VariantFlips, ...]
    """Each changed form, against the same answers judged now."""
    anchors: int
    right_then: int
    right_now: int
    """``anchors``, ``right_then``, ``right_now``: labeled attempts among them, and how many the
    judge got right then and now.
    """
    skipped: int
    """Attempts that could not be judged again."""
    level: float


def summarize_check(
    run: str,
    judge: str,
    attempts: Sequence[CheckedAttempt],
    *,
    skipped: int = 0,
    level: float = 0.95,
) -> JudgeCheck:
    """Count the flips of all variants, and the drift."""
    now = [attempt for attempt in attempts if AGAIN in attempt.verdicts]
    drift = _flips(
        AGAIN, [(attempt.passed_then, attempt.verdicts[AGAIN]) for attempt in now], level
    )
    names = dict.fromkeys(name for attempt in now for name in attempt.verdicts if name != AGAIN)
    variants = tuple(
        _flips(
            name,
            [
                (attempt.verdicts[AGAIN], attempt.verdicts[name])
                for attempt in now
                if name in attempt.verdicts
            ],
            level,
        )
        for name in names
    )
    anchors = [attempt for attempt in now if attempt.right is not None]
    return JudgeCheck(
        run,
        judge,
        drift,
        variants,
        len(anchors),
        sum(attempt.passed_then == attempt.right for attempt in anchors),
        sum(attempt.verdicts[AGAIN] == attempt.right for attempt in anchors),
        skipped,
        level,
    )


def _flips(variant: str, pairs: Sequence[tuple[bool, bool]], level: float) -> VariantFlips:
    to_failed = sum(before and not after for before, after in pairs)
    to_passed = sum(after and not before for before, after in pairs)
    count, flips = len(pairs), to_failed + to_passed
    low, high = clopper_pearson(flips, count, level) if count else (0.0, 1.0)
    return VariantFlips(
        variant, count, to_failed, to_passed, flips / count if count else 0.0, low, high
    )
