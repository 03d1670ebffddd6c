"""Sentences and tables with the finding of each, against runs, one to three at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from passhat import Outcomes, Run
from passhat.reporting.review import Support, review

# Attempts per task, and the passes of every task.
RUNS = {
    "AB": (
        5,
        {
            "Alpha": "5514425443141454525542155234414234135332",
            "Beta": "5505345533450555555554055135545045155534",
        },
    ),
    "OF": (
        4,
        {
            "orca-2": "244412013341343443424423443443204414414402222410414330430244",
            "finch-mini": "333410010122142342103401434434304413404301213300334240200144",
        },
    ),
    "KV": (
        8,
        {
            "Kestrel": "45573400150575648206430575745726773424553174174488",
            "Vireo": "37373502471877777613362655768548872713552147265488",
        },
    ),
    "IW": (
        3,
        {
            "Ibis": "1330232233112303232322021323333100333331"
            "3131323333311333231331132311330233323133",
            "Wren": "2220232332211113322320020312332000023233"
            "2230222131221322130210132300110133332022",
        },
    ),
    "LH": (
        4,
        {
            "lark": "432323114211024441433104113012",
            "heron": "243142423114344314442413431442",
        },
    ),
    "G": (
        3,
        {
            "gpt-5-mini": "11230110203132113310011322001232023231123110011202",
            "gpt-5": "12101320322022222232132133323323132033233022322323",
        },
    ),
    "NSW": (
        5,
        {
            "north": "155430354402110131455111121150331443523412554345445215430325",
            "south": "041002113311410214111133443342004034244312210004521441323301",
            "west": "354415355102553554213124333552553320544213355254335320255445",
        },
    ),
    "Q": (
        10,
        {
            "quill": (
                "0996671a7792998897349641a97368621113a474a129838290a75a29a8843a2a72796a4599867424"
                "44946aaa95427814a96a4aa4668734977295a896"
            ),
        },
    ),
    "ONE": (
        1,
        {
            "ridge": (
                "01001011110010101111111011111001111001100111001111101110110101001100011011110111"
                "0111111011"
            ),
            "vale": (
                "00111111100111111110111111010110101101111000111110100011101011111111111010111110"
                "0111111110"
            ),
        },
    ),
}


def _cases(runs: str) -> list[tuple[str, str]]:
    """The texts of ``findings.tsv`` for a pair of runs, with the finding expected."""
    rows = [
        line.split("\t")
        for line in Path(__file__)
        .with_name("findings.tsv")
        .read_text(encoding="utf-8")
        .splitlines()
    ]
    return [
        (text.replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\"), finding)
        for name, finding, text in rows
        if name == runs
    ]


def _finding(supports: set[Support]) -> str:
    if supports & {Support.CONTRADICTED, Support.NOT_SHOWN}:
        return "contradicted"
    return "supported" if Support.SUPPORTED in supports else "open"


@pytest.mark.parametrize("name", RUNS)
def test_every_text_has_its_finding(name: str) -> None:
    attempts, passes = RUNS[name]
    runs = [
        Run(agent, agent, Outcomes.from_counts(attempts, [int(one, 16) for one in counts]))
        for agent, counts in passes.items()
    ]
    cases = _cases(name)
    starts, text = [], ""
    for case, _ in cases:  # one review, so that every metric is estimated once
        starts.append(text.count("\n") + 1)
        text += f"{case}\n\n"
    supports: list[set[Support]] = [set() for _ in cases]
    for claim in review(text, runs).claims:
        at = max(at for at, start in enumerate(starts) if start <= claim.line)
        supports[at] |= {check.support for check in claim.checks}
    found = [(case, _finding(one)) for (case, _), one in zip(cases, supports, strict=True)]
    assert [pair for pair in found if pair not in cases] == []
