"""Temperature fits, and the toy study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from passhat._display import counted, number, percent, percent_range
from passhat.reporting.document import (
    Block,
    Document,
    Facts,
    Heading,
    Level,
    NextStep,
    Note,
    Section,
    Sentence,
    Table,
    upper_first,
)
from passhat.stats.temperature import AgentFit, RankingFlip, Study, TemperatureFit
from passhat.stats.temperature.laws import POWER_FROM_K
from passhat.stats.temperature.peak import FEWEST
from passhat.stats.temperature.temperature_result import BestTemperature

_SHOWN_KS = (2, 4, 16, 64, 256, 1024, 4096)
_MOST_FLIPS = 6
_MOST_COLUMNS = 4
_MOST_ROWS = 6
_NAMES = {"gaussian": "Gaussian", "exponential": "exponential", "power": "power-law"}


def study_document(study: Study) -> Document:
    """Build the document of the toy study: the laws first, then T* by spread and k."""
    return Document.of("Toy model", _study(study))


def _study(study: Study) -> Iterator[Block]:
    yield Heading(f"Toy model, {_NAMES[study.family]} task sets")
    from_k = f", k >= {POWER_FROM_K}" if study.family == "power" else ""
    yield Sentence(f"{study.law}{from_k}", "lead")
    caption = "T* by spread and k; * outside the scaling regime 0.03 < pass@k < 0.98"
    header = ("tasks", *(f"k = {k:,}" for k in _SHOWN_KS))
    yield Table(header, tuple(map(tuple, _study_rows(study))), caption)
    yield Facts(tuple(_study_facts(study)))


def _study_rows(study: Study) -> Iterator[Sequence[str]]:
    for name in dict.fromkeys(point.tasks for point in study.points):
        by_k = {point.k: point for point in study.points if point.tasks == name}
        points = (by_k[k] for k in _SHOWN_KS if k in by_k)
        cells = (f"{p.temperature:.4g}{' ' if p.in_regime else '*'}" for p in points)
        yield (next(iter(by_k.values())).parameter, *cells)


def _study_facts(study: Study) -> Iterator[tuple[str, str]]:
    total = study.law.exponent_sum
    but = ", which a power law with a fixed end does not obey" if study.family == "power" else ""
    text = f"the exponents sum to {total:.3f}; they sum to 2 where T* = s² Φ(k/s){but}"
    yield "Collapse", text
    text = (
        f"log k against logit pass@k: median R² {study.median_r_squared:.3f} over "
        f"{counted(len(study.log_logit), 'set')}, but bent{_misses(study)}; a rule for planning k, "
        "not an estimator"
    )
    yield "Planning", text
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


def fit_document(fit: TemperatureFit) -> Document:
    """Build the document of a fit: the advice, the best temperature by k, and a next step."""
    parts: list[Section] = []
    several = len(fit.agents) > 1
    if several:
        parts.append(Section("overview", tuple(_overview(fit))))
    for agent in fit.agents:
        subject = agent.agent if several else ""
        parts.append(Section("agent", tuple(_agent_blocks(agent, alone=not several)), subject))
    flips = [block for flip in fit.flips[:_MOST_FLIPS] for block in _lead_table(flip)]
    parts.append(Section("rankings", tuple(flips)))
    parts.append(Section("method", tuple(_method(fit))))
    return Document("Which temperature for which k?", tuple(parts))


def _method(fit: TemperatureFit) -> Iterator[Block]:
    entries = [("%", "the share of redraws in which this temperature is the best of those tried")]
    if len(fit.agents) > 1:
        entries.append(("Rankings", _rankings(fit)))
    entries += [("Limits", note) for note in fit.notes]
    yield Facts((*entries, ("Method", fit.method)), level=Level.FULL)
    text = "All temperatures, changes and method: --full. Charts: -o FILE.html."
    yield Note(text, level=Level.SHORT)


def _agent_blocks(agent: AgentFit, *, alone: bool) -> Iterator[Block]:
    """Advice, pass@k by temperature and T*(k); on one screen the best temperature by k."""
    tasks = counted(agent.tasks, "task")
    if alone:
        yield Heading(agent.agent, f"{tasks}, T = {_temperatures_text(agent)}", level=Level.SHORT)
        yield Sentence(upper_first(str(agent.advice)), "lead", level=Level.SHORT)
        yield _best_table(agent)
        yield NextStep(_next_step(agent), level=Level.SHORT)
    yield Heading(agent.agent, tasks, level=Level.FULL)
    yield Sentence(upper_first(str(agent.advice)), "lead", level=Level.FULL)
    ks = _thin(agent.ks, _MOST_COLUMNS)
    header = ("T", *(f"pass@{k}" for k in ks))
    cells = tuple(map(tuple, _cell_rows(agent, ks)))
    yield Table(header, cells, "pass@k by temperature", (), level=Level.FULL)
    if rows := agent.best_rows():
        header = ("k", "best tried", "T*", "interval", "")
        table = tuple(map(tuple, rows))
        yield Table(header, table, "The best temperature for each k", (4,), level=Level.FULL)
    entries = [("Changes", str(change)) for change in agent.changes]
    if agent.exponent is not None:
        entries.append(("Exponent", str(agent.exponent)))
    entries += [("Note", note) for note in agent.notes]
    if entries:
        yield Facts(tuple(entries), level=Level.FULL)


def _temperatures_text(agent: AgentFit) -> str:
    if len(agent.temperatures) > _MOST_ROWS:
        low, high = agent.temperatures[0], agent.temperatures[-1]
        return f"{low:g} to {high:g} ({len(agent.temperatures)} temperatures)"
    return ", ".join(f"{t:g}" for t in agent.temperatures)


def _best_table(agent: AgentFit) -> Table:
    rows = []
    for best in (best for best in agent.best if best.k in _thin(agent.ks, _MOST_ROWS)):
        cell = agent.find(best.k, best.tried)
        if cell is None:  # pragma: no cover - every k has a cell at every temperature
            continue
        estimate = cell.estimate
        rows.append(
            (
                str(best.k),
                f"{best.tried:g}",
                f"{percent(estimate.value)} ({percent_range(estimate.low, estimate.high)})",
                percent(cell.share_best, 0),
                "–" if best.between is None else f"{best.between:.2g}",
                "–" if best.low is None else f"{best.low:.2g} to {best.high:.2g}",
            )
        )
    header = ("k", "best T tried", "pass@k there", "of redraws", "T*", "interval")
    return Table(header, tuple(rows), left=(), level=Level.SHORT)


def _overview(fit: TemperatureFit) -> Iterator[Block]:
    yield Heading(f"{counted(len(fit.agents), 'agent')}, fitted one by one", level=Level.SHORT)
    rows = []
    for agent in fit.agents:
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
    header = ("agent", "tasks", "best T", "best T", "gain")
    yield Table(header, tuple(rows), most=_MOST_ROWS, level=Level.SHORT)
    yield Sentence(f"{upper_first(_rankings(fit))}.", level=Level.SHORT)


def _next_step(agent: AgentFit) -> str:
    """A step that would make the answer more precise."""
    if len(agent.temperatures) < FEWEST:
        return "try a third temperature; from three on there is a T* between them."
    top = max(agent.temperatures)
    edges = [best for best in agent.best if best.edge]
    if edges:
        side, end = ("higher", "highest") if edges[-1].tried == top else ("lower", "lowest")
        return f"try {side} temperatures; at k = {edges[-1].k} the best is the {end} one tried."
    unclear = [best.k for best in agent.best if _share(agent, best) < 0.5]
    if unclear:
        k = unclear[-1]
        return f"more tasks would tell; at k = {k} no temperature is the best in half the redraws."
    return "more temperatures next to the best ones narrow T*."


def _share(agent: AgentFit, best: BestTemperature) -> float:
    cell = agent.find(best.k, best.tried)
    return 0.0 if cell is None else cell.share_best


def _thin(ks: Sequence[int], most: int) -> list[int]:
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


def _lead_table(flip: RankingFlip) -> Iterator[Block]:
    """The leader at each (k, T), A or B, and the share of redraws in which it leads."""
    temperatures = list(dict.fromkeys(lead.temperature for lead in flip.leads))
    at = {(lead.k, lead.temperature): lead for lead in flip.leads}
    mark = {flip.a: "A", flip.b: "B", "": "="}
    rows = tuple(
        (str(k), *(f"{mark[at[k, t].leader]} {percent(at[k, t].share, 0)}" for t in temperatures))
        for k in dict.fromkeys(lead.k for lead in flip.leads)
    )
    header = ("k", *(f"T = {t:g}" for t in temperatures))
    yield Table(header, rows, f"A {flip.a}   B {flip.b}", (), level=Level.FULL)
    yield Sentence(str(flip), level=Level.FULL)


def _rankings(fit: TemperatureFit) -> str:
    if not fit.flips:
        return "no two agents change order over the k and T that they share"
    hidden = len(fit.flips) - _MOST_FLIPS
    rest_text = f"; {counted(hidden, 'more pair')} in --json" if hidden > 0 else ""
    verb = "changes" if len(fit.flips) == 1 else "change"
    return f"{counted(len(fit.flips), 'pair')} of agents {verb} order over (k, T){rest_text}"
