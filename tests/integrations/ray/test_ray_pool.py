"""The watch over the head of a cluster, without Ray between."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from moved_clock import move_clock, run_with_clock
from passhat.errors import EngineUnavailable
from passhat.integrations.ray import ray_pool as ray_crew
from passhat.integrations.ray.ray_pool import RayPool, first_line_of


def test_a_process_that_stood_still_does_not_take_the_head_for_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Longer than a head is missed for, and then one knock goes wrong; later ones do not."""
    monkeypatch.setattr(ray_crew, "_HEAD_SECONDS", 0.05)
    knocks: list[str] = []

    async def knocked(*_: object) -> Any:
        knocks.append("")
        if len(knocks) == 1:
            move_clock(0.1)  # the loop itself stands still
            raise OSError("not now")
        if len(knocks) > 3:
            raise OSError("never again")
        return None, SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(asyncio, "open_connection", knocked)
    pool = RayPool(None, [], SimpleNamespace(), SimpleNamespace(), "127.0.0.1:1")  # type: ignore[arg-type]
    with pytest.raises(EngineUnavailable, match="takes no connection any more"):
        run_with_clock(asyncio.wait_for(pool._watch_head(), 60))
    assert len(knocks) >= 6


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("ray is away\nsee there", "ray is away"),
        ("It failed, because:\n  of this\nand more", "It failed, because: of this"),
        (
            'From server:\nTraceback (most recent call last):\n  File "x"\nTimeoutError: late\n',
            "From server: TimeoutError: late",
        ),
    ],
)
def test_of_what_ray_says_the_reason_is_shown(said: str, shown: str) -> None:
    assert first_line_of(ConnectionError(said)) == shown
