"""The verdict of the judge on a program."""

from __future__ import annotations

from dataclasses import dataclass

from passhat.stats.outcomes.vocabulary import (
    FailureCategory,
    MissingReason,
    Verdict,
    failure_category,
)

_VIOLATION = "PermissionError"
"""The exception that a program sees when the sandbox refuses something."""


@dataclass(frozen=True, slots=True)
class CodeVerdict:
    """A verdict, its category or reason, and a detail."""

    verdict: Verdict  # failed is the program's doing, missing ours
    why: str = ""  # failure category, name of an exception, or missing reason; empty when it passed
    detail: str = ""  # a line for a person; it may quote the program, so it is never trusted
    seconds: float = 0.0  # on the wall clock, of all executions of the program
    cpu_seconds: float = 0.0
    judges: tuple[tuple[str, str], ...] = ()  # names and verdicts, where more than one judged
    is_exact: bool = False  # by split, and only exact data crossed: plain can add nothing
    objects: tuple[str, ...] = ()  # where the program gave no data, and what it gave

    @property
    def words(self) -> str:
        """The verdict in one line: ``failed, wrong_answer: ...``."""
        word = {Verdict.PASSED: "passed", Verdict.FAILED: "failed"}.get(self.verdict, "missing")
        words = ", ".join(filter(None, (word, self.why)))
        return ": ".join(filter(None, (words, self.detail)))

    @classmethod
    def passed(cls) -> CodeVerdict:
        return cls(Verdict.PASSED)

    @classmethod
    def failed(cls, word: str, detail: str = "") -> CodeVerdict:
        """A failure; ``word`` is a category, or the name of the exception that ended it."""
        if word == _VIOLATION:
            return cls(Verdict.FAILED, FailureCategory.SANDBOX_VIOLATION, _line(detail))
        category = failure_category(word)
        own_name = word != category and word.lower() == category
        if category is FailureCategory.UNKNOWN_FAILURE or own_name:
            # Exceptions such as StopIteration, or a program's own Refused or Timeout: a category
            # is written as the vocabulary has it, in lower case.
            return cls(Verdict.FAILED, FailureCategory.EXCEPTION, _line(f"{word}: {detail}"))
        known = category is not FailureCategory.EXCEPTION or word == category
        text = detail if known else f"{word}: {detail}"
        return cls(Verdict.FAILED, str(category) if known else word, _line(text))

    @classmethod
    def missing(cls, reason: MissingReason, detail: str = "") -> CodeVerdict:
        return cls(Verdict.MISSING, str(reason), _line(detail))

    @property
    def category(self) -> str:
        """The category of the vocabulary; ``why`` may be the name of an exception."""
        if self.verdict is Verdict.FAILED:
            return str(failure_category(self.why))
        return self.why


def _line(text: str, width: int = 300) -> str:
    """The text as a single printable line: it may come from a hostile program."""
    flat = " ".join(text.split())
    return "".join(char if char.isprintable() else "�" for char in flat)[:width].strip()
