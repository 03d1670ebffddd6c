"""Graders for suites in a file: compare an answer with the expected value."""

from __future__ import annotations

import difflib
import importlib
import inspect
import json
import math
import operator
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import cast

from passhat._display import some
from passhat.errors import InvalidValue, shorten
from passhat.stats.outcomes import FailureCategory, Verdict
from passhat.stats.outcomes.vocabulary import failure_category, missing_reason
from passhat.suites.base import Judgement

Grader = Callable[[str, object], Judgement]
"""(the agent's answer, what was expected) to a judgement."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
# A sign counts where no digit or letter is before it: "3-7" ends with 7, "is -7" with -7.
_NUMBER = re.compile(r"(?:(?<![\w)])[-+])?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NEAR = 0.7
"""How alike two names are, from 0 to 1, before one is suggested for the other."""
_MINUS = str.maketrans({"\N{MINUS SIGN}": "-"})  # as many models write it


def _wrong(answer: str) -> Judgement:
    return Judgement.failed(FailureCategory.WRONG_ANSWER, _wrong_detail(answer))


def _wrong_detail(answer: str) -> str:
    return f"answered {answer.strip()[:80]!r}"


def _exact(answer: str, expected: object) -> Judgement:
    return Judgement.passed() if answer.strip() == str(expected).strip() else _wrong(answer)


def _contains(answer: str, expected: object) -> Judgement:
    if str(expected) in answer:
        return Judgement.passed()
    return replace(_wrong(answer), difference="the expected text is not in the answer")


def _regex(answer: str, expected: object) -> Judgement:
    if re.search(str(expected), answer):
        return Judgement.passed()
    return replace(_wrong(answer), difference="the pattern does not match the answer")


def _numeric(answer: str, expected: object) -> Judgement:
    """The last number in the answer, to one part in a million."""
    numbers = _NUMBER.findall(answer.translate(_MINUS))
    if not numbers:
        return Judgement.failed(FailureCategory.FORMAT_ERROR, "no number in the answer")
    value = float(numbers[-1].replace(",", ""))
    close = math.isclose(value, float(str(expected)), rel_tol=1e-6, abs_tol=1e-9)
    answer_taken = f"last number: {numbers[-1]}"
    if close:
        return Judgement(Verdict.PASSED, "", answer_taken, got=numbers[-1])
    wrong = Judgement.failed(FailureCategory.WRONG_ANSWER, answer_taken)
    return replace(wrong, got=numbers[-1])


def choice_grader(choices: Sequence[str], expected: object) -> Grader:
    """A grader that takes the last letter of a choice, or the choice's own text."""
    if len(choices) > len(LETTERS):
        raise InvalidValue(f"a task has at most {len(LETTERS)} choices, not {len(choices)}.")
    texts = [text.strip().casefold() for text in choices]
    word = str(expected).strip()
    if isinstance(expected, str) and word.casefold() in texts:
        right = LETTERS[texts.index(word.casefold())]
    elif len(word) == 1 and word.upper() in LETTERS[: len(choices)]:
        right = word.upper()
    else:
        raise InvalidValue(
            f"the answer {expected!r} is none of the choices.",
            hint=f"Give a letter up to {LETTERS[len(choices) - 1]}, or the text of a choice.",
        )

    def grade(answer: str, _expected: object) -> Judgement:
        text = answer.strip()
        if text.casefold() in texts:
            answer_taken = LETTERS[texts.index(text.casefold())]
        else:
            last = LETTERS[len(choices) - 1]
            letters = re.findall(rf"(?<![A-Za-z0-9])([A-{last}])(?![A-Za-z0-9])", text)
            if not letters:
                return Judgement.failed(FailureCategory.FORMAT_ERROR, "no choice in the answer")
            answer_taken = letters[-1]
        detail = f"choice: {answer_taken}"
        if answer_taken == right:
            return Judgement(Verdict.PASSED, "", detail, expected=right, got=answer_taken)
        wrong = Judgement.failed(FailureCategory.WRONG_ANSWER, detail)
        return replace(wrong, expected=right, got=answer_taken)

    return grade


