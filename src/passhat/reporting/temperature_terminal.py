"""Temperature fits and the toy study as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from passhat._display import counted, number, percent, percent_range
from passhat.reporting.terminal import captured, facts, plain, plain_table
from passhat.stats.temperature import AgentFit, RankingFlip, Study, TemperatureFit
from passhat.stats.temperature.laws import POWER_FROM_K
from passhat.stats.temperature.peak import FEWEST
from passhat.stats.temperature.temperature_result import BestTemperature

__all__ = ["render_fit", "render_study", "render_summary"]

_SHOWN_KS = (2, 4, 16, 64, 256, 1024, 4096)
_MOST_FLIPS = 6
_MOST_COLUMNS = 4
_MOST_ROWS = 6
_NAMES = {"gaussian": "Gaussian", "exponential": "exponential", "power": "power-law"}


def render_study(study: Study, console: Console) -> str:
    """The laws first, then T* by spread and k."""
    return captured(console, lambda: _study(study))


def _study(study: Study) -> Iterator[RenderableType]:
    law = study.law
    yield Text(f"Toy model, {_NAMES[study.family]} task sets", style="bold")
    from_k = f", k >= {POWER_FROM_K}" if study.family == "power" else ""
    yield plain(f"{law}{from_k}", "italic")
    yield Text("")
    yield Text("T* by spread and k; * outside the scaling regime 0.03 < pass@k < 0.98")
    yield plain_table(("tasks", *(f"k = {k:,}" for k in _SHOWN_KS)), _study_rows(study))
    yield Text("")
    yield facts(_study_facts(study))


def _study_rows(study: Study) -> Iterator[Sequence[str]]:
    for name in dict.fromkeys(point.tasks for point in study.points):
        own = {point.k: point for point in study.points if point.tasks == name}
        shown = (own[k] for k in _SHOWN_KS if k in own)
        cells = (f"{p.temperature:.4g}{' ' if p.in_regime else '*'}" for p in shown)
        yield (next(iter(own.values())).parameter, *cells)


def _study_facts(study: Study) -> Iterator[tuple[str, str]]:
    total = study.law.exponent_sum
    yield (
        "Collapse",
        (
            f"the exponents sum to {total:.3f}; they sum to 2 where T* = s² Φ(k/s)"
            + (
                ""
                if study.family != "power"
                else ", which a power law with a fixed end does not obey"
            )
        ),
    )
    yield (
        "Planning",
        (
            f"log k against logit pass@k: median R² {study.median_r_squared:.3f} over "
            f"{counted(len(study.log_logit), 'set')}, but bent"
            + _misses(study)
            + "; a rule for planning k, not an estimator"
        ),
    )
    yield "Asymptotics", "one task c: T* = c² for every k; k to infinity: T* goes to the hardest c²"
    yield "Beware", "T is the spread of whole answers here, not the temperature of tokens"


def _misses(study: Study) -> str:
    misses = [line.misses_by for line in study.log_logit if line.misses_by is not None]
    if not misses:
        return ""
    return (
        f" (a line through the points below 0.5 misses those above by {number(min(misses), 2)} to "
        f"{number(max(misses), 2)})"
    )


def render_summary(fit: TemperatureFit, console: Console) -> str:
    """A fit in at most 15 lines: the advice, the best temperature by k, and a next step."""
    return captured(console, lambda: _summary(fit))


def _summary(fit: TemperatureFit) -> Iterator[RenderableType]:
    if len(fit.agents) == 1:
        yield from _agent_summary(fit.agents[0])
    else:
        yield from _agents_summary(fit)
    yield plain("All temperatures, changes and method: --full. Charts: --html FILE.", "grey50")


def _agent_summary(agent: AgentFit) -> Iterator[RenderableType]:
    tried = ", ".join(f"{t:g}" for t in agent.temperatures)
    if len(agent.temperatures) > _MOST_ROWS:
        low, high = agent.temperatures[0], agent.temperatures[-1]
        tried = f"{low:g} to {high:g} ({len(agent.temperatures)} temperatures)"
    tasks = counted(agent.tasks, "task")
    yield Text.assemble(plain(agent.agent, "bold"), f"   {tasks}, T = {tried}")
    yield plain(f"{str(agent.advice)[0].upper()}{str(agent.advice)[1:]}", "italic")
    shown = {best.k: best for best in agent.best if best.k in _some_of(agent.ks, _MOST_ROWS)}
    rows = []
    for k, best in shown.items():
        cell = agent.find(k, best.tried)
        if cell is None:  # pragma: no cover - every k has a cell at every temperature
            continue
        estimate = cell.estimate
        rows.append(
            (
                str(k),
                f"{best.tried:g}",
                f"{percent(estimate.value)} ({percent_range(estimate.low, estimate.high)})",
                percent(cell.share_best, 0),
                "–" if best.between is None else f"{best.between:.2g}",
                "–" if best.low is None else f"{best.low:.2g} to {best.high:.2g}",
            )
        )
    header = ("k", "best T tried", "pass@k there", "of redraws", "T*", "interval")
    yield plain_table(header, rows, left=())
    yield plain(_next_step(agent))


def _agents_summary(fit: TemperatureFit) -> Iterator[RenderableType]:
    yield Text(f"{counted(len(fit.agents), 'agent')}, fitted one by one", style="bold")
    rows = []
    for agent in fit.agents[:_MOST_ROWS]:
        first, last = agent.best[0], agent.best[-1]
        gain = next((g for g in agent.advice.best if g.k == last.k), None)
        rows.append(
            (
                agent.agent,
                f"{agent.tasks:,}",
                f"{first.tried:g} at k = {first.k}",
                f"{last.tried:g} at k = {last.k}",
                "–" if gain is None else f"{gain}",
            )
        )
    yield plain_table(("agent", "tasks", "best T", "best T", "gain"), rows, left=(0,))
    hidden = len(fit.agents) - _MOST_ROWS
    if hidden > 0:
        yield plain(f"and {counted(hidden, 'more agent')}")
    yield plain(f"{_rankings(fit)[0].upper()}{_rankings(fit)[1:]}.")


def _next_step(agent: AgentFit) -> str:
    """A step that would make the answer more precise."""
    if len(agent.temperatures) < FEWEST:
        return "Next: try a third temperature; from three on there is a T* between them."
    top = max(agent.temperatures)
    edges = [best for best in agent.best if best.edge]
    if edges:
        side = "higher" if edges[-1].tried == top else "lower"
        return (
            f"Next: try {side} temperatures; at k = {edges[-1].k} the best is the "
            f"{'highest' if side == 'higher' else 'lowest'} one tried."
        )
    unclear = [best for best in agent.best if _share(agent, best) < 0.5]
    if unclear:
        return (
            f"Next: more tasks; at k = {unclear[-1].k} no temperature is the best in half of the "
            "redraws."
        )
    return "Next: more temperatures next to the best ones narrow T*."


def _share(agent: AgentFit, best: BestTemperature) -> float:
    cell = agent.find(best.k, best.tried)
    return 0.0 if cell is None else cell.share_best


def render_fit(fit: TemperatureFit, console: Console) -> str:
    """Agent by agent: advice, pass@k by temperature, T*(k); then rankings, then the caveats."""
    return captured(console, lambda: _fit(fit))


def _fit(fit: TemperatureFit) -> Iterator[RenderableType]:
    for agent in fit.agents:
        yield from _agent(agent)
    for flip in fit.flips[:_MOST_FLIPS]:
        yield from _lead_table(flip)
    entries = [("%", "the share of redraws in which this temperature is the best of those tried")]
    if len(fit.agents) > 1:
        entries.append(("Rankings", _rankings(fit)))
    entries += [("Limits", note) for note in fit.notes]
    yield facts([*entries, ("Method", fit.method)])


def _agent(agent: AgentFit) -> Iterator[RenderableType]:
    yield Text.assemble(plain(agent.agent, "bold"), f"   {counted(agent.tasks, 'task')}")
    yield plain(str(agent.advice), "italic")
    ks = _some_of(agent.ks, _MOST_COLUMNS)
    yield plain_table(("T", *(f"pass@{k}" for k in ks)), _cell_rows(agent, ks), left=())
    if rows := agent.best_rows():
        yield plain_table(("k", "best tried", "T*", "interval", ""), rows, left=(4,))
    entries = [("Changes", str(change)) for change in agent.changes]
    if agent.exponent is not None:
        entries.append(("Exponent", str(agent.exponent)))
    yield facts([*entries, *(("Note", note) for note in agent.notes)])
    yield Text("")


def _some_of(ks: Sequence[int], most: int) -> list[int]:
    """At most so many of them, the first and the last among them."""
    step = -(-(len(ks) - 1) // (most - 1)) or 1
    return sorted({*ks[::step], ks[-1]})


def _cell_rows(agent: AgentFit, ks: Sequence[int]) -> Iterator[Sequence[str]]:
    """A row per temperature: value, share of redraws in which it is best, interval."""
    several = len(agent.temperatures) > 1
    for temperature in agent.temperatures:
        cells = [cell for k in ks if (cell := agent.find(k, temperature)) is not None]
        yield (
            f"{temperature:g}",
            *(
                number(cell.estimate.value)
                + (f" {cell.share_best:4.0%}" if several else "")
                + f"\n{cell.estimate.interval_text()}"
                for cell in cells
            ),
        )


def _lead_table(flip: RankingFlip) -> Iterator[RenderableType]:
    """The leader at each (k, T), A or B, and the share of redraws in which it leads."""
    yield Text.assemble("A ", plain(flip.a, "bold"), "   B ", plain(flip.b, "bold"))
    temperatures = list(dict.fromkeys(lead.temperature for lead in flip.leads))
    at = {(lead.k, lead.temperature): lead for lead in flip.leads}
    mark = {flip.a: "A", flip.b: "B", "": "="}
    rows = [
        (str(k), *(f"{mark[at[k, t].leader]} {percent(at[k, t].share, 0)}" for t in temperatures))
        for k in dict.fromkeys(lead.k for lead in flip.leads)
    ]
    yield plain_table(("k", *(f"T = {t:g}" for t in temperatures)), rows, left=())
    yield plain(str(flip), "italic")
    yield Text("")


def _rankings(fit: TemperatureFit) -> str:
    if not fit.flips:
        return "no two agents change order over the k and T that they share"
    hidden = len(fit.flips) - _MOST_FLIPS
    more = f"; {counted(hidden, 'more pair')} in --json" if hidden > 0 else ""
    return f"{counted(len(fit.flips), 'pair')} of agents change order over (k, T){more}"
