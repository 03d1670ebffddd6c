"""Conversations with agents of other frameworks, one class each.

No framework is imported unless the user's own object comes from it. An attempt shares nothing with
another: it has a thread, a session, a history or a copy of its own, or the object to itself.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import copy, deepcopy
from importlib import import_module
from typing import Any

from passhat.agents.base import (
    AgentFault,
    AttemptInfo,
    ModelCall,
    ProviderFault,
    Session,
    StopReason,
    Usage,
)
from passhat.agents.framework_answers import (
    count_tokens,
    field_of,
    note_call,
    plain_data,
    text_of_answer,
)
from passhat.agents.prices import PriceTable, TokenCount
from passhat.errors import InvalidValue
from passhat.stats.outcomes import FailureCategory, MissingReason
from passhat.suites.base import Turn


class FrameworkSession(Session):
    """The conversation of an attempt with an object of a framework."""

    def __init__(
        self,
        thing: Any,
        attempt: AttemptInfo,
        prices: PriceTable | None,
        turn: asyncio.Lock | None = None,
    ) -> None:
        self._thing = thing
        self._attempt = attempt
        self._prices = prices
        self._turn = turn or asyncio.Lock()
        self._begin()

    @classmethod
    def check(cls, thing: Any) -> None:
        """Raise InvalidValue for an object that cannot be run; called before the first attempt."""

    def _begin(self) -> None:
        """Make what this conversation needs; shared by no other."""

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
        note_call(self._attempt.meter, self._prices, model, tokens, stop, reply)

    def _note_tool(self, name: str, arguments: Any, output: Any) -> None:
        if isinstance(arguments, str):
            with suppress(ValueError):  # as the model wrote them
                arguments = json.loads(arguments)
        call = ModelCall(name, role="tool", request=plain_data(arguments), reply=plain_data(output))
        self._attempt.meter.record(call)


class LangGraphSession(FrameworkSession):
    """A compiled LangGraph whose state has ``messages``."""

    def _begin(self) -> None:
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
        return text_of_answer(messages[-1].content)

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

    def _begin(self) -> None:
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
                calls[field_of(raw, "call_id")] = raw
            elif item.type == "tool_call_output_item":
                call = calls.get(field_of(raw, "call_id"))
                name_of = field_of(call, "name") or "tool"
                self._note_tool(str(name_of), field_of(call, "arguments"), item.output)
        return text_of_answer(result.final_output)


class PydanticAiSession(FrameworkSession):
    """An ``Agent`` of pydantic-ai."""

    def _begin(self) -> None:
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
        return text_of_answer(result.output)


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


class SmolagentsSession(FrameworkSession):
    """A ``CodeAgent`` or ``ToolCallingAgent`` of smolagents."""

    @classmethod
    def check(cls, thing: Any) -> None:
        _copy_apart(thing, "model", "logger")

    def _begin(self) -> None:
        self._agent = _copy_apart(self._thing, "model", "logger")
        self._steps = 0

    async def _run(self, text: str) -> str:
        result = await asyncio.to_thread(
            self._agent.run, text, reset=not self._steps, return_full_result=True
        )
        model = str(getattr(self._agent.model, "model_id", "") or "")
        for step in result.steps[self._steps :]:
            calls = step.get("tool_calls") or ()
            tokens = count_tokens(step.get("token_usage"))
            if tokens is not None:
                stop = StopReason.TOOL_CALLS if calls else StopReason.STOP
                self._note_model(model, tokens, stop, step.get("model_output"))
            for call in calls:
                function = call.get("function") or call
                name = str(function.get("name"))
                if name != "final_answer":  # how smolagents ends, not a step of the agent
                    observations = step.get("observations")
                    self._note_tool(name, function.get("arguments"), observations)
        self._steps = len(result.steps)
        if result.state != "success":
            raise AgentFault(FailureCategory.TASK_INCOMPLETE, "the agent reached its last step")
        return text_of_answer(result.output)


class DspySession(FrameworkSession):
    """A DSPy module with one input field; its answer is the last output field."""

    @classmethod
    def check(cls, thing: Any) -> None:
        _dspy_fields(thing)

    def _begin(self) -> None:
        self._input, self._output = _dspy_fields(self._thing)

    async def _run(self, text: str) -> str:
        prediction = await asyncio.to_thread(self._predict, text)
        for model, usage in (prediction.get_lm_usage() or {}).items():
            tokens = count_tokens(usage)
            self._note_model(str(model), tokens, StopReason.STOP, dict(prediction))
        for place in range(len(prediction.get("trajectory") or ())):
            step = prediction["trajectory"]
            if (name := step.get(f"tool_name_{place}")) and name != "finish":
                self._note_tool(
                    str(name), step.get(f"tool_args_{place}"), step.get(f"observation_{place}")
                )
        return text_of_answer(prediction[self._output])

    def _predict(self, text: str) -> Any:
        dspy = import_module("dspy")
        program = self._thing.deepcopy()
        # DSPy keeps answers: a repeated prompt would get the first one again.
        for predictor in program.predictors():
            if predictor.lm is not None:
                predictor.lm = predictor.lm.copy(cache=False)
        lm = dspy.settings.lm
        options = {} if lm is None else {"lm": lm.copy(cache=False)}
        with dspy.context(track_usage=True, **options):
            return program(**{self._input: text})


def _dspy_fields(program: Any) -> tuple[str, str]:
    """The input field of a program, and the output field that is its answer."""
    own_signature = getattr(program, "signature", None)
    predictors = program.predictors()
    signature = own_signature or (predictors[0].signature if predictors else None)
    inputs = [] if signature is None else list(signature.input_fields)
    if own_signature is None and predictors:  # ReAct adds fields of its own to its predictors
        inputs = [name for name in inputs if name != "trajectory"]
    if len(inputs) != 1:
        raise InvalidValue(
            "a DSPy program is given the prompt in its only input field; this one has "
            f"{', '.join(inputs) or 'none'}.",
            hint="Write a function: def answer(prompt): return program(FIELD=prompt, ...).answer",
        )
    outputs = (predictors[-1].signature if own_signature is None else own_signature).output_fields
    return inputs[0], list(outputs)[-1]


class LlamaIndexSession(FrameworkSession):
    """A ``FunctionAgent``, ``ReActAgent`` or ``AgentWorkflow`` of LlamaIndex."""

    def _begin(self) -> None:
        self._context: Any = None

    async def _run(self, text: str) -> str:
        if self._context is None:
            self._context = import_module("llama_index.core.workflow").Context(self._thing)
        handler = self._thing.run(user_msg=text, ctx=self._context)
        async for event in handler.stream_events():
            kind = type(event).__name__
            if kind == "AgentOutput":
                raw = event.raw
                stop = StopReason.TOOL_CALLS if event.tool_calls else StopReason.STOP
                tokens = count_tokens(field_of(raw, "usage"))
                self._note_model(str(field_of(raw, "model") or ""), tokens, stop, str(event))
            elif kind == "ToolCallResult":
                self._note_tool(event.tool_name, event.tool_kwargs, str(event.tool_output))
        return str(await handler)


class _TakesTurns(FrameworkSession):
    """An object that holds one conversation: attempts have it one after the other."""

    _has_turn = False

    async def answer(self, turn: Turn) -> str:
        if not self._has_turn:
            with self._attempt.meter.off_the_clock():
                await self._turn.acquire()
            self._has_turn = True
            await self._reset()
        return await super().answer(turn)

    async def close(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._turn.release()

    @abstractmethod
    async def _reset(self) -> None:
        """Forget the conversation of the attempt before."""


class AutoGenSession(_TakesTurns):
    """An agent or a team of AutoGen's AgentChat."""

    async def _reset(self) -> None:
        if hasattr(self._thing, "on_reset"):
            await self._thing.on_reset(import_module("autogen_core").CancellationToken())
        else:
            await self._thing.reset()

    async def _run(self, text: str) -> str:
        result = await self._thing.run(task=text)
        calls: dict[str, Any] = {}
        for message in result.messages:
            kind = type(message).__name__
            if message.models_usage is not None:
                stop = StopReason.TOOL_CALLS if "Request" in kind else StopReason.STOP
                self._note_model(
                    self._model_name(), count_tokens(message.models_usage), stop, message.content
                )
            for part in message.content if isinstance(message.content, list) else ():
                if kind == "ToolCallRequestEvent":
                    calls[part.id] = part
                elif kind == "ToolCallExecutionEvent":
                    call = calls.get(part.call_id)
                    self._note_tool(part.name, field_of(call, "arguments"), part.content)
        return text_of_answer(result.messages[-1].content)

    def _model_name(self) -> str:
        client = getattr(self._thing, "_model_client", None)
        settings = getattr(client, "_create_args", None)
        return str(field_of(settings, "model") or "")


