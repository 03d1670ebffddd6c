"""``python:MODULE:NAME``: a function from prompt to answer, a class, or a framework's agent.

The simplest agent is ``def agent(prompt: str) -> str``, sync or async. With a parameter ``attempt``
it also gets the :class:`~passhat.agents.base.AttemptInfo`: task, seed, temperature, tools, meter. A
class is instantiated for every attempt and called with each turn, so what it remembers ends with
the attempt. What it returns may say what it used, see
:func:`passhat.agents.framework_answers.read_answer`.
"""

from __future__ import annotations

import asyncio
import contextvars
import decimal
import inspect
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from passhat._plugins import check_instance
from passhat.agents.base import Agent, AgentFault, AttemptInfo, Session
from passhat.agents.framework_answers import read_answer
from passhat.agents.framework_sessions import (
    AdkSession,
    Ag2Session,
    AgentsSdkSession,
    AgnoSession,
    AutoGenSession,
    ClaudeSession,
    CrewAiSession,
    DspySession,
    FrameworkSession,
    LangGraphSession,
    LlamaIndexSession,
    PydanticAiSession,
    SmolagentsSession,
    StrandsSession,
)
from passhat.agents.prices import PriceTable
from passhat.errors import InvalidValue, shorten
from passhat.stats.outcomes import FailureCategory
from passhat.suites.base import Turn, WorldFault
from passhat.suites.graders import load_object, name_functions

THREAD_PREFIX = "passhat agent "
"""Names of threads in which agents run, followed by the attempt's id."""

_OF_ATTEMPT = ("task", "seed", "tools", "meter")
"""Names that say that a function expects a value of the attempt."""


class AttemptKind(Enum):
    """How a function gets the attempt beside the prompt."""

    ABSENT = "absent"
    KEYWORD = "keyword"
    POSITION = "position"


def python_agent(path: str) -> Agent:
    """A Python function, class or Agent: python:MODULE:NAME, as in python:my_agent:answer."""
    agent = agent_from_object(load_object(path), f"python:{path}")
    file = getattr(sys.modules[path.partition(":")[0]], "__file__", None)
    if file and not agent.source_files:
        agent.source_files = (Path(file),)
    return agent


def agent_from_object(thing: object, name: str = "") -> Agent:
    """An agent from a function, a class whose instances can be called, or an Agent.

    ``name`` is used where the agent has no name of its own.
    """
    if isinstance(thing, type) and issubclass(thing, Agent):
        thing = thing()
    if isinstance(thing, Agent):
        check_instance(thing, Agent, name or thing.name)
        if name and thing.name == type(thing).__name__:
            thing.name = name
        return thing
    if (session := framework_of(thing)) is not None:
        kind = type(thing)
        return FrameworkAgent(thing, session, name or f"python:{kind.__module__}:{kind.__name__}")
    refuse_unknown(thing)
    # Every class can be called; its instances only if it has a __call__ of its own.
    if not callable(thing) or (
        isinstance(thing, type) and not any("__call__" in vars(kind) for kind in thing.__mro__)
    ):
        _refuse_no_agent(thing, name)
    return FunctionAgent(thing, name)  # type: ignore[arg-type]


def _refuse_no_agent(thing: object, name: str | None) -> None:
    """Refuse an object that cannot be called, with the line to write."""
    hint = "Name a function that takes the prompt and returns text, or a class derived from "
    if inspect.iscoroutine(thing):
        thing.close()  # or Python warns of it as well
        hint = "Give the function itself and not its result, or a class derived from "
    try:
        check_instance(thing, Agent, name or shorten(thing))
    except InvalidValue as error:
        error.hint = f"{hint}passhat.Agent."
        raise


class FunctionAgent(Agent):
    """A Python function as an agent, or a class that is instantiated for every attempt."""

    def __init__(self, function: Callable[..., Any], name: str = "") -> None:
        self._function = function
        if inspect.isroutine(function):
            module = getattr(function, "__module__", None) or "builtins"
            path = f"{module}:{function.__qualname__}"
        else:
            kind = function if inspect.isclass(function) else type(function)
            path = f"{kind.__module__}:{kind.__qualname__}"
        self.name = name or f"python:{path}"
        self.price_table: PriceTable | None = None
        self._attempt_kind = _bind_signature(function)

    async def session(self, attempt: AttemptInfo) -> FunctionSession:
        return self.start(attempt)

    def start(self, attempt: AttemptInfo) -> FunctionSession:
        """Begin an attempt; a class is instantiated."""
        function: Any = self._function() if inspect.isclass(self._function) else self._function
        return FunctionSession(function, attempt, self.price_table, self._attempt_kind)


