"""inspect_ai: ``.eval`` files (zip) and ``.json`` logs, without importing inspect_ai.

The summaries of a ``.eval`` file hold all that is needed; full samples are opened only when a log
broke off before its summary was written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from passhat._display import counted
from passhat.errors import ReadError
from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.json_records import BROKEN, decode, open_document, open_list, read_bytes
from passhat.readers.parsing import (
    error_message,
    number_or_none,
    scalars,
    sum_numbers,
    transcript_entries,
    why_missing,
)
from passhat.readers.sources import Source
from passhat.readers.zip_members import BrokenMember, Members, is_zip
from passhat.stats.outcomes import Run

_HEADER, _START, _SUMMARIES = "header.json", "_journal/start.json", "summaries.json"
_JOURNAL, _SAMPLES = "_journal/summaries/", "samples/"
NO_DECODING = ("max_connections", "max_retries", "timeout", "attempt_timeout", "batch", "cache")
_METRICS = ("accuracy", "mean", "stderr")


class _Provenance(msgspec.Struct):
    timestamp: Any = None


class _Edit(msgspec.Struct):
    provenance: _Provenance | None = None


class _Score(msgspec.Struct):
    value: Any = None
    history: list[_Edit] | None = None


class _Usage(msgspec.Struct):
    total_tokens: Any = None
    total_cost: Any = None


class _Sample(msgspec.Struct):
    id: Any = None
    epoch: Any = None
    scores: dict[str, _Score] | None = None
    error: Any = None
    limit: Any = None
    model_usage: dict[str, _Usage] | None = None
    total_time: Any = None
    message_count: Any = None
    uuid: Any = None
    target: Any = None
    messages: msgspec.Raw = msgspec.Raw(b"[]")
    attachments: msgspec.Raw = msgspec.Raw(b"{}")


class _Config(msgspec.Struct):
    epochs: Any = None
    epochs_reducer: Any = None
    message_limit: Any = None
    time_limit: Any = None


class _Dataset(msgspec.Struct):
    name: Any = None
    sample_ids: list[Any] | None = None


class _Eval(msgspec.Struct):
    task: Any = None
    task_id: Any = None
    task_version: Any = None
    model: Any = None
    solver: Any = None
    model_generate_config: Any = None
    config: _Config | None = None
    dataset: _Dataset | None = None


class _Plan(msgspec.Struct):
    config: Any = None


class _Metric(msgspec.Struct):
    value: Any = None


class _Result(msgspec.Struct):
    name: Any = None
    scorer: Any = None
    reducer: Any = None
    metrics: dict[str, _Metric] | None = None


class _Results(msgspec.Struct):
    total_samples: Any = None
    scores: list[_Result] | None = None


class _Log(msgspec.Struct):
    status: Any = None
    eval: _Eval | None = None
    plan: _Plan | None = None
    results: _Results | None = None
    log_updates: list[_Edit] | None = None
    samples: list[_Sample] | None = None


class InspectReader(Reader):
    """Both forms of inspect_ai's log."""

    name = "inspect_ai"
    has_scorers = True

    def recognizes(self, source: Source) -> bool:
        if is_zip(source.head):
            return any(mark in source.head for mark in (b"_journal/", b"samples/", b"header.json"))
        outline = source.outline
        return (
            outline.opens == "{"
            and "eval" in outline.keys
            and ("status" in outline.keys or "plan" in outline.keys)
            and (b'"task_id"' in source.head or {"version", "samples"} <= outline.keys)
        )

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        log = LogBuilder(source, "inspect_ai log", options, order="trial")
        if is_zip(source.head):
            head, samples, members = _from_zip(source, log)
        else:
            head, samples, members = _from_json(source, log)
        scores = [sample.scores for sample in samples if sample.scores]
        task = head.eval.task if head.eval else None
        _refuse_header_only(head, samples, source)
        scorer = choose_scorer(scores, options.scorer_for(task), source.name)
        _refuse_categories(scores, scorer, source)
        latest = {(str(s.id), str(s.epoch)): index for index, s in enumerate(samples)}
        for index, sample in enumerate(samples):
            if latest[str(sample.id), str(sample.epoch)] != index:
                log.skip("an earlier try of a sample that was run again")
            else:
                with log.row(f"sample {sample.id}"):
                    _take(log, sample, scorer, members)
        _add_absent(log, head, latest)
        facts = _facts(head, samples, scorer, source)
        return log.runs(facts)


