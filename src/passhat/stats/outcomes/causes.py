"""Why attempts failed: by category with the most common message, in four kinds.

An exception says that something broke, a refusal that the model or its provider did not answer, a
cut answer that a limit was reached; only a wrong answer says that the agent could not do the task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from passhat._display import counted, some, visible
from passhat._serialize import Plain
from passhat.protocol import is_code_judge
from passhat.stats.outcomes.run import Run
from passhat.stats.outcomes.vocabulary import FailureCategory, MissingReason, Verdict


class FailureKind(StrEnum):
    """Kinds of failure: something broke, no answer came, a limit was reached, or it is wrong."""

    EXCEPTION = "exception"
    REFUSAL = "refusal"
    CUT_ANSWER = "cut answer"
    WRONG_ANSWER = "wrong answer"


_KINDS = {
    FailureCategory.EXCEPTION: FailureKind.EXCEPTION,
    FailureCategory.AGENT_ERROR: FailureKind.EXCEPTION,
    FailureCategory.COMMUNICATION_ERROR: FailureKind.EXCEPTION,
    FailureCategory.MEMORY: FailureKind.EXCEPTION,
    FailureCategory.TRUNCATED: FailureKind.CUT_ANSWER,
    FailureCategory.REFUSED: FailureKind.REFUSAL,
    FailureCategory.FILTERED: FailureKind.REFUSAL,
    FailureCategory.TIMEOUT: FailureKind.CUT_ANSWER,
}
_LONGEST_MESSAGE = 120
VARIABLE_PARTS = re.compile(r"0x[0-9a-fA-F]+|(?<![.:\w])\d[\d.,]*|'[^']*'|\"[^\"]*\"")
"""Parts of an exception's message that differ between attempts: numbers, quoted input."""


@dataclass(frozen=True, slots=True)
class FailureGroup(Plain):
    """Failed attempts of one category; ``message`` is the most common reason among them."""

    kind: FailureKind
    category: str
    count: int
    message: str = ""
    message_count: int = 0

    @property
    def text(self) -> str:
        """The category with its most common message, in a few words."""
        category = self.category.replace("_", " ")
        if self.category == FailureCategory.REFUSED:  # one of its kind in other words
            category = str(self.kind)
        if not self.message:
            return category
        is_all = self.message_count == self.count
        often = "" if is_all else f", {counted(self.message_count, 'time')}"
        words = f"{self.example}{often}"
        return words if category == self.kind else f"{category}: {words}"

    @property
    def example(self) -> str:
        """The most common message in one line, cut where it is long."""
        text = " ".join(self.message.split())
        return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"


@dataclass(frozen=True, slots=True)
class Failures(Plain):
    """The failed attempts of a run by cause: exceptions first, wrong answers last.

    ``attempts`` are those with a verdict, passed or failed.
    """

    groups: tuple[FailureGroup, ...]
    attempts: int
    same_answer: str = ""
    """The text that every attempt at every task gave, where that looks like a mistake."""

    @property
    def warning(self) -> str:
        """That every attempt gave the same text; empty where none did, or where it may be right."""
        text = " ".join(self.same_answer.split())
        if not text:
            return ""
        cut = text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"
        return (
            f"Every attempt at every task gave the same text, {visible(cut)!r}: look whether that "
            "is an answer"
        )

    @property
    def total(self) -> int:
        return sum(group.count for group in self.groups)

    def count(self, kind: FailureKind) -> int:
        """Failed attempts of a kind."""
        return sum(group.count for group in self.groups if group.kind is kind)

    @property
    def all_raised(self) -> bool:
        """Whether every attempt with a verdict ended by an exception: nothing was measured."""
        return 0 < self.attempts == self.count(FailureKind.EXCEPTION)

    def lines(self, most: int = 4) -> tuple[tuple[str, str], ...]:
        """For each kind the count in words, then its categories and the most common message."""
        lines = []
        for kind in FailureKind:
            groups = [group for group in self.groups if group.kind is kind]
            if not groups:
                continue
            words = groups[0].text
            if len(groups) > 1:
                names = [f"{group.count:,} {group.category.replace('_', ' ')}" for group in groups]
                words = some(names, most)
                if groups[0].message:
                    words += f"; such as {groups[0].example}"
            which = counted(self.count(kind), str(kind))
            lines.append((which, "" if words == kind else words))
        return tuple(lines)

    def sentence(self, most: int = 4) -> str:
        """The kinds with their counts and most common messages; empty where nothing failed."""
        lines = self.lines(most)
        return ", ".join(f"{which} ({words})" if words else which for which, words in lines)

    def _as_dict(self) -> dict[str, object]:
        kinds = {str(kind): self.count(kind) for kind in FailureKind}
        same = {"same_answer": self.same_answer} if self.same_answer else {}
        return {
            "attempts": self.attempts,
            "failed": self.total,
            **kinds,
            "groups": self.groups,
            **same,
        }


