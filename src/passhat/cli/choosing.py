"""One run out of a source, where a command speaks about exactly one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passhat.outcomes import Run

__all__ = ["one_run"]


def one_run(
    source: str,
    name: str | None,
    *,
    columns: Mapping[str, str],
    pass_at: float | None,
    option: str = "--run",
) -> Run:
    """Read a source and choose the run called ``name``, or the only one there is."""
    from passhat._display import some
    from passhat.errors import InvalidValue
    from passhat.readers import read

    runs = read(source, columns=columns, pass_at=pass_at)
    chosen = [found for found in runs if name in (None, found.name)]
    if len(chosen) == 1:
        return chosen[0]
    asked = f"no run is called {name!r}" if name else f"there are {len(runs)} runs"
    raise InvalidValue(
        f"{source}: {asked}.",
        hint=f"Choose one with {option}: {some([found.name for found in runs], 20)}",
    )
