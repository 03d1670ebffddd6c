"""Audit of the judge: judged attempts for a person to check, and the rate of agreement."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from passhat._display import counted, percent
from passhat._serialize import Plain, as_json
from passhat.reporting.markdown import code, escape

SCHEMA = "passhat.audit/1"


@dataclass(frozen=True, slots=True)
class Audited(Plain):
    """A judged attempt, with everything a person needs to judge it again.

    ``human`` is the verdict of a person, if there is one: whether it passed.
    """

    task: str
    number: int
    passed: bool
    why: str
    detail: str
    program: str
    human: bool | None = None

    @property
    def id(self) -> str:
        return f"{self.task}#{self.number}"

    def _as_dict(self) -> dict[str, object]:
        return {
            "attempt": self.id,
            "verdict": "passed" if self.passed else "failed",
            "why": self.why or None,
            "detail": self.detail or None,
            "program": self.program,
            "human": None if self.human is None else "passed" if self.human else "failed",
        }


def audit_sample(judged: Sequence[Audited], size: int, seed: int) -> list[Audited]:
    """Draw attempts, half of them passed and half failed as far as there are enough of both.

    The same seed draws the same attempts, in any order of the input.
    """
    chance = random.Random(f"audit/{seed}")
    kinds = []
    for passed in (True, False):
        pile = sorted(
            (attempt for attempt in judged if attempt.passed is passed),
            key=lambda attempt: attempt.id,
        )
        chance.shuffle(pile)
        kinds.append(pile)
    smaller, larger = sorted(kinds, key=len)
    from_few = min(len(smaller), size // 2)
    sample = [*smaller[:from_few], *larger[: size - from_few]]
    return sorted(sample, key=lambda attempt: (attempt.task, attempt.number))


@dataclass(frozen=True, slots=True)
class Agreement(Plain):
    """How often a person agreed with the judge, with a 95% interval for each of its verdicts.

    The intervals are Clopper and Pearson's. They are about attempts that were drawn, as an audit
    sample is; attempts picked because they looked wrong say less.
    """

    passed: tuple[int, int]
    failed: tuple[int, int]
    level: float = 0.95

    def interval(self, word: str) -> tuple[float, float]:
        """Bounds on the agreement about attempts that the judge ``passed`` or ``failed``."""
        from passhat.stats.estimate.intervals.these_tasks import clopper_pearson

        agreements, total = self.passed if word == "passed" else self.failed
        return clopper_pearson(agreements, total, self.level) if total else (0.0, 1.0)

    def sentences(self) -> tuple[str, ...]:
        sentences = []
        for word, (agreements, total) in (("passed", self.passed), ("failed", self.failed)):
            if total:
                low, high = self.interval(word)
                sentences.append(
                    f"a person looked at {counted(total, 'attempt')} that the judge called {word} "
                    f"and agreed on {agreements:,}: {percent(agreements / total)} "
                    f"[{low:.3f}, {high:.3f}]"
                )
        return tuple(sentences)

    def _as_dict(self) -> dict[str, object]:
        return {
            word: {"agreed": agreements, "looked_at": total, "interval": list(self.interval(word))}
            for word, (agreements, total) in (("passed", self.passed), ("failed", self.failed))
        }


def agreement(pairs: Iterable[tuple[bool, bool]]) -> Agreement | None:
    """From pairs (passed by the judge, passed by a person); ``None`` without a pair.

    Examples
    --------
    >>> agreement([(True, True), (True, False), (False, False)])
    Agreement(passed=(1, 2), failed=(1, 1), level=0.95)
    """
    counts = {True: [0, 0], False: [0, 0]}
    for judge, human in pairs:
        counts[judge][0] += judge is human
        counts[judge][1] += 1
    if not counts[True][1] and not counts[False][1]:
        return None
    (a, b), (c, d) = counts[True], counts[False]
    return Agreement((a, b), (c, d))


def audit_as_json(
    sample: Sequence[Audited], judged: int, seed: int, agreed: Agreement | None
) -> str:
    """The sample under its schema."""
    data = {
        "schema": SCHEMA,
        "judged": judged,
        "seed": seed,
        "sample": sample,
        "agreement": agreed,
    }
    return as_json(data)


def audit_as_markdown(
    sample: Sequence[Audited], judged: int, seed: int, agreed: Agreement | None, answer: str
) -> str:
    """The sample as a page; ``answer`` is the command that stores a person's verdict."""
    lines = _lines(sample, judged, seed, agreed, answer)
    return "\n".join(lines) + "\n"


def _lines(
    sample: Sequence[Audited], judged: int, seed: int, agreed: Agreement | None, answer: str
) -> Iterator[str]:
    passed = sum(attempt.passed for attempt in sample)
    yield f"# Audit: {counted(len(sample), 'attempt')} of {judged:,} judged ones"
    yield ""
    sample_text = f"{passed} passed and {len(sample) - passed} failed, drawn by seed {seed}."
    yield f"{sample_text} {answer}".strip()
    yield ""
    for sentence in agreed.sentences() if agreed is not None else ():
        yield f"- {sentence}"
    if agreed is not None:
        yield ""
    for attempt in sample:
        why = ": ".join(part for part in (attempt.why, attempt.detail) if part)
        yield f"## {code(attempt.id)}"
        yield ""
        yield f"**{'passed' if attempt.passed else 'failed'}**" + (
            f", {escape(why)}" if why else ""
        )
        if attempt.human is not None:
            yield f"A person says: **{'passed' if attempt.human else 'failed'}**"
        yield ""
        fence = _fence(attempt.program)
        yield f"{fence}python"
        yield escape_program(attempt.program)
        yield fence
        yield ""


def escape_program(program: str) -> str:
    """A program with terminal escapes removed."""
    text = "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in program)
    return text.rstrip("\n")


def _fence(text: str) -> str:
    """Longer than any fence in the text, which may be hostile or merely full of them."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(3, longest + 1)
