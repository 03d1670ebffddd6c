"""Samples to judge: which program, for which task, as which attempt; and how many are alike.

The program may have to be found in an agent's answer: fenced code, or code among prose.
"""

from __future__ import annotations

import ast
import hashlib
import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from passhat._display import some
from passhat.errors import ReadError, shorten
from passhat.judging.tasks import CodeSuite, CodeTask, free_names
from passhat.suites.code_files import json_lines

__all__ = [
    "Sample",
    "normalize",
    "printable",
    "program_in",
    "read_samples",
    "request_text",
]

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
        return hashlib.sha256(normalize(self.program).encode("utf-8", "replace")).hexdigest()[:16]


def read_samples(path: str, suite: CodeSuite) -> list[Sample]:
    """Read ``{task_id, completion}`` lines; the k-th line of a task is its k-th attempt.

    ``solution`` or ``program`` in place of ``completion`` is a whole program, and ``response``
    is the answer of a model, with the program somewhere in it. So is a completion in a fence.
    """
    counts: Counter[str] = Counter()
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
        samples.append(Sample(task, counts[name], program, raw))
        counts[name] += 1
    if not samples:
        raise ReadError("holds no sample.", source=path)
    return samples


def normalize(program: str) -> str:
    """A program without layout, comments and its choice of names.

    Examples
    --------
    >>> normalize("def f(x):  # add\\n    return x+1") == normalize("def f(n): return n + 1")
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
        names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
        local = [a.arg for a in arguments]
        local += [n.id for n in names if isinstance(n.ctx, ast.Store)]
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


# -- the program in an answer ----------------------------------------------------------------------

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_OPENING = re.compile(
    r"^(?P<indent>(?:[ \t]*(?:[-*+>]|\d+[.)])[ \t]+)?[ \t]*)(?P<fence>`{3,}|~{3,})[^`\n]*$"
)
_CODE_LINE = re.compile(
    r"^(?:@|(?:async\s+)?def\s|class\s|from\s+[\w.]+\s+import\s|import\s+[\w.]+|if\s.*:|for\s.*:"
    r"|while\s.*:|with\s.*:|try:|print\(|[A-Za-z_][\w.\[\]'\", ]*\s*(?:[-+*/%|&^]|//|\*\*)?=[^=])"
)


def request_text(task: CodeTask) -> str:
    """The prompt of an agent: the task, and the form of the answer. Never the tests."""
    if task.prompt:
        return (
            "Complete this Python code. Answer with code only: the rest of it, or all of it.\n\n"
            f"```python\n{task.prompt.rstrip()}\n```\n"
        )
    if task.cases:
        form = "Write a Python script that reads standard input and prints the answer."
    else:
        names = sorted(free_names(task.tests) - free_names(task.helpers))
        form = f"Write Python code that defines {', '.join(names) or 'what is asked for'}."
    return f"{task.text.strip()}\n\n{form} Answer with code only.\n"


def has_fence(text: str) -> bool:
    """Whether a text has fenced code in it."""
    return "```" in text or "~~~" in text


def program_in(answer: str, task: CodeTask) -> str:
    """The whole program in an answer.

    What a model thinks aloud is left out. Of several fenced blocks the last one that defines what
    the tests ask for counts, else the last one that compiles. Without a fence it is the longest
    run of lines that is code. Code that defines the entry point stands after the prompt; other
    code continues it.
    """
    text = answer.replace("\r\n", "\n").replace("\r", "\n")
    spoken = _THINKING.sub("\n", text)
    if "</think>" in spoken.lower():  # the opening tag was part of the prompt
        spoken = re.split(r"</think(?:ing)?>", spoken, flags=re.IGNORECASE)[-1]
    text = spoken if spoken.strip() else text
    blocks = [block for block in find_fences(text) if block.strip()]
    code = _choose_block(blocks, task) if blocks else _find_unfenced(text, task)
    return _whole(code, task, find_fences=bool(blocks))


def find_fences(text: str) -> Iterator[str]:
    """Fenced blocks of Markdown, in lists too; an unclosed block ends with the text."""
    lines: list[str] = []
    fence = indent = ""
    for line in text.split("\n"):
        if not fence:
            opening = _OPENING.match(line)
            if opening is not None:
                fence, before = opening["fence"], opening["indent"]
                indent = ">" if ">" in before else " " * len(before)
                lines = []
            continue
        is_closed, rest = _closes(line, fence)
        if rest is not None:
            lines.append(rest)
        if is_closed:
            yield _dedent(lines, indent)
            fence = ""
    if fence:
        yield _dedent(lines, indent)


def _closes(line: str, fence: str) -> tuple[bool, str | None]:
    """Whether a line closes a fence, and the part of it that belongs to the code."""
    bare = line.strip(" \t>")
    if bare and set(bare) == {fence[0]} and len(bare) >= len(fence):
        return True, None
    text = line.rstrip()
    ending = fence[0] * len(fence)
    if text.endswith(ending) and fence[0] not in text[: -len(fence)].rstrip(fence[0])[-1:]:
        before = text.rstrip(fence[0])
        # Three quotes of the other kind may be in a string; code before them must not be one.
        if before.strip() and before.count(ending) == 0:
            return True, before
    return False, line


def _dedent(lines: list[str], indent: str) -> str:
    """A block without the indentation of its list, or the signs of its quote."""
    code_lines = [line for line in lines if line.strip()]
    if indent == ">":
        return "\n".join(re.sub(r"^\s*> ?", "", line) for line in lines)
    if indent and all(line.startswith(indent) for line in code_lines):
        lines = [line[len(indent) :] for line in lines]
    return "\n".join(lines)


def _choose_block(blocks: list[str], task: CodeTask) -> str:
    names = [task.entry_point] if task.entry_point else sorted(free_names(task.tests))
    whole = [block for block in blocks if names and all(_defines(name, block) for name in names)]
    if whole:
        return whole[-1]
    some = [block for block in blocks if any(_defines(name, block) for name in names)]
    good = [block for block in blocks if compiles(_whole(block, task, find_fences=True))]
    return (some or good or blocks)[-1]


def _find_unfenced(text: str, task: CodeTask) -> str:
    """The answer itself, or the code in it when it is surrounded by prose."""
    if compiles(_whole(text, task, find_fences=False)) and not _is_prose(text):
        return text
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if _CODE_LINE.match(line)]
    if task.prompt and not starts:
        return text
    for start in starts[:50]:
        for stop in _stops(lines, start):
            code = "\n".join(lines[start:stop])
            if compiles(code) and not _is_prose(code):
                return code
    return text


def _stops(lines: list[str], start: int) -> list[int]:
    """Where the code that starts here may end: at the end, or before a line at the margin."""
    margins = [
        number
        for number in range(len(lines) - 1, start, -1)
        if lines[number].strip() and not lines[number][:1].isspace()
    ]
    return [len(lines), *margins[:100]]


def _is_prose(code: str) -> bool:
    """Whether a text that compiles does nothing: a single word is an expression, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            body = ast.parse(code).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    inert = (ast.Name, ast.Constant, ast.Tuple, ast.Attribute, ast.Compare, ast.BinOp)
    return all(isinstance(node, ast.Expr) and isinstance(node.value, inert) for node in body)


def _whole(code: str, task: CodeTask, *, find_fences: bool) -> str:
    if not task.prompt:
        flat = textwrap.dedent(code)
        return f"{flat if not compiles(code) and compiles(flat) else code}\n"
    for form in (code, textwrap.dedent(code)):
        if _defines(task.entry_point, form):
            return f"{task.helpers or ''}\n{form}\n"
    whole = task.program(code)
    if not compiles(whole):
        # Code is often moved to the margin; the rest of a first line may be, too.
        indented = task.program(textwrap.indent(textwrap.dedent(code), "    "))
        if compiles(indented) and (find_fences or not _is_prose(code)):
            return indented
    return whole


def _defines(name: str, code: str) -> bool:
    """Whether the code defines this name at its top level."""
    pattern = (
        rf"^(?:async\s+def|def|class)\s+{re.escape(name)}\b|^{re.escape(name)}\s*(?::[^=\n]*)?="
    )
    return bool(name) and re.search(pattern, code, re.MULTILINE) is not None


def compiles(code: str) -> bool:
    """Whether a text is Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a SyntaxWarning of the program is not shown to the user
        try:
            compile(code, "program", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
            return False
    return True
