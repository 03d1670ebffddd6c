"""What a JSON document states beside its records: the model, the pass rate, the threshold."""

from __future__ import annotations

import re
from collections.abc import Mapping

from passhat.readers.parsing import number_or_none
from passhat.readers.records import RecordFile, plain_log
from passhat.readers.sources import Source
from passhat.stats.outcomes.columns import ALIASES, fold_name


def find_facts(source: Source) -> tuple[str | None, float | None]:
    """The model and the share of passes that a JSON document states at its top."""
    names = {*ALIASES["model"], *ALIASES["rate"], *_TOTALS, *_SUMMARIES}
    if not any(fold_name(key) in names for key in source.outline.keys):
        return None, None
    whole = next(iter(RecordFile(source, plain_log(source)).records()), None)
    data = whole.data if whole is not None and isinstance(whole.data, dict) else {}
    top = {fold_name(str(key)): value for key, value in data.items()}
    model = next((top[a] for a in ALIASES["model"] if isinstance(top.get(a), str) and top[a]), None)
    inner = [top[name] for name in _SUMMARIES if isinstance(top.get(name), dict)]
    tables = [top, *({fold_name(str(key)): cell for key, cell in t.items()} for t in inner)]
    return model, next((rate for rate in map(_stated_rate, tables) if rate is not None), None)


_SUMMARIES = ("summary", "stats", "statistics", "totals", "overall", "aggregate", "metrics")
_TOTALS = ("total", "total_tasks", "num_tasks", "total_tests", "tests", *ALIASES["n"])
_PASSES = ("passed", "resolved", "solved", "correct", "passes", *ALIASES["c"])


def _stated_rate(fields: Mapping[str, object]) -> float | None:
    """The share of passes among some fields, or the passes by the total."""
    rate, passes, total = (
        next((x for name in names if (x := number_or_none(fields.get(name))) is not None), None)
        for names in (ALIASES["rate"], _PASSES, _TOTALS)
    )
    if rate is not None and 0 <= rate <= 100:
        return rate if rate <= 1 else rate / 100
    is_share = passes is not None and total is not None and 0 <= passes <= total and total > 1
    return passes / total if is_share else None  # type: ignore[operator]


_THRESHOLDS = re.compile(
    r"(pass(ing)?|success|solved?|reward|score)_(threshold|mark|at|limit|cutoff|cut_off)|"
    r"(min(imum)?|threshold)_(passing_|pass_)?(score|reward|grade)|passing_(score|grade|reward)"
)


def find_threshold(source: Source) -> tuple[str, float] | None:
    """The reward from which an attempt passes, as a JSON document states it at its top."""
    if not any(map(_is_threshold, source.outline.keys)):
        return None
    whole = next(iter(RecordFile(source, plain_log(source)).records()), None)
    data = whole.data if whole is not None and isinstance(whole.data, dict) else {}
    found = [
        (str(key), float(value))
        for key, value in data.items()
        if _is_threshold(str(key)) and type(value) in (int, float) and value > 0
    ]
    return found[0] if len(found) == 1 else None


def _is_threshold(key: str) -> bool:
    return _THRESHOLDS.fullmatch(fold_name(key[:60])) is not None
