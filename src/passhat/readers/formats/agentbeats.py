"""AgentBeats: ``{participants, results}``, and the envelopes that hold one.

An evaluator of version 1 posts ``{is_result, winner, detail}``, which the backend keeps in the
battle; one of version 2 ends its A2A task with an artifact whose data part is the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.json_records import BROKEN, decode, open_document, read_bytes
from passhat.readers.parsing import Bytes, number_or_none
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run

# Every evaluator writes its own results; these are the names they use.
_TASK = ("task_id", "task", "task_name", "instance_id", "id")
_VERDICT = ("passed", "success", "resolved", "is_resolved", "correct", "reward", "score")
_WHY = ("failure_category", "category", "failure_mode", "error", "reason")
_MEASURES = {
    "seconds": ("time_used", "duration", "seconds"),
    "steps": ("steps", "turns"),
    "tokens": ("tokens", "total_tokens"),
    "cost": ("cost", "agent_cost"),
    "score": ("score", "reward"),
}
_EVALUATORS = ("green", "green_agent", "evaluator", "judge", "user")

_PLAIN = frozenset({"participants", "results"})
_FORMS = (
    _PLAIN,
    {"is_result", "winner"},  # version 1: a result as it is posted
    {"battle_id", "opponents"},  # version 1: a battle as the backend keeps it
    {"artifacts", "contextId"},  # version 2: the evaluator's task, or its one artifact
    {"artifactId", "parts"},
)

_Found = tuple[str, object, object, Mapping[str, Any]]


class _Results(msgspec.Struct):
    participants: Any = None
    results: list[Any] | None = None
    config: Any = None


class AgentBeatsReader(Reader):
    """Each result is a task, or an assessment with ``task_rewards`` or a list of tasks in it."""

    name = "agentbeats"

    def recognizes(self, source: Source) -> bool:
        keys = source.outline.keys
        return source.outline.opens == "{" and any(form <= keys for form in _FORMS)

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        log = LogBuilder(source, "AgentBeats results", options)
        data = read_bytes(source, log)
        document = open_document(
            data if source.outline.keys >= _PLAIN else _unwrap(data),
            log,
            whole=_Results,
            item=dict,
            items=lambda document: document.results or [],
            paths=[("results",)],
            noun="result",
        )
        rates: list[float | None] = []
        domains: list[str] = []
        for number, (_, result) in enumerate(document.items, 1):
            rows = list(_rows(result, f"result {number}"))
            if not rows:
                log.lose(f"result {number}", "has no verdict on any task")
            for where, task, verdict, row in rows:
                _take(log, where, task, verdict, row)
            if isinstance(result, Mapping):
                rates.append(_rate(result))
                domains.append(str(result.get("domain") or ""))
        config = document.head.config
        suite = _only(domains) or (config.get("domain") if isinstance(config, Mapping) else None)
        facts = RunFacts(
            _agent(document.head.participants) or source.stem,
            Protocol(suite=str(suite) if suite else None, judge="AgentBeats green agent"),
            says=_parse_stated_metrics(rates),
            counts=("source averages partial scores; here only a full score passes",),
            guessed=not _agent(document.head.participants),
        )
        return log.runs(facts)


def _unwrap(data: Bytes) -> Bytes:
    """The results inside a battle, a task or an artifact, as a document of the plain form.

    A broken document is returned unchanged: decoding it again reports the problem.
    """
    try:
        document = decode(data, dict)
    except BROKEN:
        return data
    opponents = document.get("opponents")
    results = list(_payloads(document))
    return msgspec.json.encode(
        {
            "participants": _inner(results, "participants") or _by_name(opponents),
            "results": results,
            "config": _inner(results, "config"),
        }
    )


def _payloads(document: Mapping[str, Any]) -> Iterator[object]:
    result = document.get("result")
    message = result if isinstance(result, Mapping) else document
    if "detail" in message:
        yield message["detail"]
    for artifact in document.get("artifacts") or ([document] if "parts" in document else []):
        parts = artifact.get("parts") if isinstance(artifact, Mapping) else None
        yield from (
            part["data"] for part in parts or () if isinstance(part, Mapping) and "data" in part
        )


def _inner(results: list[object], name: str) -> object:
    """A field of the first result."""
    return results[0].get(name) if results and isinstance(results[0], Mapping) else None


def _by_name(opponents: object) -> dict[str, object]:
    """The agents of a battle; version 1 lists them by name and id."""
    rows = (
        [opponent for opponent in opponents if isinstance(opponent, Mapping)]
        if isinstance(opponents, list)
        else []
    )
    return {str(row.get("name")): row for row in rows}


def _rows(result: object, where: str) -> Iterator[_Found]:
    """The verdicts inside one result, however deep this evaluator puts them."""
    if not isinstance(result, Mapping):
        return
    rewards = result.get("task_rewards") or result.get("task_scores")
    if isinstance(rewards, Mapping) and not any(isinstance(v, Mapping) for v in rewards.values()):
        yield from ((f"{where}, task {name}", name, value, {}) for name, value in rewards.items())
        return
    task = _first(result, _TASK)
    if task is not None and any(name in result for name in _VERDICT):
        yield where, task, _first(result, _VERDICT), result
        return
    for inner in result.values():
        rows = list(_rows_inside(inner, where))
        if rows:
            yield from rows
            return


def _rows_inside(inner: object, where: str) -> Iterator[_Found]:
    """The rows of a list of tasks, or of a mapping from tasks to their results."""
    if isinstance(inner, list):
        for number, row in enumerate(inner, 1):
            yield from _rows(row, f"{where}.{number}")
    elif isinstance(inner, Mapping):
        for name, row in inner.items():
            if isinstance(row, Mapping) and any(word in row for word in _VERDICT):
                yield f"{where}, task {name}", name, _first(row, _VERDICT), row
            elif isinstance(row, list):  # evaluation_results.raw_results
                yield from _rows_inside(row, where)


def _take(
    log: LogBuilder, where: str, task: object, verdict: object, row: Mapping[str, Any]
) -> None:
    reason = _first(row, _WHY)
    measures = {word: _first(row, names) for word, names in _MEASURES.items()}
    why = "" if verdict in (1, True) or reason is None else str(reason)
    log.add(where, task, verdict, why=why, **measures)


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _agent(participants: object) -> str:
    """The assessed agents: all participants except the evaluator."""
    if not isinstance(participants, Mapping):
        return ""
    agents = {r: who for r, who in participants.items() if str(r).lower() not in _EVALUATORS}
    return ", ".join(_agent_name(str(role), who) for role, who in (agents or participants).items())


def _agent_name(role: str, who: object) -> str:
    if isinstance(who, Mapping):
        return str(who.get("name") or who.get("agent_id") or role)
    return str(who)


def _parse_stated_metrics(rates: list[float | None]) -> dict[str, float]:
    """The pass rate, when there was one assessment; evaluators write it in percent."""
    if len(rates) != 1 or rates[0] is None:
        return {}
    return {"accuracy": rates[0] / 100 if rates[0] > 1 else rates[0]}


def _rate(result: Mapping[str, Any]) -> float | None:
    """The share that an assessment prints: a pass rate, or its score of the best possible one."""
    rate = number_or_none(result.get("pass_rate"))
    score, maximum = number_or_none(result.get("score")), number_or_none(result.get("max_score"))
    if rate is None and score is not None and maximum:
        return score / maximum
    return rate


def _only(words: list[str]) -> str:
    return words[0] if len(set(words)) == 1 else ""
