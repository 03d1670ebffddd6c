"""What a report adds when programs were judged: how many there were, and how good the tests are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from passhat._display import counted, number, some
from passhat.judging import UNCONFIRMED, is_code_judge
from passhat.stats.estimate import estimate
from passhat.stats.outcomes import Outcomes, Run, Verdict
from passhat.stats.outcomes.attempts import Attempts
from passhat.stats.outcomes.vocabulary import MissingReason

__all__ = ["code_notes", "diversity_notes", "doubt_notes", "weak_tests"]

_USUAL_STORE = ".passhat/passhat.db"


def weak_tests(run: Run) -> dict[str, float]:
    """Tasks whose hidden tests are known to notice too few mistakes, with the share they do."""
    fingerprint = run.protocol.tests_fingerprint
    if not _is_code(run) or not fingerprint or "/" in fingerprint:
        return {}
    from passhat.judging.mutants import known_strengths, strengths_folder

    for store in (run.source, _USUAL_STORE):
        folder = strengths_folder(store)
        found = known_strengths(folder, fingerprint) if Path(folder).is_dir() else {}
        if found:
            tasks = set(run.outcomes.tasks)
            return {
                task: one.share
                for task, one in found.items()
                if one.weak and one.share is not None and task in tasks
            }
    return {}


def code_notes(run: Run, weak: Mapping[str, float]) -> tuple[str, ...]:
    """Sentences on identical programs and on weak tests."""
    if not _is_code(run):
        return ()
    from passhat.judging.mutants import WEAK_BELOW

    notes: list[str] = []
    if run.attempts is not None and run.attempts.answers is not None:
        notes += diversity_notes(_rows(run.attempts))
    if weak:
        listed = some([f"{task} ({share:.0%})" for task, share in weak.items()], 6)
        notes.append(
            f"weak tests on {len(weak):,} of {counted(len(run.outcomes), 'task')}: they notice "
            f"under {WEAK_BELOW:.0%} of broken canonical solutions, so passing means less there: "
            f"{listed}"
        )
    return tuple(notes)


def _is_code(run: Run) -> bool:
    return is_code_judge(run.protocol.judge)


def doubt_notes(run: Run) -> tuple[str, ...]:
    """Sentences on attempts that the judges did not agree on, or that one alone could judge."""
    if not _is_code(run):
        return ()
    notes = []
    unlike = run.missing_by_reason.get(str(MissingReason.JUDGES_DISAGREE), 0)
    if unlike:
        notes.append(
            f"judges disagree on {counted(unlike, 'attempt')}, counted as missing; look at them "
            "with passhat judge --show TASK"
        )
    alone = _unconfirmed(run.attempts) if run.attempts is not None else 0
    if alone:
        notes.append(
            f"{counted(alone, 'attempt')} passed unconfirmed: the split judge cannot judge the "
            "tests, so a program may have forged it; --strict counts them as missing"
        )
    return tuple(notes)


def _unconfirmed(attempts: Attempts) -> int:
    if attempts.detail is None or UNCONFIRMED not in attempts.detail.values:
        return 0
    codes = attempts.detail.codes[attempts.verdicts == Verdict.PASSED]
    return int((codes == list(attempts.detail.values).index(UNCONFIRMED)).sum())


def _rows(attempts: Attempts) -> Iterator[dict[str, object]]:
    """Attempts whose program is known, as diversity counts them."""
    assert attempts.answers is not None
    verdicts, answers = attempts.verdicts.tolist(), attempts.answers.tolist()
    starts = attempts.starts.tolist()
    for task, start, stop in zip(attempts.tasks, starts[:-1], starts[1:], strict=True):
        for row in range(start, stop):
            if answers[row]:
                missing = verdicts[row] == Verdict.MISSING
                success = None if missing else verdicts[row]
                yield {"task": task, "answer": answers[row], "success": success}


def diversity_notes(rows: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Sentences on identical programs per task, and pass@k over the distinct ones.

    Programs are alike when they differ in layout, comments and local names only. A distinct
    program passed when any of its copies did.
    """
    programs: dict[str, dict[str, bool]] = {}
    attempts = 0
    for row in rows:
        if row["success"] is None:
            continue
        attempts += 1
        known = programs.setdefault(str(row["task"]), {})
        name = str(row["answer"])
        known[name] = known.get(name, False) or bool(row["success"])
    distinct = sum(map(len, programs.values()))
    if attempts <= len(programs):
        return ()
    said = f"{counted(attempts, 'attempt')}, {counted(distinct, 'distinct program')}"
    if distinct == attempts:
        return (f"{said}: no two attempts at a task are the same program",)
    return (f"{said}; {_over_distinct(programs)}", *_nothing_bought(programs, attempts))


def _over_distinct(programs: Mapping[str, Mapping[str, bool]]) -> str:
    n = [len(found) for found in programs.values()]
    c = [sum(found.values()) for found in programs.values()]
    k = min(n)
    found = estimate(Outcomes.from_counts(n, c, list(programs)), f"pass@{k}", level=None)
    return f"over distinct programs pass@{k} is {number(found.value)}"


def _nothing_bought(programs: Mapping[str, Mapping[str, bool]], attempts: int) -> tuple[str, ...]:
    alone = sum(len(found) == 1 for found in programs.values())
    if alone == 0 or attempts < 2 * len(programs):
        return ()
    return (
        f"on {counted(alone, 'task')} of {len(programs):,} all attempts are one program: further "
        "attempts there bought nothing",
    )
