"""The metric grammar: one string for Python, command line, configuration, gates and reports."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from types import MappingProxyType

from passhat.errors import InvalidValue, MetricError, shorten
from passhat.stats.estimate.counting import as_share
from passhat.stats.estimate.metrics import (
    BestOf,
    Delta,
    FirstAll,
    FirstAny,
    GPass,
    Mean,
    Metric,
    PassAt,
    PassHat,
    Rate,
    Window,
    WorstOf,
)

GRAMMAR: Mapping[str, type[Metric]] = MappingProxyType(
    {
        kind.word: kind
        for kind in (PassAt, PassHat, Delta, GPass, FirstAny, FirstAll, Window, BestOf, WorstOf)
    }
)
"""The words that take a k; ``gpass@k`` also takes ``:t``."""

_WITHOUT_K: Mapping[str, type[Rate | Mean]] = MappingProxyType({"rate": Rate, "mean": Mean})

_WORD = re.compile(r"(?P<family>[a-z]+[@^])(?P<k>[0-9]+)(?::(?P<t>[0-9./]+))?")
_EXAMPLES = (
    "pass@4, pass^4, delta^4, gpass@4:0.5, first@4, first^4, window^2, rate, mean, best@4, worst@4"
)


def metric(word: str | Metric) -> Metric:
    """The metric of a word such as ``pass^4``.

    Examples
    --------
    >>> metric("pass^4").asks
    'If every task is done 4 times, how often do all of them succeed?'
    >>> metric("pas^4")
    Traceback (most recent call last):
    passhat.errors.MetricError: 'pas^4' is not a metric. Did you mean pass^4?
    """
    if isinstance(word, Metric):
        return word
    if not isinstance(word, str):
        raise MetricError(f"a metric is a word such as pass^4, not {shorten(word)}.")
    text = word.strip().lower()
    if text in _WITHOUT_K:
        return _WITHOUT_K[text]()
    match = _WORD.fullmatch(text)
    if match is None or match["family"] not in GRAMMAR:
        raise MetricError(f"{shorten(word)} is not a metric.", hint=_suggestion(text))
    k = int(match["k"])
    if GRAMMAR[match["family"]] is GPass:
        return _g_pass(word, k, match["t"])
    if match["t"] is not None:
        raise MetricError(
            f"{shorten(word)}: only gpass takes a share after the colon.",
            hint=f"Did you mean gpass@{k}:{match['t']}?",
        )
    return GRAMMAR[match["family"]](k)


def _g_pass(word: str, k: int, share: str | None) -> Metric:
    if share is None:
        raise MetricError(
            f"{shorten(word)} needs the share of attempts that must pass.",
            hint=f"For at least half of them: gpass@{k}:0.5",
        )
    try:
        return GPass(k, as_share(share))
    except InvalidValue as error:
        raise MetricError(f"{shorten(word)}: {error.message}") from None


def _suggestion(text: str) -> str:
    """The nearest word of the grammar, with the requested number."""
    digits = re.search(r"[0-9]+", text)
    near = [] if digits else difflib.get_close_matches(text, [*_WITHOUT_K, "accuracy"], 1, 0.7)
    if near:
        return f"Did you mean {near[0] if near[0] in _WITHOUT_K else 'rate'}?"
    k = digits.group() if digits else "4"
    letters = re.sub(r"[\W\d_]+", "", text)
    sign = "@" if re.search(r"@|at|any", text) else "^"
    signs = {"hat": "^", "pow": "^"}
    for ending, symbol in signs.items():
        if letters.endswith(ending):
            letters, sign = letters.removesuffix(ending), symbol
    near = difflib.get_close_matches(f"{letters.removesuffix('at')}{sign}", list(GRAMMAR), 1, 0.5)
    if not near:
        return f"Metrics look like: {_EXAMPLES}."
    share = ":0.5" if GRAMMAR[near[0]] is GPass else ""
    return f"Did you mean {near[0]}{k}{share}?"