def _refuse_header_only(head: _Log, samples: list[_Sample], source: Source) -> None:
    total = number_or_none(head.results.total_samples) if head.results else None
    if samples or not total:
        return
    says, _ = _parse_stated_metrics(head, samples, "")
    accuracy = f", accuracy {says['accuracy']:.4g}" if "accuracy" in says else ""
    raise ReadError(
        f"holds the header of a log and none of its {counted(int(total), 'sample')}{accuracy}: "
        "without single "
        "attempts there is nothing to compute from.",
        source=source.name,
        hint="Read the log that inspect_ai wrote, with its samples (not one written with "
        "--no-log-samples or read with header_only).",
    )


def _refuse_categories(scores: list[dict[str, _Score]], scorer: str, source: Source) -> None:
    """Refuse a scorer whose values are words for kinds of answers: none of them is a pass."""
    values = [score_of(each, scorer) for each in scores] if scorer else []
    words = list(dict.fromkeys(value for value in values if isinstance(value, str)))
    if words and all(value_of(value) is None for value in values):
        raise ReadError(
            f"the scorer {scorer!r} gives categories ({', '.join(words[:6])}), not verdicts: which "
            "of them passes cannot be known.",
            source=source.name,
            hint="Score the log again with a scorer that gives C and I, or 1 and 0.",
        )


def _from_json(source: Source, log: LogBuilder) -> tuple[_Log, list[_Sample], Members | None]:
    document = open_document(
        read_bytes(source, log),
        log,
        whole=_Log,
        item=_Sample,
        items=lambda document: document.samples or [],
        paths=[("samples",)],
        noun="sample",
    )
    return document.head, [sample for _, sample in document.items], None


def _from_zip(source: Source, log: LogBuilder) -> tuple[_Log, list[_Sample], Members | None]:
    members = Members(source)
    if members.cut_off:
        log.lose("the end", "the zip file is cut off or its table of contents is broken", 0)
    head = next((h for name in (_HEADER, _START) if (h := _head(members, name, log))), _Log())
    if _SUMMARIES in members:
        samples = _summaries(members, _SUMMARIES, log)
        if samples is not None:
            return head, samples, members
    # A run that crashed leaves summaries in its journal, and perhaps samples not yet in there.
    journal = sorted(members.names(_JOURNAL), key=_number)
    samples = [s for name in journal for s in _summaries(members, name, log) or ()]
    members_in_journal = {_member(sample) for sample in samples}
    samples += _whole_samples(members, members_in_journal, log)
    return head, samples, members


def _head(members: Members, name: str, log: LogBuilder) -> _Log | None:
    if name not in members:
        return None
    try:
        return decode(members.read(name), _Log)
    except (BrokenMember, *BROKEN) as error:
        log.lose(name, f"cannot be read ({error})", 0)
        return None


def _summaries(members: Members, name: str, log: LogBuilder) -> list[_Sample] | None:
    try:
        data = members.read(name)
    except BrokenMember as error:
        log.lose(name, str(error), 0)
        return None
    return list(open_list(data, log, _Sample, f"{name}, sample"))


def _whole_samples(members: Members, known: set[str], log: LogBuilder) -> Iterator[_Sample]:
    for name in members.names(_SAMPLES):
        if name in known or not name.endswith(".json"):
            continue
        try:
            yield decode(members.read(name), _Sample)
        except (BrokenMember, *BROKEN) as error:
            log.lose(name, f"cannot be read ({error})")


