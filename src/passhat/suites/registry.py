"""Suites by name: ``orderdesk/retail``, ``jsonl:PATH``, ``python:MODULE:SUITE``, and plug-ins'."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from typing import cast

from passhat.errors import InvalidValue
from passhat.suites.base import Suite
from passhat.suites.settings import Settings

__all__ = ["GROUP", "load_suite", "suite_kinds"]

GROUP = "passhat.suites"


def suite_kinds() -> dict[str, str]:
    """Every kind of suite that is installed, with the first line of its description."""
    return {
        entry.name: (entry.load().__doc__ or "").strip().splitlines()[0]
        for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    }


def load_suite(word: str, settings: Settings | None = None) -> Suite:
    """The suite that a word such as ``orderdesk/retail`` or ``jsonl:tasks.jsonl`` names.

    A suite with ``settle`` is told what was asked for; to any other, ``scorer`` means nothing, and
    asking for it is a mistake.
    """
    kind, *parts = re.split("[:/]", word, maxsplit=1)
    rest = "".join(parts)
    makers = {entry.name: entry for entry in entry_points(group=GROUP)}
    if kind not in makers:
        raise InvalidValue(
            f"{word!r} is not a suite.",
            hint=f"Kinds of suite: {', '.join(sorted(makers))}; "
            "as in orderdesk/retail or jsonl:tasks.jsonl.",
        )
    suite = makers[kind].load()(rest)
    if hasattr(suite, "settle"):
        suite.settle(settings or Settings())
    elif settings is not None and settings.scorer:
        raise InvalidValue(f"--scorer means nothing to {word}: it brings its own.")
    return cast("Suite", suite)


def python_suite(path: str) -> Suite:
    """A suite of your own: python:MODULE:NAME, an object or a function that makes one."""
    from passhat.suites.graders import load_object

    found: object
    try:
        found = load_object(path)()
    except InvalidValue as error:
        if "not something that can be called" not in error.message:
            raise
        module, _, name = path.partition(":")
        found = getattr(__import__(module, fromlist=[name]), name)
    for needed in ("name", "tasks", "fingerprint", "judge_fingerprint", "episode"):
        if not hasattr(found, needed):
            raise InvalidValue(f"{path!r} is no suite: it has no {needed!r}.")
    return cast("Suite", found)
