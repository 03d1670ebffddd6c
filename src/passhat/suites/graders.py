"""Graders for suites in a file: one answer against what was expected."""

from __future__ import annotations

import importlib
import json
import math
import operator
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

from passhat.errors import InvalidValue
from passhat.stats.outcomes import FailureCategory
from passhat.suites.base import Judgement

__all__ = ["GRADERS", "Grader", "check_expected", "grader", "load_function", "load_object"]

Grader = Callable[[str, object], Judgement]
"""(the agent's answer, what was expected) to a judgement."""

_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def _wrong(answer: str) -> Judgement:
    return Judgement.failed(FailureCategory.WRONG_ANSWER, f"answered {answer.strip()[:80]!r}")


def _exact(answer: str, expected: object) -> Judgement:
    return Judgement.passed() if answer.strip() == str(expected).strip() else _wrong(answer)


def _contains(answer: str, expected: object) -> Judgement:
    return Judgement.passed() if str(expected) in answer else _wrong(answer)


def _regex(answer: str, expected: object) -> Judgement:
    return Judgement.passed() if re.search(str(expected), answer) else _wrong(answer)


def _numeric(answer: str, expected: object) -> Judgement:
    """The last number in the answer, to one part in a million."""
    found = _NUMBER.findall(answer)
    if not found:
        return Judgement.failed(FailureCategory.FORMAT_ERROR, "no number in the answer")
    value = float(found[-1].replace(",", ""))
    close = math.isclose(value, float(str(expected)), rel_tol=1e-6, abs_tol=1e-9)
    return Judgement.passed() if close else _wrong(answer)


def _json_equal(answer: str, expected: object) -> Judgement:
    """The same JSON value, whatever its spacing and order of keys."""
    try:
        value = json.loads(answer)
    except ValueError:
        return Judgement.failed(FailureCategory.FORMAT_ERROR, "the answer is not JSON")
    return Judgement.passed() if value == expected else _wrong(answer)


def _json_schema(answer: str, expected: object) -> Judgement:
    """JSON, bare or in a fence, that follows the schema."""
    from jsonschema import Draft202012Validator

    fenced = _FENCE.search(answer)
    try:
        value = json.loads(fenced[1] if fenced else answer)
    except ValueError:
        return Judgement.failed(FailureCategory.FORMAT_ERROR, "the answer is not JSON")
    schema = cast("Mapping[str, object] | bool", expected)
    problem = next(Draft202012Validator(schema).iter_errors(value), None)
    if problem is None:
        return Judgement.passed()
    detail = f"{problem.json_path}: {problem.message[:200]}"
    return Judgement.failed(FailureCategory.WRONG_ANSWER, detail)


GRADERS: Mapping[str, Grader] = MappingProxyType(
    {
        "exact": _exact,
        "contains": _contains,
        "regex": _regex,
        "numeric": _numeric,
        "json": _json_equal,
        "json-schema": _json_schema,
    }
)


def grader(word: str) -> Grader:
    """A grader by its word, or ``python:MODULE:FUNCTION`` that says True or False."""
    if word in GRADERS:
        return GRADERS[word]
    if not word.startswith("python:"):
        raise InvalidValue(
            f"{word!r} is not a grader.",
            hint=f"There are: {', '.join(GRADERS)} and python:MODULE:FUNCTION.",
        )
    function = load_function(word.removeprefix("python:"))

    def own(answer: str, expected: object) -> Judgement:
        verdict = function(answer, expected)
        if isinstance(verdict, Judgement):
            return verdict
        return Judgement.passed() if verdict else _wrong(answer)

    return own


def check_expected(word: str, expected: object) -> None:
    """Refuse what a grader could not work with, before anything is run."""
    if word == "regex":
        try:
            re.compile(str(expected))
        except re.error as error:
            raise InvalidValue(f"{expected!r} is not a regular expression: {error}.") from None
    if word == "json-schema":
        from jsonschema import Draft202012Validator, SchemaError

        if not isinstance(expected, dict | bool):
            raise InvalidValue("the answer of a json-schema task is the schema, a JSON object.")
        try:
            Draft202012Validator.check_schema(expected)
        except SchemaError as error:
            raise InvalidValue(f"the answer is not a JSON schema: {error.message}.") from None
    if word == "numeric":
        try:
            float(str(expected))
        except ValueError:
            raise InvalidValue(f"{expected!r} is not a number, so it cannot be graded.") from None


def load_object(path: str) -> object:
    """The object that ``MODULE:NAME`` names; ``NAME`` may be dotted."""
    module, sign, name = path.partition(":")
    if not sign or not module or not name:
        raise InvalidValue(
            f"{path!r} should read MODULE:NAME.", hint="As in python:my_module:my_function."
        )
    try:
        return operator.attrgetter(name)(importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise InvalidValue(
            f"{path!r} cannot be loaded: {error}.",
            hint="Run passhat where the module can be imported, or install it.",
        ) from None


def load_function(path: str) -> Callable[..., object]:
    """The function that ``MODULE:NAME`` names."""
    loaded = load_object(path)
    if not callable(loaded):
        raise InvalidValue(f"{path!r} is a {type(loaded).__name__}, not a function.")
    return loaded
