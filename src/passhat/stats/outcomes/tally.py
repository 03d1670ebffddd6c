"""How much of a source became attempts, and what became of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from passhat._display import counted

__all__ = ["Loss", "Tally"]


@dataclass(frozen=True, slots=True)
class Loss:
    """Something in a source that could not be used: where it stands, and what is wrong with it.

    ``rows`` is how many rows of the source went with it; 0 when that cannot be known, as when a
    file ends too early.
    """

    where: str
    what: str
    rows: int = 1

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what

    def to_dict(self) -> dict[str, object]:
        return {"where": self.where, "what": self.what, "rows": self.rows}


@dataclass(frozen=True, slots=True)
class Tally:
    """The rows of one source: ``rows == attempts + skipped + lost``, always.

    Parameters
    ----------
    rows : int
        Rows that stand in the source, sound or not.
    attempts : int
        Rows that became attempts, over all runs of the source.
    skipped : mapping
        Rows left aside on purpose, by reason: another filter's copy, a cached answer.
    losses : tuple of Loss
        What was broken.
    absent : int
        Attempts that the source planned and that have no row; they are missing, not skipped.
    """

    rows: int
    attempts: int
    skipped: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    losses: tuple[Loss, ...] = ()
    absent: int = 0

    @property
    def lost(self) -> int:
        """Rows that could not be read."""
        return sum(loss.rows for loss in self.losses)

    def sentences(self) -> tuple[str, ...]:
        """The counts for a person to check."""
        lines = [f"{counted(self.rows, 'row')}, {counted(self.attempts, 'attempt')} read"]
        lines += [f"{counted(count, 'row')} skipped: {why}" for why, count in self.skipped.items()]
        if self.absent:
            lines.append(f"{counted(self.absent, 'planned attempt')} without a row: missing")
        if self.losses:
            kinds = "; ".join(map(str, self.losses[:3]))
            more = f" and {len(self.losses) - 3:,} more" if len(self.losses) > 3 else ""
            lines.append(f"LOST {counted(self.lost, 'row')}: {kinds}{more}")
        return tuple(lines)

    def to_dict(self) -> dict[str, object]:
        return {
            "rows": self.rows,
            "attempts": self.attempts,
            "skipped": dict(self.skipped),
            "lost": self.lost,
            "losses": [loss.to_dict() for loss in self.losses],
            "absent": self.absent,
        }
