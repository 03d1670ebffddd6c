"""A store as runs, so that every command can read the results of ``passhat run``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from passhat._display import counted, percent
from passhat.errors import ReadError
from passhat.judging import is_code_judge
from passhat.readers import base
from passhat.readers.base import (
    Needs,
    Reader,
    ReadOptions,
    is_counted,
    note_counted,
)
from passhat.readers.parsing import conversation_text, read_conversation
from passhat.readers.sources import Source
from passhat.stats.arrays import IntArray
from passhat.stats.outcomes import Aggregates, Attempt, Outcomes, Run, Verdict, no_answer_text
from passhat.stats.outcomes.attempts import MeasureColumns, describe_reason
from passhat.stats.outcomes.columns import SLICE_PREFIX, ColumnMap
from passhat.stats.outcomes.gathering import AttemptGatherer
from passhat.stats.outcomes.order import Scores
from passhat.stats.outcomes.rewards import COUNTED_SCORES, Unscored, grade
from passhat.store import (
    AttemptRecord,
    CallCounts,
    Origins,
    PlannedAttempts,
    RunRecord,
    Store,
    StoredRun,
    damage_reported,
    open_store,
)
from passhat.store.counting import has_graded_scores
from passhat.store.labels import (
    JudgeVotes,
    add_labels,
    label_texts,
    load_anchors,
    load_label_counts,
    load_votes,
    parse_labels,
    save_drawn_attempts,
)
from passhat.store.queries import Reading
from passhat.store.rows import unpack_transcript
from passhat.suites.base import DIFF, EXPECTED, GOT, RUBRIC_BY, Judgement, Task

if TYPE_CHECKING:
    from passhat.runner.redaction import Redactor

_MAGIC = b"SQLite format 3\x00"
_COLUMNS = (
    *("task", "trial", "success", "failure", "duration", "steps", "tokens", "cost", "seed"),
    *("answer_hash", "score"),
)
_KEPT = ("seed",)
"""Columns kept with an attempt that no statistic uses."""
_DETAILS = ("retries", "answer", "expected")
"""Further columns kept where details are needed."""
_CONVERSATIONS = ("conversation", "number", "cut")
"""Further columns kept where conversations are needed."""


class StoreReader(Reader):
    """passhat's own store."""

    name = "store"

    def recognizes(self, source: Source) -> bool:
        return bool(source.address) or source.head.startswith(_MAGIC)

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        place = source.address or str(source.path)
        with (
            damage_reported(place),
            open_store(place, must_exist=True, read_only=True) as store,
        ):
            # Fresh attempts of a gate belong to what another run shows; by its id one is read.
            runs = [run for run in store.runs() if not run.is_fresh]
            stored_runs = [store.find(source.part)] if source.part else runs
            needs = options.needs
            read_runs = [
                _as_streamed(store, run, place)
                if needs.streamed
                else run_from_store(store, run, needs)
                for run in stored_runs
                if run.attempts
            ]
        if not read_runs:
            raise ReadError("holds no finished attempt.", source=source.name)
        return read_runs


