"""The judge's part of pytest, beside pytest itself: both say the same of the same tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.judging.inside.pytest_subset import pytest_module, run_functions


class Refused(BaseException):
    """What the judge is told of a name that the subset lacks."""


@cache
def subset() -> Any:
    """The judge's module; not a value of this one, where pytest would ask it for names."""
    return pytest_module(Refused)


NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.integers(-5, 5)
STEPS = st.sampled_from([0.0, 1e-13, 9e-13, 2e-12, 9e-7, 2e-6, 0.05, 0.2])
LIMITS = st.none() | st.sampled_from([0.0, 1e-9, 1e-3, 0.1])


@given(expected=NUMBERS, step=STEPS, rel=LIMITS, absolute=LIMITS)
def test_numbers_are_as_close_as_to_pytest(
    expected: float, step: float, rel: float | None, absolute: float | None
) -> None:
    limits: dict[str, Any] = {"rel": rel, "abs": absolute}
    for number in (expected, expected + step, expected * (1 + step), expected * (1 + step / 2)):
        # pytest takes the tolerance of the expected number, the judge that of the larger one.
        near = [pytest.approx(side, **limits) == other for side, other in _both(expected, number)]
        if near[0] == near[1]:
            assert (number == subset().approx(expected, **limits)) is near[0]


def _both(a: float, b: float) -> list[tuple[float, float]]:
    return [(a, b), (b, a)]


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ([1.0, 2.0], [1.0, 2.0 + 1e-9]),
        ([1.0, 2.0], [1.0]),
        ([1.0, 2.0], [1.0, 3.0]),
        ((1.0,), (1.0,)),
        ({"a": 1.0}, {"a": 1.0 + 1e-9}),
        ({"a": 1.0}, {"b": 1.0}),
        ({"a": 1.0}, {"a": 1.0, "b": 1.0}),
        ({"a": 1.0}, {"a": 2.0}),
        ({}, {}),
        ("text", "text"),
        ("text", "other"),
        (1.0, "1.0"),
        (None, None),
    ],
)
def test_containers_are_compared_part_by_part(expected: object, found: object) -> None:
    assert (found == subset().approx(expected)) is (found == pytest.approx(expected))


def test_a_list_is_no_tuple() -> None:
    assert subset().approx([1.0]) != (1.0,)
    with pytest.raises(TypeError):
        hash(subset().approx(1.0))


def _of(module: str) -> Any:
    return subset() if module == "subset" else pytest


def _boom(word: str = "boom", **_more: object) -> None:
    raise KeyError(word)


@pytest.mark.parametrize(
    ("kinds", "match"),
    [(KeyError, None), (LookupError, "bo+m"), ((ValueError, KeyError), "m"), (KeyError, "other")],
)
@pytest.mark.parametrize("module", ["subset", "pytest"])
def test_an_error_is_caught_by_kind_and_text(module: str, kinds: Any, match: str | None) -> None:
    failures = (AssertionError, pytest.fail.Exception)
    try:
        with _of(module).raises(kinds, match=match) as caught:
            _boom()
    except failures:
        assert match == "other"
        return
    assert match != "other"
    assert isinstance(caught.value, KeyError)
    assert caught.type is KeyError


@pytest.mark.parametrize("module", ["subset", "pytest"])
def test_an_error_of_a_call_is_caught_and_any_other_goes_on(module: str) -> None:
    assert _of(module).raises(KeyError, _boom, "word").value.args == ("word",)
    assert _of(module).raises(KeyError, _boom, word="word").value.args == ("word",)
    with pytest.raises(KeyError):
        _of(module).raises(ValueError, _boom)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        _of(module).raises(KeyError, str, "fine")


@pytest.mark.parametrize("name", ["importorskip", "skip", "param"])
def test_a_name_that_it_lacks_ends_the_judgement(name: str) -> None:
    with pytest.raises(Refused, match=name):
        getattr(subset(), name)
    with pytest.raises(Refused, match=name):
        getattr(subset().mark, name)
    assert not hasattr(subset(), "__path__")
    with pytest.raises(AssertionError, match="so it is"):
        subset().fail("so it is")


def _run(*functions: Callable[..., Any], **definitions: Any) -> None:
    run_functions(list(functions), definitions)


def test_every_row_of_parameters_is_run_and_rows_are_combined() -> None:
    seen: list[tuple[int, ...]] = []

    @subset().mark.parametrize("a", [1, 2])  # type: ignore[untyped-decorator]
    @subset().mark.parametrize("b, c", [(3, 4), (5, 6)])  # type: ignore[untyped-decorator]
    def test_all(a: int, b: int, c: int, d: int = 7) -> None:
        seen.append((a, b, c, d))

    @subset().mark.parametrize(["a"], [[1], [2]])  # type: ignore[untyped-decorator]
    def test_lists(a: list[int]) -> None:
        seen.append(tuple(a))

    _run(test_all, test_lists)
    assert sorted(seen[:4]) == [(a, *bc, 7) for a in (1, 2) for bc in ((3, 4), (5, 6))]
    assert seen[4:] == [(1,), (2,)]


