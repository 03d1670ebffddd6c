"""Our own small file in every format: read as counted by hand, and as the script writes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import make_reader_fixtures as maker
from passhat.readers import read_all

# Per file: the reader, and per run the agent, tasks, attempts, passed and missing, counted by hand
# from tools/make_reader_fixtures.py.
EXPECTED: dict[str, tuple[str, list[tuple[str, int, int, int, int]]]] = {
    "agentbeats": ("agentbeats", [("http://x", 2, 2, 1, 0)]),
    "agentbeats board": ("agentbeats", [("purple-toy", 3, 3, 1, 0)]),
    "agentbeats raw": ("agentbeats", [("toy", 3, 3, 2, 0)]),
    "bfcl": ("bfcl", [("toy-fc", 5, 5, 3, 0)]),
    "braintrust": ("braintrust", [("toy-experiment", 2, 3, 2, 0)]),
    "deepeval": ("deepeval", [("run", 2, 3, 2, 0)]),
    "excel": ("table", [("book", 2, 3, 2, 0)]),
    "hal": ("hal", [("Toy agent", 2, 2, 1, 0)]),
    "helm": ("helm", [("run", 2, 4, 1, 0)]),
    "json array": ("table", [("array", 2, 3, 2, 0)]),
    "json nested": ("table", [("results", 2, 4, 3, 0)]),
    "junit": ("junit", [("checkout", 4, 7, 3, 1)]),
    "langfuse": ("langfuse", [("toy-run", 2, 4, 3, 0)]),
    "langsmith": ("langsmith", [("experiment", 2, 4, 2, 1)]),
    "mlflow": ("mlflow", [("eval_results_table", 2, 3, 2, 0)]),
    "mlflow_traces": ("mlflow_traces", [("traces", 2, 4, 3, 0)]),
    "openai_eval_items": ("openai_eval_items", [("gpt-toy", 3, 3, 2, 0)]),
    "openai_evals_api": ("openai_evals_api", [("items", 2, 4, 3, 0)]),
    "openhands": ("openhands", [("toy-model", 3, 3, 2, 0)]),
    "phoenix": ("phoenix", [("runs", 2, 4, 2, 1)]),
    "promptfoo csv": ("promptfoo", [("openai:toy", 2, 4, 1, 1)]),
    "weave": ("weave", [("toy:v1", 2, 6, 3, 0)]),
    "xml": ("table", [("attempts", 2, 3, 2, 0)]),
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
def test_every_fixture_is_read_as_counted_by_hand(
    name: str, as_before: Callable[[object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(maker.FOLDER)  # the same place in every checkout
    found = read_all(maker.FILES[name])
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
    as_before([(run, *(run.attempts or ())) for run in found.runs])


def test_the_fixtures_are_what_the_script_writes(tmp_path: Path) -> None:
    maker.write(tmp_path)
    for file in maker.FILES.values():
        if not file.endswith(".eval"):  # zstd packs differently in every release
            assert (tmp_path / file).read_bytes() == (maker.FOLDER / file).read_bytes(), file
    kept = {str(p.relative_to(maker.FOLDER)) for p in maker.FOLDER.rglob("*") if p.is_file()}
    assert kept == set(maker.FILES.values())


def test_the_page_on_logs_lists_every_format_with_its_numbers() -> None:
    """docs/logs.md names n, c and missing of each fixture's first run."""
    page = (maker.FOLDER.parent.parent.parent / "docs" / "logs.md").read_text(encoding="utf-8")
    lines = [line.split("|") for line in page.splitlines() if line.count("|") == 8]
    listed = sorted(
        (cells[2].split("`")[1], *(int(cell) for cell in cells[3:7]))
        for cells in lines
        if "`" in cells[2]
    )
    expected = sorted(
        (reader, tasks, attempts - missing, passed, missing)
        for reader, ((_, tasks, attempts, passed, missing), *_) in EXPECTED.values()
    )
    assert listed == expected
    assert len(listed) >= 28
