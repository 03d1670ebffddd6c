"""Logs as other tools wrote them: read as they are, and the numbers they print reproduced."""

from __future__ import annotations

from pathlib import Path

import pytest

from passhat import Run, estimate, read
from passhat.readers import read_all
from passhat.reporting.source_checks import check_source


def _values(run: Run, sign: str, ks: range) -> list[float]:
    return [estimate(run.outcomes, f"pass{sign}{k}").value for k in ks]


def test_every_file_is_read_by_the_reader_of_its_folder(shared_formats: Path) -> None:
    for folder in sorted(shared_formats.iterdir()):
        found = read_all(folder)
        assert {file.reader for file in found.files} == {folder.name}
        assert found.passed_over == ()
        for file in found.files:
            for run in file.runs:
                assert run.losses == ()
                assert run.tally is not None
                assert run.tally.rows == run.tally.attempts + sum(run.tally.skipped.values())


def test_tau_bench_gives_the_published_values(shared_formats: Path) -> None:
    (run,) = read(shared_formats / "tau_bench" / "gpt-4o-airline.full.json.gz")
    assert (len(run.outcomes), run.outcomes.attempts) == (50, 200)
    assert _values(run, "^", range(1, 5)) == pytest.approx([0.420, 0.2733333, 0.220, 0.200])
    assert run.failures_by_category["timeout"] == 5


def test_tau_bench_agrees_with_the_table_of_the_same_run(
    shared_formats: Path, shared_data: Path
) -> None:
    (log,) = read(shared_formats / "tau_bench" / "gpt-4o-airline.full.json.gz")
    (table,) = read(shared_data / "tau_bench_airline_gpt4o.csv")
    tasks = [f"airline_{task}" for task in log.outcomes.tasks]
    assert dict(zip(tasks, log.outcomes.c.tolist(), strict=True)) == dict(
        zip(table.outcomes.tasks, table.outcomes.c.tolist(), strict=True)
    )


def test_tau2_bench(shared_formats: Path) -> None:
    (run,) = read(shared_formats / "tau2_bench" / "gpt-4.1_telecom_no-user_4trials_5tasks.json")
    assert (len(run.outcomes), run.outcomes.attempts) == (5, 20)
    assert _values(run, "^", range(1, 5)) == pytest.approx([0.8] * 4)
    assert run.agent == "gpt-4.1-2025-04-14"
    assert run.protocol.suite == "tau2-bench/telecom"
    assert run.protocol.max_steps == 200
    assert dict(run.protocol.decoding) == {"temperature": 0.0}
    first = next(iter(run.attempts or ()))
    assert first.extras["seed"] == "626729"
    assert first.measures["cost"] > 0


POPULARITY = ("notset_TrR", "set2_CuC", "set2_J5E", "set2_jKN", "set_L8g", "set_Lth", "set_eF3")


@pytest.mark.parametrize("name", POPULARITY)
def test_inspect_accuracy_and_standard_error_are_reproduced(
    shared_formats: Path, name: str
) -> None:
    path = shared_formats / "inspect_ai" / "log-sets" / f"popularity_{name}.eval"
    (run,) = read(path)
    checks = {check.metric: check for check in check_source(run)}
    assert set(checks) == {"accuracy", "stderr"}
    for check in checks.values():
        assert check.agrees
        assert check.computed == pytest.approx(check.says, abs=1e-12)


def test_inspect_logs_agree_with_the_table_of_the_same_runs(
    shared_formats: Path, shared_data: Path
) -> None:
    logs = read(shared_formats / "inspect_ai" / "log-sets")
    tables = read(shared_data / "inspect_popularity.csv")
    assert sum(run.outcomes.passes for run in logs) == sum(run.outcomes.passes for run in tables)
    assert sum(run.outcomes.attempts for run in logs) == sum(r.outcomes.attempts for r in tables)


