"""Temperature, as a person reads it in a terminal: the toy's laws, and a fit of one's own runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from passhat._display import counted, number
from passhat.report.tables import captured, facts, plain, plain_table
from passhat.stats.temperature import AgentFit, RankingFlip, Study, TemperatureFit
from passhat.stats.temperature.laws import POWER_FROM_K

__all__ = ["render_fit", "render_study"]

_SHOWN_KS = (2, 4, 16, 64, 256, 1024, 4096)
_MOST_FLIPS = 6
_MOST_COLUMNS = 4
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
        yield (name.split(", ")[1], *cells)


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


def render_fit(found: TemperatureFit, console: Console) -> str:
    """Agent by agent: advice, pass@k by temperature, T*(k); then rankings, then the caveats."""
    return captured(console, lambda: _fit(found))


def _fit(found: TemperatureFit) -> Iterator[RenderableType]:
    for agent in found.agents:
        yield from _agent(agent)
    for flip in found.flips[:_MOST_FLIPS]:
        yield from _heat_map(flip)
    entries = [("P", "the chance that this temperature is the best of those tried")]
    if len(found.agents) > 1:
        entries.append(("Rankings", _rankings(found)))
    entries += [("Cannot tell", note) for note in found.notes]
    yield facts([*entries, ("Method", found.method)])


def _agent(agent: AgentFit) -> Iterator[RenderableType]:
    yield Text.assemble(plain(agent.agent, "bold"), f"   {counted(agent.tasks, 'task')}")
    yield plain(agent.advice, "italic")
    ks = _some_ks(agent.ks)
    yield plain_table(("T", *(f"pass@{k}" for k in ks)), _cell_rows(agent, ks), left=())
    if rows := agent.best_rows():
        yield plain_table(("k", "best tried", "T*", "interval", ""), rows, left=(4,))
    entries = [("Changes", str(change)) for change in agent.changes]
    if agent.exponent is not None:
        entries.append(("Fingerprint", str(agent.exponent)))
    yield facts([*entries, *(("Note", note) for note in agent.notes)])
    yield Text("")


def _some_ks(ks: Sequence[int]) -> list[int]:
    """As many columns as a terminal has room for, the first and the last among them."""
    step = -(-(len(ks) - 1) // (_MOST_COLUMNS - 1)) or 1
    return sorted({*ks[::step], ks[-1]})


def _cell_rows(agent: AgentFit, ks: Sequence[int]) -> Iterator[Sequence[str]]:
    """One row per temperature: the value, the chance of being the best tried, the interval."""
    several = len(agent.temperatures) > 1
    for heat in agent.temperatures:
        cells = [cell for k in ks if (cell := agent.find(k, heat)) is not None]
        yield (
            f"{heat:g}",
            *(
                number(cell.estimate.value)
                + (f"  P {cell.chance_best:.2f}" if several else "")
                + f"\n{cell.estimate.interval_text()}"
                for cell in cells
            ),
        )


def _heat_map(flip: RankingFlip) -> Iterator[RenderableType]:
    """Who leads at each (k, T): A or B, and the chance that it does."""
    yield Text.assemble("A ", plain(flip.a, "bold"), "   B ", plain(flip.b, "bold"))
    heats = list(dict.fromkeys(lead.temperature for lead in flip.leads))
    at = {(lead.k, lead.temperature): lead for lead in flip.leads}
    mark = {flip.a: "A", flip.b: "B", "": "="}
    rows = [
        (
            str(k),
            *(f"{mark[at[k, heat].leader]} {at[k, heat].chance:.2f}" for heat in heats),
        )
        for k in dict.fromkeys(lead.k for lead in flip.leads)
    ]
    yield plain_table(("k", *(f"T = {heat:g}" for heat in heats)), rows, left=())
    yield plain(str(flip), "italic")
    yield Text("")


def _rankings(found: TemperatureFit) -> str:
    if not found.flips:
        return "no two agents change order over the k and T that they share"
    hidden = len(found.flips) - _MOST_FLIPS
    more = f"; {counted(hidden, 'more pair')} in --json" if hidden > 0 else ""
    return f"{counted(len(found.flips), 'pair')} of agents change order over (k, T){more}"
