"""The shape of the source tree: no import cycles, folders one can read, plain words."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import passhat

SOURCE = Path(passhat.__file__).parent
DIALECT = re.compile(r"\b(nobody|somebody|whoever|anybody|everybody|mend|mended)\b", re.IGNORECASE)


@cache
def modules() -> dict[str, Path]:
    """Every module of passhat by its dotted name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = ["passhat", *path.relative_to(SOURCE).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: Path) -> Iterator[str]:
    """The passhat modules a module imports anywhere: at the top, inside functions, for types."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                if inner in modules():
                    yield inner
                elif base in modules():
                    yield base


@cache
def graph() -> dict[str, frozenset[str]]:
    """Which modules each module imports, itself left out."""
    return {
        name: frozenset(target for target in imports(name, path) if target != name)
        for name, path in modules().items()
    }


def cycles() -> list[list[str]]:
    """The strongly connected components with more than one module (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in graph()[name]:
            if target not in index:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], index[target])
        if low[name] == index[name]:
            component = []
            while True:
                component.append(stack.pop())
                if component[-1] == name:
                    break
            components.append(sorted(component))

    for name in graph():
        if name not in index:
            visit(name)
    return [component for component in components if len(component) > 1]


def test_no_import_cycle_not_even_inside_functions() -> None:
    assert cycles() == []


def test_at_most_465_files_and_30_in_a_folder() -> None:
    assert len(modules()) <= 465
    folders = Counter(path.parent for path in modules().values())
    # A command is a file of its own in cli.
    most = {SOURCE / "cli": 36}
    crowded = {
        str(folder.relative_to(SOURCE)): n
        for folder, n in folders.items()
        if n > most.get(folder, 30)
    }
    assert crowded == {}


def test_no_word_that_a_reader_has_to_translate() -> None:
    places = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*"))
        if path.suffix in {".py", ".j2", ".js", ".css", ".toml", ".md"}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if DIALECT.search(line)
    ]
    assert places == []


# "What a run came to." leaves the reader to find the noun: "Result of a run."
RIDDLE = re.compile(r"(what|who|whatever|whoever|whom)\b", re.IGNORECASE)


def test_no_docstring_begins_with_a_riddle() -> None:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    places = [
        f"{name}: {text.splitlines()[0]}"
        for name, path in modules().items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, documented) and (text := ast.get_docstring(node)) and RIDDLE.match(text)
    ]
    assert places == []


def test_only_the_command_line_imports_an_integration() -> None:
    wrong = [
        f"{name} imports {target}"
        for name, targets in graph().items()
        for target in targets
        if target.startswith("passhat.integrations")
        and not name.startswith(("passhat.integrations", "passhat.cli"))
    ]
    assert wrong == []


# A separator of punctuation and a space is how sentences are written, not how data are.
PARSED_SENTENCE = re.compile(
    r"""\.(r?split|r?partition)\(r?["'][^"']*[.;:,)]\ ["']|re\.split\(r?["'][^"']*\ ["']""", re.X
)


def test_no_code_parses_a_sentence_that_other_code_wrote() -> None:
    places = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for folder in ("stats", "reporting", "cli", "dashboard", "readers", "store", "runner")
        for path in sorted((SOURCE / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PARSED_SENTENCE.search(line)
    ]
    assert places == []
    assert PARSED_SENTENCE.search('value, _, interval = one.method.split("; ", 2)')
    assert PARSED_SENTENCE.search("""re.split(r'(?<=[.]) ', one.sentence)[-1]""")


def test_no_module_has_more_than_600_lines() -> None:
    lengths = {name: len(path.read_text("utf-8").splitlines()) for name, path in modules().items()}
    assert {name: length for name, length in lengths.items() if length > 600} == {}


FLAG = re.compile(r"(?<![\w-])--[a-z]")


def test_statistics_name_no_flag_of_the_command_line() -> None:
    """An error carries its options as data (errors.Hint); the command line words them."""
    places = [
        f"{name}:{node.lineno}: {node.value}"
        for name, path in modules().items()
        if name.startswith("passhat.stats.")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and FLAG.search(node.value)
    ]
    assert places == []
    assert FLAG.search("say so: --map task=COLUMN")
