"""A leaderboard as a document: the ranks on a screen, and the tables below those of its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from passhat._display import counted, duration, figure, money, percent
from passhat.reporting.document import (
    Block,
    Document,
    Facts,
    Heading,
    Level,
    Listing,
    Note,
    Section,
    Sentence,
    Table,
    upper_first,
)
from passhat.reporting.leaderboard.facts import Board, BoardAgent, Leaderboard
from passhat.reporting.view import estimate_text, number_labels, value_text
from passhat.stats.terms import Population

_MOST_AGENTS = 20
_LONGEST_NAME = 40  # on one screen
_MOST_GROUPS = 12


def leaderboard_document(leaderboard: Leaderboard) -> Document:
    """Build the document of a leaderboard."""
    sections = [
        Section("board", tuple(_board_blocks(board)), board_title(board))
        for board in leaderboard.boards
    ]
    notes = tuple(Note(f"{upper_first(note)}.") for note in leaderboard.notes)
    return Document(leaderboard.title, (*sections, Section("notes", notes)))


def board_title(board: Board) -> str:
    """The suite, the tasks and the agents of a board."""
    suite = board.protocol.get("suite")
    size = f"{counted(len(board.agents), 'agent')}, {counted(len(board.tasks), 'task')}"
    return f"{suite}: {size}" if suite else size


def _board_blocks(board: Board) -> Iterator[Block]:
    yield Heading(board_title(board))
    yield Sentence(board.headline, "lead")
    metrics = list(board.ranked_by)
    header = ("ranks", "agent", *map(str, metrics), "per attempt", "missing")
    rows = tuple(
        (
            str(agent.ranks[0]),
            agent.name,
            *(_value(agent, str(word)) for word in metrics),
            price_text(agent),
            f"{agent.missing:,}",
        )
        for agent in board.agents
    )
    names = number_labels([agent.name for agent in board.agents], _LONGEST_NAME)
    short = tuple((row[0], name, *row[2:]) for row, name in zip(rows, names, strict=True))
    yield Table(header, short[:_MOST_AGENTS], left=(0, 1), level=Level.SHORT)
    if len(rows) > _MOST_AGENTS:
        yield Sentence(f"and {len(rows) - _MOST_AGENTS} more agents", level=Level.SHORT)
    yield Table(header, rows, left=(0, 1), level=Level.FULL)
    at = f"at {100 * board.level:g}% for all agents at once"
    yield Note(f"Ranks that are possible {at}, about {board.about}.")
    ranks = {(agent.ranks[0].best, agent.ranks[0].worst) for agent in board.agents}
    is_open = board.pairs > 0 and ranks == {(1, len(board.agents))}
    if is_open and board.about == str(Population.NEW_TASKS):
        yield Note(
            f"By {board.ranked_by[0]} no two agents are told apart about new tasks; "
            "--about these-tasks ranks them on exactly these."
        )
    yield from group_blocks(board)
    yield from slice_blocks(board)
    yield from (Note(f"{upper_first(note)}.") for note in board.notes)


def _value(agent: BoardAgent, word: str) -> str:
    estimate = agent.find(word)
    return "–" if estimate is None else estimate_text(estimate)


def price_text(agent: BoardAgent) -> str:
    """Cost and time of an attempt, as far as they are recorded."""
    uses = ((name, agent.use.get(name)) for name in ("cost", "seconds"))
    return ", ".join(use_text(use.per_attempt, name) for name, use in uses if use) or "–"


def group_blocks(board: Board) -> Iterator[Block]:
    """Which agents cannot be told apart."""
    if all(len(group) == 1 for group in board.groups):
        return
    for number, group in enumerate(board.groups[:_MOST_GROUPS], 1):
        if len(group) > 1:
            yield Listing(f"Not told apart ({number}):", group, level=Level.FULL)
    if len(board.groups) > _MOST_GROUPS:
        yield Note(f"and {len(board.groups) - _MOST_GROUPS} more groups", level=Level.FULL)


def slice_blocks(board: Board) -> Iterator[Block]:
    """The ranking metric by slice."""
    labels = dict.fromkeys(part.label for part in board.slices)
    names = number_labels([agent.name for agent in board.agents], _LONGEST_NAME)
    for label in labels:
        parts = [part for part in board.slices if part.label == label]
        header = ("agent", *(f"{part.value} ({part.tasks:,})" for part in parts))
        rows = tuple(
            (name, *(value_text(part.estimates[i]) for part in parts))
            for i, name in enumerate(names)
        )
        caption = (
            f"{board.ranked_by[0]} by {label}, tasks in brackets; {len(parts)} slices were looked "
            "at, and the best of them looks good by chance alone"
        )
        yield Table(header, rows, caption, level=Level.FULL)


def source_table(leaderboard: Leaderboard) -> Table:
    """Where the numbers of every agent come from."""
    header = ("agent", "source", "run", "SHA-256 of the file", "protocol", "attempts", "missing")
    rows = []
    for board in leaderboard.boards:
        for agent in board.agents:
            reasons = ", ".join(f"{why} {n:,}" for why, n in agent.missing_by_reason.items())
            missing = f"{agent.missing:,} ({reasons})" if agent.missing else "0"
            digest = agent.file_digest[:16] or "–"
            rows.append(
                (
                    *(agent.name, agent.source or "–", agent.run, digest, agent.protocol),
                    *(f"{agent.attempts:,}", missing),
                )
            )
    return Table(header, tuple(rows), "A run of passhat reproduces each number", (0, 1, 2, 3, 4))


def method_blocks(board: Board) -> Iterator[Block]:
    """The protocol that all runs share, and how ranks and intervals are found."""
    yield Facts((("Protocol", protocol_text(board)),))
    if board.unverified:
        yield Facts((("Not recorded by all", ", ".join(board.unverified)),))
    estimate = board.agents[0].find(board.ranked_by[0])
    yield Facts(
        (
            (
                "Ranks",
                f"{counted(board.pairs, 'pair')}, each tested in both directions ({board.method}); "
                f"Holm over all pairs at {100 * board.level:g}%. An agent's best possible rank is "
                "one more than the number of agents shown to be better, its worst leaves out those "
                "shown to be worse. With this confidence all true ranks are held at once, for each "
                "metric that ranks.",
            ),
            ("Values", "unbiased from n and c (or the scores) of each task; each task counts once"),
            ("Intervals", "" if estimate is None else estimate.interval_method),
            (
                "Pareto front",
                "agents for which no other is at least as good and cheaper; the share of redraws "
                "of the tasks (Rubin's weights, the same for all agents) in which it is on it",
            ),
            ("Missing attempts", "count as failed and as passed: values and intervals reach both"),
        )
    )


def protocol_text(board: Board) -> str:
    """The fields of the protocol that all runs of a board share."""
    fields = board.protocol.items()
    parts = [f"{name} {_setting_text(value)}" for name, value in fields if name != "question"]
    return "; ".join(parts) or "not recorded"


def _setting_text(value: object) -> str:
    """A field of a protocol; several settings as ``temperature=0.2``."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_setting_text(part)}" for name, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def use_text(value: float | None, measure: str) -> str:
    """An amount of cost or time; a dash where nothing passed or was recorded."""
    if value is None:
        return "–"
    writers = {"cost": money, "seconds": duration}
    return writers[measure](value) if measure in writers else figure(value)


def front_text(entry: tuple[bool, float | None] | None) -> str:
    """Whether an agent is on the front, with the share of redraws."""
    is_on_front, share = entry or (False, None)
    if share is None or (not is_on_front and share < 0.005):
        return ""
    return f"{'front, ' if is_on_front else ''}{percent(share, 0)}"
