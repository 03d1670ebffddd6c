"""The strength of hidden tests: the share of broken reference solutions that they notice."""

from __future__ import annotations

import ast
import copy
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from passhat._display import counted, percent
from passhat._serialize import Plain
from passhat.judging.bench import Bench
from passhat.judging.tasks import CodeTask
from passhat.stats.outcomes.vocabulary import Verdict

WEAK_BELOW = 0.8
"""Tests that kill a smaller share of mutants are marked."""

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TestStrength(Plain):
    """How many mutants of a task's canonical solution its hidden tests kill."""

    WRITTEN = ("task", "killed", "mutants", "share", "weak", "canonical_passes")

    __test__ = False  # not a test, in spite of its name: pytest must not collect it

    task: str
    killed: int
    mutants: int
    canonical_passes: bool

    @property
    def share(self) -> float | None:
        """The share killed; ``None`` when there is nothing to break."""
        return self.killed / self.mutants if self.mutants and self.canonical_passes else None

    @property
    def weak(self) -> bool:
        return self.share is not None and self.share < WEAK_BELOW

    def __str__(self) -> str:
        if not self.canonical_passes:
            return f"{self.task}: the canonical solution does not pass its own tests"
        if self.share is None:
            return f"{self.task}: no mutant can be made"
        mark = "  WEAK" if self.weak else ""
        mutants = counted(self.mutants, "mutant")
        return f"{self.task}: {percent(self.share, 0)} of {mutants} killed{mark}"


def mutants_of(program: str, most: int = 20) -> list[str]:
    """Programs with one small mistake each, spread over the whole of it.

    A comparison or an operator replaced, a number off by one, a condition turned round, a result
    dropped. The same mistakes every time, so shares can be compared.

    Examples
    --------
    >>> mutants_of("def f(x):\\n    return x < 3")
    ['def f(x):\\n    return None', 'def f(x):\\n    return x <= 3', 'def f(x):\\n    return x < 4']
    """
    tree = ast.parse(program)
    mutants = dict.fromkeys(
        ast.unparse(mutant)
        for index, node in enumerate(ast.walk(tree))
        if (mutant := _mutate(tree, index, node)) is not None
    )
    mutants.pop(ast.unparse(tree), None)
    every = list(mutants)
    step = max(1, len(every) / most)
    return [every[int(number * step)] for number in range(min(most, len(every)))]


def _mutate(tree: ast.Module, index: int, node: ast.AST) -> ast.Module | None:
    """A copy of the tree with the node of this number changed, if it is one to change."""
    if not _changeable(node):
        return None
    twin = copy.deepcopy(tree)
    target = next(other for number, other in enumerate(ast.walk(twin)) if number == index)
    _change(target)
    return twin


def _changeable(node: ast.AST) -> bool:
    match node:
        case ast.Compare(ops=[operator, *_]):
            return type(operator) in _COMPARISONS
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator):
            return type(operator) in _OPERATORS
        case ast.Constant(value=value):
            return type(value) in (int, float, bool)
        case ast.BoolOp() | ast.If() | ast.While():
            return True
        case ast.Return(value=value):
            return value is not None and not isinstance(value, ast.Constant)
    return False


def _change(node: ast.AST) -> None:
    match node:
        case ast.Compare():
            node.ops[0] = _COMPARISONS[type(node.ops[0])]()
        case ast.BinOp() | ast.AugAssign():
            node.op = _OPERATORS[type(node.op)]()
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value)) | ast.Constant(value=float(value)):
            node.value = value + 1
        case ast.BoolOp():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.If() | ast.While():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Return():
            node.value = ast.Constant(None)


def strength_of_tests(bench: Bench, most: int = 20) -> Iterator[TestStrength]:
    """Judge the canonical solution and its mutants, task by task.

    A mutant that happens to be right cannot be killed, so 100% is not always within reach.
    """
    tasks = [task for task in bench.suite.tasks.values() if task.canonical]
    plan = [(task, program) for task in tasks for program in _programs(task, most)]
    verdicts: dict[str, list[tuple[int, Verdict]]] = {task.id: [] for task in tasks}
    for position, judgement in bench.verdicts(plan):
        verdicts[plan[position][0].id].append((position, judgement.verdict))
    for task in tasks:
        (_, canonical), *others = sorted(verdicts[task.id])
        scored = [verdict for _, verdict in others if verdict is not Verdict.MISSING]
        killed = sum(verdict is Verdict.FAILED for verdict in scored)
        yield TestStrength(task.id, killed, len(scored), canonical is Verdict.PASSED)


def _programs(task: CodeTask, most: int) -> list[str]:
    program = task.program(task.canonical)
    return [program, *mutants_of(program, most)]


_SCHEMA = "passhat.test-strength/1"
_FIELDS = ("task", "killed", "mutants", "canonical_passes")


def strengths_folder(store_path: str) -> Path:
    """The folder of test strengths, next to the store, whether that exists or not."""
    return Path(store_path).parent / "tests"


def keep_strengths(folder: Path, tests_fingerprint: str, strengths: Iterable[TestStrength]) -> Path:
    """Write them down; other tests have another fingerprint, so these never go out of date."""
    rows = [{name: getattr(strength, name) for name in _FIELDS} for strength in strengths]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{tests_fingerprint}.json"
    temporary = path.with_suffix(".part")
    text = json.dumps({"schema": _SCHEMA, "tests": tests_fingerprint, "tasks": rows}, indent=2)
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.replace(path)
    return path


def load_strengths(folder: Path, tests_fingerprint: str) -> dict[str, TestStrength]:
    """Stored strengths of these tests, by task; empty when no audit was made."""
    path = folder / f"{tests_fingerprint}.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        rows = [TestStrength(**{name: row[name] for name in _FIELDS}) for row in data["tasks"]]
    except (OSError, ValueError, TypeError, KeyError):
        return {}  # a report does not fail because a remark is missing
    return {row.task: row for row in rows}
