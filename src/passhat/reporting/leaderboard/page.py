"""The site of a leaderboard: a page, and its data as JSON and CSV beside it."""

from __future__ import annotations

import csv
import io
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from passhat._display import counted, csv_cell, percent, percent_interval
from passhat._serialize import as_json, to_data
from passhat.reporting.document import upper_first
from passhat.reporting.documents.leaderboard import (
    board_title,
    front_text,
    group_blocks,
    method_blocks,
    protocol_text,
    slice_blocks,
    source_table,
    use_text,
)
from passhat.reporting.figures import page_svg
from passhat.reporting.figures.board import price_figures
from passhat.reporting.html.page import template
from passhat.reporting.html.payload import script_json
from passhat.reporting.leaderboard.facts import PRICES, Board, BoardAgent, Leaderboard
from passhat.stats.estimate import Estimate
from passhat.stats.estimate.metrics import Metric

_MOST_LETTERS = 12
_FEW_AGENTS = 12


def site_files(leaderboard: Leaderboard, command: str = "") -> dict[str, str]:
    """The files of the site by name."""
    return {
        "index.html": leaderboard_page(leaderboard, command),
        "board.json": as_json(leaderboard),
        "agents.csv": agents_csv(leaderboard),
        "tasks.csv": tasks_csv(leaderboard),
    }


