"""Change the source at random places and see whether a test notices: mutate.py [--count N] ...

A mutant is one small change: a comparison, a bound, a constant, a guard, a swapped branch or a
removed statement. Each is made in a copy of the tree, never in the checkout, and the tests of its
package run against it: those that call the changed function first, then their whole files. What no
test notices is a survivor: a missing test, or a change without an effect.

The places follow from the seed. Results are appended to a file as they come, so an interrupted run
goes on where it stopped; the copy and the map of tests are used again until ``--fresh``.
``tools/mutants.toml`` lists survivors that change nothing, with the reason.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

__all__ = ["Mutant", "Scratch", "find_mutants", "main", "sample"]

ROOT = Path(__file__).resolve().parents[1]
_ANYTHING = "*"
_SANDBOX = "passhat/judging/sandbox.py:"
_WITHOUT_SANDBOX = "tests/judging/test_inside.py::"
_WHOLE_RESULTS = ("tests/stats/test_small_runs.py::", "tests/readers/test_small_files.py::")
"""Tests that compare whole results notice most: they are run whatever else is chosen."""
PACKAGES = ("stats", "judging", "store", "runner", "readers")
_SLOW_TOO = ("judging", "store", "runner")
"""Packages whose code is mostly called by tests that start a sandbox, a server or workers."""
_EQUIVALENT = Path(__file__).with_name("mutants.toml")
_COMPARISONS: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
_PAIRS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_LEAVES = (ast.Raise, ast.Return, ast.Continue, ast.Break)
_SLOWEST = 900.0
"""Seconds that the tests of one mutant may take in all; a mutant that hangs them is caught."""
_LONGEST = 30.0
"""Seconds that the calling tests, which are run first, usually take."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one place, with the text before and after."""

    file: str
    line: int
    kind: str
    before: str
    after: str
    span: tuple[int, int]
    """First and last byte of the text in its file."""
    function: int
    """First line of the function around it; 0 at module level."""

    @property
    def id(self) -> str:
        return f"{self.file}:{self.span[0]}-{self.span[1]}:{self.after}"

    def apply(self, source: bytes) -> bytes:
        start, end = self.span
        return source[:start] + self.after.encode() + source[end:]


# -- finding places --------------------------------------------------------------------------------


