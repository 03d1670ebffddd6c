"""Agents of other frameworks, and return values of functions: text, tokens and tool calls.

An object of a framework is recognized by the package of its class, so none of them is imported
here: LangGraph (a compiled graph), the OpenAI Agents SDK and pydantic-ai (an ``Agent``), CrewAI (a
``Crew`` or an ``Agent``). Each turn is handed to the framework with the conversation so far; its
model calls and tool calls are recorded, and its tokens count for budgets and caps.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from copy import copy
from importlib import import_module
from typing import Any

from passhat.agents.base import (
    Agent,
    AgentFault,
    AttemptInfo,
    Meter,
    ModelCall,
    Session,
    StopReason,
    Usage,
)
from passhat.agents.prices import PriceTable, TokenCount, read_count
from passhat.agents.provider_tables import stop_reason
from passhat.errors import InvalidValue
from passhat.stats.outcomes import FailureCategory
from passhat.suites.base import Turn

__all__ = ["FrameworkAgent", "framework_of", "read_answer", "refuse_unknown"]


def framework_of(thing: object) -> type[FrameworkSession] | None:
    """The session class for an object of a known framework; ``None`` for any other object."""
    for kind in type(thing).__mro__:
        package = kind.__module__.partition(".")[0]
        for (name, classes), session in _FRAMEWORKS.items():
            if package == name and kind.__name__ in classes:
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

    async def session(self, attempt: AttemptInfo) -> FrameworkSession:
        return self._session(self._thing, attempt, self.price_table)


class FrameworkSession(Session):
    """The conversation of an attempt with an object of a framework."""

    def __init__(self, thing: Any, attempt: AttemptInfo, prices: PriceTable | None) -> None:
        self._thing = thing
        self._attempt = attempt
        self._prices = prices

    async def answer(self, turn: Turn) -> str:
        try:
            return await self._run(turn.text)
        except asyncio.CancelledError:
            self._attempt.meter.settle(Usage())  # stopped in the middle: its use is unknown
            raise

    @abstractmethod
    async def _run(self, text: str) -> str:
        """The answer to a turn; records model and tool calls of the framework."""

    def _note_model(self, model: str, tokens: TokenCount | None, stop: object, reply: Any) -> None:
        _note(self._attempt.meter, self._prices, model, tokens, stop, reply)

    def _note_tool(self, name: str, arguments: Any, output: Any) -> None:
        call = ModelCall(name, role="tool", request=_plain(arguments), reply=_plain(output))
        self._attempt.meter.record(call)


class LangGraphSession(FrameworkSession):
    """A compiled LangGraph whose state has ``messages``."""

    def __init__(self, thing: Any, attempt: AttemptInfo, prices: PriceTable | None) -> None:
        super().__init__(thing, attempt, prices)
        self._messages: list[Any] = []
        # A thread of its own: a checkpointer would carry one attempt's memory into the next.
        self._config = {"configurable": {"thread_id": uuid.uuid4().hex}}

    async def _run(self, text: str) -> str:
        message = {"role": "user", "content": text}
        keeps = bool(self._thing.checkpointer)
        request = [message] if keeps else [*self._messages, message]
        state = await self._thing.ainvoke({"messages": request}, config=self._config)
        messages = state["messages"] if isinstance(state, Mapping) else state.messages
        self._note(messages[len(self._messages) + 1 :])
        self._messages = list(messages)
        return _text(messages[-1].content)

    def _note(self, messages: Iterable[Any]) -> None:
        calls: dict[str, Any] = {}
        for message in messages:
            if message.type == "ai":
                about = message.response_metadata
                model = str(about.get("model_name") or about.get("model") or "")
                stop = about.get("finish_reason") or about.get("stop_reason")
                tokens = count_tokens(message.usage_metadata)
                self._note_model(model, tokens, stop, message.content)
                calls |= {call["id"]: call for call in message.tool_calls}
            elif message.type == "tool":
                call = calls.get(message.tool_call_id, {})
                self._note_tool(call.get("name", message.name), call.get("args"), message.content)


class AgentsSdkSession(FrameworkSession):
    """An ``Agent`` of the OpenAI Agents SDK."""

    def __init__(self, thing: Any, attempt: AttemptInfo, prices: PriceTable | None) -> None:
        super().__init__(thing, attempt, prices)
        self._history: list[Any] = []

    async def _run(self, text: str) -> str:
        runner = import_module("agents").Runner

        message = {"role": "user", "content": text}
        result = await runner.run(self._thing, [*self._history, message])
        self._history = result.to_input_list()
        model = self._thing.model
        name = model if isinstance(model, str) else str(getattr(model, "model", "") or "")
        for response in result.raw_responses:
            has_call = any(getattr(item, "type", "") == "function_call" for item in response.output)
            stop = StopReason.TOOL_CALLS if has_call else StopReason.STOP
            self._note_model(name, count_tokens(response.usage), stop, response.output)
        calls = {}
        for item in result.new_items:
            raw = item.raw_item
            if item.type == "tool_call_item":
                calls[_field(raw, "call_id")] = raw
            elif item.type == "tool_call_output_item":
                call = calls.get(_field(raw, "call_id"))
                name_of = _field(call, "name") or "tool"
                self._note_tool(str(name_of), _field(call, "arguments"), item.output)
        return _text(result.final_output)


class PydanticAiSession(FrameworkSession):
    """An ``Agent`` of pydantic-ai."""

    def __init__(self, thing: Any, attempt: AttemptInfo, prices: PriceTable | None) -> None:
        super().__init__(thing, attempt, prices)
        self._history: list[Any] = []

    async def _run(self, text: str) -> str:
        result = await self._thing.run(text, message_history=self._history or None)
        calls: dict[str, Any] = {}
        for message in result.new_messages():
            if message.kind == "response":
                tokens = count_tokens(message.usage)
                stop = message.finish_reason
                self._note_model(str(message.model_name or ""), tokens, stop, message.parts)
            for part in message.parts:
                if part.part_kind == "tool-call":
                    calls[part.tool_call_id] = part
                elif part.part_kind == "tool-return":
                    call = calls.get(part.tool_call_id)
                    arguments = None if call is None else call.args
                    self._note_tool(part.tool_name, arguments, part.content)
        self._history = result.all_messages()
        return _text(result.output)


class CrewAiSession(FrameworkSession):
    """A ``Crew`` (with ``{prompt}`` in its tasks) or an ``Agent`` of CrewAI."""

    async def _run(self, text: str) -> str:
        # Crews and their agents keep results, memories and counts: each turn has a copy.
        thing = self._thing.copy()
        is_crew = any(kind.__name__ == "Crew" for kind in type(thing).__mro__)
        tasks = thing.tasks if is_crew else []
        agents = {id(agent): agent for agent in (thing.agents if is_crew else [thing])}
        agents |= {id(task.agent): task.agent for task in tasks if task.agent is not None}
        tools: list[tuple[str, Any, Any]] = []
        for agent in agents.values():
            agent.llm = _copy_with_counter(agent.llm)
        for owner in (*agents.values(), *tasks):
            owner.tools = [_record_tool(tool, tools) for tool in owner.tools or ()]
        arguments = {"inputs": {"prompt": text}} if is_crew else {"messages": text}
        output = await asyncio.to_thread(thing.kickoff, **arguments)
        models = {id(agent.llm): agent.llm for agent in agents.values()}
        for llm in models.values():
            tokens = count_tokens(llm.get_token_usage_summary())
            if tokens is not None and tokens.all:
                self._note_model(str(llm.model), tokens, StopReason.STOP, output.raw)
        for call in tools:
            self._note_tool(*call)
        return str(output.raw)


def _copy_with_counter(llm: Any) -> Any:
    """A copy of CrewAI's model that counts from zero: the original counts for all attempts."""
    duplicate = copy(llm)
    duplicate._token_usage = dict.fromkeys(llm._token_usage, 0)
    return duplicate


