"""Attempts at tau2-bench or tau-bench, in the user's own checkout, by the user's own interpreter.

That interpreter starts this file as a script: it imports the standard library and tau2, nothing of
passhat. Importing tau2 takes seconds, so it is done once; every connection to the socket is served
by a fork of its own, which no earlier attempt has touched. On a connection goes one JSON object
per line.

    we send     {"domain", "task_id", "seed", "user", "evaluation", "max_steps"}
    it sends    {"turn": {"kind", "text"}}      a turn of the agent; the first has more fields
    we send     {"say": text} or {"call": {"name", "arguments"}}
    it sends    {"over": reason}                the conversation has ended, the judge is at work
    it sends    {"end": {"ended", "reward", "checks", "fault", "detail"}}

``{"describe": domain}`` instead of an attempt is answered with the tasks of the domain.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import importlib.util
import itertools
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

PATIENCE = 5
"""How often the scripted user says yes before leaving."""
MAX_ERRORS = 10
MOST_ROWS = 20
STOP = "###STOP###"


class Trouble(Exception):
    """A problem with the checkout; ``kind`` is for the program, the text for a person."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class UserBroke(Exception):
    """The user simulator raised: not the agent's fault."""


class AgentBroke(Exception):
    """The agent did something that tau2 does not allow."""


class Channel:
    """JSON objects, one per line."""

    def __init__(self, connection: socket.socket) -> None:
        self._lines = connection.makefile("rw", encoding="utf-8", newline="\n")
        self.pid = os.getpid()

    def send(self, data: object) -> None:
        self._lines.write(json.dumps(data, ensure_ascii=False, default=str) + "\n")
        self._lines.flush()

    def receive(self) -> dict[str, Any]:
        line = self._lines.readline()
        if not line:
            os._exit(0)  # the client has closed the socket
        message: dict[str, Any] = json.loads(line)
        return message


def load_tau2(checkout: str) -> Any:
    """The registry of the checkout; anything else that is called tau2 is refused."""
    is_original = (Path(checkout) / "tau_bench").is_dir()
    for folder in (Path(checkout) / "src", Path(checkout)):
        if (folder / "tau2").is_dir() or is_original:
            sys.path.insert(0, str(checkout if is_original else folder))
            break
    spec = None if is_original else importlib.util.find_spec("tau2")
    if spec is None and not is_original:
        raise Trouble("absent", f"{sys.executable} finds no package tau2")
    if spec is not None and importlib.util.find_spec("tau2.registry") is None:
        raise Trouble("other", f"the tau2 at {spec.origin} has no module tau2.registry")
    try:
        return TauBench() if is_original else importlib.import_module("tau2.registry").registry
    except ModuleNotFoundError as error:
        raise Trouble("incomplete", f"{sys.executable} has no module {error.name!r}") from None
    except Exception as error:
        raise Trouble("broken", f"{type(error).__name__}: {error}") from None


class OriginalScript:
    """The user that follows a script, in tau-bench's form: its words are the instruction."""

    def reset(self, instruction: str) -> str:
        self.patience = PATIENCE
        return instruction

    def step(self, content: str) -> str:
        if "?" in content and self.patience:
            self.patience -= 1
            return "Yes, please."
        return f"Thank you, that is all. {STOP}"

    def get_total_cost(self) -> float:
        return 0.0


