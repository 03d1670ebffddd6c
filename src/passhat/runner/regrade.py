"""Judge stored attempts again without making them again.

A fresh world with the same seed receives the agent's stored answers, and its judge decides. That
is only done while the world replies, turn by turn, as it did then. Where it does not, or where an
answer was stored without a secret that stood in it, nothing is guessed: the attempt is reported as
not regradable and keeps its verdict.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from passhat._serialize import Plain
from passhat.errors import ReadError, shorten
from passhat.judging.bench import Bench
from passhat.judging.verdict import CodeVerdict
from passhat.runner.attempt import maybe_await
from passhat.runner.redaction import Redactor
from passhat.stats.labels.judge_error import AGAIN, CheckedAttempt
from passhat.stats.outcomes import FailureCategory, MissingReason, Verdict
from passhat.store import AttemptRecord, Ended, JudgementSource, RunRecord, Store, StoredJudgement
from passhat.store.labels import choose_anchors, save_anchor
from passhat.suites.base import REMARKS, Episode, Judgement, Suite, Task, Turn
from passhat.suites.code_samples import Sample, printable


def judge_into_store(
    bench: Bench, samples: Sequence[Sample], source: str, store: Store, name: str = ""
) -> tuple[str, int]:
    """Judge samples that the run lacks; returns its id and the number of reused verdicts.

    The run belongs to the file's name as its agent, and to suite, judge and ``name``.
    """
    record = RunRecord(Path(source).name.split(".")[0], bench.protocol(), _tasks(samples), name)
    counts = Counter(sample.task.id for sample in samples)
    store.begin(record, max(counts.values()))
    store.release(record.id, missing=True)
    by_place = {_place(sample): sample for sample in samples}
    reuse_count = _count_stored(store, record.id, by_place, source)
    stored_attempts = store.load_attempts(record.id)
    left = [place for place in by_place if place not in stored_attempts]
    claims = store.claim(record.id, left)
    try:
        for position, verdict in bench.verdicts(
            (by_place[place].task, by_place[place].program) for place in claims
        ):
            store.finish(record.id, [_attempt(by_place[claims[position]], verdict)])
    finally:
        store.release(record.id)
    return record.id, reuse_count


def _place(sample: Sample) -> tuple[str, int]:
    return sample.task.id, sample.trial + 1


def _tasks(samples: Sequence[Sample]) -> list[Task]:
    tasks = {sample.task.id: sample.task for sample in samples}
    return [
        Task(task.id, task.prompt or task.text, MappingProxyType(dict(task.labels)))
        for task in tasks.values()
    ]


def _count_stored(
    store: Store, run: str, samples: dict[tuple[str, int], Sample], source: str
) -> int:
    """How many were judged before; refuses a run that was made from other samples."""
    count = 0
    for block in store.rows(run):
        for task, number, *_, answer, _score, _labels in block:
            place = (str(task), int(str(number)))
            sample = samples.get(place)
            if sample is None or sample.fingerprint != answer:
                raise ReadError(
                    f"run {run} of {store.path} was made from another sample for "
                    f"{place[0]}#{place[1]}, so judging cannot go on there.",
                    source=source,
                    hint=f"Begin another run with --name, or remove it: passhat rm {run} "
                    f"--store {shlex.quote(store.path)}",
                )
            count += 1
    return count


def _attempt(sample: Sample, verdict: CodeVerdict) -> AttemptRecord:
    turns = [
        {"role": "user", "text": sample.task.prompt or sample.task.text},
        {"role": "agent", "text": printable(sample.raw or sample.program)},
    ]
    if sample.raw:
        turns.append({"role": "program", "text": printable(sample.program)})
    turns += [{"role": f"{name} judge", "text": words} for name, words in verdict.judges]
    return AttemptRecord(
        task=sample.task.id,
        number=sample.trial + 1,
        judgement=Judgement(verdict.verdict, verdict.category, verdict.detail),
        seconds=verdict.seconds,
        answer_hash=sample.fingerprint,
        transcript=turns,
    )


_REDACTED = "[redacted]"
_SECONDS = 600.0
_CUT_SHORT = (
    FailureCategory.TIMEOUT,
    MissingReason.INFRASTRUCTURE,
    MissingReason.STOPPED,
    MissingReason.BUDGET,
)
"""Ends of an attempt whose conversation would have gone on."""


class Outcome(StrEnum):
    """Result of judging an attempt again."""

    SAME = "same"
    CHANGED = "changed"
    NOT_JUDGED = "ended before the judge"
    NOT_REGRADABLE = "not regradable"
    HUMAN = "keeps a person's word"


@dataclass(frozen=True, slots=True)
class Regraded(Plain):
    """An attempt that was judged again; ``now`` is the new judgement, if there is one."""

    task: str
    number: int
    outcome: Outcome
    before: StoredJudgement
    now: StoredJudgement | None = None
    why: str = ""

    @property
    def id(self) -> str:
        return f"{self.task}#{self.number}"

    def _as_dict(self) -> dict[str, object]:
        return {
            "attempt": self.id,
            "outcome": str(self.outcome),
            "before": str(self.before),
            "now": None if self.now is None else str(self.now),
            "why": self.why or None,
        }


class _NotRegradable(Exception):
    """The attempt cannot be judged again; the message is the reason."""

    def __init__(self, why: str, outcome: Outcome = Outcome.NOT_REGRADABLE) -> None:
        super().__init__(why)
        self.why = why
        self.outcome = outcome


async def regrade(
    store: Store, run: str, suite: Suite, redact: Redactor, *, keep: bool = True, jobs: int = 8
) -> AsyncIterator[Regraded]:
    """Judge every finished attempt of a run again, ``jobs`` at a time.

    A verdict or category that changed is written beside the earlier ones, unless ``keep`` is false.
    """
    tasks = {task.id: task for task in suite.tasks}
    places = [(str(row[0]), int(str(row[1]))) for row in store.iterate_results(run)]
    try:
        for start in range(0, len(places), jobs):
            block = [store.attempt(run, *place) for place in places[start : start + jobs]]
            work = (
                _judge_again(attempt, tasks, suite, redact)
                for attempt in block
                if attempt is not None
            )
            for result in await asyncio.gather(*work):
                if result.outcome is Outcome.CHANGED and keep and result.now is not None:
                    store.add_judgement(run, result.task, result.number, result.now)
                yield result
    finally:
        await maybe_await(suite.close())


async def _judge_again(
    attempt: Ended, tasks: Mapping[str, Task], suite: Suite, redact: Redactor
) -> Regraded:
    """Judge one attempt again; without ``now`` where that is not possible."""
    before = attempt.said[-1]
    try:
        if before.source is JudgementSource.HUMAN:
            raise _NotRegradable("a person decided", Outcome.HUMAN)
        async with asyncio.timeout(_SECONDS):
            judgement = await _judge_answers(attempt, tasks, suite, redact)
    except _NotRegradable as reason:
        return Regraded(attempt.task, attempt.number, reason.outcome, before, why=reason.why)
    except TimeoutError:
        why = f"the judge did not answer within {_SECONDS:g} s"
        return Regraded(attempt.task, attempt.number, Outcome.NOT_REGRADABLE, before, why=why)
    now = StoredJudgement(
        judgement.verdict,
        judgement.why,
        redact(judgement.detail)[:500],
        JudgementSource.REGRADE,
        judge_fingerprint=suite.judge_fingerprint,
    )
    same = (now.verdict, now.why) == (before.verdict, before.why)
    outcome = Outcome.SAME if same else Outcome.CHANGED
    return Regraded(attempt.task, attempt.number, outcome, before, now)


async def _judge_answers(
    attempt: Ended, tasks: Mapping[str, Task], suite: Suite, redact: Redactor
) -> Judgement:
    """The judge's verdict on the stored answers."""
    turns, answers = _conversation(attempt)
    if attempt.task not in tasks:
        raise _NotRegradable(f"{suite.name} has no such task any more")
    if attempt.seed is None:
        raise _NotRegradable("the seed of its world is not recorded")
    try:
        episode = await maybe_await(suite.episode(tasks[attempt.task], attempt.seed))
        try:
            await _replay(episode, turns, answers, attempt, redact)
            judgement = Judgement.from_result(await maybe_await(episode.judge()))
        finally:
            await maybe_await(episode.close())
    except (_NotRegradable, TimeoutError):
        raise
    except Exception as error:  # the suite's own code broke: that is no verdict
        raise _NotRegradable(f"the judge broke: {type(error).__name__}: {error}") from None
    if judgement.verdict is Verdict.MISSING:
        raise _NotRegradable(f"the judge reached no verdict: {judgement.why}: {judgement.detail}")
    return judgement


