# ruff: noqa: ARG001, ARG002 - signatures are what is tested
"""Set-up mistakes end before or within three attempts, with the cause in the first line."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace as replace_struct
from rich.console import Console

import passhat as api
from passhat._display import percent_interval
from passhat._plugins import shorten_detail
from passhat.agents.base import ModelCall
from passhat.cli.shared.exits import ExitCode
from passhat.errors import InvalidValue, PasshatError, RunStopped
from passhat.reporting.build import build_report
from passhat.reporting.document import Level
from passhat.reporting.documents.report import report_document
from passhat.reporting.terminal import render_terminal
from passhat.stats.estimate import Estimate
from passhat.stats.outcomes import FailureCategory, Verdict
from passhat.store import open_store
from passhat.suites.base import Episode, Judgement, Suite, Task, Turn

TASKS = [{"id": f"t{i}", "prompt": "2 + 2?", "answer": "4"} for i in range(4)]


def no_key(prompt: str) -> str:
    return os.environ["PASSHAT_TEST_NO_SUCH_KEY"]


def imports_inside(prompt: str) -> str:
    import no_such_package_for_passhat  # type: ignore[import-not-found]

    return str(no_such_package_for_passhat.answer(prompt))


def wants_object(prompt: Any) -> str:
    return str(prompt.question)


def quotes_input(prompt: str) -> str:
    return str(int(prompt))


def number(prompt: str) -> int:
    return 4


def nothing(prompt: str) -> None:
    return None


def pieces(prompt: str) -> list[str]:
    return ["4"]


def wrong_field(prompt: str) -> dict[str, str]:
    return {"reply": "4"}


def generator(prompt: str) -> Iterator[str]:
    yield "4"


def task_alone(task: str) -> str:
    return "4"


def seed_alone(seed: int) -> str:
    return "4"


def attempt_alone(attempt: object) -> str:
    return "4"


def keyword_only(*, prompt: str) -> str:
    return "4"


def no_argument() -> str:
    return "4"


def two_arguments(prompt: str, history: list[str]) -> str:
    return "4"


def prompt_and_seed(prompt: str, seed: int = 0) -> str:
    return "4"


class NeedsArgument:
    def __init__(self, key: str) -> None:
        self.key = key

    def __call__(self, prompt: str) -> str:
        return self.key


class CalledWithoutPrompt:
    def __call__(self) -> str:
        return "4"


class RaisesWhenMade:
    def __init__(self) -> None:
        raise RuntimeError("no model file")

    def __call__(self, prompt: str) -> str:
        return prompt


MISTAKES = {
    no_key: r"3 of 3 attempts raised KeyError: 'PASSHAT_TEST_NO_SUCH_KEY' \(test_setup_mistakes",
    imports_inside: "3 of 3 attempts raised ModuleNotFoundError: No module named 'no_such",
    wants_object: "3 of 3 attempts raised AttributeError: 'str' object has no attribute 'question'",
    quotes_input: "3 of 3 attempts raised ValueError: invalid literal",
    number: r"3 of 3 attempts gave no usable answer: answered 4 \(int\), not text",
    nothing: "3 of 3 attempts gave no usable answer: answered None, not text",
    pieces: "3 of 3 attempts gave no usable answer: answered list, not text",
    wrong_field: "3 of 3 attempts gave no usable answer: answered dict, not text",
    generator: "generator is a generator",
    task_alone: r"task_alone\(task.*second parameter, attempt",
    seed_alone: r"seed_alone\(seed.*second parameter, attempt",
    attempt_alone: r"attempt_alone\(attempt.*second parameter, attempt",
    keyword_only: r"keyword_only\(\*, prompt.*cannot be called with a prompt",
    no_argument: r"no_argument\(\).* cannot be called with a prompt",
    two_arguments: r"missing a required argument: 'history'",
    prompt_and_seed: r"prompt_and_seed\(prompt.*second parameter, attempt",
    NeedsArgument: "NeedsArgument is instantiated for every attempt without arguments",
    CalledWithoutPrompt: "cannot be called with a prompt",
    RaisesWhenMade: "3 of 3 attempts could not be started: RuntimeError: no model file",
}


def group(prompt: str) -> str:
    raise ExceptionGroup("unhandled errors in a TaskGroup", [KeyError("KEY"), OSError()])


def chained(prompt: str) -> str:
    raise RuntimeError from KeyError("KEY")


def exception_as_answer(prompt: str) -> object:
    return ValueError("no key")


MISTAKES |= {
    group: r"raised KeyError: 'KEY' and 1 more in ExceptionGroup \(test_setup_mistakes",
    chained: r"raised RuntimeError, caused by KeyError: 'KEY' \(test_setup_mistakes",
    exception_as_answer: "answered ValueError: no key, not text",
}


@pytest.mark.parametrize("agent", MISTAKES, ids=lambda agent: agent.__name__)
def test_a_mistake_in_the_agent_is_told_with_its_cause(agent: Any, tmp_path: Path) -> None:
    with pytest.raises(PasshatError, match=MISTAKES[agent]) as caught:
        api.run(agent, TASKS, n=8, store=tmp_path / "s.db", progress=False)
    assert caught.value.hint
    if not isinstance(caught.value, RunStopped):
        assert "Write def " in caught.value.hint
        assert not (tmp_path / "s.db").exists()
        return
    with open_store(str(tmp_path / "s.db")) as store:
        assert all(not run.attempts for run in store.runs())  # nothing that reads as 0%


def _raises(_task: object, answer: str) -> bool:
    raise ZeroDivisionError(answer)


@pytest.mark.parametrize(
    ("tasks", "judge", "message"),
    [
        ([], None, "the list of tasks is empty"),
        ([{"id": "a", "prompt": "2 + 2?"}], None, "no expected answer"),
        ([{"id": "a", "prompt": "?", "answer": "x", "grader": "numeric"}], None, "not a number"),
        (TASKS, _raises, "3 of 3 attempts could not be judged: the judge raised ZeroDivisionError"),
    ],
)
def test_a_mistake_in_tasks_or_judge_is_told_too(tasks: Any, judge: Any, message: str) -> None:
    with pytest.raises(PasshatError, match=message):
        api.run(lambda _prompt: "4", tasks, n=8, judge=judge, progress=False)


def test_a_file_without_tasks_and_a_closed_port(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.jsonl").write_text("")
    with pytest.raises(PasshatError, match="no task"):
        api.run(lambda _prompt: "4", "jsonl:tasks.jsonl", n=1, progress=False)
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, TASKS)))
    with pytest.raises(PasshatError, match=r"nothing answers at 127\.0\.0\.1:9"):
        api.run("openai:small@http://127.0.0.1:9/v1", "jsonl:tasks.jsonl", n=1, progress=False)


def _scripted(*ends: str) -> Callable[[str], str]:
    """An agent whose calls end in this order; the last one repeats."""
    left = list(ends)

    def agent(_prompt: str) -> str:
        end = left.pop(0) if len(left) > 1 else left[0]
        if end in ("4", "5"):
            return end
        raise RuntimeError(end)

    return agent


@pytest.mark.parametrize(
    "ends",
    [
        ("5",),  # always wrong: a result
        ("boom", "boom", "5", "boom"),  # one answer shows that the set-up works
        ("4", "boom"),
    ],
)
def test_a_run_that_answers_is_never_stopped(ends: tuple[str, ...]) -> None:
    run = api.run(_scripted(*ends), TASKS, n=4, jobs=1, progress=False)
    assert (run.outcomes.scored, run.outcomes.total_missing) == (16, 0)


def _stopped_by_provider(*stops: str) -> Callable[..., str]:
    """An agent whose model's answers end so, in this order; the last one repeats."""
    left = list(stops)

    def agent(_prompt: str, attempt: Any) -> str:
        stop = left.pop(0) if len(left) > 1 else left[0]
        call = ModelCall("m", stop=stop, output_tokens=16, empty="empty" if stop == "" else "")
        attempt.meter.record(replace_struct(call, stop=stop or "stop"))
        return {"refused": f"I cannot help {len(left)}", "length": "The ans", "": ""}.get(stop, "5")

    return agent


