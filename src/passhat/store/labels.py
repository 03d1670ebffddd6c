"""Labels in a store: people's verdicts on attempts, and the draws that chose the attempts.

A label stands beside the judge's verdict and never replaces it. Rows are only added: a person who
changes a label adds a newer one, and a label that is taken back is a row without a verdict.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum

from passhat._serialize import Plain
from passhat.errors import InvalidValue, ReadError
from passhat.stats.labels.agreement import krippendorff_alpha
from passhat.stats.outcomes import Attempts, Verdict
from passhat.stats.outcomes.labels import LabelCounts
from passhat.store.base import Store
from passhat.store.queries import Queries

__all__ = [
    "DrawnAttempt",
    "Label",
    "StoredLabel",
    "add_labels",
    "count_labels",
    "decide_label",
    "label_texts",
    "labels_from_attempts",
    "load_draws",
    "load_label_counts",
    "load_labels",
    "load_votes",
    "parse_labels",
    "save_draw",
]


class Label(IntEnum):
    """A person's verdict on an attempt."""

    RIGHT = 1
    WRONG = 0
    SKIPPED = -1

    @classmethod
    def of(cls, word: str) -> Label:
        """The label that a word of a table means."""
        label = _WORDS.get(word.strip().casefold())
        if label is None:
            raise InvalidValue(f"a label is right, wrong or skip, not {word!r}.")
        return label

    def __str__(self) -> str:
        return {Label.RIGHT: "right", Label.WRONG: "wrong", Label.SKIPPED: "skipped"}[self]


_WORDS = {
    **dict.fromkeys(("right", "r", "1", "yes", "true", "pass", "passed", "correct"), Label.RIGHT),
    **dict.fromkeys(("wrong", "w", "0", "no", "false", "fail", "failed"), Label.WRONG),
    **dict.fromkeys(("skip", "skipped", "s", "-1", "?"), Label.SKIPPED),
}


@dataclass(frozen=True, slots=True)
class StoredLabel(Plain):
    """A label of one person; ``None`` takes an earlier one back."""

    task: str
    number: int
    person: str
    label: Label | None
    note: str = ""
    at: str = ""

    def _as_dict(self) -> dict[str, object]:
        return {
            "task": self.task,
            "attempt": self.number,
            "person": self.person,
            "label": None if self.label is None else str(self.label),
            "note": self.note,
            "at": self.at,
        }


@dataclass(frozen=True, slots=True)
class DrawnAttempt:
    """An attempt that was drawn to be labeled, and its place in the draw."""

    draw: str
    place: int
    task: str
    number: int


def add_labels(store: Store, run: str, labels: Sequence[StoredLabel]) -> int:
    """Add labels of finished attempts in one transaction; returns how many were new.

    A label that the person has given to the attempt already is not added again.
    """
    verdicts = {(task, number): verdict for task, number, verdict in store.verdicts(run)}
    for label in labels:
        place = f"{label.task}#{label.number}"
        if not label.person.strip():
            raise InvalidValue(f"the label of {place} needs the name of a person.")
        verdict = verdicts.get((label.task, label.number))
        if verdict is None:
            raise InvalidValue(f"run {run} has no finished attempt {place}.")
        if verdict is Verdict.MISSING:
            raise InvalidValue(
                f"attempt {place} has no verdict of the judge, so a label has nothing to correct.",
                hint="Judge or repeat missing attempts first.",
            )
    newest = {
        (label.task, label.number, label.person): label
        for label in load_labels(store._queries, store._key(run))
    }
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    new = []
    for label in labels:
        key = (label.task, label.number, label.person.strip())
        before = newest.get(key)
        if (None if before is None else before.label) != label.label:
            new.append(label)
            newest[key] = label
    with store._transaction():
        run_key, tasks = store._key(run), store._tasks(run)
        store._db.executemany(
            "INSERT INTO labels (run, task, number, person, label, note, at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    *(run_key, tasks[label.task], label.number, label.person.strip()),
                    None if label.label is None else int(label.label),
                    *(label.note, label.at or now),
                )
                for label in new
            ],
        )
        store._tell(run)
    return len(new)


def load_labels(queries: Queries, run: int) -> list[StoredLabel]:
    """The label that counts of every person and attempt, in the order in which they were given."""
    rows = queries._all(
        "SELECT t.task, l.number, l.person, l.label, l.note, l.at FROM labels l "
        "JOIN tasks t ON t.key = l.task WHERE l.run = ? ORDER BY l.at, l.key",
        run,
    )
    newest: dict[tuple[str, int, str], StoredLabel] = {}
    for task, number, person, label, note, at in rows:
        key = (str(task), int(number), str(person))
        newest.pop(key, None)
        if label is not None:
            newest[key] = StoredLabel(*key, Label(int(label)), note, at)
    return list(newest.values())


def load_votes(queries: Queries, run: int) -> tuple[tuple[str, int, int], ...]:
    """(task, passes, votes) of every attempt that a model judged, in the order of the tasks."""
    rows = queries._all(
        "SELECT t.task, c.body FROM calls c JOIN tasks t ON t.key = c.task WHERE c.run = ? "
        "ORDER BY c.task, c.number",
        run,
    )
    found = []
    for task, body in rows:
        calls = json.loads(zlib.decompress(bytes(body)))
        votes = [vote for call in calls for vote in call.get("votes") or ()]
        if votes:
            found.append((str(task), sum(map(bool, votes)), len(votes)))
    return tuple(found)


