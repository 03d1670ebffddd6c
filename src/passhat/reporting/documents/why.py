"""Why the same task passes and fails: the events, the tree of calls, and the closest attempts."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from passhat._display import counted, figure, number
from passhat.reporting.document import (
    Block,
    Document,
    Finding,
    Heading,
    Level,
    Mark,
    NextStep,
    Note,
    Outline,
    OutlineItem,
    Section,
    Sentence,
    Table,
)
from passhat.reporting.documents.causes import broken_lines
from passhat.stats.why import (
    END,
    Branch,
    ClosestPair,
    DecisiveStep,
    Event,
    EventFinding,
    Step,
    TaskWhy,
    Why,
)

Link = Callable[[int], str]
"""The address of an attempt at the task, by its number."""

_MOST_SHOWN = 6
_MOST_SAME = 3
_TOGETHER_ROWS = 3
_APART_ROWS = 4
_SMALLEST_P = 0.001


def why_document(why: Why, *, subject: str = "", link: Link | None = None) -> Document:
    """Build the document: over all tasks, then within the task that was asked about.

    ``subject`` is the word for the run in the next command; ``link`` makes branches lead to
    attempts.
    """
    sections = [Section("events", tuple(_events(why, subject)))]
    if why.task is not None:
        sections.append(Section("task", tuple(_task(why.task, why.level, link))))
    return Document(why.run, tuple(sections))


# -- over all tasks -------------------------------------------------------------------------------


def _events(why: Why, subject: str) -> Iterator[Block]:
    counts = f"{counted(why.tasks, 'task')}, {counted(why.attempts, 'attempt')}"
    yield Heading(f"{why.run}: what goes with failure", counts)
    yield from broken_lines(why.failures)
    reason = _nothing_to_compare(why)
    if reason:
        yield Sentence(reason, "lead")
    elif why.tasks > 1:
        yield from _findings(why)
    left_out = _left_out(why.missing, why.without_conversation)
    if left_out and why.without_conversation < why.passed + why.failed:
        yield Note(left_out)
    if not reason and why.task is None:
        command = shlex.join(["passhat", "why", subject or why.run, why.mixed[0]])
        yield NextStep(f"look inside a task: {command}")


def _nothing_to_compare(why: Why) -> str:
    """Why there is nothing to compare; empty where there is."""
    judged = why.passed + why.failed
    if not judged:
        return "No attempt has a verdict, so there is nothing to compare."
    if why.without_conversation == judged:
        return (
            "No conversation of these attempts is kept, so there is nothing to compare. A store "
            "keeps them, and logs of inspect, tau2-bench, tau-bench and promptfoo carry them."
        )
    everything = _all_of(judged, " with a verdict" if why.missing else "")
    if not why.failed:
        return f"{everything} passed: there is no failure to explain."
    if not why.passed:
        return f"{everything} failed: there is no passing attempt to compare with."
    if not why.mixed:
        return (
            f"None of the {why.tasks:,} tasks both passed and failed. What goes with failure shows "
            "only where attempts at the same task end differently."
        )
    return ""


def _all_of(count: int, which: str) -> str:
    return f"The only attempt{which}" if count == 1 else f"All {count:,} attempts{which}"


def _findings(why: Why) -> Iterator[Block]:
    mixed = counted(len(why.mixed), "task that both passed and failed", _MIXED)
    if len(why.mixed) == 1:
        yield Sentence(
            "Only one task both passed and failed; what goes with failure is compared over at "
            "least two.",
            "lead",
        )
        return
    if not why.events:
        yield Sentence(
            f"Nothing is shown to go with failure: nothing that attempts did at the {mixed} "
            "happened often enough to be tested.",
            "lead",
        )
        return
    tested = counted(len(why.events), "event")
    if not why.shown:
        yield Sentence(
            f"Nothing is shown to go with failure: {tested} tested at the {mixed}, none beyond "
            "chance.",
            "lead",
        )
    for place, finding in enumerate(why.shown):
        level = Level.BOTH if place < _MOST_SHOWN else Level.FULL
        yield _finding(finding, why.level, level)
    hidden = len(why.shown) - _MOST_SHOWN
    if hidden > 0:
        yield Note(f"and {hidden:,} more; --full lists them", level=Level.SHORT)
    yield Table(
        ("event", "tasks", "fail with", "without", "odds", "interval", "p, Holm"),
        tuple(_row(finding) for finding in why.events),
        caption=f"{tested} tested: failures among attempts with and without, odds to fail",
        level=Level.FULL,
    )
    yield Note(
        f"Attempts are compared with others at the same task ({mixed}). An event that goes with "
        "failure need not be its cause."
    )


_MIXED = "tasks that both passed and failed"


def _finding(finding: EventFinding, level: float, shown_at: Level) -> Finding:
    fails = finding.goes_with_failure
    low, high = finding.low, finding.high
    ratio = finding.odds_ratio
    if not fails:
        ratio = None if not ratio else 1 / ratio
        low, high = (0.0 if high is None else 1 / high), (1 / low if low else None)
    word = "fail" if fails else "pass"
    interval = f"at least {_odds(low)}" if high is None else f"{_odds(low)} to {_odds(high)}"
    times = "" if ratio is None else f" {_odds(ratio)} times as high"
    confidence = f"{100 * level:g}%"
    odds = f"odds to {word}{times} ({interval}, {confidence})"
    if ratio is None:
        odds = f"odds to {word} {interval} times as high ({confidence})"
    where = counted(finding.tasks, "task")
    return Finding(
        "✗" if fails else "✓",
        "goes with failure" if fails else "goes with passing",
        finding.event.text,
        (
            f"{finding.failed:,} of {counted(finding.attempts, 'attempt')} with it fail, "
            f"{finding.others_failed:,} of {finding.others:,} without it, at {where}",
            f"{odds}, {_p_text(finding.p_holm)} after Holm",
            *(_equal_events("the same attempts", finding.same)),
            *(_equal_events("exactly the other attempts", finding.opposite)),
        ),
        level=shown_at,
    )


def _equal_events(title: str, events: Sequence[Event]) -> Iterator[str]:
    if events:
        rest = len(events) - _MOST_SAME
        more = f" and {rest:,} more" if rest > 0 else ""
        yield f"{title}: {'; '.join(event.text for event in events[:_MOST_SAME])}{more}"


def _row(finding: EventFinding) -> tuple[str, ...]:
    interval = f"{_odds(finding.low)} up"
    if finding.high is not None:
        interval = f"{_odds(finding.low)} to {_odds(finding.high)}"
    return (
        finding.event.text,
        f"{finding.tasks:,}",
        f"{finding.failed:,}/{finding.attempts:,}",
        f"{finding.others_failed:,}/{finding.others:,}",
        "∞" if finding.odds_ratio is None else _odds(finding.odds_ratio),
        interval,
        number(finding.p_holm),
    )


def _odds(value: float) -> str:
    return figure(value, 2) if value < 100 else f"{value:,.0f}"


def _p_text(p_value: float) -> str:
    return f"p {f'below {_SMALLEST_P}' if p_value < _SMALLEST_P else number(p_value)}"


def _left_out(missing: int, without_conversation: int) -> str:
    parts = [counted(missing, "missing attempt")] if missing else []
    if without_conversation:
        parts.append(f"{counted(without_conversation, 'attempt')} without a conversation")
    return f"Left out: {' and '.join(parts)}." if parts else ""


# -- within a task --------------------------------------------------------------------------------


def _task(task: TaskWhy, level: float, link: Link | None) -> Iterator[Block]:
    judged = task.passed + task.failed
    yield Heading(task.task, f"{task.passed:,} of {judged:,} passed" if judged else "none judged")
    yield from broken_lines(task.failures)
    if task.tree is None:
        yield Sentence(_no_tree(task), "lead")
        return
    yield Sentence(_decision(task, task.tree, level), "lead")
    yield Heading("Tool calls, attempt by attempt", rank=3)
    yield Outline((_outline(task.tree, task.decisive, (), link),))
    if left_out := _left_out(task.missing, task.without_conversation):
        yield Note(left_out)
    if task.pair is not None:
        yield from _pair(task.pair)


def _no_tree(task: TaskWhy) -> str:
    if task.passed + task.failed == task.without_conversation:
        return "No judged attempt at this task has a conversation, so there is nothing to compare."
    return "No attempt at this task called a tool, so there are no calls to compare."


def _decision(task: TaskWhy, tree: Branch, level: float) -> str:
    """The decisive step, or why none is shown; the tree has the attempts with a conversation."""
    decisive = task.decisive
    if decisive is not None:
        return _decisive_sentence(decisive)
    passed, failed = len(tree.passed), len(tree.numbers) - len(tree.passed)
    every = "Every attempt with a conversation" if task.without_conversation else "Every attempt"
    if not failed:
        return f"{every} passed: there is no failure to explain."
    if not passed:
        return f"{every} failed: there is no passing attempt to compare with."
    if not task.can_show:
        passes, failures = counted(passed, "pass", "passes"), counted(failed, "failure")
        return f"{passes} and {failures} are too few to show a decisive step."
    chance = f"{100 * (1 - level):g}%"
    return (
        "No step is shown to decide: verdicts dealt out at random separate the attempts as well in "
        f"more than {chance} of cases."
    )


def _decisive_sentence(decisive: DecisiveStep) -> str:
    size, others = len(decisive.numbers), len(decisive.others)
    does = "end there" if decisive.step == END else f"call {decisive.step}"
    where = "" if decisive.after is None else _after_text(decisive.after)
    rest = "others" if decisive.after is None else "others that came as far"
    return (
        f"The decisive step: of the {counted(size, 'attempt')} that {does}{where}, "
        f"{decisive.failed:,} failed; of the {others:,} {rest}, {decisive.others_failed:,} "
        f"({_p_text(decisive.p_value)})."
    )


def _after_text(after: Sequence[str]) -> str:
    return f" after {_steps_text(after[-2:])}" if after else " first"


def _outline(
    branch: Branch, decisive: DecisiveStep | None, before: tuple[str, ...], link: Link | None
) -> OutlineItem:
    passed = set(branch.passed)
    after = (*before, *branch.steps)
    is_decisive = (
        decisive is not None
        and before == decisive.after
        and branch.numbers == decisive.numbers
        and bool(branch.steps)
    )
    text = _steps_text(branch.steps) or "all attempts"
    return OutlineItem(
        f"{text}  ← the decisive step" if is_decisive else text,
        f"{len(branch.passed):,} of {len(branch.numbers):,} passed",
        tuple(
            Mark(number, number in passed, "" if link is None else link(number))
            for number in branch.numbers
        ),
        tuple(_outline(below, decisive, after, link) for below in branch.branches),
        strong=is_decisive,
    )


def _steps_text(steps: Sequence[str]) -> str:
    """Steps with arrows between them; the same step several times in a row is counted."""
    parts = ((step, len(list(same))) for step, same in groupby(steps))
    return " → ".join(step if count == 1 else f"{step} × {count}" for step, count in parts)


def _pair(pair: ClosestPair) -> Iterator[Block]:
    yield Heading("The closest attempts that end differently", rank=3)
    together = len(pair.together)
    if not pair.passing and not pair.failing:
        same = f"make the same {counted(together, 'call')}"
        yield Sentence(
            f"#{pair.passed} (passed) and #{pair.failed} (failed) {same}: what differs is not in "
            "the calls."
        )
        return
    begin = {0: "part at the first call", 1: "part after the first call, which is the same"}.get(
        together, f"part after {together:,} calls that are the same"
    )
    yield Sentence(f"#{pair.passed} (passed) and #{pair.failed} (failed) {begin}.")
    shown = pair.together[-_TOGETHER_ROWS:]
    rows = [
        (str(together - len(shown) + place), str(step), "the same")
        for place, step in enumerate(shown, 1)
    ]
    for place in range(min(_APART_ROWS, max(len(pair.passing), len(pair.failing)))):
        sides = (_side(pair.passing, place), _side(pair.failing, place))
        rows.append((str(together + place + 1), *sides))
    header = ("call", f"#{pair.passed} passed", f"#{pair.failed} failed")
    yield Table(header, tuple(rows), left=(0, 1, 2))


def _side(steps: Sequence[Step], place: int) -> str:
    if place < len(steps):
        return str(steps[place])
    return END if place == len(steps) else ""