class FunctionSession(Session):
    """The attempt of a function, or of an instance of a class."""

    def __init__(
        self,
        function: Callable[..., Any],
        attempt: AttemptInfo,
        prices: PriceTable | None,
        attempt_kind: AttemptKind = AttemptKind.ABSENT,
    ) -> None:
        self._function = function
        self._attempt = attempt
        self._prices = prices
        self._attempt_kind = attempt_kind

    async def answer(self, turn: Turn) -> str:
        if inspect.iscoroutinefunction(self._function) or inspect.iscoroutinefunction(
            getattr(self._function, "__call__", None)  # noqa: B004 - an instance may be async
        ):
            answer = self.call(turn)
        else:
            work = partial(self.call, turn)
            answer = await _in_daemon_thread(work, f"{self._attempt.task}#{self._attempt.number}")
        if inspect.isawaitable(answer):  # also of a plain function that returns a coroutine
            answer = await answer
        return self.read_answer(answer)

    def call(self, turn: Turn) -> Any:
        """Call the function; an async one returns a coroutine."""
        if self._attempt_kind is AttemptKind.ABSENT:
            return self._function(turn.text)
        if turn.tools:  # offered in the first turn, at hand in every one
            self._attempt = replace(self._attempt, tools=turn.tools)
        if self._attempt_kind is AttemptKind.POSITION:
            return self._function(turn.text, self._attempt)
        return self._function(turn.text, attempt=self._attempt)

    def read_answer(self, answer: Any) -> str:
        """Return the text of an answer, and put its usage on the meter."""
        return read_answer(answer, self._attempt.meter, self._prices)


def _bind_signature(function: Callable[..., Any]) -> AttemptKind:
    """How the function takes ``attempt``; one that cannot be called with a prompt is refused.

    A class is instantiated without arguments, and its instances are called.
    """
    is_class = inspect.isclass(function)
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    name = getattr(inner, "__name__", type(inner).__name__)
    is_method = is_class or not (inspect.isroutine(inner) or hasattr(inner, "__wrapped__"))
    kind: Any = inner if inspect.isclass(inner) else type(inner)
    target: Any = kind.__call__ if is_method else inner
    try:
        made_with = list(inspect.signature(function).parameters.values()) if is_class else []
        # Of the object itself, since a partial has the parameters that are left.
        signature = inspect.signature(target if is_class else function)
    except (ValueError, TypeError):  # a function of C without a signature
        return AttemptKind.ABSENT
    parameters = list(signature.parameters.values())[1 if is_class else 0 :]
    line = f"def {'__call__(self, ' if is_method else f'{name}('}prompt"
    if problem := _why_unbound(made_with):
        raise InvalidValue(
            f"{name} is instantiated for every attempt without arguments: {problem}.",
            hint="Write def __init__(self): or name a function that makes one and calls it.",
        )
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise InvalidValue(
            f"{name} is a generator; an agent returns its whole answer as text.",
            hint=f"Write {line}): and return the text instead of yielding it.",
        )
    text = f"{name}{inspect.Signature(parameters)}"
    names = [parameter.name for parameter in parameters]
    of_attempt = [word for word in names if word in _OF_ATTEMPT]
    if of_attempt or names[:1] == ["attempt"]:
        reading = f" and read attempt.{of_attempt[0]} in it" if of_attempt else ""
        raise InvalidValue(
            f"{text} cannot be called: an agent gets the prompt, and all about the attempt in a "
            "second parameter, attempt.",
            hint=f"Write {line}, attempt):{reading}",
        )
    attempt_kind = AttemptKind.ABSENT
    if "attempt" in names:
        # By name where that is possible: decorators pass keywords on more often than positions.
        is_positional = signature.parameters["attempt"].kind is inspect.Parameter.POSITIONAL_ONLY
        attempt_kind = AttemptKind.POSITION if is_positional else AttemptKind.KEYWORD
    positions = [""] if attempt_kind is not AttemptKind.POSITION else ["", None]
    keywords = {"attempt": None} if attempt_kind is AttemptKind.KEYWORD else {}
    if problem := _why_unbound(parameters, *positions, **keywords):
        raise InvalidValue(
            f"{text} cannot be called with a prompt: {problem}.",
            hint=f"Write {line}): or {line}, attempt):",
        )
    if attempt_kind is AttemptKind.POSITION and names[1] != "attempt":
        raise InvalidValue(
            f"{text} cannot be called: attempt is positional only and not the second parameter.",
            hint=f"Write {line}, attempt):",
        )
    return attempt_kind