def save_draw(store: Store, run: str, draw: str, attempts: Sequence[tuple[str, int]]) -> None:
    """Write down which attempts were drawn, in their order; the same draw again adds nothing."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with store._transaction():
        key, tasks = store._key(run), store._tasks(run)
        store._db.executemany(
            "INSERT INTO label_draws (run, task, number, draw, place, at) "
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run, task, number, draw) DO NOTHING",
            [
                (key, tasks[task], number, draw, place, now)
                for place, (task, number) in enumerate(attempts)
            ],
        )
        store._tell(run)


def load_draws(queries: Queries, run: int) -> list[DrawnAttempt]:
    """The attempts that were drawn, oldest draw first, each attempt once."""
    rows = queries._all(
        "SELECT d.draw, d.place, t.task, d.number FROM label_draws d "
        "JOIN tasks t ON t.key = d.task WHERE d.run = ? ORDER BY d.at, d.draw, d.place",
        run,
    )
    drawn: dict[tuple[str, int], DrawnAttempt] = {}
    for draw, place, task, number in rows:
        drawn.setdefault((str(task), int(number)), DrawnAttempt(draw, place, task, int(number)))
    return list(drawn.values())


def decide_label(labels: Iterable[Label | None]) -> bool | None:
    """The label of several people: that of the majority; ``None`` where they disagree or skip."""
    words = [label for label in labels if label is not None and label is not Label.SKIPPED]
    right = sum(label is Label.RIGHT for label in words)
    if 2 * right == len(words):
        return None
    return 2 * right > len(words)


def load_label_counts(queries: Queries, run: int) -> LabelCounts | None:
    """The labels of a run against the verdicts that count now; ``None`` without labels."""
    labels = load_labels(queries, run)
    if not labels:
        return None
    rows = queries._all(
        "SELECT t.task, a.number, a.verdict FROM judged a JOIN tasks t ON t.key = a.task "
        "WHERE a.run = ? AND a.verdict IS NOT NULL AND EXISTS (SELECT 1 FROM labels l "
        "WHERE l.run = a.run AND l.task = a.task AND l.number = a.number)",
        run,
    )
    verdicts = {(str(task), int(number)): Verdict(int(verdict)) for task, number, verdict in rows}
    draws = dict.fromkeys(drawn.draw for drawn in load_draws(queries, run))
    return count_labels(labels, verdicts, tuple(draws))


def count_labels(
    labels: Sequence[StoredLabel],
    verdicts: dict[tuple[str, int], Verdict],
    draws: tuple[str, ...] = (),
) -> LabelCounts:
    """Count labels against verdicts; an attempt without a verdict is left out."""
    by_attempt: dict[tuple[str, int], dict[str, Label]] = {}
    for label in labels:
        if label.label is not None:
            by_attempt.setdefault((label.task, label.number), {})[label.person] = label.label
    scored = {
        place: people
        for place, people in by_attempt.items()
        if verdicts.get(place, Verdict.MISSING) is not Verdict.MISSING
    }
    units = [
        [int(label) for label in people.values() if label is not Label.SKIPPED]
        for people in scored.values()
    ]
    return LabelCounts.from_rows(
        (
            (place[0], verdicts[place] is Verdict.PASSED, decide_label(people.values()))
            for place, people in sorted(scored.items())
        ),
        draws=draws,
        people=len({label.person for label in labels}),
        agreement=krippendorff_alpha(units),
    )


def label_texts(queries: Queries, run: int) -> dict[tuple[str, int], str]:
    """The labels of each attempt as JSON, as an export has them."""
    draws = {(drawn.task, drawn.number): drawn.draw for drawn in load_draws(queries, run)}
    entries: dict[tuple[str, int], list[dict[str, object]]] = {}
    for label in load_labels(queries, run):
        place = (label.task, label.number)
        entry = {key: value for key, value in label.to_dict().items() if key in _EXPORTED}
        entries.setdefault(place, []).append(entry | {"draw": draws.get(place, "")})
    return {
        place: json.dumps(entries.get(place, [{"draw": draws.get(place, "")}]), ensure_ascii=False)
        for place in {**dict.fromkeys(draws), **dict.fromkeys(entries)}
    }


_EXPORTED = ("person", "label", "note", "at")


def parse_labels(task: str, number: int, text: str) -> tuple[list[StoredLabel], list[str]]:
    """The labels and draws of an attempt from :func:`label_texts`."""
    try:
        entries = json.loads(text)
        draws = [str(entry["draw"]) for entry in entries if entry.get("draw")]
        labels = [
            StoredLabel(
                *(task, number, str(entry["person"]), Label.of(str(entry["label"]))),
                *(str(entry.get("note") or ""), str(entry.get("at") or "")),
            )
            for entry in entries
            if entry.get("person")
        ]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ReadError(
            "has labels that cannot be read; they should be a list of objects with person and "
            "label.",
            source=f"{task}#{number}",
        ) from None
    return labels, draws


def labels_from_attempts(attempts: Attempts | None) -> LabelCounts | None:
    """The labels that attempts of an export carry, against their verdicts."""
    if attempts is None or "labels" not in attempts.extras:
        return None
    labels: list[StoredLabel] = []
    draws: dict[str, None] = {}
    verdicts = {}
    for attempt in attempts:
        if text := attempt.extras.get("labels"):
            found, texts = parse_labels(attempt.task, attempt.number, text)
            labels += found
            draws |= dict.fromkeys(texts)
            verdicts[attempt.task, attempt.number] = attempt.verdict
    return count_labels(labels, verdicts, tuple(draws)) if labels else None
