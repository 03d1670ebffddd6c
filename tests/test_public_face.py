"""The names passhat promises."""

from __future__ import annotations

import passhat


def test_every_name_is_there_and_only_those() -> None:
    for name in passhat.__all__:
        assert getattr(passhat, name) is not None
    assert sorted(passhat.__all__) == [
        *("Attempt", "Comparison", "Comparisons", "Diagnosis", "Estimate", "Forecast"),
        *("GateResult", "Metric", "Outcomes", "PasshatError", "Plan", "Protocol", "Question"),
        *("Run", "__version__", "compare", "compare_all", "diagnose", "estimate"),
        *("estimate_all", "exact", "forecast", "g_pass_at_k", "gate", "metric", "pass_at_k"),
        *("pass_hat_k", "plan", "read"),
    ]
    assert set(passhat.__all__) <= set(dir(passhat))


def test_a_wrong_name_is_an_attribute_error() -> None:
    assert not hasattr(passhat, "pass_any_k")