class TauBench:
    """The original tau-bench: one environment leads the user, the tools and the judge."""

    def __init__(self) -> None:
        self._envs = importlib.import_module("tau_bench.envs")
        self._users = importlib.import_module("tau_bench.envs.user")
        self._action = importlib.import_module("tau_bench.types").Action

    def open(self, domain: str) -> Any:
        name, _, split = domain.partition("-")
        try:  # "human": a user that asks no model while it is built, and is replaced
            return self._envs.get_env(name, "human", "", split or "test", task_index=0)
        except (ValueError, ImportError) as error:
            raise Trouble("domain", f"there is no domain {domain!r} ({error})") from None

    def describe(self, domain: str) -> dict[str, object]:
        world = self.open(domain)
        plain = [task.model_dump(mode="json") for task in world.tasks]
        goals = [[task.pop("actions"), task.pop("outputs")] for task in plain]
        tasks = [
            {"id": str(place), "prompt": task["instruction"], "judge": "rules"}
            for place, task in enumerate(plain)
        ]
        content = digest([plain, world.wiki, world.tools_info, world.data])
        return {"tasks": tasks, "fingerprint": content, "judge_fingerprint": digest(goals)}

    def attempt(self, job: dict[str, Any], channel: Channel) -> dict[str, Any]:
        world = self.open(job["domain"])
        try:
            if job["user"] == "scripted":
                user: Any = OriginalScript()
            else:  # it asks its model at once
                provider, _, model = job["user"].rpartition("/")
                user = blame_user(self._users.load_user)("llm", model, provider or "openai")
            user.reset, user.step = blame_user(user.reset), blame_user(user.step)
            world.user = user
            text = world.reset(task_index=int(job["task_id"])).observation
            tools = [tool["function"] for tool in world.tools_info]
            turn = {"kind": "user", "policy": world.wiki, "tools": tools, "history": []}
            while True:
                channel.send({"turn": {**turn, "text": str(text)}})
                answer = channel.receive()
                call = answer.get("call") or {"name": "respond"}
                arguments = call.get("arguments", {"content": answer.get("say")})
                response = world.step(self._action(name=call["name"], kwargs=arguments))
                if response.done:
                    break
                text = response.observation
                turn = {"kind": "user" if call["name"] == "respond" else "tool"}
        except UserBroke as error:
            return {"ended": "user_error", "fault": "user", "detail": str(error)}
        except Exception as error:  # those of tools are answers: this is the judge's
            return {"ended": "", "fault": "judge", "detail": f"{type(error).__name__}: {error}"}
        info = response.info.reward_info.info
        outputs = getattr(info, "r_outputs", 1.0)
        checks = {"COMMUNICATE": outputs, "DB": max(response.reward, float(outputs < 1))}
        return {"ended": "over", "fault": "", "reward": response.reward, "checks": checks}


def blame_user(speak: Any) -> Any:
    """The same function; what it raises is the user's fault."""

    def guarded(*args: Any, **named: Any) -> Any:
        try:
            return speak(*args, **named)
        except Exception as error:
            raise UserBroke(f"{type(error).__name__}: {error}") from error

    return guarded


def tasks_of(registry: Any, domain: str) -> list[Any]:
    """The tasks of a domain, as tau2 loads them."""
    if domain not in registry.get_domains():
        domains = ", ".join(sorted(registry.get_domains()))
        raise Trouble("domain", f"there is no domain {domain!r}; there are: {domains}")
    try:
        return list(registry.get_tasks_loader(domain)())
    except Exception as error:
        raise Trouble("data", f"{type(error).__name__}: {error}") from None


def describe(registry: Any, domain: str) -> dict[str, object]:
    """Tasks, tools and policy of a domain, read before any attempt."""
    tasks = tasks_of(registry, domain)
    world = registry.get_env_constructor(domain)()
    plain = [task.model_dump(mode="json") for task in tasks]
    criteria = [task.pop("evaluation_criteria", None) for task in plain]
    tools = [tool.openai_schema for tool in world.get_tools()]
    return {
        "tasks": [
            {"id": str(task.id), "prompt": wish_of(task), "judge": judge_of(task)} for task in tasks
        ],
        "fingerprint": digest([plain, world.get_policy(), tools]),
        "judge_fingerprint": digest(criteria),
    }


