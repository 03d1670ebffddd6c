"""Charts as Vega-Lite, the language of the engine that draws them: plain dicts, put together here.

A library that builds such dicts (altair) took a quarter of the time a page takes, to import, to
copy and to check what is the same every time. Its check of the schema is one of the tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, object]
Spec = dict[str, Any]

_TYPES = {"N": "nominal", "Q": "quantitative"}
_SECOND_ENDS = ("x2", "y2")


def field(word: str, **more: object) -> Spec:
    """A channel that shows a column.

    Examples
    --------
    >>> field("share:Q", title=None)
    {'field': 'share', 'type': 'quantitative', 'title': None}
    """
    name, _, kind = word.rpartition(":")
    return {"field": name, "type": _TYPES[kind], **more}


def constant(value: object) -> Spec:
    """A channel that is the same everywhere."""
    return {"value": value}


def marks(rows: Sequence[Row], kind: str, look: Spec, **channels: Spec | str) -> Spec:
    """A layer with a mark for every row; a channel may be a word such as ``tip:N``."""
    encoding = {name: _channel(name, value) for name, value in channels.items()}
    return {"data": {"values": rows}, "mark": {"type": kind, **look}, "encoding": encoding}


def _channel(name: str, given: Spec | str) -> Spec:
    if not isinstance(given, str):
        return given
    # The second end is of the type of the first.
    return {"field": given.rpartition(":")[0]} if name in _SECOND_ENDS else field(given)


def layer(layers: Sequence[Spec], *, width: float, height: float, title: str = "") -> Spec:
    """Layers on top of each other, the first at the bottom."""
    title_entry = {"title": title} if title else {}
    return {"layer": list(layers), "width": width, "height": height, **title_entry}


def stack(parts: Sequence[Spec]) -> Spec:
    """Panels one above the other; a single one as it is."""
    return parts[0] if len(parts) == 1 else {"vconcat": list(parts), "spacing": 26}
