"""passhat.stats.outcomes.names: as if they were a list of texts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.stats.outcomes import Outcomes
from passhat.stats.outcomes import cells as columns_of_cells
from passhat.stats.outcomes.cells import PackedNames, same_names

# Any code point, half characters too: logs hold them.
TEXTS = st.lists(st.text(st.characters(), max_size=9), max_size=30)


@given(TEXTS, TEXTS)
def test_they_come_back_as_they_were(first: list[str], more: list[str]) -> None:
    packed = PackedNames(first)
    packed.extend(iter(more))
    everything = [*first, *more]
    assert list(packed) == [packed[i] for i in range(len(packed))] == everything
    assert packed[3:7] == everything[3:7]
    assert packed == PackedNames(everything)
    assert same_names(packed, everything)
    assert not same_names(packed, [*everything, "one more"])


@given(st.data(), TEXTS.filter(bool))
def test_some_of_them_in_any_order(data: st.DataObject, texts: list[str]) -> None:
    places = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=50))
    found = PackedNames(texts).take(np.array(places, np.int64))
    assert found == PackedNames(texts[place] for place in places)


def test_blocks_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"tâsk-{i}" for i in range(50)]
    places = np.array([49, 0, 0, 7, *range(30)])
    whole = PackedNames(texts)
    monkeypatch.setattr(columns_of_cells, "_BLOCK", 7)
    assert PackedNames(texts) == whole
    assert list(whole.take(places)) == [texts[i] for i in places]


def test_a_choice_of_outcomes_keeps_them_packed() -> None:
    packed = PackedNames(f"task-{i}" for i in range(5))
    some = Outcomes.from_counts(4, [0, 1, 2, 3, 4], packed).take(np.array([4, 1]))
    assert isinstance(some.tasks, PackedNames)
    assert list(some.tasks) == ["task-4", "task-1"]
    assert some.c.tolist() == [4, 1]