NO_ANSWERS = {
    "refused": "3 of 3 attempts got no answer: refused by the model or its provider",
    "filtered": "3 of 3 attempts got no answer: filtered by the model or its provider",
    "length": r"3 of 3 attempts got no whole answer: cut at the token limit \(16 tokens\)",
    "": "3 of 3 attempts gave an empty answer: the answer is empty; answered ''",
}


@pytest.mark.parametrize("stop", NO_ANSWERS)
@pytest.mark.parametrize("jobs", [1, 8])
def test_answers_that_a_provider_ends_stop_the_run(stop: str, jobs: int, tmp_path: Path) -> None:
    place = tmp_path / "s.db"
    with pytest.raises(RunStopped, match=NO_ANSWERS[stop]) as caught:
        api.run(_stopped_by_provider(stop), TASKS, n=4, jobs=jobs, store=place, progress=False)
    assert "keep_going" in str(caught.value)
    with open_store(str(place)) as store:
        assert all(not run.attempts for run in store.runs())
    run = api.run(
        _stopped_by_provider(stop), TASKS, n=4, store=place, keep_going=True, progress=False
    )
    assert (run.outcomes.scored, run.outcomes.passes) == (16, 0)


@pytest.mark.parametrize(
    "stops", [("refused", "refused", "stop", "refused"), ("length", "refused", "length", "stop")]
)
def test_one_answer_or_another_cause_goes_on(stops: tuple[str, ...]) -> None:
    run = api.run(_stopped_by_provider(*stops), TASKS, n=4, jobs=1, progress=False)
    assert run.outcomes.scored == 16


