"""HTML pages about temperature: a fit of runs, and the toy study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from passhat._display import counted, number, percent, some
from passhat._serialize import to_data
from passhat.reporting.document import Table
from passhat.reporting.figures import page_svg
from passhat.reporting.figures.temperatures import fit_figures
from passhat.reporting.figures.toy import toy_figures
from passhat.reporting.html.page import template
from passhat.reporting.html.payload import script_json
from passhat.stats.estimate.metrics import PassAt
from passhat.stats.outcomes import Run
from passhat.stats.temperature import AgentFit, Study, TemperatureFit
from passhat.stats.temperature.laws import POWER_FROM_K

_FAMILIES = {"gaussian": "Gaussian", "exponential": "exponential", "power": "power-law"}

_FORMULAS = Table(
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
    "What each number asks, and its formula",
    (0, 1, 2),
)


def fit_page(fit: TemperatureFit, runs: Sequence[Run], *, missing: str, command: str = "") -> str:
    """A single HTML file with figures, tables, formulas and protocol.

    ``runs`` are the fitted ones, whose protocols are shown; ``missing`` is the policy for attempts
    without a verdict, ``command`` the line that made the page.
    """
    agents = fit.agents
    return template("temperature.html.j2").render(
        title="Which temperature for which k?",
        sentences=[f"{agent.agent}: {agent.advice}" for agent in agents],
        facts=[
            f"{agent.agent}: {counted(agent.tasks, 'task')}, T = {_join(agent.temperatures)}"
            for agent in agents
        ],
        figures=[(figure, page_svg(figure)) for figure in fit_figures(fit)],
        numbers=[table for agent in agents for table in _tables(agent, fit.level)],
        changes=[f"{agent.agent}: {change}." for agent in agents for change in agent.changes],
        cannot=fit.notes,
        formulas=_FORMULAS,
        method=f"{fit.method[0].upper()}{fit.method[1:]}. Level {100 * fit.level:g}%.",
        protocols=[
            (agent.agent, list(_protocol(agent, runs, missing)), list(agent.notes))
            for agent in agents
        ],
        command=command,
        data=script_json(to_data(fit)),
    )


def _join(temperatures: Sequence[float]) -> str:
    return ", ".join(f"{temperature:g}" for temperature in temperatures)


def _tables(agent: AgentFit, level: float) -> Iterator[Table]:
    rows = []
    for temperature in agent.temperatures:
        cells = [cell for k in agent.ks if (cell := agent.find(k, temperature)) is not None]
        visible = [
            f"{number(cell.estimate.value)} {cell.estimate.interval_text()}, "
            f"{percent(cell.share_best, 0)}"
            for cell in cells
        ]
        rows.append((f"{temperature:g}", *visible))
    caption = (
        f"{agent.agent}: pass@k by temperature, {100 * level:g}% intervals for new tasks, and the "
        "share of redraws in which this temperature is the best"
    )
    yield Table(("T", *(f"pass@{k}" for k in agent.ks)), tuple(rows), caption, ())
    if best := agent.best_rows():
        caption = f"{agent.agent}: the best temperature for each k"
        yield Table(("k", "best tried", "T*", "interval", ""), tuple(best), caption, (4,))


def _protocol(agent: AgentFit, runs: Sequence[Run], missing: str) -> Iterator[tuple[str, str]]:
    """Facts that were the same at every temperature, as far as recorded."""
    agent_runs = [run for run in runs if run.agent == agent.agent]
    protocols = [run.protocol for run in agent_runs]
    settings = (item for protocol in protocols for item in protocol.decoding.items())
    decoding = {f"{key} {value}" for key, value in settings if key != "temperature"}
    yield "attempts per task (n)", _words(run.outcomes.attempts_text() for run in agent_runs)
    yield "k", ", ".join(map(str, agent.ks))
    yield "temperatures", _join(agent.temperatures)
    yield "other decoding", _words(decoding)
    yield "suite", _words(protocol.suite or "" for protocol in protocols)
    yield "tests", _words(each.tests_fingerprint or each.judge or "" for each in protocols)
    yield "missing policy", missing
    yield "passed means", _words(f"reward >= {protocol.pass_at:g}" for protocol in protocols)
    yield "source", _words(run.source for run in agent_runs)


def _words(values: Iterable[str]) -> str:
    return some(sorted({value for value in values if value})) or "not recorded"


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
        data=script_json(to_data(study)),
    )
