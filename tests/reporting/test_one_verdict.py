"""The same pair gets the same verdict from compare, the dashboard, the gate and its comment."""

from __future__ import annotations

import re

import numpy as np
import pytest

from passhat.reporting.document import Level, Sentence
from passhat.reporting.documents.verdicts import comparison_document, gate_document, lead_verdict
from passhat.reporting.markdown import render_markdown
from passhat.stats.compare import compare
from passhat.stats.gate import GateOptions, judge
from passhat.stats.outcomes import Outcomes, Run

SHIFTS = (0.0, 0.0, -0.15, 0.15, -0.4, 0.4)


def _pair(seed: int) -> tuple[Run, Run]:
    """A baseline and a run: unchanged, worse or better, or with one task that broke."""
    rng = np.random.default_rng(seed)
    tasks, n = int(rng.integers(5, 25)), int(rng.integers(3, 9))
    before = rng.beta(2, 1, tasks)
    after = np.clip(before + SHIFTS[seed % len(SHIFTS)], 0, 1)
    if seed % 5 == 1:
        before[0], after[0] = 1.0, 0.0
    names = [f"t{i}" for i in range(tasks)]
    sides = []
    for name, rates in (("old", before), ("new", after)):
        lost = rng.binomial(1, 0.01, tasks)
        counts = Outcomes.from_counts(n - lost, rng.binomial(n - lost, rates), names, missing=lost)
        sides.append(Run(name, name, counts))
    return sides[0], sides[1]


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("\\", ""))


@pytest.mark.parametrize("seed", range(15))
def test_compare_dashboard_gate_and_comment_agree(seed: int) -> None:
    base, new = _pair(seed)
    comparison = compare(base, new, ["pass^1"])
    verdict = lead_verdict(comparison)
    gate = judge(new, (), base, GateOptions(max_missing=1.0))
    pair = gate.results[0].pair
    assert pair is not None
    assert (pair.claim, pair.sentence) == (verdict.claim, verdict.sentence)
    # The dashboard's page is made of this document.
    page = comparison_document(comparison, [base, new])
    leads = [
        block.text
        for block in page.blocks(Level.FULL)
        if isinstance(block, Sentence) and block.tone == "lead"
    ]
    assert verdict.sentence in leads
    comment = _plain(render_markdown(gate_document(gate)))
    assert _plain(verdict.sentence) in comment
    assert _plain(gate.headline) in comment
    words = {"regression": "Regression", "improvement": "Improvement"}
    expected = words.get(str(verdict.claim))
    assert (gate.headline.startswith(("Regression", "Improvement"))) == (expected is not None)
    if expected is not None:
        assert gate.headline.startswith(expected)
