"""An agent's answer becomes a program, in whichever form it came."""

from __future__ import annotations

import pytest

from passhat.judging.extraction import asked, program_in
from passhat.judging.tasks import Case, CodeTask

PROMPT = 'from typing import List\n\ndef total(xs: List[int]) -> int:\n    """Add them."""\n'
TASK = CodeTask("t", prompt=PROMPT, entry_point="total", helpers=f"{PROMPT}\n    pass\n")


@pytest.mark.parametrize(
    "answer",
    [
        "    return sum(xs)\n",
        "```python\n    return sum(xs)\n```",
        "```\nreturn sum(xs)\n```",
        f"Here it is:\n```python\n{PROMPT}    return sum(xs)\n```\nIt adds them.",
        "def total(xs: List[int]):\n    return sum(xs)\n",
        "First:\n```python\ndef total(xs): return 0\n```\nBetter:\n"
        "```py\ndef total(xs): return sum(xs)\n```\nTry it:\n```sh\npython total.py\n```\n",
        "total = lambda xs: sum(xs)",
    ],
)
def test_every_form_of_answer(answer: str) -> None:
    names: dict[str, object] = {}
    exec(program_in(answer, TASK), names)
    total = names["total"]
    assert callable(total)
    assert total([1, 2]) == 3


def test_what_is_no_code_stays_what_it_is() -> None:
    assert program_in("I cannot do that.", TASK).endswith("I cannot do that.\n")
    assert program_in("print(1)", CodeTask("s", cases=(Case(b"", b"1"),))) == "print(1)\n"


def test_the_agent_is_told_the_task_and_never_the_tests() -> None:
    assert PROMPT.rstrip() in asked(TASK)
    mbpp = CodeTask("m", tests="assert twice(2) == 4", text="Double a number.")
    assert asked(mbpp).startswith("Double a number.")
    assert "defines twice" in asked(mbpp)
    assert "== 4" not in asked(mbpp)
    script = CodeTask("s", cases=(Case(b"1", b"7391"),), text="Print a number.")
    assert "standard input" in asked(script)
    assert "7391" not in asked(script)
