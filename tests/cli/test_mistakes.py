"""Set-up mistakes at the command line: a cause in the first line, never a percentage."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from passhat.store import open_store

AGENTS = """
import functools, os, sys

def right(prompt): return "4"
async def later(prompt): return "4"
with_wrong_keyword = functools.partial(right, key="a")
three_parameters = lambda a, b, c: "4"
async def pieces(prompt): yield "4"
def gives_bytes(prompt): return b"4"
def gives_exception(prompt): return ValueError("no key")
def gives_generator(prompt): return (part for part in "4")
def gives_float(prompt): return 4.0
def gives_class(prompt): return str
def gives_set(prompt): return {"4"}
def gives_function(prompt): return later
def prints(prompt): print("4")
def blank(prompt): return chr(10)
def exits(prompt): sys.exit(3)
def calls_itself(prompt): return calls_itself(prompt)
def ends_iteration(prompt): raise StopIteration
text = "hello"
class ReadsKey:
    def __init__(self): self.key = os.environ["PASSHAT_TEST_NO_SUCH_KEY"]
    def __call__(self, prompt): return "4"
class NotCallable: pass
def needs_key(prompt, *, key): return "4"
class Client:
    def answer(self, prompt, history): return "4"
bound = Client().answer
unbound = Client.answer
"""
TASKS = [{"id": f"t{i}", "prompt": "2 + 2?", "answer": "4"} for i in range(4)]
UNUSABLE = "3 of 3 attempts gave no usable answer: answered"

PYTHON_AGENTS = {
    "with_wrong_keyword": "3 of 3 attempts raised TypeError: right() got an unexpected keyword",
    "three_parameters": "cannot be called with a prompt: missing a required argument: 'b'",
    "pieces": "pieces is a generator; an agent returns its whole answer",
    "gives_bytes": f"{UNUSABLE} bytes, not text",
    "gives_exception": f"{UNUSABLE} ValueError: no key, not text",
    "gives_generator": f"{UNUSABLE} generator, not text",
    "gives_float": f"{UNUSABLE} 4.0 (float), not text",
    "gives_class": f"{UNUSABLE} type, not text",
    "gives_set": f"{UNUSABLE} set, not text",
    "gives_function": f"{UNUSABLE} function, not text",
    "prints": f"{UNUSABLE} None, not text",
    "blank": "3 of 3 attempts gave an empty answer: answered ''",
    "exits": "3 of 3 attempts raised SystemExit: 3 (mistaken_agents.py:",
    "calls_itself": "3 of 3 attempts raised RecursionError: maximum recursion depth exceeded",
    "ends_iteration": "3 of 3 attempts raised StopIteration",
    "text": "python:mistaken_agents:text is not an Agent: it is a str",
    "ReadsKey": "3 of 3 attempts raised KeyError: 'PASSHAT_TEST_NO_SUCH_KEY' (mistaken_agents",
    "NotCallable": "is not an Agent: it is the class NotCallable",
    "needs_key": "missing a required argument: 'key'",
    "bound": "missing a required argument: 'history'",
    "unbound": "missing a required argument: 'prompt'",
    "absent": "module 'mistaken_agents' has no 'absent'",
}
OTHER_AGENTS = {
    "python:exits_when_imported:f": "cannot be imported: SystemExit: 0",
    "python:raises_when_imported:f": "cannot be imported: KeyError: 'K'",
    "python:misspelt:f": "cannot be imported: SyntaxError",
    "python:no_such_module_of_passhat:f": "there is no module 'no_such_module_of_passhat'",
    "python:mistaken_agents": "should read MODULE:NAME",
    "pyton:mistaken_agents:right": "'pyton:mistaken_agents:right' is not an agent",
    "command:no-such-program-of-passhat": "there is no program 'no-such-program-of-passhat'",
    "command:./notes.txt": "'./notes.txt' is not executable",
    "command:true": "3 of 3 attempts ended without an answer (exit 0)",
    "command:echo '{\"text\": 4}'": '3 of 3 attempts gave no usable answer: "text" must be',
    "openai:": "openai: names no model",
    "openai:m@127.0.0.1:9/v1": "lacks http:// or https://",
    "openai:m@http://127.0.0.1:9/v1": "nothing answers at 127.0.0.1:9",
    "a2a:http://127.0.0.1:9": "the agent cannot be reached",
}
TASK_FILES: dict[str, tuple[Any, str]] = {
    "another name for the answer": (
        [{"id": "a", "prompt": "?", "expected": "4"}],
        "line 1: has the unknown key 'expected'. Did you mean 'answer'?",
    ),
    "a misspelt other name": (
        [{"id": "a", "prompt": "?", "expectd": "4"}],
        "Did you mean 'answer'?",
    ),
    "another name for the prompt": ([{"id": "a", "question": "?", "answer": "4"}], "'prompt'?"),
    "one id for all": ([{**task, "id": "a"} for task in TASKS], "task 'a' is listed twice"),
    "unknown grader": ([{**TASKS[0], "grader": "exactt"}], "'exactt' is not a grader"),
    "broken pattern": ([{**TASKS[0], "answer": "(", "grader": "regex"}], "regular expression"),
    "grader of no module": ([{**TASKS[0], "grader": "python:no_mod:f"}], "no module 'no_mod'"),
    "grader with one parameter": (
        [{**task, "grader": "python:mistaken_agents:right"} for task in TASKS],
        "t.jsonl, line 1: the judge right(prompt) cannot be called with answer and expected",
    ),
    "no answer": ([{**TASKS[0], "answer": None}], "there is no expected answer"),
    "list as prompt": ([{**TASKS[0], "prompt": ["?"]}], "is not a task (Expected `str`"),
    "empty prompt": ([{**TASKS[0], "prompt": ""}], "neither a prompt nor messages"),
    "a CSV file": ("id,prompt,answer\na,2 + 2?,4\n", "line 1: is not a task (JSON is malformed"),
    "a JSON array": (json.dumps(TASKS), "is not a task (Expected `object`, got `array`)"),
    "empty lines": ("\n\n", "holds no task"),
}


@pytest.fixture
def mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    modules = {
        "mistaken_agents": AGENTS,
        "exits_when_imported": "import sys\nsys.exit(0)\n",
        "raises_when_imported": "raise KeyError('K')\n",
        "misspelt": "def f(prompt) return 4\n",
    }
    for name, text in modules.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, TASKS)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    # Another test may have loaded it here, and agents that emit spans get no worker processes.
    monkeypatch.delitem(sys.modules, "opentelemetry.sdk.trace", raising=False)
    yield tmp_path
    for name in modules:
        sys.modules.pop(name, None)


def _check(passhat: Any, agent: str, message: str) -> None:
    ended = passhat("run", "-s", "jsonl:t.jsonl", "-a", agent, "-n", "4", "--store", "s.db")
    assert ended.code == 2
    (first,) = [line for line in ended.err.splitlines() if line.startswith("passhat: ")]
    assert message in first
    assert "Traceback" not in ended.err
    assert not ended.out
    if Path("s.db").exists():
        with open_store("s.db") as store:
            assert all(not run.attempts for run in store.runs())


@pytest.mark.usefixtures("mistakes")
@pytest.mark.parametrize("name", PYTHON_AGENTS)
def test_a_mistaken_function_is_told(passhat: Any, name: str) -> None:
    _check(passhat, f"python:mistaken_agents:{name}", PYTHON_AGENTS[name])


@pytest.mark.usefixtures("mistakes")
@pytest.mark.parametrize("agent", OTHER_AGENTS)
def test_a_mistaken_word_is_told(passhat: Any, agent: str) -> None:
    _check(passhat, agent, OTHER_AGENTS[agent])


@pytest.mark.parametrize("case", TASK_FILES)
def test_a_mistaken_file_of_tasks_is_told(passhat: Any, mistakes: Path, case: str) -> None:
    lines, message = TASK_FILES[case]
    text = lines if isinstance(lines, str) else "\n".join(map(json.dumps, lines))
    (mistakes / "t.jsonl").write_text(text)
    _check(passhat, "python:mistaken_agents:right", message)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_mistake(passhat: Any, mistakes: Path, encoding: str) -> None:
    (mistakes / "t.jsonl").write_text("\n".join(map(json.dumps, TASKS)), encoding=encoding)
    ended = passhat("run", "-s", "jsonl:t.jsonl", "-a", "python:mistaken_agents:right", "-n", "1")
    assert (ended.code, "4 passed" in ended.err) == (0, True)


@pytest.mark.parametrize("word", ["agent.py", "python:agent", "python:agent.py"])
def test_a_file_without_its_function_is_answered_with_the_word_to_write(
    passhat: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("agent.py").write_text("import os\n\n\ndef _own(): ...\n\n\ndef answer(prompt): ...\n")
    Path("tasks.jsonl").write_text('{"id": "a", "prompt": "?", "answer": "4"}\n')
    ended = passhat("run", "-a", word, "-s", "jsonl:tasks.jsonl")
    assert ended.code == 2
    assert "Write python:agent:answer" in ended.err
