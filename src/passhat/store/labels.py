"""Labels in a store: people's verdicts on attempts, and the draws that chose the attempts.

A label stands beside the judge's verdict and never replaces it. Rows are only added: a person who
changes a label adds a newer one, and a label that is taken back is a row without a verdict.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from itertools import takewhile

from passhat._serialize import Plain, Text
from passhat.errors import InvalidValue, ReadError
from passhat.stats.labels.agreement import krippendorff_alpha
from passhat.stats.labels.drawing import DrawKind, draw_attempts
from passhat.stats.outcomes import Attempts, Verdict
from passhat.stats.outcomes.labels import Anchor, LabelCounts
from passhat.store.base import Store
from passhat.store.queries import Queries


class Label(Text, IntEnum):
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

    WRITTEN = ("task", ("attempt", "number"), "person", "label", "note", "at")

    task: str
    number: int
    person: str
    label: Label | None
    note: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class DrawnAttempt:
    """An attempt that was drawn to be labeled, and its place in the draw."""

    draw: str
    place: int
    task: str
    number: int


@dataclass(frozen=True, slots=True)
class AddedLabels:
    """How many labels were added: new ones, and those that replace the person's earlier one."""

    new: int
    changed: int


def add_labels(store: Store, run: str, labels: Sequence[StoredLabel]) -> AddedLabels:
    """Add labels of finished attempts in one transaction.

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
    new, changed = [], 0
    for label in labels:
        key = (label.task, label.number, label.person.strip())
        before = newest.get(key)
        if (None if before is None else before.label) != label.label:
            new.append(label)
            newest[key] = label
            changed += before is not None
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
    return AddedLabels(len(new) - changed, changed)


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


@dataclass(frozen=True, slots=True)
class JudgeVotes:
    """The votes of one model on an attempt, and how many of its answers named no verdict."""

    task: str
    number: int
    judge: str
    votes: tuple[bool, ...]
    lost: int = 0


def load_votes(queries: Queries, run: int) -> list[JudgeVotes]:
    """The votes of every model that judged an attempt, in the order of the tasks."""
    rows = queries._all(
        "SELECT t.task, c.number, c.body FROM calls c JOIN tasks t ON t.key = c.task "
        "WHERE c.run = ? ORDER BY c.task, c.number",
        run,
    )
    found = []
    for task, number, body in rows:
        for call in json.loads(zlib.decompress(bytes(body))):
            votes, lost = tuple(call.get("votes") or ()), int(call.get("lost_votes") or 0)
            if votes or lost:
                found.append(JudgeVotes(str(task), int(number), str(call["name"]), votes, lost))
    return found


def save_draw(store: Store, run: str, draw: str, attempts: Sequence[tuple[str, int]]) -> None:
    """Write down which attempts were drawn, in their order; the same draw again adds nothing."""
    save_drawn_attempts(
        store, run, [DrawnAttempt(draw, place, *attempt) for place, attempt in enumerate(attempts)]
    )


def save_drawn_attempts(store: Store, run: str, drawn: Sequence[DrawnAttempt]) -> None:
    """Write down drawn attempts; those that are there already stay."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with store._transaction():
        key, tasks = store._key(run), store._tasks(run)
        store._db.executemany(
            "INSERT INTO label_draws (run, task, number, draw, place, at) "
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run, task, number, draw) DO NOTHING",
            [(key, tasks[one.task], one.number, one.draw, one.place, now) for one in drawn],
        )
        store._tell(run)


def load_draws(queries: Queries, run: int) -> list[DrawnAttempt]:
    """The attempts that were drawn, oldest draw first, each attempt once."""
    drawn: dict[tuple[str, int], DrawnAttempt] = {}
    for attempt in load_all_draws(queries, run):
        drawn.setdefault((attempt.task, attempt.number), attempt)
    return list(drawn.values())


