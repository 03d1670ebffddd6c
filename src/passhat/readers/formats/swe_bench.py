"""SWE-bench: per-instance details of a submission, or the files of its harness."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.identity import from_name
from passhat.readers.json_records import open_document, read_bytes, read_object
from passhat.readers.parsing import number_or_none, outline
from passhat.readers.sources import Source, make_folder
from passhat.readers.wide_tables import is_model_name, reward_or_none
from passhat.readers.zip_members import write_lines
from passhat.stats.outcomes import Run
from passhat.stats.outcomes.columns import ALIASES, fold_name
from passhat.stats.outcomes.rewards import RewardWords

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


# -- lists of the tasks that passed and failed -------------------------------------------------

_LIST_END = re.compile(r"_(ids?|tasks?|instances?|items|problems|names|list|cases|tests|examples)$")
_FAILED_LIST = re.compile(
    r"(empty|no)_(patch(es)?|answers?|outputs?|generation|submission|apply)|(test_)?time(d_)?outs?"
)
_MISSING_LIST = re.compile(r"(test_)?(incomplete|error(ed|s)?|crash(ed|es)?|not_\w+|infra\w*)")
_ALL_LISTS = {
    **dict.fromkeys(("completed", "evaluated", "attempted"), "completed"),
    **dict.fromkeys(("submitted", "all", "total"), "submitted"),
}
_GROUPS = ("results", "runs", "models", "agents", "attempts", "trials", "reports", "data", "seeds")
_DEEPEST = 3
_REPEAT = r"(?:run|trial|attempt|seed|rep|repeat|repetition|try|epoch|round|iter)[\s_#-]*\d+"
_TEST_NAME = re.compile(r"(^|[:./])test_|::")
_REPEAT_KEY = re.compile(
    rf"(?P<model>.+?)[\s._/:@-]+(?P<trial>{_REPEAT})|(?P<only>{_REPEAT}|\d+)|"
    rf"(?P<first>{_REPEAT})[\s._/:@-]+(?P<behind>.+)",
    re.IGNORECASE,
)


def expand_ids(source: Source) -> Source | None:
    """Lists of ids by how they ended as rows, by the names around them.

    ``{"agent.run1": {"resolved_ids": ["a"], "unresolved_ids": ["b"], "error_ids": []}}``
    """
    data = read_object(source) or {}
    ends: dict[str, str] = {}
    rows: list[dict[str, object]] = []
    for keys, lists in _id_lists(data):
        facts, verdicts = _name_parts(keys), _verdicts_of(lists, ends)
        if facts is None or verdicts is None:
            return None
        rows += [{**facts, "task": task, "success": end} for task, end in verdicts]
    if len(rows) < 2 or len({len(row) for row in rows}) > 1 or not _are_tasks(rows):
        return None
    path = make_folder() / f"{source.stem}.jsonl"
    write_lines(path, rows)
    said = ", ".join(f"{name} = {end}" for name, end in ends.items())
    return Source(source.name, path, found=source.found, conversion=f"lists of tasks: {said}")


def _are_tasks(rows: Sequence[Mapping[str, object]]) -> bool:
    """Whether the ids are tasks that runs have in common, and not the tests of each task."""
    models = {str(row.get("model", "")): set[object]() for row in rows}
    for row in rows:
        models[str(row.get("model", ""))].add(row["task"])
    every = set.union(*models.values())
    is_shared = all(2 * len(tasks) > len(every) for tasks in models.values())
    are_tests = any(_TEST_NAME.search(str(task)) for task in every)
    return is_shared and not (are_tests and not all(map(is_model_name, models)))


def _id_lists(
    data: Mapping[str, Any], keys: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, list[object]]]]:
    """Objects with a list of passes and another of tasks, and the names around each."""
    lists = {str(key): value for key, value in data.items() if isinstance(value, list)}
    ends = set(map(_end_of, lists))
    if "passed" in ends and ends - {None, "passed"}:
        plain = [(fold_name(k), v) for k, v in data.items() if isinstance(v, str | int)]
        models = [str(v) for name, v in plain if name in (*ALIASES["model"], "name")]
        runs = [f"run {v}" for k, v in plain if k in ALIASES["trial"] and str(v).isdigit()]
        yield tuple(dict.fromkeys((*keys, *models[:1], *runs[:1]))), lists
        return
    for key, value in data.items() if len(keys) < _DEEPEST else ():
        inner = keys if fold_name(key) in _GROUPS else (*keys, key)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                yield from _id_lists(part, inner)


def _end_of(name: str) -> str | None:
    """How the tasks of a list ended, by its name."""
    word = _LIST_END.sub("", fold_name(name))
    if _FAILED_LIST.fullmatch(word) or _MISSING_LIST.fullmatch(word):
        return "failed" if _FAILED_LIST.fullmatch(word) else "missing"
    reward = reward_or_none(RewardWords(), word.replace("_", " "))
    if reward is None:
        return _ALL_LISTS.get(word)
    return "passed" if reward == 1 else "failed" if reward == 0 else "missing"


def _verdicts_of(
    lists: Mapping[str, list[object]], ends: dict[str, str]
) -> list[tuple[str, bool | None]] | None:
    """The tasks of lists with their verdicts; ``None`` where lists contradict each other."""
    found: dict[str, str] = {}
    kinds = {name: _end_of(name) for name in lists}
    order = ("passed", "failed", "missing", "completed", "submitted", None)
    has_others = "failed" in kinds.values()
    for name in sorted(lists, key=lambda name: order.index(kinds[name])):
        ids, end = lists[name], kinds[name]
        if not all(isinstance(task, str | int) for task in ids):
            return None
        tasks = list(map(str, ids))
        if end in ("completed", "submitted"):
            tasks = [task for task in tasks if task not in found]
            end, has_others = "missing" if has_others else "failed", True
        if end is None and not found.keys() >= set(tasks):
            return None
        if end in ("passed", "failed") and (
            found.keys() & set(tasks) or len(set(tasks)) < len(tasks)
        ):
            return None  # twice: attempts that cannot be told apart
        if end is not None and tasks:
            ends[name] = end
            found |= {task: end for task in tasks if task not in found}
    return [(task, None if end == "missing" else end == "passed") for task, end in found.items()]


def _name_parts(keys: Sequence[str]) -> dict[str, object] | None:
    """The model and the number of the attempt by the keys around lists."""
    facts: dict[str, object] = {}
    for key in keys:
        match = _REPEAT_KEY.fullmatch(key)
        parts = match.groupdict() if match is not None else {"model": key}
        model = parts.get("model") or parts.get("behind")
        trial = parts.get("trial") or parts.get("first") or parts.get("only")
        for word, text in (("model", model), ("trial", trial)):
            if text is not None and word in facts:
                return None
            facts |= {} if text is None else {word: text}
    return facts
