"""An agent's answer becomes a program, in whichever form it came."""

from __future__ import annotations

import pytest

from passhat.judging.tasks import Case, CodeTask
from passhat.suites.code_samples import Sample, program_in, request_text

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
    assert PROMPT.rstrip() in request_text(TASK)
    mbpp = CodeTask("m", tests="assert twice(2) == 4", text="Double a number.")
    assert request_text(mbpp).startswith("Double a number.")
    assert "defines twice" in request_text(mbpp)
    assert "== 4" not in request_text(mbpp)
    script = CodeTask("s", cases=(Case(b"1", b"7391"),), text="Print a number.")
    assert "standard input" in request_text(script)
    assert "7391" not in request_text(script)


GOOD = "def total(xs):\n    return sum(xs)"
WRONG = "def total(xs): return 0"
CHATTY = {
    "a fence that is never closed": f"Sure:\n```python\n{GOOD}\n",
    "carriage returns": f"Sure:\n```python\n{GOOD}\n```\nDone".replace("\n", "\r\n"),
    "a fence in a list": "1. It:\n\n   ```py\n   def total(xs):\n       return sum(xs)\n   ```\n",
    "a fence in a quote": "> ```python\n> def total(xs):\n>     return sum(xs)\n> ```",
    "a closing fence on the last line": f"```python\n{GOOD}```\nHope it helps",
    "tildes": f"~~~python\n{GOOD}\n~~~",
    "prose around code": f"Here is what you asked for.\n\n{GOOD}\n\nThis adds the numbers up.",
    "thoughts with a fence": f"<think>\n```python\n{WRONG}\n```\n</think>\n```python\n{GOOD}\n```",
    "thoughts without their beginning": f"```python\n{WRONG}\n```\n</think>\n\n{GOOD}",
    "an example after it": f"```python\n{GOOD}\n```\n```python\nprint(total([1, 2]))\n```",
    "its output after it": f"```python\n{GOOD}\n```\nOutput:\n```\n3\n```",
}


@pytest.mark.parametrize("form", CHATTY)
def test_code_is_found_in_chatty_answers(form: str) -> None:
    asserted = CodeTask("m", tests="assert total([1, 2]) == 3", text="Add them.")
    for task in (TASK, asserted):
        names: dict[str, object] = {}
        exec(program_in(CHATTY[form], task), names)
        total = names["total"]
        assert callable(total)
        assert total([1, 2]) == 3


@pytest.mark.parametrize(
    "program",
    ["x = 0x" + "f" * 4000, "x = '\ud800'", "#" * 10**6, "x = " + "(" * 5000 + ")" * 5000],
    ids=["long number", "lone surrogate", "long line", "deep nesting"],
)
def test_no_program_stops_a_batch(program: str) -> None:
    assert len(Sample(TASK, 0, program).fingerprint) == 16
    assert program_in(program, TASK)