def summarize_failures(run: Run) -> Failures:
    """Summarize the failed attempts of a run by cause, the most frequent category first."""
    found = group_failures(run.failures_by_category, run.failure_messages, run.outcomes.scored)
    return replace(found, same_answer=run.same_answer)


def summarize_task_failures(
    run: Run, task: str, messages: Mapping[str, Mapping[str, int]] | None = None
) -> Failures:
    """Summarize the failed attempts at one task; nothing where attempts were not read.

    ``messages`` by category are taken where the attempts themselves have none.
    """
    attempts = run.attempts
    if attempts is None or task not in attempts.tasks:
        return Failures((), 0)
    counts: dict[str, int] = {}
    found: dict[str, dict[str, int]] = {}
    judged = 0
    for attempt in attempts.of(attempts.tasks.index(task)):
        judged += attempt.verdict is not Verdict.MISSING
        if attempt.verdict is Verdict.FAILED and attempt.why:
            counts[attempt.why] = counts.get(attempt.why, 0) + 1
            if attempt.detail and attempt.detail != attempt.why:
                by_text = found.setdefault(attempt.why, {})
                by_text[attempt.detail] = by_text.get(attempt.detail, 0) + 1
    return group_failures(counts, found or messages or {}, judged)


def no_answer_text(run: Run) -> str:
    """That no judged attempt gave an answer, with the causes; empty where one did.

    An exception of a program that is judged, or in another harness's log, is a result.
    """
    if not run.id or is_code_judge(run.protocol.judge):
        return ""
    failures = summarize_failures(run)
    return f"no attempt gave an answer: {failures.sentence()}" if failures.all_raised else ""


def judge_error_message(run: Run) -> str:
    """The most common message of errors of the judge itself; empty where there is none."""
    messages = run.missing_messages.get(MissingReason.JUDGE_ERROR, {})
    return _group(str(FailureCategory.EXCEPTION), 0, messages).example


def group_failures(
    counts: Mapping[str, int], messages: Mapping[str, Mapping[str, int]], attempts: int
) -> Failures:
    """Failures from counts by category, and how often each message came with a category."""
    groups = [
        _group(category, count, messages.get(category, {})) for category, count in counts.items()
    ]
    order = list(FailureKind)
    groups.sort(key=lambda group: (order.index(group.kind), -group.count, group.category))
    return Failures(tuple(groups), attempts)


def _group(category: str, count: int, messages: Mapping[str, int]) -> FailureGroup:
    kind = _KINDS.get(FailureCategory(category), FailureKind.WRONG_ANSWER)
    counts: dict[str, int] = {}
    example: dict[str, str] = {}
    for message, often in sorted(messages.items(), key=lambda item: (-item[1], item[0])):
        # The same exception with another number or input in it is the same cause.
        is_varying = kind is FailureKind.EXCEPTION
        key = VARIABLE_PARTS.sub("*", message) if is_varying else message
        counts[key] = counts.get(key, 0) + often
        example.setdefault(key, message)
    key = max(counts, key=lambda key: counts[key], default="")
    if not key or key == category:
        return FailureGroup(kind, category, count)
    return FailureGroup(kind, category, count, visible(example[key]), counts[key])