def _why_unbound(parameters: list[inspect.Parameter], *given: Any, **named: Any) -> str:
    """Why parameters do not take these arguments, in Python's words; empty if they do."""
    try:
        inspect.Signature(parameters).bind(*given, **named)
    except TypeError as error:
        return str(error)
    return ""


def copy_context() -> contextvars.Context:
    """A copy of this context in which a change of decimal's precision stays."""
    context = contextvars.copy_context()
    # A copy of a context holds the same objects, and decimal's is one that agents change in place.
    context.run(lambda: decimal.setcontext(decimal.getcontext().copy()))
    return context


async def _in_daemon_thread(work: Callable[[], Any], attempt: str = "") -> Any:
    """Run in a daemon thread: an agent that hangs does not keep the program alive.

    Its name contains the attempt it belongs to, for the report on agents that never returned.
    """
    loop = asyncio.get_running_loop()
    # A future takes no StopIteration as its exception, so errors are handed on as values.
    future: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if not future.done():
            future.set_result((value, error))

    def run() -> None:
        value: Any = None
        failure: BaseException | None = None
        try:
            value = work()
        except BaseException as error:  # passed on: the runner classifies it
            failure = error
        # It returned: on a busy machine the thread may outlive the answer that it hands over.
        threading.current_thread().name = "passhat returned"
        with suppress(RuntimeError):  # the run is over, and its loop closed
            loop.call_soon_threadsafe(settle, value, failure)

    # As asyncio.to_thread does: the trace that an attempt belongs to is in the context.
    context = copy_context()
    name = f"{THREAD_PREFIX}{attempt}"
    threading.Thread(target=context.run, args=(run,), daemon=True, name=name).start()
    value, error = await future
    if error is None:
        return value
    if isinstance(error, Exception) and not isinstance(error, StopIteration | WorldFault):
        raise error
    # A plain function has no access to the run: any exception is its own failure.
    raise AgentFault(FailureCategory.EXCEPTION, type(error).__name__)


# -- objects of other frameworks -------------------------------------------------------------------


def framework_of(thing: object) -> type[FrameworkSession] | None:
    """The session class for an object of a known framework; ``None`` for any other object."""
    for kind in type(thing).__mro__:
        for (package, classes), session in _FRAMEWORKS.items():
            if f"{kind.__module__}.".startswith(f"{package}.") and kind.__name__ in classes:
                return session
    return None


def refuse_unknown(thing: object) -> None:
    """Refuse an object of a framework that is known but not run directly, before any attempt.

    Some of them can be called, but not with a prompt alone: every attempt would fail.

    Raises
    ------
    InvalidValue
        The hint says how to wrap the object in a function.
    """
    for kind in type(thing).__mro__:
        for package, (name, call) in _WRAPPED_FRAMEWORKS.items():
            if f"{kind.__module__}.".startswith(f"{package}."):
                raise InvalidValue(
                    f"an object of {name} is not run directly.",
                    hint="Wrap it in a function that makes a new one for every attempt: def "
                    f"answer(prompt): return {call}",
                )


