"""Words that providers use for the end of an answer and for errors, with their sources.

One table per wire format. Exact words come first; only a word that is in no table is read by its
parts, and one that has no known part is named in the record of the attempt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from passhat.agents.base import StopReason

_S = StopReason


class ErrorKind(Enum):
    """The consequence of a failed call."""

    ACCOUNT = "the run stops"
    BUSY = "wait"
    BROKEN = "try again"
    PAGE = "a web page: try once more at first, then again"
    UNREACHED = "no connection: try a few times at first, then again"
    REJECTED = "the attempt fails"
    TOO_LONG = "the attempt fails, and nothing is wrong with the set-up"
    MISROUTED = "not an answer of the API: the run stops at first, try again later"
    FILTERED = "the attempt fails as filtered"


INVALID_CALLS = ("malformed_function_call", "unexpected_tool_call", "too_many_tool_calls")
"""Ends of an answer whose tool calls the provider did not take: the model's mistake in form."""

STOP_WORDS: Mapping[str, Mapping[str, StopReason]] = MappingProxyType(
    {
        "openai": {  # https://platform.openai.com/docs/api-reference/chat/object
            "stop": _S.STOP,
            "length": _S.LENGTH,
            "tool_calls": _S.TOOL_CALLS,
            "function_call": _S.TOOL_CALLS,
            "content_filter": _S.FILTERED,
        },
        "openai-responses": {  # https://platform.openai.com/docs/api-reference/responses/object
            "completed": _S.STOP,
            "max_output_tokens": _S.LENGTH,
            "content_filter": _S.FILTERED,
            "incomplete": _S.LENGTH,
            "max_tool_calls": _S.OTHER,
            "failed": _S.ERROR,
            **dict.fromkeys(("cancelled", "queued", "in_progress"), _S.ERROR),
        },
        "anthropic": {  # https://docs.anthropic.com/en/api/handling-stop-reasons
            "end_turn": _S.STOP,
            "stop_sequence": _S.STOP,
            "pause_turn": _S.OTHER,  # not an end: the server wants to go on
            "max_tokens": _S.LENGTH,
            "model_context_window_exceeded": _S.LENGTH,
            "tool_use": _S.TOOL_CALLS,
            "refusal": _S.REFUSED,
            "guardrail_intervened": _S.FILTERED,  # Bedrock
        },
        "gemini": {  # https://ai.google.dev/api/generate-content#FinishReason
            "stop": _S.STOP,
            "max_tokens": _S.LENGTH,
            "safety": _S.FILTERED,
            "recitation": _S.FILTERED,
            "language": _S.FILTERED,
            "blocklist": _S.FILTERED,
            "prohibited_content": _S.FILTERED,
            "spii": _S.FILTERED,
            "image_safety": _S.FILTERED,
            # The model wrote a call that is not valid: its own mistake.
            **dict.fromkeys(INVALID_CALLS, _S.TOOL_CALLS),
        },
        # https://docs.mistral.ai/api/#tag/chat
        "mistral": {"model_length": _S.LENGTH, "error": _S.ERROR},
        # https://api-docs.deepseek.com/api/create-chat-completion
        "deepseek": {"insufficient_system_resource": _S.ERROR},
        # https://docs.z.ai/api-reference/llm/chat-completion
        "zhipu": {"sensitive": _S.FILTERED, "network_error": _S.ERROR},
        "cohere": {  # https://docs.cohere.com/reference/chat
            "complete": _S.STOP,
            "error_toxic": _S.FILTERED,
            "error_limit": _S.LENGTH,
            "timeout": _S.ERROR,
            "user_cancel": _S.ERROR,
        },
        # https://huggingface.co/docs/text-generation-inference
        "tgi": {"eos_token": _S.STOP, "eos": _S.STOP},
        # https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
        "vllm": {"abort": _S.ERROR, "aborted": _S.ERROR},
    }
)
"""A provider's word for the end of an answer, in lower case. A word means the same in all formats:
compatible servers pass on words of the models behind them."""

