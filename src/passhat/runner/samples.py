"""Samples that exist already become a run of the store: judged, resumed, kept with their text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

from passhat.errors import ReadError
from passhat.judging.bench import Bench
from passhat.judging.samples import Sample, printable
from passhat.judging.verdict import CodeVerdict
from passhat.store import AttemptRecord, RunRecord, Store
from passhat.suites.base import Judgement, Task

__all__ = ["judge_into_store"]


def judge_into_store(
    bench: Bench, samples: Sequence[Sample], source: str, store: Store, name: str = ""
) -> tuple[str, int]:
    """Judge what the run does not have yet; returns its id and how many were there.

    The run belongs to the file's name as its agent, and to suite, judge and ``name``.
    """
    record = RunRecord(Path(source).name.split(".")[0], bench.protocol(), _tasks(samples), name)
    counts = Counter(sample.task.id for sample in samples)
    store.begin(record, max(counts.values()))
    store.release(record.id, missing=True)
    by_place = {_place(sample): sample for sample in samples}
    resumed = _resumed(store, record.id, by_place, source)
    made = store.made(record.id)
    left = [place for place in by_place if place not in made]
    claimed = store.claim(record.id, left)
    try:
        for position, found in bench.verdicts(
            (by_place[place].task, by_place[place].program) for place in claimed
        ):
            store.finish(record.id, [_attempt(by_place[claimed[position]], found)])
    finally:
        store.release(record.id)
    return record.id, resumed


def _place(sample: Sample) -> tuple[str, int]:
    return sample.task.id, sample.trial + 1


def _tasks(samples: Sequence[Sample]) -> list[Task]:
    tasks = {sample.task.id: sample.task for sample in samples}
    return [
        Task(task.id, task.prompt or task.text, MappingProxyType(dict(task.labels)))
        for task in tasks.values()
    ]


def _resumed(store: Store, run: str, samples: dict[tuple[str, int], Sample], source: str) -> int:
    """How many were judged before; refuses a run that was made from other samples."""
    count = 0
    for block in store.rows(run):
        for task, number, *_, answer, _labels in block:
            place = (str(task), int(str(number)))
            sample = samples.get(place)
            if sample is None or sample.fingerprint != answer:
                raise ReadError(
                    f"run {run} of {store.path} was made from another sample for "
                    f"{place[0]}#{place[1]}, so judging cannot go on there.",
                    source=source,
                    hint=f"Begin another run with --name, or remove it: passhat rm {run}",
                )
            count += 1
    return count


def _attempt(sample: Sample, found: CodeVerdict) -> AttemptRecord:
    turns = [
        {"role": "user", "text": sample.task.prompt or sample.task.text},
        {"role": "agent", "text": printable(sample.raw or sample.program)},
    ]
    if sample.raw:
        turns.append({"role": "program", "text": printable(sample.program)})
    turns += [{"role": f"{name} judge", "text": words} for name, words in found.judges]
    return AttemptRecord(
        task=sample.task.id,
        number=sample.trial + 1,
        judgement=Judgement(found.verdict, found.category, found.detail),
        seconds=found.seconds,
        answer_hash=sample.fingerprint,
        transcript=turns,
    )
