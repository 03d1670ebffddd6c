"""Our own small file in every format: read as counted by hand, and as the script writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

import make_reader_fixtures as maker
from passhat.readers import read_all

# Per file: the reader, and per run the agent, tasks, attempts, passed and missing, counted by hand
# from tools/make_reader_fixtures.py.
EXPECTED: dict[str, tuple[str, list[tuple[str, int, int, int, int]]]] = {
    "agentbeats": ("agentbeats", [("http://x", 2, 2, 1, 0)]),
    "agentbeats battle": ("agentbeats", [("x", 2, 2, 1, 0)]),
    "cruxeval": ("cruxeval", [("tiny", 2, 3, 2, 0)]),
    "evalplus": ("evalplus", [("tiny", 1, 2, 1, 0), ("tiny", 1, 2, 0, 0)]),
    "evalplus older": ("evalplus", [("older", 1, 2, 1, 0), ("older", 1, 2, 0, 0)]),
    "export": ("export", [("a", 1, 2, 1, 1)]),
    "harbor": ("harbor", [("claude-code opus", 1, 1, 1, 0)]),
    "human_eval": ("human_eval", [("tiny", 2, 4, 1, 0)]),
    "inspect_ai": ("inspect_ai", [("openai/gpt", 2, 4, 4, 0)]),
    "inspect_ai zip": ("inspect_ai", [("openai/gpt", 2, 4, 4, 0)]),
    "livecodebench": ("livecodebench", [("tiny", 2, 6, 2, 2)]),
    "lm_eval": ("lm_eval", [("lm_eval", 3, 3, 1, 0), ("lm_eval", 3, 3, 1, 0)]),
    "openai_evals": ("openai_evals", [("f", 3, 3, 1, 2)]),
    "promptfoo": ("promptfoo", [("p", 1, 2, 1, 1)]),
    "swe_bench": ("swe_bench", [("mini + gpt", 3, 3, 1, 1)]),
    "swe_bench summary": ("swe_bench", [("tiny", 6, 6, 2, 2)]),
    "tau2_bench": ("tau2_bench", [("gpt", 2, 4, 1, 1)]),
    "tau_bench": ("tau_bench", [("gpt-airline", 3, 6, 3, 0)]),
    "terminal_bench": ("terminal_bench", [("terminal_bench", 1, 3, 1, 1)]),
}


@pytest.mark.parametrize("name", maker.FILES)
def test_every_fixture_is_read_as_counted_by_hand(name: str) -> None:
    found = read_all(maker.FOLDER / maker.FILES[name])
    runs = [
        (
            run.agent,
            len(run.outcomes),
            run.outcomes.attempts,
            run.outcomes.passes,
            run.outcomes.total_missing,
        )
        for run in found.runs
    ]
    assert (found.files[0].reader, runs) == EXPECTED[name]
    assert found.runs[0].losses == ()


def test_the_fixtures_are_what_the_script_writes(tmp_path: Path) -> None:
    maker.write(tmp_path)
    for file in maker.FILES.values():
        if not file.endswith(".eval"):  # zstd packs differently in every release
            assert (tmp_path / file).read_bytes() == (maker.FOLDER / file).read_bytes(), file
    kept = {str(p.relative_to(maker.FOLDER)) for p in maker.FOLDER.rglob("*") if p.is_file()}
    assert kept == set(maker.FILES.values())