def test_inspect_logs_that_are_not_whole(shared_formats: Path) -> None:
    folder = shared_formats / "inspect_ai"
    (unscored,) = read(folder / "2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval")
    assert unscored.outcomes.total_missing == 10
    (cancelled,) = read(folder / "2025-05-12T20-28-13-04-00_popularity.json")
    assert "status cancelled" in cancelled.reading
    (epochs,) = read(folder / "log_streaming.eval")
    assert (len(epochs.outcomes), epochs.outcomes.attempts) == (2, 4)
    (edited,) = read(folder / "log_tool_call_error.json")
    (accuracy, _) = check_source(edited)
    assert not accuracy.agrees
    assert "source counted 4 samples, the file holds 1" in accuracy.why


def test_the_same_run_in_two_files_counts_once(shared_formats: Path) -> None:
    folder = shared_formats / "inspect_ai"
    (run,) = read([folder / "log_formats.eval", folder / "log_formats.json"])
    assert run.outcomes.attempts == 1
    assert any("holds the same run" in line for line in run.reading)


def test_cruxeval_prints_what_cannot_be_known(shared_formats: Path) -> None:
    whole, ragged = read(shared_formats / "cruxeval")
    assert [check.agrees for check in check_source(whole)] == [True, True]
    assert dict(whole.protocol.decoding) == {"temperature": 0.2}
    one, five = check_source(ragged)
    assert one.agrees
    assert five.says == 1.0
    assert five.computed is None
    assert "with n = 1 to 3" in five.why


def test_evalplus_is_two_suites(shared_formats: Path) -> None:
    base, plus = read(shared_formats / "evalplus")
    assert (base.protocol.suite, plus.protocol.suite) == ("HumanEval", "HumanEval+")
    assert (base.outcomes.passes, plus.outcomes.passes) == (125, 112)


def test_human_eval(shared_formats: Path, shared_data: Path) -> None:
    name = "codegen16b_t0.8_first10tasks_samples.jsonl_results.jsonl"
    (run,) = read(shared_formats / "human_eval" / name)
    (table,) = read(shared_data / "humaneval_codegen16b_t08.csv.gz")
    counts = dict(zip(table.outcomes.tasks, table.outcomes.c.tolist(), strict=True))
    assert run.outcomes.c.tolist() == [counts[task] for task in run.outcomes.tasks]
    assert dict(run.protocol.decoding) == {"temperature": 0.8}
    assert run.failures_by_category == {
        "wrong_answer": 426,
        "exception": 148,
        "syntax_error": 21,
        "timeout": 3,
    }


def test_lm_eval_counts_a_document_once(shared_formats: Path) -> None:
    runs = read(shared_formats / "lm_eval")
    assert [run.outcomes.attempts for run in runs] == [12, 12, 12]
    assert runs[0].outcomes.passes == 3
    (norm,) = read(next((shared_formats / "lm_eval").glob("*mc*")), scorer="acc_norm")
    assert norm.protocol.judge == "acc_norm, filter none"
    (one,) = read(next((shared_formats / "lm_eval").glob("*repeats*")), scorer="exact_match,maj@4")
    assert one.outcomes.attempts == 12
    assert any("4 answers were sampled" in line for line in one.reading)


def test_promptfoo_in_all_its_schemas(shared_formats: Path) -> None:
    runs = read(shared_formats / "promptfoo")
    assert [len(run.outcomes) for run in runs] == [4, 4, 5, 5, 4, 4, 4, 4, 4, 4]
    assert all(check.agrees for run in runs for check in check_source(run))


def test_openai_evals_and_livecodebench(shared_formats: Path) -> None:
    (run,) = read(shared_formats / "openai_evals")
    assert [check.agrees for check in check_source(run)] == [True]
    (coded,) = read(shared_formats / "livecodebench")
    assert [check.agrees for check in check_source(coded)] == [True]
    assert coded.failures_by_category == {"wrong_answer": 7, "timeout": 1}
    assert set(coded.outcomes.labels) == {"difficulty", "platform"}
