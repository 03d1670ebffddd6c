"""Options that only some suites have a use for; the same wherever a suite is named."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

__all__ = ["suite_options"]


def suite_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options, and hands them over as one object called ``asked``."""

    @click.option(
        "--tau2",
        metavar="PATH",
        envvar="PASSHAT_TAU2",
        help="The checkout of tau2-bench, for tau2 suites.",
    )
    @click.option(
        "--tau2-python",
        metavar="PY",
        envvar="PASSHAT_TAU2_PYTHON",
        help="The interpreter that tau2 is installed in; its .venv, unless said.",
    )
    @click.option("--scorer", metavar="NAME", help="The scorer that decides, for inspect tasks.")
    @wraps(function)
    def with_settings(
        *arguments: Any,
        tau2: str | None,
        tau2_python: str | None,
        scorer: str | None,
        **options: Any,
    ) -> Any:
        from passhat.suites.settings import Settings

        return function(*arguments, asked=Settings(tau2, tau2_python, scorer=scorer), **options)

    return with_settings
