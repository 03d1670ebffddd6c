"""Steps after a report: commands that work when they are typed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from passhat._display import counted
from passhat.reporting.document import Level, OptionsNote
from passhat.reporting.view import RunReport
from passhat.stats.estimate.metrics import PassHat
from passhat.stats.outcomes import Run

_HALF_WIDTH = 0.05
"""An interval this narrow on either side needs no plan."""


def next_step(run: RunReport) -> str:
    """The cheapest thing that would make the answer better; empty where it is good enough."""
    outcomes = run.run.outcomes
    if run.nothing_answered or run.failures.warning:
        again = "run again with --name NAME once it works"
        return f"{again}; an attempt as it went: {_show_command(run.run)}"
    if outcomes.total_missing:
        missing = counted(outcomes.total_missing, "missing attempt")
        again = "; the same passhat run with --only-missing repeats them" if run.run.id else ""
        return f"judge or repeat the {missing}{again}"
    if len(outcomes) == 1:
        return "add tasks; one task says nothing about others"
    if int(outcomes.n.max()) == 1:
        again = "; the same passhat run with -n 8 does" if run.run.id else ""
        return f"make several attempts at each task{again}"
    top = run.find(PassHat(run.top_k))
    low, high = (None, None) if top is None else (top.low, top.high)
    if low is not None and high is not None and (high - low) / 2 <= _HALF_WIDTH:
        return ""
    options = f"--metric pass^{run.top_k} --half-width {_HALF_WIDTH}"
    words = _source_words(run.run)
    if is_read_once(words):
        return ""
    command = f"passhat plan {shlex.join(words)}"
    if sum(not word.startswith("--") for word in words) > 1 and "--join" in words:
        # A plan is about one source.
        command = f"passhat read {shlex.join(words)} -o runs.jsonl && passhat plan runs.jsonl"
    return f"how many tasks are enough: {command} {options}"


def _show_command(run: Run) -> str:
    """The command that shows the first attempt at the first task."""
    store = ("--store", run.words[0]) if _is_elsewhere(run) else ()
    return shlex.join(("passhat", "show", run.id, f"{run.outcomes.tasks[0]}#1", *store))


def _is_elsewhere(run: Run) -> bool:
    """Whether the run is in another store than the one that commands look into."""
    return run.words[1:2] == ("--run",)


def join_words(runs: Sequence[Run]) -> list[str]:
    """Several runs as one command takes them; those of another store are chosen by their ids."""
    sources = (run.words[:1] if _is_elsewhere(run) else _source_words(run) for run in runs)
    words = dict.fromkeys(word for source in sources for word in source)
    names: list[str] = []
    if any(map(_is_elsewhere, runs)):
        ids = dict.fromkeys(run.id or run.name for run in runs)
        names = [word for name in ids for word in ("--run", name)]
    return [*words, *names]


def _source_words(run: Run) -> tuple[str, ...]:
    """The run as a command takes it: its id in a store, or its file; SOURCE where it has none."""
    return run.words or (run.id or run.source or "SOURCE",)


def is_read_once(words: Sequence[str]) -> bool:
    """Whether the data came from standard input: another command has nothing to read there."""
    return "-" in words


def full_report_note(run: RunReport) -> OptionsNote:
    """How to see more, with the count of notes, so that none is hidden silently."""
    count = len(run.notes) + len(run.run.losses)
    notes = f" ({counted(count, 'note')})" if count else ""
    return OptionsNote(f"More: --full{notes}, --tasks, -o FILE.html, --json", level=Level.SHORT)
