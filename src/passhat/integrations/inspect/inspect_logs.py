"""What was asked of inspect, kept beside its log, and how the log becomes attempts.

A folder per evaluation holds ``asked.json`` and the log. Epoch e of a sample is the e-th attempt
that was still missing. A folder that a killed run left behind is taken in by the next one.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from passhat.integrations.inspect.owners import is_gone, this_owner
from passhat.readers.base import ReadOptions
from passhat.readers.inspect_ai import InspectReader
from passhat.readers.sources import Source
from passhat.readers.store import attempt_record
from passhat.stats.outcomes import Attempt, MissingReason
from passhat.store import AttemptRecord

__all__ = ["Batch", "batches", "left_behind"]

_ASKED, _TAKEN = "asked.json", "taken.json"
_EPOCH = re.compile(r"_epoch_(\d+)\.json$")


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples that miss the same number of attempts, and which attempts those are."""

    numbers: Mapping[str, Sequence[int]]
    folder: Path

    @property
    def epochs(self) -> int:
        return len(next(iter(self.numbers.values())))

    def number_of(self, sample: str, epoch: int) -> int:
        return self.numbers[sample][epoch - 1]

    def write(self) -> None:
        """Say what is asked for before it is asked, so that nothing is lost with us."""
        data = {"owner": this_owner(), "numbers": {k: list(v) for k, v in self.numbers.items()}}
        (self.folder / _ASKED).write_text(json.dumps(data), encoding="utf-8")

    def records(self, scorer: str | None) -> Iterator[AttemptRecord]:
        """The attempts in the log; a sample that never ran is not among them."""
        for log in sorted(self.folder.glob("*.eval")):
            source = Source(str(log), log)
            for run in InspectReader().read(source, ReadOptions(scorer=scorer)):
                yield from self._numbered(run.attempts or ())

    def _numbered(self, attempts: Iterable[Attempt]) -> Iterator[AttemptRecord]:
        for attempt in attempts:
            if attempt.why == MissingReason.STOPPED:
                continue  # it was in flight when inspect was told to stop: to be made again
            epoch = _EPOCH.search(attempt.extras.get("transcript", ""))
            if epoch is not None and attempt.task in self.numbers:
                number = self.number_of(attempt.task, int(epoch[1]))
                yield replace(attempt_record(attempt), number=number)

    def taken(self) -> None:
        """The log is in the store; it stays where it is for inspect's own viewer."""
        (self.folder / _ASKED).rename(self.folder / _TAKEN)


def batches(folder: Path, missing: Iterable[tuple[str, int]]) -> list[Batch]:
    """As few evaluations as cover exactly what is missing: one per number of missing attempts."""
    numbers: dict[str, list[int]] = {}
    for task, number in sorted(missing, key=lambda one: one[1]):
        numbers.setdefault(task, []).append(number)
    by_count: dict[int, dict[str, list[int]]] = {}
    for task, wanted in numbers.items():
        by_count.setdefault(len(wanted), {})[task] = wanted
    folder.mkdir(parents=True, exist_ok=True)
    return [
        Batch(chosen, Path(tempfile.mkdtemp(prefix="eval-", dir=folder)))
        for _, chosen in sorted(by_count.items(), reverse=True)
    ]


def left_behind(folder: Path) -> Iterator[Batch]:
    """Evaluations whose log was not read, because passhat was killed."""
    for asked in sorted(folder.glob(f"eval-*/{_ASKED}")):
        data = json.loads(asked.read_text(encoding="utf-8"))
        if is_gone(data["owner"]):
            yield Batch(data["numbers"], asked.parent)
