"""The prefix tree of a task's tool calls, its decisive step, and the closest pair of attempts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np

from passhat._serialize import Plain
from passhat.stats.arrays import FloatArray, special
from passhat.stats.why.events import Step, Trace, argument_text

END = "ends"
_MOST_CALLS = 60
"""Calls of an attempt that are in the tree; what comes after them is not told apart."""
_MOST_CANDIDATES = 200
_MOST_EXACT = 20_000
_DRAWS = 9_999
_PLACE_COST = 1e-7
_SAME_RATIO = 1e-9
_SEED = 33
_MOST_PAIRED = 40
_MOST_VALUES = 4
_LONGEST_VALUE = 40
_FEWEST_APART = 2
"""Attempts on either side from which an argument is worth a branch."""
_OTHER_ARGUMENTS = 0.5
"""The distance of two calls of the same tool with other arguments, or of which one fails."""


@dataclass(frozen=True, slots=True)
class Branch(Plain):
    """Attempts that begin with the same calls."""

    steps: tuple[str, ...]
    """The calls since the branch left its parent; several where nothing branches off between."""
    numbers: tuple[int, ...]
    passed: tuple[int, ...]
    """``numbers``, ``passed``: the attempts that take the branch, and those of them that passed."""
    branches: tuple[Branch, ...] = ()
    """How they go on, the most frequent first; empty where no two of them differ any more."""

    @property
    def failed(self) -> int:
        return len(self.numbers) - len(self.passed)

    def walk(self) -> Iterator[Branch]:
        """Yield this branch and all below it, depth first."""
        yield self
        for branch in self.branches:
            yield from branch.walk()


def build_tree(traces: Sequence[Trace]) -> Branch:
    """The prefix tree of the calls; every path ends with ``END``."""
    telling = _telling_arguments(traces)
    paths = {
        trace.number: (*(_label(step, telling) for step in trace.calls[:_MOST_CALLS]), END)
        for trace in traces
    }
    passed = {trace.number for trace in traces if trace.passed}
    return _branch(sorted(paths), 0, paths, passed)


Telling = frozenset[tuple[str, str]]
"""(tool, argument) pairs whose values tell attempts at a task apart."""


def _telling_arguments(traces: Sequence[Trace]) -> Telling:
    """Arguments with few short values, of which one is used by some attempts and not by others.

    Everything else (texts, amounts, ids that every attempt uses) would only split the tree.
    """
    users: dict[tuple[str, str], dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    callers: dict[str, set[int]] = defaultdict(set)
    for trace in traces:
        for step in trace.calls[:_MOST_CALLS]:
            callers[step.name].add(trace.number)
            for name, value in step.arguments.items():
                users[step.name, name][argument_text(value)].add(trace.number)
    return frozenset(
        (tool, name)
        for (tool, name), values in users.items()
        if len(values) <= _MOST_VALUES
        and max(map(len, values)) <= _LONGEST_VALUE
        and any(
            len(numbers) >= _FEWEST_APART and len(callers[tool]) - len(numbers) >= _FEWEST_APART
            for numbers in values.values()
        )
    )


def _label(step: Step, telling: Telling) -> str:
    values = [
        f"{name}={argument_text(value)}"
        for name, value in step.arguments.items()
        if (step.name, name) in telling
    ]
    call = f"{step.name}({', '.join(values)})" if values else step.name
    return f"{call} (error)" if step.failed else call


def _branch(
    numbers: list[int], start: int, paths: dict[int, tuple[str, ...]], passed: set[int]
) -> Branch:
    at, children = start, _group(numbers, start, paths)
    while len(children) == 1:
        at += 1
        children = _group(numbers, at, paths)
    steps = paths[numbers[0]][start:at] if numbers else ()
    order = sorted(children.items(), key=lambda item: (-len(item[1]), item[0]))
    return Branch(
        steps,
        tuple(numbers),
        tuple(number for number in numbers if number in passed),
        tuple(_branch(group, at, paths, passed) for _, group in order),
    )


def _group(numbers: list[int], at: int, paths: dict[int, tuple[str, ...]]) -> dict[str, list[int]]:
    """Attempts by their step at a place; none where all paths have ended."""
    groups: dict[str, list[int]] = defaultdict(list)
    for number in numbers:
        if at < len(paths[number]):
            groups[paths[number][at]].append(number)
    return groups


@dataclass(frozen=True, slots=True)
class DecisiveStep(Plain):
    """The step at which passing and failing attempts part most clearly."""

    step: str
    """The call, or ``ends``."""
    after: tuple[str, ...] | None
    """The calls before it, where the step is a branch of the tree; else ``None``: the step counts
    wherever it happens.
    """
    numbers: tuple[int, ...]
    others: tuple[int, ...]
    """``numbers``, ``others``: attempts that take the step, and those they are compared with: all
    that came as far.
    """
    failed: int
    others_failed: int
    """``failed``, ``others_failed``: failures on either side."""
    p_value: float
    """How often verdicts dealt out at random within the task give any step as clear as this."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    step: str
    after: tuple[str, ...] | None
    numbers: frozenset[int]
    others: frozenset[int]


