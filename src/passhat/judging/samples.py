"""Samples to judge: which program, for which task, as which attempt; and how many are alike."""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections import Counter
from dataclasses import dataclass

from passhat._display import some
from passhat.errors import ReadError, shorten
from passhat.judging.code_suites import json_lines
from passhat.judging.extraction import compiles, has_fence, program_in
from passhat.judging.tasks import CodeSuite, CodeTask

__all__ = ["Sample", "normalized", "printable", "read_samples"]

_TEXTS = ("completion", "solution", "program", "response")


@dataclass(frozen=True, slots=True)
class Sample:
    """An attempt at a task: the program as it is judged, and the answer it was taken from."""

    task: CodeTask
    trial: int
    program: str
    raw: str = ""

    @property
    def key(self) -> tuple[str, int]:
        return self.task.id, self.trial

    @property
    def fingerprint(self) -> str:
        """Equal for programs that differ only in white space, comments and local names."""
        return hashlib.sha256(normalized(self.program).encode("utf-8", "replace")).hexdigest()[:16]


def read_samples(path: str, suite: CodeSuite) -> list[Sample]:
    """Read ``{task_id, completion}`` lines; the k-th line of a task is its k-th attempt.

    ``solution`` or ``program`` in place of ``completion`` is a whole program, and ``response``
    is the answer of a model, with the program somewhere in it. So is a completion in a fence.
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
        raw = ""
        if word == "response" or (has_fence(text) and not compiles(program)):
            program, raw = program_in(text, task), text
        samples.append(Sample(task, seen[name], program, raw))
        seen[name] += 1
    if not samples:
        raise ReadError("holds no sample.", source=path)
    return samples


def normalized(program: str) -> str:
    """A program without layout, comments and its choice of names.

    Examples
    --------
    >>> normalized("def f(x):  # add\\n    return x+1") == normalized("def f(n): return n + 1")
    True
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.dump(_Renamed().visit(ast.parse(program)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # No program, or one that is nested too deeply or has a number too long to write down:
        # only its layout can be left out.
        return " ".join(program.split())


def printable(text: str) -> str:
    """Text that can be stored and shown: lone surrogates replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


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
