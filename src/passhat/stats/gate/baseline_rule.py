"""The lift of a run over the run that ``base`` stands for, at a gate's one-sided level."""

from __future__ import annotations

from dataclasses import dataclass

from passhat._display import counted
from passhat.stats.compare.guard import agree
from passhat.stats.compare.lift import LiftSample, hull
from passhat.stats.compare.pairing import pair
from passhat.stats.estimate.metrics import Metric
from passhat.stats.outcomes import Run
from passhat.stats.terms import Terms

__all__ = ["Lift", "lift_over_base"]


@dataclass(frozen=True, slots=True)
class Lift:
    """How much better the run is than base on the tasks of both, with one-sided bounds."""

    value: float
    low: float
    high: float
    tasks: int
    attempts: int
    notes: tuple[str, ...]


def lift_over_base(run: Run, base: Run, metric: Metric, terms: Terms) -> Lift:
    """The paired lift; each bound alone has the level of the terms.

    Protocols that are known to differ are refused unless that is allowed. Under the policy
    ``bound`` the ends hold however the missing attempts of both runs would have ended.
    """
    whole = pair(base.outcomes, run.outcomes, (base.name, run.name))
    agreement = agree(base.protocol, run.protocol, whole, allow=terms.allow)
    pairing = whole.supporting([metric], terms.missing, drop_short=terms.drop_short)
    found = pairing.differences(metric, terms.missing)
    samples = [LiftSample.of(d) for d in found.fills]
    ends = hull(sample.interval(1 - terms.level) for sample in samples)
    notes = []
    if agreement.differences:
        listed = "; ".join(map(str, agreement.differences))
        notes.append(f"compared although they differ: {listed}")
    if whole.only_a or whole.only_b:
        notes.append(
            f"{counted(len(whole), 'task')} in both runs; left out: {len(whole.only_b):,} only in "
            f"the run, {len(whole.only_a):,} only in base"
        )
    attempts = pairing.a.attempts + pairing.b.attempts
    return Lift(samples[0].mean, ends.low, ends.high, len(pairing), attempts, tuple(notes))
