"""HumanEval: ``_results.jsonl``, one line per completion, in the order of attempts."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.identity import from_name
from passhat.readers.json_records import json_lines
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run

# The parser's messages carry no name of an exception, only the place in the generated text.
_SYNTAX = re.compile(r"\(<string>, line \d+\)|invalid syntax|unexpected (indent|EOF|character)")
_NAMED = re.compile(r"(\w+(?:Error|Exception|Exit|Interrupt))\b")
_OWN_ASSERT = re.compile(r"This prints if this assert fails|^Test \d+|^Error$")


class _Row(msgspec.Struct):
    task_id: Any = None
    completion: Any = None
    result: Any = None
    passed: Any = None


class HumanEvalReader(Reader):
    """``{task_id, completion, result, passed}`` per line; other columns are ignored."""

    name = "human_eval"

    def recognizes(self, source: Source) -> bool:
        outline = source.outline
        # A table with columns for model or trial holds more than this reader would read.
        table = not outline.keys.isdisjoint({"model", "agent", "trial"})
        has_fields = {"task_id", "completion", "result", "passed"} <= outline.keys
        return outline.opens == "{" and has_fields and not table

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        log = LogBuilder(source, "HumanEval results", options)
        for line, row in json_lines(source, log, _Row):
            log.add(
                f"line {line}",
                row.task_id,
                row.passed,
                why="" if row.passed is True else _why(row),
                answer=row.completion,
            )
        agent, decoding, notes = from_name(source)
        facts = RunFacts(
            agent, Protocol(suite="HumanEval", decoding=decoding), reading=notes, guessed=True
        )
        return log.runs(facts)


def _why(row: _Row) -> str:
    """The category behind human-eval's message, with the message."""
    result = str(row.result or "")
    if row.passed is None:
        return f"judge_error: {result or 'not run'}"
    if result.startswith("timed out"):
        return "timeout: timed out"
    message = result.removeprefix("failed:").strip()
    if message == "" or message.startswith("AssertionError") or _OWN_ASSERT.search(message):
        return f"wrong_answer: {message or 'an assertion failed'}"
    if _SYNTAX.search(message) or message.startswith(("SyntaxError", "IndentationError")):
        return f"syntax_error: {message}"
    if message.startswith("MemoryError"):
        return f"memory: {message}"
    exception = _NAMED.match(message)
    return f"exception: {exception[1] if exception else message}"