class StrandsSession(_TakesTurns):
    """An ``Agent`` of Strands."""

    async def _reset(self) -> None:
        self._thing.messages.clear()

    async def _run(self, text: str) -> str:
        first = len(self._thing.messages)
        before = _strands_usage(self._thing)
        result = await self._thing.invoke_async(text)
        calls: dict[str, Any] = {}
        for message in self._thing.messages[first:]:
            for block in message["content"]:
                if use := block.get("toolUse"):
                    calls[use["toolUseId"]] = use
                elif result_block := block.get("toolResult"):
                    call = calls.get(result_block["toolUseId"], {})
                    output = text_of_answer(result_block["content"])
                    self._note_tool(call.get("name", "tool"), call.get("input"), output)
        model = str(self._thing.model.get_config().get("model_id") or "")
        inputs, outputs = (
            now - then for now, then in zip(_strands_usage(self._thing), before, strict=True)
        )
        tokens = TokenCount(inputs, outputs) if inputs or outputs else None
        self._note_model(model, tokens, result.stop_reason, result.message)
        return str(result).strip()


def _strands_usage(agent: Any) -> tuple[int, int]:
    """Tokens that the agent has used since it was made."""
    usage = agent.event_loop_metrics.accumulated_usage
    return int(usage["inputTokens"]), int(usage["outputTokens"])