_ANY_STOP = {word: reason for words in STOP_WORDS.values() for word, reason in words.items()}
_STOP_PARTS = (
    (_S.LENGTH, ("length", "max_token", "max_output", "context_window", "token_limit")),
    (_S.REFUSED, ("refus",)),
    (_S.FILTERED, ("filter", "safety", "blocked", "prohibited", "moderation", "sensitive")),
    (_S.FILTERED, ("recitation", "guardrail")),
    (_S.ERROR, ("error", "abort", "cancel", "resource")),
    (_S.TOOL_CALLS, ("tool", "function")),
    (_S.STOP, ("stop", "end_", "eos", "complete", "done")),
)


def stop_reason(word: object) -> StopReason:
    """Read a provider's reason why an answer ended; a word that is not known is ``other``.

    Examples
    --------
    >>> [str(stop_reason(word)) for word in ("max_tokens", "end_turn", "SAFETY", "model_length")]
    ['length', 'stop', 'filtered', 'length']
    >>> str(stop_reason("abort")), str(stop_reason("content_filtered")), str(stop_reason("42"))
    ('error', 'filtered', 'other')
    """
    text = str(word or "").lower().removeprefix("finishreason.")
    if text in _ANY_STOP:
        return _ANY_STOP[text]
    for reason, parts in _STOP_PARTS:
        if any(part in text for part in parts):
            return reason
    return StopReason.OTHER


ERROR_CODES: Mapping[str, Mapping[str, ErrorKind]] = MappingProxyType(
    {
        "openai errors": {  # https://platform.openai.com/docs/guides/error-codes
            "insufficient_quota": ErrorKind.ACCOUNT,
            "invalid_api_key": ErrorKind.ACCOUNT,
            "account_deactivated": ErrorKind.ACCOUNT,
            "billing_not_active": ErrorKind.ACCOUNT,
            "billing_hard_limit_reached": ErrorKind.ACCOUNT,
            "model_not_found": ErrorKind.ACCOUNT,
            "DeploymentNotFound": ErrorKind.ACCOUNT,
            "context_length_exceeded": ErrorKind.TOO_LONG,
            "string_above_max_length": ErrorKind.TOO_LONG,
            "exceed_context_size_error": ErrorKind.TOO_LONG,  # llama.cpp
            "unsupported_parameter": ErrorKind.REJECTED,
            "unsupported_value": ErrorKind.REJECTED,
            "content_filter": ErrorKind.FILTERED,
            "content_policy_violation": ErrorKind.FILTERED,
            "ResponsibleAIPolicyViolation": ErrorKind.FILTERED,
            "server_error": ErrorKind.BROKEN,
        },
        "anthropic errors": {  # https://docs.anthropic.com/en/api/errors
            "authentication_error": ErrorKind.ACCOUNT,
            "billing_error": ErrorKind.ACCOUNT,
            "permission_error": ErrorKind.ACCOUNT,
            "not_found_error": ErrorKind.ACCOUNT,
            "request_too_large": ErrorKind.TOO_LONG,
            "rate_limit_error": ErrorKind.BUSY,
            "overloaded_error": ErrorKind.BUSY,
            "timeout_error": ErrorKind.BROKEN,
            "api_error": ErrorKind.BROKEN,
        },
        "gemini errors": {  # https://ai.google.dev/gemini-api/docs/troubleshooting
            "UNAUTHENTICATED": ErrorKind.ACCOUNT,
            "UNAVAILABLE": ErrorKind.BUSY,
            "INTERNAL": ErrorKind.BROKEN,
            "CANCELLED": ErrorKind.BROKEN,
            "DEADLINE_EXCEEDED": ErrorKind.BROKEN,
        },
        # https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html
        "bedrock errors": {
            "AccessDeniedException": ErrorKind.ACCOUNT,
            "ExpiredTokenException": ErrorKind.ACCOUNT,
            "UnrecognizedClientException": ErrorKind.ACCOUNT,
            "ResourceNotFoundException": ErrorKind.ACCOUNT,
            "ServiceQuotaExceededException": ErrorKind.ACCOUNT,
            "ThrottlingException": ErrorKind.BUSY,
            "ModelNotReadyException": ErrorKind.BUSY,
            "ServiceUnavailableException": ErrorKind.BUSY,
            "ModelTimeoutException": ErrorKind.BROKEN,
            "ModelErrorException": ErrorKind.BROKEN,
            "InternalServerException": ErrorKind.BROKEN,
        },
    }
)
"""What an error's own code or type says; a code is believed before its status and its message, but
for one that means a broken server beside a status that blames the request (Ollama's api_error)."""

