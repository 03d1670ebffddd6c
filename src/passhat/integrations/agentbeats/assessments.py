"""Requests for an evaluation, in the forms that AgentBeats' backends and clients send.

* version 2: ``{"participants": {role: url}, "config": {...}}``
* version 1: ``{"type": "battle_start", "battle_id", "opponent_infos": [{"name", "agent_url"}]}``
* version 1 in words: ``<white_agent_url>`` around an address, ``<env_config>`` around JSON
"""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from passhat._display import counted
from passhat.agents.a2a import A2AAgent
from passhat.agents.a2a_wire import await_agent, whole_numbers
from passhat.agents.base import AgentFault
from passhat.errors import InvalidValue, PasshatError, shorten
from passhat.integrations.agentbeats.strangers import AllowedHosts
from passhat.runner import AttemptLimits
from passhat.suites import Suite, Task, load_suite

if TYPE_CHECKING:
    from a2a.types import Artifact, TaskStatus
    from a2a.types import Task as RemoteTask

_LARGEST_STREAM = 64 * 1024 * 1024


@dataclass(slots=True)
class GreenReply:
    """Reply of a green agent: its last state, and the artifacts' texts and data."""

    state: str = ""
    said: str = ""
    texts: list[str] = field(default_factory=list)
    data: list[Any] = field(default_factory=list)

    @property
    def completed(self) -> bool:
        return self.state == "completed"

    def take_task(self, task: RemoteTask) -> None:
        self.take_status(task.status)
        for artifact in task.artifacts:
            self.take_artifact(artifact)

    def take_artifact(self, artifact: Artifact) -> None:
        from a2a.helpers import get_data_parts, get_text_parts

        self.texts += get_text_parts(artifact.parts)
        self.data += [whole_numbers(part) for part in get_data_parts(artifact.parts)]

    def take_status(self, status: TaskStatus) -> str:
        from a2a.helpers import get_message_text
        from a2a.types import TaskState

        self.state = TaskState.Name(status.state).removeprefix("TASK_STATE_").lower()
        self.said = get_message_text(status.message) if status.HasField("message") else ""
        return self.said


async def request_assessment(
    url: str, text: str, say: Callable[[str], object], *, token: str | None = None
) -> GreenReply:
    """Send the request and report every status update as it arrives."""
    from a2a.helpers import get_message_text, new_text_message
    from a2a.types import Role, SendMessageRequest

    agent = A2AAgent(url, largest_reply=_LARGEST_STREAM, token=token)
    reply = GreenReply()
    try:
        client = await agent.connect()
        message = new_text_message(text, role=Role.ROLE_USER)
        events = client.send_message(SendMessageRequest(message=message))
        while (event := await await_agent(anext(events, None))) is not None:
            kind = event.WhichOneof("payload")
            if kind == "message":
                reply.state, reply.said = "message", get_message_text(event.message)
            elif kind == "task":
                reply.take_task(event.task)
            elif kind == "artifact_update":
                reply.take_artifact(event.artifact_update.artifact)
            elif reply.take_status(event.status_update.status):
                say(reply.said)
    except AgentFault as fault:
        raise InvalidValue(
            f"the green agent at {url}: {fault.detail}.", hint="Start one with: passhat serve"
        ) from None
    finally:
        await agent.close()
    return reply


_URL = re.compile(r"<white_agent_url>(.*?)</white_agent_url>", re.DOTALL)
_CONFIG = re.compile(r"<env_config>(.*?)</env_config>", re.DOTALL)
_MODES = ("all", "manual", "random")
_MOST_PARTICIPANTS = 8
_WORDS = frozenset(
    {
        *("suite", "domain", "env", "k", "n", "mode", "task_id", "task_ids", "num_battles", "seed"),
        *("jobs", "temperature", "max_steps", "step_timeout", "timeout", "win_at"),
    }
)


_CHOICES = frozenset({"suite", "domain", "env", "mode", "task_id", "task_ids", "num_battles"})
"""Settings that choose tasks."""


