"""The result of a temperature fit."""

from __future__ import annotations

from dataclasses import dataclass

from passhat._display import counted, html_table, number, percent
from passhat._serialize import Plain
from passhat.stats.estimate import Estimate
from passhat.stats.temperature.advice import Advice
from passhat.stats.temperature.rankings import RankingFlip

SCHEMA = "passhat.temperature/1"


@dataclass(frozen=True, slots=True)
class Cell(Plain):
    """pass@k at one temperature, and the share of redraws in which this temperature is the best."""

    k: int
    temperature: float
    estimate: Estimate
    share_best: float

    def _as_dict(self) -> dict[str, object]:
        return {
            "k": self.k,
            "temperature": self.temperature,
            "value": self.estimate.value,
            "low": self.estimate.low,
            "high": self.estimate.high,
            "level": self.estimate.level,
            "share_of_redraws": self.share_best,
        }


@dataclass(frozen=True, slots=True)
class BestTemperature:
    """The best temperature for one k.

    ``tried`` is the best of those tried. ``between`` is T*, which may lie between them, with its
    interval, where there are three temperatures or more; ``edge`` is true if the best one tried is
    the lowest or the highest, so that T* may lie beyond.
    """

    k: int
    tried: float
    between: float | None
    low: float | None
    high: float | None
    edge: bool


@dataclass(frozen=True, slots=True)
class Change(Plain):
    """Another temperature is the best from one k to the next."""

    WRITTEN = (
        "k_before",
        "k_after",
        "temperature_before",
        "temperature_after",
        ("share_of_redraws", "share"),
        "sentence",
    )

    k_before: int
    k_after: int
    temperature_before: float
    temperature_after: float
    share: float

    def __str__(self) -> str:
        return (
            f"T = {self.temperature_before:g} is best at k = {self.k_before}, "
            f"T = {self.temperature_after:g} at k = {self.k_after} "
            f"(both in {percent(self.share, 0)} of redraws)"
        )

    @property
    def sentence(self) -> str:
        """The result in words."""
        return str(self)


@dataclass(frozen=True, slots=True)
class Exponent(Plain):
    """The slope of ln T* over ln k."""

    WRITTEN = (..., "sentence")

    value: float
    low: float
    high: float
    k_from: int
    k_to: int

    def __str__(self) -> str:
        return (
            f"T* grows as k^{self.value:.2f} ({self.low:.2f} to {self.high:.2f}) "
            f"from k = {self.k_from} to {self.k_to}"
        )

    @property
    def sentence(self) -> str:
        """The result in words."""
        return str(self)


@dataclass(frozen=True, slots=True)
class AgentFit(Plain):
    """The fit of one agent."""

    agent: str
    tasks: int
    temperatures: tuple[float, ...]
    ks: tuple[int, ...]
    cells: tuple[Cell, ...]
    best: tuple[BestTemperature, ...]
    changes: tuple[Change, ...]
    exponent: Exponent | None
    advice: Advice
    notes: tuple[str, ...] = ()

    def find(self, k: int, temperature: float) -> Cell | None:
        """The cell of a k and a temperature, if both were fitted."""
        key = (k, temperature)
        return next((cell for cell in self.cells if (cell.k, cell.temperature) == key), None)

    def best_rows(self) -> list[tuple[str, str, str, str, str]]:
        """Rows for tables: k, the best tried, T*, its interval, and a note at an edge."""
        return [
            (
                str(best.k),
                f"{best.tried:g}",
                f"{best.between:.3g}",
                f"{best.low:.3g} to {best.high:.3g}",
                "at the edge of what was tried" if best.edge else "",
            )
            for best in self.best
            if best.between is not None
        ]

    def __str__(self) -> str:
        rungs = ", ".join(f"{t:g}" for t in self.temperatures)
        lines = [f"{self.agent}: {counted(self.tasks, 'task')}, T = {rungs}", f"  {self.advice}"]
        lines += [f"  {change}" for change in self.changes]
        lines += [f"  {self.exponent}"] if self.exponent else []
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def _as_dict(self) -> dict[str, object]:
        return {
            "agent": self.agent,
            "tasks": self.tasks,
            "temperatures": self.temperatures,
            "ks": self.ks,
            "advice": str(self.advice),
            "advice_by_k": self.advice,
            "cells": self.cells,
            "best": self.best,
            "changes": self.changes,
            "exponent": self.exponent,
            "notes": self.notes,
        }


@dataclass(frozen=True, slots=True)
class TemperatureFit(Plain):
    """The fits of all agents, and the pairs whose ranking depends on k and T."""

    SCHEMA = SCHEMA
    WRITTEN = ("level", "agents", ("ranking_flips", "flips"), "method", "notes")

    agents: tuple[AgentFit, ...]
    flips: tuple[RankingFlip, ...]
    level: float
    method: str
    notes: tuple[str, ...]

    def find(self, agent: str) -> AgentFit | None:
        """The fit of an agent, by name."""
        return next((fit for fit in self.agents if fit.agent == agent), None)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.agents), *map(str, self.flips), *self.notes])

    def _repr_html_(self) -> str:
        rows = [
            (
                fit.agent,
                f"{cell.temperature:g}",
                str(cell.k),
                number(cell.estimate.value),
                cell.estimate.interval_text(),
                f"{percent(cell.share_best, 0)}",
            )
            for fit in self.agents
            for cell in fit.cells
        ]
        header = ("agent", "T", "k", "pass@k", "interval", "best in redraws")
        return html_table("pass@k by temperature", header, rows, " ".join(self.notes))