def _conversation(attempt: Ended) -> tuple[list[str], list[str]]:
    """Messages to the agent, and its answers."""
    entries = [entry for entry in attempt.transcript if entry["role"] not in REMARKS]
    if not entries:
        raise _NotRegradable("no conversation is stored")
    if any(entry["role"] not in ("user", "agent") for entry in entries):
        raise _NotRegradable("tools were called beside the conversation")
    turns = [entry["text"] for entry in entries if entry["role"] == "user"]
    turns[:1] = [Turn(turns[0]).without_reference().text]  # the runner's word, not the world's
    answers = [entry["text"] for entry in entries if entry["role"] == "agent"]
    if len(answers) < len(turns):
        raise _NotRegradable(f"the agent never answered: {attempt.why}", Outcome.NOT_JUDGED)
    if any(_REDACTED in answer for answer in answers):
        raise _NotRegradable("a secret was removed from an answer, so it is not what the judge saw")
    return turns, answers


async def _replay(
    episode: Episode,
    turns: Sequence[str],
    answers: Sequence[str],
    attempt: Ended,
    redact: Redactor,
) -> None:
    """Play the answers; stop at the first turn that is not the stored one."""
    turn: Turn | None = await maybe_await(episode.open())
    for place, (message, answer) in enumerate(zip(turns, answers, strict=True), 1):
        if turn is None:
            raise _NotRegradable(f"the conversation now ends before answer {place}")
        if redact(turn.text) != message:
            raise _NotRegradable(
                f"turn {place} now reads {shorten(_first_difference(redact(turn.text), message))}, "
                f"then {shorten(_first_difference(message, redact(turn.text)))}"
            )
        turn = await maybe_await(episode.reply(answer))
    if turn is None:
        return
    if attempt.why in _CUT_SHORT:
        raise _NotRegradable(f"the conversation was cut short: {attempt.why}", Outcome.NOT_JUDGED)
    raise _NotRegradable("the conversation now goes on after the last answer")