@pytest.mark.parametrize(
    ("tasks", "answer", "is_stopped"),
    [
        (TASKS, "no", False),
        ([{**task, "grader": "numeric"} for task in TASKS], "no", False),
        ([{**task, "answer": {}, "grader": "json"} for task in TASKS], "no", False),
        ([{**task, "grader": "numeric"} for task in TASKS], "", True),
        ([{**task, "answer": r"^\s*$", "grader": "regex"} for task in TASKS], "", False),  # right
    ],
)
def test_a_short_wrong_answer_is_an_answer(tasks: Any, answer: str, is_stopped: bool) -> None:
    if is_stopped:
        with pytest.raises(RunStopped, match="3 of 3 attempts gave an empty answer"):
            api.run(lambda _prompt: answer, tasks, n=2, progress=False)
        return
    run = api.run(lambda _prompt: answer, tasks, n=2, progress=False)
    assert run.outcomes.scored == 8


def test_a_world_that_cannot_read_any_answer_stops_the_run() -> None:
    with pytest.raises(RunStopped, match="3 of 3 attempts gave no usable answer: 3 answers could"):
        api.run(lambda _prompt: "Hello!", "orderdesk:retail", n=1, progress=False)


def test_a_run_that_is_resumed_with_empty_answers_is_stopped(tmp_path: Path) -> None:
    answers = ["4"] * 4
    agent = lambda _prompt: answers.pop() if answers else ""  # noqa: E731
    store = tmp_path / "s.db"
    api.run(agent, TASKS, n=1, store=store, jobs=1, progress=False)
    with pytest.raises(RunStopped, match="3 of 3 attempts gave an empty answer"):
        api.run(agent, TASKS, n=3, store=store, jobs=1, progress=False)
    run = api.run(agent, TASKS, n=3, store=store, jobs=1, keep_going=True, progress=False)
    assert (run.outcomes.scored, run.outcomes.passes) == (12, 4)


@pytest.mark.parametrize("jobs", [1, 8])
def test_six_attempts_that_all_raised_stop_the_run_with_the_most_common_cause(jobs: int) -> None:
    agent = _scripted("a", "b", "a", "c", "a", "d", "e", "f", "g")
    with pytest.raises(RunStopped) as caught:
        # The line of code is the same, so only a cause without one tells them apart.
        api.run(_without_place(agent), TASKS, n=4, jobs=jobs, progress=False)
    assert caught.value.message == (
        "none of the first 6 attempts got a verdict: 3 of them raised RuntimeError: a"
    )


def test_one_answer_among_six_attempts_goes_on() -> None:
    agent = _without_place(_scripted("a", "b", "a", "c", "a", "5", "a"))
    run = api.run(agent, TASKS, n=4, jobs=1, progress=False)
    assert run.outcomes.scored == 16


def test_a_long_message_is_shortened_and_its_place_kept() -> None:
    with pytest.raises(RunStopped) as caught:
        api.run(_scripted("z" * 5000), TASKS, n=2, jobs=1, progress=False)
    assert len(caught.value.message) < 300
    assert re.search(r"zz… \(test_setup_mistakes\.py:\d+\)$", caught.value.message)


