"""One screen by default: what it says, and that it fits."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console

from hypothesis_profiles import max_examples
from passhat._display import percent, percent_interval
from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.document import Document, Level
from passhat.reporting.documents.report import report_document, run_document, runs_on_screen
from passhat.reporting.documents.verdicts import comparison_document, verdict_sentence
from passhat.reporting.task_changes import pair_cells, task_changes
from passhat.reporting.terminal import render_terminal
from passhat.reporting.view import run_labels
from passhat.stats.compare import compare, compare_all
from passhat.stats.outcomes import Outcomes, Run

LINES, COLUMNS = 20, 80
SHORT = ReportOptions(short=True)


def _screen(document: Document) -> str:
    console = Console(file=StringIO(), width=COLUMNS, color_system=None)
    return render_terminal(document, console, Level.SHORT)


def _run(name: str, n: int | Sequence[int], c: Sequence[int], missing: Sequence[int] = ()) -> Run:
    tasks = [f"task-{i:03}" for i in range(len(c))]
    outcomes = Outcomes.from_counts(n, c, tasks, missing=missing or None)
    return Run(f"{name} 0123456789", name, outcomes)


def _headline(run: Run, **options: object) -> str:
    return build_report([run], ReportOptions(**options)).runs[0].headline  # type: ignore[arg-type]


def test_the_sentence_carries_its_intervals() -> None:
    text = _headline(_run("bot", 4, [4, 4, 2, 1, 0, 3, 4, 2]))
    assert text == "62% of single attempts pass (31 to 86%); all 4 pass on 38% of tasks (9 to 76%)."


def test_two_attempts_are_both() -> None:
    assert "; both pass on " in _headline(_run("bot", 2, [2, 1, 0, 2]))


def test_one_task_says_nothing_about_others() -> None:
    text = _headline(_run("bot", 8, [6]))
    assert text.startswith("6 of 8 attempts at the only task pass (")
    assert text.endswith("One task says nothing about other tasks.")
    assert "of tasks" not in text


@pytest.mark.parametrize("c", [[6], [6, 8, 0, 3]])
def test_a_short_report_reads_as_one_with_everything(c: list[int]) -> None:
    run = _run("bot", 8, c)
    short = _screen(report_document(build_report([run], SHORT)))
    assert short == _screen(report_document(build_report([run], ReportOptions())))


def test_one_attempt_cannot_show_repetition() -> None:
    text = _headline(_run("bot", 1, [1, 0, 1, 1]))
    assert text.startswith("75% of single attempts pass (")
    assert text.endswith("One attempt per task cannot show whether the same task passes again.")


@pytest.mark.parametrize(("c", "word"), [(1, "passed"), (0, "failed")])
def test_one_attempt_at_one_task(c: int, word: str) -> None:
    text = _headline(_run("bot", 1, [c]))
    assert text.startswith(f"The only judged attempt at the only task {word}.")
    assert "%" not in text


def test_missing_attempts_widen_the_sentence() -> None:
    text = _headline(_run("bot", [2, 1], [1, 1], [0, 1]))
    assert text.startswith("50 to 75% of single attempts pass (")
    everything = _headline(_run("bot", [0, 0], [0, 0], [2, 2]))
    assert everything == "No attempt has a verdict: all 4 are missing."


@pytest.mark.parametrize("c", [[0] * 6, [3] * 6])
def test_always_and_never(c: list[int]) -> None:
    share = "100%" if c[0] else "0%"
    assert _headline(_run("bot", 3, c)).startswith(f"{share} of single attempts pass (")


def test_labels_have_no_ids_unless_nothing_else_differs() -> None:
    one, two = _run("demo:careful", 2, [1, 2]), _run("demo:hasty", 2, [1, 2])
    assert run_labels([one, two]) == ["careful", "hasty"]
    assert run_labels([one]) == ["careful"]
    again = Run("demo:careful abcdef", "demo:careful", one.outcomes)
    assert run_labels([one, again]) == ["careful 0123456789", "careful abcdef"]
    address = Run("a2a:http://localhost:9000", "a2a:http://localhost:9000", one.outcomes)
    assert run_labels([address]) == ["http://localhost:9000"]


def test_a_comparison_in_one_sentence() -> None:
    a, b = _run("demo:hasty", 4, [1, 2, 0, 1] * 6), _run("demo:careful", 4, [4, 4, 3, 4] * 6)
    found = compare(a, b, ["pass^1", "pass^4"])
    text = verdict_sentence(found, "hasty", "careful")
    assert text.startswith("pass^4 rose by ")
    assert ", on these 24 tasks, from 0% (hasty) to 75% (careful)." in text
    back = verdict_sentence(compare(b, a, ["pass^4"]), "careful", "hasty")
    assert back.startswith("pass^4 dropped by ")


def test_a_tie_is_not_called_equality() -> None:
    run = _run("bot", 4, [1, 2, 3, 4])
    other = Run("other 1", "other", run.outcomes)
    text = verdict_sentence(compare(run, other, ["pass^1"]), "bot", "other")
    assert text.startswith("No change of pass^1 is shown on these 4 tasks, from 62% (bot) to 62%")


def test_names_cannot_split_the_headline() -> None:
    """A name may hold whatever a sentence holds."""
    a, b = Run("base (v1). old", "", _run("x", 4, [1, 2]).outcomes), _run("new; x", 4, [4, 4])
    text = verdict_sentence(compare(a, b, ["pass^1"]), "base (v1). old", "new; x")
    assert "(base (v1). old) to " in text
    assert "(new; x)" in text


def test_cells_count_single_attempts_and_share_more() -> None:
    cells = pair_cells(
        _run("a", 1, [1, 1, 0, 0, 1]).outcomes, _run("b", 1, [1, 0, 1, 0, 1]).outcomes
    )
    assert cells is not None
    assert cells.text("a", "b") == "Tasks: both pass 2, only b 1, only a 1, both fail 1"
    shares = pair_cells(_run("a", 2, [1, 2]).outcomes, _run("b", 4, [2, 0]).outcomes)
    assert shares is not None
    assert shares.text("a", "b") == (
        "Attempts: both pass 13%, only b 13%, only a 62%, both fail 12%"
    )


LONG = "python:" + "a_rather_long_module_name." * 3 + "agent"


def test_cells_of_attempts_with_a_verdict_say_so() -> None:
    lossy = Outcomes.from_counts(2, [1, 2], missing=[1, 0])
    cells = pair_cells(lossy, Outcomes.from_counts(4, [2, 0]))
    assert cells is not None
    assert cells.text("a", "b").startswith("Attempts with a verdict: both pass ")


@example(tasks=2, n=8, missing=True, seed=7)
@settings(max_examples=max_examples(8))
@given(
    tasks=st.integers(1, 40),
    n=st.integers(1, 12),
    missing=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_every_short_form_fits_one_screen(tasks: int, n: int, missing: bool, seed: int) -> None:
    counts = [(seed * (i + 3) + i * i) % (n + 1) for i in range(tasks)]
    lost = [(seed + i) % 2 for i in range(tasks)] if missing else []
    run, other = _run(LONG, n, counts, lost), _run("demo:other", n, counts[::-1], lost[::-1])
    report = build_report([run], SHORT)
    compared = compare(run, other, ["pass^1"], allow=True)
    changes = task_changes(run, other, "pass^1")
    many = [Run(f"r{i}", f"r{i}", other.outcomes) for i in range(9)]
    for text in (
        _screen(report_document(report)),
        _screen(report_document(build_report(many, SHORT))),
        _screen(run_document(report.runs[0], f"0123456789 {run.outcomes.tasks[0]}#{n}")),
        _screen(comparison_document(compared, [run, other], changes)),
        _screen(comparison_document(compare_all(many[:4], ["pass^1"]), many[:4], ())),
    ):
        lines = text.splitlines()
        assert len(lines) <= LINES, text
        assert max(map(len, lines)) <= COLUMNS, text


def test_a_warning_of_a_run_among_several_is_shown() -> None:
    outcomes = Outcomes.from_counts([4, 4], [1, 3])
    sound = Run("sound", "sound", outcomes)
    leaky = Run("leaky", "leaky", outcomes, warnings=("leak: in 3 of 8", "25% of answers were cut"))
    text = _screen(report_document(build_report([sound, leaky], ReportOptions())))
    assert "Warning: leaky: leak: in 3 of 8 (and 1 more)." in text.splitlines()


def test_long_names_that_begin_alike_stay_apart() -> None:
    outcomes = Outcomes.from_counts([4, 4, 4], [1, 3, 2])
    name = "python:package.agents.of_the_team:"
    runs = [Run(f"{name}{end}", f"{name}{end}", outcomes) for end in ("careful", "hasty")]
    text = _screen(comparison_document(compare(runs[0], runs[1], ["pass^1"]), runs, ()))
    table = _screen(report_document(build_report(runs, SHORT)))
    for shown in (text, table):
        assert "careful" in shown
        assert "hasty" in shown


def test_of_a_large_store_the_newest_runs_are_shown() -> None:
    outcomes = Outcomes.from_counts([4, 4], [1, 3])
    stored = [Run(f"r{i}", f"r{i}", outcomes, started=f"2026-11-{i:02}") for i in range(1, 10)]
    shown = runs_on_screen(stored)
    assert [run.name for run in shown] == ["r4", "r5", "r6", "r7", "r8", "r9"]
    text = _screen(report_document(build_report(shown, SHORT), left_out=3))
    assert text.startswith("9 runs  2 tasks each\n")
    assert "and 3 more: the newest are shown" in text
    tables = [Run(f"r{i}", f"r{i}", outcomes) for i in range(9)]
    assert runs_on_screen(tables) == tables[:6]


def test_a_comparison_shows_the_warnings_of_both_runs() -> None:
    outcomes = Outcomes.from_counts([4, 4, 4], [1, 3, 2])
    sound = Run("sound", "sound", outcomes)
    leaky = Run("leaky", "leaky", outcomes, warnings=("leak: in 3 of 8",))
    third = Run("third", "third", outcomes)
    pair = _screen(comparison_document(compare(sound, leaky, ["pass^1"]), [sound, leaky], ()))
    runs = [sound, leaky, third]
    ranked = _screen(comparison_document(compare_all(runs, ["pass^1"]), runs, ()))
    for text in (pair, ranked):
        assert "Warning: leaky: leak: in 3 of 8." in text.splitlines()


def test_percentages_are_exact_at_the_ends() -> None:
    assert [percent(x, 0) for x in (0, 0.004, 0.64, 0.996, 1)] == [
        "0%",
        "0.4%",
        "64%",
        "99.6%",
        "100%",
    ]
    assert percent(1e-9, 0) == "under 0.01%"
    assert percent(1 - 1e-9, 0) == "over 99.99%"
    assert percent_interval(0.49, 0.77) == "49 to 77%"
    assert percent_interval(0.631, 0.642) == "63.1 to 64.2%"
    assert percent_interval(0.5, 0.5) == "50%"
    assert percent_interval(0, 1e-7) == "0.00% to under 0.01%"
    assert percent_interval(None, None) == "–"
