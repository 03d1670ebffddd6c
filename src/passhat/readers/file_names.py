"""What some harnesses say only in the name of a file: the model, and the temperature."""

from __future__ import annotations

import re
from pathlib import Path

from passhat.protocol import Scalar
from passhat.readers.sources import STANDARD_INPUT, Source

__all__ = ["from_name"]

_TEMPERATURE = re.compile(r"[_-](?:temp(?:erature)?_?|t)(\d+(?:\.\d+)?)(?=[_\-.]|$)", re.IGNORECASE)
_ENDINGS = re.compile(r"(\.(jsonl?|gz|results)|_(results|samples|eval_results|eval_all))+$")

# "mine_run1" and "mine_run2" are the same agent; "gpt-4" and "gpt-5" are not.
_COUNTER = re.compile(
    r"[_\-.](?:trial|run|seed|attempt|try|rep|repeat|epoch)[_-]?\d+$", re.IGNORECASE
)


def from_name(source: Source) -> tuple[str, dict[str, Scalar], tuple[str, ...]]:
    """The agent, its decoding settings, and sentences that say where both come from."""
    if source.name == STANDARD_INPUT:
        return source.stem, {}, ("the log does not name the model",)
    name = _ENDINGS.sub("", Path(source.name).name)
    found = _TEMPERATURE.search(name)
    agent = _COUNTER.sub("", name[: found.start()] if found else name).strip("_-.") or source.stem
    said = "the log does not name the model: the run is named after the file"
    if found is None:
        return agent, {}, (said,)
    temperature = float(found[1])
    return agent, {"temperature": temperature}, (f"{said}, and so is the temperature",)
