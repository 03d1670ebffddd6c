"""Graders: which answers pass, which fail, and which have no verdict."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from passhat.errors import InvalidValue
from passhat.stats.outcomes import FailureCategory, MissingReason, Verdict
from passhat.suites.base import Judgement
from passhat.suites.graders import (
    GRADERS,
    LETTERS,
    check_expected,
    choice_grader,
    grader,
    load_function,
    load_object,
    weigh_graders,
)

PASSED, FAILED, MISSING = Verdict.PASSED, Verdict.FAILED, Verdict.MISSING


# -- numbers ---------------------------------------------------------------------------------------


@given(
    st.integers(-(10**9), 10**9), st.sampled_from(["{}", "It is {}.", "7 and 8 make {}", "={}!"])
)
def test_the_last_whole_number_is_taken_however_it_is_written(value: int, words: str) -> None:
    grade = GRADERS["numeric"]
    for text in (
        str(value),
        f"{value:,}",
        f"{value}.0",
        f"{value:+}",
        str(value).replace("-", "\N{MINUS SIGN}"),
    ):
        assert grade(words.format(text), value).verdict is PASSED
        assert grade(words.format(text), value + 1).verdict is FAILED or abs(value) > 10**6


@given(st.floats(-1e6, 1e6, allow_subnormal=False))
@example(1e-12)
def test_a_number_is_compared_to_one_part_in_a_million(value: float) -> None:
    grade = GRADERS["numeric"]
    assert grade(f"about {value!r}", value).verdict is PASSED
    off = value + max(1e-5 * abs(value), 1e-7)
    assert grade(f"about {off!r}", value).verdict is FAILED


@pytest.mark.parametrize(
    ("answer", "last"),
    [
        ("between 3-7", "7"),  # no sign: a range
        ("f(2)-5", "5"),
        ("the change is -7", "-7"),
        ("(-7)", "-7"),
        ("x=-7", "-7"),
        ("2 + 2 = 4", "4"),
        (".5", ".5"),
        ("1e-3", "1e-3"),
        ("costs $1,234.50 in all", "1,234.50"),
        ("\N{MINUS SIGN}12 degrees", "-12"),
    ],
)
def test_which_number_is_the_answer(answer: str, last: str) -> None:
    judgement = GRADERS["numeric"](answer, float(last.replace(",", "")))
    assert (judgement.verdict, judgement.detail) == (PASSED, f"last number: {last}")


def test_a_minus_sign_of_its_own_is_a_minus() -> None:
    """U+2212, as many models write it: -5 was graded as 5."""
    assert GRADERS["numeric"]("\N{MINUS SIGN}5", 5).verdict is FAILED
    assert GRADERS["numeric"]("\N{MINUS SIGN}5", -5).verdict is PASSED


def test_no_number_is_a_format_error() -> None:
    judgement = GRADERS["numeric"]("none at all", 3)
    assert (judgement.verdict, judgement.why) == (FAILED, "format_error")


# -- JSON ------------------------------------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "1", "true"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=6,
)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)


@given(values, values)
@example(True, 1)
@example({"a": [0]}, {"a": [False]})
@example([1, 2], [1])
def test_json_values_are_the_same_where_their_canonical_text_is(one: object, other: object) -> None:
    grade = GRADERS["json"]
    assert grade(json.dumps(one, indent=1), one).verdict is PASSED
    same = _canonical(one) == _canonical(other)
    assert grade(json.dumps(one), other).verdict is (PASSED if same else FAILED)


def test_a_whole_number_is_the_same_number_with_a_point() -> None:
    assert GRADERS["json"]('{"total": 5.0}', {"total": 5}).verdict is PASSED
    assert GRADERS["json"]("{total: 5}", {"total": 5}).why == "format_error"


def test_a_schema_names_the_place_that_breaks_it() -> None:
    schema = {"type": "object", "properties": {"lines": {"items": {"type": "integer"}}}}
    grade = GRADERS["json-schema"]
    assert grade('{"lines": [1, 2]}', schema).verdict is PASSED
    judgement = grade('```json\n{"lines": [1, "x"]}\n```', schema)
    assert judgement.why == "wrong_answer"
    assert judgement.detail.startswith("$.lines[1]: 'x' is not of type 'integer'")
    assert grade("```json\n{broken\n```", schema).why == "format_error"


# -- choices ---------------------------------------------------------------------------------------

CHOICES = ["Rome", "Paris", "Bern", "DNA"]


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        ("B", "B"),
        ("(B)", "B"),
        ("B.", "B"),
        ("The answer is B, not A", "A"),  # the last letter is the answer
        ("**B**", "B"),
        ("paris", "B"),
        (" Paris\n", "B"),
        ("A: Rome", "A"),
        ("dna", "D"),
        ("DNA is a molecule", None),  # D of a word is no choice
        ("see NASA", None),
        ("vitamin B2", None),
        ("Because I say so", None),
        ("E", None),  # beyond the choices
        ("", None),
    ],
)
def test_the_letter_that_is_taken(answer: str, taken: str | None) -> None:
    judgement = choice_grader(CHOICES, "B")(answer, None)
    if taken is None:
        assert (judgement.verdict, judgement.why) == (FAILED, "format_error")
    else:
        assert judgement.detail == f"choice: {taken}"
        assert judgement.verdict is (PASSED if taken == "B" else FAILED)


@given(st.integers(2, 26), st.data())
def test_a_letter_alone_is_itself_and_a_text_is_its_letter(count: int, data: st.DataObject) -> None:
    choices = [f"choice number {place}" for place in range(count)]
    right = data.draw(st.integers(0, count - 1))
    given_ = data.draw(st.integers(0, count - 1))
    for expected in (LETTERS[right], LETTERS[right].lower(), choices[right].upper()):
        grade = choice_grader(choices, expected)
        for answer in (LETTERS[given_], f"({LETTERS[given_]})", choices[given_].title()):
            assert grade(answer, None).verdict is (PASSED if given_ == right else FAILED)


@pytest.mark.parametrize("expected", ["E", "", "Madrid", 2, None])
def test_an_answer_that_is_no_choice_is_refused_with_the_last_letter(expected: object) -> None:
    with pytest.raises(InvalidValue, match="none of the choices") as caught:
        choice_grader(CHOICES, expected)
    assert "a letter up to D" in str(caught.value)


# -- several graders -------------------------------------------------------------------------------


def _fixed(judgement: Judgement) -> object:
    return lambda _answer, _expected: judgement


KINDS = {
    "passed": Judgement.passed(),
    "failed": Judgement.failed(FailureCategory.WRONG_ANSWER),
    "missing": Judgement.missing(MissingReason.JUDGE_ERROR, "down"),
}


@given(
    st.lists(st.tuples(st.sampled_from(sorted(KINDS)), st.integers(1, 4)), min_size=1, max_size=5),
    st.sampled_from([0.25, 0.5, 0.75, 1.0]),
)
def test_a_weighted_verdict_is_certain_or_missing(
    parts: list[tuple[str, int]], pass_at: float
) -> None:
    """Passed however the missing parts would have ended, failed likewise, else missing."""
    total = sum(weight for _, weight in parts)
    least = sum(weight for kind, weight in parts if kind == "passed") / total
    most = sum(weight for kind, weight in parts if kind != "failed") / total
    made = [(kind, _fixed(KINDS[kind]), None, float(weight)) for kind, weight in parts]
    judgement = weigh_graders(made, pass_at)("any", None)  # type: ignore[arg-type]
    if least >= pass_at - 1e-9:
        assert judgement.verdict is PASSED
    elif most < pass_at - 1e-9:
        assert (judgement.verdict, judgement.why) == (FAILED, "wrong_answer")
    else:
        assert (judgement.verdict, judgement.why) == (MISSING, "judge_error")
    assert judgement.detail.startswith(f"{least:.2f} of {pass_at:g} needed: {parts[0][0]}")


def test_a_reason_of_the_users_own_is_kept_within_the_vocabulary() -> None:
    odd = Judgement(FAILED, "too long", "my words")
    judgement = weigh_graders([("own", _fixed(odd), None, 1.0)])("x", None)  # type: ignore[list-item]
    assert (judgement.verdict, judgement.why) == (FAILED, "unknown_failure")


# -- before anything is run ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "expected", "says"),
    [
        ("regex", "(", "not a regular expression"),
        ("json-schema", "text", "is the schema, a JSON object"),
        ("json-schema", {"type": "wrong"}, "not a JSON schema"),
        ("numeric", "three", "'three' is not a number"),
        ("numeric", math.nan, "nan is not a number"),
        ("numeric", "inf", "'inf' is not a number"),
        ("numeric", None, "None is not a number"),
    ],
)
def test_what_cannot_be_graded_is_refused(word: str, expected: object, says: str) -> None:
    with pytest.raises(InvalidValue, match=says.replace("(", r"\(")):
        check_expected(word, expected)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("regex", "a+"), ("json-schema", True), ("numeric", "1e3"), ("exact", "("), ("contains", 3)],
)
def test_what_can_be_graded_is_not_refused(word: str, expected: object) -> None:
    check_expected(word, expected)


def test_an_unknown_grader_lists_the_known() -> None:
    with pytest.raises(InvalidValue, match="'exactly' is not a grader") as caught:
        grader("exactly")
    assert caught.value.hint == f"There are: {', '.join(GRADERS)} and python:MODULE:FUNCTION."


@pytest.mark.parametrize(
    ("path", "says", "hint"),
    [
        ("json", "should read MODULE:NAME", "python:my_module:my_function"),
        (":loads", "should read MODULE:NAME", ""),
        ("json:", "should read MODULE:NAME", ""),
        ("./graders/own.py:grade", "is a file", "Write python:graders.own:grade"),
        ("json:load_s", "module 'json' has no 'load_s'", "Did you mean python:json:loads?"),
        ("no_such_module_here:f", "there is no module 'no_such_module_here'", "or install it"),
        ("json.nothing:f", "there is no module 'json.nothing'", ""),
    ],
)
def test_a_path_that_leads_nowhere_says_where_it_ends(path: str, says: str, hint: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        load_object(path)
    assert says in caught.value.message
    assert hint in str(caught.value.hint)


def test_modules_that_break_are_told_from_modules_that_lack_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_grader.py").write_text("1 / 0\n")
    (tmp_path / "needy_grader.py").write_text("import no_such_package_at_all\n")
    (tmp_path / "empty_grader.py").write_text("import os\n_hidden = 1\n")
    (tmp_path / "own_grader.py").write_text(
        "limit = 3\nclass Box:\n    @staticmethod\n    def grade(answer, expected):\n"
        "        return answer == expected\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InvalidValue, match="ZeroDivisionError: division by zero"):
        load_object("broken_grader:f")
    with pytest.raises(InvalidValue, match="it needs 'no_such_package_at_all'") as caught:
        load_object("needy_grader:f")
    assert caught.value.hint == "pip install no_such_package_at_all"
    with pytest.raises(InvalidValue, match="has no 'f'") as caught:
        load_object("empty_grader:f")
    assert caught.value.hint == "It defines nothing."
    with pytest.raises(InvalidValue, match="there is no module 'own_gradr'") as caught:
        load_object("own_gradr:f")
    assert caught.value.hint == "Did you mean python:own_grader:...?"
    with pytest.raises(InvalidValue, match="'own_grader:limit' is a int, not a function"):
        load_function("own_grader:limit")
    grade = grader("python:own_grader:Box.grade")
    assert grade("x", "x").verdict is PASSED
    assert grade("y", "x").detail == "answered 'y'"
