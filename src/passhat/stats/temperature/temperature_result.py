"""What a fit of temperatures found, in objects that show themselves."""

from __future__ import annotations

from dataclasses import dataclass

from passhat._display import counted, html_table, number
from passhat.stats.estimate import Estimate
from passhat.stats.temperature.rankings import RankingFlip

__all__ = [
    "SCHEMA",
    "AgentFit",
    "BestTemperature",
    "Cell",
    "Change",
    "Exponent",
    "TemperatureFit",
]

SCHEMA = "passhat.temperature/1"


@dataclass(frozen=True, slots=True)
class Cell:
    """pass@k at one temperature, and the chance that this temperature is the best tried."""

    k: int
    temperature: float
    estimate: Estimate
    chance_best: float

    def to_dict(self) -> dict[str, object]:
        return {
            "k": self.k,
            "temperature": self.temperature,
            "value": self.estimate.value,
            "low": self.estimate.low,
            "high": self.estimate.high,
            "level": self.estimate.level,
            "chance_best": self.chance_best,
        }


@dataclass(frozen=True, slots=True)
class BestTemperature:
    """The best temperature for one k.

    ``tried`` is the best of those tried. ``between`` is the top of the parabola with its interval,
    where there are three temperatures or more; ``edge`` says that it lies at the lowest or highest
    one tried, so that the true one may lie beyond.
    """

    k: int
    tried: float
    between: float | None
    low: float | None
    high: float | None
    edge: bool

    def to_dict(self) -> dict[str, object]:
        return {
            "k": self.k,
            "tried": self.tried,
            "between": self.between,
            "low": self.low,
            "high": self.high,
            "edge": self.edge,
        }


@dataclass(frozen=True, slots=True)
class Change:
    """From one k to another, another temperature is better; with the chance that both hold."""

    k_before: int
    k_after: int
    temperature_before: float
    temperature_after: float
    probability: float

    def __str__(self) -> str:
        return (
            f"T = {self.temperature_before:g} is best at k = {self.k_before}, "
            f"T = {self.temperature_after:g} at k = {self.k_after} "
            f"(probability of both {self.probability:.2f})"
        )

    def to_dict(self) -> dict[str, object]:
        return {
            "k_before": self.k_before,
            "k_after": self.k_after,
            "temperature_before": self.temperature_before,
            "temperature_after": self.temperature_after,
            "probability": self.probability,
            "sentence": str(self),
        }


@dataclass(frozen=True, slots=True)
class Exponent:
    """The slope of ln T* over ln k between two k: the fingerprint of the difficulties."""

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

    def to_dict(self) -> dict[str, object]:
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "k_from": self.k_from,
            "k_to": self.k_to,
            "sentence": str(self),
        }


@dataclass(frozen=True, slots=True)
class AgentFit:
    """Everything about one agent."""

    agent: str
    tasks: int
    temperatures: tuple[float, ...]
    ks: tuple[int, ...]
    cells: tuple[Cell, ...]
    best: tuple[BestTemperature, ...]
    changes: tuple[Change, ...]
    exponent: Exponent | None
    advice: str
    notes: tuple[str, ...] = ()

    def find(self, k: int, temperature: float) -> Cell | None:
        """The cell of a k and a temperature, if both were looked at."""
        wanted = (k, temperature)
        return next((cell for cell in self.cells if (cell.k, cell.temperature) == wanted), None)

    def best_rows(self) -> list[tuple[str, str, str, str, str]]:
        """k, the best tried, T*, its interval, and a word where it lies at the edge.

        As every table shows them; a k without a T* has no row.
        """
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

    def to_dict(self) -> dict[str, object]:
        return {
            "agent": self.agent,
            "tasks": self.tasks,
            "temperatures": list(self.temperatures),
            "ks": list(self.ks),
            "advice": self.advice,
            "cells": [cell.to_dict() for cell in self.cells],
            "best": [found.to_dict() for found in self.best],
            "changes": [change.to_dict() for change in self.changes],
            "exponent": None if self.exponent is None else self.exponent.to_dict(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class TemperatureFit:
    """Every agent, where their ranking depends on k and T, and what none of it can tell."""

    agents: tuple[AgentFit, ...]
    flips: tuple[RankingFlip, ...]
    level: float
    method: str
    notes: tuple[str, ...]

    def find(self, agent: str) -> AgentFit | None:
        """The fit of an agent, by name."""
        return next((found for found in self.agents if found.agent == agent), None)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.agents), *map(str, self.flips), *self.notes])

    def _repr_html_(self) -> str:
        rows = [
            (
                found.agent,
                f"{cell.temperature:g}",
                str(cell.k),
                number(cell.estimate.value),
                cell.estimate.interval_text(),
                number(cell.chance_best, 2),
            )
            for found in self.agents
            for cell in found.cells
        ]
        header = ("agent", "T", "k", "pass@k", "interval", "P(best)")
        return html_table("pass@k by temperature", header, rows, " ".join(self.notes))

    def to_dict(self) -> dict[str, object]:
        return {
            "schema": SCHEMA,
            "level": self.level,
            "agents": [found.to_dict() for found in self.agents],
            "ranking_flips": [flip.to_dict() for flip in self.flips],
            "method": self.method,
            "notes": list(self.notes),
        }
