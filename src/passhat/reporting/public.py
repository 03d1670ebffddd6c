"""``passhat.report`` and ``passhat.why``: results as objects that can be printed and saved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from passhat._display import counted, html_text, some
from passhat.errors import InvalidValue
from passhat.stats.outcomes.coercion import Data, as_runs
from passhat.stats.outcomes.run import Run

if TYPE_CHECKING:
    from passhat.reporting import view
    from passhat.reporting.document import Document, Level
    from passhat.stats.compare import Comparison, Comparisons
    from passhat.stats.gate import GateResult
    from passhat.stats.plan import Plan
    from passhat.stats.why import Why


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """A report on one or several runs; ``print`` it, or save it in another form.

    Attributes
    ----------
    runs : tuple of RunReport
        Everything the report shows, run by run.
    """

    _view: view.Report

    @property
    def runs(self) -> tuple[view.RunReport, ...]:
        return self._view.runs

    def __repr__(self) -> str:
        names = some([run.name for run in self.runs])
        return f"<Report on {counted(len(self.runs), 'run')}: {names}>"

    def __str__(self) -> str:
        return self.text(full=False)

    def text(self, *, full: bool = True) -> str:
        """The report as plain text; ``full=False`` is the screen of ``passhat report``."""
        from passhat.reporting.document import Level
        from passhat.reporting.documents.report import report_document

        document = report_document(self._view)
        if full:
            return _plain_text(document, Level.FULL)
        more = ".text(), .html(), .markdown(), .json(), .save('report.html')"
        return f"{_screen(document, Level.SHORT)}\nMore: {more}"

    def markdown(self) -> str:
        """The report as Markdown."""
        from passhat.reporting.documents.report import report_document
        from passhat.reporting.markdown import render_markdown

        return render_markdown(report_document(self._view))

    def json(self) -> str:
        """The report as JSON, with every number it shows."""
        from passhat._serialize import as_json

        return as_json(self._view)

    def csv(self) -> str:
        """CSV with a line per run, metric and population."""
        from passhat.reporting.data import as_csv

        return as_csv(self._view)

    def html(self) -> str:
        """A single self-contained HTML page."""
        from passhat.reporting.html import HtmlOptions, html_report

        return html_report(self._view, HtmlOptions())

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the form that the file's ending names: .html, .md, .json or .csv."""
        target = Path(path)
        forms = {".html": self.html, ".md": self.markdown, ".json": self.json, ".csv": self.csv}
        if target.suffix.lower() not in forms:
            raise InvalidValue(
                f"the ending of {str(target)!r} does not name a form.",
                hint=f"Known endings: {', '.join(forms)}.",
            )
        from passhat.store import write_private

        text = forms[target.suffix.lower()]()
        try:
            write_private(target, text)
        except OSError as error:
            raise InvalidValue(f"{target} cannot be written: {error.strerror or error}.") from None
        return target

    def _repr_html_(self) -> str:
        return html_text(str(self))


def screen(result: Comparison | Comparisons | GateResult | Plan) -> str:
    """A result as its command shows it."""
    from passhat.reporting.document import Level
    from passhat.reporting.documents.forecast import plan_document
    from passhat.reporting.documents.verdicts import comparison_document, gate_document
    from passhat.stats.gate import GateResult
    from passhat.stats.plan import Plan

    if isinstance(result, GateResult):
        document = gate_document(result)
    elif isinstance(result, Plan):
        document = plan_document(result)
    else:
        document = comparison_document(result)
    has_slices = bool(getattr(result, "slices", ()))
    return _screen(document, Level.FULL if has_slices else Level.SHORT)


def _screen(document: Document, level: Level) -> str:
    """A form without command lines: they name no run that is only in memory."""
    from passhat.reporting.document import Document, NextStep, OptionsNote

    blocks = document.blocks(level)
    shown = [block for block in blocks if not isinstance(block, NextStep | OptionsNote)]
    return _plain_text(Document.of(document.title, shown), level)


def _plain_text(document: Document, level: Level) -> str:
    """The document as a terminal of 80 columns shows it, without colors."""
    from rich.console import Console

    from passhat.reporting.terminal import render_terminal

    console = Console(width=80, color_system=None, force_jupyter=False)
    lines = render_terminal(document, console, level).rstrip().splitlines()
    return "\n".join(line.rstrip() for line in lines)