def run_from_store(store: Store, stored: StoredRun, needs: Needs | None = None) -> Run:
    """A run with its finished attempts, or with their counts when there are very many."""
    needs = _with_programs(store, stored, needs or Needs())
    if is_counted(stored.attempts, needs):
        outcomes, aggregates = outcomes_from(store, stored.id, stored.attempts, needs)
        if needs.scores and stored.attempts <= base.MOST_ATTEMPTS:
            outcomes = _add_scores(outcomes, store.load_scores(stored.id))
        else:
            outcomes = replace(outcomes, unscored=COUNTED_SCORES)
        run = _as_run(store, stored, outcomes, (note_counted(stored.attempts),))
        return replace(run, aggregates=aggregates)
    labels = dict.fromkeys(name for text in store.labels(stored.id) for name in json.loads(text))
    columns = ColumnMap.resolve([*_COLUMNS, *(SLICE_PREFIX + n for n in labels)])
    wants_more = needs.details or needs.conversations
    texts = label_texts(store._queries, store._key(stored.id)) if needs.details else {}
    extras = (
        *_KEPT,
        *(("labels",) if texts else ()),
        *(_DETAILS if needs.details else ()),
        *(_CONVERSATIONS if needs.conversations else ()),
    )
    gatherer = AttemptGatherer(columns, extras=extras, first_trial=1)
    labels_of: dict[str, dict[str, str]] = {}
    for rows in store.rows(stored.id, details=wants_more):
        cells: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)]
        task, number, verdict, *others, label = cells[:12]
        labels_of |= {text: json.loads(text) for text in set(label) - labels_of.keys()}
        success: list[object] = [None if value < 0 else value for value in verdict]
        block = dict(zip(_COLUMNS, (task, number, success, *others), strict=True))
        if wants_more:
            block["failure"] = _reasons(block["failure"], cells[12])
        if needs.details:
            block |= _details(*cells[13:15])
        if needs.conversations:
            block |= _conversations(number, *cells[14:])
        if texts:
            block["labels"] = [texts.get(place) for place in zip(task, number, strict=True)]
        block |= {
            SLICE_PREFIX + name: [labels_of[text].get(name) for text in label] for name in labels
        }
        gatherer.add(block)
    (gathered,) = gatherer.runs()
    outcomes = Outcomes.from_columns(gathered.columns)
    if stored.plan.source.get("order") == "unknown":
        outcomes = replace(outcomes, order=None)
    return replace(_as_run(store, stored, outcomes), attempts=gathered.attempts)


def _as_streamed(store: Store, stored: StoredRun, place: str) -> Run:
    """A run whose attempts are read when they are written, in memory that does not grow."""
    counts = store.counts(stored.id)
    outcomes = Outcomes.from_counts(
        counts.n, counts.c, counts.tasks, missing=counts.m, labels=_labels(counts.labels)
    )
    run = _as_run(store, stored, outcomes)
    return replace(run, stream=partial(_stream_rows, place, stored.id))


def _stream_rows(place: str, run: str) -> Iterator[dict[str, object]]:
    """The attempts of a run as :meth:`passhat.stats.outcomes.Run.iterate_rows` has them."""
    with damage_reported(place), open_store(place, must_exist=True, read_only=True) as store:
        key = store._key(run)
        texts = label_texts(store._queries, key)
        is_graded = has_graded_scores(store._stream, key)
        for block in store.rows(run, details=True):
            for cells in cast("list[tuple[Any, ...]]", block):
                task, number, verdict, why, seconds, steps, tokens, cost, seed = cells[:9]
                score, _, words, retries, body, _ = cells[10:]
                category, reason, detail = _describe_end(verdict, why, words)
                last = {} if body is None else _last_texts(body)
                if not is_graded or verdict < 0:
                    score = None
                else:
                    score = float(verdict) if score is None else min(max(score, 0.0), 1.0)
                row = {
                    "task": task,
                    "attempt": number,
                    "passed": None if verdict < 0 else verdict > 0,
                    "score": score,
                    "category": category,
                    "reason": reason,
                    "detail": detail,
                    "seconds": seconds,
                    "steps": steps,
                    "tokens": tokens,
                    "cost": cost,
                    "seed": None if seed is None else str(seed),
                    "retries": retries or 0,
                    "answer": last.get(GOT if DIFF in last else "agent", "").strip() or None,
                    "expected": last.get(EXPECTED, "").strip() or None,
                }
                if texts and (labels := texts.get((task, number))):
                    row["labels"] = labels
                yield row


@lru_cache(maxsize=1024)
def _describe_end(
    verdict: int, why: str | None, words: str | None
) -> tuple[str | None, str | None, str | None]:
    """Category of a failure, reason of a missing attempt, and the judge's words."""
    reason, detail = describe_reason(verdict, _join_reason(why, words).strip())
    return reason if verdict == 0 else None, reason if verdict < 0 else None, detail


