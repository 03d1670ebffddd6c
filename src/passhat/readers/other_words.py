"""Words in a column of verdicts that are none: refused, or counted as missing or failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from passhat._display import some
from passhat.errors import InvalidValue
from passhat.readers import endings
from passhat.readers.record_map import likely_pass, rule_option
from passhat.readers.wide_tables import Shape, reward_or_none
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.gathering import Chunk
from passhat.stats.outcomes.rewards import RewardWords

_FEW_WORDS = 6


class UnknownWords(InvalidValue):
    """The words of a column are no verdicts."""


def refuse_other_words(columns: ColumnMap, chunk: Chunk, cells: Sequence[object]) -> None:
    """Refuse words of which none is known as a pass, or none as a failure, beside others.

    ``completed`` beside failures may mean a pass or an end, and C and I are grades.
    """
    success, words = columns.meaning["success"], RewardWords()
    rewards = {str(cell): reward_or_none(words, cell) for cell in cells}
    others = [text for text, reward in rewards.items() if reward is None]
    others = [text for text in others if not endings.is_odd_ending(text)]
    is_word = not any(re.search(r"\d", text) for text in others)
    if "success" in columns.stated or not others or len(cells) > _FEW_WORDS or not is_word:
        return
    if {0.0, 1.0} <= set(rewards.values()) or len(chunk[success]) <= len(cells):
        return
    word = likely_pass([text for text, reward in rewards.items() if reward == 1] or others)
    raise UnknownWords(
        f"column {success!r} holds words that are no verdicts: {some(list(map(repr, others)), 4)}.",
        hint=f"If {word!r} is the only pass: {rule_option(columns, chunk, word)}",
    )


def with_odd_endings(shape: Shape, cells: Sequence[object], chunk: Chunk) -> Shape:
    """Words about how an attempt ended that are no verdict, beside verdicts: missing, and said."""
    words = RewardWords()
    success = shape.columns.meaning["success"]
    others = [cell for cell in cells if reward_or_none(words, cell) is None]
    is_few = len(cells) <= _FEW_WORDS and not any(re.search(r"\d", str(c)) for c in others)
    column = list(chunk[success]) if is_few and others else []  # one alone may be a mistake
    odd = {c for c in others if column.count(c) > 1 or endings.is_odd_ending(str(c))}
    good = [cell for cell in cells if reward_or_none(words, cell) == 1]
    if not odd or not good:
        return shape

    verdict_of: dict[object, int | None] = dict.fromkeys(odd)
    if endings.has_failure_reasons(cells):
        verdict_of |= dict.fromkeys((c for c in odd if endings.is_agent_ending(str(c))), 0)

    def rearrange(chunk: Chunk) -> tuple[Chunk, list[int] | None]:
        chunk, origins = shape.rearrange(chunk)
        verdicts = [verdict_of.get(cell, cell) for cell in chunk[success]]
        return {**chunk, success: verdicts}, origins

    missing, failed = (
        some(sorted(repr(c) for c, value in verdict_of.items() if value == each), 4)
        for each in (None, 0)
    )
    remedy = f"; if they failed: {rule_option(shape.columns, chunk, good[0])}"
    remedy = remedy if len(good) == 1 else ""
    decisions = [f"counted as missing: {missing} in {success!r}{remedy}"] if missing else []
    decisions += [f"counted as failed: {failed} in {success!r}"] if failed else []
    return replace(shape, rearrange=rearrange, decisions=(*shape.decisions, *decisions))