def _take(log: LogBuilder, sample: _Sample, scorer: str, members: Members | None) -> None:
    value = score_of(sample.scores or {}, scorer) if scorer else None
    reward = value_of(value)
    why = ""
    if sample.error is not None and sample.error != "":
        reward, why = None, why_missing(error_message(sample.error))
    elif reward is None and isinstance(value, dict | list):
        why = "unsupported: the score is not a single value"
    elif reward is None:
        why = "not_recorded: no score"
    elif sample.limit:
        why = f"timeout: {_limit(sample.limit)} limit"
    usage = (sample.model_usage or {}).values()
    log.add(
        f"sample {sample.id}",
        sample.id,
        reward,
        trial=sample.epoch,
        why=why,
        seconds=sample.total_time,
        steps=sample.message_count,
        tokens=sum_numbers(model.total_tokens for model in usage),
        cost=sum_numbers(model.total_cost for model in usage),
        source_id=sample.uuid,
        transcript=f"sample {sample.id}, epoch {sample.epoch}"
        if members is None
        else _member(sample),
        conversation=_conversation(sample, members),
        expected=sample.target,
    )


def _conversation(sample: _Sample, members: Members | None) -> Iterator[tuple[str, str]]:
    """The messages of a sample; those of a zip file are in a member of their own."""
    if members is not None and (name := _member(sample)) in members:
        try:
            sample = decode(members.read(name), _Sample)
        except (BrokenMember, *BROKEN):
            return
    messages = decode(bytes(sample.messages), list)
    yield from transcript_entries(messages, decode(bytes(sample.attachments), dict))


def _add_absent(log: LogBuilder, head: _Log, present: dict[tuple[str, str], int]) -> None:
    """Add samples that were planned and never ran as missing attempts."""
    sample_ids = head.eval.dataset.sample_ids if head.eval and head.eval.dataset else None
    if head.status == "success" or not sample_ids:
        return
    reason = "stopped" if head.status == "cancelled" else "infrastructure"
    for epoch in range(1, _epochs(head) + 1):
        for name in sample_ids:
            if (str(name), str(epoch)) not in present:
                why = f"{reason}: the run ended before it"
                log.add("", name, None, trial=epoch, why=why, absent=True)


def _facts(head: _Log, samples: list[_Sample], scorer: str, source: Source) -> RunFacts:
    about = head.eval or _Eval()
    config = about.config or _Config()
    plan = head.plan.config if head.plan else None
    decoding = {
        **scalars(about.model_generate_config, *NO_DECODING),
        **scalars(plan, *NO_DECODING),
    }
    limit, seconds = number_or_none(config.message_limit), number_or_none(config.time_limit)
    status = str(head.status or "crashed: the log has no end")
    says, counts = _parse_stated_metrics(head, samples, scorer)
    provider, _, model = str(about.model or "").partition("/")
    return RunFacts(
        agent=_agent(about, source),
        protocol=Protocol(
            suite=str(about.task) if about.task else None,
            suite_fingerprint=f"version {about.task_version}" if about.task_version else None,
            attempts=_epochs(head) if config.epochs else None,
            decoding=decoding,
            max_steps=None if limit is None else int(limit),
            attempt_seconds=seconds,
            judge=scorer or None,
        ),
        says=says,
        counts=counts,
        reading=(f"status {status}", f"scorer {scorer}" if scorer else "nothing was scored"),
        guessed=str(about.model or "") in ("", "none/none") and not about.solver,
        origin=f"inspect_ai task {about.task_id}" if about.task_id else "",
        edited=_last_edit(head, samples),
        about={"model": model, "provider": provider} if model and provider != "none" else {},
    )


def _parse_stated_metrics(
    head: _Log, samples: list[_Sample], scorer: str
) -> tuple[dict[str, float], tuple[str, ...]]:
    """The metrics that the log prints, by passhat's names."""
    says: dict[str, float] = {}
    counts: list[str] = []
    last = scorer.rpartition("/")[2]
    results = (head.results.scores if head.results else None) or []
    for result in results:
        if len(results) > 1 and result.name not in (scorer, last) and result.scorer != scorer:
            continue
        reducer = str(result.reducer or "mean")
        for name in _METRICS:
            metric = (result.metrics or {}).get(name)
            value = number_or_none(metric.value) if metric else None
            if value is not None:
                says.setdefault(_metric_word(name, reducer), value)
        if reducer != "mean":
            counts.append(f"source reduces the epochs of a sample by {reducer!r}")
    total = number_or_none(head.results.total_samples) if head.results else None
    if total is not None and total > len(samples):
        counts.append(
            f"source counted {counted(int(total), 'sample')}, the file holds {len(samples):,}"
        )
    if any(value_of(score_of(s.scores or {}, scorer)) not in (0.0, 1.0, None) for s in samples):
        counts.append("source averages partial credit; here only a full score passes")
    if any(s.error for s in samples):
        counts.append("source leaves samples with an error out")
    return says, tuple(counts)


