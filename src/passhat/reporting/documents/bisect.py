"""The search for the revision that broke it: the answer, the tasks, and the attempts."""

from __future__ import annotations

from collections.abc import Iterator

from passhat._display import counted, money, number, percent, some
from passhat.reporting.bisect import Bisection, BisectStatus
from passhat.reporting.document import Block, Document, Finding, Heading, Level, Note, Table

_MOST_LEFT = 10
_MOST_TASKS = 5


def bisect_document(result: Bisection) -> Document:
    """Build the document: the answer first."""
    title = f"{result.agent} at {result.suite}"
    return Document.of(title, [*_answer(result, title), *_details(result)])


def _answer(result: Bisection, title: str) -> Iterator[Block]:
    count = counted(len(result.revisions) - 1, "revision")
    yield Heading(f"Which change broke {title}?", count)
    if result.status is BisectStatus.NO_DROP:
        yield _no_drop(result)
        return
    found = result.found
    if found is not None and found.is_confirmed:
        yield Finding("✗", "broke it", some([str(one) for one in result.left], _MOST_LEFT),
                      tuple(_evidence(result)))  # fmt: skip
        return
    what = "stopped" if result.status is BisectStatus.STOPPED else "not settled"
    details = [str(one) for one in result.left[:_MOST_LEFT]]
    if (rest := len(result.left) - _MOST_LEFT) > 0:
        details.append(f"and {rest:,} more, up to {result.left[-1]}")
    chance, ends = "", [one.id for one in result.revisions[-2:]]
    if found is not None and any(step.revision not in ends for step in result.steps):
        many = len(result.left) > 1
        chance = f"; the change is {'among them' if many else 'this one'} with a chance of "
        chance += percent(min(found.chance, 0.999), 1)
    if result.budget and result.status is BisectStatus.RANGE:
        details.append(f"the budget of {result.budget} is spent; a larger --budget continues")
    elif result.status is BisectStatus.STOPPED:
        details.append("the same command continues")
    text = f"{counted(len(result.left), 'revision')} left{chance}"
    yield Finding("?", what, text, tuple(details))


def _evidence(result: Bisection) -> Iterator[str]:
    found = result.found
    assert found is not None
    against = "the revision before" if result.parent is None else str(result.parent)
    yield (
        f"confirmed by fresh attempts against {against}: e-value {found.capital:,.0f} "
        "(20 is an error of at most 5%)"
    )
    if len(found.candidates) > 1:
        yield "those between cannot run, so they cannot be told apart"
    yield f"chance {percent(found.chance, 1)} among all {len(result.revisions) - 1:,} revisions"
    broken = [str(task) for task in result.tasks if task.change == "broke"]
    if broken:
        yield f"broke: {some(broken, _MOST_TASKS)}"


def _no_drop(result: Bisection) -> Finding:
    good, bad = result.revisions[-1], result.revisions[-2]
    p_text = "" if result.p_value is None else f" (p {number(result.p_value)})"
    details = [f"good {good}", f"bad {bad}"]
    more = result.more
    if more is None:
        details.append("the bad revision does not pass less often: there is nothing to search")
    else:
        cost = "" if more.cost is None else f", {money(more.cost)}"
        details.append(
            f"a drop as large as the one seen is shown in 8 of 10 cases with -n {more.each}: "
            f"{counted(more.total, 'attempt')} at both{cost}"
        )
    if result.foreseen and more is not None:
        details.append(f"the search itself would take about {counted(result.foreseen, 'attempt')}")
    text = f"the bad revision is not shown to be worse than the good one{p_text}"
    return Finding("?", "nothing to search", text, tuple(details))


def _details(result: Bisection) -> Iterator[Block]:
    cost = "cost not recorded" if result.cost is None else money(result.cost)
    tried = len({step.revision for step in result.steps})
    yield Note(f"{counted(result.attempts, 'attempt')} at {counted(tried, 'revision')}, {cost}")
    if result.skipped:
        names = [f"{revision.short} ({why})" for revision, why in result.skipped]
        yield Note(f"Cannot run: {some(names, _MOST_TASKS)}")
    titles = {revision.id: str(revision) for revision in result.revisions}
    header = ("revision", "run", "passed", "tasks", "contains the change")
    rows = tuple(
        (
            *(titles[step.revision], step.run, f"{step.passed:,}/{step.attempts:,}"),
            *(f"{step.tasks:,}", "confirmation" if step.confirms else percent(step.chance, 0)),
        )
        for step in result.steps
    )
    yield Table(header, rows, "Attempts, in their order", (0, 1, 4), level=Level.FULL)
