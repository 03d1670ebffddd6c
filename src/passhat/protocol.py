"""The protocol of a run: everything that was fixed before the first attempt.

Two runs are comparable when everything that could move the number, other than the agent, was the
same. A :class:`Protocol` holds those things; ``None`` means not recorded.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Literal, cast

from passhat._display import html_table, shown
from passhat._serialize import Plain
from passhat.errors import InvalidValue

__all__ = [
    "AGENT_CODE",
    "JUDGE_NAMES",
    "Alternative",
    "Difference",
    "Protocol",
    "Question",
    "Scalar",
    "is_code_judge",
]

Scalar = str | int | float | bool
Alternative = Literal["two-sided", "greater", "less"]

AGENT_CODE = "agent_code"
"""The setting that holds a digest of the agent's own files."""

JUDGE_NAMES = {
    "both": "plain and split judge",
    "plain": "plain judge",
    "split": "split judge",
}
"""How a protocol names the judges."""

_DIGEST_VERSION = "passhat.protocol/1"


def is_code_judge(judge: str | None) -> bool:
    """Whether a protocol's judge is one for programs."""
    return (judge or "").startswith(tuple(JUDGE_NAMES.values()))


@dataclass(frozen=True, slots=True)
class Question:
    """The metric, test direction and level, chosen before looking at any result.

    The k is part of the metric's word, as in ``pass^4``.
    """

    metric: str = "pass^1"
    alternative: Alternative = "two-sided"
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.alternative not in ("two-sided", "greater", "less"):
            raise InvalidValue(
                f"alternative must be two-sided, greater or less, not {self.alternative!r}."
            )
        if not 0 < self.level < 1:
            raise InvalidValue(f"level must lie between 0 and 1, not {self.level}.")

    @classmethod
    def of_text(cls, text: str) -> Question:
        """Read ``pass^4``, ``pass^4 greater`` or ``pass^4 greater 0.99``."""
        metric, *rest = text.split()[:4] or [""]
        try:
            level = float(rest[1]) if len(rest) > 1 else 0.95
        except ValueError:
            level = math.nan
        if not metric or len(rest) > 2 or math.isnan(level):
            raise InvalidValue(
                f"a question is a metric, a direction and a level, not {text!r}.",
                hint="As in: pass^4 greater 0.95",
            )
        return cls(metric, cast("Alternative", rest[0]) if rest else "two-sided", level)

    def __str__(self) -> str:
        direction = {"two-sided": "another", "greater": "a greater", "less": "a smaller"}
        claim = f"{direction[self.alternative]} {self.metric} than the other run"
        return f"{claim}, at {100 * self.level:g}%"


@dataclass(frozen=True, slots=True)
class Difference(Plain):
    """A field in which two protocols are not known to agree.

    ``known`` is true when both sides recorded the field and disagree; false when at least one
    side did not record it, so that agreement can be neither shown nor denied.
    """

    WRITTEN = ("field", ("a", "mine"), ("b", "theirs"), "known")

    field: str
    mine: Scalar | None
    theirs: Scalar | None
    known: bool

    def __str__(self) -> str:
        if self.known:
            return f"{self.field}: {shown(self.mine)} against {shown(self.theirs)}"
        return f"{self.field}: unverified ({shown(self.mine)} against {shown(self.theirs)})"


