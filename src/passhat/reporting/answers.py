"""The expected answer beside the one given, and where they differ."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from passhat._serialize import Plain
from passhat.suites.base import ANSWER_ROLES, DIFF, DIFFERENCE, EXPECTED, GOT, TEST_OUTPUT

_MOST_LINES = 12
_CONTEXT = 24
"""Characters around the first difference of long texts."""


@dataclass(frozen=True, slots=True)
class Answers(Plain):
    """An attempt's answer beside the expected one; ``expected`` is empty where none is kept.

    ``difference`` is the judge's own, where ``expected`` is a rule that the answer should follow.
    """

    WRITTEN = ("expected", "got", "difference")

    expected: str
    got: str
    difference: str = ""
    is_taken: bool = False
    """Whether the judge itself said which part it took."""

    @property
    def differences(self) -> tuple[str, ...]:
        """Where they differ, in a few lines; empty without an expected answer."""
        if self.difference:
            return (self.difference,)
        if not self.expected or not self.got:
            return ()
        return tuple(find_differences(self.expected, self.got))[:_MOST_LINES]


def find_answers(transcript: Sequence[Mapping[str, str]]) -> Answers:
    """The judge's expected answer and the part it took; else the agent's last text."""
    texts = {str(entry.get("role")): str(entry.get("text", "")) for entry in transcript}
    got = texts.get(GOT) or texts.get("agent", "")
    is_taken = bool(texts.get(GOT))
    return Answers(texts.get(EXPECTED, ""), got, texts.get(DIFFERENCE, ""), is_taken)


@dataclass(frozen=True, slots=True)
class Work(Plain):
    """A coding agent's diff and the output of its tests; both empty for other attempts."""

    diff: str = ""
    tests: str = ""


def find_work(transcript: Sequence[Mapping[str, str]]) -> Work:
    """The diff and the test output that the judge kept."""
    texts = {str(entry.get("role")): str(entry.get("text", "")) for entry in transcript}
    return Work(texts.get(DIFF, ""), texts.get(TEST_OUTPUT, ""))


def drop_answers(
    transcript: Sequence[Mapping[str, str]], *, with_work: bool = False
) -> list[Mapping[str, str]]:
    """The entries of a transcript without the answers that are shown apart."""
    apart = (*ANSWER_ROLES, DIFF, TEST_OUTPUT) if with_work else ANSWER_ROLES
    return [entry for entry in transcript if entry.get("role") not in apart]


def find_differences(expected: str, got: str) -> Iterator[str]:
    """Where two answers differ: by value for numbers, by path for JSON, by place for text."""
    if expected.strip() == got.strip():
        return
    wanted, given = _decode(expected), _decode(got)
    if _is_number(wanted) and _is_number(given):
        yield _number_difference(float(str(wanted)), float(str(given)))
    elif isinstance(wanted, dict | list) and isinstance(given, dict | list):
        yield from _data_differences(wanted, given)
    else:
        yield from _text_differences(expected.strip(), got.strip())


def _number_difference(wanted: float, given: float) -> str:
    off = given - wanted
    share = f", {100 * off / abs(wanted):+.3g}%" if wanted else ""
    return f"off by {off:+.6g}{share}"


def _data_differences(wanted: object, given: object, where: str = "") -> Iterator[str]:
    if isinstance(wanted, dict) and isinstance(given, dict):
        for key in sorted({*wanted, *given}, key=str):
            path = f"{where}.{key}" if where else str(key)
            if key not in given:
                yield f"{path} is absent, expected {_show(wanted[key])}"
            elif key not in wanted:
                yield f"{path} is {_show(given[key])}, not expected"
            elif wanted[key] != given[key]:
                yield from _data_differences(wanted[key], given[key], path)
    elif isinstance(wanted, list) and isinstance(given, list) and len(wanted) == len(given):
        for place, (one, other) in enumerate(zip(wanted, given, strict=True)):
            if one != other:
                yield from _data_differences(one, other, f"{where}[{place}]")
    elif wanted != given:
        yield f"{where or 'it'} is {_show(given)}, expected {_show(wanted)}"


def _text_differences(expected: str, got: str) -> Iterator[str]:
    lines, given = expected.splitlines(), got.splitlines()
    if len(lines) > 1 or len(given) > 1:
        changes = difflib.unified_diff(lines, given, "expected", "got", lineterm="", n=1)
        yield from (line for line in changes if not line.startswith(("---", "+++")))
        return
    if expected.casefold() == got.casefold():
        yield "only upper and lower case differ"
    elif expected.casefold() in got.casefold():
        yield "the answer has the expected text, and more"
    elif len(expected) > 2 * _CONTEXT or len(got) > 2 * _CONTEXT:
        same = _common_length(expected, got)
        start = max(0, same - _CONTEXT)
        lead = "…" if start else ""
        yield f"- {lead}{expected[start : same + _CONTEXT]}"
        yield f"+ {lead}{got[start : same + _CONTEXT]}"


def _common_length(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _decode(text: str) -> object:
    try:
        return json.loads(text.replace(",", "") if _looks_numeric(text) else text)
    except (ValueError, RecursionError):
        return None


def _looks_numeric(text: str) -> bool:
    return text.strip().lstrip("+-").replace(",", "").replace(".", "", 1).isdigit()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _show(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
