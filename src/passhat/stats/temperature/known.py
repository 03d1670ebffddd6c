"""An agent whose success rate at every task and temperature is known: the truth for studies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat.protocol import Protocol
from passhat.stats.arrays import FloatArray
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.temperature.peak import peaks

__all__ = ["KnownRates"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KnownRates:
    """Success rates, temperatures x tasks.

    Attempts drawn from them are a benchmark whose pass@k and T*(k) can be looked up.
    """

    agent: str
    tasks: tuple[str, ...]
    temperatures: tuple[float, ...]
    rates: FloatArray

    def __repr__(self) -> str:
        tasks, temperatures = len(self.tasks), len(self.temperatures)
        return f"<KnownRates of {self.agent}: {tasks:,} tasks at {temperatures} temperatures>"

    def pass_at_k(self, k: int) -> FloatArray:
        """The true pass@k at every temperature."""
        with np.errstate(divide="ignore"):
            failed = np.exp(k * np.log1p(-self.rates))
        values: FloatArray = (1 - failed).mean(axis=1)
        return values

    def best_temperature(self, k: int) -> float:
        """T*(k): the top of a parabola through the best temperature and its neighbors."""
        return float(peaks(np.array(self.temperatures), self.pass_at_k(k)).top)

    def draw(self, attempts: int, rng: np.random.Generator) -> list[Run]:
        """One run per temperature: so many independent attempts at every task."""
        passes = rng.binomial(attempts, self.rates)
        return [
            Run(
                f"{self.agent} T={temperature:g}",
                self.agent,
                Outcomes.from_counts(attempts, passed, self.tasks),
                Protocol(attempts=attempts, decoding={"temperature": temperature}),
            )
            for temperature, passed in zip(self.temperatures, passes, strict=True)
        ]

    def at(self, *temperatures: float) -> KnownRates:
        """The same at the temperatures nearest to these only."""
        tried = np.log(self.temperatures)
        rows = sorted({int(np.abs(tried - np.log(t)).argmin()) for t in temperatures})
        kept = tuple(self.temperatures[row] for row in rows)
        return KnownRates(self.agent, self.tasks, kept, self.rates[rows])