class _Finder(ast.NodeVisitor):
    """All mutants of a module."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file = file
        self.source = source
        self.mutants: list[Mutant] = []
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._functions: list[int] = [0]

    def _add(self, node: ast.expr | ast.stmt, kind: str, after: str) -> None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        before = self.source[start:end].decode()
        self.mutants.append(
            Mutant(self.file, node.lineno, kind, before, after, (start, end), self._functions[-1])
        )

    def _replace(self, node: ast.expr, kind: str, new: ast.expr) -> None:
        # Parentheses: the text around it may bind more tightly, or go on over several lines.
        self._add(node, kind, f"({ast.unparse(ast.fix_missing_locations(new))})")

    # What says nothing about behavior is left alone: annotations, decorators, assertions for the
    # type checker, imports for it, and module-level declarations of names.

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        self._functions.append(first)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self._functions.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        del node

    def visit_match_case(self, node: ast.match_case) -> None:
        for statement in node.body:  # a pattern is not an expression
            self.visit(statement)

    def visit_Raise(self, node: ast.Raise) -> None:
        """The wording of an error is not a behavior that a test must pin."""
        del node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        del node

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return
        self._mutate_test(node.test, node.body, bool(node.orelse))
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self._add(node.test, "loop never entered", "False")
        self.generic_visit(node)

    def _mutate_test(self, test: ast.expr, body: list[ast.stmt], has_else: bool) -> None:
        if has_else:
            self._replace(test, "branches swapped", ast.UnaryOp(ast.Not(), test))
        elif len(body) == 1 and isinstance(body[0], _LEAVES):
            self._add(test, "guard removed", "False")
        else:
            self._add(test, "condition always true", "True")

    def visit_IfExp(self, node: ast.IfExp) -> None:
        new = ast.IfExp(node.test, node.orelse, node.body)
        self._replace(node, "branches swapped", new)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            for other in _COMPARISONS[type(operator)]:
                new = copy.deepcopy(node)
                new.ops[place] = other()
                self._replace(node, "comparison", new)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for place in range(len(node.values)):
            rest = [value for at, value in enumerate(node.values) if at != place]
            new = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            self._replace(node, "condition dropped", new)
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._replace(node, "and/or", ast.BoolOp(other, node.values))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self._replace(node, "sign dropped", node.operand)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        text = any(
            isinstance(side, ast.JoinedStr)
            or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
            for side in (node.left, node.right)
        )
        other = _ARITHMETIC.get(type(node.op))
        if other is not None and not text:
            self._replace(node, "arithmetic", ast.BinOp(node.left, other(), node.right))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in _PAIRS:
            new = ast.Call(ast.Name(_PAIRS[node.func.id]), node.args, node.keywords)
            self._replace(node, "function", new)
        if ast.unparse(node.func) == "zip":  # strict=True is an assertion
            for argument in node.args:
                self.visit(argument)
        elif ast.unparse(node.func) not in ("cast", "TypeVar"):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add(node, "constant", str(not value))
        elif isinstance(value, int):
            self._add(node, "constant", str(value + 1))
            if value > 0:
                self._add(node, "constant", str(value - 1))
        elif isinstance(value, float):
            self._add(node, "constant", "1.0" if value == 0 else repr(value * 2))
            if value:
                self._add(node, "constant", repr(value / 2))

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call | ast.Await):
            self._add(node, "statement removed", "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add(node, "statement removed", "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            return
        if self._functions[-1] and all(
            isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets
        ):
            self._add(node, "statement removed", "pass")
        self.generic_visit(node)


def find_mutants(file: str, source: bytes) -> list[Mutant]:
    """List the mutants of a module."""
    finder = _Finder(file, source)
    finder.visit(ast.parse(source))
    return finder.mutants


def sample(source: Path, package: str, seed: int) -> Iterator[Mutant]:
    """Yield mutants of a package in random order: a place first, then one of its changes."""
    places: dict[tuple[str, int, str], list[Mutant]] = {}
    for path in sorted((source / "passhat" / package).rglob("*.py")):
        file = path.relative_to(source).as_posix()
        for mutant in find_mutants(file, path.read_bytes()):
            places.setdefault((file, mutant.line, mutant.kind), []).append(mutant)
    dice = random.Random(f"{seed}:{package}")
    order = list(places)
    dice.shuffle(order)
    for place in order:
        yield dice.choice(places[place])


# -- running tests ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trial:
    """How the tests of a mutant ended; ``test`` is the one that noticed it."""

    caught: bool
    test: str
    seconds: float


class Scratch:
    """A copy of the tree in which mutants are made."""

    def __init__(self, folder: Path, *, quick: bool = False) -> None:
        self.folder = folder
        self.quick = quick
        self.source = folder / "tree" / "src"
        self._maps: dict[str, dict[str, Any]] = {}
        self._sound: set[str] = set()
        self._unsound: set[str] = set()
        self._second = int(time.time())

    def create(self) -> None:
        """Copy every file that git knows, unless an earlier run did."""
        if self.source.is_dir():
            return
        listing = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
        for name in filter(None, listing.split("\0")):
            target = self.folder / "tree" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_file():
                shutil.copy2(ROOT / name, target)

    def map_tests(self, package: str) -> dict[str, Any]:
        """Load the functions and the seconds of each test of a package; run them once."""
        path = self.folder / f"tests-{package}.json"
        if not path.is_file():
            print(f"{package}: which test calls which function ...", flush=True)
            fast = [] if package in _SLOW_TOO else ["-m", "not slow"]
            arguments = ["-p", "trace_tests", "-k", "not podman and not ray", *fast]
            # A test that does not end while it is traced ends the process: go on behind it.
            arguments += ["-o", "faulthandler_timeout=120", f"tests/{package}"]
            lines = path.with_suffix(".jsonl")
            variables = {"TRACE_TESTS": str(lines), "TRACE_SOURCE": "src"}
            code = 0
            while code != 5:  # no test was left
                before = lines.stat().st_size if lines.is_file() else -1
                code, output = self._run(arguments, 6 * _SLOWEST, variables)
                if code != 5 and (not lines.is_file() or lines.stat().st_size == before):
                    raise SystemExit(f"the tests of {package} cannot be run:\n{output[-2000:]}")
            rows = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
            calls = {row["test"]: row["call"] for row in rows if row["call"]}
            for test in sorted({row["test"] for row in rows} - calls.keys()):
                if self._is_sound(test):  # it only does not bear to be traced: it may call anything
                    calls[test] = {"seconds": 1.0, "functions": [_ANYTHING]}
                else:
                    print(f"left out, it fails unchanged: {test}", flush=True)
            path.write_text(json.dumps(calls), encoding="utf-8")
        if package not in self._maps:
            self._maps[package] = json.loads(path.read_text(encoding="utf-8"))
            self._sound.update(self._maps[package])
        return self._maps[package]

    def try_mutant(self, package: str, mutant: Mutant, slowest: float = _SLOWEST) -> Trial:
        """Run the tests against a mutant until one fails that passes without it."""
        begin = time.monotonic()
        for arguments in self._stages(package, mutant):
            while True:
                left = max(slowest - (time.monotonic() - begin), 30.0)
                if arguments[0].startswith("@"):  # their usual time is known: more is a hang
                    left = min(left, 60 + 4 * self._usual_seconds(package, arguments[0][1:]))
                with self._changed(mutant):
                    code, output = self._run(["-x", *self._deselect(), *arguments], left)
                if code in (0, 5):  # 5: no test was selected
                    break
                failure = next(iter(_failures(output)), "")
                if failure and not self._is_sound(failure):
                    continue
                cause = failure or ("timeout" if code < 0 else "import or collection")
                return Trial(True, cause, time.monotonic() - begin)
        return Trial(False, "", time.monotonic() - begin)

    def _usual_seconds(self, package: str, file: str) -> float:
        calls = self.map_tests(package)
        names = Path(file).read_text(encoding="utf-8").splitlines()
        return float(sum(calls[name]["seconds"] for name in names))

    @contextmanager
    def _changed(self, mutant: Mutant) -> Iterator[None]:
        path = self.source / mutant.file
        unchanged, modified = path.read_bytes(), path.stat().st_mtime
        path.write_bytes(mutant.apply(unchanged))
        # Bytecode is kept by size and whole second: each mutant gets a second of its own.
        self._second += 1
        os.utime(path, (self._second, self._second))
        try:
            yield
        finally:
            path.write_bytes(unchanged)
            os.utime(path, (modified, modified))

    def _is_sound(self, test: str) -> bool:
        """Whether a test passes in the unchanged tree."""
        if test not in self._sound:
            if self._run([test], _SLOWEST)[0] != 0:
                self._unsound.add(test)
                return False
            self._sound.add(test)
        return True

    def _deselect(self) -> list[str]:
        return [word for test in sorted(self._unsound) for word in ("--deselect", test)]

    def _stages(self, package: str, mutant: Mutant) -> Iterator[list[str]]:
        calls = self.map_tests(package)
        function = f"{mutant.file}:{mutant.function}"
        # What runs in the sandbox, or in a process of test_inside, is not traced: each test that
        # starts one may call it.
        inside = "/judging/inside/" in mutant.file
        callers = [
            test
            for test, call in calls.items()
            if function in call["functions"]
            or (inside and test.startswith(_WITHOUT_SANDBOX))
            or (inside and any(called.startswith(_SANDBOX) for called in call["functions"]))
        ]
        if callers:
            callers += [test for test, call in calls.items() if _ANYTHING in call["functions"]]
        mirror = f"tests/{Path(mutant.file).relative_to('passhat').parent}"
        mirror_file = f"{mirror}/test_{Path(mutant.file).stem}.py"
        first = (f"{mirror_file}::", *([_WITHOUT_SANDBOX] if inside else []))
        # The module's own tests first, and what calls all of this code without starting a sandbox;
        # then a case of every test, so that those that are chosen of many are of all kinds.
        cases = Counter[str]()
        order = {}
        for test in sorted(callers, key=lambda test: calls[test]["seconds"]):
            is_other = not test.startswith(first)
            order[test] = (is_other, cases[test.partition("[")[0]], calls[test]["seconds"])
            cases[test.partition("[")[0]] += 1
        callers.sort(key=order.__getitem__)
        if callers:
            seconds = accumulate(calls[test]["seconds"] for test in callers)
            chosen = [test for test, sum_ in zip(callers, seconds, strict=True) if sum_ < _LONGEST]
            chosen = chosen[:200] or callers[:1]
            chosen += [t for t in callers if t.startswith(_WHOLE_RESULTS) and t not in chosen]
            names = self.folder / "tests.txt"
            names.write_text("\n".join(chosen), encoding="utf-8")
            yield [f"@{names}"]
            if self.quick:
                return
        files = {test.partition("::")[0] for test in callers}
        if (self.folder / "tree" / mirror_file).is_file():
            files.add(mirror_file)
        # Those that share a fixture with a caller, or run the code in another process.
        targets = sorted(files) if mutant.function and callers else [f"tests/{package}"]
        yield ["-m", "not slow", *targets]
        if not self.quick:
            yield ["-m", "slow", *targets]

    def _run(
        self, arguments: Sequence[str], seconds: float, variables: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        tree = self.folder / "tree"
        environment = {
            **os.environ,
            **(variables or {}),
            "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / 'tools'}",
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE"]
        process = subprocess.Popen(
            [*command, "--tb=no", *arguments],
            cwd=tree,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return -1, output
        except BaseException:  # stopped: the tests must not go on against a tree that is put right
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, output


def _failures(output: str) -> list[str]:
    return [
        line.split(" ", 1)[1].partition(" - ")[0]
        for line in output.splitlines()
        if line.startswith(("FAILED ", "ERROR "))
    ]


# -- results ---------------------------------------------------------------------------------------


class Results:
    """The results so far, one JSON object per line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, dict[str, Any]] = {}
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                self.rows[row["id"]] = row

    def add(self, package: str, mutant: Mutant, trial: Trial) -> None:
        row = {"id": mutant.id, "package": package, **asdict(mutant), **asdict(trial)}
        self.rows[mutant.id] = row
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    @cached_property
    def reasons(self) -> dict[tuple[str, str, str], str]:
        """Reasons why a survivor changes nothing, by file, text before and text after."""
        data = tomllib.loads(_EQUIVALENT.read_text(encoding="utf-8"))
        return {
            (entry["file"], entry["before"], entry["after"]): entry["reason"]
            for entry in data.get("mutant", ())
        }

    def print_table(self) -> None:
        """Print counts by package, then every survivor."""
        rows = list(self.rows.values())
        survivors = [row for row in rows if not row["caught"]]
        explained = [row for row in survivors if self._reason(row)]
        print(f"{'package':10} {'mutants':>8} {'caught':>8} {'without effect':>15} {'missed':>8}")
        for package in [*sorted({row["package"] for row in rows}), "all"]:
            of_package = [
                [row for row in group if package in ("all", row["package"])]
                for group in (rows, survivors, explained)
            ]
            total, alive, equivalent = map(len, of_package)
            print(
                f"{package:10} {total:8} {total - alive:8} {equivalent:15} {alive - equivalent:8}"
            )
        effective = len(rows) - len(explained)
        if effective:
            share = 100 * (len(rows) - len(survivors)) / effective
            print(f"caught: {share:.0f}% of {effective} that have an effect")
        for row in survivors:
            print(f"\n{row['file']}:{row['line']} {row['kind']}")
            print(f"  - {_shorten(row['before'])}\n  + {_shorten(row['after'])}")
            if reason := self._reason(row):
                print(f"  without effect: {reason}")

    def _reason(self, row: Mapping[str, Any]) -> str:
        return self.reasons.get((row["file"], row["before"], row["after"]), "")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else f"{line[:157]}..."


