"""Samples to judge: which program, for which task, as which attempt; and how many are alike."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from dataclasses import dataclass

from passhat._display import some
from passhat.errors import ReadError, shorten
from passhat.judging.code_suites import json_lines
from passhat.judging.tasks import CodeSuite, CodeTask

__all__ = ["Sample", "normalized", "read_samples"]

_TEXTS = ("completion", "solution", "program")


@dataclass(frozen=True, slots=True)
class Sample:
    """One attempt at a task: the program as it is judged."""

    task: CodeTask
    trial: int
    program: str

    @property
    def key(self) -> tuple[str, int]:
        return self.task.id, self.trial

    @property
    def fingerprint(self) -> str:
        """Equal for programs that differ only in white space, comments and local names."""
        return hashlib.sha256(normalized(self.program).encode("utf-8", "replace")).hexdigest()[:16]


def read_samples(path: str, suite: CodeSuite) -> list[Sample]:
    """Read ``{task_id, completion}`` lines; the k-th line of a task is its k-th attempt.

    ``solution`` or ``program`` in place of ``completion`` is a whole program.
    """
    seen: Counter[str] = Counter()
    samples = []
    for line, row in json_lines(path):
        name = str(row.get("task_id"))
        task = suite.tasks.get(name)
        if task is None:
            raise ReadError(
                f"task {shorten(name)} is not in {suite.name}; that has "
                f"{some(list(suite.tasks), 3)}.",
                source=path,
                line=line,
            )
        word = next((word for word in _TEXTS if isinstance(row.get(word), str)), None)
        if word is None:
            raise ReadError(
                f"the sample has no text; its fields are {some(list(row), 8)}.",
                source=path,
                line=line,
                hint='A sample is {"task_id": "...", "completion": "..."}.',
            )
        text = str(row[word])
        program = task.program(text) if word == "completion" else text
        samples.append(Sample(task, seen[name], program))
        seen[name] += 1
    if not samples:
        raise ReadError("holds no sample.", source=path)
    return samples


def normalized(program: str) -> str:
    """A program without what does not change what it does: layout, comments, names it chose.

    Examples
    --------
    >>> normalized("def f(x):  # add\\n    return x+1") == normalized("def f(n): return n + 1")
    True
    """
    try:
        tree = ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return " ".join(program.split())  # no program: only its layout can be left out
    return ast.dump(_Renamed().visit(tree))


class _Renamed(ast.NodeTransformer):
    """Numbers the names local to functions, and drops docstrings."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        outer, self._names = self._names, dict(self._names)
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        stored = (n for n in ast.walk(node) if isinstance(n, ast.Name))
        local = [a.arg for a in arguments]
        local += [n.id for n in stored if isinstance(n.ctx, ast.Store)]
        for name in local:
            self._names.setdefault(name, f"_{len(self._names)}")
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        self.generic_visit(node)
        self._names = outer
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._names.get(node.arg, node.arg)
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._names.get(node.id, node.id)
        return node
