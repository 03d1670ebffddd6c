"""inspect_ai's scores: which scorer counts, and what its value is worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from passhat.errors import ReadError

__all__ = ["chosen_scorer", "score_of", "value_of"]

_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def value_of(value: object) -> float | None:
    """A score as a number: C is 1, P one half, I and N are 0; ``None`` is unscored."""
    if isinstance(value, bool | int | float):
        return None if value != value else float(value)
    if not isinstance(value, str):
        return None
    if value in _LETTERS:
        return _LETTERS[value]
    folded = value.strip().lower()
    if folded in _WORDS:
        return _WORDS[folded]
    try:
        number = float(folded)
    except ValueError:
        return None
    return None if number != number else number


def score_of(scores: Mapping[str, Any], scorer: str) -> object:
    """The value under a scorer's name; ``match/exact`` is one value of a scorer with several."""
    found = scores.get(scorer)
    if found is None and "/" in scorer:
        name, _, key = scorer.rpartition("/")
        found = scores.get(name)
        value = None if found is None else found.value
        return value.get(key) if isinstance(value, dict) else None
    return None if found is None else found.value


def chosen_scorer(samples: Iterable[Mapping[str, Any]], asked: str | None, source: str) -> str:
    """The scorer whose verdicts count; asks when there are several and nobody chose.

    Returns "" when nothing was scored at all.
    """
    names: dict[str, None] = {}
    for scores in samples:
        for name, score in scores.items():
            keys = score.value if isinstance(score.value, dict) else {}
            names |= dict.fromkeys([f"{name}/{key}" for key in keys] or [name])
    if asked is not None and names:
        found = [name for name in names if asked in (name, name.rpartition("/")[2])]
        if len(found) == 1:
            return found[0]
        raise ReadError(
            f"has no scorer called {asked!r}.",
            source=source,
            hint=f"Choose with --scorer: {', '.join(names)}.",
        )
    if len(names) > 1:
        raise ReadError(
            f"was scored by {len(names)} scorers, and only one can decide what passed.",
            source=source,
            hint=f"Choose with --scorer: {', '.join(names)}.",
        )
    return next(iter(names), "")