class Ag2Session(FrameworkSession):
    """An ``Agent`` of AG2, version 1 and later."""

    def _begin(self) -> None:
        self._reply: Any = None
        self._events = 0

    async def _run(self, text: str) -> str:
        partner = self._thing if self._reply is None else self._reply
        self._reply = await partner.ask(text)
        events = list(await self._reply.history.get_events())
        calls: dict[str, Any] = {}
        for event in events[self._events :]:
            kind = type(event).__name__
            if kind == "ModelResponse":
                tokens = count_tokens(event.usage)
                self._note_model(str(event.model or ""), tokens, event.finish_reason, event.content)
            elif kind == "ToolCallEvent":
                calls[event.id] = event
            elif kind in ("ToolResultEvent", "ToolErrorEvent"):
                call = calls.get(event.parent_id)
                parts = field_of(field_of(event, "result"), "parts") or ()
                texts = [field_of(part, "data") or field_of(part, "content") for part in parts]
                output = texts[0] if len(texts) == 1 else texts
                self._note_tool(str(event.name), field_of(call, "arguments"), output)
        self._events = len(events)
        return text_of_answer(self._reply.body)


class AgnoSession(FrameworkSession):
    """An ``Agent`` of agno."""

    def _begin(self) -> None:
        self._agent = self._thing.deep_copy()
        self._messages: list[Any] = []

    async def _run(self, text: str) -> str:
        request: Any = text
        if self._messages:
            message = import_module("agno.models.message").Message
            request = [*self._messages, message(role="user", content=text)]
        result = await self._agent.arun(request, session_id=uuid.uuid4().hex)
        for message in result.messages[len(self._messages) :]:
            if message.role == "assistant":
                stop = StopReason.TOOL_CALLS if message.tool_calls else StopReason.STOP
                tokens = count_tokens(message.metrics)
                self._note_model(str(result.model or ""), tokens, stop, message.content)
        for call in result.tools or ():
            self._note_tool(call.tool_name, call.tool_args, call.result)
        self._messages = [message for message in result.messages if message.role != "system"]
        return text_of_answer(result.content)