def find_decisive_step(traces: Sequence[Trace], alpha: float) -> DecisiveStep | None:
    """The step with the largest likelihood ratio, if chance does not explain it; else ``None``.

    Candidates are the branches of the tree, each against the other attempts that came as far, and
    calls wherever they happen. The same verdicts dealt out anew give the distribution of the
    largest ratio, exactly where there are few ways to deal them. Of candidates that part verdicts
    equally well, the one before in their order counts as clearer; the order knows no verdicts.
    """
    failures = sum(not trace.passed for trace in traces)
    if smallest_p_value(len(traces), failures) > alpha:
        return None
    candidates = _candidates(traces)
    if not candidates:
        return None
    places = {trace.number: place for place, trace in enumerate(traces)}
    branch_rows = np.zeros((len(candidates), len(traces)))
    other_rows = np.zeros((len(candidates), len(traces)))
    for row, candidate in enumerate(candidates):
        branch_rows[row, [places[number] for number in candidate.numbers]] = 1
        other_rows[row, [places[number] for number in candidate.others]] = 1
    verdicts = np.array([not trace.passed for trace in traces], np.float64)
    ratios = _likelihood_ratios(verdicts[None, :], branch_rows, other_rows)[0]
    best = int(np.argmax(ratios))
    largest = _draw_maxima(len(traces), failures, branch_rows, other_rows)
    count = int((largest > ratios[best] - _SAME_RATIO).sum())
    exact = comb(len(traces), failures) <= _MOST_EXACT
    p_value = count / len(largest) if exact else (count + 1) / (len(largest) + 1)
    if p_value > alpha:
        return None
    selection = candidates[best]
    failed_numbers = {trace.number for trace in traces if not trace.passed}
    return DecisiveStep(
        selection.step,
        selection.after,
        tuple(sorted(selection.numbers)),
        tuple(sorted(selection.others)),
        len(selection.numbers & failed_numbers),
        len(selection.others & failed_numbers),
        p_value,
    )


def smallest_p_value(attempts: int, failures: int) -> float:
    """The p-value of a step that separates all failures from all passes."""
    ways = 2 if 2 * failures == attempts else 1
    return min(1.0, ways / comb(attempts, failures))


def _candidates(traces: Sequence[Trace]) -> list[_Candidate]:
    """Different ways to part the attempts, those that say most first.

    With four passes and four failures every further split into halves would cost the others their
    significance. So the order breaks ties: one call in the place of another comes first (a tool, or
    an argument), then a tool that is called or not; then the branches of the tree, the earliest
    first; then arguments and errors.
    """
    everyone = frozenset(trace.number for trace in traces)
    failed = {trace.number for trace in traces if not trace.passed}
    telling = _telling_arguments(traces)
    proposals = [*_tree_candidates(build_tree(traces), ())]
    by_step: dict[str, set[int]] = defaultdict(set)
    for trace in traces:
        for step in trace.calls[:_MOST_CALLS]:
            call = _label(replace(step, failed=False), telling)  # whatever it returned
            for label in {step.name, step.label, call, _label(step, telling)}:
                by_step[label].add(trace.number)
    proposals += [
        _Candidate(step, None, frozenset(numbers), everyone - numbers)
        for step, numbers in sorted(by_step.items())
        if len(numbers) < len(everyone)
    ]
    labels = {step: frozenset(numbers) for step, numbers in by_step.items()}
    sides = set(labels.values())
    tools = {labels[step.name] for trace in traces for step in trace.calls[:_MOST_CALLS]}
    distinct: dict[frozenset[frozenset[int]], _Candidate] = {}
    for candidate in proposals:
        key = frozenset((candidate.numbers, candidate.others))
        rival = distinct.get(key)
        # Of the two sides of a fork, the one that fails more often is the step to look at.
        if rival is None or (
            rival.after == candidate.after
            and _share(candidate.numbers, failed) > _share(rival.numbers, failed)
        ):
            distinct[key] = candidate

    def signs(key: frozenset[frozenset[int]]) -> int:
        return 2 if key <= sides else len(key & tools)

    order = sorted(distinct, key=lambda key: -signs(key))
    by_size = sorted(order, key=lambda key: -min(map(len, key)))
    selection = set(by_size[:_MOST_CANDIDATES])
    return [distinct[key] for key in order if key in selection]


