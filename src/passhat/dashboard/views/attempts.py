"""What happened: attempts line by line, and one attempt with its conversation."""

from __future__ import annotations

from passhat.dashboard.app_state import Answer, Ask, Csv, Html, Json, Site
from passhat.dashboard.errors import NotFound
from passhat.dashboard.formatting import address
from passhat.dashboard.summaries import Summary
from passhat.dashboard.transcripts import turns_of
from passhat.errors import InvalidValue, PasshatError
from passhat.stats.outcomes import Verdict
from passhat.store.queries import AttemptLine, Reading, Wanted

__all__ = ["attempt", "attempts"]

SCHEMA = "passhat.attempts/1"
VERDICTS = {
    "": None,
    "passed": Verdict.PASSED,
    "failed": Verdict.FAILED,
    "missing": Verdict.MISSING,
}
ORDERS = ("newest", "suite")
_PAGE, _MOST_ROWS = 100, 10_000


def attempts(site: Site, ask: Ask) -> Answer:
    """The attempts of a run, some at a time; ``after`` says from where on."""
    summary = site.summaries.one(ask.path["run"])
    verdict, order = ask.choice("verdict", [*VERDICTS]), ask.choice("order", ORDERS)
    wanted = Wanted(VERDICTS[verdict], ask.text("why"))
    size = min(ask.whole("size", _PAGE), _MOST_ROWS)
    found = _found(site.reading, summary, wanted, order, size + 1, ask.text("after"))
    lines, more = found[:size], len(found) > size
    after = _after(lines[-1], order) if more else ""
    if ask.form == "json":
        return Json(
            {
                "schema": SCHEMA,
                "run": summary.id,
                "attempts": [one.to_dict() for one in lines],
                "after": after or None,
            }
        )
    if ask.form == "csv":
        rows = [one.to_dict() for one in lines]
        return Csv([*rows[0]] if rows else ["task"], [[*row.values()] for row in rows])
    asked = {"verdict": verdict, "why": ask.text("why"), "order": order}
    return Html(
        "_attempts.html.j2" if ask.part == "list" else "attempts.html.j2",
        {
            "run": summary,
            "lines": lines,
            "asked": asked,
            "next": address("runs", summary.id, "attempts", **asked, after=after) if more else "",
            "words": _words(site, summary),
            "verdicts": [word for word in VERDICTS if word],
        },
    )


def _words(site: Site, summary: Summary) -> list[str]:
    """Categories and reasons to choose from, where they are counted already."""
    try:
        known = site.reports.soon(summary)
    except PasshatError:
        known = None
    return sorted({one.why for one in known.groups if one.why}) if known else []


def _found(
    reading: Reading, summary: Summary, wanted: Wanted, order: str, size: int, after: str
) -> list[AttemptLine]:
    when, _, place = after.rpartition("~")
    task, _, number = place.partition(".")
    if after and not (task.isdigit() and number.isdigit()):
        raise InvalidValue(f"after={after!r} is no place in this list; begin without it.")
    key = summary.head.key
    if order == "suite":
        return reading.lines(key, wanted, size, (int(task), int(number)) if after else None)
    return reading.newest(key, wanted, size, (when, int(task), int(number)) if after else None)


def _after(line: AttemptLine, order: str) -> str:
    place = f"{line.place[0]}.{line.place[1]}"
    return f"{line.finished}~{place}" if order == "newest" else place


def attempt(site: Site, ask: Ask) -> Answer:
    """One attempt: how it ended, why, and every turn; with the ones before and after it."""
    summary = site.summaries.one(ask.path["run"])
    run = summary.head.key
    task, number = ask.path["task"], int(ask.path["number"])
    key = site.reading.task_key(run, task)
    line = site.reading.line(run, (key, number)) if key is not None else None
    if line is None:
        raise NotFound(f"run {summary.id} has no finished attempt {task}#{number}.")
    turns = turns_of(site.reading.transcript(run, line.place))
    data = {"schema": "passhat.attempt/1", "run": summary.id, **line.to_dict()}
    if ask.form == "json":
        transcript = site.reading.transcript(run, line.place)
        return Json(data | {"transcript": [dict(entry) for entry in transcript]})
    if ask.form == "csv":
        return Csv(
            ("turn", "kind", "who", "text"),
            [(one.number, one.kind, one.who, one.text) for one in turns],
        )
    only = ask.choice("verdict", [*VERDICTS])
    wanted = Wanted(VERDICTS[only])
    before, after = (
        site.reading.beside(run, wanted, line.place, before=before) for before in (True, False)
    )
    marks = site.reading.marks(run, [line.place[0]]).get(line.place[0], [])
    return Html(
        "attempt.html.j2",
        {
            "run": summary,
            "line": line,
            "turns": turns,
            "only": only,
            "words": site.reading.words(run, line.place),
            "marks": marks[:_PAGE],
            "previous": _link(summary, before, only),
            "next": _link(summary, after, only),
        },
    )


def _link(summary: Summary, line: AttemptLine | None, only: str) -> str:
    if line is None:
        return ""
    return address("runs", summary.id, "attempt", line.task, line.number, verdict=only)