def _record_tool(tool: Any, calls: list[tuple[str, Any, Any]]) -> Any:
    """A copy of a CrewAI tool that notes its calls."""
    duplicate = tool.model_copy()
    run = tool._run

    def run_and_record(*given: Any, **named: Any) -> Any:
        output = run(*given, **named)
        calls.append((tool.name, named or list(given), output))
        return output

    object.__setattr__(duplicate, "_run", run_and_record)
    return duplicate


_FRAMEWORKS: Mapping[tuple[str, tuple[str, ...]], type[FrameworkSession]] = {
    ("langgraph", ("Pregel",)): LangGraphSession,
    ("agents", ("Agent",)): AgentsSdkSession,
    ("pydantic_ai", ("AbstractAgent", "Agent")): PydanticAiSession,
    ("crewai", ("Crew", "Agent")): CrewAiSession,
}


_WRAPPED_FRAMEWORKS: Mapping[str, tuple[str, str]] = {
    "agno": ("agno", "make_agent().run(prompt).content"),
    "autogen": ("AG2", "make_agent().run(message=prompt, max_turns=1).summary"),
    "autogen_agentchat": (
        "AutoGen",
        "asyncio.run(make_agent().run(task=prompt)).messages[-1].content",
    ),
    "claude_agent_sdk": ("the Claude Agent SDK", "the text of query(prompt=prompt)"),
    "dspy": ("DSPy", "make_program()(question=prompt).answer"),
    "google.adk": ("Google's ADK", "the text of the last event of InMemoryRunner(make_agent())"),
    "llama_index": ("LlamaIndex", "str(asyncio.run(make_agent().run(prompt)))"),
    "smolagents": ("smolagents", "str(make_agent().run(prompt))"),
    "strands": ("Strands", "str(make_agent()(prompt))"),
}
"""Frameworks by package: their name, and the call that answers a prompt."""


