"""From a cell about success to a reward, and from rewards to verdicts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from passhat._display import counted
from passhat.errors import Hint, InvalidValue, shorten
from passhat.stats.arrays import FloatArray, VerdictArray

__all__ = ["REWARD_TOLERANCE", "RewardWords", "Verdicts", "verdicts_from_rewards"]

REWARD_TOLERANCE = 1e-6
"""Sums of floating rewards land a hair below 1; that is still a pass."""

_PASSED = frozenset(
    {
        *("true", "yes", "y", "t", "pass", "passed", "success", "correct", "resolved", "ok"),
        *("✓", "✔", "✔️", "✅"),
    }
)
_FAILED = frozenset(
    {
        *("false", "no", "n", "f", "fail", "failed", "failure", "incorrect", "wrong", "not ok"),
        *("unresolved", "✗", "✘", "✖", "❌"),
    }
)
_NOTHING = frozenset({"", "nan", "na", "n/a", "null", "none", "missing"})
_CACHE_LIMIT = 10_000


class RewardWords(dict[object, float]):
    """Looks up the reward behind a cell; a new cell is parsed once. NaN is missing."""

    def __missing__(self, cell: object) -> float:
        reward = _parse_reward(cell)
        if len(self) < _CACHE_LIMIT:
            self[cell] = reward
        return reward


def _parse_reward(cell: object) -> float:
    if isinstance(cell, np.generic):
        cell = cell.item()  # np.bool_ and np.float32 are none of Python's own types
    if cell is None:
        return math.nan
    if isinstance(cell, bool | int | float):
        return _finite(float(cell))
    if not isinstance(cell, str):
        raise ValueError(shorten(cell))
    word = cell.strip().lower()
    reward = _word_reward(word)
    if reward is not None:
        return reward
    if word.endswith("%"):
        return _finite(float(word[:-1]) / 100)
    # 0,5 as in tables from countries that write it so; 1,000 may be a thousand, and is refused.
    if len(word) <= 4 and word.startswith(("0,", "1,")):
        word = word.replace(",", ".")
    return _finite(float(word))


def _word_reward(word: str) -> float | None:
    """The reward behind a word, or behind a sign and a word such as ✅ PASS."""
    if word in _NOTHING:
        return math.nan
    parts = {word} if word in _PASSED or word in _FAILED else set(word.split())
    if parts <= _PASSED:
        return 1.0
    return 0.0 if parts <= _FAILED else None


def _finite(reward: float) -> float:
    """The reward, if it is no infinity: a score that overflowed is neither a pass nor a failure."""
    if math.isinf(reward):
        raise ValueError(reward)
    return reward


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """Verdict per row, and notes on how they were derived."""

    verdicts: VerdictArray
    notes: tuple[str, ...]


def verdicts_from_rewards(rewards: FloatArray, pass_at: float | None) -> Verdicts:
    """Decide passed, failed or missing.

    Rewards of 0 and 1 need no threshold, and -1 among them is the usual mark for "not run". Any
    other reward passes at ``pass_at``, which is 1 unless said otherwise; rewards above 1 without
    a stated threshold are refused, since 40 of 100 cannot be distinguished from 40 of 40.
    """
    notes = []
    binary = np.isnan(rewards) | (rewards == 0) | (rewards == 1) | (rewards == -1)
    if binary.all():
        marks = rewards == -1
        if marks.any():
            notes.append(f"-1 was read as missing ({counted(int(marks.sum()), 'attempt')})")
        rewards = np.where(marks, np.nan, rewards)
    elif pass_at is None and np.nanmax(rewards) > 1 + REWARD_TOLERANCE:
        raise InvalidValue(
            f"rewards go up to {np.nanmax(rewards):g}, so what counts as a pass must be stated.",
            hint=Hint(
                "State the reward from which an attempt passes, as {pass_at}.", pass_at="SCORE"
            ),
        )
    threshold = 1.0 if pass_at is None else pass_at
    if not binary.all():
        notes.append(
            f"{counted(int((~binary).sum()), 'reward')} between or beyond 0 and 1; "
            f"passed means reward >= {threshold:g}"
        )
    verdicts = (rewards >= threshold - REWARD_TOLERANCE).astype(np.int8)
    verdicts[np.isnan(rewards)] = -1
    return Verdicts(verdicts, tuple(notes))