class BadRequest(Exception):
    """A request that cannot be met, with every reason there is."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class NoRequest(BadRequest):
    """A text that is no request for an evaluation at all."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Limits on the requests of unknown callers."""

    hosts: AllowedHosts = field(default_factory=AllowedHosts)
    suites: Sequence[str] = ("orderdesk",)
    most_attempts: int = 10_000
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def with_hosts(
        cls,
        hosts: Sequence[str],
        suites: Sequence[str] = (),
        *,
        loopback: bool = True,
        most_attempts: int = 10_000,
        defaults: Mapping[str, Any] | None = None,
    ) -> Rules:
        allowed_hosts = AllowedHosts.of(hosts, loopback=loopback)
        return cls(allowed_hosts, ("orderdesk", *suites), most_attempts, defaults or {})

    def complete(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Add the defaults; a request that chooses tasks itself gets no choice of theirs."""
        left_out = _CHOICES if _CHOICES & set(config) else frozenset()
        defaults = {key: value for key, value in self.defaults.items() if key not in left_out}
        if defaults.get("mode") == "random":  # a green agent's file may keep both modes' keys
            defaults = {k: v for k, v in defaults.items() if k not in ("task_id", "domain")}
        return {**defaults, **config}

    def allow_suite(self, word: str) -> bool:
        """A suite may name a file or a module here, so only those that were allowed are read."""
        return any(
            word == suite or (suite and word.startswith((f"{suite}/", f"{suite}:")))
            for suite in self.suites
        )


@dataclass(frozen=True, slots=True)
class Battle:
    """A version 1 backend that waits for the result."""

    id: str
    backend_url: str
    reported_by: str = "green_agent"


@dataclass(frozen=True, slots=True)
class Assessment:
    """An evaluation to run: checked, not started."""

    participants: Mapping[str, str]
    suite: Suite
    tasks: Sequence[Task]
    k: int
    attempts: int
    limits: AttemptLimits = field(default_factory=AttemptLimits)
    jobs: int = 8
    seed: int = 0
    temperature: float | None = None
    win_at: float = 0.5
    battle: Battle | None = None
    notes: Sequence[str] = ()

    @property
    def sentence(self) -> str:
        """The plan in a line, which an evaluation says first."""
        tasks = counted(len(self.tasks), "task")
        whose = "" if len(self.participants) == 1 else f", {len(self.participants)} participants"
        return (
            f"{tasks} of {self.suite.name}, {counted(self.attempts, 'attempt')} each, "
            f"pass^{self.k} and pass@{self.k}, seed {self.seed}{whose}"
        )

    @property
    def total_attempts(self) -> int:
        """Attempts of all participants."""
        return len(self.participants) * len(self.tasks) * self.attempts


def is_greeting(text: str) -> bool:
    """Whether this is the announcement of a battle that a version 1 backend sends first."""
    data = _json_object(text)
    return data is not None and data.get("type") == "battle_info"


def read_request(text: str, rules: Rules) -> Assessment:
    """Read a request, or raise BadRequest with all of its problems."""
    participants, config, battle = _parts(text)
    config = rules.complete(config)
    problems = _Problems()
    if not participants:
        problems.add('there is no participant: "participants" should be {"role": "http://..."}')
    if len(participants) > _MOST_PARTICIPANTS:
        problems.add(f"at most {_MOST_PARTICIPANTS} participants, not {len(participants)}")
    for role, url in participants.items():
        problems.add(rules.hosts.refusal(url, f"participant {shorten(role, 60)}"))
    if battle is not None and battle.backend_url:
        problems.add(rules.hosts.refusal(battle.backend_url, "the backend"))
    options = _read_config(config, rules, len(participants), problems)
    if options is None or problems.found:
        raise BadRequest(*problems.found)
    unknown = sorted(set(config) - _WORDS)
    notes = (f"not understood and ignored: {', '.join(unknown)}",) if unknown else ()
    return Assessment(participants=participants, battle=battle, notes=notes, **options)


class _Problems:
    """Collects reasons, so that a caller sees all of them at once."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, problem: str | None) -> None:
        if problem:
            self.found.append(problem)

    def number(
        self, config: Mapping[str, Any], name: str, default: Any, low: float, high: float
    ) -> Any:
        """A number of the configuration; whole where its default is."""
        value = config.get(name)
        value = default if value is None else value
        kind: Callable[[Any], Any] = float if isinstance(default, float) or default is None else int
        if value is None:
            return None
        try:
            number = kind(value)
            if isinstance(value, bool) or number != float(value) or not low <= number <= high:
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            self.add(f"{name} should be a number from {low:g} to {high:g}, not {shorten(value)}")
            return default
        return number


def _parts(text: str) -> tuple[dict[str, str], Mapping[str, Any], Battle | None]:
    """Participants, configuration and backend of a request in any of its forms."""
    data = _json_object(text)
    if data is not None and data.get("type") == "battle_start":
        return _battle_start(data)
    if data is not None and "participants" in data:
        config = data.get("config") or {}
        participants = data["participants"]
        if not isinstance(participants, dict) or not isinstance(config, dict):
            raise BadRequest('"participants" and "config" should be objects')
        return {str(role): str(url) for role, url in participants.items()}, config, None
    address = _URL.search(text)
    if address:
        match = _CONFIG.search(text)
        return {"white_agent": address[1].strip()}, _config_of(match[1] if match else ""), None
    raise NoRequest(
        'expected {"participants": {"role": "url"}, "config": {...}}, a battle_start, or '
        f"<white_agent_url> and <env_config>, not {shorten(text, 80)}"
    )


def _battle_start(data: Mapping[str, Any]) -> tuple[dict[str, str], Mapping[str, Any], Battle]:
    infos = data.get("opponent_infos")
    if not isinstance(infos, list) or not all(isinstance(info, dict) for info in infos):
        raise BadRequest('"opponent_infos" should be a list of {"name", "agent_url"}')
    context = data.get("green_battle_context")
    context = context if isinstance(context, dict) else {}
    names_of_config = ("config", "env_config", "task_config")
    places = [*map(data.get, names_of_config), context.get("task_config")]
    config: Any = next((place for place in places if place), {})
    if isinstance(config, str):
        config = _config_of(config)
    battle_id = data.get("battle_id") or context.get("battle_id")
    if not isinstance(battle_id, str | int) or not isinstance(config, dict):
        raise BadRequest('a battle_start needs a "battle_id", and its "config" should be an object')
    backend = data.get("backend_url") or context.get("backend_url") or ""
    names = {
        str(info.get("name") or f"opponent {place}"): str(info.get("agent_url") or "")
        for place, info in enumerate(infos, 1)
    }
    reported_by = str(context.get("agent_name") or "green_agent")
    return names, config, Battle(str(battle_id), str(backend).rstrip("/"), reported_by)


def _config_of(text: str) -> Mapping[str, Any]:
    """The configuration in a text: ``Task description: {...}``, or words only."""
    start = text.find("{")
    config = (
        _words_of_config(text) if start < 0 else _json_object(text[start : text.rfind("}") + 1])
    )
    if config is None:
        raise BadRequest(f"the configuration is not a JSON object: {shorten(text, 80)}")
    return config


_SETTING = re.compile(rf"\b({'|'.join(sorted(_WORDS))})\s*[=:]\s*([\w./-]+)", re.IGNORECASE)
_TASK_NUMBER = re.compile(r"\btask(?:[ _](?:index|id|number))?\s*[=:#]?\s*(\d+)", re.IGNORECASE)


def _words_of_config(text: str) -> dict[str, Any]:
    """Read settings in words: ``k=2, task 5``, ``Task index = 1``.

    Text without any becomes a setting that is not understood, which the notes name.
    """
    config: dict[str, Any] = {}
    for name, value in _SETTING.findall(text):
        number = _json_number(value)
        config[name.lower()] = value if number is None else number
    tasks = [int(number) for number in _TASK_NUMBER.findall(text)]
    if tasks and "task_id" not in config and "task_ids" not in config:
        config["task_id"] = tasks
    return config if config or not text.strip() else {f"task_config {shorten(text, 60)}": None}


def _json_number(text: str) -> float | int | None:
    try:
        number = json.loads(text)
    except ValueError:
        return None
    return number if isinstance(number, int | float) and not isinstance(number, bool) else None


def _read_config(
    config: Mapping[str, Any], rules: Rules, participants: int, problems: _Problems
) -> dict[str, Any] | None:
    k = problems.number(config, "k", 4, 1, 1_000)
    attempts = problems.number(config, "n", k, 1, 1_000)
    if attempts < k:
        problems.add(f"n should be at least k: {attempts} attempts cannot show k = {k}")
    limits = AttemptLimits(
        problems.number(config, "max_steps", 30, 1, 1_000),
        problems.number(config, "step_timeout", 60.0, 0.1, 3_600),
        problems.number(config, "timeout", 600.0, 0.1, 86_400),
    )
    seed = problems.number(config, "seed", 0, 0, 2**31)
    options = {
        "k": k,
        "attempts": attempts,
        "limits": limits,
        "seed": seed,
        "jobs": problems.number(config, "jobs", 8, 1, 64),
        "temperature": problems.number(config, "temperature", None, 0, 10),
        "win_at": problems.number(config, "win_at", 0.5, 0, 1),
    }
    suite = _suite(config, rules, problems)
    if suite is None:
        return None
    tasks = _tasks(config, suite, seed, problems)
    if participants * len(tasks) * attempts > rules.most_attempts:
        of = f"{participants} participants x " if participants > 1 else ""
        problems.add(
            f"{of}{len(tasks)} tasks x {attempts} attempts is over {rules.most_attempts:,}"
        )
    return {**options, "suite": suite, "tasks": tasks}


_load_desk = functools.cache(load_suite)


def _suite(config: Mapping[str, Any], rules: Rules, problems: _Problems) -> Suite | None:
    domain = config.get("domain") or config.get("env")
    both = "orderdesk" if _mode(config) == "random" else "orderdesk/retail"
    word = str(config.get("suite") or (f"orderdesk/{domain}" if domain else both))
    if not rules.allow_suite(word):
        suites = ", ".join(rules.suites)
        problems.add(f"suite {shorten(word)} is not allowed here; allowed: {suites}")
        return None
    try:
        # Built once: a desk takes a tenth of a second, and has no state of its own.
        return _load_desk(word) if word.partition("/")[0] == "orderdesk" else load_suite(word)
    except PasshatError as error:
        problems.add(str(error))
        return None


def _tasks(
    config: Mapping[str, Any], suite: Suite, seed: int, problems: _Problems
) -> Sequence[Task]:
    """All tasks; ``manual``: those in ``task_id``, by id or place; ``random``: ``num_battles``."""
    task_ids, mode = _task_ids(config), _mode(config)
    if mode not in _MODES:
        problems.add(f"mode should be one of {', '.join(_MODES)}, not {shorten(mode)}")
    if mode == "random":
        count = problems.number(
            config, "num_battles", min(5, len(suite.tasks)), 1, len(suite.tasks)
        )
        return random.Random(seed).sample(list(suite.tasks), count)
    if mode == "manual":
        if task_ids is None:
            problems.add("mode manual needs a task_id")
        words = task_ids if isinstance(task_ids, list) else [] if task_ids is None else [task_ids]
        return [task for word in words if (task := _task(word, suite, problems)) is not None]
    return tuple(suite.tasks)


def _task_ids(config: Mapping[str, Any]) -> Any:
    return config.get("task_id", config.get("task_ids"))


def _mode(config: Mapping[str, Any]) -> Any:
    """How tasks are chosen; without a word about it, by what is given."""
    if config.get("mode"):
        return config["mode"]
    if _task_ids(config) is not None:
        return "manual"
    return "random" if "num_battles" in config else "all"


def _task(word: object, suite: Suite, problems: _Problems) -> Task | None:
    by_id = {task.id: task for task in suite.tasks}
    text = str(int(word)) if isinstance(word, float) and word.is_integer() else str(word)
    if text in by_id:
        return by_id[text]
    if text.isdigit() and int(text) < len(suite.tasks):
        return suite.tasks[int(text)]
    problems.add(
        f"{suite.name} has no task {shorten(text)}: tasks are 0 to {len(suite.tasks) - 1}, "
        f"or by id, as in {suite.tasks[0].id}"
    )
    return None


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
