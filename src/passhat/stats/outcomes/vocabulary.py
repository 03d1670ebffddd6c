"""The vocabulary for how an attempt can end."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from types import MappingProxyType

from passhat.errors import InvalidValue


class Verdict(IntEnum):
    """How an attempt ended. The numbers are those stored in arrays."""

    PASSED = 1
    FAILED = 0
    MISSING = -1

    def __str__(self) -> str:
        return self.name.lower()


class FailureCategory(StrEnum):
    """Why an attempt failed: always the agent's doing."""

    FORMAT_ERROR = "format_error"
    MISSING_OUTPUTS = "missing_outputs"
    INCOMPLETE_OUTPUTS = "incomplete_outputs"
    WRONG_STATE = "wrong_state"
    POLICY_VIOLATION = "policy_violation"
    TASK_INCOMPLETE = "task_incomplete"
    TIMEOUT = "timeout"
    COMMUNICATION_ERROR = "communication_error"
    AGENT_ERROR = "agent_error"
    WRONG_ANSWER = "wrong_answer"
    EXCEPTION = "exception"
    SYNTAX_ERROR = "syntax_error"
    MISSING_ENTRY_POINT = "missing_entry_point"
    MEMORY = "memory"
    SANDBOX_VIOLATION = "sandbox_violation"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    FILTERED = "filtered"
    UNKNOWN_FAILURE = "unknown_failure"


class MissingReason(StrEnum):
    """Why an attempt has no verdict: never the agent's doing."""

    JUDGE_ERROR = "judge_error"
    JUDGES_DISAGREE = "judges_disagree"
    UNCONFIRMED = "unconfirmed"
    SANDBOX_ERROR = "sandbox_error"
    USER_ERROR = "user_error"
    RATE_LIMIT = "rate_limit"
    ACCOUNT = "account"
    TIMEOUT = "timeout"
    BUDGET = "budget"
    STOPPED = "stopped"
    UNSUPPORTED = "unsupported"
    INFRASTRUCTURE = "infrastructure"
    NOT_RECORDED = "not_recorded"


class Completion(StrEnum):
    """A way to fill in the attempts that have no verdict."""

    AS_FAILED = "as failed"
    AS_PASSED = "as passed"
    DROPPED = "dropped"


class MissingPolicy(StrEnum):
    """How an estimate treats missing attempts; part of the protocol.

    ``fail`` counts them as failed, ``exclude`` leaves them out, ``bound`` reports both ends:
    all of them failed, all of them passed.
    """

    FAIL = "fail"
    EXCLUDE = "exclude"
    BOUND = "bound"

    @classmethod
    def of(cls, word: str) -> MissingPolicy:
        """Turn a word into a policy, or raise InvalidValue with the known words."""
        try:
            return cls(word)
        except ValueError:
            choices = ", ".join(policy.value for policy in cls)
            raise InvalidValue(f"missing policy must be one of {choices}, not {word!r}.") from None

    @property
    def completion(self) -> Completion:
        """How the reported ``value`` is made; never the flattering way."""
        return Completion.DROPPED if self is MissingPolicy.EXCLUDE else Completion.AS_FAILED


_CATEGORY_ALIASES = MappingProxyType(
    {
        "white_agent_error": FailureCategory.AGENT_ERROR,
        "assertionerror": FailureCategory.WRONG_ANSWER,
        "syntaxerror": FailureCategory.SYNTAX_ERROR,
        "indentationerror": FailureCategory.SYNTAX_ERROR,
        "memoryerror": FailureCategory.MEMORY,
        "timed out": FailureCategory.TIMEOUT,
        "timeouterror": FailureCategory.TIMEOUT,
        "max_steps": FailureCategory.TIMEOUT,
    }
)


def failure_category(word: str) -> FailureCategory:
    """Map a source's word to the vocabulary.

    ``timeout: max_steps`` is a word of the vocabulary with the source's own reason behind it. The
    name of a Python exception is ``exception``, unless it says more; any other foreign word is
    ``unknown_failure``.
    """
    key = _key(word)
    if key in _CATEGORY_ALIASES:
        return _CATEGORY_ALIASES[key]
    if key in set(FailureCategory):
        return FailureCategory(key)
    if key.isidentifier() and key.endswith(("error", "exception")) and "_" not in key:
        return FailureCategory.EXCEPTION
    return FailureCategory.UNKNOWN_FAILURE


def missing_reason(word: str) -> MissingReason:
    """Map a source's word to the vocabulary; a foreign word is ``not_recorded``."""
    key = _key(word)
    return MissingReason(key) if key in set(MissingReason) else MissingReason.NOT_RECORDED


def source_words(word: str) -> str:
    """The source's own reason: ``max_steps`` of ``timeout: max_steps``."""
    _, sign, rest = word.partition(":")
    key = _key(word)
    is_standard = key in set(FailureCategory) or key in set(MissingReason)
    return rest.strip() if sign and is_standard else word


def _key(word: str) -> str:
    return word.partition(":")[0].strip().lower()
