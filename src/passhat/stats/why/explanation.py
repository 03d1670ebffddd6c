"""Events that go with failure over tasks, and the decisive step within one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from passhat._serialize import Plain
from passhat.errors import InvalidValue
from passhat.stats.outcomes import Failures
from passhat.stats.why.events import Event, Occurrence, Trace, list_events
from passhat.stats.why.stratified import Stratified, Stratum, choose_testable, correct_discrete
from passhat.stats.why.tree import (
    Branch,
    ClosestPair,
    DecisiveStep,
    build_tree,
    find_closest_pair,
    find_decisive_step,
    smallest_p_value,
)

_FEWEST_TASKS = 2
_NO_FAILURES = Failures((), 0)


@dataclass(frozen=True, slots=True)
class EventFinding(Plain):
    """An event that was tested."""

    event: Event
    same: tuple[Event, ...]
    opposite: tuple[Event, ...]
    """``same``, ``opposite``: events of exactly the same attempts, and of exactly all others."""
    tasks: int
    """Tasks where it could be seen: they passed and failed, with the event and without."""
    attempts: int
    failed: int
    """``attempts``, ``failed``: attempts with the event at these tasks, and those of them that
    failed.
    """
    others: int
    others_failed: int
    """``others``, ``others_failed``: attempts without it."""
    odds_ratio: float | None
    low: float
    high: float | None
    """``odds_ratio``, ``low``, ``high``: how much larger the odds to fail are with the event, with
    its exact interval; ``None`` is without bound.
    """
    p_value: float
    p_holm: float
    """``p_value``, ``p_holm``: of the exact conditional test, and corrected for all events that
    were tested.
    """
    is_shown: bool
    """Whether the corrected p-value is small enough."""

    @property
    def goes_with_failure(self) -> bool:
        return self.odds_ratio is None or self.odds_ratio > 1


@dataclass(frozen=True, slots=True)
class TaskWhy(Plain):
    """One task: the tree of its calls, the step that decides, and the closest pair.

    ``passed`` and ``failed`` count all judged attempts, ``without_conversation`` those of them that
    are left out of the comparison.
    ``can_show`` is whether any step could be shown to be decisive with these passes and failures.
    """

    task: str
    passed: int
    failed: int
    missing: int
    without_calls: int
    without_conversation: int
    tree: Branch | None
    decisive: DecisiveStep | None
    can_show: bool
    pair: ClosestPair | None
    failures: Failures = _NO_FAILURES


@dataclass(frozen=True, slots=True)
class Why(Plain):
    """Events that go with failure in a run, and one of its tasks."""

    SCHEMA: ClassVar[str] = "passhat.why/1"

    run: str
    """Name of the run."""
    tasks: int
    attempts: int
    passed: int
    failed: int
    missing: int
    """``tasks``, ``attempts``, ``passed``, ``failed``, ``missing``: counts over the run."""
    without_conversation: int
    """Judged attempts of which no conversation is kept; they are left out."""
    with_calls: int
    """Attempts that called a tool."""
    mixed: tuple[str, ...]
    """Tasks that passed and failed, of attempts with a conversation: the only ones that tell."""
    level: float
    """Confidence of intervals; one minus it is the chance to name any event where none matters."""
    events: tuple[EventFinding, ...]
    """Events that were tested, the clearest first."""
    task: TaskWhy | None = None
    """The task that was asked about."""
    failures: Failures = _NO_FAILURES
    """The failed attempts by cause: an exception or a cut answer needs no comparison."""

    @property
    def shown(self) -> tuple[EventFinding, ...]:
        """The events that chance does not explain."""
        return tuple(finding for finding in self.events if finding.is_shown)


def explain_failures(traces: Sequence[Trace], level: float = 0.95) -> tuple[EventFinding, ...]:
    """Events that go with failure or with passing, tested within tasks; the clearest first.

    Every attempt is compared with the other attempts at its own task, so that hard tasks do not
    make their events look guilty. Events of exactly the same attempts are one test, and events
    that no verdicts could show are not tested.
    """
    if not 0 < level < 1:
        raise InvalidValue(f"level should be between 0 and 1, not {level}.")
    places: dict[str, list[int]] = defaultdict(list)
    for place, trace in enumerate(traces):
        places[trace.task].append(place)
    failed = frozenset(place for place, trace in enumerate(traces) if not trace.passed)
    mixed = [group for group in places.values() if 0 < len(failed.intersection(group)) < len(group)]
    if len(mixed) < _FEWEST_TASKS:
        return ()
    groups = _merge(list_events(traces), mixed)
    tests = [(group, _strata(group, failed, mixed)) for group in groups]
    tests = [(group, strata) for group, strata in tests if len(strata) >= _FEWEST_TASKS]
    stratum_tests = [Stratified(strata) for _, strata in tests]
    testable = choose_testable([test.smallest_p_value for test in stratum_tests], 1 - level)
    p_holms = correct_discrete([stratum_tests[place] for place in testable])
    findings = [
        _finding(tests[place][0], stratum_tests[place], p_holm, level)
        for place, p_holm in zip(testable, p_holms, strict=True)
    ]
    return tuple(sorted(findings, key=lambda finding: finding.p_value))


@dataclass(frozen=True, slots=True)
class _EventGroup:
    """Events that part the attempts alike; ``others`` are the places without them."""

    events: tuple[Event, ...]
    opposite: tuple[Event, ...]
    places: frozenset[int]
    others: frozenset[int]


def _merge(events: Mapping[Event, Occurrence], mixed: Sequence[Sequence[int]]) -> list[_EventGroup]:
    """Events that split the attempts of every mixed task alike, together."""
    groups: dict[tuple[frozenset[int], frozenset[int]], list[list[Event]]] = {}
    for event, occurrence in events.items():
        one: set[int] = set()
        other: set[int] = set()
        for group in mixed:
            inside = occurrence.happened.intersection(group)
            outside = occurrence.scope.intersection(group) - inside
            if inside and outside:  # elsewhere it tells nothing
                one |= inside
                other |= outside
        sides = frozenset(one), frozenset(other)
        if one and (twin := groups.get(sides[::-1])) is not None:
            twin[1].append(event)
        elif one:
            groups.setdefault(sides, [[], []])[0].append(event)
    return [
        _EventGroup(tuple(same), tuple(opposite), *sides)
        for sides, (same, opposite) in groups.items()
    ]


def _strata(
    group: _EventGroup, failed: frozenset[int], mixed: Sequence[Sequence[int]]
) -> tuple[Stratum, ...]:
    strata = []
    for task in mixed:
        happened, others = group.places.intersection(task), group.others.intersection(task)
        strata.append(
            Stratum(
                len(happened) + len(others),
                len(failed & happened) + len(failed & others),
                len(happened),
                len(failed & happened),
            )
        )
    return tuple(stratum for stratum in strata if stratum.is_informative)


def _finding(group: _EventGroup, test: Stratified, p_holm: float, level: float) -> EventFinding:
    ratio = test.odds_ratio
    if group.opposite and ratio is not None and ratio < 1:
        # Both sides have a name: the one that fails more often is the one to look at.
        group = _EventGroup(group.opposite, group.events, group.others, group.places)
        test = Stratified(tuple(stratum.without_event() for stratum in test.strata))
    with_event = sum(stratum.with_event for stratum in test.strata)
    low, high = test.interval(level)
    return EventFinding(
        group.events[0],
        group.events[1:],
        group.opposite,
        len(test.strata),
        with_event,
        test.total,
        sum(stratum.attempts for stratum in test.strata) - with_event,
        sum(stratum.failed for stratum in test.strata) - test.total,
        test.odds_ratio,
        low,
        high,
        test.p_value,
        p_holm,
        p_holm <= 1 - level,
    )


def explain_task(
    task: str,
    traces: Sequence[Trace],
    *,
    level: float = 0.95,
    missing: int = 0,
    silent_passed: int = 0,
    silent_failed: int = 0,
    failures: Failures = _NO_FAILURES,
) -> TaskWhy:
    """The tree of a task's calls, the decisive step where one is shown, and the closest pair.

    ``silent_passed`` and ``silent_failed`` are judged attempts without a conversation.
    """
    failed = sum(not trace.passed for trace in traces)
    has_calls = any(trace.calls for trace in traces)
    return TaskWhy(
        task,
        len(traces) - failed + silent_passed,
        failed + silent_failed,
        missing,
        sum(not trace.calls for trace in traces),
        silent_passed + silent_failed,
        build_tree(traces) if has_calls else None,
        find_decisive_step(traces, 1 - level) if has_calls else None,
        bool(traces) and smallest_p_value(len(traces), failed) <= 1 - level,
        find_closest_pair(traces),
        failures,
    )