def has_no_answer(store: Store, stored: StoredRun) -> bool:
    """Whether the agent itself broke in every judged attempt of a run."""
    if stored.passed or stored.attempts == stored.missing:
        return False
    counts_only = Needs(attempts=False, measures=False, answers=False)
    return bool(no_answer_text(run_from_store(store, stored, counts_only)))


def _reasons(why: Sequence[object], detail: list[Any]) -> list[object]:
    """The judge's words with the category."""
    return list(map(_join_reason, why, detail))


def _join_reason(word: Any, words: Any) -> str:
    return f"{word}: {words}" if word and words else word or words or ""


def _details(retries: list[Any], talk: list[Any]) -> dict[str, list[object]]:
    """Retries, the last words of the agent, or the summary of its diff; and the right words."""
    last_texts = [{} if body is None else _last_texts(body) for body in talk]
    return {
        "retries": [str(count or 0) for count in retries],
        "answer": [texts.get(GOT if DIFF in texts else "agent") for texts in last_texts],
        "expected": [texts.get(EXPECTED) for texts in last_texts],
    }


def _conversations(numbers: list[Any], talk: list[Any], cut: list[Any]) -> dict[str, list[object]]:
    """Conversations, and the number of each attempt, which its row alone does not tell."""
    texts: list[object] = []
    for body in talk:
        entries = () if body is None else unpack_transcript(bytes(body))
        texts.append(conversation_text((entry["role"], entry["text"]) for entry in entries))
    return {
        "conversation": texts,
        "number": [str(number) for number in numbers],
        "cut": ["" if count is None else str(count) for count in cut],
    }


def _last_texts(body: bytes) -> dict[str, str]:
    """The last text of every role in a conversation."""
    return {entry["role"]: entry["text"] for entry in unpack_transcript(bytes(body))}


def _with_programs(store: Store, stored: StoredRun, needs: Needs) -> Needs:
    """The needs, with single attempts for suites of programs, to count distinct programs."""
    programs = needs.answers and is_code_judge(store.protocol(stored.id).judge)
    return replace(needs, attempts=True) if programs else needs


def _as_run(
    store: Store, stored: StoredRun, outcomes: Outcomes, reading: tuple[str, ...] = ()
) -> Run:
    origins, leaks = store.origins(stored.id), store.leaks(stored.id)
    note = f"run {stored.id} of the store, started {stored.started}, {stored.status}"
    prices = _prices(store, stored)
    price_notes = tuple(f"cost at the prices of {tables}" for tables in prices.values())
    votes = _load_votes(store, stored)
    return Run(
        name=stored.title,
        agent=stored.agent,
        outcomes=outcomes,
        protocol=stored.plan.add_to_protocol(store.protocol(stored.id)),
        planned=_planned_attempts(stored.plan, outcomes),
        planned_for=str(stored.plan.source.get("metric", "")),
        source=store.path,
        id=stored.id,
        started=stored.started,
        about=_served(origins) | _revision(stored) | prices,
        notes=_conversation_notes(origins, has_leaks=bool(leaks)),
        messages=store.failure_messages(stored.id),
        same_answer=store._queries.find_same_answer(store._key(stored.id)),
        missing_details=store.missing_messages(stored.id),
        # A leak comes first: one-screen reports show only the first warning.
        warnings=(
            *_leak_warnings(leaks, stored),
            *_origin_warnings(origins),
            *_call_warnings(store.call_counts(stored.id)),
        ),
        reading=(note, *price_notes, *_vote_notes(votes), *reading),
        labels=load_label_counts(store._queries, store._key(stored.id)),
        judge_votes=_votes_by_attempt(votes),
        anchors=load_anchors(store._queries, stored.id) if votes else (),
    )


def _prices(store: Store, stored: StoredRun) -> dict[str, str]:
    """The tables that the cost comes from, with the date or version of their data."""
    sources = store.price_sources(stored.id)
    return {"prices": ", ".join(sources)} if sources else {}