def test_a_detail_is_cut_before_its_place() -> None:
    assert shorten_detail("E: boom (a.py:1)", 40) == "E: boom (a.py:1)"
    assert shorten_detail(f"E: {'z' * 90} (a.py:1)", 20) == "E: zzzzzzz… (a.py:1)"
    assert shorten_detail("z" * 90, 20) == "z" * 19 + "…"


async def judge_async(_task: object, _answer: str) -> bool:
    return False


def judge_generator(_task: object, _answer: str) -> Iterator[bool]:
    yield False


class AsyncJudge:
    async def __call__(self, _task: object, _answer: str) -> bool:
        return False


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (judge_async, "the judge judge_async is async"),
        (functools.partial(judge_async), "is async"),
        (AsyncJudge(), "the judge AsyncJudge is async"),
        (judge_generator, "the judge judge_generator is a generator"),
    ],
)
def test_a_judge_that_cannot_return_a_verdict_is_refused(judge: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        api.run(lambda _prompt: "4", TASKS, n=2, judge=judge, progress=False)


NO_VERDICTS: dict[str, tuple[Callable[[], Any], str]] = {
    "tuple": (lambda: (False, "why"), r"\(False, 'why'\) \(tuple\)"),
    "dict": (lambda: {"passed": False}, r"{'passed': False} \(dict\)"),
    "text": (lambda: "no", r"'no' \(str\)"),
    "score above 1": (lambda: 2, "2; a score lies between 0 and 1"),
    "nan": (lambda: float("nan"), "nan; a score lies between 0 and 1"),
    "nothing": (lambda: None, "None; a verdict is True, False or a score"),
    "function": (lambda: no_key, "a function; a verdict"),
    "coroutine": (lambda: judge_async(None, ""), "a coroutine; a verdict"),
    "array": (lambda: np.array([True, False]), "a ndarray; a verdict"),
}


@pytest.mark.parametrize("case", NO_VERDICTS)
@pytest.mark.filterwarnings("error")
def test_a_result_that_is_no_verdict_stops_the_run(case: str, tmp_path: Path) -> None:
    result, words = NO_VERDICTS[case]
    message = f"3 of 3 attempts could not be judged: the judge returned {words}"
    with pytest.raises(RunStopped, match=message):
        api.run(
            lambda _prompt: "4",
            TASKS,
            n=2,
            judge=lambda _task, _answer: result(),
            store=tmp_path / "s.db",
            progress=False,
        )
    with open_store(str(tmp_path / "s.db")) as store:
        assert all(not run.attempts for run in store.runs())


@pytest.mark.parametrize(
    ("result", "passes"),
    [
        *[(True, True), (False, False), (1, True), (0, False), (0.5, False), (1.0, True)],
        *[(np.True_, True), (np.False_, False), (np.float32(1), True), (np.int64(0), False)],
    ],
)
def test_booleans_and_scores_are_verdicts(result: Any, passes: bool) -> None:
    judgement = Judgement.from_result(result)
    assert (judgement.verdict is Verdict.PASSED) is passes
    assert passes or judgement.verdict is Verdict.FAILED


class _OwnEpisode(Episode):
    def __init__(self, result: object) -> None:
        self.result = result

    def open(self) -> Turn:
        return Turn("2 + 2?")

    def reply(self, answer: str) -> None:
        return None

    def judge(self) -> Any:
        return self.result


class _OwnSuite(Suite):
    tasks = (Task("a", "2 + 2?"),)
    judge_fingerprint = "1"
    result: object = None

    def episode(self, task: Task, seed: int) -> Episode:
        return _OwnEpisode(self.result)


def test_the_judge_of_an_own_suite_returns_a_verdict_too() -> None:
    suite = _OwnSuite()
    with pytest.raises(RunStopped, match="could not be judged: the judge returned None"):
        api.run(lambda _prompt: "4", suite, n=4, progress=False)
    suite = _OwnSuite()
    suite.result = True
    assert api.run(lambda _prompt: "4", suite, n=4, progress=False).outcomes.passes == 4


class _Folder(_OwnSuite):
    """The state of a folder is judged; the agent need not say anything."""

    result = Judgement.failed(FailureCategory.WRONG_STATE, "a.txt is absent")


def test_where_a_state_is_judged_an_empty_answer_is_none_of_the_judge() -> None:
    assert api.run(lambda _prompt: "", _Folder(), n=4, progress=False).outcomes.scored == 4


class _SaysText(_OwnEpisode):
    def open(self) -> Any:
        return "hello" if self.result == "open" else Turn("2 + 2?")

    def reply(self, answer: str) -> Any:
        return "more"


@pytest.mark.parametrize("hook", ["open", "reply"])
def test_an_episode_that_says_no_turn_stops_the_run_in_one_line(hook: str) -> None:
    suite = _OwnSuite()
    suite.episode = lambda *_: _SaysText(hook)  # type: ignore[method-assign]
    with pytest.raises(
        RunStopped, match=rf"_SaysText\.{hook}\(\) returned a str, not a Turn"
    ) as caught:
        api.run(lambda _prompt: "4", suite, n=4, progress=False)
    assert "Write return Turn('" in str(caught.value.hint)


def test_a_judgement_with_a_number_for_text_is_no_verdict() -> None:
    with pytest.raises(PasshatError, match=r"whose detail is 5 \(int\), not text"):
        Judgement.failed(FailureCategory.WRONG_ANSWER, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tasks", "message"),
    [((), "suite _OwnSuite has no tasks"), (["a"], "task 1 of suite _OwnS.*'a'")],
)
def test_a_suite_without_tasks_is_refused(tasks: Any, message: str, tmp_path: Path) -> None:
    suite = _OwnSuite()
    suite.tasks = tasks
    with pytest.raises(InvalidValue, match=message):
        api.run(lambda _prompt: "4", suite, n=4, store=tmp_path / "s.db", progress=False)
    assert not (tmp_path / "s.db").exists()


def test_a_command_with_half_a_quotation_is_refused() -> None:
    with pytest.raises(InvalidValue, match="cannot be split into words: No closing quotation"):
        api.run("command:'unclosed", TASKS, n=1, progress=False)


@pytest.mark.parametrize(
    ("judge", "line"),
    [(lambda: True, "(task, answer)"), (lambda _a, _b, _c: True, "(task, answer)")],
)
def test_a_judge_with_other_parameters_is_refused(judge: Any, line: str) -> None:
    with pytest.raises(InvalidValue, match="cannot be called with task and answer") as caught:
        api.run(lambda _prompt: "4", TASKS, n=1, judge=judge, progress=False)
    assert line in str(caught.value.hint)


def test_a_grader_of_a_file_is_held_to_the_same(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_graders_33.py").write_text(
        "async def later(answer, expected): return False\n"
        "def pair(answer, expected): return (False, 'why')\n"
    )
    for word, message in (("later", "is async"), ("pair", "the judge returned")):
        lines = [{**task, "grader": f"python:own_graders_33:{word}"} for task in TASKS]
        (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
        with pytest.raises(PasshatError, match=message):
            api.run(lambda _prompt: "4", "jsonl:t.jsonl", n=2, progress=False)


def three(prompt: str, attempt: Any, key: str) -> str:
    assert attempt.task.startswith("t")
    return "4" if key == "a" else "5"


def positional(prompt: str, attempt: Any, /) -> str:
    return "4" if attempt.task.startswith("t") else "5"


class Positional:
    def __call__(self, prompt: str, attempt: Any, /) -> str:
        return positional(prompt, attempt)


def last_positional(prompt: str, history: object, attempt: Any, /) -> str:
    return "4"


@pytest.mark.parametrize(
    "agent",
    [
        functools.partial(three, key="a"),
        functools.partial(functools.partial(three), key="a"),
        functools.partial(positional),
        positional,
        Positional,
        Positional(),
        functools.lru_cache(positional),
    ],
)
def test_the_attempt_is_handed_over_as_the_signature_takes_it(agent: Any) -> None:
    run = api.run(agent, TASKS, n=1, progress=False)
    assert run.outcomes.passes == 4


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (functools.partial(three), "missing a required argument: 'key'"),
        (functools.partial(generator), "generator is a generator"),
        (last_positional, "missing a required"),
    ],
)
def test_a_callable_that_does_not_bind_is_refused(agent: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message) as caught:
        api.run(agent, TASKS, n=1, progress=False)
    assert "Write def " in str(caught.value.hint)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            "import os; os.environ['PASSHAT_TEST_NO_SUCH_KEY']",
            r"3 of 3 attempts ended without an answer \(exit 1\): KeyError: 'PASSHAT_TEST",
        ),
        ("import os; os.kill(os.getpid(), 9)", r"ended without an answer \(signal 9\)"),
        ("print('hello')", r"3 of 3 attempts gave no usable answer: expected .*not 'hello'"),
    ],
)
def test_a_program_that_does_not_answer_is_told_with_its_cause(program: str, message: str) -> None:
    command = shlex.join([sys.executable, "-S", "-c", program])
    with pytest.raises(RunStopped, match=message):
        api.run(f"command:{command}", TASKS, n=2, jobs=3, progress=False)


