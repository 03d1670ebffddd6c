"""What tools work on: one attempt's copy of the records, and what was done to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any

__all__ = ["Desk", "Record", "ToolError"]

Record = dict[str, Any]


class ToolError(Exception):
    """A tool cannot do what was asked; the agent reads the message and may try otherwise."""


@dataclass(slots=True)
class Desk:
    """The records of one attempt. Tools do what they are told; broken rules are written down.

    A real desk's tools would not stop an agent from refunding what must not be refunded, so these
    do not either: keeping to the policy is part of the task.
    """

    data: Record
    today: date
    customer: str | None = None
    changes: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    closed: bool = False

    def find(self, table: str, key: str) -> Record:
        """The record by its key, whatever its case and spaces."""
        records: dict[str, Record] = self.data[table]
        found = records.get(key.strip()) or records.get(key.strip().upper())
        if found is None:
            raise ToolError(f"there is no {key!r} among the {table}.")
        return found

    def rule(self, kept: bool, text: str) -> None:
        """Write down a rule of the policy that an action breaks."""
        if not kept:
            self.violations.append(text)

    def change(self, what: str, owner: str) -> None:
        """Every change passes here: it belongs to the customer who was identified."""
        self.rule(
            self.customer == owner,
            f"{what}: identify the customer first, and change only what is theirs",
        )
        self.changes.append(what)

    def days_since(self, day: str) -> int:
        return (self.today - date.fromisoformat(day)).days
