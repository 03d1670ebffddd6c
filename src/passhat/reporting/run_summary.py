"""The attempts of a run in order: per task the row of marks and its totals.

These are observations, not expectations; the estimates with their intervals follow in the
report. Nothing is printed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from passhat._display import counted
from passhat._serialize import Plain
from passhat.stats.outcomes import Verdict

MARKS: Mapping[Verdict, str] = {Verdict.PASSED: "✓", Verdict.FAILED: "✗", Verdict.MISSING: "?"}
_MOST_DETAILS = 200
"""Attempts that are kept with their reasons; of more, only how many."""


def all_first(verdicts: Sequence[Verdict], k: int) -> bool | None:
    """Whether all of the first k attempts passed; ``None`` when that is unknown.

    A failed one settles it. A missing one, or fewer than k, leaves it open.
    """
    first = verdicts[:k]
    if Verdict.FAILED in first:
        return False
    return None if len(first) < k or Verdict.MISSING in first else True


def window(verdicts: Sequence[Verdict], w: int) -> bool | None:
    """Whether some w attempts in a row passed; ``None`` when missing attempts could decide it."""
    if _longest(verdicts, {Verdict.PASSED}) >= w:
        return True
    could = _longest(verdicts, {Verdict.PASSED, Verdict.MISSING}) >= w
    return None if could or len(verdicts) < w else False


def _longest(verdicts: Sequence[Verdict], counted: set[Verdict]) -> int:
    streaks = groupby(verdicts, lambda verdict: verdict in counted)
    return max((len(list(streak)) for passed, streak in streaks if passed), default=0)


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """An attempt with its reason."""

    task: str
    number: int
    verdict: Verdict
    why: str = ""
    detail: str = ""
    seconds: float | None = None
    steps: float | None = None
    cost: float | None = None

    @property
    def id(self) -> str:
        return f"{self.task}#{self.number}"

    @property
    def reason(self) -> str:
        return ": ".join(part for part in (self.why, self.detail) if part)


@dataclass(frozen=True, slots=True)
class TaskSummary(Plain):
    """Results of the attempts at a task.

    ``first`` is first^k and ``in_a_row`` is window^(k/2), each True, False or unknown. ``numbers``
    are the attempts that the verdicts belong to: a run that was stopped may have gaps.
    """

    task: str
    k: int
    verdicts: tuple[Verdict, ...]
    numbers: tuple[int, ...]
    total_steps: float | None
    steps_on_success: float | None
    failures: Mapping[str, int]
    missing: Mapping[str, int]

    @property
    def by_number(self) -> tuple[Verdict, ...]:
        """The verdicts of attempts 1 to k; an attempt that was not made is missing."""
        verdict_by_number = dict(zip(self.numbers, self.verdicts, strict=True))
        last = max(self.k, *self.numbers) if self.numbers else self.k
        return tuple(
            verdict_by_number.get(number, Verdict.MISSING) for number in range(1, last + 1)
        )

    @property
    def marks(self) -> str:
        """✓ passed, ✗ failed, ? missing, · not made."""
        made = set(self.numbers)
        verdicts = enumerate(self.by_number, 1)
        return "".join(MARKS[verdict] if number in made else "·" for number, verdict in verdicts)

    @property
    def first(self) -> bool | None:
        return all_first(self.by_number, self.k)

    @property
    def half(self) -> int:
        """The w of window^w: half of k, rounded up."""
        return -(-self.k // 2)

    @property
    def in_a_row(self) -> bool | None:
        return window(self.by_number, self.half)

    @property
    def passed(self) -> int:
        return self.verdicts.count(Verdict.PASSED)

    @property
    def scored(self) -> int:
        return len(self.verdicts) - self.verdicts.count(Verdict.MISSING)

    @property
    def rate(self) -> float | None:
        """The share of judged attempts that passed."""
        return self.passed / self.scored if self.scored else None

    def _as_dict(self) -> dict[str, object]:
        return {
            "task": self.task,
            "attempts": self.marks,
            f"first^{self.k}": self.first,
            f"window^{self.half}": self.in_a_row,
            "passed": self.passed,
            "scored": self.scored,
            "rate": self.rate,
            "steps_on_success": self.steps_on_success,
            "total_steps": self.total_steps,
            "failures": dict(self.failures),
            "missing": dict(self.missing),
        }


@dataclass(frozen=True, slots=True)
class Summary(Plain):
    """All tasks of a run; ``details`` are attempts with their reasons, at most some hundreds."""

    WRITTEN = ("k", "tasks", "failures", "missing")

    k: int
    tasks: tuple[TaskSummary, ...]
    details: tuple[AttemptLine, ...]
    not_detailed: int
    failures: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)

    @property
    def half(self) -> int:
        """The w of window^w: half of k, rounded up."""
        return -(-self.k // 2)

    @property
    def attempts(self) -> int:
        return sum(len(task.verdicts) for task in self.tasks)

    @property
    def passed(self) -> int:
        return sum(task.passed for task in self.tasks)

    @property
    def scored(self) -> int:
        return sum(task.scored for task in self.tasks)

    @property
    def total_steps(self) -> float | None:
        steps = [task.total_steps for task in self.tasks if task.total_steps is not None]
        return sum(steps) if steps else None

    @property
    def steps_on_success(self) -> float | None:
        """Over all attempts that passed."""
        tasks = [task for task in self.tasks if task.steps_on_success is not None]
        passed = sum(task.passed for task in tasks)
        steps = sum((task.steps_on_success or 0.0) * task.passed for task in tasks)
        return steps / passed if passed else None

    def answers(self, which: str) -> Counter[bool | None]:
        """On how many tasks ``first`` or ``in_a_row`` is true, false, open."""
        return Counter(getattr(task, which) for task in self.tasks)


def summarise(rows: Iterable[Sequence[Any]], k: int, most: int = _MOST_DETAILS) -> Summary:
    """Summarise finished attempts.

    A row is (task, number, verdict, why, detail, seconds, steps, cost), task after task, in order;
    ``k`` attempts were planned for every task. All attempts are kept with their reasons where they
    are few, else ``most`` of those that did not pass.
    """
    tasks: list[TaskSummary] = []
    every: list[AttemptLine] = []
    others: list[AttemptLine] = []
    attempt_count = not_passed = 0
    for task, group in groupby(rows, lambda row: str(row[0])):
        lines = [
            AttemptLine(task, int(number), Verdict(verdict), *rest)
            for _, number, verdict, *rest in group
        ]
        tasks.append(_task(task, lines, k))
        attempt_count += len(lines)
        every += lines[: most - len(every)]
        bad = [line for line in lines if line.verdict is not Verdict.PASSED]
        not_passed += len(bad)
        others += bad[: most - len(others)]
    details = every if attempt_count <= most else others
    return Summary(
        k,
        tuple(tasks),
        tuple(details),
        (attempt_count if attempt_count <= most else not_passed) - len(details),
        _add_counts(task.failures for task in tasks),
        _add_counts(task.missing for task in tasks),
    )


def _task(task: str, lines: Sequence[AttemptLine], k: int) -> TaskSummary:
    steps = [line.steps for line in lines if line.steps is not None]
    good = [
        line.steps for line in lines if line.steps is not None and line.verdict is Verdict.PASSED
    ]
    return TaskSummary(
        task,
        k,
        tuple(line.verdict for line in lines),
        tuple(line.number for line in lines),
        sum(steps) if steps else None,
        sum(good) / len(good) if good else None,
        _count_reasons(lines, Verdict.FAILED),
        _count_reasons(lines, Verdict.MISSING),
    )


def _count_reasons(lines: Iterable[AttemptLine], verdict: Verdict) -> dict[str, int]:
    return dict(Counter(line.why for line in lines if line.verdict is verdict).most_common())


def _add_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(total.most_common())


def call_facts(call: Mapping[str, Any]) -> Iterator[str]:
    """The facts about a call to a model or a tool, in a few words each."""
    yield str(call["name"])
    if call.get("role", "agent") != "agent":
        yield f"by the {call['role']}"
    if call.get("model"):
        yield f"served by {call['model']}"
    if call.get("stop"):
        raw = call.get("stop_raw")
        yield f"ended by {call['stop']}" + (f" ({raw})" if raw and raw != call["stop"] else "")
    if call.get("empty"):
        yield str(call["empty"])
    if votes := call.get("votes"):
        yield f"{sum(votes)} of {counted(len(votes), 'vote')} to pass"
    if call.get("source") == "spans":
        yield "from the agent's spans"
    yield from _call_measures(call)


def _call_measures(call: Mapping[str, Any]) -> Iterator[str]:
    for name in ("input", "output", "cached", "reasoning"):
        value = call.get(f"{name}_tokens")
        if value is not None and (value or name in ("input", "output")):
            yield f"{value:,.0f} {name} tokens"
    if call.get("cost") is not None:
        yield f"${call['cost']:.6f}"
    if call.get("seconds") is not None:
        yield f"{call['seconds']:.2f} s"
    if call.get("retries"):
        yield counted(len(call["retries"]), "retry", "retries")
    if call.get("request_id"):
        yield f"request id {call['request_id']}"
