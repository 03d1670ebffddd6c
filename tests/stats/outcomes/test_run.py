"""What a run says of itself."""

from __future__ import annotations

import pytest

from passhat.stats.outcomes import Outcomes, Run, served_change


def _run(version: str, agent: str = "agent") -> Run:
    about = {"model_version": version} if version else {}
    return Run("night", agent, Outcomes.from_counts(4, [2, 3]), about=about)


@pytest.mark.parametrize(
    ("base", "run", "says"),
    [
        (_run("m-1"), _run("m-2"), "agent was answered by m-1 before and by m-2 now"),
        (_run("m-1"), _run("m-1"), ""),
        (_run(""), _run("m-2"), ""),
        (_run("m-1"), _run(""), ""),
        (_run("m-1"), _run("m-2", "other"), ""),
    ],
)
def test_another_model_behind_the_same_agent_is_said(base: Run, run: Run, says: str) -> None:
    assert served_change(base, run) == says