def _first_difference(text: str, other: str) -> str:
    """The text from where it differs from another."""
    same = next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), None)
    return text[same if same is not None else min(len(text), len(other)) :]


# -- weak spots of a judge

_CONTRACTIONS = {
    "don't": "do not",
    "doesn't": "does not",
    "can't": "cannot",
    "isn't": "is not",
    "it's": "it is",
    "i'm": "I am",
    "you're": "you are",
    "we'll": "we will",
    "i'll": "I will",
    "that's": "that is",
}
_CONTRACTION = re.compile(rf"\b({'|'.join(_CONTRACTIONS)})\b", re.IGNORECASE)
_BULLET = re.compile(r"^\s*[-*•] ")


def _reword(text: str) -> str | None:
    """Contractions written out; nothing where there are none."""
    words = _CONTRACTION.sub(lambda match: _CONTRACTIONS[match[0].lower()], text)
    return words if words != text else None


def _reorder(text: str) -> str | None:
    """The points of a list in reverse order; nothing without a list."""
    lines = text.splitlines()
    places = [place for place, line in enumerate(lines) if _BULLET.match(line)]
    if len({lines[place] for place in places}) < 2:
        return None
    points = [lines[place] for place in places]
    for place, point in zip(places, reversed(points), strict=True):
        lines[place] = point
    return "\n".join(lines)


