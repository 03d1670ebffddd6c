"""SWE-bench: per-instance details of a submission, or the files of its harness."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.identity import from_name
from passhat.readers.json_records import open_document, read_bytes
from passhat.readers.parsing import number_or_none, outline
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run

_FIRST_ENTRY = re.compile(rb'^\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*(?=\{)')
_OF_AN_INSTANCE = {"cost", "api_calls", "patch_exists", "patch_is_None", "tests_status"}
_DETAILS = "per_instance_details"
_COMMON_NAMES = {_DETAILS, "results", "report"}


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


class SweBenchReader(Reader):
    """``{per_instance_details: {id: {resolved, cost, api_calls}}}``, that mapping, or a summary."""

    name = "swe_bench"

    def recognizes(self, source: Source) -> bool:
        top = source.outline
        if top.opens != "{" or _DETAILS in top.keys or is_summary(top.keys):
            return top.opens == "{"
        entry = _FIRST_ENTRY.match(source.head)
        inner = outline(source.head[entry.end() :]).keys if entry else frozenset()
        return "resolved" in inner and not _OF_AN_INSTANCE.isdisjoint(inner)

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        if is_summary(source.outline.keys):
            return read_summary(source, options)
        log = LogBuilder(source, "SWE-bench per-instance results", options)
        data = read_bytes(source, log)
        has_details = b'"per_instance_details"' in data
        whole: type[Any] = _Entry if has_details else dict[str, _Instance]
        document = open_document(
            data,
            log,
            whole=whole,
            item=_Instance,
            items=lambda document: document.per_instance_details if has_details else document,
            paths=[(_DETAILS,)] if has_details else [()],
            noun="instance",
        )
        for task, instance in document.items:
            log.add(
                f"instance {task}",
                task,
                instance.resolved,
                why="" if instance.resolved else _why(instance),
                steps=instance.api_calls,
                cost=instance.cost,
            )
        head = document.head if isinstance(document.head, _Entry) else _Entry()
        share = number_or_none(head.resolved)
        facts = RunFacts(
            str(head.name or _agent_name(source)),
            Protocol(suite="SWE-bench"),
            says={} if share is None else {"accuracy": round(share / 100, 8)},
            reading=() if head.name else ("the log does not name the agent",),
            guessed=not head.name,
        )
        return log.runs(facts)


def _agent_name(source: Source) -> str:
    """The file is called the same for everyone; the folder is not."""
    agent, _, _ = from_name(source)
    names = (agent, *(folder.name for folder in source.path.resolve().parents))
    return next((name for name in names if name and name not in _COMMON_NAMES), agent)


def _why(instance: _Instance) -> str:
    if instance.resolved is None:
        return "not_recorded: resolved is null"
    if instance.no_patch is True:
        return "missing_outputs: no patch"
    if instance.patch_successfully_applied is False:
        return "format_error: the patch does not apply"
    return "unknown_failure: not resolved"


_COUNTS = {"submitted_instances", "resolved_instances"}
_OLD_REPORT = {"resolved", "no_generation"}
"""Lists of instances by their end: the harness before version 2, results.json of submissions."""
_SHARES = {"resolved", "resolved_per_project"}

# The cause of a broken evaluation is unknown: a patch that does not apply ends there as well.
_ENDS: tuple[tuple[str, bool | None, str], ...] = (
    ("resolved_ids", True, ""),
    ("unresolved_ids", False, "unknown_failure: not resolved"),
    ("empty_patch_ids", False, "missing_outputs: no patch"),
    ("no_generation", False, "missing_outputs: no patch"),
    ("no_apply", False, "format_error: the patch does not apply"),
    ("test_timeout", False, "timeout: of the tests"),
    ("install_fail", None, "sandbox_error: the repository was not installed"),
    ("reset_failed", None, "sandbox_error: the repository was not reset"),
    ("test_errored", None, "judge_error: the harness reports an error, its own or the patch's"),
    ("generated", False, "unknown_failure: not resolved"),
    ("error_ids", None, "judge_error: the harness reports an error, its own or the patch's"),
    ("completed_ids", False, "unknown_failure: completed, and not resolved"),
    ("submitted_ids", False, "unknown_failure: submitted, and not resolved"),
)


class _Summary(msgspec.Struct):
    resolved_ids: list[str] | None = None
    unresolved_ids: list[str] = msgspec.field(default_factory=list)
    empty_patch_ids: list[str] = msgspec.field(default_factory=list)
    error_ids: list[str] = msgspec.field(default_factory=list)
    completed_ids: list[str] | None = None
    submitted_ids: list[str] = msgspec.field(default_factory=list)
    incomplete_ids: list[str] = msgspec.field(default_factory=list)
    resolved_instances: Any = None
    total_instances: Any = None
    resolved: Any = None
    generated: Any = None
    no_generation: Any = None
    no_apply: Any = None
    test_timeout: Any = None
    test_errored: Any = None
    install_fail: Any = None
    reset_failed: Any = None

    def ids(self, name: str) -> list[str]:
        """The instances of a list; a count in its place names none."""
        value = getattr(self, name)
        if name == "resolved_ids" and value is None:
            value = self.resolved
        return value if isinstance(value, list) else []


def is_summary(keys: frozenset[str]) -> bool:
    """Whether a document with these keys is a summary; its lists may come after the counts."""
    if not keys.isdisjoint({"results", "pass_at_k", "n_resolved"}):
        return False  # of Terminal-Bench, which has the attempts, too
    return "resolved_ids" in keys or any(keys >= each for each in (_COUNTS, _OLD_REPORT, _SHARES))


def read_summary(source: Source, options: ReadOptions) -> list[Run]:
    """An attempt for each submitted instance."""
    log = LogBuilder(source, "SWE-bench summary", options)
    data = read_bytes(source, log)
    nothing = open_document(
        data, log, whole=_Summary, item=dict, items=lambda _: [], paths=[], noun="instance"
    )
    summary = nothing.head
    tasks: set[str] = set()
    resolved = set(summary.ids("resolved_ids"))
    stated = number_or_none(summary.resolved_instances)
    if stated and not resolved:
        raise ReadError(
            f"counts {stated:,.0f} resolved instances and names none of them.",
            source=source.name,
            hint="Give the harness's own file, which has resolved_ids.",
        )
    for name, verdict, why in _ENDS:
        if name == "submitted_ids" and summary.completed_ids is not None:
            verdict, why = None, "not_recorded: submitted, and never completed"
        for task in summary.ids(name):
            if task not in tasks:
                tasks.add(task)
                log.add(f"instance {task}", task, verdict, why=why)
    if tasks and not _names_all(summary, tasks):
        raise ReadError(
            f"names {len(resolved)} resolved instances and not all others: a share of what cannot "
            "be told.",
            source=source.name,
            hint="Give the harness's own file, which also has submitted_ids, or unresolved_ids.",
        )
    never = [task for task in summary.incomplete_ids if task not in tasks]
    if never:
        log.skip("an instance for which nothing was submitted", len(never))
    _, _, reading = from_name(source)
    instances = f"{len(never):,} of {len(tasks) + len(never):,} instances"
    total = number_or_none(summary.total_instances)
    facts = RunFacts(
        _without_run(_agent_name(source)),
        Protocol(suite="SWE-bench"),
        says={"accuracy": stated / total} if stated is not None and total else {},
        reading=(*reading, "one attempt per instance: how much attempts differ is not in it"),
        guessed=True,
        decisions=(f"{instances} without a submission left out",) if never else (),
    )
    return log.runs(facts)


def _names_all(summary: _Summary, tasks: set[str]) -> bool:
    """Whether a list names the instances that failed, or the file counts no more than it names."""
    lists = (summary.submitted_ids, summary.completed_ids, summary.unresolved_ids)
    has_list = any(lists) or isinstance(summary.generated, list)
    return has_list or number_or_none(summary.total_instances) == len(tasks)


def _without_run(name: str) -> str:
    """The harness calls its file MODEL.RUN.json; ``gpt-4.1`` and ``gpt-4.1-mini`` are models."""
    model, _, run = name.rpartition(".")
    return model if model and run[:1].isalpha() else name
