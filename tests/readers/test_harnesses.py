"""What each reader takes from its format, on small logs written after the list of fields."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from passhat import Run, read
from passhat.errors import ReadError
from passhat.readers import read_all
from passhat.stats.outcomes import Verdict

Samples = Any


def _ends(run: Run) -> list[str]:
    return [str(attempt) for attempt in run.attempts or ()]


def test_every_sample_is_recognized_by_content_alone(samples: Samples, sample_name: str) -> None:
    path = samples.write(sample_name, file="anything.txt")
    (file,) = read_all(path).files
    kind = sample_name.split(" ")[0]
    assert file.reader == ("table" if kind in ("json", "excel", "xml") else kind)
    packed = samples.write("", gzip.compress(samples.content(sample_name)), "packed")
    if "zip" not in sample_name and sample_name != "excel":
        again = read(packed)
        assert [run.outcomes.to_dict() for run in again] == [
            run.outcomes.to_dict() for run in read(path)
        ]


def test_windows_line_ends_and_a_byte_order_mark(samples: Samples, sample_name: str) -> None:
    content = samples.content(sample_name)
    if content.startswith(b"PK"):  # a zip file has no lines
        return
    if content[:1] in b"{[" and not content.endswith(b"\n"):
        content = json.dumps(json.loads(content), indent=1).encode()
    path = samples.write("", b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"))
    assert [run.outcomes.to_dict() for run in read(path)] == [
        run.outcomes.to_dict() for run in read(samples.write(sample_name, file="plain"))
    ]


# -- tau-bench and tau2-bench ----------------------------------------------------------------


def test_tau_bench_rows_that_are_unusual(samples: Samples) -> None:
    rows: list[dict[str, object]] = [
        {"task_id": 0, "reward": 1.0000001, "trial": 0, "info": {"reward_info": {}}},
        {"task_id": "0", "reward": 0, "trial": 1, "info": {"reward_info": None}},
        {"task_id": 1, "reward": None, "trial": 0, "info": {"reward_info": {}}},
        {"task_id": 1, "reward": 0.0, "trial": 1, "info": {"error": "RateLimitError: 429"}},
        {"task_id": 1, "reward": 0.0, "trial": 2, "info": {"error": "KeyError: 'x'"}},
        {"reward": 1.0, "trial": 3},
    ]
    (run,) = read(samples.write("", rows))
    assert _ends(run) == [
        "0#1 passed",
        "0#2 failed (timeout)",
        "1#1 missing (judge_error)",
        "1#2 missing (rate_limit)",
        "1#3 failed (agent_error)",
    ]
    assert [str(loss) for loss in run.losses] == ["row 6: has no task id"]


def test_a_null_trial_leaves_the_order_unknown(samples: Samples) -> None:
    rows: list[dict[str, object]] = [
        {"task_id": 0, "reward": r, "trial": None, "traj": []} for r in (1.0, 0.0)
    ]
    (run,) = read(samples.write("", rows))
    assert run.outcomes.order is None
    assert run.outcomes.n.tolist() == [2]


def test_a_trial_that_is_listed_twice_counts_once(samples: Samples) -> None:
    rows = [{"task_id": 0, "reward": r, "trial": 0, "traj": []} for r in (1.0, 0.0)]
    (run,) = read(samples.write("", rows))
    assert run.outcomes.n.tolist() == [1]
    assert "is listed twice" in str(run.losses[0])


def test_tau2_bench_ends(samples: Samples) -> None:
    (run,) = read(samples.write("tau2_bench"))
    assert _ends(run) == [
        "a#1 passed",
        "a#2 failed (wrong_state)",
        "b#1 failed (timeout)",
        "b#2 missing (infrastructure)",
    ]
    assert run.protocol.attempts == 2  # from the rows: info.num_trials says 9
    assert run.protocol.user_simulator == "user_simulator gpt"
    assert [attempt.measures.get("cost") for attempt in run.attempts or ()] == [None] * 4


def test_tau2_bench_in_a_folder(samples: Samples) -> None:
    head = {"info": samples.tau2_info, "tasks": []}
    folder = samples.write("", head, "job/results.json").parent
    for trial in range(3):
        row = samples.simulation("a", trial, float(trial != 1))
        samples.write("", row, f"job/simulations/{trial}.json")
    (run,) = read(folder)
    assert run.outcomes.order is not None
    assert [int(v) for v in run.outcomes.order.of(0)] == [1, 0, 1]
    (same,) = read(folder / "results.json")
    assert same.outcomes.to_dict() == run.outcomes.to_dict()
    (folder / "simulations" / "1.json").write_bytes(b'{"task_id": "a", "tri')
    (run,) = read(folder)
    assert run.outcomes.n.tolist() == [2]
    assert run.losses[0].where == "simulations/1.json"


def test_tau2_bench_needs_only_its_index(samples: Samples) -> None:
    index = [
        {"id": "x", "task_id": "a", "trial": 0, "reward": 1.0, "termination_reason": "user_stop"},
        {"id": "y", "task_id": "a", "trial": 1, "reward": 0.0, "termination_reason": "max_steps"},
    ]
    head = {"info": samples.tau2_info, "tasks": [], "simulation_index": index}
    folder = samples.write("", head, "job/results.json").parent
    samples.write("", b"this is never opened", "job/simulations/x.json")
    (run,) = read(folder)
    assert _ends(run) == ["a#1 passed", "a#2 failed (timeout)"]
    assert run.losses == ()


# -- inspect_ai ------------------------------------------------------------------------------


def _inspect(samples: Samples, *rows: dict[str, object], status: str = "success") -> Run:
    log = {**samples.log(status=status), "samples": list(rows)}
    (run,) = read(samples.write("", log))
    return run


def test_inspect_values(samples: Samples) -> None:
    values = ["C", "I", "P", "N", 1, 0.0, True, "yes", "no", None]
    run = _inspect(
        samples,
        *({"id": i, "epoch": 1, "scores": {"m": {"value": v}}} for i, v in enumerate(values)),
    )
    verdicts = [int(attempt.verdict) for attempt in run.attempts or ()]
    assert verdicts == [1, 0, 0, 0, 1, 0, 1, 1, 0, -1]
    assert "source averages partial credit; here only a full score passes" in run.source_counts
    log = samples.log()
    text = json.dumps({**log, "samples": [{"id": 1, "epoch": 1, "scores": {"m": {"value": 0}}}]})
    (run,) = read(samples.write("", text.replace('"value": 0', '"value": NaN').encode()))
    assert run.missing_by_reason == {"not_recorded": 1}


def test_inspect_errors_are_missing(samples: Samples) -> None:
    good = {"m": {"value": "C"}}
    run = _inspect(
        samples,
        {"id": 1, "epoch": 1, "scores": good},
        {"id": 1, "epoch": 2, "scores": {}, "error": {"message": "docker died"}},
        {"id": 2, "epoch": 1, "scores": good, "error": "RateLimitError"},
        {"id": 2, "epoch": 2, "scores": {"m": {"value": "I"}}, "limit": {"type": "time"}},
    )
    assert _ends(run) == [
        "1#1 passed",
        "1#2 missing (sandbox_error)",
        "2#1 missing (rate_limit)",
        "2#2 failed (timeout)",
    ]


def test_inspect_asks_when_there_are_several_scorers(samples: Samples) -> None:
    scores = {"exact": {"value": "C"}, "model": {"value": {"style": 0, "truth": 1}}}
    path = samples.write("", samples.log(scores=scores))
    with pytest.raises(ReadError, match=r"3 scorers.*--scorer: exact, model/style, model/truth"):
        read(path)
    assert [read(path, scorer=name)[0].outcomes.passes for name in ("exact", "style")] == [4, 0]
    with pytest.raises(ReadError, match="no scorer called 'none_such'"):
        read(path, scorer="none_such")


def test_inspect_cancelled_logs_miss_what_was_planned(samples: Samples) -> None:
    (run,) = read(samples.write("", samples.log(status="cancelled")))
    assert run.missing_by_reason == {"stopped": 2}
    assert run.tally is not None
    assert (run.tally.rows, run.tally.absent) == (4, 2)
    assert run.losses == ()


def test_inspect_crashed_logs_are_read_from_their_journal(samples: Samples) -> None:
    log = samples.log()
    rows: Any = log["samples"]
    sample = {"id": 3, "epoch": 1, "scores": {"match": {"value": "I"}}}
    content = samples.zip_of(
        {
            "_journal/start.json": json.dumps({"eval": log["eval"], "plan": {}}).encode(),
            "samples/1_epoch_1.json": b"{}",
            "_journal/summaries/1.json": json.dumps(rows[:2]).encode(),
            "_journal/summaries/10.json": json.dumps([{**rows[0], "uuid": "again"}]).encode(),
            "samples/3_epoch_1.json": json.dumps(sample).encode(),
        }
    )
    (run,) = read(samples.write("", content))
    assert run.agent == "openai/gpt"
    assert {"1#1 passed", "2#1 passed", "3#1 failed (unknown_failure)"} <= set(_ends(run))
    assert run.outcomes.scored == 3
    assert run.missing_by_reason == {"infrastructure": 3}
    assert run.tally is not None
    assert dict(run.tally.skipped) == {"an earlier try of a sample that was run again": 1}


def test_inspect_zip_that_is_cut_off(samples: Samples) -> None:
    log = samples.log()
    rows: Any = log["samples"]
    whole = samples.zip_of(
        {
            "_journal/start.json": json.dumps({"eval": log["eval"]}).encode(),
            "_journal/summaries/1.json": json.dumps(rows[:2]).encode(),
            "_journal/summaries/2.json": json.dumps(rows[2:]).encode(),
        }
    )
    cut = whole.index(b"_journal/summaries/2.json") + 40
    (run,) = read(samples.write("", whole[:cut]))
    assert run.outcomes.scored == 2
    assert "cut off" in str(run.losses[0])
    assert any(loss.where == "_journal/summaries/2.json" for loss in run.losses)


def test_inspect_retries_count_once(samples: Samples) -> None:
    first = samples.write("", samples.log(status="error"), "a.json")
    second = samples.write("", samples.log(), "b.json")
    (run,) = read([first, second])
    assert run.source == str(second)
    assert run.outcomes.attempts == 4
    assert any(str(first) in line and "left aside" in line for line in run.reading)


# -- the others ------------------------------------------------------------------------------


def test_terminal_bench(samples: Samples) -> None:
    folder = samples.write("terminal_bench", file="run/results.json").parent
    about = {"agent_name": "terminus", "model_name": "gpt", "dataset_name": "core", "n_attempts": 3}
    samples.write("", about, "run/run_metadata.json")
    (run,) = read(folder)
    assert run.agent == "terminus gpt"
    assert _ends(run) == [
        "hello#1 passed",
        "hello#2 failed (timeout)",
        "hello#3 missing (judge_error)",
    ]
    assert next(iter(run.attempts or ())).measures["seconds"] == 10
    one = json.loads(samples.content("terminal_bench"))["results"][1]
    (alone,) = read(samples.write("", one, "run/hello.2/results.json"))
    assert _ends(alone) == ["hello#1 failed (timeout)"]


def test_a_harbor_job_is_a_folder(samples: Samples) -> None:
    trial = json.loads(samples.content("harbor"))
    ends: dict[str, dict[str, object]] = {
        "one": {},
        "two": {"verifier_result": {"rewards": {"reward": 0.0}}},
        "three": {
            "verifier_result": None,
            "exception_info": {"exception_type": "AgentTimeoutError"},
        },
        "four": {"verifier_result": None, "exception_info": {"exception_type": "DockerError"}},
        "five": {"verifier_result": None},
    }
    for number, (name, changes) in enumerate(ends.items()):
        row = {**trial, **changes, "started_at": f"2026-01-01T00:0{number}:00"}
        path = samples.write("", row, f"job/{name}/result.json")
    samples.write("", b'{"task_name": "x", ', "job/zz/result.json")
    (run,) = read(path.parent.parent)
    assert run.agent == "claude-code opus"
    assert _ends(run) == [
        "hello#1 passed",
        "hello#2 failed (unknown_failure)",
        "hello#3 failed (timeout)",
        "hello#4 missing (sandbox_error)",
        "hello#5 missing (not_recorded)",
    ]
    assert [loss.where for loss in run.losses] == ["zz"]


def test_harbor_asks_which_of_several_rewards_counts(samples: Samples) -> None:
    trial = json.loads(samples.content("harbor"))
    trial["verifier_result"] = {"rewards": {"tests": 1.0, "style": 0.0}}
    path = samples.write("", trial)
    with pytest.raises(ReadError, match="--scorer: tests, style"):
        read(path)
    assert read(path, scorer="tests")[0].outcomes.passes == 1


def test_swe_bench(samples: Samples) -> None:
    (run,) = read(samples.write("swe_bench"))
    assert run.agent == "mini + gpt"
    assert [int(attempt.verdict) for attempt in run.attempts or ()] == [1, 0, -1]
    details = json.loads(samples.content("swe_bench"))["per_instance_details"]
    (bare,) = read(samples.write("", details, "bare.json"))
    assert bare.outcomes.to_dict() == run.outcomes.to_dict()


def test_swe_bench_summary(samples: Samples) -> None:
    path = samples.write("swe_bench summary", file="org__model-1.5.monday.json")
    (run,) = read(path)
    assert run.agent == "org__model-1.5"
    assert _ends(run) == [
        *("django__1#1 passed", "django__2#1 passed"),
        *("django__3#1 failed (unknown_failure)", "django__4#1 failed (missing_outputs)"),
        *("django__5#1 missing (judge_error)", "django__6#1 missing (not_recorded)"),
    ]
    # Two of the eight in the data set were never tried; the source counts them, and is shown so.
    assert run.source_says["accuracy"] == 2 / 8
    assert run.tally is not None
    assert run.tally.skipped == {"an instance for which nothing was submitted": 2}
    assert "one attempt per instance" in run.reading[-1]


def test_swe_bench_summaries_given_together_are_attempts(samples: Samples) -> None:
    content = json.loads(samples.content("swe_bench summary"))
    better = {**content, "resolved_ids": ["django__1", "django__3"]}
    files = [
        samples.write("", content, "model.monday.json"),
        samples.write("", better, "model.tuesday.json"),
    ]
    (run,) = read(files, join=True, agent="model")
    assert run.outcomes.tasks[:3] == ("django__1", "django__2", "django__3")
    assert run.outcomes.n.tolist() == [2, 2, 2, 2, 0, 0]
    assert run.outcomes.c.tolist() == [2, 1, 1, 0, 0, 0]


def test_swe_bench_summaries_with_fewer_lists(samples: Samples) -> None:
    def ends(**lists: object) -> list[str]:
        return _ends(read(samples.write("", lists, "m.json"))[0])

    assert ends(resolved_ids=["a"], submitted_ids=["a", "b"]) == [
        *("a#1 passed", "b#1 failed (unknown_failure)")
    ]
    assert ends(resolved_ids=["a"], completed_ids=["a", "b"], submitted_ids=["a", "b", "c"]) == [
        *("a#1 passed", "b#1 failed (unknown_failure)", "c#1 missing (not_recorded)")
    ]
    assert ends(resolved_ids=["a"], total_instances=1) == ["a#1 passed"]
    with pytest.raises(ReadError, match="names 1 resolved instances and not all"):
        ends(resolved_ids=["a"])
    with pytest.raises(ReadError, match="holds no attempt"):
        ends(resolved_ids=[], submitted_ids=[])
    assert ends(
        no_generation=["d"],
        generated=["a", "b", "c"],
        no_apply=["c"],
        test_errored=[],
        resolved=["a"],
    ) == [
        *("a#1 passed", "d#1 failed (missing_outputs)", "c#1 failed (format_error)"),
        "b#1 failed (unknown_failure)",
    ]
    counts = {"submitted_instances": 2, "resolved_instances": 1, "completed_ids": ["a", "b"]}
    assert ends(**counts, resolved=["a"]) == ["a#1 passed", "b#1 failed (unknown_failure)"]
    with pytest.raises(ReadError, match="counts 1 resolved instances and names none of them"):
        ends(**counts)
    with pytest.raises(ReadError, match="names 1 resolved instances and not all"):
        ends(no_generation=["b"], no_logs=["c"], resolved=["a"])
    lists = {"resolved_ids": ["a"], "submitted_ids": ["a"], "incomplete_ids": ["b", "c"]}
    path = samples.write("", lists, "agent/results/results.json")
    (run,) = read(path)
    assert run.agent == "agent"
    assert run.decisions == ("2 of 3 instances without a submission left out",)


def test_agentbeats_puts_results_in_several_places(samples: Samples) -> None:
    def outcome(results: list[object]) -> list[str]:
        data = {"participants": {"green_agent": "g", "agent": {"name": "bot"}}, "results": results}
        (run,) = read(samples.write("", data))
        assert run.agent == "bot"
        return _ends(run)

    rows = [{"task_id": 1, "passed": True}, {"task_id": 1, "passed": None, "reason": "user_error"}]
    assert outcome(list(rows)) == ["1#1 passed", "1#2 missing (user_error)"]
    assert outcome([{"results": rows}]) == outcome(list(rows))
    named = {"summary": {}, "by_task": {"1": rows[0], "2": {"score": 0.5}}}
    assert outcome([named]) == ["1#1 passed", "2#1 failed (unknown_failure)"]
    twice = [{"task_rewards": {"a": 1.0}}, {"task_rewards": {"a": 0.0}}]
    assert outcome(list(twice)) == ["a#1 passed", "a#2 failed (unknown_failure)"]


ROWS = [{"task_id": 1, "passed": True}, {"task_id": 1, "passed": None, "reason": "user_error"}]
POSTED = {"is_result": True, "winner": "bot", "message": "m", "detail": {"results": ROWS}}
ARTIFACT = {
    "artifactId": "a",
    "name": "Result",
    "parts": [{"kind": "text", "text": "1 of 2"}, {"kind": "data", "data": {"results": ROWS}}],
}


@pytest.mark.parametrize(
    ("data", "agent"),
    [
        (POSTED, "log"),
        (
            {
                "battle_id": "b",
                "green_agent_id": "g",
                "opponents": [{"name": "bot", "agent_id": "i"}],
                "interact_history": [{"is_result": False, "message": "x", "detail": {}}],
                "result": POSTED,
            },
            "bot",
        ),
        ({"id": "t", "contextId": "c", "status": {}, "artifacts": [ARTIFACT]}, "log"),
        (ARTIFACT, "log"),
        ({**ARTIFACT, "parts": [{"data": {"participants": {"agent": "x"}, "results": ROWS}}]}, "x"),
    ],
    ids=["posted", "battle", "task", "artifact", "artifact of 1.0"],
)
def test_agentbeats_results_inside_something_else(
    samples: Samples, data: object, agent: str
) -> None:
    (run,) = read(samples.write("", data))
    assert run.agent == agent
    assert _ends(run) == ["1#1 passed", "1#2 missing (user_error)"]


def test_agentbeats_without_a_verdict_on_a_task(samples: Samples) -> None:
    with pytest.raises(ReadError, match=r"holds no attempt: .*no verdict on any task"):
        read(samples.write("", {**POSTED, "detail": {"summary": "won"}}))


def test_promptfoo_repeats_are_attempts_and_cached_copies_are_not(samples: Samples) -> None:
    (run,) = read(samples.write("promptfoo"))
    assert run.outcomes.tasks == ("a=ü",)
    assert _ends(run)[1] == "a=ü#2 missing (rate_limit)"
    assert run.tally is not None
    assert list(run.tally.skipped) == ["a cached answer, which is not a fresh attempt"]


def test_lm_eval_reads_the_numbers_beside_it(samples: Samples) -> None:
    name = "samples_gsm8k_2026-01-01T00-00-00.123.jsonl"
    path = samples.write("lm_eval", file=name)
    results = {"model_name": "llama", "results": {"gsm8k": {"em,strict": 1 / 3, "em,loose": 0.5}}}
    samples.write("", results, "results_2026-01-01T00-00-00.123.json")
    strict, loose = read(path)
    assert (strict.agent, strict.protocol.suite) == ("llama", "gsm8k")
    assert (strict.source_says["accuracy"], loose.source_says["accuracy"]) == (1 / 3, 0.5)


def test_evalplus_without_plus_is_one_suite(samples: Samples) -> None:
    data = json.loads(samples.content("evalplus"))
    for row in data["eval"]["HumanEval/0"]:
        row["plus_status"] = None
    (run,) = read(samples.write("", data))
    assert run.protocol.suite == "HumanEval"


def test_rewards_beyond_one_need_a_threshold(samples: Samples) -> None:
    rows = [{"task_id": 0, "reward": 40, "trial": 0, "traj": []}]
    path = samples.write("", rows)
    with pytest.raises(ReadError, match=r"rewards go up to 40.*pass_at=80"):
        read(path)
    (run,) = read(path, pass_at=30)
    assert run.outcomes.passes == 1
    assert run.protocol.pass_at == 30


def test_a_folder_holds_logs_and_other_things(samples: Samples, tmp_path: Path) -> None:
    samples.write("tau_bench", file="logs/tau.json")
    samples.write("", b"task,success\na,1\n", "logs/deep/table.csv")
    samples.write("", b"# Notes\n", "logs/README.md")
    samples.write("", b"never", "logs/.hidden")
    found = read_all(tmp_path / "logs")
    assert [file.reader for file in found.files] == ["table", "tau_bench"]
    assert [Path(name).name for name, _ in found.passed_over] == ["README.md"]
    assert any("README.md" in line for line in found.runs[0].reading)


def test_a_folder_of_jobs_is_one_source_per_job(samples: Samples, tmp_path: Path) -> None:
    for job in ("monday", "tuesday"):
        samples.write("", b'{"n_total_trials": 2}', f"jobs/{job}/result.json")
        for trial in (1, 2):
            content = json.loads(samples.content("harbor"))
            content["agent_result"]["cost_usd"] = 0.1 * trial + len(job)
            samples.write("", content, f"jobs/{job}/hello__{trial}/result.json")
    found = read_all(tmp_path / "jobs")
    assert [(file.reader, Path(file.source).name) for file in found.files] == [
        ("harbor", "monday"),
        ("harbor", "tuesday"),
    ]
    assert [run.outcomes.n.tolist() for run in found.runs] == [[2], [2]]
    (run,) = read(tmp_path / "jobs", join=True)
    assert run.outcomes.n.tolist() == [4]


def test_a_glob_may_match_a_folder_that_was_not_meant(samples: Samples, tmp_path: Path) -> None:
    samples.write("tau_bench", file="logs/tau.json")
    (tmp_path / "logs" / "plots").mkdir()
    found = read_all(str(tmp_path / "logs" / "*"))
    assert len(found.runs) == 1
    assert found.passed_over[0][1] == "a folder without any log"
    with pytest.raises(ReadError, match="matches nothing"):
        read(str(tmp_path / "logs" / "pl*"))


def test_an_export_reads_back_missing_reasons(samples: Samples) -> None:
    (run,) = read(samples.write("export"))
    assert run.missing_by_reason == {"rate_limit": 1}
    assert [attempt.verdict for attempt in run.attempts or ()] == [Verdict.PASSED, Verdict.MISSING]
