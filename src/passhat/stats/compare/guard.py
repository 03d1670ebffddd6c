"""Whether two numbers are comparable at all: protocols and metrics, checked before computing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from passhat._display import counted
from passhat.errors import Hint, NotComparable
from passhat.protocol import Difference, Protocol
from passhat.stats.compare.pairing import Pairing
from passhat.stats.estimate.metrics import (
    Metric,
    OrderedMetric,
    PassAt,
    PassHat,
    Rate,
    ScoreMetric,
)
from passhat.stats.outcomes import Completion, Outcomes


@dataclass(frozen=True, slots=True)
class Agreement:
    """The known differences of two protocols, and the fields not recorded on both sides.

    ``differences`` is empty unless they were allowed. ``attempts`` is set if numbers of attempts
    differ, where the metrics allow that.
    """

    a: str
    b: str
    differences: tuple[Difference, ...]
    unverified: tuple[Difference, ...]
    attempts: Difference | None = None

    @property
    def attempts_text(self) -> str | None:
        """The consequence of different numbers of attempts for the comparison."""
        if self.attempts is None:
            return None
        return (
            f"attempts per task differ ({self.attempts.mine} against {self.attempts.theirs}): the "
            "metric is unbiased at any number that was chosen before the run"
        )

    def __str__(self) -> str:
        """The protocol digests, the differences, and the number of unverified fields."""
        parts = [f"protocol {self.a}" if self.a == self.b else f"protocols {self.a} and {self.b}"]
        if self.differences:
            parts.append(f"which differ in {', '.join(e.field for e in self.differences)}")
        if self.unverified:
            parts.append(f"{counted(len(self.unverified), 'field')} unverified")
        return ", ".join(parts)


def agree(
    a: Protocol, b: Protocol, pairing: Pairing, metrics: Sequence[Metric], *, allow: bool
) -> Agreement:
    """List the differences of two protocols; raise NotComparable unless they are allowed.

    Different numbers of attempts are unfair to metrics that look at the order of attempts. Those of
    counts are unbiased at every n of at least k: an agent gains nothing by more attempts.
    """
    entries = [
        entry
        for entry in a.differences(b)
        if entry.field != "attempts" or not pairing.equal_attempts()
    ]
    entries = [_attempts_seen(entry, pairing) for entry in entries]
    entries += find_score_difference(pairing.a, pairing.b, metrics)
    unequal = next((entry for entry in entries if entry.field == "attempts"), None)
    if unequal is not None and not any(isinstance(word, OrderedMetric) for word in metrics):
        entries.remove(unequal)
        unequal = Difference("attempts", _per_task(pairing.a), _per_task(pairing.b), known=True)
    else:
        unequal = None
    known_differences = tuple(entry for entry in entries if entry.known)
    if known_differences and not allow:
        name_a, name_b = pairing.names
        text = "; ".join(map(str, known_differences))
        raise NotComparable(
            f"{name_a} and {name_b} were not run under the same protocol: {text}.",
            differences=[entry.field for entry in known_differences],
            hint=Hint(
                "A lift would mix the agents with these. Run both alike, or compare them all the "
                "same with {allow}; the result then lists every difference.",
                allow=True,
            ),
        )
    unknown_differences = tuple(entry for entry in entries if not entry.known)
    return Agreement(a.digest, b.digest, known_differences, unknown_differences, unequal)


def find_score_difference(
    a: Outcomes, b: Outcomes, metrics: Sequence[Metric]
) -> tuple[Difference, ...]:
    """A difference if one side has scores and the other verdicts only, and a metric needs scores.

    The mean of verdicts is a pass rate: it gives no credit for a part, and so another measure.
    """
    graded = [side.scores is not None for side in (a, b)]
    # Scores that were not kept are refused by their own reason where a metric needs them.
    sides = [
        has_scores or side.binary_scores or bool(side.unscored)
        for has_scores, side in zip(graded, (a, b), strict=True)
    ]
    if all(sides) or not any(graded) or not any(isinstance(word, ScoreMetric) for word in metrics):
        return ()
    mine, theirs = ("scores" if has_scores else "verdicts only" for has_scores in sides)
    return (Difference("grading", mine, theirs, known=True),)


def _attempts_seen(entry: Difference, pairing: Pairing) -> Difference:
    """The entry with the numbers of attempts in the outcomes, recorded or not."""
    if entry.field != "attempts" or entry.known:
        return entry
    return Difference("attempts", _per_task(pairing.a), _per_task(pairing.b), known=True)


def _per_task(outcomes: Outcomes) -> str:
    per_task, _ = outcomes.counts(Completion.AS_FAILED)
    low, high = int(per_task.min()), int(per_task.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def same_metric(a: Metric, b: Metric) -> None:
    """Refuse to compare two different quantities, with a suggestion."""
    if a.name == b.name or (_is_rate(a) and _is_rate(b)) or (_is_mean(a) and _is_mean(b)):
        return
    tries = (
        f"{b.k} against {a.k} attempts per task"
        if a.k != b.k
        else f"the same {a.k} attempts, but another question asked of them"
    )
    raise NotComparable(
        f"{a} of A and {b} of B are different quantities ({tries}): their difference says nothing "
        "about the agents. A reviewer would ask for three corrections: (1) the same metric and k, "
        "with the same n, tasks, tests and decoding, for both; (2) the paired lift per task with "
        "its interval, not two numbers side by side; (3) a word on whether the larger budget is "
        "acceptable: what the extra attempts cost, and how the right one is picked.",
        differences=["metric"],
        hint=Hint("Ask both for the same: {metric}.", metric=str(a)),
    )


def _is_rate(metric: Metric) -> bool:
    return metric.k == 1 and isinstance(metric, PassAt | PassHat | Rate)


def _is_mean(metric: Metric) -> bool:
    return metric.k == 1 and isinstance(metric, ScoreMetric)
