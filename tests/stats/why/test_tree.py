"""The prefix tree, its decisive step, and the closest pair."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat.stats.why import (
    END,
    Branch,
    Step,
    Trace,
    build_tree,
    find_closest_pair,
    find_decisive_step,
)
from passhat.stats.why.tree import edit_distance, smallest_p_value

_paths = st.lists(st.sampled_from("abc"), max_size=5)
_tasks = st.lists(st.tuples(_paths, st.booleans()), min_size=1, max_size=8)


def make_traces(attempts: list[tuple[list[str], bool]]) -> list[Trace]:
    return [
        Trace("task", number, passed, tuple(map(Step, path)))
        for number, (path, passed) in enumerate(attempts, 1)
    ]


def list_paths(branch: Branch, before: tuple[str, ...] = ()) -> dict[int, tuple[str, ...]]:
    """Every attempt's path, put together again from the tree."""
    path = (*before, *branch.steps)
    if not branch.branches:
        return dict.fromkeys(branch.numbers, path)
    return {
        number: whole
        for below in branch.branches
        for number, whole in list_paths(below, path).items()
    }


@settings(max_examples=max_examples(40), deadline=None)
@given(_tasks)
def test_the_tree_holds_every_attempt_once_and_its_whole_path(
    attempts: list[tuple[list[str], bool]],
) -> None:
    traces = make_traces(attempts)
    tree = build_tree(traces)
    expected = {trace.number: (*(s.label for s in trace.calls), END) for trace in traces}
    assert list_paths(tree) == expected
    passed = {trace.number for trace in traces if trace.passed}
    for branch in tree.walk():
        assert set(branch.passed) == passed.intersection(branch.numbers)
        numbers = [number for below in branch.branches for number in below.numbers]
        assert not branch.branches or sorted(numbers) == sorted(branch.numbers)
        firsts = [below.steps[0] for below in branch.branches]
        assert len(set(firsts)) == len(firsts) != 1


@settings(max_examples=max_examples(15), deadline=None)
@given(st.lists(_paths, min_size=6, max_size=7), st.integers(1, 3))
def test_a_decisive_step_is_found_by_chance_in_at_most_five_percent(
    paths: list[list[str]], failures: int
) -> None:
    """Exactly: over all ways to deal out the failures among the same attempts."""
    deals = list(combinations(range(len(paths)), failures))
    found = [
        find_decisive_step(
            make_traces([(path, place not in deal) for place, path in enumerate(paths)]), 0.05
        )
        for deal in deals
    ]
    assert sum(step is not None for step in found) <= 0.05 * len(deals)


def test_a_wrong_call_that_always_fails_is_decisive() -> None:
    right, wrong = ["find", "check", "pay"], ["find", "delete", "pay"]
    traces = make_traces([(right, True), (wrong, False)] * 4)
    step = find_decisive_step(traces, 0.05)
    assert step is not None
    assert (step.step, step.after) == ("delete", ("find",))
    assert (step.numbers, step.failed, step.others_failed) == ((2, 4, 6, 8), 4, 0)
    assert step.p_value == pytest.approx(2 / 70)


def test_a_call_counts_wherever_it_happens() -> None:
    paths = [["a", "x"], ["b", "x"], ["c", "x"], ["d", "x"], ["a"], ["b"], ["c"], ["d"]]
    traces = make_traces([(path, "x" not in path) for path in paths])
    step = find_decisive_step(traces, 0.05)
    assert step is not None
    assert (step.step, step.after, step.numbers) == ("x", None, (1, 2, 3, 4))


def test_a_fork_after_another_fork_is_decisive() -> None:
    """After a, c always fails and d never does; after b, both fail every other time."""
    attempts = [(["a", "c"], False), (["a", "d"], True)] * 6
    attempts += [(["b", step], passed) for step in "cd" for passed in (True, False)] * 3
    step = find_decisive_step(make_traces(attempts), 0.05)
    assert step is not None
    assert (step.step, step.after) == ("c", ("a",))
    assert (step.numbers, step.others) == ((1, 3, 5, 7, 9, 11), (2, 4, 6, 8, 10, 12))
    assert (step.failed, step.others_failed) == (6, 0)


def test_an_argument_that_tells_attempts_apart_is_a_branch() -> None:
    traces = [
        Trace("task", n, n % 2 == 0, (Step("pay", {"to": "AB"[n % 2], "text": f"thanks {n}"}),))
        for n in range(1, 9)
    ]
    step = find_decisive_step(traces, 0.05)
    assert step is not None
    assert step.step == 'pay(to="B")'
    assert [branch.steps[0] for branch in build_tree(traces).branches] == [
        'pay(to="A")',
        'pay(to="B")',
    ]


def test_too_few_attempts_show_nothing() -> None:
    assert smallest_p_value(4, 2) == pytest.approx(1 / 3)
    traces = make_traces([(["a"], True), (["b"], False)] * 2)
    assert find_decisive_step(traces, 0.05) is None
    assert find_decisive_step(make_traces([(["a"], True)] * 8), 0.05) is None


@settings(max_examples=max_examples(20), deadline=None)
@given(_paths, _paths, _paths)
def test_the_edit_distance_is_a_distance(a: list[str], b: list[str], c: list[str]) -> None:
    one, two, three = ([Step(name) for name in path] for path in (a, b, c))
    assert edit_distance(one, one) == 0
    assert edit_distance(one, two) == edit_distance(two, one)
    assert edit_distance(one, three) <= edit_distance(one, two) + edit_distance(two, three)


def test_the_closest_pair_parts_where_arguments_differ() -> None:
    common = Step("get", {"id": 1})
    traces = [
        Trace("t", 1, True, (common, Step("pay", {"sum": 3}))),
        Trace("t", 2, False, (common, Step("pay", {"sum": 4}))),
        Trace("t", 3, False, (Step("other"),)),
    ]
    pair = find_closest_pair(traces)
    assert pair is not None
    assert (pair.passed, pair.failed, pair.distance) == (1, 2, 0.5)
    assert (pair.together, str(pair.failing[0])) == ((common,), "pay(sum=4)")
    assert find_closest_pair(traces[1:]) is None