def digest(data: object) -> str:
    text = json.dumps(data, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def judge_of(task: Any) -> str:
    """The kind of judge: rules, or a model for assertions in natural language."""
    criteria = task.evaluation_criteria
    basis = [
        str(getattr(kind, "value", kind)) for kind in (criteria.reward_basis if criteria else ())
    ]
    asks = "NL_ASSERTION" in basis and bool(criteria.nl_assertions)
    return "model" if asks else "rules"


def wish_of(task: Any) -> str:
    """First message of the scripted user: the text of the scenario."""
    instructions = task.user_scenario.instructions
    if isinstance(instructions, str):
        return instructions
    parts = (instructions.reason_for_call, instructions.known_info, instructions.task_instructions)
    return "\n".join(str(part) for part in parts if part)


def bridge_class() -> type:
    """The agent that asks us."""
    base = importlib.import_module("tau2.agent.base_agent")
    messages = importlib.import_module("tau2.data_model.message")

    class Bridge(base.HalfDuplexAgent):  # type: ignore[misc, name-defined]
        """Passes every turn to the agent under test."""

        def __init__(self, tools: Any, domain_policy: str, channel: Channel) -> None:
            super().__init__(tools, domain_policy)
            self._channel = channel
            self._calls = 0

        def get_init_state(self, message_history: Any = None) -> list[Any]:
            return list(message_history or ())

        def generate_next_message(self, message: Any, state: list[Any]) -> tuple[Any, list[Any]]:
            turn = heard(message)
            if self._calls == 0:
                turn["policy"] = self.domain_policy
                turn["tools"] = [tool.openai_schema["function"] for tool in self.tools]
                turn["history"] = [line for message in state if (line := history_line(message))]
            self._channel.send({"turn": turn})
            answer = self._channel.receive()
            self._calls += 1
            return self._message(answer), state

        def _message(self, answer: dict[str, Any]) -> Any:
            if "call" in answer:
                tool_call = messages.ToolCall(
                    id=f"call_{self._calls}",
                    name=answer["call"]["name"],
                    arguments=answer["call"]["arguments"],
                    requestor="assistant",
                )
                return messages.AssistantMessage(role="assistant", tool_calls=[tool_call])
            if not answer["say"].strip():
                raise AgentBroke("the agent said nothing to the user")
            return messages.AssistantMessage(role="assistant", content=answer["say"])

    return Bridge


def script_class() -> type:
    """The user that follows a script."""
    users = importlib.import_module("tau2.user.user_simulator_base")
    messages = importlib.import_module("tau2.data_model.message")

    class Scripted(users.HalfDuplexUser):  # type: ignore[misc, name-defined]
        """States the scenario, says yes to questions, does its own part, leaves."""

        def __init__(self, task: Any) -> None:
            super().__init__(instructions=wish_of(task))
            actions = task.evaluation_criteria.actions if task.evaluation_criteria else None
            self._own = [action for action in actions or () if action.requestor == "user"]
            self._patience = PATIENCE
            self._begun = False

        def get_init_state(self, message_history: Any = None) -> list[Any]:
            return list(message_history or ())

        def generate_next_message(self, message: Any, state: list[Any]) -> tuple[Any, list[Any]]:
            return self._answer(str(message.content or "")), [*state, message]

        def _answer(self, text: str) -> Any:
            if not self._begun:
                self._begun = True
                return self._user_message(self.instructions)
            if "?" in text and self._patience:
                self._patience -= 1
                return self._user_message("Yes, please.")
            if self._own:
                action = self._own.pop(0)
                call = messages.ToolCall(
                    id=f"user_{len(self._own)}",
                    name=action.name,
                    arguments=action.arguments,
                    requestor="user",
                )
                return messages.UserMessage(role="user", tool_calls=[call])
            return self._user_message(f"Thank you, that is all. {STOP}")

        def _user_message(self, text: str) -> Any:
            return messages.UserMessage(role="user", content=text)

    return Scripted


def heard(message: Any) -> dict[str, Any]:
    """A message to the agent as plain data."""
    if hasattr(message, "tool_messages"):
        return {"kind": "tool", "text": "\n".join(str(m.content) for m in message.tool_messages)}
    if message.role == "tool":
        return {"kind": "error" if message.error else "tool", "text": str(message.content)}
    return {"kind": "user", "text": str(message.content)}


def history_line(message: Any) -> str:
    """A line of the history before the agent's first turn."""
    if message.role == "tool":
        return f"Tool result: {message.content}"
    calls = getattr(message, "tool_calls", None) or ()
    lines = [f"You called {call.name} with {json.dumps(call.arguments)}" for call in calls]
    who = "You" if message.role == "assistant" else "User"
    return "\n".join([*lines, *([f"{who}: {message.content}"] if message.content else [])])


def user_for(job: dict[str, Any], task: Any, world: Any) -> Any:
    """The user: a script, or tau2's own simulator with a model; its errors raise UserBroke."""
    if job["user"] == "scripted":
        user = script_class()(task)
    else:
        simulator = importlib.import_module("tau2.user.user_simulator").UserSimulator
        try:
            tools = world.get_user_tools(include=getattr(task, "user_tools", None)) or None
        except ValueError:
            tools = None
        user = simulator(
            llm=job["user"],
            instructions=str(task.user_scenario),
            tools=tools,
            llm_args={"temperature": 0.0},
        )
    user.generate_next_message = blame_user(user.generate_next_message)
    return user


def attempt(registry: Any, job: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Play a task, then judge it; reports the party at fault when something broke."""
    orchestrators = importlib.import_module("tau2.orchestrator.orchestrator")
    evaluators = importlib.import_module("tau2.evaluator.evaluator")
    task = next(
        task for task in tasks_of(registry, job["domain"]) if str(task.id) == job["task_id"]
    )
    world = registry.get_env_constructor(job["domain"])()
    agent = bridge_class()(world.get_tools(), world.get_policy(), channel)
    try:
        simulation = orchestrators.Orchestrator(
            domain=job["domain"],
            agent=agent,
            user=user_for(job, task, world),
            environment=world,
            task=task,
            max_steps=job["max_steps"],
            max_errors=MAX_ERRORS,
            seed=job["seed"],
        ).run()
    except UserBroke as error:
        return {"ended": "user_error", "fault": "user", "detail": str(error)}
    except AgentBroke as error:
        return {"ended": "agent_error", "fault": "agent", "detail": str(error)}
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        return {"ended": "unexpected_error", "fault": "world", "detail": detail}
    reason = getattr(simulation.termination_reason, "value", str(simulation.termination_reason))
    channel.send({"over": reason})
    try:
        evaluation = evaluators.evaluate_simulation(
            simulation=simulation,
            task=task,
            evaluation_type=evaluators.EvaluationType(job["evaluation"]),
            solo_mode=False,
            domain=job["domain"],
        )
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        if is_check_error(error):
            # The world is not as the task demands: the check raises for that.
            checks = {"ENV_ASSERTION": 0.0}
            keep(simulation, {"reward": 0.0, "info": {"note": detail}}, task, world, job)
            return {"ended": reason, "fault": "", "reward": 0.0, "checks": checks, "detail": detail}
        return {"ended": reason, "fault": "judge", "detail": detail}
    keep(simulation, evaluation, task, world, job)
    checks = {
        str(getattr(name, "value", name)): value
        for name, value in (evaluation.reward_breakdown or {}).items()
    }
    end = {"ended": reason, "fault": "", "reward": evaluation.reward, "checks": checks}
    if checks.get("DB", 1.0) < 1.0:
        with suppress(Exception):  # the verdict stands without it
            end["rows"] = rows_that_differ(registry, world, task, job["domain"])
    return end


def rows_that_differ(registry: Any, world: Any, task: Any, domain: str) -> list[list[Any]]:
    """Places in the databases that differ from the task's gold actions: path, value, gold value."""
    gold = registry.get_env_constructor(domain)()
    state = task.initial_state
    if state is not None and hasattr(gold, "set_state"):
        gold.set_state(
            initialization_data=state.initialization_data,
            initialization_actions=state.initialization_actions,
            message_history=state.message_history or [],
        )
    for action in task.evaluation_criteria.actions or ():
        with suppress(Exception):  # as tau2 does: a gold action may be refused
            gold.make_tool_call(action.name, action.requestor, **action.arguments)
    places = differences(databases_of(world), databases_of(gold))
    return [list(place) for place in itertools.islice(places, MOST_ROWS)]


def databases_of(world: Any) -> dict[str, Any]:
    """The database of the agent, and the user's under ``user``."""
    records = world.tools.db.model_dump(mode="json")
    user = getattr(getattr(world, "user_tools", None), "db", None)
    return records if user is None else {**records, "user": user.model_dump(mode="json")}


def differences(value: Any, wanted: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every place where two databases differ."""
    if isinstance(value, dict) and isinstance(wanted, dict):
        for key in sorted({*value, *wanted}, key=str):
            path = f"{where}.{key}" if where else str(key)
            yield from differences(value.get(key), wanted.get(key), path)
    elif isinstance(value, list) and isinstance(wanted, list) and len(value) == len(wanted):
        for place, (one, other) in enumerate(zip(value, wanted, strict=True)):
            yield from differences(one, other, f"{where}[{place}]")
    elif value != wanted:
        yield where, value, wanted


def keep(played: Any, judged: Any, task: Any, world: Any, job: dict[str, Any]) -> None:
    """Add a simulation to the folder of ``PASSHAT_TAU2_SAVE``, in tau2's own form.

    ``tau2 evaluate-trajs``, ``tau2 view`` and passhat read such a folder: ``results.json`` with the
    index, and one file per simulation. Attempts end in any order, so the index is under a lock.
    """
    path_text = os.environ.get("PASSHAT_TAU2_SAVE")
    if not path_text:
        return
    folder = Path(path_text)
    (folder / "simulations").mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = folder / "results.json"
        results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        if results is None:
            results = results_of(world, job)
        domain = results["info"]["environment_info"]["domain_name"]
        if domain != job["domain"]:
            raise Trouble("data", f"{path} is of {domain}; name another PASSHAT_TAU2_SAVE")
        index = results["simulation_index"]
        trial = sum(entry["task_id"] == str(task.id) for entry in index)
        reward = judged if isinstance(judged, dict) else judged.model_dump(mode="json")
        simulation = {**played.model_dump(mode="json"), "trial": trial, "reward_info": reward}
        columns = ("id", "task_id", "trial", "termination_reason", "agent_cost", "duration")
        index.append({name: simulation[name] for name in columns} | {"reward": reward["reward"]})
        if str(task.id) not in {entry["id"] for entry in results["tasks"]}:
            results["tasks"].append(task.model_dump(mode="json"))
        results["info"]["num_trials"] = max(results["info"]["num_trials"], trial + 1)
        write(folder / "simulations" / f"{simulation['id']}.json", simulation)
        write(path, results)


def results_of(world: Any, job: dict[str, Any]) -> dict[str, Any]:
    """The head of tau2's results, before any simulation."""
    user = {"implementation": "scripted"}
    if job["user"] != "scripted":
        user = {"implementation": "user_simulator", "llm": job["user"]}
    return {
        "timestamp": datetime.now().isoformat(),
        "info": {
            "git_commit": "unknown",
            "num_trials": 1,
            "max_steps": job["max_steps"],
            "max_errors": MAX_ERRORS,
            "user_info": user,
            "agent_info": {"implementation": "passhat"},
            "environment_info": {"domain_name": job["domain"], "policy": world.get_policy()},
        },
        "tasks": [],
        "simulation_index": [],
    }


def write(path: Path, data: object) -> None:
    """Write a file as a whole, readable by this user alone."""
    part = path.with_suffix(f".{os.getpid()}.part")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
        json.dump(data, stream, ensure_ascii=False)
    part.replace(path)


def is_check_error(error: BaseException) -> bool:
    """Whether a check of the task raised, rather than the judge: an agent that did nothing fails.

    tau2's checks assert things about the world (``assert_...`` functions of an environment, run by
    ``run_env_assertion``). Where the agent left nothing to look at, they raise instead of
    returning false.
    """
    if isinstance(error, AssertionError):
        return True
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_name
        if name == "run_env_assertion" or name.startswith("assert_"):
            return True
        trace = trace.tb_next
    return False


def serve(registry: Any, connection: socket.socket) -> None:
    """Serve a connection, in a process of its own."""
    channel = Channel(connection)
    channel.send({"pid": channel.pid})
    job = channel.receive()
    try:
        is_original = isinstance(registry, TauBench)
        show, play = (TauBench.describe, TauBench.attempt) if is_original else (describe, attempt)
        if "describe" in job:
            channel.send({"described": show(registry, job["describe"])})
        else:
            channel.send({"end": play(registry, job, channel)})
    except Trouble as trouble:
        channel.send({"trouble": trouble.kind, "detail": str(trouble)})
    except (BrokenPipeError, ConnectionResetError):
        pass  # the client has gone, and with it the need for an answer
    except Exception as error:
        kind = "data" if isinstance(error, OSError) else "unbuilt"
        kind = "extra" if isinstance(error, ImportError) else kind
        channel.send({"trouble": kind, "detail": f"{type(error).__name__}: {error}"})


def main() -> None:
    """``worker.py CHECKOUT SOCKET``: load tau2, report readiness, serve until stdin closes."""
    checkout, path = sys.argv[1:3]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of tau2 must not be taken for an answer
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it asks the network for prices
    os.environ.setdefault("LOGURU_LEVEL", "ERROR")
    try:
        registry = load_tau2(checkout)
    except Trouble as trouble:
        answers.write(json.dumps({"trouble": trouble.kind, "detail": str(trouble)}) + "\n")
        answers.flush()
        return
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(128)
    answers.write(json.dumps({"ready": True}) + "\n")
    answers.flush()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that finished forks leave nothing behind
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            try:
                serve(registry, connection)
            finally:
                os._exit(0)
        connection.close()


def _end_with_parent() -> None:
    """Standard input closes when passhat ends, however it ends."""
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