def _load_votes(store: Store, stored: StoredRun) -> list[JudgeVotes]:
    """Votes of a judge that is a model; none of any other judge."""
    if RUBRIC_BY not in (store.protocol(stored.id).judge or ""):
        return []
    return load_votes(store._queries, store._key(stored.id))


def _vote_notes(votes: Sequence[JudgeVotes]) -> tuple[str, ...]:
    """How often a judge that is a model did not agree with itself, or named no verdict."""
    notes = []
    repeats = [one.votes for one in votes if len(one.votes) > 1]
    if repeats:
        split = sum(len(set(part)) > 1 for part in repeats)
        notes.append(
            f"the judge is a model: asked several times, it disagreed with itself on {split:,} of "
            f"{counted(len(repeats), 'judgement')} ({percent(split / len(repeats), 0)})"
        )
    for judge in dict.fromkeys(one.judge for one in votes if one.lost):
        lost = sum(one.lost for one in votes if one.judge == judge)
        total = lost + sum(len(one.votes) for one in votes if one.judge == judge)
        notes.append(f"{judge} named no verdict in {lost:,} of {counted(total, 'vote')}")
    return tuple(notes)


def _votes_by_attempt(votes: Sequence[JudgeVotes]) -> tuple[tuple[str, int, int], ...]:
    """(task, passes, votes) of each attempt, over all models that judged it."""
    counts: dict[tuple[str, int], tuple[int, int]] = {}
    for one in votes:
        passes, total = counts.get((one.task, one.number), (0, 0))
        counts[one.task, one.number] = (passes + sum(one.votes), total + len(one.votes))
    return tuple((task, *pair) for (task, _), pair in counts.items() if pair[1])


def _planned_attempts(planned: PlannedAttempts, outcomes: Outcomes) -> IntArray | None:
    """Attempts planned for each task, where they differ."""
    if not planned.by_task:
        return None
    return np.array([planned.of(task) for task in outcomes.tasks], np.int64)


_MANY_ENDINGS = 0.01
"""The share of answers from which an ending such as a cut is pointed out."""


def _call_warnings(counts: CallCounts) -> tuple[str, ...]:
    """How many answers of the models were cut, refused, filtered or empty."""
    low, high = counts.cut_at, counts.cut_at_most
    tokens = "the token limit" if low is None else f"{low:,} tokens"
    if low is not None and high is not None and high > low:
        tokens = f"{low:,} to {high:,} tokens"
    endings = (
        (counts.cut, f"were cut at {tokens}"),
        (counts.refused, "were refused by the model"),
        (counts.filtered, "were stopped by a content filter"),
        (counts.empty, "have no text (empty, or thinking only)"),
    )
    return tuple(
        f"{percent(count / counts.answers, 0)} of answers {what} ({count:,} of {counts.answers:,})"
        for count, what in endings
        if count and count / counts.answers >= _MANY_ENDINGS
    )


def _served(origins: Origins) -> dict[str, str]:
    """The models that answered, with the fingerprint of each that has only one."""
    fingerprints: dict[str, set[str]] = {}
    for pairs in origins.served:
        for model, fingerprint in pairs:
            fingerprints.setdefault(model, set()).add(fingerprint)
    names = [
        f"{model} ({only})" if len(ids) == 1 and (only := next(iter(ids))) else model
        for model, ids in sorted(fingerprints.items())
    ]
    return {"model_version": ", ".join(names)} if names else {}


def _revision(stored: StoredRun) -> dict[str, str]:
    return {"revision": stored.revision} if stored.revision else {}


