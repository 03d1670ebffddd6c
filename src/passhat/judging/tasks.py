"""Code tasks: what a program is asked for, and the tests it never sees."""

from __future__ import annotations

import ast
import builtins
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["PROGRAM_MODULES", "Case", "CodeSuite", "CodeTask"]

PROGRAM_MODULES = ("solution", "candidate")
"""Under these names tests may import the program."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a script reads on its standard input, and what it should print."""

    given: bytes
    expected: bytes

    def accepts(self, output: bytes) -> bool:
        """Equal but for white space at the end of lines and of the whole."""
        return _lines(output) == _lines(self.expected)


def _lines(content: bytes) -> list[bytes]:
    lines = [line.rstrip() for line in content.split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


@dataclass(frozen=True, slots=True)
class CodeTask:
    """One task.

    Parameters
    ----------
    id : str
        What samples call it.
    prompt : str
        Code that a completion continues; empty when a completion is a whole program.
    entry_point : str
        The function or class that the tests are about; empty when tests name it themselves.
    helpers : str
        Trusted code that the tests may use: the prompt's imports and helper functions.
    tests : str
        Hidden tests: ``check(candidate)``, asserts, unittest or pytest style.
    cases : tuple of Case
        Inputs and outputs, for tasks whose answer is a script.
    canonical : str
        A solution known to be right, as a completion; empty when there is none.
    text : str
        What is asked for in words, where the prompt does not say it.
    labels : tuple of (str, str)
        What slices of a report go by.
    """

    id: str
    prompt: str = ""
    entry_point: str = ""
    helpers: str = ""
    tests: str = ""
    cases: tuple[Case, ...] = ()
    canonical: str = ""
    text: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    def program(self, completion: str) -> str:
        """The whole program for a completion."""
        return f"{self.prompt}{completion}\n"

    def brief(self) -> dict[str, object]:
        """What the tests' sandbox is given."""
        functions = defined_functions(self.helpers) | defined_functions(
            self.program(self.canonical)
        )
        free = free_names(self.tests)
        modules = _modules_used(self.tests) & free - defined_names(self.helpers)
        helpers = "\n".join([self.helpers, *(f"import {name}" for name in sorted(modules))])
        helpful = free & defined_names(helpers) - {self.entry_point}
        return {
            "entry_point": self.entry_point,
            # A prompt whose helpers no test uses need not be run again and again.
            "helpers": helpers if helpful else "",
            "tests": self.tests,
            "functions": sorted(functions),
            "free": sorted(free - helpful),
        }


def defined_functions(source: str) -> set[str]:
    """Names that a source defines with ``def``: a program cannot make classes of them."""
    return {node.name for node in _parsed(source).body if isinstance(node, ast.FunctionDef)}


def free_names(tests: str) -> set[str]:
    """Names that tests use and neither they nor Python define: a helper's or the program's.

    What they import from ``solution`` or ``candidate`` is the program's as well.
    """
    tree = _parsed(tests)
    used: set[str] = set()
    own: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else own).add(node.id)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in PROGRAM_MODULES
        for alias in node.names
    }
    return imported | {name for name in used - own if not hasattr(builtins, name)}


def defined_names(source: str) -> set[str]:
    """Names that a source defines at its top level, imports included."""
    found: set[str] = set()
    for node in _parsed(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        else:
            found |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return found


def _modules_used(tests: str) -> set[str]:
    """Modules of the standard library that tests use by ``name.``, perhaps without importing."""
    return {
        node.value.id
        for node in ast.walk(_parsed(tests))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    } & sys.stdlib_module_names


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


@dataclass(frozen=True, slots=True)
class CodeSuite:
    """Tasks by id, with fingerprints of what was asked and of how it is judged."""

    name: str
    tasks: Mapping[str, CodeTask]

    @classmethod
    def of(cls, name: str, tasks: Iterable[CodeTask]) -> CodeSuite:
        return cls(name, MappingProxyType({task.id: task for task in tasks}))

    @property
    def fingerprint(self) -> str:
        return _digest(
            [
                [task.id, task.prompt, task.entry_point, *([task.text] if task.text else [])]
                for task in self.tasks.values()
            ]
        )

    @property
    def tests_fingerprint(self) -> str:
        return _digest(
            [
                [
                    task.id,
                    task.helpers,
                    task.tests,
                    [[c.given.hex(), c.expected.hex()] for c in task.cases],
                ]
                for task in self.tasks.values()
            ]
        )


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]
