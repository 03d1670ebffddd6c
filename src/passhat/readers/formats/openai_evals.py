"""OpenAI evals: a line per event; a ``match`` event is a verdict."""

from __future__ import annotations

from typing import Any

import msgspec

from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.json_records import json_lines
from passhat.readers.parsing import numbers_in, scalars, why_missing
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run

_OTHER = "an event that is not a verdict"


class _Data(msgspec.Struct):
    correct: Any = None
    choice: Any = None
    score: Any = None
    error: Any = None
    message: Any = None
    sampled: Any = None


class _RunConfig(msgspec.Struct):
    seed: Any = None


class _Spec(msgspec.Struct):
    completion_fns: list[Any] | None = None
    model_name: Any = None
    eval_name: Any = None
    run_id: Any = None
    run_config: _RunConfig | None = None


class _Event(msgspec.Struct):
    spec: _Spec | None = None
    final_report: Any = None
    sample_id: Any = None
    type: Any = None
    data: _Data | None = None


class OpenAiEvalsReader(Reader):
    """``spec`` first, then events ``sampling``, ``match`` and others, and a ``final_report``."""

    name = "openai_evals"

    def recognizes(self, source: Source) -> bool:
        outline = source.outline
        spec = "spec" in outline.keys and b'"completion_fns"' in source.head
        event = {"run_id", "event_id", "type", "data"} <= outline.keys
        return outline.opens == "{" and (spec or event)

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        log = LogBuilder(source, "OpenAI evals events", options)
        spec, report = _Spec(), None
        unjudged: dict[str, int] = {}
        for line, event in json_lines(source, log, _Event):
            spec = event.spec or spec
            report = event.final_report or report
            with log.row(f"line {line}"):
                _take(log, line, event, unjudged)
        for sample, line in unjudged.items():
            # Sampled and never judged: the log breaks off, or the judge did.
            why = "not_recorded: sampled and not judged"
            log.add(f"line {line}", sample, None, why=why, absent=True)
        facts = _facts(spec, report, source)
        return log.runs(facts)


def _take(log: LogBuilder, line: int, event: _Event, unjudged: dict[str, int]) -> None:
    where, data = f"line {line}", event.data or _Data()
    if event.type == "match" or (event.type == "metrics" and data.score is not None):
        unjudged.pop(str(event.sample_id), None)
        verdict = data.correct if event.type == "match" else data.score
        why = "" if verdict else "wrong_answer: "
        why = "judge_error: no verdict" if verdict is None else why
        answer = data.sampled if isinstance(data.sampled, str) else None
        log.add(where, event.sample_id, verdict, why=why, answer=answer)
    elif event.type == "error":
        unjudged.pop(str(event.sample_id), None)
        why = why_missing(data.message or data.error or "an error")
        log.add(where, event.sample_id, None, why=why)
    else:
        if event.type == "sampling" and event.sample_id is not None:
            unjudged.setdefault(str(event.sample_id), line)
        log.skip(_OTHER if event.type else "an event about the whole run")


def _facts(spec: _Spec, report: object, source: Source) -> RunFacts:
    functions = [str(name) for name in spec.completion_fns or []]
    numbers = numbers_in(scalars(report))
    metric = next((name for name in ("accuracy", "score") if name in numbers), None)
    seed = spec.run_config.seed if spec.run_config else None
    return RunFacts(
        agent=", ".join(functions) or str(spec.model_name or source.stem),
        protocol=Protocol(
            suite=str(spec.eval_name) if spec.eval_name else None,
            decoding={"seed": seed} if isinstance(seed, int) else {},
        ),
        guessed=not functions and not spec.model_name,
        says={} if metric is None else {metric: numbers[metric]},
        origin=f"OpenAI evals run {spec.run_id}" if spec.run_id else "",
    )
