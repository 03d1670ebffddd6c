"""Graded scores are kept beside verdicts: from every source, through store, export and import."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import make_reader_fixtures as maker
from passhat import Run, read
from passhat.errors import InvalidValue, ReadError
from passhat.readers import Needs
from passhat.readers.store import import_run, run_from_store
from passhat.reporting.export import as_csv_rows, as_every_eval, as_json_lines, write_parquet
from passhat.stats.estimate import estimate
from passhat.stats.outcomes import FailureCategory, Verdict
from passhat.store import open_store
from passhat.suites.base import Judgement
from passhat.suites.graders import GRADERS, weigh_graders

FIXTURES = Path(__file__).parent / "fixtures"
SCORES = [0.25, 0.5, 1.0]


def _write(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def _scores(run: Run) -> list[float]:
    assert run.outcomes.scores is not None
    return [float(score) for score in run.outcomes.scores.values]


_CSV = "task,passed,score\n" + "".join(f"t{i},{int(s == 1)},{s}\n" for i, s in enumerate(SCORES))
LOGS: dict[str, tuple[str, Any]] = {
    "table": ("a.csv", _CSV),
    "graded column": ("a.csv", "task,score\n" + "".join(f"t{s},{s}\n" for s in SCORES)),
    "json": (
        "a.json",
        [{"task": f"t{s}", "trial": 1, "passed": s == 1, "score": s} for s in SCORES],
    ),
    "promptfoo": (
        "a.json",
        {
            "evalId": "x",
            "results": {
                "version": 3,
                "results": [
                    {
                        "provider": {"id": "openai:toy"},
                        "promptIdx": 0,
                        "prompt": {"raw": "p"},
                        "vars": {"q": f"t{s}"},
                        "success": s == 1,
                        "score": s,
                        "response": {"output": "x"},
                    }
                    for s in SCORES
                ],
            },
        },
    ),
    "deepeval": (
        "a.json",
        {
            "testCases": [
                {"name": f"t{s}", "success": s == 1, "metricsData": [{"name": "m", "score": s}]}
                for s in SCORES
            ]
        },
    ),
    "langsmith": (
        "a.jsonl",
        "\n".join(
            json.dumps(
                {
                    "id": f"run-{s}",
                    "reference_example_id": f"t{s}",
                    "feedback": {"quality": {"score": s}},
                }
            )
            for s in SCORES
        ),
    ),
    "langsmith results": (
        "a.csv",
        ",inputs.q,error,feedback.quality,execution_time,example_id,id\n"
        + "".join(f"{i},q,,{s},0.5,t{i},run-{i}\n" for i, s in enumerate(SCORES)),
    ),
    "harbor": (
        "result.json",
        [
            {
                "id": f"x{s}",
                "task_name": f"t{s}",
                "trial_name": f"t{s}__1",
                "agent_info": {"name": "a"},
                "verifier_result": {"rewards": {"reward": s}},
            }
            for s in SCORES
        ],
    ),
    "tau2": (
        "a.json",
        {
            "info": {"agent_info": {"llm": "gpt"}, "environment_info": {"domain_name": "retail"}},
            "tasks": [{"id": f"t{s}"} for s in SCORES],
            "simulations": [
                {"id": f"s{s}", "task_id": f"t{s}", "trial": 0, "reward_info": {"reward": s}}
                for s in SCORES
            ],
        },
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_the_mean_of_a_log_is_that_of_its_scores(name: str, tmp_path: Path) -> None:
    file, content = LOGS[name]
    if name == "harbor":  # a folder of trials
        for trial in content:
            (tmp_path / "job" / trial["trial_name"]).mkdir(parents=True)
            _write(tmp_path / "job" / trial["trial_name"], file, trial)
        path = tmp_path / "job"
    else:
        path = _write(tmp_path, file, content)
    (run,) = read(path)
    assert run.outcomes.passes == 1
    assert run.outcomes.scores is not None
    assert run.outcomes.scores.mean == pytest.approx(sum(SCORES) / 3)
    assert sorted(_scores(run)) == SCORES


def test_one_of_several_deepeval_metrics_is_chosen_and_otherwise_its_loss_is_said(
    tmp_path: Path,
) -> None:
    cases = [
        {
            "name": f"t{s}",
            "success": s >= 0.5,
            "metricsData": [
                {"name": "Relevancy", "score": s, "success": s >= 0.5},
                {"name": "Bias", "score": 1.0, "success": True},
            ],
        }
        for s in SCORES
    ]
    path = _write(tmp_path, "a.json", {"testCases": cases})
    (run,) = read(path)
    assert (run.outcomes.scores, run.outcomes.passes) == (None, 2)
    assert run.decisions[0].startswith("3 attempts with scores of several metrics, of which none")
    (chosen,) = read(path, scorer="Relevancy")
    assert (_scores(chosen), chosen.outcomes.passes) == (SCORES, 2)
    (other,) = read(path, scorer="Bias")
    assert other.outcomes.passes == 3


def test_verdicts_alone_have_no_scores(tmp_path: Path) -> None:
    (run,) = read(_write(tmp_path, "a.csv", "task,passed,score\na,1,1\nb,0,0\n"))
    assert run.outcomes.scores is None


def test_a_missing_attempt_has_no_score_and_a_verdict_without_one_counts(tmp_path: Path) -> None:
    text = "task,trial,passed,score\na,1,1,.9\na,2,0,n/a\na,3,,.7\n"
    (run,) = read(_write(tmp_path, "a.csv", text))
    assert _scores(run)[:2] == [0.9, 0.0]
    assert math.isnan(_scores(run)[2])
    assert "1 attempt without a score: the verdict counts, 1 or 0" in run.reading


def test_a_range_is_declared_and_never_guessed(tmp_path: Path) -> None:
    path = _write(tmp_path, "a.csv", "task,score\na,5\nb,3\nc,1\n")
    (unstated,) = read(path, pass_at=3)
    assert unstated.outcomes.scores is None
    assert "scores from 1 to 5 are not kept: no score range was stated" in unstated.reading
    (run,) = read(path, pass_at=3, score_range="1..5")
    assert (_scores(run), run.outcomes.passes, run.protocol.pass_at) == ([1, 0.5, 0], 2, 0.5)
    (highest,) = read(path, score_range="1..5")
    assert (highest.outcomes.passes, highest.protocol.pass_at) == (1, 1.0)
    with pytest.raises((InvalidValue, ReadError), match="a score of 5 lies outside"):
        read(path, score_range="1..4")
    with pytest.raises(InvalidValue, match="is no score range"):
        read(path, score_range="5..1")


def test_in_a_stated_range_minus_one_is_a_score(tmp_path: Path) -> None:
    path = _write(tmp_path, "a.csv", "task,score\na,1\nb,-1\nc,0\n")
    (run,) = read(path, score_range="-1..1")
    assert (_scores(run), run.outcomes.total_missing) == ([1, 0, 0.5], 0)


def test_a_mapping_states_the_range_and_a_rule_names_the_score(tmp_path: Path) -> None:
    path = _write(tmp_path, "a.json", {"rows": [{"q": "a", "points": 4}, {"q": "b", "points": 1}]})
    mapping = _write(
        tmp_path,
        "m.toml",
        'records = "rows[*]"\npass = "points >= 3"\nscore_range = "1..5"\n[fields]\ntask = "q"\n',
    )
    (run,) = read(path, mapping=mapping)
    assert (_scores(run), run.outcomes.passes) == ([0.75, 0.0], 1)


def test_joined_runs_keep_scores_and_verdicts_count_where_a_file_has_none(tmp_path: Path) -> None:
    graded = _write(tmp_path, "a.csv", "model,task,success\nm,a,.5\nm,b,1\n")
    plain = _write(tmp_path, "b.csv", "model,task,success\nm,a,1\nm,b,0\n")
    (run,) = read([graded, plain], join=True)
    assert _scores(run) == [0.5, 1, 1, 0]
    part = run.outcomes.take(np.array([1]))
    assert part.scores is not None
    assert part.scores.of(0).tolist() == [1, 0]


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "store"])
def test_scores_survive_a_round_trip(tmp_path: Path, form: str) -> None:
    text = "model,task,trial,passed,score\nm,a,1,1,.9\nm,a,2,0,.4\nm,b,1,0,0\nm,b,2,,\n"
    (run,) = read(_write(tmp_path, "a.csv", text))
    path = tmp_path / f"again.{form}"
    if form == "store":
        with open_store(str(path)) as store:
            import_run(store, run)
            again = run_from_store(store, store.runs()[0], Needs())
    else:
        if form == "parquet":
            write_parquet([run], str(path))
        else:
            writer = as_csv_rows if form == "csv" else as_json_lines
            path.write_text("".join(writer([run])))
        (again,) = read(path)
    assert np.array_equal(_scores(again), _scores(run), equal_nan=True)
    assert again.outcomes.passes == 1


def test_another_threshold_judges_an_export_anew(tmp_path: Path) -> None:
    (run,) = read(_write(tmp_path, "a.csv", "model,task,score\nm,a,.4\nm,b,.8\n"), pass_at=0.3)
    path = tmp_path / "again.jsonl"
    path.write_text("".join(as_json_lines([run])))
    (again,), (stricter,) = read(path), read(path, pass_at=0.5)
    assert (again.outcomes.passes, again.protocol.pass_at) == (2, 0.3)
    assert (stricter.outcomes.passes, stricter.protocol.pass_at) == (1, 0.5)


@pytest.mark.parametrize("name", maker.FILES)
def test_the_protocol_digest_survives_a_round_trip(name: str, tmp_path: Path) -> None:
    runs = read(FIXTURES / maker.FILES[name])
    path = tmp_path / "again.jsonl"
    path.write_text("".join(as_json_lines(runs)))
    for before, after in zip(runs, read(path), strict=True):
        assert after.protocol == before.protocol
        assert after.protocol.digest == before.protocol.digest
        assert dict(after.about) == dict(before.about)


def test_version_1_is_read_and_a_newer_one_is_refused(tmp_path: Path) -> None:
    row = {"run": "m", "agent": "m", "task": "a", "attempt": 1, "passed": True}
    row |= {"category": None, "reason": None, "decoding": '{"temperature": 0.5}', "retries": 3}
    path = _write(tmp_path, "a.jsonl", {**row, "schema": "passhat.outcomes/1"})
    (run,) = read(path)
    assert dict(run.protocol.decoding) == {"temperature": 0.5}
    assert run.attempts is not None
    assert next(iter(run.attempts)).extras["retries"] == "3"
    _write(tmp_path, "a.jsonl", {**row, "schema": "passhat.outcomes/3"})
    with pytest.raises(ReadError, match=r"has the schema 'passhat\.outcomes/3'"):
        read(path)


def test_extension_sample_hash_and_retries_survive(tmp_path: Path) -> None:
    row = {"run": "m", "agent": "m", "task": "a", "attempt": 1, "passed": True, "category": None}
    row |= {"reason": None, "schema": "passhat.outcomes/2", "extension": {"lab": {"shift": 2}}}
    row |= {"sample_hash": "ab12", "retries": 2, "model": "gpt", "provider": "openai"}
    runs = read(_write(tmp_path, "a.jsonl", row))
    (line,) = as_json_lines(runs)
    again = json.loads(line)
    assert {name: again[name] for name in row} == row
    with open_store(str(tmp_path / "s.db")) as store:
        import_run(store, runs[0])
        (stored,) = store.runs()
        attempts = run_from_store(store, stored, Needs(details=True)).attempts
    assert attempts is not None
    assert next(iter(attempts)).extras["retries"] == "2"


def test_every_eval_ever_and_back(tmp_path: Path) -> None:
    text = (
        "model,suite,task,trial,passed,score,failure,seconds,tokens,cost\n"
        "m,quiz,a,1,1,1,,5.8556,10,.25\nm,quiz,a,2,0,.25,timeout,2.5,20,.5\n"
        "m,quiz,b,1,0,0,wrong_answer,3,30,1\nm,quiz,b,2,,,rate_limit,,,\n"
    )
    (run,) = read(_write(tmp_path, "a.csv", text))
    run = replace(run, name="nightly 7")
    path = _write(tmp_path, "samples.jsonl", "".join(as_every_eval([run])))
    (again,) = read(path)
    assert (again.name, again.agent, again.protocol.suite) == ("nightly 7", "m", "quiz")
    assert run.attempts is not None
    assert again.attempts is not None
    for before, after in zip(run.attempts, again.attempts, strict=True):
        assert (after.id, after.verdict, after.why) == (before.id, before.verdict, before.why)
        assert (after.score, after.measures) == (before.score, before.measures)
    record = json.loads(path.read_text().splitlines()[0])
    assert set(record) >= {"schema_version", "evaluation_id", "input", "answer_attribution"}
    assert all(isinstance(value, str) for value in record["metadata"].values())


def test_several_metrics_of_a_sample_are_no_attempts(tmp_path: Path) -> None:
    """Every Eval Ever writes a record per metric; its own ids tell them apart."""
    rows = [
        {
            "evaluation_id": "e",
            "model_id": "org/m",
            "evaluation_name": "quiz",
            "evaluation_result_id": metric,
            "sample_id": task,
            "evaluation": {"score": 1.0, "is_correct": metric == "exact"},
        }
        for task in ("a", "b")
        for metric in ("exact", "f1")
    ]
    runs = read(_write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows))))
    assert [(run.outcomes.scored, run.outcomes.passes) for run in runs] == [(2, 2), (2, 0)]


def test_judges_of_a_suite_give_scores() -> None:
    exact = GRADERS["exact"]
    weighed = weigh_graders([("a", exact, "x", 3.0), ("b", exact, "y", 1.0)], pass_at=0.9)
    assert (weighed("x", None).verdict, weighed("x", None).score) == (Verdict.FAILED, 0.75)
    assert Judgement.from_result(0.4).verdict is Verdict.FAILED
    assert Judgement.from_result(0.4).score == 0.4
    assert Judgement.from_result(1.0) == Judgement.from_result(True) == Judgement.passed()
    assert Judgement.from_result(False).why == FailureCategory.WRONG_ANSWER
    with pytest.raises(InvalidValue, match="a score lies between 0 and 1"):
        Judgement.from_result(40.0)


@pytest.mark.parametrize("name", LOGS)
def test_the_metric_mean_is_the_mean_that_the_tool_prints(name: str, tmp_path: Path) -> None:
    """Tools average over attempts; with one attempt at each task that is the mean over tasks."""
    (run,) = read(_write(tmp_path, *LOGS[name]))
    assert estimate(run.outcomes, "mean").value == pytest.approx(sum(SCORES) / 3)


def test_a_range_that_was_not_stated_is_said_and_not_guessed(tmp_path: Path) -> None:
    path = _write(tmp_path, "a.csv", "task,passed,score\na,1,5\na,0,2\nb,1,4\nb,0,1\n")
    (run,) = read(path)
    with pytest.raises(InvalidValue, match="scores from 1 to 5 are not kept"):
        estimate(run.outcomes, "mean")
    (scaled,) = read(path, score_range="1..5")
    assert estimate(scaled.outcomes, "mean").value == pytest.approx(0.5)
