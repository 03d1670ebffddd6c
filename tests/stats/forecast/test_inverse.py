"""Which k reaches a target, surely and possibly."""

from __future__ import annotations

import pytest

from passhat.errors import InvalidValue
from passhat.stats.forecast import forecast, keeps, reaches
from passhat.stats.outcomes import Outcomes

SUITE = Outcomes.from_counts(8, [2, 3, 4, 5, 6, 7, 8, 8] * 6)


def test_reaches_is_the_inverse_of_the_forecast() -> None:
    found = reaches(SUITE, 0.9)
    assert found.surely is not None
    assert found.possibly is not None
    assert 1 <= found.possibly <= found.surely
    assert forecast(SUITE, f"pass@{found.surely}").low >= 0.9 - 1e-3
    assert forecast(SUITE, f"pass@{found.surely - 1}").low < 0.9 + 1e-3
    assert forecast(SUITE, f"pass@{found.possibly}").high >= 0.9 - 1e-3


def test_keeps_is_the_inverse_of_the_forecast() -> None:
    found = keeps(SUITE, 0.4)
    assert found.surely is not None
    assert found.possibly is not None
    assert found.surely <= found.possibly
    assert forecast(SUITE, f"pass^{found.surely}").low >= 0.4 - 1e-3
    assert forecast(SUITE, f"pass^{found.surely + 1}").low < 0.4 + 1e-3


def test_targets_that_no_k_is_sure_to_meet() -> None:
    never = Outcomes.from_counts(8, [0] * 10)
    found = reaches(never, 0.5)
    assert found.surely is None
    assert "surely at no k up to 1,000,000" in str(found)
    assert keeps(never, 0.5).possibly is None
    assert "possibly at no k" in str(keeps(never, 0.5))
    always = Outcomes.from_counts(8, [8] * 10)
    assert "possibly up to k = 1,000,000 and beyond" in str(keeps(always, 0.5))
    assert reaches(always, 0.5).surely == 1


def test_shows_itself() -> None:
    found = keeps(SUITE, 0.4)
    assert found.to_dict()["sentence"] == str(found)
    assert "<table>" in found._repr_html_()


def test_a_target_is_a_share() -> None:
    with pytest.raises(InvalidValue, match="between 0 and 1, not 90"):
        reaches(SUITE, 90)
