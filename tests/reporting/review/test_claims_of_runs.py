"""Claims about runs whose attempts are in order: every part of a true one is supported."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path

import pytest

from passhat import Outcomes, Run
from passhat.reporting.review import Check, Support, review

# Tasks, attempts, seed; then per agent the shares of tasks never and always solved, and its lift
# on the others.
SOURCES: dict[str, tuple[int, int, int, dict[str, tuple[float, float, float]]]] = {
    "four": (
        40,
        10,
        20261119,
        {
            "Heron-2": (0.05, 0.30, 0.12),
            "Heron-1": (0.10, 0.15, -0.08),
            "Wren": (0.12, 0.10, -0.14),
            "Baseline": (0.22, 0.04, -0.30),
        },
    ),
    "pair": (36, 8, 77, {"Marlin": (0.15, 0.10, -0.05), "Marlin-RL": (0.06, 0.25, 0.10)}),
    "one": (40, 8, 5, {"Finch": (0.05, 0.50, 0.10)}),
    "three": (
        50,
        6,
        414,
        {
            "Orbit-70B": (0.06, 0.25, 0.12),
            "Orbit-8B": (0.14, 0.08, -0.16),
            "Tern-3": (0.08, 0.20, 0.02),
        },
    ),
    "release": (45, 8, 99, {"v1.4": (0.12, 0.12, -0.06), "v1.5": (0.06, 0.24, 0.10)}),
    "solo": (60, 5, 12, {"atlas": (0.08, 0.42, 0.06)}),
    "nova": (50, 8, 701, {"Nova": (0.08, 0.3, 0.08)}),
    "orca": (25, 20, 702, {"Orca": (0.12, 0.16, 0.0)}),
    "duel": (120, 5, 703, {"Atlas": (0.08, 0.28, 0.12), "Borealis": (0.16, 0.12, -0.1)}),
    "trio": (
        60,
        10,
        704,
        {"Cedar": (0.06, 0.3, 0.14), "Maple": (0.12, 0.18, -0.02), "Willow": (0.24, 0.08, -0.22)},
    ),
    "versions": (
        80,
        4,
        705,
        {"v2.0": (0.22, 0.08, -0.16), "v2.1": (0.15, 0.15, -0.06), "v3.0": (0.06, 0.34, 0.14)},
    ),
    "sizes": (
        200,
        3,
        706,
        {
            "Lumen-1B": (0.4, 0.03, -0.32),
            "Lumen-3B": (0.28, 0.07, -0.18),
            "Lumen-8B": (0.17, 0.14, -0.03),
            "Lumen-70B": (0.07, 0.3, 0.14),
        },
    ),
    "kestrel": (
        40,
        6,
        723,
        {"Kestrel-base": (0.14, 0.15, 0.0), "Kestrel-tuned": (0.14, 0.16, 0.02)},
    ),
    "lark": (64, 6, 8101, {"Larkspur": (0.14, 0.22, 0.04)}),
    "duo": (90, 4, 8202, {"Tessera": (0.08, 0.26, 0.1), "Granite": (0.18, 0.1, -0.16)}),
    "tie": (30, 5, 8303, {"Juniper": (0.12, 0.18, 0.02), "Sorrel": (0.13, 0.17, -0.01)}),
    "triple": (
        75,
        8,
        8404,
        {"Cobalt": (0.06, 0.28, 0.12), "Umber": (0.1, 0.18, -0.02), "Ochre": (0.16, 0.1, -0.18)},
    ),
    "dated": (
        48,
        10,
        8505,
        {
            "Quill-3.0": (0.2, 0.08, -0.18),
            "Quill-3.5": (0.13, 0.16, -0.04),
            "Quill-3.5-2026-04-15": (0.08, 0.26, 0.1),
        },
    ),
    "family": (
        120,
        5,
        8606,
        {
            "Bramble-1B": (0.3, 0.03, -0.34),
            "Bramble-4B": (0.22, 0.07, -0.2),
            "Bramble-12B": (0.14, 0.14, -0.04),
            "Bramble-40B": (0.07, 0.24, 0.12),
        },
    ),
    "petrel": (100, 4, 9101, {"Petrel": (0.12, 0.28, 0.08)}),
    "basalt": (55, 10, 9102, {"Basalt": (0.2, 0.12, -0.08), "Basalt-Think": (0.09, 0.27, 0.1)}),
    "juniper": (35, 6, 9103, {"Juniper": (0.1, 0.2, 0.03), "Cobalt": (0.12, 0.2, -0.01)}),
    "tamarin": (
        50,
        5,
        9104,
        {
            "Tamarin-L": (0.06, 0.3, 0.12),
            "Tamarin-M": (0.1, 0.2, 0.0),
            "Tamarin-S": (0.18, 0.1, -0.14),
            "Loris": (0.1, 0.22, -0.01),
        },
    ),
    "once": (90, 1, 9201, {"Merlin": (0.2, 0.2, -0.1), "Merlin-X": (0.1, 0.35, 0.12)}),
    "gannet": (150, 3, 9105, {"Gannet 1.4": (0.18, 0.2, -0.02), "Gannet 1.5": (0.12, 0.26, 0.08)}),
}

# Runs attempt by attempt: a word of zeros and ones for each task.
MATRICES: dict[str, dict[str, str]] = json.loads(
    Path(__file__).with_name("matrices.json").read_text(encoding="utf-8")
)


@cache
def _runs(source: str) -> list[Run]:
    if source in MATRICES:
        return [
            Run(name, name, Outcomes.from_matrix([list(map(int, task)) for task in words.split()]))
            for name, words in MATRICES[source].items()
        ]
    tasks, attempts, seed, agents = SOURCES[source]
    chance = random.Random(seed)
    ease = [(chance.random(), chance.betavariate(2.2, 1.6)) for _ in range(tasks)]
    runs = []
    for name, (never, always, lift) in agents.items():
        matrix = []
        for place, share in ease:
            rate = 0.0 if place < never else 1.0 if place > 1 - always else share + lift
            matrix.append([int(chance.random() < rate) for _ in range(attempts)])
        names = [f"task-{number:02d}" for number in range(tasks)]
        runs.append(Run(name, name, Outcomes.from_matrix(matrix, tasks=names)))
    return runs


def _finding(checks: list[Check]) -> str:
    supports = {check.support for check in checks}
    if supports & {Support.CONTRADICTED, Support.NOT_SHOWN}:
        return "contradicted"
    if not supports:
        return "silent"
    return "supported" if supports == {Support.SUPPORTED} else "open"


@pytest.mark.parametrize("source", [*SOURCES, *MATRICES])
def test_every_claim_has_its_finding(source: str) -> None:
    text = Path(__file__).with_name("claims_of_runs.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines()]
    cases = [(claim, finding) for name, finding, claim in rows if name == source]
    starts, whole = [], ""
    for claim, _ in cases:  # one review, so that every metric is estimated once
        starts.append(whole.count("\n") + 1)
        whole += claim.replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\") + "\n\n"
    checks: list[list[Check]] = [[] for _ in cases]
    for reviewed in review(whole, _runs(source)).claims:
        at = max(at for at, start in enumerate(starts) if start <= reviewed.line)
        checks[at] += reviewed.checks
    found = [(claim, _finding(one)) for (claim, _), one in zip(cases, checks, strict=True)]
    assert [pair for pair in found if pair not in cases] == []
