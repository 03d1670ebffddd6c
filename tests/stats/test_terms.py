from __future__ import annotations

import ast
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

import passhat
from passhat.errors import InvalidValue
from passhat.stats.estimate import estimate
from passhat.stats.outcomes import MissingPolicy, Outcomes
from passhat.stats.terms import Population, TermOptions, Terms

SUITE = Outcomes.from_counts(8, [8, 5, 0, 3], missing=[0, 1, 0, 0])


def test_words_become_values() -> None:
    terms = Terms.from_options({"missing": "exclude", "about": "these-tasks", "level": 0.9})
    assert terms == Terms(MissingPolicy.EXCLUDE, 0.9, population=Population.THESE_TASKS)
    with pytest.raises(FrozenInstanceError):
        terms.level = 0.5  # type: ignore[misc]


@pytest.mark.parametrize("word", ["these tasks", "these-tasks", "re-runs", "Re-Runs", "reruns"])
def test_re_runs_is_an_alias_of_these_tasks(word: str) -> None:
    assert Population.of(word) is Population.THESE_TASKS
    assert estimate(SUITE, "pass^2", about=word).population is Population.THESE_TASKS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "drop"}, "missing policy must be one of fail, exclude, bound"),
        ({"level": 1.5}, "level must lie between 0 and 1"),
        ({"level": "high"}, "level must be a number such as 0.95, not 'high'"),
        ({"level": True}, "level must be a number"),
        ({"drop_short": "no"}, "drop_short must be True or False"),
        ({"cluster": ""}, "cluster must be the name of a label"),
        ({"about": "this suite"}, "about must be 'new tasks' or 'these tasks'"),
    ],
)
def test_values_outside_their_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Terms.from_options(options)


def test_unknown_and_unused_options_are_refused() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'misssing'.*missing"):
        Terms.from_options({"misssing": "bound"})
    with pytest.raises(InvalidValue, match=r"'allow' has no effect here.*missing, level"):
        estimate(SUITE, "pass^2", allow=True)


def test_keywords_change_single_options_of_terms() -> None:
    terms = Terms.from_options({"level": 0.8, "missing": "fail"})
    assert estimate(SUITE, "pass^2", terms) == estimate(SUITE, "pass^2", level=0.8, missing="fail")
    changed = estimate(SUITE, "pass^2", terms, level=0.99)
    assert changed == estimate(SUITE, "pass^2", level=0.99, missing="fail")


def test_no_function_lists_the_options_again() -> None:
    """More than two of the fields in a signature: the function should take ``terms``.

    Public functions list their parameters, so that editors and errors can name them.
    """
    fields = {*TermOptions.__annotations__, "population"}
    root = Path(passhat.__file__).parent
    listed = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            arguments = node.args
            every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            taken = {argument.arg for argument in every}
            if len(taken & fields) > 2 and node.name not in passhat.__all__:
                listed.append(f"{path.relative_to(root)}:{node.lineno} {node.name}")
    assert listed == []
