"""tau-bench: a list of simulations, four trials of fifty tasks as a rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from passhat.protocol import Protocol
from passhat.readers.base import LogBuilder, Reader, ReadOptions, RunFacts
from passhat.readers.identity import from_name
from passhat.readers.json_records import decode, open_list, read_bytes
from passhat.readers.parsing import action_entries, as_dict, transcript_entries, why_missing
from passhat.readers.sources import Source
from passhat.stats.outcomes import Run


class _Info(msgspec.Struct):
    user_cost: Any = None
    reward_info: Any = msgspec.UNSET
    error: Any = None
    task: msgspec.Raw = msgspec.Raw(b"null")


class _Row(msgspec.Struct):
    task_id: Any = None
    reward: Any = None
    trial: Any = None
    info: _Info | None = None
    traj: list[msgspec.Raw] | None = None


class TauBenchReader(Reader):
    """``[{task_id, reward, info, traj, trial}, ...]``; a reward of 1 passes."""

    name = "tau_bench"

    def recognizes(self, source: Source) -> bool:
        outline = source.outline
        return (
            outline.opens == "["
            and {"task_id", "reward"} <= outline.keys
            and (not outline.keys.isdisjoint({"traj", "info"}))
        )

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        log = LogBuilder(source, "tau-bench results", options, order="trial")
        records = open_list(read_bytes(source, log), log, _Row, "row")
        for number, row in enumerate(records, 1):
            with log.row(f"row {number}"):
                _take(log, number, row)
        agent, decoding, notes = from_name(source)
        facts = RunFacts(
            agent, Protocol(suite=_suite(source), decoding=decoding), reading=notes, guessed=True
        )
        return log.runs(facts)


def _take(log: LogBuilder, number: int, row: _Row) -> None:
    info = row.info or _Info()
    reward = row.reward
    why = ""
    if info.error is not None:
        # Its runner writes a reward of 0 when anything raised, be it the agent or its provider.
        why = why_missing(info.error)
        if why.startswith("rate_limit"):
            reward = None
        else:
            why = f"agent_error: {info.error}"
    elif info.reward_info is None:
        why = "timeout: max_steps"
    elif reward is None:
        why = "judge_error: no reward"
    log.add(
        f"row {number}",
        row.task_id,
        reward,
        trial=row.trial,
        why=why if reward != 1 else "",
        steps=None if row.traj is None else len(row.traj),
        transcript=f"row {number}",
        conversation=_conversation(row),
    )


def _conversation(row: _Row) -> Iterator[tuple[str, str]]:
    entries = transcript_entries([decode(bytes(raw), dict) for raw in row.traj or ()])
    task = as_dict(decode(bytes((row.info or _Info()).task), object))
    yield from action_entries(entries, task.get("actions"), "kwargs")


def _suite(source: Source) -> str | None:
    """The domain, which only the file's name gives."""
    name = source.path.name.lower()
    return next((f"tau-bench/{domain}" for domain in ("airline", "retail") if domain in name), None)
