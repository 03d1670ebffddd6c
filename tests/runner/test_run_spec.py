"""What a description of a run becomes: its limits, its protocol, its agent and its judge."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from passhat.agents.base import Agent, AttemptInfo, Session
from passhat.agents.chat import ChatAgent
from passhat.errors import InvalidValue
from passhat.judging.bench import JudgingChoice
from passhat.protocol import AGENT_CODE, Protocol, Question
from passhat.runner import run_spec
from passhat.runner.redaction import Redactor
from passhat.runner.run import RunPlan
from passhat.runner.run_spec import Loaded, RunSpec, _digest_of
from passhat.runner.task_choice import Shard
from passhat.runner.time_limits import AttemptLimits
from passhat.runner.workers import MOST_WORKERS
from passhat.stats.plan import Allocation
from passhat.store import PlannedAttempts, RunRecord
from passhat.suites.base import Suite, Task


class _Suite(Suite):
    """Two tasks, and what it was told."""

    name = "s"
    tasks = (Task("a", "?"), Task("b", "?"))
    fingerprint = "f"
    judge_fingerprint = "j"
    judge = "the judge"
    user_simulator = "the user"
    max_steps = 7
    step_seconds = 8.0
    attempt_seconds = 9.0

    def judge_with(self, choice: JudgingChoice) -> None:
        self.choice = choice


class _Yes(Agent):
    name = "m"

    async def session(self, _attempt: AttemptInfo) -> Session:
        raise NotImplementedError


def _spec(**options: Any) -> RunSpec:
    return RunSpec(**{"agent": _Yes(), "suite": _Suite(), **options})


# -- what is refused -------------------------------------------------------------------------------

ALLOCATION: Any = object.__new__(Allocation)
WHOLE = "{} must be a whole number of at least 1, not {!r}."
SHARD = "--stop-when looks at all tasks, and a shard sees only its own."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attempts": 1, "jobs": 1}, ""),
        *(
            ({name: value}, WHOLE.format(name, value))
            for name in ("attempts", "jobs")
            for value in (0, -1, True, 1.0, "4", None)
        ),
        ({"timeouts_are": "missing"}, ""),
        ({"timeouts_are": "failed"}, ""),
        ({"timeouts_are": ""}, "timeouts_are must be 'missing' or 'failed', not ''."),
        ({"tools": "text"}, ""),
        ({"tools": "mcp"}, ""),
        ({"tools": "MCP"}, "tools must be 'text' or 'mcp', not 'MCP'."),
        ({"shard": Shard(1, 2)}, ""),
        ({"stop_when": ("pass^1 >= 0.5",)}, ""),
        ({"shard": Shard(1, 2), "stop_when": ("pass^1 >= 0.5",)}, SHARD),
        ({"attempts": ALLOCATION}, ""),
        (
            {"attempts": ALLOCATION, "stop_when": ("pass^1 >= 0.5",)},
            "--stop-when needs the same number of attempts at every task, and the plan gives "
            "tasks different ones.",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], message: str) -> None:
    refusal = ""
    try:
        _spec(**options)
    except InvalidValue as error:
        refusal = error.message
    assert refusal == message


@pytest.mark.parametrize(
    ("suite", "agent", "is_portable"),
    [("s", "a", True), ("s", _Yes(), False), (_Suite(), "a", False), (_Suite(), _Yes(), False)],
)
def test_words_can_be_loaded_elsewhere(suite: Any, agent: Any, is_portable: bool) -> None:
    assert RunSpec(suite=suite, agent=agent).is_portable is is_portable


# -- limits and protocol ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (7, 8.0, 9.0)),
        ({"max_steps": 1}, (1, 8.0, 9.0)),
        ({"step_seconds": 0.5}, (7, 0.5, 9.0)),
        ({"attempt_seconds": 2.5}, (7, 8.0, 2.5)),
    ],
)
def test_limits_are_those_of_the_run_and_else_of_the_suite(
    options: dict[str, Any], expected: tuple[int, float, float]
) -> None:
    assert _spec(**options)._limits(_Suite()) == AttemptLimits(*expected)


def _protocol(agent: Agent | None = None, **options: Any) -> Protocol:
    return _spec(**options)._protocol(_Suite(), agent or _Yes(), AttemptLimits(1, 2.0, 3.0))


def test_the_protocol_says_what_the_run_is_made_with() -> None:
    question = Question("pass^4", level=0.9)
    assert _protocol() == Protocol(
        suite="s",
        suite_fingerprint="f",
        tests_fingerprint="j",
        decoding={},
        max_steps=1,
        step_seconds=2.0,
        attempt_seconds=3.0,
        user_simulator="the user",
        judge="the judge",
        question=Question(),
    )
    assert _protocol(question=question).question == question


@pytest.mark.parametrize(
    ("options", "decoding"),
    [
        ({}, {"temperature": 0.5, "top_k": 3}),
        ({"temperature": 0.0}, {"temperature": 0.0, "top_k": 3}),
        ({"top_p": 0.9}, {"temperature": 0.5, "top_k": 3, "top_p": 0.9}),
        ({"canary": False}, {"temperature": 0.5, "top_k": 3, "reference": False}),
        ({"canary": True}, {"temperature": 0.5, "top_k": 3, "reference": True}),
        (
            {"timeouts_are": "failed"},
            {"temperature": 0.5, "top_k": 3, "timeouts_are": "failed"},
        ),
    ],
)
def test_settings_of_the_run_are_before_those_of_the_agent(
    options: dict[str, Any], decoding: dict[str, Any]
) -> None:
    agent = _Yes()
    agent.decoding = MappingProxyType({"temperature": 0.5, "top_k": 3})
    assert dict(_protocol(agent, **options).decoding) == decoding


def test_the_code_of_an_agent_is_in_the_protocol(tmp_path: Path) -> None:
    file = tmp_path / "agent.py"
    file.write_bytes(b"one")
    agent = _Yes()
    assert AGENT_CODE not in _protocol(agent).decoding
    agent.source_files = (file,)
    before = _protocol(agent).decoding[AGENT_CODE]
    assert before == _digest_of([file])
    file.write_bytes(b"two")
    assert _protocol(agent).decoding[AGENT_CODE] != before


def test_a_digest_is_that_of_the_contents_in_their_order(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a", "b", "gone")]
    for file, content in zip(files, (b"1", b"2"), strict=False):
        file.write_bytes(content)
    parts = [hashlib.sha256(content).digest() for content in (b"1", b"2")]
    assert _digest_of(files) == hashlib.sha256(b"".join(parts)).hexdigest()[:16]
    assert _digest_of(files[1::-1]) == hashlib.sha256(b"".join(parts[::-1])).hexdigest()[:16]
    assert _digest_of([files[2]]) == hashlib.sha256().hexdigest()[:16]


@pytest.mark.parametrize(
    ("timeouts_are", "for_chat", "for_others"),
    [(None, True, False), ("missing", True, True), ("failed", False, False)],
)
def test_whose_fault_a_late_answer_is(
    timeouts_are: str | None, for_chat: bool, for_others: bool
) -> None:
    spec = _spec(timeouts_are=timeouts_are)
    hooks = dict.fromkeys(("body", "open_client", "send", "warm"))
    chat: Any = object.__new__(type("_Chat", (ChatAgent,), {**hooks}))
    assert spec.timeouts_are_missing(chat) is for_chat
    assert spec.timeouts_are_missing(_Yes()) is for_others


# -- how programs are judged -----------------------------------------------------------------------


@pytest.mark.parametrize("judging", [None, JudgingChoice(jobs=9)])
@pytest.mark.parametrize("judges", [None, 3])
def test_a_suite_of_programs_is_told_how_to_judge(
    judging: JudgingChoice | None, judges: int | None
) -> None:
    suite = _Suite()
    suite.judges_programs = True
    _spec(judging=judging, judges=judges)._choose_judge(suite)
    assert suite.choice == JudgingChoice(jobs=judges)


def test_another_suite_is_not_told() -> None:
    suite = _Suite()
    _spec(judges=3)._choose_judge(suite)
    assert not hasattr(suite, "choice")
    with pytest.raises(InvalidValue, match="s has no programs to judge"):
        _spec(judging=JudgingChoice())._choose_judge(suite)


# -- plans -----------------------------------------------------------------------------------------


def test_a_plan_has_the_options_of_the_run() -> None:
    told: list[str] = []
    options = {
        "attempts": 3,
        "jobs": 2,
        "seed": 5,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop_when": ("pass^1 >= 0.5",),
        "give_up_after": 4,
        "keep_going": True,
        "wait": True,
    }
    spec = _spec(**options, name="n", revision="abc", redact=Redactor({}))
    plan = spec.plan(Loaded(spec.suite, spec.agent, ()), tell=told.append)  # type: ignore[arg-type]
    assert {name: getattr(plan, name) for name in options} == options | {
        "attempts": PlannedAttempts(3)
    }
    assert (plan.record.name, plan.record.revision, plan.record.selection) == ("n", "abc", "")
    assert plan.limits == AttemptLimits(7, 8.0, 9.0)
    assert plan.redact is spec.redact
    assert plan.timeouts_are_missing is False
    plan.tell("here")
    assert told == ["here"]


@pytest.mark.parametrize("takes", [True, False])
@pytest.mark.parametrize("canary", [None, True, False])
def test_a_suite_takes_a_reference_unless_the_run_says_otherwise(
    canary: bool | None, takes: bool
) -> None:
    suite = _Suite()
    suite.takes_reference = takes
    plan = _spec(suite=suite, canary=canary).plan(Loaded(suite, _Yes(), ()))
    assert plan.canary is (takes if canary is None else canary)


def test_a_shard_is_a_part_of_the_tasks_of_one_run() -> None:
    whole, part = (
        _spec(shard=shard).plan(Loaded(_Suite(), _Yes(), ())) for shard in (None, Shard(2, 2))
    )
    assert [task.id for task in whole.tasks] == ["a", "b"]
    assert [task.id for task in part.tasks] == ["b"]
    assert part.record == whole.record


def test_a_plan_of_its_own_has_these_defaults() -> None:
    """They are what the pages state, and the seed is part of every attempt's own."""
    suite, agent = _Suite(), _Yes()
    record = RunRecord("m", Protocol(suite="s"), suite.tasks)
    plan = RunPlan(suite, agent, record, suite.tasks, PlannedAttempts(1))
    assert (plan.jobs, plan.seed, plan.give_up_after) == (8, 0, 8)
    assert (plan.keep_going, plan.wait, plan.canary, plan.timeouts_are_missing) == (False,) * 4
    spec = _spec()
    assert (spec.attempts, spec.jobs, spec.seed, spec.give_up_after) == (4, 8, 0, 8)
    switches = ("in_process", "isolate", "keep_going", "wait", "only_missing")
    assert [getattr(spec, name) for name in switches] == [False] * 5