_MISROUTED = ErrorKind.MISROUTED
STATUS_KINDS: Mapping[int, ErrorKind] = MappingProxyType(
    {
        **dict.fromkeys((401, 402, 403, 404), ErrorKind.ACCOUNT),
        **dict.fromkeys((429, 503, 529), ErrorKind.BUSY),
        # 424: a model server behind the one that answers failed (Bedrock, TGI).
        # 499: the call was cancelled on its way (nginx, Google).
        **dict.fromkeys((408, 409, 424, 425, 499), ErrorKind.BROKEN),
        407: ErrorKind.ACCOUNT,  # a proxy asks for a password
        413: ErrorKind.TOO_LONG,
        # Of the way to the API, or of a proxy on it: no model's answer has them.
        **dict.fromkeys((405, 406, 411, 412, 414, 415, 417, 421, 426, 428, 431), _MISROUTED),
    }
)
"""What an HTTP status says where neither code nor message say more; 5xx are tried again."""

# Message text comes last: the same trouble has many statuses. Anthropic reports an empty account
# as 400, gateways a wrong model as 400 or even 200.
MONEY_OR_KEY = re.compile(
    r"insufficient[ _](?:quota|funds|credits?|balance)|credit balance|(?:out of|no|not enough|more)"
    r" credits?\b|exceeded your (?:current|monthly) (?:quota|budget|spend)|quota exceeded"
    r"|billing (?:hard )?limit|billing[ _](?:not[ _]active|account|details)|payment required"
    r"|(?:invalid|incorrect|missing|expired|revoked|unknown|no)[ _](?:x-)?api[ _-]?key|api[ _-]key "
    r"(?:not valid|is invalid|expired|not found|was revoked)|invalid[ _]authentication"
    r"|authentication[ _](?:error|failed)|unauthori[sz]ed|permission[ _]denied"
    r"|do(?:es)? not have access|(?:specified|API) usage limits?\b|service quota"
    r"|(?:account|organization)\b.{0,40}\b(?:deactivated|suspended|disabled|closed|not active"
    r"|blocked)",
    re.IGNORECASE | re.DOTALL,
)
NO_MODEL = re.compile(
    r"model[ _]not[ _]found|(?:model|deployment)\b.{0,80}\b(?:does not exist|doesn't exist|not "
    r"found|is not available|has been (?:deprecated|removed|retired))"
    r"|not a valid model|unknown model|no (?:such|endpoints found for) model"
    r"|model identifier is invalid|on-demand throughput isn.t supported",
    re.IGNORECASE | re.DOTALL,
)
ABOUT_TOOL = re.compile(r"\btools?\b|\bfunctions?\b|tool_call", re.IGNORECASE)
"""A message about a tool: "the model called a tool that was not found" is no missing model."""
PER_MINUTE = re.compile(
    r"per[ _-]?(?:minute|second|min\b|base[ _]model)|\b[RT]PM\b|requests? limit", re.IGNORECASE
)
"""A quota for a short time is worded like a spent one (Vertex, Gemini); it is waited for."""
TOO_LARGE = re.compile(
    r"request too large|too large for|reduce your prompt|requested \d+.{0,40}limit", re.IGNORECASE
)
"""A request above the limit per minute is refused however long one waits."""
TOO_LONG = re.compile(
    r"(?:prompt|input|request|messages?|conversation)\b.{0,40}\b(?:too (?:long|large|many tokens)"
    r"|exceeds?\b.{0,60}\b(?:tokens|context|length))|(?:maximum|model.?s) context|context (?:length"
    r"|window|size|limit)|reduce the length|too many input tokens",
    re.IGNORECASE | re.DOTALL,
)
"""A conversation that the model cannot take: of this task, not of the set-up."""
NO_ROOM = (
    # vLLM: 'max_tokens' is too large: 4096. This model's maximum context length is 2048 tokens and
    # your request has 100 input tokens (4096 > 2048 - 100).
    (re.compile(r"\(\d+ > (?P<most>\d+) - (?P<input>\d+)\)"), 0),
    # Anthropic: input length and `max_tokens` exceed context limit: 198000 + 4096 > 200000
    (re.compile(r"exceed context limit: (?P<input>\d+) \+ \d+ > (?P<most>\d+)"), 0),
    # OpenAI, DeepSeek, SGLang: maximum context length is 2048 tokens. However, you requested 5000
    # tokens (904 in the messages, 4096 in the completion): what is requested holds the limit.
    (
        re.compile(
            r"maximum context length (?:is|of) (?P<most>\d+).*?requested (?:a total of )?"
            r"(?P<input>\d+) tokens.*?completion",
            re.DOTALL,
        ),
        1,
    ),
    # TGI: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and ...
    (re.compile(r"must be <= (?P<most>\d+). Given: (?P<input>\d+) `inputs` tokens"), 0),
)
"""Refusals of a conversation that fits, with a limit of the answer that does not: how many tokens
the model takes and how many the conversation has, and whether the limit is among those."""
BUSY_TEXT = re.compile(
    r"rate.?limit|too many requests|overloaded|over capacity|at capacity|temporarily unavailable"
    r"|resource.?exhausted|server is busy|engine is (?:currently )?busy|try again (?:later|in)",
    re.IGNORECASE,
)
FILTER_TEXT = re.compile(
    r"content[ _-]?(?:filter|policy|management)|responsible ?ai|safety system|prohibited[ _]content"
    r"|moderation|usage polic",
    re.IGNORECASE,
)