def _origin_warnings(origins: Origins) -> tuple[str, ...]:
    """Attempts that other models answered than other attempts, or that share a conversation."""
    attempts = Counter[tuple[str, ...]]()
    for pairs, count in origins.served.items():
        attempts[tuple(sorted({model for model, _ in pairs}))] += count
    warnings = []
    # An agent may use several models, and not all of them every time.
    if any(not set(a) & set(b) for a, b in combinations(attempts, 2)):
        shares = ", ".join(
            f"{' and '.join(models)} ({counted(count, 'attempt')})"
            for models, count in attempts.most_common(4)
        )
        warnings.append(f"the model changed during the run: answered by {shares}")
    if shared := origins.contexts - origins.distinct_contexts:
        warnings.append(
            f"{counted(shared, 'attempt')} went on in the conversation of another attempt "
            f"({counted(origins.distinct_contexts, 'context id')} for {origins.contexts:,} "
            "attempts), so "
            "attempts were not fresh"
        )
    return tuple(warnings)


def _conversation_notes(origins: Origins, *, has_leaks: bool) -> tuple[str, ...]:
    """The evidence that attempts were fresh, where the run has any."""
    if origins.contexts and origins.contexts == origins.distinct_contexts and not has_leaks:
        return (
            f"every attempt began a new conversation: {counted(origins.contexts, 'context id')} of "
            f"the agent for {counted(origins.contexts, 'attempt')}",
        )
    if origins.references and not has_leaks:
        return (
            f"no attempt repeated what only another was told: {origins.references:,} carried a "
            "reference of their own",
        )
    return ()


def _leak_warnings(leaks: Sequence[tuple[str, int, str]], stored: StoredRun) -> tuple[str, ...]:
    """How many attempts repeated the reference that only another attempt was given."""
    if not leaks:
        return ()
    task, number, other = leaks[0]
    return (
        f"leak: in {len(leaks):,} of {counted(stored.attempts, 'attempt')} the agent repeated "
        "another "
        f"attempt's reference (first in {task}#{number}, from {other}), so attempts were not fresh "
        "and no number of this run is to be trusted",
    )


def run_from_counts(reading: Reading, key: int, stored: StoredRun) -> Run:
    """The run without its attempts; numbers from n, c and missing are the same as with them."""
    rows = reading.task_counts(key)
    outcomes = Outcomes.from_counts(
        [row.n for row in rows],
        [row.c for row in rows],
        [row.task for row in rows],
        missing=[row.missing for row in rows],
        labels=_labels([row.labels for row in rows]),
    )
    return Run(
        name=stored.title,
        agent=stored.agent,
        outcomes=outcomes,
        protocol=reading.plan_of(key).add_to_protocol(reading.protocol(key)),
        planned=_planned_attempts(reading.plan_of(key), outcomes),
        planned_for=str(reading.plan_of(key).source.get("metric", "")),
        source=reading.path,
        id=stored.id,
        started=stored.started,
        about=_revision(stored),
        messages=reading.failure_messages(key),
        same_answer=reading.find_same_answer(key),
        missing_details=reading.failure_messages(key, Verdict.MISSING),
        reading=(
            f"run {stored.id} of the store, started {stored.started}, {stored.status}",
            f"{counted(stored.attempts, 'attempt')}, counted per task and not read one by one",
        ),
        labels=load_label_counts(reading, key),
    )


_NO_ORDER = {"order": "unknown"}
"""Said by the plan of an imported run whose source does not tell which attempt came first."""


