"""LiveCodeBench: ``eval_all.json``, one entry per question with the verdicts of its attempts."""

from __future__ import annotations

from typing import Any

import msgspec

from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.identity import from_name
from passhat.readers.json_records import BROKEN, decode, open_list, read_bytes
from passhat.readers.parsing import number_or_none
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run

# LiveCodeBench's own error codes.
_CODES = {-1: "syntax_error", -2: "wrong_answer", -3: "timeout", -4: "exception"}


class _Question(msgspec.Struct):
    question_id: Any = None
    platform: Any = None
    difficulty: Any = None
    graded_list: list[Any] | None = None
    code_list: list[Any] | None = None
    metadata: Any = None
    pass_1: Any = msgspec.field(default=None, name="pass@1")


class _Metadata(msgspec.Struct):
    error_code: Any = None
    error_message: Any = None


class LiveCodeBenchReader(Reader):
    """``[{question_id, graded_list, ...}]``; -1 in a graded list was not run."""

    name = "livecodebench"

    def recognizes(self, source: Source) -> bool:
        outline = source.outline
        return (
            outline.opens == "["
            and "question_id" in outline.keys
            and (not outline.keys.isdisjoint({"graded_list", "contest_id", "code_list"}))
        )

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        slices = ("difficulty", "platform")
        log = LogBuilder(source, "LiveCodeBench results", options, slices=slices)
        records = open_list(read_bytes(source, log), log, _Question, "question")
        rates = []
        for number, question in enumerate(records, 1):
            with log.row(f"question {number}"):
                _take(log, number, question)
                rates.append(number_or_none(question.pass_1))
        stated_rates = [value for value in rates if value is not None]
        agent, decoding, notes = from_name(source)
        facts = RunFacts(
            agent,
            Protocol(suite="LiveCodeBench", decoding=decoding),
            says={"pass@1": sum(stated_rates) / len(stated_rates)} if stated_rates else {},
            reading=notes,
            guessed=True,
        )
        return log.runs(facts)


def _take(log: LogBuilder, number: int, question: _Question) -> None:
    where = f"question {number}"
    if not question.graded_list:
        log.lose(where, "has no verdicts (graded_list)")
        return
    details = question.metadata if isinstance(question.metadata, list) else []
    codes = question.code_list or []
    for index, grade in enumerate(question.graded_list):
        ran = grade != -1
        detail = details[index] if index < len(details) else None
        log.add(
            f"{where}, attempt {index + 1}",
            question.question_id,
            grade if ran else None,
            why=("" if grade is True else _why(detail)) if ran else "not_recorded: not run",
            answer=codes[index] if index < len(codes) else None,
            labels=(question.difficulty, question.platform),
        )


def _why(detail: object) -> str:
    """The category of a failed attempt; its details are JSON inside a string."""
    try:
        metadata = (
            decode(detail.encode(), _Metadata)
            if isinstance(detail, str)
            else msgspec.convert(detail, _Metadata)
        )
    except (*BROKEN, msgspec.ValidationError):
        return ""
    category = _CODES.get(metadata.error_code) if isinstance(metadata.error_code, int) else None
    return f"{category or 'unknown_failure'}: {metadata.error_message or ''}" if category else ""