def test_fixtures_are_made_once_for_a_test_and_ended_behind_it() -> None:
    events: list[str] = []

    @subset().fixture  # type: ignore[untyped-decorator]
    def one() -> str:
        events.append("one")
        return "1"

    @subset().fixture(scope="module")  # type: ignore[untyped-decorator]
    def two(one: str) -> Any:
        events.append("two")
        yield f"{one}2"
        events.append("end of two")

    def test_first(one: str, two: str) -> None:
        events.append(f"first {one} {two}")

    def test_second(two: str) -> None:
        events.append(f"second {two}")

    _run(test_first, test_second, one=one, two=two)
    parts = ["one", "two", "first 1 12", "end of two", "one", "two", "second 12", "end of two"]
    assert events == parts
    with pytest.raises(NameError, match="'three'"):
        _run(lambda three: three)


def test_a_test_that_returns_false_fails_and_any_other_value_does_not() -> None:
    _run(lambda: None, lambda: True, lambda: 0)
    with pytest.raises(AssertionError, match="returns False"):
        _run(lambda: False)


def test_methods_of_classes_run_between_their_set_up_and_clean_up() -> None:
    events: list[str] = []

    class TestPlain:
        def setup_method(self, method: Any) -> None:
            events.append(f"set up {method.__name__}")

        def teardown_method(self) -> None:
            events.append("clean up")

        def test_a(self) -> None:
            events.append("a")

        def test_b(self) -> None:
            events.append("b")
            raise ValueError

        def helper(self) -> None:
            events.append("helper")

    class TestCase:
        def run(self) -> None: ...

        def test_c(self) -> None:
            events.append("c")

    class Other:
        def test_d(self) -> None:
            events.append("d")

    with pytest.raises(ValueError, match=r"^$"):
        _run(TestPlain=TestPlain, TestCase=TestCase, Other=Other, Testing=3)
    assert events == ["set up test_a", "a", "clean up", "set up test_b", "b", "clean up"]


def test_what_is_patched_is_put_back() -> None:
    target = SimpleNamespace(kept=1, soft=2)
    table = {"kept": 1}
    os.environ["PASSHAT_SUBSET_A"] = "before"
    before = os.getlogin

    def test_patches(monkeypatch: Any) -> None:
        monkeypatch.setattr(target, "kept", 10)
        monkeypatch.setattr(target, "soft", 20, raising=False)
        monkeypatch.setattr(target, "new", 30, raising=False)
        monkeypatch.setattr("os.getlogin", lambda: "nobody")
        monkeypatch.setitem(table, "kept", 10)
        monkeypatch.setitem(table, "new", 30)
        monkeypatch.delenv("PASSHAT_SUBSET_A")
        monkeypatch.delenv("PASSHAT_SUBSET_B", raising=False)
        monkeypatch.setenv("PASSHAT_SUBSET_B", "set")
        assert (target.kept, target.soft, target.new, table) == (
            10,
            20,
            30,
            {"kept": 10, "new": 30},
        )
        assert os.getlogin() == "nobody"
        assert ("PASSHAT_SUBSET_A" in os.environ, os.environ["PASSHAT_SUBSET_B"]) == (False, "set")
        with pytest.raises(AttributeError):
            monkeypatch.setattr(target, "absent", 1)
        with pytest.raises(KeyError):
            monkeypatch.delenv("PASSHAT_SUBSET_C")

    try:
        _run(test_patches)
        assert vars(target) == {"kept": 1, "soft": 2}
        assert table == {"kept": 1}
        assert os.getlogin is before
        assert os.environ["PASSHAT_SUBSET_A"] == "before"
        assert "PASSHAT_SUBSET_B" not in os.environ
    finally:
        del os.environ["PASSHAT_SUBSET_A"]


def test_output_is_captured_up_to_each_look_and_streams_are_put_back() -> None:
    streams = sys.stdout, sys.stderr

    def test_output(capsys: Any, tmp_path: Path) -> None:
        sys.stdout.write("one\n")
        sys.stderr.write("two\n")
        assert capsys.readouterr() == ("one\n", "two\n")
        sys.stdout.write("three\n")
        assert capsys.readouterr().out == "three\n"
        assert capsys.readouterr().err == ""
        folders.append(tmp_path)
        assert tmp_path.is_dir()

    folders: list[Path] = []
    _run(test_output)
    assert (sys.stdout, sys.stderr) == streams
    assert not folders[0].exists()
