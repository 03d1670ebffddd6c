"""SWE-bench: per-instance details of a submission, or what its harness writes."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from passhat.protocol import Protocol
from passhat.readers.base import ReadOptions
from passhat.readers.builder import LogBuilder, RunFacts, number_or_none
from passhat.readers.file_names import from_name
from passhat.readers.json_parts import outline
from passhat.readers.json_records import open_document, read_bytes
from passhat.readers.sources import Source
from passhat.readers.swe_bench_summary import is_summary, read_summary
from passhat.stats.outcomes import Run

__all__ = ["SweBenchReader"]

_FIRST_ENTRY = re.compile(rb'^\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*(?=\{)')
_OF_AN_INSTANCE = {"cost", "api_calls", "patch_exists", "patch_is_None", "tests_status"}
_DETAILS = "per_instance_details"


class _Instance(msgspec.Struct, rename={"no_patch": "patch_is_None"}):
    resolved: Any = None
    cost: Any = None
    api_calls: Any = None
    no_patch: Any = None
    patch_successfully_applied: Any = None


class _Entry(msgspec.Struct):
    """A row of the leaderboard around the details."""

    name: Any = None
    resolved: Any = None
    per_instance_details: dict[str, _Instance] | None = None


class SweBenchReader:
    """``{per_instance_details: {id: {resolved, cost, api_calls}}}``, that mapping, or a summary."""

    name = "swe_bench"

    def recognises(self, source: Source) -> bool:
        seen = source.outline
        if seen.opens != "{" or _DETAILS in seen.keys or is_summary(seen.keys):
            return seen.opens == "{"
        entry = _FIRST_ENTRY.match(source.head)
        inner = outline(source.head[entry.end() :]).keys if entry else frozenset()
        return "resolved" in inner and not _OF_AN_INSTANCE.isdisjoint(inner)

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        if is_summary(source.outline.keys):
            return read_summary(source, options)
        log = LogBuilder(source, "SWE-bench per-instance results", options)
        data = read_bytes(source, log)
        nested = b'"per_instance_details"' in data
        whole: type[Any] = _Entry if nested else dict[str, _Instance]
        document = open_document(
            data,
            log,
            whole=whole,
            item=_Instance,
            items=lambda found: found.per_instance_details if nested else found,
            paths=[(_DETAILS,)] if nested else [()],
            noun="instance",
        )
        for task, one in document.items:
            log.add(
                f"instance {task}",
                task,
                one.resolved,
                why="" if one.resolved else _why(one),
                steps=one.api_calls,
                cost=one.cost,
            )
        head = document.head if isinstance(document.head, _Entry) else _Entry()
        share = number_or_none(head.resolved)
        facts = RunFacts(
            str(head.name or _named(source)),
            Protocol(suite="SWE-bench"),
            says={} if share is None else {"accuracy": round(share / 100, 8)},
            reading=() if head.name else ("the log does not name the agent",),
        )
        return log.runs(lambda _: facts)


def _named(source: Source) -> str:
    """The file is called the same for everyone; the folder is not."""
    agent, _, _ = from_name(source)
    return source.path.resolve().parent.name if agent == _DETAILS else agent


def _why(one: _Instance) -> str:
    if one.resolved is None:
        return "not_recorded: resolved is null"
    if one.no_patch is True:
        return "missing_outputs: no patch"
    if one.patch_successfully_applied is False:
        return "format_error: the patch does not apply"
    return "unknown_failure: not resolved"