def load_all_draws(queries: Queries, run: int) -> list[DrawnAttempt]:
    """The attempts that were drawn, oldest draw first, once for each draw."""
    rows = queries._all(
        "SELECT d.draw, d.place, t.task, d.number FROM label_draws d "
        "JOIN tasks t ON t.key = d.task WHERE d.run = ? ORDER BY d.at, d.draw, d.place",
        run,
    )
    return [
        DrawnAttempt(str(draw), int(place), str(task), int(number))
        for draw, place, task, number in rows
    ]


MOST_ANCHORS = 10
_ANCHOR_SEED = 1


def choose_anchors(store: Store, run: str, suite: str) -> list[tuple[str, str, int]]:
    """(run, task, number) of a few labeled attempts of the newest labeled run of the suite.

    The same ones every time, and none where they were judged with this run before.
    """
    if load_anchors(store._queries, run):
        return []
    for stored in sorted(store.runs(), key=lambda one: one.started, reverse=True):
        if stored.suite != suite or stored.id == run:
            continue
        places = sorted(decide_labels(load_labels(store._queries, store._key(stored.id))))
        if places:
            drawn = draw_attempts(places, [], MOST_ANCHORS, _ANCHOR_SEED)
            return [(stored.id, *place) for place in drawn.attempts]
    return []