class AdkSession(FrameworkSession):
    """An agent of Google's ADK, in a session of its own."""

    def _begin(self) -> None:
        self._runner: Any = None
        self._session_id = ""

    async def _run(self, text: str) -> str:
        if self._runner is None:
            runners = import_module("google.adk.runners")
            self._runner = runners.InMemoryRunner(agent=self._thing, app_name=_APP)
            service = self._runner.session_service
            session = await service.create_session(app_name=_APP, user_id=_APP)
            self._session_id = session.id
        types = import_module("google.genai.types")
        message = types.Content(role="user", parts=[types.Part(text=text)])
        answer = ""
        calls: dict[str, Any] = {}
        async for event in self._runner.run_async(
            user_id=_APP, session_id=self._session_id, new_message=message
        ):
            requests = event.get_function_calls()
            calls |= {call.id: call for call in requests}
            if event.usage_metadata is not None:
                stop = StopReason.TOOL_CALLS if requests else event.finish_reason
                model = str(event.model_version or self._model_name())
                tokens = _gemini_count(event.usage_metadata)
                self._note_model(model, tokens, stop or StopReason.STOP, event.content)
            for response in event.get_function_responses():
                arguments = field_of(calls.get(response.id), "args")
                output = field_of(response.response, "result") or response.response
                self._note_tool(response.name, arguments, output)
            if event.is_final_response() and event.content is not None:
                parts = event.content.parts or ()
                answer = "".join(part.text or "" for part in parts if not part.thought) or answer
        return answer

    def _model_name(self) -> str:
        model = getattr(self._thing, "model", "")
        return str(model if isinstance(model, str) else getattr(model, "model", ""))


_APP = "passhat"


def _gemini_count(usage: Any) -> TokenCount | None:
    """Tokens in Google's spelling; thoughts are no part of the candidates."""
    inputs, outputs = usage.prompt_token_count, usage.candidates_token_count
    if inputs is None:
        return None
    thoughts = usage.thoughts_token_count or 0
    cached = min(usage.cached_content_token_count or 0, inputs)
    return TokenCount(inputs, (outputs or 0) + thoughts, cached, 0, thoughts or None)


class ClaudeSession(FrameworkSession):
    """``ClaudeAgentOptions`` of the Claude Agent SDK, with a client for each attempt."""

    def _begin(self) -> None:
        self._client: Any = None
        self._used: Mapping[str, Any] = {}

    async def _run(self, text: str) -> str:
        if self._client is None:
            sdk = import_module("claude_agent_sdk")
            self._client = sdk.ClaudeSDKClient(copy(self._thing))
            await self._client.connect()
        await self._client.query(text)
        calls: dict[str, Any] = {}
        answer = ""
        async for message in self._client.receive_response():
            for block in field_of(message, "content") or ():
                kind = type(block).__name__
                if kind == "ToolUseBlock":
                    calls[block.id] = block
                elif kind == "ToolResultBlock":
                    call = calls.get(block.tool_use_id)
                    name = str(field_of(call, "name") or "tool")
                    self._note_tool(name, field_of(call, "input"), text_of_answer(block.content))
            if type(message).__name__ == "ResultMessage":
                answer = str(message.result or "")
                self._note_result(message)
        return answer

    def _note_result(self, message: Any) -> None:
        """Record the use of a turn, with the SDK's own cost; the SDK sums over all turns."""
        names = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")
        for model, total in (message.model_usage or {}).items():
            before = self._used.get(model, {})
            plain, cached, written, outputs = (total[name] - before.get(name, 0) for name in names)
            cost = (total.get("costUSD") or 0.0) - (before.get("costUSD") or 0.0)
            tokens = TokenCount(plain + cached + written, outputs, cached, written)
            if tokens.all:
                note_call(
                    *(self._attempt.meter, self._prices, str(model), tokens),
                    *(message.stop_reason or StopReason.STOP, message.result),
                    cost if total.get("costUSD") is not None else None,
                )
        self._used = message.model_usage or self._used
        if message.is_error:
            status = message.api_error_status
            problem = f"{message.result or message.errors}"
            if status in (408, 409, 424, 429) or (status or 0) >= 500:
                raise ProviderFault(MissingReason.INFRASTRUCTURE, f"HTTP {status}: {problem}")
            raise AgentFault(FailureCategory.AGENT_ERROR, problem)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.disconnect()


def _copy_apart(thing: Any, *shared: str) -> Any:
    """A deep copy of an object that shares only these parts: a model, with its connections."""
    parts = [getattr(thing, name) for name in shared if hasattr(thing, name)]
    try:
        return deepcopy(thing, {id(part): part for part in parts})
    except Exception as error:
        kind = type(thing).__name__
        raise InvalidValue(
            f"a {kind} that holds {error} cannot be copied, and attempts share nothing.",
            hint="Write a function that makes a new one: def answer(prompt): return "
            "str(make_agent().run(prompt))",
        ) from None
