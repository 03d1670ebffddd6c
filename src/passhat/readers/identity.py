"""Several files, one run: attempts joined when asked, and begun-again runs counted once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from passhat._display import counted
from passhat.protocol import Scalar
from passhat.readers.sources import STANDARD_INPUT, Source
from passhat.stats.outcomes import Attempts, Run, Tally
from passhat.stats.outcomes.attempts import Coded
from passhat.stats.outcomes.gathering import outcomes_of

__all__ = ["from_name", "joined", "without_retries"]


def without_retries(runs: Sequence[Run]) -> list[Run]:
    """Leave one of several files that hold the same run: the one that got furthest.

    A harness that begins a run again writes a second file with the run's own id, and copies into
    it what was finished. Counting both would count those attempts twice.
    """
    kept: dict[object, Run] = {}
    for index, run in enumerate(runs):
        key = (run.origin, run.agent, run.protocol.suite, run.protocol.judge)
        key_of_this: object = key if run.origin else index
        other = kept.get(key_of_this)
        if other is None or other.source == run.source:
            kept[key_of_this if other is None else index] = run
            continue
        further = run.outcomes.scored >= other.outcomes.scored
        winner, loser = (run, other) if further else (other, run)
        said = (
            f"{loser.source} holds the same run ({run.origin}), begun another time: left aside "
            f"with {counted(loser.outcomes.attempts, 'attempt')}"
        )
        kept[key_of_this] = replace(winner, reading=(*winner.reading, said))
    return list(kept.values())


def joined(runs: Sequence[Run]) -> list[Run]:
    """Make one run of all that have the same agent and nothing known that differs.

    The name counts as well: it tells apart the runs of one file, such as two prompts.
    """
    groups: dict[object, list[Run]] = {}
    for run in runs:
        known = replace(run.protocol, attempts=None)
        key = (run.name, run.agent, known.digest) if run.attempts is not None else id(run)
        groups.setdefault(key, []).append(run)
    return [group[0] if len(group) == 1 else _join(group) for group in groups.values()]


def _join(runs: list[Run]) -> Run:
    tasks = list(dict.fromkeys(task for run in runs for task in run.outcomes.tasks))
    place = {task: index for index, task in enumerate(tasks)}
    parts = [run.attempts for run in runs if run.attempts is not None]
    task = np.concatenate(
        [np.repeat([place[name] for name in part.tasks], np.diff(part.starts)) for part in parts]
    )
    # Stable: within a task the attempts stay in the order of the files, then of the file itself.
    sorting = np.argsort(task, kind="stable")
    starts = np.searchsorted(task[sorting], np.arange(len(tasks) + 1))
    attempts = _concatenated(parts, tuple(tasks), starts, sorting)
    ordered = all(run.outcomes.order is not None for run in runs)
    outcomes = outcomes_of(attempts, ordered=ordered, labels=_labels(runs, tasks))
    first = runs[0]
    per_task = np.diff(starts)
    return replace(
        first,
        outcomes=outcomes,
        attempts=attempts,
        protocol=replace(
            first.protocol,
            attempts=int(per_task[0]) if per_task.min() == per_task.max() else None,
        ),
        source=", ".join(dict.fromkeys(run.source for run in runs)),
        source_says=MappingProxyType({}),
        reading=(
            f"{len(runs)} runs of the same agent joined, as asked: {first.source} first",
            *dict.fromkeys(line for run in runs for line in run.reading),
        ),
        tally=_summed([run.tally for run in runs if run.tally is not None]),
        origin="",
    )


def _labels(runs: list[Run], tasks: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The slices that all of them have; where they disagree the first file is believed."""
    labels = {}
    for name in runs[0].outcomes.labels:
        if not all(name in run.outcomes.labels for run in runs):
            continue
        found: dict[str, str] = {}
        for run in runs:
            values = zip(run.outcomes.tasks, run.outcomes.labels[name], strict=True)
            found = {**dict(values), **found}
        labels[name] = tuple(found[task] for task in tasks)
    return labels


def _concatenated(
    parts: list[Attempts],
    tasks: tuple[str, ...],
    starts: np.ndarray[tuple[int], np.dtype[np.int64]],
    sorting: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> Attempts:
    measures = dict.fromkeys(name for part in parts for name in part.measures)
    extras = dict.fromkeys(name for part in parts for name in part.extras)
    known = all(part.answers is not None for part in parts)
    return Attempts(
        tasks,
        starts,
        np.concatenate([part.verdicts for part in parts])[sorting],
        _texts([part.detail for part in parts], parts).take(sorting),
        MappingProxyType(
            {
                name: np.concatenate(
                    [part.measures.get(name, np.full(len(part), np.nan)) for part in parts]
                )[sorting]
                for name in measures
            }
        ),
        np.concatenate([part.answers for part in parts if part.answers is not None])[sorting]
        if known
        else None,
        MappingProxyType(
            {
                name: _texts([part.extras.get(name) for part in parts], parts).take(sorting)
                for name in extras
            }
        ),
    )


def _texts(columns: list[Coded | None], parts: list[Attempts]) -> Coded:
    """Text columns end to end, with one list of different values."""
    values: dict[str, int] = {"": 0}
    codes = []
    for column, part in zip(columns, parts, strict=True):
        if column is None:
            codes.append(np.zeros(len(part), np.int64))
            continue
        mapping = np.array(
            [values.setdefault(text, len(values)) for text in column.values] or [0], np.int64
        )
        codes.append(mapping[column.codes])
    return Coded(tuple(values), np.concatenate(codes))


def _summed(tallies: list[Tally]) -> Tally | None:
    """Each file once, even when several of its runs were joined."""
    different = list({id(tally): tally for tally in tallies}.values())
    if not different:
        return None
    skipped: dict[str, int] = {}
    for tally in different:
        for why, count in tally.skipped.items():
            skipped[why] = skipped.get(why, 0) + count
    return Tally(
        sum(tally.rows for tally in different),
        sum(tally.attempts for tally in different),
        MappingProxyType(skipped),
        tuple(loss for tally in different for loss in tally.losses),
        sum(tally.absent for tally in different),
    )


_TEMPERATURE = re.compile(r"[_-](?:temp(?:erature)?_?|t)(\d+(?:\.\d+)?)(?=[_\-.]|$)", re.IGNORECASE)
_ENDINGS = re.compile(r"(\.(jsonl?|gz|results)|_(results|samples|eval_results|eval_all))+$")

# "mine_run1" and "mine_run2" are the same agent; "gpt-4" and "gpt-5" are not.
_COUNTER = re.compile(
    r"[_\-.](?:trial|run|seed|attempt|try|rep|repeat|epoch)[_-]?\d+$", re.IGNORECASE
)


def from_name(source: Source) -> tuple[str, dict[str, Scalar], tuple[str, ...]]:
    """The agent, its decoding settings, and sentences that say where both come from."""
    if source.name == STANDARD_INPUT:
        return source.stem, {}, ("the log does not name the model",)
    name = _ENDINGS.sub("", Path(source.name).name)
    found = _TEMPERATURE.search(name)
    agent = _COUNTER.sub("", name[: found.start()] if found else name).strip("_-.") or source.stem
    said = "the log does not name the model: the run is named after the file"
    if found is None:
        return agent, {}, (said,)
    temperature = float(found[1])
    return agent, {"temperature": temperature}, (f"{said}, and so is the temperature",)
