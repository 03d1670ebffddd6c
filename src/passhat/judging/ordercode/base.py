"""How a task of the suite is written down."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from passhat.judging.tasks import CodeTask

__all__ = ["OrderTask", "order_task"]


_RAISES = """
def raises(function, *arguments):
    try:
        function(*arguments)
    except ValueError:
        return True
    return False

"""


@dataclass(frozen=True, slots=True)
class OrderTask:
    """A task with its solution, hidden tests, and the wrong solutions they must kill.

    Each test and each wrong solution stands for one way to misread the task.
    """

    task: CodeTask
    band: str
    tests: tuple[str, ...]
    wrong: tuple[str, ...]


def order_task(
    band: str, signature: str, text: str, example: str, right: str, tests: str, *wrong: str
) -> OrderTask:
    """Make a task; ``tests`` holds one assertion about ``f`` per line."""
    name = signature.partition("(")[0]
    doc = textwrap.indent(f'"""{text}\n\n>>> {example}\n"""', "    ")
    prompt = f"def {signature}:\n{doc}\n"
    lines = tuple(line.strip() for line in tests.strip().splitlines())
    check = _RAISES + "def check(f):\n" + "".join(f"    assert {line}\n" for line in lines)
    task = CodeTask(
        f"ordercode/{name}",
        prompt=prompt,
        entry_point=name,
        tests=check,
        canonical=_body(right),
        labels=(("band", band),),
    )
    return OrderTask(task, band, lines, tuple(map(_body, wrong)))


def _body(code: str) -> str:
    return textwrap.indent(textwrap.dedent(code).strip("\n"), "    ") + "\n"
