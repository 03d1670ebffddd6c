"""The summary that SWE-bench's harness writes at the end: which instances came to what, as lists.

``{total_instances, submitted_ids, completed_ids, resolved_ids, unresolved_ids, empty_patch_ids,
error_ids, incomplete_ids, ...}``. Files of earlier versions and of other tools lack some of the
lists, so an instance counts by the first list here that names it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.protocol import Protocol
from passhat.readers.base import ReadOptions
from passhat.readers.builder import LogBuilder, RunFacts, number_or_none
from passhat.readers.file_names import from_name
from passhat.readers.json_records import open_document, read_bytes
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run

__all__ = ["is_summary", "read_summary"]

_COUNTS = {"submitted_instances", "resolved_instances"}

# Who broke an evaluation is not told: a patch that does not apply ends there as well.
_ENDS: tuple[tuple[str, bool | None, str], ...] = (
    ("resolved_ids", True, ""),
    ("unresolved_ids", False, "unknown_failure: not resolved"),
    ("empty_patch_ids", False, "missing_outputs: no patch"),
    ("error_ids", None, "judge_error: the harness reports an error, its own or the patch's"),
    ("completed_ids", False, "unknown_failure: completed, and not resolved"),
    ("submitted_ids", False, "unknown_failure: submitted, and not resolved"),
)


class _Summary(msgspec.Struct):
    resolved_ids: list[str] = msgspec.field(default_factory=list)
    unresolved_ids: list[str] = msgspec.field(default_factory=list)
    empty_patch_ids: list[str] = msgspec.field(default_factory=list)
    error_ids: list[str] = msgspec.field(default_factory=list)
    completed_ids: list[str] | None = None
    submitted_ids: list[str] = msgspec.field(default_factory=list)
    incomplete_ids: list[str] = msgspec.field(default_factory=list)
    resolved_instances: Any = None
    total_instances: Any = None


def is_summary(keys: frozenset[str]) -> bool:
    """Whether a document with these keys is one; the lists may stand far behind the counts."""
    return "resolved_ids" in keys or keys >= _COUNTS


def read_summary(source: Source, options: ReadOptions) -> list[Run]:
    """One attempt per instance that was submitted."""
    log = LogBuilder(source, "SWE-bench summary", options)
    data = read_bytes(source, log)
    nothing = open_document(
        data, log, whole=_Summary, item=dict, items=lambda _: [], paths=[], noun="instance"
    )
    found = nothing.head
    known: set[str] = set()
    for name, verdict, why in _ENDS:
        if name == "submitted_ids" and found.completed_ids is not None:
            verdict, why = None, "not_recorded: submitted, and never completed"
        for task in getattr(found, name) or ():
            if task not in known:
                known.add(task)
                log.add(f"instance {task}", task, verdict, why=why)
    if known and known == set(found.resolved_ids) and not _is_all(found):
        raise ReadError(
            f"names {len(known)} resolved instances and no others: a share of what cannot be told.",
            source=source.name,
            hint="Give the harness's own file, which also has submitted_ids, or unresolved_ids.",
        )
    never = [task for task in found.incomplete_ids if task not in known]
    if never:
        log.skip("an instance for which nothing was submitted", len(never))
    agent, _, reading = from_name(source)
    resolved, total = map(number_or_none, (found.resolved_instances, found.total_instances))
    facts = RunFacts(
        _without_run(agent),
        Protocol(suite="SWE-bench"),
        says={"accuracy": resolved / total} if resolved is not None and total else {},
        reading=(*reading, "one attempt per instance: how much attempts differ is not in it"),
    )
    return log.runs(lambda _: facts)


def _is_all(found: _Summary) -> bool:
    """Whether it is said that the resolved instances are all there were."""
    resolved = set(found.resolved_ids)
    return resolved == {*found.submitted_ids, *(found.completed_ids or ())} or (
        number_or_none(found.total_instances) == len(resolved)
    )


def _without_run(name: str) -> str:
    """The harness calls its file MODEL.RUN.json; ``gpt-4.1`` alone is a model."""
    model, _, run = name.rpartition(".")
    return model if model and not run.isdigit() else name