VARIANTS: Mapping[str, Callable[[str], str | None]] = MappingProxyType(
    {
        AGAIN: lambda text: text,
        "padded": lambda text: (
            f"Thank you for your question.\n\n{text}\n\nI hope this helps. "
            "Let me know if anything is unclear."
        ),
        "reformatted": lambda text: f"## Answer\n\n{text.strip()}\n",
        "reworded": _reword,
        "reordered": _reorder,
    }
)
"""Forms of an answer with the same content; ``None`` where a form does not apply."""


async def check_attempts(
    store: Store,
    run: str,
    suite: Suite,
    redact: Redactor,
    places: Sequence[tuple[str, int]],
    labels: Mapping[tuple[str, int], bool | None],
    jobs: int = 8,
) -> tuple[list[CheckedAttempt], int]:
    """Judge attempts again in every form; returns those that could be, and how many could not."""
    tasks = {task.id: task for task in suite.tasks}
    checked: list[CheckedAttempt] = []
    skipped = 0
    try:
        for start in range(0, len(places), jobs):
            ended = [store.attempt(run, *place) for place in places[start : start + jobs]]
            work = [_check(one, tasks, suite, redact, labels) for one in ended if one is not None]
            for result in await asyncio.gather(*work):
                if result is None:
                    skipped += 1
                else:
                    checked.append(result)
    finally:
        await maybe_await(suite.close())
    return checked, skipped


StoreCall = Callable[[Callable[[], Any]], Awaitable[Any]]


async def judge_anchors(
    store: Store, run: str, suite: Suite, redact: Redactor, call: StoreCall
) -> None:
    """Judge a few labeled attempts of an earlier run again, by the judge of this run.

    What cannot be judged again is left out; the run itself is not touched. ``call`` makes a call of
    the store.
    """
    tasks = {task.id: task for task in suite.tasks}
    anchors = await call(partial(choose_anchors, store, run, suite.name))
    for earlier, task, number in anchors:
        attempt = await call(partial(store.attempt, earlier, task, number))
        if attempt is None:
            continue
        # The judge's own word is compared, also where a person has decided since.
        result = await _judge_again(replace(attempt, said=attempt.said[:1]), tasks, suite, redact)
        if result.now is not None:
            passed = result.now.verdict is Verdict.PASSED
            await call(partial(save_anchor, store, earlier, task, number, run, passed=passed))


async def _check(
    attempt: Ended,
    tasks: Mapping[str, Task],
    suite: Suite,
    redact: Redactor,
    labels: Mapping[tuple[str, int], bool | None],
) -> CheckedAttempt | None:
    """The verdicts on every form of one attempt's answer; ``None`` if it cannot be judged again."""
    verdicts: dict[str, bool] = {}
    for name, change in VARIANTS.items():
        form = _with_answer(attempt, change)
        if form is None:
            continue
        result = await _judge_again(form, tasks, suite, redact)
        if result.now is not None:
            verdicts[name] = result.now.verdict is Verdict.PASSED
        elif name == AGAIN:
            return None
    # The run's own judge, also where a person or a later judge has decided since.
    return CheckedAttempt(
        f"{attempt.task}#{attempt.number}",
        attempt.said[0].verdict is Verdict.PASSED,
        verdicts,
        labels.get((attempt.task, attempt.number)),
    )


def _with_answer(attempt: Ended, change: Callable[[str], str | None]) -> Ended | None:
    """The attempt with its last answer in another form; only the judge's words are kept."""
    places = [i for i, entry in enumerate(attempt.transcript) if entry["role"] == "agent"]
    if not places:
        return None
    text = change(attempt.transcript[places[-1]]["text"])
    if text is None:
        return None
    transcript = [dict(entry) for entry in attempt.transcript]
    transcript[places[-1]]["text"] = text
    return replace(attempt, transcript=transcript, said=attempt.said[:1])
