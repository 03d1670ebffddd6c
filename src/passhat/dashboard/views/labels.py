"""Label the attempts of a run, one at a time and without the judge's verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from passhat.dashboard.app_state import Answer, AppState, Csv, Html, Json, PageRequest
from passhat.dashboard.formatting import Turn, address, last_words, pretty, turns_of
from passhat.dashboard.run_summaries import Summary
from passhat.errors import InvalidValue
from passhat.reporting.answers import Answers, drop_answers, find_answers
from passhat.stats.labels.drawing import draw_attempts, draw_whole_tasks
from passhat.stats.outcomes import Verdict
from passhat.store import open_store
from passhat.store.labels import (
    Label,
    StoredLabel,
    add_labels,
    load_draws,
    load_labels,
    save_draw,
)
from passhat.suites.base import REMARKS

SCHEMA = "passhat.labels/1"
_LONGEST_NAME = 80
_UNDO = "undo"


@dataclass(frozen=True, slots=True)
class PersonProgress:
    """How many of the drawn attempts a person has looked at, and how they were labeled."""

    person: str
    right: int
    wrong: int
    skipped: int
    left: int
    last: str

    @property
    def looked_at(self) -> int:
        return self.right + self.wrong + self.skipped


@dataclass(frozen=True, slots=True)
class ShownAttempt:
    """An attempt to be labeled: never with the judge's word."""

    task: str
    number: int
    turns: tuple[Turn, ...]
    answers: Answers


def label_page(state: AppState, request: PageRequest) -> Answer:
    """The next attempt for a person to label, and the progress of each person."""
    summary = state.summaries.find(request.path["run"])
    run, person = summary.head.key, request.text("person")[:_LONGEST_NAME]
    labels = load_labels(state.reading, run)
    drawn = load_draws(state.reading, run)
    places = [(attempt.task, attempt.number) for attempt in drawn]
    people = [
        _progress(name, [label for label in labels if label.person == name], places)
        for name in dict.fromkeys(label.person for label in labels)
    ]
    if request.form == "json":
        return Json({"schema": SCHEMA, "run": summary.id, "labels": labels, "people": people})
    if request.form == "csv":
        rows = [label.to_dict() for label in labels]
        names = ("task", "attempt", "person", "label", "note", "at")
        return Csv(names, [[row[name] for name in names] for row in rows])
    mine = {(label.task, label.number) for label in labels if label.person == person}
    left = [place for place in places if place not in mine]
    return Html(
        "label.html.j2",
        {
            "run": summary,
            "person": person,
            "people": people,
            "drawn": len(places),
            "draws": list(dict.fromkeys(attempt.draw for attempt in drawn)),
            "done": len(places) - len(left),
            "can_undo": bool(mine),
            "attempt": _show(state, summary, left[0]) if person and left else None,
        },
    )


def _progress(
    person: str, labels: list[StoredLabel], places: list[tuple[str, int]]
) -> PersonProgress:
    words = [label.label for label in labels]
    mine = {(label.task, label.number) for label in labels}
    return PersonProgress(
        person,
        words.count(Label.RIGHT),
        words.count(Label.WRONG),
        words.count(Label.SKIPPED),
        sum(place not in mine for place in places),
        labels[-1].at,
    )


def _show(state: AppState, summary: Summary, place: tuple[str, int]) -> ShownAttempt:
    task, number = place
    key = state.reading.task_key(summary.head.key, task)
    transcript = state.reading.transcript(summary.head.key, (key or -1, number))
    talk = [
        entry
        for entry in drop_answers(transcript)
        if entry["role"] not in REMARKS and not entry["role"].endswith("judge")
    ]
    answers, turns = find_answers(transcript), turns_of(talk)
    got = pretty(answers.got)
    if not answers.expected:
        got = last_words(turns, got)
    return ShownAttempt(task, number, tuple(turns), Answers(pretty(answers.expected), got))


def save_label(state: AppState, store: str, run: str, fields: Mapping[str, str]) -> str:
    """Keep a label, or take the person's last one back; return where the next attempt is."""
    summary = state.summaries.find(run)
    person = fields.get("person", "").strip()[:_LONGEST_NAME]
    word = fields.get("label", "")
    with open_store(store, must_exist=True) as writable:
        if word == _UNDO:
            labels = load_labels(writable._queries, summary.head.key)
            mine = [label for label in labels if label.person == person]
            for last in mine[-1:]:
                back = StoredLabel(last.task, last.number, person, None)
                add_labels(writable, summary.id, [back])
        else:
            number = fields.get("number", "")
            if not number.isdecimal():
                raise InvalidValue("the label needs the attempt it is about.")
            label = StoredLabel(fields.get("task", ""), int(number), person, Label.of(word))
            add_labels(writable, summary.id, [label])
    return address("runs", summary.id, "label", person=person)


def draw_labels(state: AppState, store: str, run: str, fields: Mapping[str, str]) -> str:
    """Draw attempts to label; return where the first one is."""
    summary = state.summaries.find(run)
    size, seed = (fields.get(name, "").strip() for name in ("size", "seed"))
    if not (size.isdecimal() and int(size) > 0 and seed.isdecimal()):
        raise InvalidValue("a draw needs a number of tasks or attempts, and a seed.")
    with open_store(store, must_exist=True) as writable:
        verdicts = list(writable.verdicts(summary.id))
        passed, failed = (
            [(task, number) for task, number, verdict in verdicts if verdict is wanted]
            for wanted in (Verdict.PASSED, Verdict.FAILED)
        )
        if fields.get("kind") == "sample":
            draw = draw_attempts(passed, failed, int(size), int(seed))
        else:
            draw = draw_whole_tasks([*passed, *failed], int(size), int(seed))
        save_draw(writable, summary.id, draw.text, draw.attempts)
    return address("runs", summary.id, "label", person=fields.get("person", "").strip())
