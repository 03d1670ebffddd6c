"""Reasons to stop a run whose other attempts would tell nothing, or only cost.

A set-up mistake ends a run after three attempts, before it reads as 0%: an agent that raises the
same exception at every prompt, returns something that is not text or nothing at all, is refused or
cut by the provider every time, or meets a judge that raises or returns no verdict. Six attempts
that all end by an error, each by another, end it as well. Such attempts are held back until one
ends in any other way; then the run goes on and the ends of attempts are not compared any more. A
run that is resumed begins anew: a key that worked for the attempts in the store may be missing now.

A wrong answer, however short and however often the same, is a result and ends no run.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from passhat._display import counted
from passhat._plugins import shorten_detail
from passhat.agents.base import ENDED, Agent
from passhat.agents.chat import ChatAgent
from passhat.errors import Hint, InvalidValue, RunStopped
from passhat.runner.budget import Budget
from passhat.stats.outcomes import FailureCategory, MissingReason, Verdict
from passhat.stats.outcomes.causes import VARIABLE_PARTS
from passhat.store import AttemptRecord
from passhat.suites.base import TaskCheck

_IN_A_ROW = 3
_OF_ALL_CAUSES = 6
"""Attempts that end a run if all of them raised or were not judged, each by its own cause."""
_MOST_HELD = 24
"""Attempts without any answer, of several causes: more of them are stored as they come."""
_VERBS: Mapping[str, str] = {
    FailureCategory.EXCEPTION: "raised",
    FailureCategory.AGENT_ERROR: "could not be started:",
    FailureCategory.FORMAT_ERROR: "gave no usable answer:",
    FailureCategory.COMMUNICATION_ERROR: "could not reach the agent:",
    FailureCategory.REFUSED: "got no answer:",
    FailureCategory.FILTERED: "got no answer:",
    FailureCategory.TRUNCATED: "got no whole answer:",
    FailureCategory.TIMEOUT: "got no answer in time:",
    MissingReason.JUDGE_ERROR: "could not be judged:",
    MissingReason.SANDBOX_ERROR: "could not be judged:",
    MissingReason.USER_ERROR: "had no user to talk to:",
    MissingReason.UNSUPPORTED: "cannot be made:",
    MissingReason.INFRASTRUCTURE: "could not be made:",
}
"""Ends that may be a set-up mistake, and the words for them. Limits of rate and money are none:
they pass, and ``give_up_after`` counts them."""
_BY_PROVIDER = (FailureCategory.REFUSED, FailureCategory.FILTERED, FailureCategory.TRUNCATED)
"""Answers that a model or its provider ended, whatever the words were."""
_EMPTY = "empty"
_SHOWN_BROKEN = 5
_ABOUT_ANSWERS = (
    *(FailureCategory.WRONG_ANSWER, FailureCategory.FORMAT_ERROR, FailureCategory.MISSING_OUTPUTS),
    *(FailureCategory.INCOMPLETE_OUTPUTS, FailureCategory.MISSING_ENTRY_POINT),
    *(FailureCategory.SYNTAX_ERROR, FailureCategory.UNKNOWN_FAILURE),
)
"""Verdicts on the answer. Where the state of a world is judged, an agent need not say anything."""
_UNREACHED = (
    *(FailureCategory.COMMUNICATION_ERROR, MissingReason.RATE_LIMIT, MissingReason.ACCOUNT),
    MissingReason.INFRASTRUCTURE,
)
"""How attempts end when the other side cannot be reached."""
_OWN_CODE = (
    *(FailureCategory.EXCEPTION, FailureCategory.AGENT_ERROR, FailureCategory.FORMAT_ERROR),
    MissingReason.JUDGE_ERROR,
)
"""Ends by the code of agent or judge; a network may recover after six attempts."""
_SILENT = (
    *(FailureCategory.EXCEPTION, FailureCategory.AGENT_ERROR, FailureCategory.COMMUNICATION_ERROR),
    *(FailureCategory.TIMEOUT, FailureCategory.FORMAT_ERROR),
)
"""Failures after which an agent had no chance to say what it used."""
_LONGEST_CAUSE = 240
_PLACE = re.compile(r"\((\S+\.py:\d+)\)$")


class Stop:
    """Asks a run to end: gently at first, then at once."""

    def __init__(self) -> None:
        self.asked = False
        self._now: Callable[[], object] | None = None

    def ask(self) -> None:
        """First call: start nothing new. Second call: abandon attempts in flight."""
        if self.asked and self._now is not None:
            self._now()
        self.asked = True

    def give_up(self) -> None:
        """Start nothing new, and abandon attempts in flight; the run reports the reason."""
        self.asked = True
        if self._now is not None:
            self._now()

    def start_nothing_new(self) -> None:
        """Start nothing new: the question is settled. Not a sign of impatience."""
        self.asked = True

    def when_impatient(self, now: Callable[[], object]) -> None:
        self._now = now


def refuse_broken(checks: Sequence[TaskCheck]) -> None:
    """Stop a run whose tasks cannot be attempted, before the first attempt.

    Raises
    ------
    InvalidValue
        Names the tasks and their problems.
    """
    broken = [check for check in checks if check.problems]
    if broken:
        lines = [f"{check.task}: {'; '.join(check.problems)}" for check in broken[:_SHOWN_BROKEN]]
        more = len(broken) - len(lines)
        rest = f"; and {counted(more, 'task')} more" if more > 0 else ""
        raise InvalidValue(
            f"{counted(len(broken), 'task')} cannot be attempted. {'; '.join(lines)}{rest}.",
            hint="passhat tasks --check SUITE shows every task.",
        )


class SetupMistake(RunStopped):
    """The first attempts of this invocation got no answer to judge: nothing of them is stored."""


class FirstAttempts:
    """Holds back attempts without a usable answer, until another shows that the set-up works."""

    def __init__(self, *, is_watching: bool) -> None:
        self._is_watching = is_watching
        self._held: list[AttemptRecord] = []
        self._has_stopped = False

    def take(self, records: list[AttemptRecord]) -> list[AttemptRecord]:
        """The attempts to store now.

        Raises
        ------
        SetupMistake
            Three attempts in a row had the same cause, or six raised or were not judged.
        """
        if self._has_stopped:
            return []
        if not self._is_watching:
            return records
        for position, record in enumerate(records):
            if _cause(record) is None or len(self._held) >= _MOST_HELD:
                self._is_watching = False
                return [*self.release(), *records[position:]]
            self._held.append(record)
            last_causes = [_cause(held) for held in self._held[-_IN_A_ROW:]]
            is_same = len(last_causes) == _IN_A_ROW and len(set(last_causes)) == 1
            own_code = sum(
                not held.is_judged and held.judgement.why in _OWN_CODE for held in self._held
            )
            if is_same or own_code == len(self._held) == _OF_ALL_CAUSES:
                raise self._stop()
        return []

    def release(self) -> list[AttemptRecord]:
        """The attempts held back, to be stored: the run is over, or works."""
        held, self._held = self._held, []
        return held

    def _stop(self) -> SetupMistake:
        """The error with the most common cause; of several, the latest."""
        held, self._held, self._has_stopped = self._held[::-1], [], True
        (cause, count), *others = Counter(map(_cause, held)).most_common()
        record = next(record for record in held if _cause(record) == cause)
        attempts = f"{count} of {counted(len(held), 'attempt')}"
        if others:  # "3 of 9 raised" alone would read as if 6 had worked
            attempts = f"none of the first {len(held)} attempts got a verdict: {count} of them"
        return SetupMistake(
            f"{attempts} {_sentence(record)}",
            hint=Hint(
                "Fix that and run the same command again: nothing of them is stored. {keep_going} "
                "counts such attempts, each for itself.",
                keep_going=True,
            ),
        )


def _sentence(record: AttemptRecord) -> str:
    """How an attempt ended, as the rest of a sentence that begins with attempts."""
    why = record.judgement.why
    detail = shorten_detail(record.judgement.detail, _LONGEST_CAUSE) or why.replace("_", " ")
    if _cause(record) == (_EMPTY, ""):
        return f"gave an empty answer: {detail}"
    verb = _VERBS[why]
    if why == FailureCategory.AGENT_ERROR and record.steps:  # it was started and asked
        return detail if detail.startswith(ENDED) else f"got an error from the agent: {detail}"
    if why == MissingReason.JUDGE_ERROR and not detail.startswith("the judge "):
        return f"{verb} the judge raised {detail}"
    return f"{verb} {detail}"


def _cause(record: AttemptRecord) -> tuple[str, str] | None:
    """The end of an attempt, if it may be a set-up mistake, in a form that can be compared.

    Category with the line of code, or with the message without its variable parts.
    """
    why, detail = record.judgement.why, record.judgement.detail
    if why in _BY_PROVIDER:
        return why, ""
    # A single answer in another form than the judge wants is an answer: wrong, but judged.
    is_unreadable = why == FailureCategory.FORMAT_ERROR and len(_answers(record)) > 1
    if record.is_judged and not is_unreadable:
        return (_EMPTY, "") if _is_empty(record) else None
    if why not in _VERBS or (why == FailureCategory.TIMEOUT and _answers(record)):
        return None  # a late answer in a conversation is no silent agent
    if place := _PLACE.search(detail):
        return why, f"{detail.partition(':')[0]} {place[1]}"
    return why, VARIABLE_PARTS.sub("*", detail)


def _answers(record: AttemptRecord) -> list[str]:
    return [entry["text"] for entry in record.transcript if entry["role"] == "agent"]


def _is_empty(record: AttemptRecord) -> bool:
    """Whether the agent said and did nothing, and that is why the attempt failed."""
    answers = _answers(record)
    return record.judgement.why in _ABOUT_ANSWERS and bool(answers) and not "".join(answers).strip()


class SilentAttempts:
    """Counts attempts in a row that got no answer at all; at a limit the rest only costs time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._in_a_row = 0

    def count(self, record: AttemptRecord) -> RunStopped | None:
        """Why the run ends with this attempt; ``None`` if it goes on."""
        is_silent = record.judgement.why in _UNREACHED and not _answers(record)
        self._in_a_row = self._in_a_row + 1 if is_silent else 0
        if not 0 < self._limit == self._in_a_row:
            return None
        why = ": ".join(part for part in (record.judgement.why, record.judgement.detail) if part)
        return RunStopped(
            f"{self._in_a_row} attempts in a row got no answer. The last one: {why}",
            hint="Fix that, then run the same command with --only-missing. "
            "--set give_up_after=N changes the limit.",
        )


def stop_on_account(record: AttemptRecord) -> None:
    """End the run if an attempt is missing because the account cannot be used."""
    if record.judgement.why == MissingReason.ACCOUNT:
        raise RunStopped(
            record.judgement.detail,
            hint="Check the key, the credit and the model's name; the same command continues.",
        )


def stop_on_unknown_use(agent: Agent, budget: Budget | None, record: AttemptRecord) -> None:
    """End a capped run whose agent does not report its usage."""
    if budget is None or record.judgement.verdict is Verdict.MISSING:
        return
    if isinstance(agent, ChatAgent) or record.judgement.why in _SILENT:
        return
    needs_cost = budget.cap.cost < math.inf
    if record.tokens is None or (needs_cost and record.cost is None):
        raise RunStopped(
            f"the cap cannot hold: {agent.name} does not say what "
            f"{'it costs' if record.tokens is not None else 'it uses'}.",
            hint="Return (text, Usage(tokens, cost)), or write to the meter parameter; prices of "
            "models can be set in passhat-prices.toml.",
        )
