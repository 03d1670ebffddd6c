"""passhat explain"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Passhat = Callable[..., Any]


def test_a_metric_without_a_source(passhat: Passhat) -> None:
    ended = passhat("explain", "pass^4")
    assert ended.code == 0
    assert "C(c, k) / C(n, k)" in ended.out
    assert "arXiv:2406.12045" in ended.out


def test_a_metric_of_a_run(passhat: Passhat) -> None:
    ended = passhat("explain", "pass^8", "example:helpdesk", "--run", "careful")
    assert ended.code == 0
    assert "careful: 24 tasks" in ended.out
    assert "cells = [" in ended.out


def test_several_runs_ask_which(passhat: Passhat) -> None:
    ended = passhat("explain", "pass^8", "example:helpdesk")
    assert ended.code == 2
    assert "there are 2 runs" in ended.err
    assert "--run: careful, hasty" in ended.err
    assert (
        "no run is called 'x'" in passhat("explain", "rate", "example:helpdesk", "--run", "x").err
    )


def test_a_wrong_word(passhat: Passhat) -> None:
    ended = passhat("explain", "pass^^4")
    assert (ended.code, ended.out) == (2, "")
    assert "Did you mean pass^4?" in ended.err