class FrameworkAgent(Agent):
    """An object of another framework as an agent."""

    def __init__(self, thing: Any, session: type[FrameworkSession], name: str) -> None:
        self.name = name
        self.price_table: PriceTable | None = None
        self._thing = thing
        self._session = session
        self._turn = asyncio.Lock()

    async def check(self) -> None:
        """Refuse an object that cannot be run, before the first attempt."""
        self._turn = asyncio.Lock()  # the next run may have another event loop
        self._session.check(self._thing)

    async def session(self, attempt: AttemptInfo) -> FrameworkSession:
        return self._session(self._thing, attempt, self.price_table, self._turn)


_FRAMEWORKS: Mapping[tuple[str, tuple[str, ...]], type[FrameworkSession]] = {
    ("langgraph", ("Pregel",)): LangGraphSession,
    ("agents", ("Agent",)): AgentsSdkSession,
    ("pydantic_ai", ("AbstractAgent", "Agent")): PydanticAiSession,
    ("crewai", ("Crew", "Agent")): CrewAiSession,
    ("smolagents", ("MultiStepAgent",)): SmolagentsSession,
    ("dspy", ("Module",)): DspySession,
    ("llama_index", ("BaseWorkflowAgent", "AgentWorkflow")): LlamaIndexSession,
    ("autogen_agentchat", ("BaseChatAgent", "BaseGroupChat")): AutoGenSession,
    ("ag2", ("Agent",)): Ag2Session,
    ("agno", ("Agent",)): AgnoSession,
    ("strands", ("Agent",)): StrandsSession,
    ("google.adk", ("BaseAgent",)): AdkSession,
    ("claude_agent_sdk", ("ClaudeAgentOptions",)): ClaudeSession,
}
"""The classes whose objects are run, by the package they come from."""


_WRAPPED_FRAMEWORKS: Mapping[str, tuple[str, str]] = {
    "agno": ("agno", "make_team().run(prompt).content"),
    "autogen": ("AG2 before version 1", "make_agent().run(message=prompt, max_turns=1).summary"),
    "autogen_agentchat": (
        "AutoGen",
        "asyncio.run(make_agent().run(task=prompt)).messages[-1].content",
    ),
    "claude_agent_sdk": ("the Claude Agent SDK", "the text of query(prompt=prompt)"),
    "dspy": ("DSPy", "make_program()(question=prompt).answer"),
    "google.adk": ("Google's ADK", "the text of the last event of InMemoryRunner(make_agent())"),
    "llama_index": ("LlamaIndex", "str(make_engine().query(prompt))"),
    "smolagents": ("smolagents", "str(make_agent().run(prompt))"),
    "strands": ("Strands", "str(make_agent()(prompt))"),
}
"""Other objects of frameworks: the framework's name, and a call that answers a prompt."""


# -- agents by name --------------------------------------------------------------------------------

GROUP = "passhat.agents"


def agent_kinds() -> dict[str, str]:
    """Every kind of agent that is installed, with the first line of its description."""
    return {
        entry.name: (entry.load().__doc__ or "").strip().splitlines()[0]
        for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    }


def as_agent(agent: Agent | Callable[..., object] | str) -> Agent:
    """An agent from an Agent, a function, a class, or a word for load_agent.

    Raises
    ------
    InvalidValue
        It is none of these.
    """
    if isinstance(agent, str):
        return load_agent(agent)
    return agent_from_object(agent)


def _likely_word(word: str) -> str:
    """The word that was meant by an address, or by a function without its kind."""
    if word.startswith(("http://", "https://")):
        return f"Write a2a:{word} for an A2A agent, or openai:MODEL@{word}/v1 for a model's server."
    module, _, name = word.rpartition(":")
    module = module.removesuffix(".py")
    return f"Write python:{module}:{name}" if module and Path(f"{module}.py").is_file() else ""


def load_agent(word: str) -> Agent:
    """The agent that a word such as ``command:./agent`` names."""
    kind, sign, rest = word.partition(":")
    makers = {entry.name: entry for entry in entry_points(group=GROUP)}
    if not sign or kind not in makers:
        raise InvalidValue(
            f"{word!r} is not an agent.",
            hint=name_functions(word)
            or _likely_word(word)
            or f"Kinds of agent: {', '.join(sorted(makers))}; as in python:my_module:answer.",
        )
    agent = makers[kind].load()(rest)
    check_instance(agent, Agent, f"the agent {word}")
    assert isinstance(agent, Agent)
    return agent