# -- return values of functions --------------------------------------------------------------------


def read_answer(value: Any, meter: Meter, prices: PriceTable | None = None) -> str:
    """The text of a function's return value; its usage is put on the meter.

    A function may return text, ``(text, Usage)``, or an object with its text in ``output``,
    ``final_output``, ``content``, ``text`` or ``raw`` and its tokens in ``usage``.

    Raises
    ------
    AgentFault
        There is no text in it.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        _note_usage(value[1], meter, prices)
        return value[0]
    fields = ("output", "final_output", "content", "text", "raw", "answer")
    for name in fields:
        text = _field(value, name)
        if isinstance(text, str):
            for usage_name in ("usage", "usage_metadata", "token_usage", "usage_metrics"):
                usage = _field(value, usage_name)
                if usage is not None:
                    _note_usage(usage, meter, prices, str(_field(value, "model") or ""))
                    break
            return text
    kind = type(value).__name__
    shown = f"{value} ({kind})" if isinstance(value, int | float) else kind
    raise AgentFault(
        FailureCategory.FORMAT_ERROR,
        f"answered {'None' if value is None else shown}, not text: expected text, (text, Usage), "
        f"or an object with {', '.join(fields)} and usage",
    )


def _note_usage(used: Any, meter: Meter, prices: PriceTable | None, model: str = "") -> None:
    if isinstance(used, Usage):
        if used.input_tokens is None or used.output_tokens is None:
            meter.settle(used)
            return
        model = used.model or model
    usage = used() if callable(used) else used
    tokens = count_tokens(usage)
    cost = _field(usage, "cost")
    if tokens is None:
        money = float(cost) if isinstance(cost, int | float) else None
        meter.settle(Usage(_first(usage, "total_tokens", "tokens"), money))
        return
    _note(meter, prices, model, tokens, StopReason.STOP, None, cost)


def _note(
    meter: Meter,
    prices: PriceTable | None,
    model: str,
    tokens: TokenCount | None,
    stop: object,
    reply: Any,
    cost: Any = None,
) -> None:
    """Record one model call, and count its use."""
    price = None if prices is None or not model else prices.price_of_model(model)
    priced = ""
    if not isinstance(cost, int | float):
        cost = None if price is None or tokens is None else price.of(tokens)
        priced = "" if price is None or cost is None else price.source
    meter.settle(Usage(None if tokens is None else tokens.all, cost))
    meter.record(
        ModelCall(
            model or "model",
            model=model,
            role=meter.role,
            stop=str(stop if isinstance(stop, StopReason) else stop_reason(stop or "stop")),
            stop_raw=str(stop or ""),
            input_tokens=None if tokens is None else tokens.input,
            output_tokens=None if tokens is None else tokens.output,
            cached_tokens=None if tokens is None else tokens.cached,
            reasoning_tokens=None if tokens is None else tokens.reasoning,
            cost=cost,
            priced=priced,
            reply=_plain(reply),
        )
    )


def count_tokens(used: Any) -> TokenCount | None:
    """Tokens in any of the usual spellings, of a mapping or an object; ``None`` if unknown."""
    if used is None:
        return None
    inputs = _first(used, "input_tokens", "prompt_tokens", "request_tokens", "input")
    outputs = _first(used, "output_tokens", "completion_tokens", "response_tokens", "output")
    if inputs is None or outputs is None:
        return None
    input_details = _field(used, "input_token_details") or _field(used, "input_tokens_details")
    output_details = _field(used, "output_token_details") or _field(used, "output_tokens_details")
    cached = _first(used, "cache_read_tokens", "cached_prompt_tokens", "cached_tokens")
    if cached is None:
        cached = _first(input_details, "cache_read", "cached_tokens") or 0
    reasoning = _first(output_details, "reasoning", "reasoning_tokens")
    if reasoning is None:
        reasoning = _first(used, "reasoning_tokens")
    return TokenCount(inputs, outputs, min(cached, inputs), 0, reasoning)


def _first(thing: Any, *names: str) -> int | None:
    for name in names:
        count = read_count(_field(thing, name))
        if count is not None:
            return count
    return None


def _field(thing: Any, name: str) -> Any:
    """A value of a mapping or an attribute of an object; frameworks have both."""
    if thing is None:
        return None
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part if isinstance(part, str) else _field(part, "text") for part in content]
        return "".join(part for part in parts if isinstance(part, str))
    return json.dumps(_plain(content), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Plain data for the record: JSON where there is any, the object's text otherwise."""
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    dump = getattr(value, "model_dump", None)
    return _plain(dump(mode="json")) if callable(dump) else str(value)