def _metric_word(name: str, reducer: str) -> str:
    word = "accuracy" if name == "mean" else name
    match = re.fullmatch(r"(?:passhat/)?pass_(at|k|hat)_(\d+)", reducer)
    if match and word == "accuracy":
        return f"pass{'@' if match[1] == 'at' else '^'}{match[2]}"
    return word if reducer == "mean" else f"{word} ({reducer})"


def _last_edit(head: _Log, samples: list[_Sample]) -> str:
    """When a person last changed a score or the log, in a form that sorts; empty for never."""
    edits = list(head.log_updates or ())
    for sample in samples:
        for score in (sample.scores or {}).values():
            edits += score.history or ()
    times = [str(edit.provenance.timestamp) for edit in edits if edit.provenance is not None]
    return max((_utc(at) for at in times), default="")


def _utc(time: str) -> str:
    try:
        at = datetime.fromisoformat(time)
    except ValueError:
        return ""
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


def _agent(about: _Eval, source: Source) -> str:
    model = str(about.model or "")
    if model in ("", "none/none"):
        return str(about.solver or model or source.stem)
    return model


def _epochs(head: _Log) -> int:
    config = head.eval.config if head.eval else None
    epochs = number_or_none(config.epochs) if config else None
    return int(epochs) if epochs and 1 <= epochs < 1e6 else 1


def _member(sample: _Sample) -> str:
    return f"{_SAMPLES}{sample.id}_epoch_{sample.epoch}.json"


def _number(name: str) -> int:
    digits = re.sub(r"\D", "", name)
    return int(digits[:18]) if digits else 0


def _limit(limit: object) -> object:
    return limit.get("type", "a") if isinstance(limit, dict) else limit


_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def value_of(value: object) -> float | None:
    """A score as a number: C is 1, P one half, I and N are 0; ``None`` is unscored."""
    if isinstance(value, bool | int | float):
        return None if value != value else float(value)
    if not isinstance(value, str):
        return None
    if value in _LETTERS:
        return _LETTERS[value]
    word = value.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        number = float(word)
    except ValueError:
        return None
    return None if number != number else number


def score_of(scores: Mapping[str, Any], scorer: str) -> object:
    """The value under a scorer's name; ``match/exact`` is one value of a scorer with several."""
    score = scores.get(scorer)
    if score is None and "/" in scorer:
        name, _, key = scorer.rpartition("/")
        score = scores.get(name)
        value = None if score is None else score.value
        return value.get(key) if isinstance(value, dict) else None
    return None if score is None else score.value


def choose_scorer(samples: Iterable[Mapping[str, Any]], scorer: str | None, source: str) -> str:
    """The scorer whose verdicts count; refuses when there are several and none was chosen.

    Returns "" when nothing was scored at all.
    """
    names: dict[str, None] = {}
    for scores in samples:
        for name, score in scores.items():
            keys = score.value if isinstance(score.value, dict) else {}
            names |= dict.fromkeys([f"{name}/{key}" for key in keys] or [name])
    if scorer is not None and names:
        matches = [name for name in names if scorer in (name, name.rpartition("/")[2])]
        if len(matches) == 1:
            return matches[0]
        raise ReadError(
            f"has no scorer called {scorer!r}.",
            source=source,
            hint=f"Choose with --scorer: {', '.join(names)}.",
        )
    if len(names) > 1:
        raise ReadError(
            f"was scored by {len(names)} scorers, and only one can decide what passed.",
            source=source,
            hint=f"Choose with --scorer: {', '.join(names)}. For one task of several: --scorer "
            f"{shlex.quote('TASK=' + next(iter(names)))}",
        )
    return next(iter(names), "")