@dataclass(frozen=True, slots=True)
class Protocol(Plain):
    """Everything that must match for two runs to be comparable.

    Parameters
    ----------
    suite, suite_fingerprint, tests_fingerprint : str, optional
        The suite by name, a fingerprint over its tasks, one over the tests that judge.
    attempts : int, optional
        Attempts planned for every task.
    allocation : str, optional
        Where attempts differ by task: how, and from which earlier run they were taken.
    decoding : mapping, optional
        Temperature, top_p and other sampling settings. An absent key is unknown.
    max_steps, step_seconds, attempt_seconds : optional
        Limits of one attempt.
    user_simulator, judge : str, optional
        The model that played the user, and the judge.
    missing : {"bound", "fail", "exclude"}
        How attempts that have no verdict are counted.
    pass_at : float
        An attempt with a graded reward passes at ``reward >= pass_at - 1e-6``.
    question : Question
        The question that the run was made to answer.
    """

    suite: str | None = None
    suite_fingerprint: str | None = None
    tests_fingerprint: str | None = None
    attempts: int | None = None
    decoding: Mapping[str, Scalar] = field(default_factory=dict)
    max_steps: int | None = None
    step_seconds: float | None = None
    attempt_seconds: float | None = None
    user_simulator: str | None = None
    judge: str | None = None
    missing: str = "bound"
    pass_at: float = 1.0
    question: Question = field(default_factory=Question)
    allocation: str | None = None

    def __post_init__(self) -> None:
        if self.attempts is not None and self.attempts < 1:
            raise InvalidValue(f"attempts must be at least 1, not {self.attempts}.")
        ordered = dict(sorted(self.decoding.items()))
        object.__setattr__(self, "decoding", MappingProxyType(ordered))

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that are equal exactly when two protocols are."""
        return hashlib.sha256(self._canonical().encode()).hexdigest()[:16]

    def _canonical(self) -> str:
        data = _with_floats(self.to_dict())
        if self.allocation is None:
            del data["allocation"]  # as in protocols from before there was one
        return json.dumps(
            {"version": _DIGEST_VERSION, **data},
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=True,
        )

    def __eq__(self, other: object) -> bool:
        # Compared as JSON text: to Python, False is 0 as well.
        if not isinstance(other, Protocol):
            return NotImplemented
        return self._canonical() == other._canonical()

    def __hash__(self) -> int:
        return hash(self.digest)

    def differences(self, other: Protocol) -> tuple[Difference, ...]:
        """List the fields in which the two do not agree, or are not known to.

        The fields that decide comparability of *runs* are listed; the question is not, since
        the same attempts may answer another question later.
        """
        fields, other_fields = dict(self._flat()), dict(other._flat())
        return tuple(
            Difference(name, a, b, known=_is_known_difference(name, a, b))
            for name in _merged_names(fields, other_fields)
            # The effect of an allocation is seen in the attempts themselves.
            if name != "allocation"
            if not _alike(a := fields.get(name), b := other_fields.get(name)) or a is None
        )

    def _flat(self) -> Iterator[tuple[str, Scalar | None]]:
        for entry in fields(self):
            if entry.name == "question" or (entry.name == "allocation" and not self.allocation):
                continue
            if entry.name == "decoding":
                # Temperature is listed even when it was not recorded: it moves every pass@k.
                settings = {"temperature": None, **self.decoding}
                # Two addresses or states of the code can be compared; one run has one of each.
                for name in ("base_url", AGENT_CODE):
                    settings.pop(name, None)
                yield from ((f"decoding.{key}", value) for key, value in settings.items())
            else:
                yield entry.name, getattr(self, entry.name)

    def __str__(self) -> str:
        known = ", ".join(f"{name}={value}" for name, value in self._flat() if value is not None)
        return f"protocol {self.digest}: {known}"

    def _repr_html_(self) -> str:
        rows = [(name, shown(value)) for name, value in self._flat()]
        return html_table(f"protocol {self.digest}", ("field", "value"), rows)


RULE_JUDGE = "rule "
"""Begins the judge of a run whose passes follow from a rule that its reader stated."""


def _is_known_difference(name: str, a: Scalar | None, b: Scalar | None) -> bool:
    """Whether both sides recorded a field, or one side was judged by a rule and the other not.

    The threshold of a rule such as ``score >= 0.5`` is compared as ``pass_at``.
    """
    if a is not None and b is not None:
        return True
    stated = str(b if a is None else a)
    return name == "judge" and RULE_JUDGE in stated and ">=" not in stated


def _with_floats(data: Mapping[str, object]) -> dict[str, object]:
    """Write 1 and 1.0 alike, since they are equal to everyone but JSON."""
    return {
        key: _with_floats(value) if isinstance(value, Mapping) else _as_float(value)
        for key, value in data.items()
    }


def _as_float(value: object) -> object:
    """A number as the float it equals; a number that equals no float is returned unchanged."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        number = float(value) + 0.0  # -0 is 0
    except OverflowError:
        return value
    return value if isinstance(value, int) and int(number) != value else number


def _alike(a: Scalar | None, b: Scalar | None) -> bool:
    return isinstance(a, bool) == isinstance(b, bool) and a == b


def _merged_names(a: Mapping[str, object], b: Mapping[str, object]) -> list[str]:
    return [*a, *(name for name in b if name not in a)]
