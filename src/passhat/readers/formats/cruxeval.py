"""CRUXEval: per task a list of answers and a list of verdicts, not equally long everywhere."""

from __future__ import annotations

from typing import Any

import msgspec

from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.identity import from_name
from passhat.readers.json_records import BROKEN, decode, open_document, read_bytes
from passhat.readers.parsing import numbers_in
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run

_PREFIX = "pass_at_"


class _Results(msgspec.Struct):
    raw_generations: dict[str, msgspec.Raw] | None = None
    raw_scored_generations: dict[str, list[Any]] | None = None
    pass_at_1: Any = None
    pass_at_5: Any = None
    pass_at_10: Any = None


class CruxEvalReader(Reader):
    """``{raw_generations, raw_scored_generations, pass_at_1, pass_at_5}``."""

    name = "cruxeval"

    def recognizes(self, source: Source) -> bool:
        outline = source.outline
        return outline.opens == "{" and (
            not outline.keys.isdisjoint({"raw_scored_generations", "raw_generations"})
        )

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        log = LogBuilder(source, "CRUXEval results", options)
        document = open_document(
            read_bytes(source, log),
            log,
            whole=_Results,
            item=list[Any],
            items=lambda document: document.raw_scored_generations or {},
            paths=[("raw_scored_generations",)],
            noun="task",
        )
        answers = document.head.raw_generations or {}
        for task, verdicts in document.items:
            if not verdicts:
                log.lose(f"task {task}", "has no verdicts")
            texts = _answers(answers.get(task))
            for index, verdict in enumerate(verdicts):
                log.add(
                    f"task {task}, answer {index + 1}",
                    task,
                    verdict,
                    why="" if verdict else "wrong_answer: ",
                    answer=texts[index] if index < len(texts) else None,
                )
        agent, decoding, notes = from_name(source)
        kind = next((kind for kind in ("input", "output") if f"_{kind}" in source.path.name), "")
        facts = RunFacts(
            agent,
            Protocol(suite="CRUXEval" + (f"/{kind}" if kind else ""), decoding=decoding),
            says=_parse_stated_metrics(document.head),
            counts=("source counts pass@k as 1 for a task with fewer than k attempts",),
            reading=notes,
            guessed=True,
        )
        return log.runs(facts)


def _answers(raw: msgspec.Raw | None) -> list[Any]:
    """The answers to a task, decoded one task at a time to save memory."""
    try:
        return [] if raw is None else decode(bytes(raw), list[Any])
    except BROKEN:
        return []


def _parse_stated_metrics(head: _Results) -> dict[str, float]:
    """The scores that the file states, which are in percent."""
    percents = numbers_in({k: getattr(head, f"{_PREFIX}{k}") for k in ("1", "5", "10")})
    return {f"pass@{k}": percent / 100 for k, percent in percents.items()}
