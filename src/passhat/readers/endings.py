"""Words about how an attempt ended that are no verdict: timeout, gave up, partial."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

from passhat.stats.outcomes.columns import fold_name
from passhat.stats.outcomes.rewards import RewardWords

_ODD_ENDINGS = frozenset(
    {
        *("timeout", "timed out", "timed_out", "crash", "crashed", "error", "errored", "exception"),
        *("aborted", "cancelled", "canceled", "interrupted", "killed", "oom", "inconclusive"),
        *("partial", "partially", "partially correct", "unclear", "unknown", "incomplete"),
    }
)


def is_odd_ending(text: str) -> bool:
    """Whether a word says how an attempt ended, and not whether it passed."""
    word = _fold(text).rstrip("s")
    return word in _ODD_ENDINGS or word.startswith("partial")


_SUCCESS = r"(?:success|succeeded|solved?|pass(?:ed)?|correct)"
_FIRST_SUCCESS = re.compile(
    rf"first_{_SUCCESS}(?:ful)?(?:_\w+)?|{_SUCCESS}_(?:(?:at|on|in)_)?(?:attempt|try|trial|run)(?:_\w+)?|"
    r"(?:n_|num_)?(?:attempts|tries|trials|runs)_(?:needed|required|to|until|till|before)(?:_\w+)?"
)


def is_first_success(name: str) -> bool:
    """Whether a column holds the number of the attempt that passed first, nothing for never."""
    return _FIRST_SUCCESS.fullmatch(fold_name(name)) is not None


_GIVING_UP = frozenset({"gave up", "give up", "given up", "giveup", "gives up"})
_REASONS = _GIVING_UP | {
    *("wrong answer", "wa", "tle", "time limit exceeded", "mle", "memory limit exceeded"),
}
_AGENT_ENDINGS = _GIVING_UP | {"timeout", "timed out", "crash", "crashed", "oom"}


def _fold(text: object) -> str:
    return str(text).strip().lower().replace("_", " ")


def has_failure_reasons(cells: Iterable[object]) -> bool:
    """Whether the words for a failure say why: wrong answer, gave up."""
    return any(_fold(cell) in _REASONS for cell in cells)


def are_endings(cells: Iterable[object]) -> bool:
    """Whether all cells are such words or verdicts."""
    texts = list(map(str, cells))
    others = [t for t in texts if not (is_agent_ending(t) or is_odd_ending(t))]
    words = RewardWords()
    with suppress(ValueError):
        return all(words[text] in (0.0, 1.0) for text in others)
    return False


def is_agent_ending(text: str) -> bool:
    """Whether a word beside reasons of failures is one of them, and no fault of the set-up."""
    return _fold(text) in _AGENT_ENDINGS