def weigh_graders(
    parts: Sequence[tuple[str, Grader, object, float]], pass_at: float = 1.0
) -> Grader:
    """Several graders with weights: passed when their share reaches ``pass_at``.

    A part without a verdict makes the whole missing where it could still decide it.
    """
    total = sum(weight for *_, weight in parts)

    def grade(answer: str, _expected: object) -> Judgement:
        shares, score = dict.fromkeys(Verdict, 0.0), 0.0
        reasons: dict[Verdict, str] = {}
        details = []
        for name, grader, expected, weight in parts:
            judgement = grader(answer, expected)
            shares[judgement.verdict] += weight / total
            part_score = float(judgement.verdict) if judgement.score is None else judgement.score
            score += part_score * weight / total
            reasons.setdefault(judgement.verdict, judgement.why)
            details.append(f"{name} {judgement.verdict}")
        passed, threshold = shares[Verdict.PASSED], pass_at - 1e-9
        detail = f"{passed:.2f} of {pass_at:g} needed: {', '.join(details)}"
        if passed >= threshold:
            judgement = Judgement(Verdict.PASSED, "", detail)
        elif passed + shares[Verdict.MISSING] >= threshold:
            return Judgement.missing(missing_reason(reasons[Verdict.MISSING]), detail)
        else:
            judgement = Judgement.failed(failure_category(reasons[Verdict.FAILED]), detail)
            judgement = replace(judgement, difference=detail)
        # A part without a verdict has no score either, and then the whole has none.
        return judgement if shares[Verdict.MISSING] else replace(judgement, score=score)

    return grade


def _json_equal(answer: str, expected: object) -> Judgement:
    """Whether the answer is the same JSON value, in any spacing and order of keys."""
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):  # a thousand brackets are no answer either
        return Judgement.failed(FailureCategory.FORMAT_ERROR, "the answer is not JSON")
    if _same_json(value, expected):
        return Judgement.passed()
    return replace(_wrong(answer), expected=json.dumps(expected, ensure_ascii=False))


def read_expected_json(expected: object) -> object:
    """The expected JSON value; a text that holds an object or a list, as exports write it, is it.

    Raises
    ------
    InvalidValue
        A text that is meant as JSON and is none, or that may be meant as a number or as a text.
    """
    if not isinstance(expected, str):
        return expected
    try:
        value = json.loads(expected)
    except (ValueError, RecursionError) as error:
        if expected.lstrip().startswith(("{", "[")):
            raise InvalidValue(
                f"the answer {shorten(expected)} is a text that should hold JSON, and does not: "
                f"{error}.",
                hint='Write the value itself, as in "answer": {"a": 1}.',
            ) from None
        return expected
    if isinstance(value, dict | list | str):
        return value
    raise InvalidValue(
        f"the answer {json.dumps(expected)} may be a JSON text or the value {expected.strip()}.",
        hint=f'Write "answer": {expected.strip()} for the value, '
        f'"answer": {json.dumps(json.dumps(expected))} for a text in quotes.',
    )


