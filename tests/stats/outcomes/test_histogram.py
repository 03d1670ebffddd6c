"""Counting tasks per (n, c), dense or sparse, must give the same cells."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.stats.outcomes import cells as columns_of_cells
from passhat.stats.outcomes.cells import cells_of

pairs = st.lists(
    st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=1,
    max_size=60,
)


@pytest.mark.parametrize("dense_cells", [0, 4_000_000])
@given(pairs)
def test_cells_are_the_counted_pairs_in_order(
    dense_cells: int, found: list[tuple[int, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_of_cells, "_DENSE_CELLS", dense_cells)
        n, c = np.array([n for n, _ in found]), np.array([c for _, c in found])
        cells = cells_of(n, c)
        places = cells.places(n, c)
    assert (cells.n[places].tolist(), cells.c[places].tolist()) == (n.tolist(), c.tolist())
    expected = sorted(Counter(found).items())
    assert list(zip(cells.n.tolist(), cells.c.tolist(), cells.tasks.tolist(), strict=True)) == [
        (n, c, count) for (n, c), count in expected
    ]
    assert cells.size == len(found)


def test_huge_n_does_not_make_a_huge_table() -> None:
    cells = cells_of(np.array([10**12, 3]), np.array([10**11, 2]))
    assert cells.to_dict() == {"n": [3, 10**12], "c": [2, 10**11], "tasks": [1, 1]}
    alone = cells_of(np.array([10**12]), np.array([10**11]))
    assert alone.to_dict() == {"n": [10**12], "c": [10**11], "tasks": [1]}


@pytest.mark.parametrize("n", [[5, 5], [5, 6], [10**12, 5]])
def test_negative_passes_are_refused(n: list[int]) -> None:
    with pytest.raises(ValueError, match=r"negative|c < 0"):
        cells_of(np.array(n), np.array([1, -1]))
