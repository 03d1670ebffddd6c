"""What is said before the first attempt is made, while nothing is spent yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from passhat.agents import Agent
    from passhat.protocol import Protocol
    from passhat.runner import RunPlan
    from passhat.runner.preview import Foresight, Range
    from passhat.store import Store, StoredRun

__all__ = ["say_before"]

_FINGERPRINTS = (("suite_fingerprint", "other tasks"), ("tests_fingerprint", "another judge"))


_FEW, _MANY = (500, 50), (4_000, 500)
"""Tokens in and out of one call that are assumed while none was seen."""


def say_before(plan: RunPlan, store: Store, baseline: str | None = None) -> None:
    """Warnings, and what the run will need; on standard error."""
    from passhat.runner.run_spec import left_to_make
    from passhat.suites.jsonl import QuestionSuite

    runs = store.runs()
    left = left_to_make(plan, store)
    if not left:
        return
    if plan.temperature == 0 and plan.attempts > 1:
        click.echo("note: temperature 0 usually makes all attempts alike", err=True)
    if isinstance(plan.suite, QuestionSuite) and plan.suite.judge_words:
        click.echo(
            f"note: the judge is a model ({', '.join(plan.suite.judge_words)}), and its verdicts "
            "have errors of their own; check a sample with passhat audit",
            err=True,
        )
    for line in _changes(plan, store, runs, baseline):
        click.echo(f"note: {line}", err=True)
    from passhat.runner.preview import foresee

    pilot = store.measures(plan.agent.name, plan.suite.name)
    price = _price_per_call(plan.agent)
    steps = 1 if plan.suite.single_turn else plan.limits.max_steps
    needs = foresee(left, plan.jobs, steps, pilot, price)
    source = plan.agent.price.source if plan.agent.price is not None else ""
    line = _needs_line(needs, plan.limits.attempt_seconds * -(-left // plan.jobs), source)
    click.echo(f"up to {line}" if plan.stop_when else line, err=True)


def _price_per_call(agent: Agent) -> Range | None:
    """What a call may cost, for an agent that knows its ``price`` in dollars per million tokens."""
    from passhat.runner.preview import Range

    price = agent.price
    if price is None:
        return None
    low, high = (
        (inputs * price.input + outputs * price.output) / 1_000_000
        for inputs, outputs in (_FEW, _MANY)
    )
    return Range(low, high)


def _changes(
    plan: RunPlan, store: Store, runs: Sequence[StoredRun], baseline: str | None
) -> Iterator[str]:
    """Where the suite is not the one that the baseline, or the last such run, was made with."""
    earlier = store.find(baseline) if baseline else _last_like(plan, runs)
    if earlier is None:
        return
    mine, theirs = plan.record.protocol, store.protocol(earlier.id)
    if baseline and theirs.suite != mine.suite:
        yield f"run {earlier.id} is about another suite, {theirs.suite}"
        return
    parts = [what for field, what in _FINGERPRINTS if _differ(mine, theirs, field)]
    if parts:
        yield (
            f"{plan.suite.name} changed since run {earlier.id} ({earlier.started}): "
            f"it has {' and '.join(parts)}, so the two cannot be compared"
        )
    elif baseline and _differ(mine, theirs, "suite_fingerprint", unknown=True):
        yield f"run {earlier.id} does not record which tasks {plan.suite.name} had"


def _differ(mine: Protocol, theirs: Protocol, field: str, *, unknown: bool = False) -> bool:
    a, b = getattr(mine, field), getattr(theirs, field)
    return (a is None or b is None) if unknown else (a != b and None not in (a, b))


def _last_like(plan: RunPlan, runs: Sequence[StoredRun]) -> StoredRun | None:
    """The newest run of this agent at this suite; none when this very run is there already."""
    if any(run.id == plan.record.id for run in runs):
        return None
    like = (plan.agent.name, plan.suite.name)
    return next((run for run in reversed(runs) if (run.agent, run.suite) == like), None)


def _needs_line(needs: Foresight, at_most: float, source: str = "") -> str:
    from passhat._display import counted, duration, duration_range, money_range

    what = f"{counted(needs.attempts, 'attempt')} to make"
    if needs.seconds is not None:
        parts = [f"about {duration_range(needs.seconds.low, needs.seconds.high)}"]
    else:
        parts = [f"time unknown until the first are done, at most {duration(at_most)}"]
    low, high = round(needs.calls.low), round(needs.calls.high)
    parts.append(f"{low:,} to {high:,} calls" if low != high else f"{low:,} calls")
    if needs.cost is not None:
        assumed = f" at {_FEW[0]:,} to {_MANY[0]:,} tokens a call" if needs.by_price else ""
        assumed += f" (prices of {source})" if assumed and source else ""
        parts.append(f"{money_range(needs.cost.low, needs.cost.high)}{assumed}")
    if needs.pilot:
        parts.append(f"judging by {counted(needs.pilot, 'earlier attempt')}")
    return f"{what}: {', '.join(parts)}"
