"""The names passhat promises."""

from __future__ import annotations

import subprocess
import sys

import passhat

NAMES = [
    *("Agent", "Attempt", "Comparison", "Comparisons", "Diagnosis", "Episode", "Estimate"),
    *(
        "Explanation",
        "Forecast",
        "GateResult",
        "Judgement",
        "Metric",
        "Outcomes",
        "PasshatError",
        "Plan",
    ),
    *("Protocol", "Question", "Reader", "Report", "Run", "Session", "Suite", "Task", "Turn"),
    *("Usage", "Verdict", "__version__", "allocate", "arun", "compare", "compare_all", "diagnose"),
    *("estimate", "estimate_all", "exact", "forecast", "g_pass_at_k", "gate", "metric"),
    *(
        "open_store",
        "pass_at_k",
        "pass_hat_k",
        "plan_attempts",
        "plan_tasks",
        "read",
        "report",
        "run",
        "why",
    ),
]


def test_every_name_is_there_and_only_those() -> None:
    for name in NAMES:
        assert getattr(passhat, name) is not None
    assert sorted(passhat.__all__) == NAMES
    assert dir(passhat) == NAMES


def test_a_wrong_name_is_an_attribute_error() -> None:
    assert not hasattr(passhat, "pass_any_k")


def test_the_package_and_its_help_load_no_numpy() -> None:
    program = (
        "import sys, passhat, passhat.cli; passhat.cli.main(['--help']); "
        "print(sorted({'numpy', 'scipy'} & set(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-1] == "[]"