def _without_place(agent: Callable[[str], str]) -> Callable[[str], str]:
    def call(prompt: str) -> str:
        try:
            return agent(prompt)
        except RuntimeError as error:
            raise api_fault(str(error)) from None

    return call


def api_fault(text: str) -> Exception:
    from passhat.agents import AgentFault
    from passhat.stats.outcomes import FailureCategory

    return AgentFault(FailureCategory.EXCEPTION, f"RuntimeError: {text}")


def test_keep_going_counts_them_and_the_report_still_says_no_zero_percent() -> None:
    run = api.run(_scripted("boom"), TASKS, n=2, jobs=1, keep_going=True, progress=False)
    assert (run.outcomes.scored, run.outcomes.passes) == (8, 0)
    lead = api.report(run).runs[0].headline
    assert lead.startswith("No attempt gave an answer: 8 exceptions (RuntimeError: boom (test_")
    assert "0%" not in lead


def test_a_run_that_is_resumed_without_its_key_is_stopped_and_keeps_what_it_has(
    tmp_path: Path,
) -> None:
    left = ["4"] * 4

    def agent(_prompt: str) -> str:
        if left:
            return left.pop()
        raise RuntimeError("later")

    store = tmp_path / "s.db"
    api.run(agent, TASKS, n=1, store=store, jobs=1, progress=False)
    with pytest.raises(RunStopped, match="3 of 3 attempts raised RuntimeError: later"):
        api.run(agent, TASKS, n=3, store=store, jobs=1, progress=False)
    left += ["4"]  # an answer of this invocation shows that the set-up works
    run = api.run(agent, TASKS, n=3, store=store, jobs=1, progress=False)
    assert (run.outcomes.scored, run.outcomes.passes) == (12, 5)