def leaderboard_page(leaderboard: Leaderboard, command: str = "") -> str:
    """The page as one file, without network and without other files."""
    boards, first = leaderboard.boards, leaderboard.boards[0]
    return template("leaderboard.html.j2").render(
        title=leaderboard.title,
        boards=[_board_view(board) for board in leaderboard.boards],
        notes=list(map(upper_first, leaderboard.notes)),
        explanation=(
            f"A range of ranks is what {100 * first.level:g}% confidence allows for all agents at "
            f"once, on {first.about}: agents whose order the tasks do not show share ranks."
        ),
        facts=[
            counted(sum(len(board.agents) for board in leaderboard.boards), "agent"),
            counted(len({task for board in boards for task in board.tasks}), "task"),
            counted(sum(a.attempts for b in leaderboard.boards for a in b.agents), "attempt"),
            *(() if any(map(_has_missing, boards)) else ("none missing",)),
        ],
        figures=[(figure, page_svg(figure)) for board in boards for figure in price_figures(board)],
        sources=[source_table(leaderboard)],
        few=sum(len(board.agents) for board in leaderboard.boards) <= _FEW_AGENTS,
        methods=[(board_title(board), list(method_blocks(board))) for board in boards],
        command=command,
        board_json=script_json(to_data(leaderboard)),
        grid_json=script_json([_grid(board) for board in boards]),
    )


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table: how it is sorted at first, and what it asks."""

    title: str
    kind: str
    first: str = "ascending"
    asks: str = ""


def _board_view(board: Board) -> dict[str, object]:
    columns = list(_columns(board))
    return {
        "title": board_title(board),
        "headline": board.headline,
        "protocol": f"Protocol: {protocol_text(board)}.",
        "caption": f"Ranked by {board.ranked_by[0]}; click a heading to sort",
        "columns": columns,
        "rows": [_row(board, agent) for agent in board.agents],
        "has_front": any(agent.fronts for agent in board.agents),
        "notes": list(map(upper_first, board.notes)),
        "groups": list(group_blocks(board)),
        "groups_title": f"{counted(len(board.groups), 'group')} of agents that are not told apart",
        "blocks": list(slice_blocks(board)),
    }


def _has_letters(board: Board) -> bool:
    """Whether letters say which agents are alike: not where there are too many groups."""
    return 1 < len(board.groups) <= _MOST_LETTERS


def _has_missing(board: Board) -> bool:
    return any(agent.missing for agent in board.agents)


def _measures(board: Board) -> list[str]:
    return [name for name in PRICES if any(name in agent.use for agent in board.agents)]


def _columns(board: Board) -> Iterator[_Column]:
    for word in board.ranked_by:
        yield _Column("ranks", "rank", asks=f"Ranks that are possible by {word}")
        yield _Column(str(word), "span", "descending", word.asks)
    for word in _others(board):
        yield _Column(str(word), "plain", "descending", word.asks)
    if _has_letters(board):
        yield _Column("alike", "letters", asks="Agents that share a letter are not told apart")
    for name in _measures(board):
        unit = "$" if name == "cost" else "time"
        yield _Column(f"{unit} / attempt", "plain", asks=f"{name} per attempt")
        yield _Column(f"{unit} / success", "plain", asks=f"{name} of all attempts per success")
        if any(name in agent.fronts for agent in board.agents):
            asks = "On the Pareto front, and in which share of redraws of the tasks"
            yield _Column(f"front ({unit})", "front", "descending", asks)
    if _has_missing(board):
        yield _Column("missing", "missing", "descending", "Attempts without a verdict")


def _others(board: Board) -> list[Metric]:
    return [word for word in board.metrics if word not in board.ranked_by]


def _row(board: Board, agent: BoardAgent) -> dict[str, object]:
    is_first = agent.ranks[0].best == 1
    is_on_front = any(entry[0] for entry in agent.fronts.values())
    classes = [("first", is_first), ("on-front", is_on_front), ("incomplete", agent.missing > 0)]
    model = agent.about.get("model", "")
    return {
        "name": agent.name,
        "detail": "" if model == agent.name else model,
        "classes": " ".join(name for name, is_so in classes if is_so),
        "search": f"{agent.name} {agent.agent} {' '.join(agent.about.values())}".lower(),
        "cells": list(_cells(board, agent)),
    }


def _cells(board: Board, agent: BoardAgent) -> Iterator[dict[str, object]]:
    count = len(board.agents)
    for rank in agent.ranks:
        yield {
            "kind": "rank",
            "text": str(rank),
            "sort": rank.best + rank.worst / 1000,
            "left": 100 * (rank.best - 1) / count,
            "width": 100 * (rank.worst - rank.best + 1) / count,
        }
        yield _span(agent.find(rank.metric))
    for word in _others(board):
        estimate = agent.find(word)
        value = None if estimate is None else estimate.value
        yield {"kind": "plain", "text": percent(value, 1), "sort": "" if value is None else value}
    if _has_letters(board):
        letters = "".join(string.ascii_lowercase[place - 1] for place in agent.groups)
        yield {"kind": "letters", "text": letters, "sort": agent.groups[0] if letters else ""}
    for name in _measures(board):
        use = agent.use.get(name)
        for price in (None, None) if use is None else (use.per_attempt, use.per_solved):
            text = use_text(price, name)
            yield {"kind": "plain", "text": text, "sort": "" if price is None else price}
        if any(name in other.fronts for other in board.agents):
            entry = agent.fronts.get(name)
            share = "" if entry is None or entry[1] is None else entry[1] + entry[0]
            is_on_front = entry is not None and entry[0]
            yield {"kind": "front", "text": front_text(entry), "sort": share, "on": is_on_front}
    if _has_missing(board):
        yield {"kind": "missing", "text": f"{agent.missing:,}", "sort": agent.missing}


def _span(estimate: Estimate | None) -> dict[str, object]:
    if estimate is None:
        return {"kind": "plain", "text": "–", "sort": ""}
    has_interval = estimate.low is not None and estimate.high is not None
    interval = percent_interval(estimate.low, estimate.high) if has_interval else ""
    least, largest = estimate.value_ends
    is_open = largest > least
    return {
        "kind": "span",
        "text": percent(least, 1),
        "sort": least,
        "value": least,
        "low": estimate.low,
        "high": estimate.high,
        "open": largest if is_open else None,
        "interval": interval,
        "tip": f"up to {percent(largest, 1)} if missing attempts passed" if is_open else "",
    }


def _grid(board: Board) -> dict[str, object]:
    """The share of passes of every agent at every task, as two digits in base 16 each."""
    return {
        "tasks": list(board.tasks),
        "agents": [agent.name for agent in board.agents],
        "rates": [
            "".join("--" if np.isnan(rate) else f"{round(100 * rate):02x}" for rate in column)
            for column in board.rates.T
        ],
    }


def agents_csv(leaderboard: Leaderboard) -> str:
    """A row for every agent and metric."""
    header = (
        *("board", "agent", "metric", "value", "value_if_passed", "low", "high", "level", "about"),
        *("rank_best", "rank_worst", "tasks", "attempts", "missing", "cost_per_attempt"),
        *("cost_per_success", "seconds_per_attempt", "seconds_per_success", "source"),
        *("file_sha256", "protocol"),
    )
    rows = []
    for number, board in enumerate(leaderboard.boards, 1):
        for agent in board.agents:
            ranks = {rank.metric: rank for rank in agent.ranks}
            prices: list[float | None] = []
            for name in PRICES:
                use = agent.use.get(name)
                prices += [None, None] if use is None else [use.per_attempt, use.per_solved]
            for estimate in agent.estimates:
                rank = ranks.get(estimate.metric)
                rows.append(
                    (
                        *(number, agent.name, str(estimate.metric), estimate.value),
                        *(estimate.value_if_passed, estimate.low, estimate.high, estimate.level),
                        *(str(estimate.population), rank and rank.best, rank and rank.worst),
                        *(estimate.tasks, estimate.attempts, agent.missing, *prices),
                        *(agent.source, agent.file_digest, agent.protocol),
                    )
                )
    return _csv(header, rows)


def tasks_csv(leaderboard: Leaderboard) -> str:
    """A row for every task of every board, a column for every agent: the share of passes."""
    agents = (agent for board in leaderboard.boards for agent in board.agents)
    names = list(dict.fromkeys(agent.name for agent in agents))
    rows = []
    for number, board in enumerate(leaderboard.boards, 1):
        places: Mapping[str, int] = {agent.name: i for i, agent in enumerate(board.agents)}
        for task, rates in zip(board.tasks, np.round(board.rates, 6).tolist(), strict=True):
            cells = [rates[places[name]] if name in places else None for name in names]
            rows.append((number, task, *cells))
    return _csv(("board", "task", *names), rows)


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(list(map(csv_cell, header)))
    writer.writerows(list(map(csv_cell, row)) for row in rows)
    return out.getvalue()