def import_run(store: Store, run: Run, taken: Collection[str] = ()) -> tuple[str, int]:
    """Write a run's attempts; returns its id in the store and how many attempts were new.

    The id follows from agent, protocol, name and source, so importing the same file again adds
    nothing. Where another run of the file has that id (``taken``) it gets the next, and where
    the file had a run that began at another time, as an artifact of last night, this time counts.
    """
    labels = run.outcomes.labels
    tasks = [
        Task(name, "", {label: values[i] for label, values in labels.items()})
        for i, name in enumerate(run.outcomes.tasks)
    ]
    record = RunRecord(
        *(run.agent, replace(run.protocol, attempts=None), tasks, run.name),
        selection=run.source,
        revision=run.about.get("revision", ""),
        started=run.started,
    )
    while record.id in taken:
        record = replace(record, selection=f"{record.selection} again")
    earlier = store.read("SELECT started FROM runs WHERE id = ?", (record.id,))
    if run.started and earlier and earlier[0][0] != run.started:
        record = replace(record, selection=f"{record.selection} {run.started}")
    attempts = list(run.attempts or ())
    most = max((attempt.number for attempt in attempts), default=0)
    source = {} if run.outcomes.order is not None else _NO_ORDER
    store.begin(record, PlannedAttempts(most, source=source))
    new_attempts = set(
        store.claim(record.id, [(attempt.task, attempt.number) for attempt in attempts])
    )
    new = [attempt for attempt in attempts if (attempt.task, attempt.number) in new_attempts]
    store.finish(record.id, map(attempt_record, new))
    _import_labels(store, record.id, attempts)
    return record.id, len(new)


@cache
def _redactor() -> Redactor:
    """The redactor, imported where a conversation is stored: it takes an eighth of a report."""
    from passhat.runner.redaction import Redactor

    return Redactor()


def _import_labels(store: Store, run: str, attempts: Sequence[Attempt]) -> None:
    """Write the labels and draws that attempts carry; those that are there already stay."""
    labels, draws = [], []
    for attempt in attempts:
        if text := attempt.extras.get("labels"):
            found, drawn = parse_labels(attempt.task, attempt.number, text)
            labels += found
            draws += drawn
    if draws:
        save_drawn_attempts(store, run, draws)
    if labels:
        add_labels(store, run, labels)


def attempt_record(attempt: Attempt) -> AttemptRecord:
    """An attempt that was read, as the store keeps it."""
    why = "" if attempt.verdict is Verdict.PASSED else attempt.why or ""
    measures = attempt.measures
    return AttemptRecord(
        attempt.task,
        attempt.number,
        Judgement(attempt.verdict, why, attempt.detail or "", attempt.score),
        seconds=measures.get("seconds"),
        steps=measures.get("steps"),
        tokens=measures.get("tokens"),
        cost=measures.get("cost"),
        retries=int(retries) if (retries := attempt.extras.get("retries", "")).isdecimal() else 0,
        transcript=[
            {"role": role, "text": _redactor().shorten(text)}
            for role, text in read_conversation(attempt.extras.get("conversation", ""))
        ],
    )


def outcomes_from(
    store: Store, run: str, attempts: int, needs: Needs
) -> tuple[Outcomes, Aggregates]:
    """Outcomes and aggregates for the statistics, from a store's own counts."""
    counts = store.counts(run)
    outcomes = Outcomes.from_counts(
        counts.n, counts.c, counts.tasks, missing=counts.m, labels=_labels(counts.labels)
    )
    few_enough = attempts <= base.MOST_ATTEMPTS
    return outcomes, Aggregates(
        counts.reasons,
        store.measure_sums(run) if needs.measures else {},
        store.count_same_answers(run) if needs.answers and few_enough else None,
        store.load_measures(run) if needs.spread and few_enough else None,
    )


def _add_scores(outcomes: Outcomes, columns: MeasureColumns | None) -> Outcomes:
    """The outcomes with the scores of their attempts, where there are any."""
    if columns is None:
        return outcomes
    values, remarks = grade(columns.measures["score"], columns.verdicts, None)
    if values is None:
        return replace(outcomes, unscored=Unscored.of(values, remarks), binary_scores=True)
    return replace(outcomes, scores=Scores(values, columns.starts))


def _labels(texts: Sequence[str]) -> dict[str, list[str]]:
    """Slices from the labels of every task as JSON; few of them differ."""
    labels_of = {text: json.loads(text) for text in set(texts)}
    names = dict.fromkeys(name for text in dict.fromkeys(texts) for name in labels_of[text])
    return {name: [str(labels_of[text].get(name, "")) for text in texts] for name in names}