# -- agents ----------------------------------------------------------------------------------------


def test_a_secret_in_the_name_of_an_agent_is_removed() -> None:
    key = "sk-proj-" + "aB3" * 16
    agent = _Yes()
    agent.name = f"command:x --key {key}"
    loaded = _spec(agent=agent, redact=Redactor({}))._agent(_Suite())
    assert loaded is agent
    assert loaded.name == "command:x --key [redacted]"


class _Function(Agent):
    """Stands for the function that a word names."""

    source_files = (Path("agent.py"),)


@pytest.mark.parametrize(
    ("options", "workspaces", "kind"),
    [
        ({"agent": "python:m:f"}, False, "worker"),
        ({"agent": "python:m:f", "jobs": MOST_WORKERS}, False, "worker"),
        ({"agent": "python:m:f", "jobs": MOST_WORKERS + 1}, False, "own"),
        ({"agent": "python:m:f", "in_process": True}, False, "own"),
        ({"agent": "python:m:f", "isolate": True}, False, "isolated"),
        ({"agent": "python:m:f", "isolate": True, "in_process": True}, False, "isolated"),
        ({"agent": "python:m:f"}, True, "isolated"),
        ({"agent": "python:m:f", "in_process": True}, True, "own"),
        ({"agent": "demo:f"}, True, "worker"),
        ({"agent": "demo:f", "isolate": True}, True, "isolated"),
        ({"agent": _Function()}, False, "own"),
        ({"agent": _Function()}, True, "own"),
        ({"agent": _Function(), "isolate": True}, False, "refused"),
    ],
)
def test_where_an_agent_is_called(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], workspaces: bool, kind: str
) -> None:
    def as_agent(given: object) -> object:
        return _Function() if isinstance(given, str) else given

    def isolate(word: str, memory: int | None) -> Any:
        return SimpleNamespace(kind="isolated", word=word, memory=memory)

    monkeypatch.setattr(run_spec, "as_agent", as_agent)
    monkeypatch.setattr(run_spec, "load_agent", as_agent)
    monkeypatch.setattr(run_spec, "FunctionAgent", _Function)
    monkeypatch.setattr(run_spec, "can_have_workers", lambda _: True)
    monkeypatch.setattr(run_spec, "WorkerAgent", lambda _: SimpleNamespace(kind="worker"))
    monkeypatch.setattr("passhat.agents.isolated.isolate", isolate)
    suite = _Suite()
    suite.has_workspaces = workspaces
    spec = _spec(**options, agent_memory=64)
    if kind == "refused":
        with pytest.raises(InvalidValue, match="isolate needs an agent that another process can"):
            spec._load_agent(suite)
        return
    agent: Any = spec._load_agent(suite)
    assert getattr(agent, "kind", "own") == kind
    if kind == "isolated":
        assert (agent.word, agent.memory) == (options["agent"], 64)
        assert agent.source_files == _Function.source_files


def test_an_agent_of_a_folder_that_is_no_function_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = _Yes()
    monkeypatch.setattr(run_spec, "load_agent", lambda _: agent)
    suite = _Suite()
    suite.has_workspaces = True
    assert _spec(agent="python:m:C")._load_agent(suite) is agent


@pytest.mark.parametrize(
    ("options", "is_refused"), [({}, False), ({"otlp": "x"}, True), ({"otlp_port": 1}, True)]
)
def test_a_suite_of_another_harness_has_no_spans(options: dict[str, Any], is_refused: bool) -> None:
    suite = _Suite()
    suite.harness = "inspect"
    spec, loaded = _spec(**options), Loaded(suite, _Yes(), ())
    if is_refused:
        with pytest.raises(InvalidValue, match="otlp does not go with s: its attempts are made"):
            spec.telemetry(loaded, "run")
    else:
        assert spec.telemetry(loaded, "run") is None
