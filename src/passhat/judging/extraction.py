"""From an agent's answer to the program that is judged: fenced code, or the answer as it is."""

from __future__ import annotations

import re
import textwrap

from passhat.judging.tasks import CodeTask, free_names

__all__ = ["asked", "program_in"]

_FENCED = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)


def asked(task: CodeTask) -> str:
    """What an agent is told: the task, and in which form to answer. Never the tests."""
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


def program_in(answer: str, task: CodeTask) -> str:
    """The whole program in an answer.

    Of several fenced blocks the last one that defines the entry point counts, else the last one.
    Code that defines the entry point stands after the prompt; other code continues it.
    """
    blocks = _FENCED.findall(answer)
    whole = [block for block in blocks if _defines(task.entry_point, block)]
    code = (whole or blocks or [answer])[-1]
    if not task.prompt:
        return f"{code}\n"
    if _defines(task.entry_point, code):
        return f"{task.helpers or ''}\n{code}\n"
    continued = task.program(code)
    if blocks and not _compiles(continued):
        # Fenced code is often moved to the margin.
        moved = task.program(textwrap.indent(code, "    "))
        return moved if _compiles(moved) else continued
    return continued


def _defines(name: str, code: str) -> bool:
    """Whether the code defines this name at its top level."""
    found = rf"^(?:async\s+def|def|class)\s+{re.escape(name)}\b|^{re.escape(name)}\s*(?::[^=\n]*)?="
    return bool(name) and re.search(found, code, re.MULTILINE) is not None


def _compiles(code: str) -> bool:
    try:
        compile(code, "program", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
