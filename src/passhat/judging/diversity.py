"""How many different programs the attempts really were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from passhat._display import counted, number
from passhat.stats.estimate import estimate
from passhat.stats.outcomes import Outcomes

__all__ = ["diversity_notes"]


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