def save_anchor(
    store: Store, run: str, task: str, number: int, by_run: str, *, passed: bool
) -> None:
    """Write down how the judge of a later run judges an attempt."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with store._transaction():
        store._db.execute(
            "INSERT INTO anchors (run, task, number, by_run, verdict, at) "
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run, task, number, by_run) DO NOTHING",
            (store._key(run), store._tasks(run)[task], number, by_run, int(passed), now),
        )


def load_anchors(queries: Queries, by_run: str) -> tuple[Anchor, ...]:
    """The labeled attempts that the judge of a run judged again."""
    rows = queries._all(
        "SELECT n.run, t.task, n.number, a.verdict, n.verdict FROM anchors n "
        "JOIN tasks t ON t.key = n.task "
        "JOIN attempts a ON a.run = n.run AND a.task = n.task AND a.number = n.number "
        "WHERE n.by_run = ? ORDER BY n.run, t.position, n.number",
        by_run,
    )
    labels = {
        run: decide_labels(load_labels(queries, run)) for run in {int(row[0]) for row in rows}
    }
    return tuple(
        Anchor(f"{task}#{number}", bool(then == 1), bool(now == 1), right)
        for run, task, number, then, now in rows
        if (right := labels[int(run)].get((str(task), int(number)))) is not None
    )


def decide_labels(labels: Iterable[StoredLabel]) -> dict[tuple[str, int], bool]:
    """The label of each attempt that people do not disagree on."""
    by_attempt: dict[tuple[str, int], list[Label | None]] = {}
    for label in labels:
        by_attempt.setdefault((label.task, label.number), []).append(label.label)
    decided = {place: decide_label(words) for place, words in by_attempt.items()}
    return {place: right for place, right in decided.items() if right is not None}


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
        "SELECT t.task, a.number, a.verdict, a.why FROM judged a JOIN tasks t ON t.key = a.task "
        "WHERE a.run = ? AND a.verdict IS NOT NULL AND EXISTS (SELECT 1 FROM labels l "
        "WHERE l.run = a.run AND l.task = a.task AND l.number = a.number)",
        run,
    )
    verdicts = {
        (str(task), int(number)): (Verdict(int(verdict)), str(why or ""))
        for task, number, verdict, why in rows
    }
    return count_labels(labels, verdicts, load_all_draws(queries, run))


def count_labels(
    labels: Sequence[StoredLabel],
    verdicts: Mapping[tuple[str, int], tuple[Verdict, str]],
    draws: Sequence[DrawnAttempt] = (),
) -> LabelCounts:
    """Count labels against verdicts and categories; an attempt without a verdict is left out."""
    by_attempt: dict[tuple[str, int], dict[str, Label]] = {}
    for label in labels:
        if label.label is not None:
            by_attempt.setdefault((label.task, label.number), {})[label.person] = label.label
    scored = {
        place: people
        for place, people in by_attempt.items()
        if verdicts.get(place, _NO_VERDICT)[0] is not Verdict.MISSING
    }
    units = [
        [int(label) for label in people.values() if label is not Label.SKIPPED]
        for people in scored.values()
    ]
    rows, categories = [], dict[str, list[tuple[str, bool, bool | None]]]()
    for place, people in sorted(scored.items()):
        verdict, why = verdicts[place]
        row = (place[0], verdict is Verdict.PASSED, decide_label(people.values()))
        rows.append(row)
        if verdict is Verdict.FAILED and why:
            categories.setdefault(why, []).append(row)
    by_verdict, by_attempts = _single_draws(draws, by_attempt.keys())
    return LabelCounts.from_rows(
        rows,
        draws=tuple(dict.fromkeys(drawn.draw for drawn in draws)),
        people=len({label.person for label in labels}),
        agreement=krippendorff_alpha(units),
        by_verdict=by_verdict,
        by_attempts=by_attempts,
        categories={why: LabelCounts.from_rows(part) for why, part in sorted(categories.items())},
    )


_NO_VERDICT = (Verdict.MISSING, "")


def _single_draws(
    draws: Sequence[DrawnAttempt], looked_at: Collection[tuple[str, int]]
) -> tuple[frozenset[str], frozenset[str]]:
    """Tasks that draws of single attempts reached, by verdict and without regard to it.

    Not among them are tasks that were drawn whole. While such a draw is not finished, only its
    tasks before the first unfinished one count: later ones are whole by the other draw.
    """
    reached: dict[DrawKind, set[str]] = {kind: set() for kind in DrawKind}
    whole: dict[str, list[DrawnAttempt]] = {}
    for drawn in draws:
        kind = DrawKind.of(drawn.draw)
        reached[kind].add(drawn.task)
        if kind is DrawKind.WHOLE_TASKS:
            whole.setdefault(drawn.draw, []).append(drawn)
    fair: set[str] = set()
    for attempts in whole.values():
        tasks = dict.fromkeys(drawn.task for drawn in sorted(attempts, key=lambda one: one.place))
        unfinished = {one.task for one in attempts if (one.task, one.number) not in looked_at}
        fair |= set(takewhile(lambda task: task not in unfinished, tasks))  # noqa: B023
    by_verdict = reached[DrawKind.BY_VERDICT] - fair
    return frozenset(by_verdict), frozenset(reached[DrawKind.ATTEMPTS] - fair)


def label_texts(queries: Queries, run: int) -> dict[tuple[str, int], str]:
    """The labels of each attempt as JSON, as an export has them."""
    entries: dict[tuple[str, int], list[dict[str, object]]] = {}
    for label in load_labels(queries, run):
        entry = {key: value for key, value in label.to_dict().items() if key in _EXPORTED}
        entries.setdefault((label.task, label.number), []).append(entry)
    for drawn in load_all_draws(queries, run):
        entry = {"draw": drawn.draw, "place": drawn.place}
        entries.setdefault((drawn.task, drawn.number), []).append(entry)
    return {place: json.dumps(parts, ensure_ascii=False) for place, parts in entries.items()}


_EXPORTED = ("person", "label", "note", "at")


def parse_labels(task: str, number: int, text: str) -> tuple[list[StoredLabel], list[DrawnAttempt]]:
    """The labels and draws of an attempt from :func:`label_texts`."""
    try:
        entries = json.loads(text)
        places = {
            str(entry["draw"]): int(entry.get("place") or 0)
            for entry in entries
            if entry.get("draw")
        }
        draws = [DrawnAttempt(draw, place, task, number) for draw, place in places.items()]
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
    draws: list[DrawnAttempt] = []
    verdicts = {}
    for attempt in attempts:
        if text := attempt.extras.get("labels"):
            found, places = parse_labels(attempt.task, attempt.number, text)
            labels += found
            draws += places
            verdicts[attempt.task, attempt.number] = (attempt.verdict, attempt.why or "")
    return count_labels(labels, verdicts, draws) if labels else None