def test_a_resume_that_is_stopped_leaves_the_stored_plan(
    passhat: Callable[..., Any], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)

    def agent(_prompt: str) -> str:
        raise RuntimeError("always")

    options: dict[str, Any] = {"store": "s.db", "jobs": 1, "progress": False}
    api.run(agent, TASKS, n=2, keep_going=True, **options)
    before = passhat("gate", "s.db", "pass^1 >= 0.5").out
    with pytest.raises(RunStopped):
        api.run(agent, TASKS, n=3, **options)
    with open_store("s.db") as store:
        (stored,) = store.runs()
    assert (stored.planned, stored.total, stored.status) == (2, 8, "complete")
    assert passhat("gate", "s.db", "pass^1 >= 0.5").out == before
    assert "absent" not in before
    run = api.run(agent, TASKS, n=3, keep_going=True, **options)
    assert run.outcomes.scored == 12


def test_the_command_that_resumes_without_its_key_ends_with_2(
    passhat: Callable[..., Any], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_agent_33.py").write_text(
        "import os\n"
        "def answer(prompt):\n"
        "    if os.path.exists('nokey'): raise KeyError('KEY')\n"
        "    return '4'\n"
    )
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, TASKS)))
    line = ("run", "-s", "jsonl:t.jsonl", "-a", "python:own_agent_33:answer", "--store", "s.db")
    assert passhat(*line, "-n", "1").code == ExitCode.OK
    (tmp_path / "nokey").touch()
    resumed = passhat(*line, "-n", "3")
    assert resumed.code == ExitCode.USAGE
    assert "passhat: 3 of 3 attempts raised KeyError: 'KEY' (own_agent_33.py:3)" in resumed.err
    assert "%" not in resumed.out
    with open_store("s.db") as store:
        assert [run.attempts for run in store.runs()] == [4]


def test_one_task_has_one_interval() -> None:
    run = api.run(_scripted("4", "4", "5", "4"), TASKS[:1], n=4, jobs=1, progress=False)
    report = build_report([run])
    lead = report.runs[0].headline
    estimate = run.estimates[0]
    assert isinstance(estimate, Estimate)
    assert "3 of 4 attempts at the only task pass" in lead
    screen = render_terminal(report_document(report), Console(width=100), Level.SHORT)
    interval = f"({percent_interval(estimate.low, estimate.high)})"
    assert interval in lead
    assert interval in screen
    assert "for fresh attempts at this task" in screen


