"""An estimate: never a bare number."""

from __future__ import annotations

from dataclasses import dataclass

from passhat._display import counted, html_table, number

__all__ = ["Estimate"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, what it is worth, how it was made and what it speaks about.

    Attributes
    ----------
    metric : str
        The word of the grammar, as in ``pass^4``.
    value : float
        The estimate; under the policies ``bound`` and ``fail`` missing attempts count as failed.
    value_if_passed : float or None
        The value had every missing attempt passed; only under the policy ``bound``.
    low, high : float or None
        The ends of the interval; ``None`` when none was computed.
    level : float or None
        The confidence of the interval.
    about : str
        The population it speaks about: ``new tasks`` or ``these tasks``.
    method : str
        Estimator, missing policy and interval method.
    tasks, attempts : int
        What it rests on.
    bounds : tuple of float or None
        For ``delta^k``: between which values the truth lies, given the mean.
    notes : tuple of str
        What a reader must know besides.
    missing_policy : str
        What ``value`` does with attempts that have no verdict: counts them as failed (``bound``,
        ``fail``) or leaves them out (``exclude``).
    """

    metric: str
    value: float
    value_if_passed: float | None
    low: float | None
    high: float | None
    level: float | None
    about: str
    method: str
    tasks: int
    attempts: int
    bounds: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()
    missing_policy: str = "bound"

    def interval_text(self) -> str:
        """The interval in brackets, or that there is none."""
        if self.low is None or self.high is None:
            return "no interval"
        return f"[{number(self.low)}, {number(self.high)}]"

    def __str__(self) -> str:
        level = "" if self.level is None else f"{self.level:.0%}, "
        moved = self.value_if_passed is not None and self.value_if_passed != self.value
        upper = f" to {number(self.value_if_passed)}" if moved else ""
        return (
            f"{self.metric} = {number(self.value)}{upper} {self.interval_text()} "
            f"({level}{self.about}; {counted(self.tasks, 'task')}, "
            f"{counted(self.attempts, 'attempt')})"
        )

    def _repr_html_(self) -> str:
        rows = [(name, str(value)) for name, value in self.to_dict().items() if value is not None]
        return html_table(str(self), ("", ""), rows)

    def to_dict(self) -> dict[str, object]:
        data: dict[str, object] = {
            "metric": self.metric,
            "value": self.value,
            "missing_policy": self.missing_policy,
            "value_if_passed": self.value_if_passed,
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "about": self.about,
            "method": self.method,
            "tasks": self.tasks,
            "attempts": self.attempts,
            "notes": list(self.notes),
        }
        if self.bounds is not None:
            data["bounds"] = list(self.bounds)
        return data
