"""tau2-bench: one file with all simulations, or a folder with one file for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.json_records import BROKEN, decode, decode_protocol, open_document, read_bytes
from passhat.readers.parsing import action_entries, as_dict, scalars, transcript_entries
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run


class _Reward(msgspec.Struct):
    reward: Any = None
    reward_breakdown: Any = None
    info: Any = None


class _Simulation(msgspec.Struct):
    id: Any = None
    task_id: Any = None
    trial: Any = None
    seed: Any = None
    duration: Any = None
    termination_reason: Any = None
    agent_cost: Any = None
    reward_info: _Reward | None = None
    reward: Any = None  # an index carries the reward itself
    messages: list[msgspec.Raw] | None = None


class _Who(msgspec.Struct):
    implementation: Any = None
    llm: Any = None
    llm_args: Any = None


class _Environment(msgspec.Struct):
    domain_name: Any = None


class _Info(msgspec.Struct):
    max_steps: Any = None
    git_commit: Any = None
    agent_info: _Who | None = None
    user_info: _Who | None = None
    environment_info: _Environment | None = None
    passhat: dict[str, Any] | None = None  # in files that passhat wrote


class _Results(msgspec.Struct):
    info: _Info | None = None
    tasks: msgspec.Raw = msgspec.Raw(b"null")
    simulations: list[_Simulation] | None = None
    simulation_index: list[_Simulation] | dict[str, _Simulation] | None = None


class Tau2BenchReader(Reader):
    """``{timestamp, info, tasks, simulations}``, or ``results.json`` and ``simulations/``."""

    name = "tau2_bench"

    def recognizes(self, source: Source) -> bool:
        if source.is_folder:
            results = source.inside("results.json")
            return results.path.is_file() and self.recognizes(results)
        outline = source.outline
        if outline.opens != "{":
            return False
        of_simulations = not outline.keys.isdisjoint({"simulations", "simulation_index"})
        of_info = "info" in outline.keys and b'"environment_info"' in source.head
        of_tasks = "tasks" in outline.keys and b'"evaluation_criteria"' in source.head
        return of_info or of_tasks or (of_simulations and b'"task_id"' in source.head)

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        log = LogBuilder(source, "tau2-bench results", options, order="trial")
        results = source.inside("results.json") if source.is_folder else source
        document = open_document(
            read_bytes(results, log),
            log,
            whole=_Results,
            item=_Simulation,
            items=lambda document: document.simulations or document.simulation_index or [],
            paths=[("simulations",), ("simulation_index",)],
            noun="simulation",
        )
        rows: Iterable[tuple[str, _Simulation]] = document.items
        if not document.head.simulations and not document.head.simulation_index:
            # Either the folder form without an index, or records cut out of a broken document.
            rows = chain(rows, _from_files(results, log))
        actions = _find_actions(document.head) if options.needs.conversations else {}
        for number, (key, row) in enumerate(rows, 1):
            where = key or f"simulation {number}"
            with log.row(where):
                _take(log, row, where, actions.get(str(row.task_id)))
        facts = _facts(document.head, source)
        return log.runs(facts)


def _from_files(results: Source, log: LogBuilder) -> Iterator[tuple[str, _Simulation]]:
    """The folder form without an index: one file after the other."""
    folder = replace(results, name=str(Path(results.name).parent), path=results.path.parent)
    for file in folder.children("simulations/*.json"):
        where = f"simulations/{file.path.name}"
        try:
            yield where, decode(bytes(read_bytes(file, log)), _Simulation)
        except BROKEN:
            log.lose(where, "is not a simulation that can be read")
        except ReadError as error:
            log.lose(where, error.message)


def _find_actions(head: _Results) -> dict[str, object]:
    """The expected actions of every task, which follow from its policy."""
    tasks = decode(bytes(head.tasks), object)
    return {
        str(task.get("id")): as_dict(task.get("evaluation_criteria")).get("actions")
        for task in (tasks if isinstance(tasks, list) else ())
        if isinstance(task, dict)
    }


def _take(log: LogBuilder, row: _Simulation, where: str, actions: object) -> None:
    # Here and not above: every reader is loaded to look at any file, and the suite is heavy.

    end = str(row.termination_reason or "").rsplit(".", 1)[-1].lower()
    reward = row.reward_info.reward if row.reward_info is not None else row.reward
    if end in MISSING:
        reward, why = None, MISSING[end]
    elif reward is None and end in FAILED:
        # The grader does not judge an attempt that the agent did not finish.
        reward, why = 0.0, FAILED[end]
    elif reward is None:
        why = f"judge_error: no reward, ended with {end or 'nothing'}"
    else:
        checks = row.reward_info.reward_breakdown if row.reward_info is not None else None
        why = FAILED.get(end) or failed_check(checks)
    log.add(
        where,
        row.task_id,
        reward,
        trial=row.trial,
        why=why if reward != 1 else "",
        seconds=row.duration,
        steps=None if row.messages is None else len(row.messages),
        cost=row.agent_cost,
        seed=row.seed,
        source_id=row.id,
        score=as_dict(row.reward_info.info).get("score") if row.reward_info is not None else None,
        transcript=where if row.id is None else f"simulation {row.id}",
        conversation=_conversation(row, actions),
    )


def _conversation(row: _Simulation, actions: object) -> Iterator[tuple[str, str]]:
    entries = transcript_entries([decode(bytes(raw), dict) for raw in row.messages or ()])
    yield from action_entries(entries, actions, "arguments")


def _facts(head: _Results, source: Source) -> RunFacts:
    info = head.info or _Info()
    written = as_dict(as_dict(info.passhat).get("protocol"))
    agent, user = info.agent_info or _Who(), info.user_info or _Who()
    domain = info.environment_info.domain_name if info.environment_info else None
    steps = info.max_steps
    return RunFacts(
        agent=str(agent.llm or agent.implementation or source.stem),
        guessed=not (agent.llm or agent.implementation),
        protocol=decode_protocol(written)
        if written
        else Protocol(
            suite=f"tau2-bench/{domain}" if domain else None,
            decoding=scalars(agent.llm_args),
            max_steps=steps if isinstance(steps, int) else None,
            user_simulator=_name(user),
            judge="tau2-bench",
        ),
        reading=tuple(
            f"{word} {value}"
            for word, value in (("agent", _name(agent)), ("harness commit", info.git_commit))
            if value
        ),
    )


def _name(who: _Who) -> str | None:
    parts = [str(part) for part in (who.implementation, who.llm) if part]
    temperature = scalars(who.llm_args).get("temperature")
    if temperature is not None:
        parts.append(f"T={temperature}")
    return " ".join(parts) or None


FAILED: Mapping[str, str] = MappingProxyType(
    {
        "max_steps": "timeout: max_steps",
        "timeout": "timeout: timeout",
        "too_many_errors": "agent_error: too_many_errors",
        "agent_error": "agent_error: agent_error",
        "context_window_exceeded": "agent_error: context_window_exceeded",
    }
)
"""The agent's doing."""

MISSING: Mapping[str, str] = MappingProxyType(
    {
        "infrastructure_error": "infrastructure: infrastructure_error",
        "user_error": "user_error: user_error",
        "unexpected_error": "infrastructure: unexpected_error",
    }
)
"""Not the agent's doing at all."""

_CHECKS: Mapping[str, str] = MappingProxyType(
    {
        "DB": "wrong_state",
        "ENV_ASSERTION": "wrong_state",
        "ACTION": "wrong_state",
        "COMMUNICATE": "missing_outputs",
        "NL_ASSERTION": "incomplete_outputs",
    }
)


def failed_check(checks: object) -> str:
    """The first check of a reward breakdown that gave no reward, as ``category: check``."""
    for check, value in checks.items() if isinstance(checks, Mapping) else ():
        if value != 1:
            return f"{_CHECKS.get(str(check), 'unknown_failure')}: {check}"
    return ""