QUESTIONS = [
    {"id": "sum", "prompt": "2 + 2?", "answer": "4"},
    {"id": "product", "prompt": "2 * 3?", "answer": "6"},
    {"id": "rest", "prompt": "7 % 4?", "answer": "3"},
]


def _reply(text: str, tasks: Any = QUESTIONS, **options: Any) -> Any:
    return api.run(lambda _prompt: text, tasks, n=2, progress=False, **options)


@pytest.mark.parametrize("text", ["Error: 401 Unauthorized: invalid api key", "None"])
def test_the_same_text_at_every_task_is_the_first_line_of_the_causes(
    text: str, passhat: Callable[..., Any], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    warning = f"Every attempt at every task gave the same text, {text!r}"
    for store in ("a.db", "b.db"):
        run = _reply(text, store=store)
    document = report_document(build_report([run]))
    lines = render_terminal(document, Console(width=300), Level.SHORT).splitlines()
    places = [place for place, line in enumerate(lines) if line.startswith(warning)]
    assert lines[places[0] + 1].startswith("6 wrong answers")
    assert json.loads(api.report(run).json())["runs"][0]["sections"]["failures"]["same_answer"]
    monkeypatch.setenv("COLUMNS", "300")
    for words in (
        ("report", "a.db"),
        ("report", "a.db", "b.db"),
        ("gate", "a.db", "pass^1 >= 0.5"),
        ("gate", "a.db", "--against", "b.db", "--allow"),
        ("compare", "a.db", "b.db", "--allow"),
        ("why", "a.db"),
        ("report", "a.db", "-o", "md"),
        ("report", "a.db", "--full"),
    ):
        assert warning in passhat(*words).out, words


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("4", "463"),  # one of them is right
        ("yes", ["no", "maybe", "perhaps"]),
        ("A", "BCD"),
        ("no idea", ["one", "one", "one"]),  # every question has the same answer
        ("no idea", ["one", "two"]),
        ("no idea", ["one"]),
    ],
)
def test_the_same_text_may_be_an_answer(text: str, answers: Any) -> None:
    tasks = [
        {"id": f"t{place}", "prompt": f"{place}?", "answer": answer}
        for place, answer in enumerate(answers)
    ]
    assert _reply(text, tasks).same_answer == ""


ANY_RUN: Callable[..., object] = api.run
"""For calls that a type checker would refuse."""


async def _unfinished(_prompt: str) -> str:
    return "4"


async def _forgets_to_wait(prompt: str) -> Any:
    return _unfinished(prompt)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ANY_RUN(_unfinished("x"), TASKS), "Give the function itself and not its result"),
        (lambda: ANY_RUN(TASKS, no_key), "Name a function that takes the prompt and returns text"),
        (
            lambda: ANY_RUN(no_key, TASKS, judge="exact"),
            "a judge is a function of task and answer, not 'exact'",
        ),
        (
            lambda: api.run(_forgets_to_wait, TASKS, progress=False),
            "answered the coroutine _unfinished, which was not awaited",
        ),
    ],
)
def test_an_object_that_cannot_be_called_is_refused_with_the_line_to_write(
    call: Callable[[], object], words: str
) -> None:
    with pytest.raises(PasshatError) as caught:
        call()
    assert words in str(caught.value)


def test_what_an_agent_prints_without_an_end_of_line_does_not_hide_the_cause(
    tmp_path: Path,
) -> None:
    (tmp_path / "prints.py").write_text(
        "def agent(prompt):\n    print('say', end='')\n    input(': ')\n    return '4'\n"
    )
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, TASKS)))
    ended = subprocess.run(
        [sys.executable, "-m", "passhat", "run", "-a", "python:prints:agent", "-s",
         "jsonl:tasks.jsonl", "-n", "1", "--jobs", "1"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "\npasshat: 3 of 3 attempts raised EOFError" in ended.stdout


def test_a_list_in_place_of_lines_is_refused_with_the_command_that_splits_it(
    tmp_path: Path,
) -> None:
    place = tmp_path / "tasks.json"
    place.write_text(json.dumps(TASKS))
    with pytest.raises(PasshatError, match="Write a line for each task, not a list: jq"):
        api.run(no_key, f"jsonl:{place}")
