"""Code tasks: what a program is asked for, and the tests it never sees."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["Case", "CodeSuite", "CodeTask", "defined_functions"]


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
    """

    id: str
    prompt: str = ""
    entry_point: str = ""
    helpers: str = ""
    tests: str = ""
    cases: tuple[Case, ...] = ()
    canonical: str = ""

    def program(self, completion: str) -> str:
        """The whole program for a completion."""
        return f"{self.prompt}{completion}\n"

    def brief(self) -> dict[str, object]:
        """What the tests' sandbox is given."""
        functions = defined_functions(self.helpers) | defined_functions(
            self.program(self.canonical)
        )
        return {
            "entry_point": self.entry_point,
            "helpers": self.helpers,
            "tests": self.tests,
            "functions": sorted(functions),
        }


def defined_functions(source: str) -> set[str]:
    """Names that a source defines with ``def``: a program cannot make classes of them."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return set()
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


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
        return _digest([[task.id, task.prompt, task.entry_point] for task in self.tasks.values()])

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