def _same_json(one: object, other: object) -> bool:
    """Whether two JSON values are the same; in Python ``True == 1``, in JSON they differ."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same_json(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same_json, one, other))
    return one == other


def _json_schema(answer: str, expected: object) -> Judgement:
    """JSON, bare or in a fence, that follows the schema."""
    from jsonschema import Draft202012Validator

    fence = _FENCE.search(answer)
    try:
        value = json.loads(fence[1] if fence else answer)
    except (ValueError, RecursionError):  # a thousand brackets are no answer either
        detail = "the answer is not JSON"
        judgement = Judgement.failed(FailureCategory.FORMAT_ERROR, detail)
        return replace(judgement, difference=detail)
    schema = cast("Mapping[str, object] | bool", expected)
    problem = next(Draft202012Validator(schema).iter_errors(value), None)
    if problem is None:
        return Judgement.passed()
    detail = f"{problem.json_path}: {problem.message[:200]}"
    wrong = Judgement.failed(FailureCategory.WRONG_ANSWER, detail)
    at_top = problem.json_path == "$"
    return replace(wrong, difference=problem.message[:200] if at_top else detail)


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


def grader(word: str | Callable[[str, object], object]) -> Grader:
    """A grader by its name, or a function that returns True, False or a score.

    ``python:MODULE:FUNCTION`` is a function, too; it is called with the answer and the expected.
    """
    if not isinstance(word, str):
        return _function_grader(word)
    if word in GRADERS:
        return GRADERS[word]
    if not word.startswith("python:"):
        raise InvalidValue(
            f"{word!r} is not a grader.",
            hint=f"There are: {', '.join(GRADERS)} and python:MODULE:FUNCTION.",
        )
    return _function_grader(load_function(word.removeprefix("python:")))


def _function_grader(function: Callable[..., object]) -> Grader:
    check_judge(function, ("answer", "expected"))

    def grade(answer: str, expected: object) -> Judgement:
        return Judgement.from_result(function(answer, expected), _wrong_detail(answer))

    return grade


def check_judge(
    function: Callable[..., object], parameters: Sequence[str] = ("task", "answer")
) -> None:
    """Refuse a judge that cannot be called so, or returns a coroutine or a generator."""
    if not callable(function):
        raise InvalidValue(
            f"a judge is a function of {' and '.join(parameters)}, not {shorten(function)}.",
            hint='A grader is named in the task, as in {"grader": "contains"}.',
        )
    name = getattr(function, "__name__", type(function).__name__)
    try:
        inspect.signature(function).bind(*parameters)
    except ValueError:
        pass  # some functions in C do not tell their parameters
    except TypeError as error:
        raise InvalidValue(
            f"the judge {name}{inspect.signature(function)} cannot be called with "
            f"{' and '.join(parameters)}: {error}.",
            hint=f"Write def {name}({', '.join(parameters)}):",
        ) from None
    for call in (function, getattr(type(function), "__call__", None)):  # noqa: B004 - its own code
        if inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
            raise InvalidValue(
                f"the judge {name} is a generator; a judge returns one verdict.",
                hint="Return True or False instead of yielding it.",
            )
        if inspect.iscoroutinefunction(call):
            raise InvalidValue(
                f"the judge {name} is async, and is called without await.",
                hint=f"Write def {name} without async, or a Suite of your own: the judge of an "
                "Episode may be async.",
            )


def check_expected(word: str, expected: object) -> None:
    """Refuse an expected value that a grader cannot use, before anything is run."""
    if word in ("exact", "contains", "regex"):
        _check_expected_text(word, expected)
    if word == "json" and expected is None:
        raise InvalidValue(
            "there is no expected answer, so the grader json would fail every attempt.",
            hint='Give it in "answer"; where null is right: "grader": "exact", "answer": "null".',
        )
    if word == "regex":
        try:
            re.compile(str(expected))
        except re.error as error:
            raise InvalidValue(f"{expected!r} is not a regular expression: {error}.") from None
    if word == "json-schema":
        _check_schema(expected)
    if word == "numeric":
        try:
            is_number = math.isfinite(float(str(expected)))
        except ValueError:
            is_number = False
        if not is_number:
            raise InvalidValue(f"{expected!r} is not a number, so it cannot be graded.")


def _check_schema(expected: object) -> None:
    from jsonschema import Draft202012Validator, SchemaError

    if not isinstance(expected, dict | bool):
        raise InvalidValue("the answer of a json-schema task is the schema, a JSON object.")
    try:
        Draft202012Validator.check_schema(expected)
    except SchemaError as error:
        raise InvalidValue(f"the answer is not a JSON schema: {error.message}.") from None


def _check_expected_text(word: str, expected: object) -> None:
    """Refuse an expected answer that is no text, or an empty one."""
    if isinstance(expected, bool | list | dict):
        as_json = json.dumps(expected, ensure_ascii=False)
        hint = f'Write "answer": {json.dumps(as_json)}, or "grader": "json".'
        if isinstance(expected, list) and expected:
            pattern = rf"^\s*({'|'.join(re.escape(str(part)) for part in expected)})\s*$"
            hint = (
                "Where any of them is right: "
                f'"grader": "regex", "answer": {json.dumps(pattern)}. '
                'Where the list is: "grader": "json".'
            )
        raise InvalidValue(
            f"the answer {shorten(as_json)} is {_KINDS[type(expected)]}, and the grader {word} "
            "compares with one text.",
            hint=hint,
        )
    if expected is None or not str(expected).strip():
        effect = "pass" if expected is not None and word != "exact" else "fail"
        raise InvalidValue(
            f"there is no expected answer, so the grader {word} would {effect} every attempt.",
            hint='Give it in "answer", as in {"id": "a", "prompt": "2 + 2?", "answer": "4"}; '
            r'where silence is right: "grader": "regex", "answer": "^\\s*$".',
        )


_KINDS = {bool: "true or false", list: "a list", dict: "an object"}


def load_object(path: str) -> object:
    """The object that ``MODULE:NAME`` names; ``NAME`` may be dotted."""
    module, sign, name = path.partition(":")
    if not sign or not module or not name:
        raise InvalidValue(
            f"{path!r} should read MODULE:NAME.",
            hint=name_functions(path) or "As in python:my_module:my_function.",
        )
    if module.endswith(".py"):
        module_name = module.removesuffix(".py").replace("/", ".").strip(".")
        raise InvalidValue(
            f"{module!r} is a file; a module has no .py.", hint=f"Write python:{module_name}:{name}"
        )
    target = _import_module(module)
    try:
        return operator.attrgetter(name)(target)
    except AttributeError:
        public = [word for word in vars(target) if not word.startswith("_")]
        close = difflib.get_close_matches(name, public, 1, _NEAR)
        if close:
            hint = f"Did you mean python:{module}:{close[0]}?"
        else:
            names = [w for w in public if getattr(vars(target)[w], "__module__", "") == module]
            hint = f"It has: {some(names, 8)}" if names else "It defines nothing."
        raise InvalidValue(f"module {module!r} has no {name!r}.", hint=hint) from None


def name_functions(word: str) -> str:
    """Say what to write for a Python file here that is named without its function; else nothing."""
    import ast

    module = word.removesuffix(":").removesuffix(".py").replace("/", ".").strip(".")
    try:
        tree = ast.parse(Path(f"{module.replace('.', '/')}.py").read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    names = [node.name for node in tree.body if isinstance(node, kinds)]
    words = [f"python:{module}:{name}" for name in names if not name.startswith("_")]
    return f"Write {' or '.join(words[:3])}" if words else ""


def _import_module(module: str) -> ModuleType:
    """The module, from this folder only where no installed one has its name."""
    # Last on the path: a rich.py or json.py of this folder must not replace the real one.
    if not {"", str(Path.cwd())} & set(sys.path):
        sys.path.append("")
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise InvalidValue(
                f"module {module!r} cannot be imported: it needs {error.name!r}, which is not "
                "installed.",
                hint=f"pip install {error.name}" if error.name else None,
            ) from None
        raise InvalidValue(
            f"there is no module {module!r}, neither in this folder nor installed.",
            hint=_guess_module(module)
            or f"Run passhat in the folder of {module.partition('.')[0]}.py, or install it.",
        ) from None
    except (Exception, SystemExit) as error:  # the user's module: anything can go wrong in it
        raise InvalidValue(
            f"module {module!r} cannot be imported: {type(error).__name__}: {error}.",
            hint=f"python -c 'import {module}' shows where.",
        ) from None


def _guess_module(module: str) -> str:
    """The module that was probably meant: a path with dots, or a name that is nearly the same."""
    dotted = module.strip("./").replace("/", ".")
    if "/" in module and Path(f"{dotted.replace('.', '/')}.py").is_file():
        return f"Write python:{dotted}:NAME, with dots as in an import."
    files = [path.stem for path in Path().glob("*.py")]
    close = difflib.get_close_matches(module, files, 1, _NEAR)
    return f"Did you mean python:{close[0]}:...?" if close else ""


def load_function(path: str) -> Callable[..., object]:
    """The function that ``MODULE:NAME`` names."""
    target = load_object(path)
    if not callable(target):
        raise InvalidValue(f"{path!r} is a {type(target).__name__}, not a function.")
    return target
