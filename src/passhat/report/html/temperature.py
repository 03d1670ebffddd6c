"""HTML pages about temperature: a fit of runs, and the toy study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from passhat._display import counted, number, some
from passhat.report.figures import page_svg
from passhat.report.figures.temperatures import fit_figures
from passhat.report.figures.toy import toy_figures
from passhat.report.html.document import template
from passhat.report.html.page import Table
from passhat.report.html.payload import script_json
from passhat.stats.estimate.metrics import PassAt
from passhat.stats.outcomes import Run
from passhat.stats.temperature import AgentFit, Study, TemperatureFit
from passhat.stats.temperature.laws import POWER_FROM_K

__all__ = ["fit_page", "toy_page"]

_FAMILIES = {"gaussian": "Gaussian", "exponential": "exponential", "power": "power-law"}

_FORMULAS = Table(
    "What each number asks, and its formula",
    ("number", "asks", "formula"),
    (
        (
            "pass@k",
            "If every task gets k tries, how often does at least one succeed?",
            PassAt.formula,
        ),
        (
            "share of redraws",
            "is this temperature the best of those tried?",
            "share of bootstrap redraws of the tasks in which it has the highest pass@k",
        ),
        (
            "T*",
            "which temperature is best for this k?",
            "top of a parabola in ln T through the best temperature and its neighbors; interval by "
            "the same redraws, over all smooth curves through the points near the best",
        ),
        (
            "exponent",
            "how fast does T* grow with k?",
            "slope of ln T* over ln k by least squares, where T* is not at the edge",
        ),
        (
            "gain",
            "what does another temperature gain?",
            "mean over tasks of the paired difference in pass@k; interval simultaneous over k and "
            "temperatures",
        ),
    ),
    (0, 1, 2),
)


def fit_page(fit: TemperatureFit, runs: Sequence[Run], *, missing: str, command: str = "") -> str:
    """One file with figures, tables, formulas and protocol.

    Parameters
    ----------
    fit : TemperatureFit
        What was found.
    runs : sequence of Run
        What it was found in; their protocols are shown.
    missing : str
        The policy for attempts without a verdict.
    command : str
        The line that made the page.
    """
    agents = fit.agents
    return template("temperature.html.j2").render(
        title="Which temperature for which k?",
        sentences=[f"{one.agent}: {one.advice}" for one in agents],
        facts=[
            f"{one.agent}: {counted(one.tasks, 'task')}, T = {_listed(one.temperatures)}"
            for one in agents
        ],
        figures=[(figure, page_svg(figure)) for figure in fit_figures(fit)],
        numbers=[table for one in agents for table in _tables(one, fit.level)],
        changes=[f"{one.agent}: {change}." for one in agents for change in one.changes],
        cannot=fit.notes,
        formulas=_FORMULAS,
        method=f"{fit.method[0].upper()}{fit.method[1:]}. Level {fit.level:.0%}.",
        protocols=[
            (one.agent, list(_protocol(one, runs, missing)), list(one.notes)) for one in agents
        ],
        command=command,
        data=script_json(fit.to_dict()),
    )


def _listed(heats: Sequence[float]) -> str:
    return ", ".join(f"{heat:g}" for heat in heats)


def _tables(agent: AgentFit, level: float) -> Iterator[Table]:
    rows = []
    for heat in agent.temperatures:
        cells = [cell for k in agent.ks if (cell := agent.find(k, heat)) is not None]
        shown = [
            f"{number(one.estimate.value)} {one.estimate.interval_text()}, {one.share_best:.0%}"
            for one in cells
        ]
        rows.append((f"{heat:g}", *shown))
    yield Table(
        f"{agent.agent}: pass@k by temperature, {level:.0%} intervals for new tasks, and the "
        "share of redraws in which this temperature is the best",
        ("T", *(f"pass@{k}" for k in agent.ks)),
        tuple(rows),
        (),
    )
    if best := agent.best_rows():
        yield Table(
            f"{agent.agent}: the best temperature for each k",
            ("k", "best tried", "T*", "interval", ""),
            tuple(best),
            (4,),
        )


def _protocol(agent: AgentFit, runs: Sequence[Run], missing: str) -> Iterator[tuple[str, str]]:
    """What was the same at every temperature, and what of it was recorded."""
    own = [run for run in runs if run.agent == agent.agent]
    promised = [run.protocol for run in own]
    decoding = {
        f"{key} {value}"
        for one in promised
        for key, value in one.decoding.items()
        if key != "temperature"
    }
    yield "attempts per task (n)", _words(run.outcomes.attempts_text() for run in own)
    yield "k", ", ".join(map(str, agent.ks))
    yield "temperatures", _listed(agent.temperatures)
    yield "other decoding", _words(decoding)
    yield "suite", _words(one.suite or "" for one in promised)
    yield "tests", _words(one.tests_fingerprint or one.judge or "" for one in promised)
    yield "missing policy", missing
    yield "passed means", _words(f"reward >= {one.pass_at:g}" for one in promised)
    yield "source", _words(run.source for run in own)


def _words(values: Iterable[str]) -> str:
    return some(sorted({one for one in values if one})) or "not recorded"


def toy_page(study: Study, *, command: str = "") -> str:
    """Every figure of the toy study, each with a sentence before it."""
    law = study.law
    from_k = f" for k >= {POWER_FROM_K}" if study.family == "power" else ""
    return template("toy.html.j2").render(
        title=f"Temperature and pass@k: {_FAMILIES[study.family]} task sets",
        sentences=[
            "A toy: the model answers with an integer, c with probability proportional to "
            "exp(-c²/2T); a task is the integer it asks for. T is the spread of whole answers "
            "here, and none of these exponents carries over to the temperature of tokens.",
            f"The fit{from_k}: {law}. The two exponents sum to {law.exponent_sum:.3f}; where only "
            "k/s and T/s² count they sum to 2. T* is the temperature that is best for pass@k.",
        ],
        figures=[(figure, page_svg(figure)) for figure in toy_figures(study)],
        command=command,
        data=script_json(study.to_dict()),
    )