_SETTINGS = (
    (
        r"max_completion_tokens|max_tokens|max_output_tokens|maxOutputTokens",
        "The limit of an answer: ?max_tokens=N and ?max_completion_tokens=N choose its field, "
        "?max_output_tokens=N only its size.",
    ),
    (r"\bseed\b", "Leave the seed out with ?seed=off."),
    (r"\btemperature\b", "Leave out --temperature, or give one that the model takes."),
    (r"\btop_?p\b", "Leave out top_p, or give one that the model takes."),
    (r"\bstream(?:_options)?\b", "Turn streaming off with ?stream=off."),
    (r"\bstop(?:_sequences)?\b", "Leave out ?stop=."),
    (r"response_format|json_schema|responseJsonSchema", "Leave out ?response_format=."),
    (r"reasoning_effort|thinking", "Leave out ?reasoning_effort= and ?thinking=."),
)
_REJECTS = re.compile(
    r"not support|unsupported|not allowed|not permitted|unknown|unrecognized|unexpected|invalid"
    r"|must be|out of range|too (?:large|high|big)|exceed|less than|greater than|at most"
    r"|maximum allowed|cannot",
    re.IGNORECASE,
)
_LEAST_ROOM = 16
"""Tokens; an answer with less room says nothing about the model."""


def limit_that_fits(detail: str, limit: int | None) -> int | None:
    """Return the tokens that a refusal leaves for the answer; ``None`` if it is no such refusal.

    0 is no room for an answer.

    Examples
    --------
    >>> limit_that_fits("exceed context limit: 198000 + 4096 > 200000", 4096)
    2000
    >>> limit_that_fits("prompt is too long: 210000 tokens > 200000 maximum", 4096)
    """
    for pattern, holds_limit in NO_ROOM:
        if limit is not None and (match := pattern.search(detail.replace(",", ""))):
            room = int(match["most"]) - int(match["input"]) + holds_limit * limit
            return room if _LEAST_ROOM <= room < limit else 0
    return None


def setting_hint(detail: str) -> str:
    """Return what to change where a message rejects a setting that passhat sends; else nothing."""
    if not _REJECTS.search(detail) or re.search("prompt|messages", detail, re.IGNORECASE):
        return ""
    return next((hint for pattern, hint in _SETTINGS if re.search(pattern, detail)), "")
