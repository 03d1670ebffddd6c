"""Check that function names are verbs and local names are nouns: check_names.py [options] FOLDER...

A function's first word counts as a hit when it is a participle or an adverb (``settled``,
``_known``); a local name counts when it is one such word alone. Properties are left out: they say
what something is. The share of hits in well-kept packages is below 4% for both.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["NameCount", "count_names", "is_participle", "main"]

# Past forms that do not end in -ed, and adverbs and determiners that serve as names.
_IRREGULAR = """
made said told taken given known written kept lost held found shown drawn begun seen meant sent
chosen spent bought thought gone done stuck own alike apart beside around below inside each some few
more most enough either
"""
# Words in -ed that are verbs or nouns, and past forms that are the field's usual words.
_ALLOWED = """
need feed seed speed embed proceed exceed shed bed red passed failed expected shared cached
"""
_REGULAR = re.compile(r"[a-z]+ed")


@dataclass(slots=True)
class NameCount:
    """Names of one kind: how many there are, and those that are participles or adverbs."""

    total: int = 0
    hits: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, word: str) -> None:
        self.total += 1
        if is_participle(word):
            self.hits[name] += 1

    @property
    def percent(self) -> float:
        return 100 * self.hits.total() / max(self.total, 1)


def is_participle(word: str) -> bool:
    """Whether a word is a participle or an adverb."""
    return word not in _ALLOWED.split() and (
        word in _IRREGULAR.split() or _REGULAR.fullmatch(word) is not None
    )


def count_names(sources: Iterable[str]) -> tuple[NameCount, NameCount]:
    """Count function names and assigned names in Python sources."""
    functions, variables = NameCount(), NameCount()
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if not node.name.startswith("__") and not _is_property(node):
                    functions.add(node.name, node.name.strip("_").split("_")[0])
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                variables.add(node.id, node.id.strip("_"))
    return functions, variables


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in node.decorator_list)


def main(arguments: list[str] | None = None) -> int:
    """Print both shares for every folder; return 1 if one is above the limit."""
    parser = argparse.ArgumentParser(description="Share of names that are participles or adverbs.")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--limit", type=float, metavar="PERCENT", help="most that is accepted: 4")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="list the N most frequent")
    options = parser.parse_args(arguments)
    above = False
    for folder in options.folders:
        files = sorted(folder.rglob("*.py"))
        if not files:
            parser.error(f"{folder} has no Python files")
        kinds = count_names(path.read_text(encoding="utf-8") for path in files)
        for kind, count in zip(("function names", "local names"), kinds, strict=True):
            exceeds = options.limit is not None and count.percent > options.limit
            above |= exceeds
            print(
                f"{folder}: {count.percent:.1f}% of {count.total} {kind} are participles or adverbs"
                + (f"; the limit is {options.limit:g}%" if exceeds else "")
            )
            shown = options.show or (20 if exceeds else 0)
            for name, times in count.hits.most_common(shown):
                print(f"  {times:4} {name}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
