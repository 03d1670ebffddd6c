"""Tool calls of attempts, and the events in which passes and failures are compared."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from types import MappingProxyType

from passhat._serialize import Plain

_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Step(Plain):
    """A tool call of an attempt; ``failed`` is whether the tool returned an error."""

    name: str
    arguments: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    failed: bool = False

    @property
    def label(self) -> str:
        """The tool, and whether it returned an error."""
        return f"{self.name} (error)" if self.failed else self.name

    @property
    def key(self) -> str:
        """Equal for two calls of a tool with the same arguments."""
        return json.dumps([self.name, self.arguments], sort_keys=True, default=str)

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value_text(value)}" for name, value in self.arguments.items())
        return f"{self.name}({values}){' → error' if self.failed else ''}"


def argument_text(value: object) -> str:
    """An argument as JSON; equal for equal values."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def value_text(value: object) -> str:
    """An argument as JSON, cut where it is long."""
    text = argument_text(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


@dataclass(frozen=True, slots=True)
class Trace:
    """A judged attempt with its tool calls.

    ``messages`` counts texts of the agent; ``cut`` is whether an answer ended at the token limit,
    ``None`` where that is not recorded.
    """

    task: str
    number: int
    passed: bool
    calls: tuple[Step, ...] = ()
    messages: int = 0
    cut: bool | None = None

    @property
    def id(self) -> str:
        return f"{self.task}#{self.number}"


# -- events ---------------------------------------------------------------------------------------

_MOST_VALUES = 8
"""An argument with more values over the run is an id or a text, and no event."""
_LONGEST_VALUE = 40
_MOST_ORDERED_TOOLS = 12


class EventKind(StrEnum):
    """Kinds of events, those that say most about an attempt in few words first."""

    CALLED = "called"
    FIRST = "first"
    LAST = "last"
    ERROR = "error"
    REPEATED = "repeated"
    VALUE = "value"
    BEFORE = "before"
    ANY_ERROR = "any_error"
    SAME_CALL = "same_call"
    NO_CALL = "no_call"
    MANY_CALLS = "many_calls"
    MANY_MESSAGES = "many_messages"
    CUT = "cut"


_TEXTS = {
    EventKind.CALLED: "calls {tool}",
    EventKind.FIRST: "calls {tool} first",
    EventKind.LAST: "calls {tool} last",
    EventKind.ERROR: "{tool} returns an error",
    EventKind.REPEATED: "calls {tool} more than once",
    EventKind.VALUE: "calls {tool} with {detail}",
    EventKind.BEFORE: "calls {tool} before {detail}",
    EventKind.ANY_ERROR: "a tool returns an error",
    EventKind.SAME_CALL: "makes the same call twice",
    EventKind.NO_CALL: "calls no tool",
    EventKind.MANY_CALLS: "makes more calls than half of the task's attempts",
    EventKind.MANY_MESSAGES: "writes more messages than half of the task's attempts",
    EventKind.CUT: "an answer is cut at the token limit",
}


@dataclass(frozen=True, slots=True)
class Event(Plain):
    """Something that an attempt did or did not; ``detail`` is the argument or the second tool."""

    WRITTEN = ("kind", "tool", "detail", "text")

    kind: EventKind
    tool: str = ""
    detail: str = ""

    @property
    def reverse(self) -> Event:
        """The event with its two tools the other way round."""
        return Event(self.kind, self.detail, self.tool)

    @property
    def text(self) -> str:
        return _TEXTS[self.kind].format(tool=self.tool, detail=self.detail)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Places of the attempts in which an event happened, and of those in which it could.

    Two tools have an order only where both are called; every other event could happen anywhere.
    """

    happened: frozenset[int]
    scope: frozenset[int]


def list_events(traces: Sequence[Trace]) -> dict[Event, Occurrence]:
    """Every event of the attempts with its places, in a fixed order."""
    medians = _medians(traces)
    values = _find_value_arguments(traces)
    counts = Counter(name for trace in traces for name in {step.name for step in trace.calls})
    common = {name for name, _ in counts.most_common(_MOST_ORDERED_TOOLS)}
    places_by_event: dict[Event, set[int]] = defaultdict(set)
    for place, trace in enumerate(traces):
        for event in {
            *_call_events(trace),
            *_value_events(trace, values),
            *_order_events(trace, common),
            *_whole_events(trace, *medians[trace.task]),
        }:
            places_by_event[event].add(place)
    everywhere = frozenset(range(len(traces)))
    kinds = list(EventKind)
    order = sorted(
        places_by_event, key=lambda event: (kinds.index(event.kind), event.tool, event.detail)
    )
    occurrences = {}
    for event in order:
        scope = everywhere
        if event.kind is EventKind.BEFORE:
            scope = frozenset(places_by_event[event] | places_by_event.get(event.reverse, set()))
        if event.kind is not EventKind.BEFORE or len(places_by_event[event]) < len(scope):
            occurrences[event] = Occurrence(frozenset(places_by_event[event]), scope)
    return occurrences


def _medians(traces: Sequence[Trace]) -> dict[str, tuple[float, float]]:
    """The median number of calls and of messages of each task."""
    by_task: dict[str, list[Trace]] = defaultdict(list)
    for trace in traces:
        by_task[trace.task].append(trace)
    return {
        task: (
            median(len(trace.calls) for trace in group),
            median(trace.messages for trace in group),
        )
        for task, group in by_task.items()
    }


def _find_value_arguments(traces: Sequence[Trace]) -> frozenset[tuple[str, str]]:
    """(tool, argument) pairs that take few different short values over the whole run."""
    values: dict[tuple[str, str], set[str]] = defaultdict(set)
    for trace in traces:
        for step in trace.calls:
            for name, value in step.arguments.items():
                texts = values[step.name, name]
                if len(texts) <= _MOST_VALUES:
                    is_short = isinstance(value, bool | int | float | str | None)
                    text = value_text(value) if is_short else ""
                    # A value of another shape makes the argument no event at all.
                    fits = text and len(text) <= _LONGEST_VALUE
                    texts |= {text} if fits else set(map(str, range(_MOST_VALUES + 1)))
    return frozenset(pair for pair, texts in values.items() if len(texts) <= _MOST_VALUES)


def _call_events(trace: Trace) -> Iterator[Event]:
    counts = Counter(step.name for step in trace.calls)
    for name, count in counts.items():
        yield Event(EventKind.CALLED, name)
        if count > 1:
            yield Event(EventKind.REPEATED, name)
    if trace.calls:
        yield Event(EventKind.FIRST, trace.calls[0].name)
        yield Event(EventKind.LAST, trace.calls[-1].name)
    for name in {step.name for step in trace.calls if step.failed}:
        yield Event(EventKind.ERROR, name)


def _value_events(trace: Trace, values: frozenset[tuple[str, str]]) -> Iterator[Event]:
    for step in trace.calls:
        for name, value in step.arguments.items():
            if (step.name, name) in values:
                yield Event(EventKind.VALUE, step.name, f"{name}={value_text(value)}")


def _order_events(trace: Trace, tools: set[str]) -> Iterator[Event]:
    """First calls of two tools in their order."""
    first: Mapping[str, int] = {
        name: place
        for place, name in reversed(list(enumerate(step.name for step in trace.calls)))
        if name in tools
    }
    for one, at in first.items():
        for other, later in first.items():
            if at < later:
                yield Event(EventKind.BEFORE, one, other)


def _whole_events(trace: Trace, calls: float, messages: float) -> Iterator[Event]:
    if any(step.failed for step in trace.calls):
        yield Event(EventKind.ANY_ERROR)
    keys = [step.key for step in trace.calls]
    if len(set(keys)) < len(keys):
        yield Event(EventKind.SAME_CALL)
    if not trace.calls:
        yield Event(EventKind.NO_CALL)
    if len(trace.calls) > calls:
        yield Event(EventKind.MANY_CALLS)
    if trace.messages > messages:
        yield Event(EventKind.MANY_MESSAGES)
    if trace.cut:
        yield Event(EventKind.CUT)