def _whole_numbers(ks: object) -> tuple[int, ...]:
    """The k of a call; one alone may stand without brackets."""
    listed = [ks] if isinstance(ks, int) else ks
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise InvalidValue(f"ks must be whole numbers such as [1, 4], not {ks!r}.")
    numbers = tuple(listed)
    if not all(isinstance(k, Integral) and int(k) > 0 for k in numbers):
        raise InvalidValue(f"ks must be whole numbers from 1 on, not {ks!r}.")
    return tuple(map(int, numbers))


def report(
    runs: Data,
    *,
    ks: int | Sequence[int] = (),
    metrics: Sequence[str] = (),
    by: str | None = None,
    with_tasks: bool = False,
    about: str | None = None,
    level: float = 0.95,
    missing: str = "bound",
    drop_short: bool = False,
    cluster: str | None = None,
) -> Report:
    """Report pass^k, pass@k and delta^k of one or several runs, with intervals.

    Parameters
    ----------
    runs : Run, Outcomes, matrix, data frame or path
        Several as a list, or as a dict with a name for each.
    ks : int or list of int, optional
        Values of k; 1, 2, 4, 8 ... up to the smallest n by default.
    metrics : list of str, optional
        Metrics to report instead; with ``ks``, in addition.
    by : str, optional
        Report each value of a slice as well.
    with_tasks : bool
        Also list every task.
    about, level, missing, drop_short, cluster
        As in :func:`estimate`.
    """
    from passhat.reporting.build import ReportOptions, build_report
    from passhat.stats.terms import Terms

    report_options = ReportOptions(
        ks=_whole_numbers(ks),
        metrics=(metrics,) if isinstance(metrics, str) else tuple(metrics),
        terms=Terms.from_options(
            {
                "about": about,
                "level": level,
                "missing": missing,
                "drop_short": drop_short,
                "cluster": cluster,
            }
        ),
        by=by,
        with_tasks=with_tasks,
        with_details=True,
    )
    return Report(build_report(as_runs(runs), report_options))


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Events that go with failure in a run; ``print`` it, or take it in another form.

    Attributes
    ----------
    facts : Why
        Every number that it shows.
    """

    facts: Why

    def __str__(self) -> str:
        from passhat.reporting.document import Level
        from passhat.reporting.documents.why import why_document

        return _screen(why_document(self.facts), Level.FULL)

    def __repr__(self) -> str:
        return f"<Explanation: {str(self).partition(chr(10))[0]}>"

    def _repr_html_(self) -> str:
        return html_text(str(self))

    def markdown(self) -> str:
        """The explanation as Markdown."""
        from passhat.reporting.documents.why import why_document
        from passhat.reporting.markdown import render_markdown

        return render_markdown(why_document(self.facts))

    def html(self) -> str:
        """A single self-contained HTML page."""
        from passhat.reporting.documents.why import why_document
        from passhat.reporting.html.page import why_page

        return why_page(self.facts, why_document(self.facts))

    def json(self) -> str:
        """Every number as JSON."""
        from passhat._serialize import as_json

        return as_json(self.facts)


def why(
    run: Run | str | PathLike[str], task: str | None = None, *, level: float = 0.95
) -> Explanation:
    """Find what goes with failure: what failing attempts do and passing ones do not.

    Parameters
    ----------
    run : Run or path
        A run with conversations: of ``run``, of a store, or read from a log of inspect,
        tau2-bench, tau-bench or promptfoo.
    task : str, optional
        Also look within this task: the tree of its tool calls, the decisive step where one is
        shown, and the passing and failing attempts that are closest to each other.
    level : float
        Confidence of intervals; one minus it is the chance to name any event where none matters.

    Examples
    --------
    >>> tasks = [{"id": "sum", "prompt": "2+2?", "answer": "4"}]
    >>> import passhat
    >>> explanation = passhat.why(passhat.run(lambda prompt: "4", tasks, n=3))
    >>> explanation.facts.passed, explanation.facts.shown
    (3, ())
    """
    from passhat.reporting.why import build_why, read_conversations

    return Explanation(build_why(read_conversations(run), task, level))
