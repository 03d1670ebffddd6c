"""Slices: all of them, corrected, never the best alone."""

from __future__ import annotations

import numpy as np
import pytest

from passhat import Outcomes, compare
from passhat.errors import InvalidValue

DOMAINS = ["air", "rail", "road"] * 20


def _sides(labels_b: list[str] | None = None) -> tuple[Outcomes, Outcomes]:
    rng = np.random.default_rng(0)
    a = Outcomes.from_counts(4, rng.integers(0, 4, 60), labels={"domain": DOMAINS})
    b = Outcomes.from_counts(
        4,
        np.minimum(4, a.c + rng.integers(0, 2, 60)),
        labels=None if labels_b is None else {"domain": labels_b},
    )
    return a, b


def test_every_slice_is_reported_and_pays_for_the_others() -> None:
    found = compare(*_sides(), by="domain")
    assert [part.value for part in found.slices] == ["air", "rail", "road"]
    for part in found.slices:
        assert part.result.tasks == 20
        assert part.result.low < part.result.low_alone
        assert part.result.p_holm is not None
        assert part.result.p_value is not None
        assert part.result.p_holm >= part.result.p_value
        assert "Adjusted for 3 slices of 'domain'." in part.result.remarks
        assert "Bonferroni over 3" in str(part.result.method)
    assert found.to_dict()["sliced_by"] == "domain"
    assert "domain = air" in str(found)
    mean = np.mean([part.result.lift for part in found.slices])
    assert mean == pytest.approx(found.results[0].lift)


def test_metrics_count_as_well_as_slices() -> None:
    found = compare(*_sides(DOMAINS), ["pass^1", "pass^2"], by="domain")
    assert len(found.slices) == 6
    assert found.slices[0].result.looked_at == 6


def test_an_unknown_slice_lists_the_known() -> None:
    with pytest.raises(InvalidValue, match="slices here: domain"):
        compare(*_sides(), by="colour")


def test_a_task_in_two_slices_is_refused() -> None:
    with pytest.raises(InvalidValue, match="'0' is in slice 'air'"):
        compare(*_sides(["rail", *DOMAINS[1:]]), by="domain")