def main(arguments: list[str] | None = None) -> int:
    """Try mutants until every package has as many as asked for; print the table."""
    parser = argparse.ArgumentParser(description="Random changes of the source against its tests.")
    parser.add_argument("--package", action="append", choices=PACKAGES, help="default: all five")
    parser.add_argument("--count", type=int, default=40, help="mutants per package: 40")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    parser.add_argument(
        "--fresh", action="store_true", help="copy the tree and map the tests again"
    )
    parser.add_argument(
        "--again", action="store_true", help="try the survivors again, on new tests"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="only tests that call the function, up to half a minute",
    )
    parser.add_argument("--report", action="store_true", help="only print the table")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the mutant is taken back first
    options.folder = options.folder.resolve()  # tests run in another working folder
    options.folder.mkdir(parents=True, exist_ok=True)
    results = Results(options.folder / "results.jsonl")
    if options.report:
        results.print_table()
        return 0
    if options.fresh:
        shutil.rmtree(options.folder / "tree", ignore_errors=True)
        for path in options.folder.glob("tests-*.json*"):
            path.unlink()
    scratch = Scratch(options.folder, quick=options.quick)
    scratch.create()
    packages = options.package or PACKAGES
    if options.again:
        for row in [row for row in results.rows.values() if not row["caught"]]:
            if row["package"] in packages and (mutant := _relocate(scratch.source, row)):
                _try(scratch, results, row["package"], mutant)
    else:
        queues = {package: sample(scratch.source, package, options.seed) for package in packages}
        for _ in range(options.count):
            for package, queue in queues.items():  # in turn, so that all grow alike
                mutant = next(queue, None)
                if mutant is not None and mutant.id not in results.rows:
                    _try(scratch, results, package, mutant)
    results.print_table()
    return 0


def _relocate(source: Path, row: Mapping[str, Any]) -> Mutant | None:
    """Find the mutant of an earlier result in the tree as it is now."""
    path = source / row["file"]
    candidates = find_mutants(row["file"], path.read_bytes()) if path.is_file() else []
    alike = [
        mutant
        for mutant in candidates
        if (mutant.before, mutant.after) == (row["before"], row["after"])
    ]
    return min(alike, key=lambda mutant: abs(mutant.line - row["line"]), default=None)


def _try(scratch: Scratch, results: Results, package: str, mutant: Mutant) -> None:
    trial = scratch.try_mutant(package, mutant)
    results.add(package, mutant, trial)
    verdict = f"caught by {trial.test}" if trial.caught else "SURVIVED"
    print(
        f"{mutant.file}:{mutant.line} {mutant.kind}: {_shorten(mutant.before)} -> "
        f"{_shorten(mutant.after)}: {verdict} ({trial.seconds:.0f} s)",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
