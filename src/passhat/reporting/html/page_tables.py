"""The tables of the page, from the same objects that every other form prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from passhat._display import figure, percent
from passhat.reporting import comparison_view as compared
from passhat.reporting.details import POLICIES
from passhat.reporting.figures.agents import headline_words
from passhat.reporting.figures.base import labels_of
from passhat.reporting.html.page import Table, value_text
from passhat.reporting.view import Report, RunReport
from passhat.stats.compare import Comparison, Comparisons
from passhat.stats.estimate import Estimate

__all__ = ["comparison_tables", "missing_tables", "number_tables", "overview", "slice_tables"]

_POLICY_WORDS = {
    "bound": "both extremes (bound)",
    "fail": "as failed (fail)",
    "exclude": "left out (exclude)",
}


def comparison_tables(comparison: Comparison | Comparisons | None) -> Iterator[Table]:
    """Lifts, slices, ranks and pairs."""
    if isinstance(comparison, Comparison):
        caption = f"B = {comparison.b} against A = {comparison.a}; lifts are B minus A, in points"
        rows = tuple(compared.result_rows(comparison.results))
        yield Table(caption, compared.RESULT_HEADER, rows, (0, 7))
        if comparison.slices:
            yield Table(
                f"Slices by {comparison.sliced_by}, corrected for how many were looked at",
                compared.SLICE_HEADER,
                tuple(compared.slice_rows(comparison)),
                (0, 2, 6),
            )
        if comparison.deployment:
            yield Table(
                "What both use, on the paired tasks (never part of the evidence)",
                ("measure", "A per attempt", "B per attempt", "A per solved", "B per solved"),
                tuple(
                    (
                        value.measure,
                        *(figure(use.per_attempt if use else None) for use in (value.a, value.b)),
                        *(figure(use.per_solved if use else None) for use in (value.a, value.b)),
                    )
                    for value in comparison.deployment
                ),
            )
    if isinstance(comparison, Comparisons):
        yield Table(
            "Ranks that are still possible",
            compared.RANK_HEADER,
            tuple(compared.rank_rows(comparison)),
            (0, 1, 2),
        )
        yield Table(
            compared.ranking_note(comparison),
            compared.PAIR_HEADER,
            tuple(compared.pair_rows(comparison)),
            (0, 1, 6),
        )


def overview(report: Report) -> Table:
    """Every run in one row, for more of them than cards can hold."""
    words = headline_words(report.runs)
    rows = tuple(
        (
            label,
            f"{len(run.run.outcomes):,}",
            f"{run.run.outcomes.total_missing:,}",
            *(value_text(estimate) if (estimate := run.find(word)) else "–" for word in words),
        )
        for label, run in zip(labels_of(report.runs), report.runs, strict=True)
    )
    header = ("run", "tasks", "missing", *words)
    return Table("Every run, with intervals for new tasks", header, rows)


def number_tables(report: Report) -> Iterator[Table]:
    """Every estimate of every run, for both questions by name."""
    labels = labels_of(report.runs)
    for label, run in zip(labels, report.runs, strict=True):
        who = f"{label}: " if len(labels) > 1 else ""
        for about, question in (
            ("new tasks", "on tasks like these"),
            ("these tasks", "on exactly these tasks again"),
        ):
            yield from _over_k(run.estimates, about, f"{who}{question} ({about})")


def slice_tables(report: Report) -> Iterator[Table]:
    """The same for every value of a slice, about new tasks."""
    for label, run in zip(labels_of(report.runs), report.runs, strict=True):
        for value, estimates in run.slices.items():
            yield from _over_k(estimates, "new tasks", f"{label}: {run.slice_label} = {value}")


def _over_k(estimates: Sequence[Estimate], about: str, caption: str) -> Iterator[Table]:
    estimate_of = {estimate.metric: estimate for estimate in estimates if estimate.about == about}
    ks = [int(name[5:]) for name in estimate_of if name.startswith("pass^")]
    ks = [k for k in ks if f"pass@{k}" in estimate_of]
    shown: set[str] = set()
    if ks:
        rows = []
        for k in ks:
            delta = estimate_of.get(f"delta^{k}")
            shown |= {f"pass^{k}", f"pass@{k}", f"delta^{k}"}
            rows.append(
                (
                    str(k),
                    value_text(estimate_of[f"pass^{k}"]),
                    value_text(estimate_of[f"pass@{k}"]),
                    value_text(delta) if delta else "–",
                    percent(delta.bounds[1], 1) if delta and delta.bounds else "–",
                )
            )
        header = ("k", "pass^k", "pass@k", "delta^k", "at most")
        yield Table(caption, header, tuple(rows), ())
    others = [estimate for name, estimate in estimate_of.items() if name not in shown]
    if others:
        rows_of = tuple(
            (estimate.metric, value_text(estimate), f"{estimate.tasks:,}", f"{estimate.attempts:,}")
            for estimate in others
        )
        yield Table(caption, ("metric", "value", "tasks", "attempts"), rows_of)


def missing_tables(report: Report) -> Iterator[tuple[RunReport, Table | None]]:
    """Missing attempts of each run, and the headline numbers under each policy."""
    labels = labels_of(report.runs)
    for label, run in zip(labels, report.runs, strict=True):
        policies = run.details.policies if run.details is not None else {}
        rows = tuple(
            (word, *(_under(ways.get(policy)) for policy in POLICIES))
            for word, ways in policies.items()
        )
        header = ("metric", *(_POLICY_WORDS[policy] for policy in POLICIES))
        yield (
            run,
            Table(f"{label}: missing attempts under each policy", header, rows) if rows else None,
        )


def _under(estimate: Estimate | None) -> str:
    return "not computed: too few attempts are left" if estimate is None else value_text(estimate)