def _share(numbers: frozenset[int], failed: set[int]) -> float:
    return len(numbers & failed) / len(numbers)


def _tree_candidates(node: Branch, before: tuple[str, ...]) -> Iterator[_Candidate]:
    """The branches of a node against its other branches, breadth first."""
    level = [(node, before)]
    while level:
        following = []
        for parent, path in level:
            after = (*path, *parent.steps)
            everyone = frozenset(parent.numbers)
            for branch in parent.branches:
                numbers = frozenset(branch.numbers)
                yield _Candidate(branch.steps[0], after, numbers, everyone - numbers)
                following.append((branch, after))
        level = following


def _likelihood_ratios(
    verdicts: FloatArray, branch_rows: FloatArray, other_rows: FloatArray
) -> FloatArray:
    """Twice the log-likelihood ratio of two failure rates against one; verdicts by candidates.

    Every place in the order costs a trifle, which breaks ties.
    """
    sizes: FloatArray = branch_rows.sum(1)
    others: FloatArray = other_rows.sum(1)
    failed, others_failed = verdicts @ branch_rows.T, verdicts @ other_rows.T

    def log_likelihood(failures: FloatArray, size: FloatArray) -> FloatArray:
        passes = size - failures
        logs = (
            special.xlogy(failures, failures)
            + special.xlogy(passes, passes)
            - special.xlogy(size, size)
        )
        return np.asarray(logs, np.float64)

    ratios: FloatArray = 2 * (
        log_likelihood(failed, sizes)
        + log_likelihood(others_failed, others)
        - log_likelihood(failed + others_failed, sizes + others)
    )
    # Ratios of small tables are equal or differ by far more than all places together.
    return ratios - _PLACE_COST * np.arange(len(sizes))


def _draw_maxima(
    attempts: int, failures: int, branch_rows: FloatArray, other_rows: FloatArray
) -> FloatArray:
    """The largest ratio for every way to deal out the failures, or for many random ones."""
    if comb(attempts, failures) <= _MOST_EXACT:
        selection = np.array(list(combinations(range(attempts), failures)), np.int64)
        verdicts = np.zeros((len(selection), attempts))
        np.put_along_axis(verdicts, selection, 1.0, axis=1)
    else:
        generator = np.random.default_rng(_SEED)
        one = np.zeros(attempts)
        one[:failures] = 1.0
        verdicts = generator.permuted(np.tile(one, (_DRAWS, 1)), axis=1)
    maxima: FloatArray = np.max(_likelihood_ratios(verdicts, branch_rows, other_rows), axis=1)
    return maxima


@dataclass(frozen=True, slots=True)
class ClosestPair(Plain):
    """The passing and the failing attempt whose calls differ least.

    ``together`` are the calls that both begin with; ``passing`` and ``failing`` the calls after
    these.
    """

    passed: int
    failed: int
    distance: float
    together: tuple[Step, ...]
    passing: tuple[Step, ...]
    failing: tuple[Step, ...]


def find_closest_pair(traces: Sequence[Trace]) -> ClosestPair | None:
    """The pair with the smallest edit distance over calls; ``None`` without a pass or a failure."""
    passing = [trace for trace in traces if trace.passed and trace.calls][:_MOST_PAIRED]
    failing = [trace for trace in traces if not trace.passed and trace.calls][:_MOST_PAIRED]
    pairs = [
        (edit_distance(one.calls[:_MOST_CALLS], other.calls[:_MOST_CALLS]), one, other)
        for one in passing
        for other in failing
    ]
    if not pairs:
        return None
    distance, one, other = min(pairs, key=lambda pair: (pair[0], pair[1].number, pair[2].number))
    common = 0
    while common < min(len(one.calls), len(other.calls)) and not _difference(
        one.calls[common], other.calls[common]
    ):
        common += 1
    return ClosestPair(
        one.number,
        other.number,
        distance,
        one.calls[:common],
        one.calls[common:],
        other.calls[common:],
    )


def _difference(one: Step, other: Step) -> float:
    if one.name != other.name:
        return 1.0
    return 0.0 if one.label == other.label and one.key == other.key else _OTHER_ARGUMENTS


def edit_distance(one: Sequence[Step], other: Sequence[Step]) -> float:
    """Calls to insert, remove or change to turn one list into the other.

    Examples
    --------
    >>> edit_distance([Step("find"), Step("pay")], [Step("find")])
    1.0
    """
    row = [float(place) for place in range(len(other) + 1)]
    for place, step in enumerate(one, 1):
        previous, row = row, [float(place)]
        for column, against in enumerate(other, 1):
            row.append(
                min(
                    previous[column] + 1,
                    row[-1] + 1,
                    previous[column - 1] + _difference(step, against),
                )
            )
    return row[-1]
