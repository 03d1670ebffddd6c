"""Write small logs of our own in every format passhat reads: tests/readers/fixtures.

The content is invented here, after each format's list of fields; nothing is copied. Run
``python tools/make_reader_fixtures.py`` after a change; a test compares the files with this script.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import zstandard

TALK = [{"role": "user", "content": 'Say "hi", {x} [y], \\ and ü.'}, {"role": "assistant"}]


def json_text(data: object) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode()


def json_lines(rows: list[object]) -> bytes:
    return b"".join(json_text(row) + b"\n" for row in rows)


def tau_bench() -> bytes:
    rows: list[object] = [
        {
            "task_id": task,
            "reward": float((task + trial) % 2),
            "info": {"reward_info": {"reward": 1.0}, "user_cost": 0.1},
            "traj": TALK,
            "trial": trial,
        }
        for task in range(3)
        for trial in range(2)
    ]
    return json_text(rows)


def simulation(
    task: str, trial: object, reward: object, ended: str = "user_stop"
) -> dict[str, object]:
    return {
        "id": f"{task}-{trial}",
        "task_id": task,
        "trial": trial,
        "seed": 7,
        "duration": 2.5,
        "termination_reason": ended,
        "agent_cost": None,
        "reward_info": None
        if reward is None
        else {"reward": reward, "reward_breakdown": {"DB": 0}},
        "messages": TALK,
    }


TAU2_INFO = {
    "num_trials": 9,
    "max_steps": 30,
    "agent_info": {"implementation": "llm_agent", "llm": "gpt", "llm_args": {"temperature": 0.5}},
    "user_info": {"implementation": "user_simulator", "llm": "gpt"},
    "environment_info": {"domain_name": "retail"},
}


def tau2_bench() -> bytes:
    rows = [simulation("a", 0, 1.0), simulation("a", 1, 0.0), simulation("b", 0, None, "max_steps")]
    rows += [simulation("b", 1, None, "infrastructure_error")]
    return json_text(
        {"timestamp": "x", "info": TAU2_INFO, "tasks": [{"id": "a"}], "simulations": rows}
    )


def inspect_log(
    *, status: str = "success", scores: Mapping[str, object] | None = None
) -> dict[str, object]:
    about = {
        "task": "quiz",
        "task_id": "T1",
        "model": "openai/gpt",
        "config": {"epochs": 2},
        "dataset": {"name": "quiz", "sample_ids": [1, 2, 3]},
    }
    values = scores or {"match": {"value": "C"}}
    rows = [{"id": i, "epoch": e, "scores": values} for e in (1, 2) for i in (1, 2)]
    return {"version": 2, "status": status, "eval": about, "plan": {"config": {}}, "samples": rows}


def zip_of(members: Mapping[str, bytes], method: int = 93) -> bytes:
    """A zip file; Python cannot write method 93, so a stored one is relabelled."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            packed = zstandard.compress(content) if method == 93 else content
            archive.writestr(zipfile.ZipInfo(name), packed)
    data = bytearray(out.getvalue())
    if method != 93:
        return bytes(data)
    at = 0
    for content in members.values():
        at = data.index(b"PK\x03\x04", at)
        struct.pack_into("<H", data, at + 8, 93)
        struct.pack_into("<I", data, at + 14, zlib.crc32(content))
        struct.pack_into("<I", data, at + 22, len(content))
        at += 4
    at = 0
    for content in members.values():
        at = data.index(b"PK\x01\x02", at)
        struct.pack_into("<H", data, at + 10, 93)
        struct.pack_into("<I", data, at + 16, zlib.crc32(content))
        struct.pack_into("<I", data, at + 24, len(content))
        at += 4
    return bytes(data)


def inspect_eval() -> bytes:
    log = inspect_log()
    rows = log.pop("samples")
    return zip_of({"header.json": json_text(log), "summaries.json": json_text(rows)})


def human_eval() -> bytes:
    results = ["passed", "failed: ", "timed out", "failed: IndexError: list index out of range"]
    return json_lines(
        [
            {"task_id": f"H/{i % 2}", "completion": "x", "result": r, "passed": r == "passed"}
            for i, r in enumerate(results)
        ]
    )


def evalplus() -> bytes:
    one = {"task_id": "HumanEval/0", "solution": "x", "base_status": "pass", "plus_status": "fail"}
    two = {**one, "base_status": "fail", "plus_status": "pass"}
    at = {"base": {"pass@1": 0.5}, "plus": {"pass@1": 0.0}}
    return json_text({"hash": "h", "eval": {"HumanEval/0": [one, two]}, "pass_at_k": at})


def evalplus_older() -> bytes:
    task = {
        "nfiles": 2,
        "base": [["success", [True]], ["failed", []]],
        "plus": [["failed", []], ["failed", []]],
    }
    return json_text({"date": "x", "hash": "h", "eval": {"HumanEval/0": task}})


def livecodebench() -> bytes:
    rows: list[object] = [
        {
            "question_id": f"q{i}",
            "contest_id": "1",
            "difficulty": "easy",
            "graded_list": [True, -1, False],
        }
        for i in range(2)
    ]
    return json_text(rows)


def cruxeval() -> bytes:
    scored = {"sample_0": [True, False], "sample_1": [True]}
    return json_text(
        {
            "raw_generations": {"sample_0": ["a", "b"]},
            "raw_scored_generations": scored,
            "pass_at_1": 75.0,
            "pass_at_5": 100.0,
        }
    )


def lm_eval() -> bytes:
    rows: list[object] = [
        {
            "doc_id": i,
            "resps": [["a"]],
            "filtered_resps": ["a"],
            "filter": f,
            "metrics": ["em"],
            "em": i % 2,
        }
        for f in ("strict", "loose")
        for i in range(3)
    ]
    return json_lines(rows)


def promptfoo() -> bytes:
    def row(success: bool, **more: object) -> dict[str, object]:
        shared = {"prompt": {"raw": "x", "label": "ask"}, "promptIdx": 0, "vars": {"a": "ü"}}
        return {**shared, "provider": {"id": "p"}, "success": success, **more}

    rows = [
        row(True, response={"output": "o", "cached": False}),
        row(True, response={"output": "o", "cached": True}),
        row(False, error="429 Too many requests", failureReason=2),
    ]
    return json_text({"evalId": "e", "results": {"version": 3, "results": rows, "prompts": []}})


def openai_evals() -> bytes:
    def event(sample: str, kind: str, **data: object) -> dict[str, object]:
        return {"run_id": "r", "event_id": 1, "sample_id": sample, "type": kind, "data": data}

    rows: list[object] = [{"spec": {"completion_fns": ["f"], "eval_name": "e", "run_id": "r"}}]
    rows += [event("s0", "sampling", sampled="x"), event("s0", "match", correct=True)]
    rows += [event("s1", "sampling", sampled="x"), event("s2", "error", message="rate limit")]
    return json_lines([*rows, {"final_report": {"accuracy": 1.0}}])


def terminal_bench() -> bytes:
    def trial(number: int, resolved: object, mode: str) -> dict[str, object]:
        name = f"hello.{number}-of-3.run"
        return {
            "id": f"5b6c0d6e-0000-4000-8000-{number:012}",
            "task_id": "hello",
            "trial_name": name,
            "is_resolved": resolved,
            "failure_mode": mode,
            "trial_started_at": "2026-01-01T00:00:00",
            "trial_ended_at": "2026-01-01T00:00:10",
        }

    rows = [
        trial(1, True, "unset"),
        trial(2, False, "agent_timeout"),
        trial(3, None, "test_timeout"),
    ]
    return json_text({"id": "x", "results": rows, "pass_at_k": {"2": 0.67}, "accuracy": 1 / 3})


def harbor() -> bytes:
    return json_text(
        {
            "task_name": "hello",
            "trial_name": "hello__1",
            "agent_info": {"name": "claude-code", "model_info": {"name": "opus"}},
            "agent_result": {"n_input_tokens": 5, "n_output_tokens": 6, "cost_usd": 0.2},
            "verifier_result": {"rewards": {"reward": 1.0}},
            "exception_info": None,
            "started_at": "2026-01-01T00:00:00",
            "finished_at": "2026-01-01T00:00:10",
        }
    )


def swe_bench() -> bytes:
    details = {
        "django__1": {"resolved": True, "cost": 0.3, "api_calls": 20},
        "django__2": {"resolved": False},
    }
    details["django__3"] = {"resolved": None}
    return json_text({"name": "mini + gpt", "resolved": 33.333, "per_instance_details": details})


def swe_bench_summary() -> bytes:
    ids = {
        "submitted_ids": [f"django__{number}" for number in range(1, 7)],
        "completed_ids": ["django__1", "django__2", "django__3"],
        "resolved_ids": ["django__1", "django__2"],
        "unresolved_ids": ["django__3"],
        "empty_patch_ids": ["django__4"],
        "error_ids": ["django__5"],
        "incomplete_ids": ["django__7", "django__8"],
    }
    counts = {"total_instances": 8, "submitted_instances": 6, "resolved_instances": 2}
    return json_text({**counts, **ids, "schema_version": 2})


def agentbeats() -> bytes:
    results = [{"domain": "airline", "task_rewards": {"0": 1.0, "1": 0.0}, "pass_rate": 50.0}]
    return json_text({"participants": {"agent": "http://x"}, "results": results})


def agentbeats_battle() -> bytes:
    result = {"is_result": True, "winner": "x", "detail": {"task_rewards": {"0": 1.0, "1": 0.0}}}
    return json_text({"battle_id": "b", "opponents": [{"name": "x"}], "result": result})


def export() -> bytes:
    row = {"run": "r", "agent": "a", "task": "t", "attempt": 1, "passed": True, "category": None}
    rows: list[object] = [{**row, "reason": None}]
    rows += [{**row, "attempt": 2, "passed": None, "reason": "rate_limit"}]
    return json_lines(rows)


# -- formats that a mapping describes, and the younger readers ------------------------------------


def junit() -> bytes:
    return b"""<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="checkout" tests="5" failures="1" errors="0" skipped="1">
  <testcase classname="shop.Cart" name="adds" time="0.25"/>
  <testcase classname="shop.Cart" name="pays" time="1.5"><flakyFailure message="late"/></testcase>
  <testcase classname="shop.Cart" name="refunds"><failure message="expected 3, got 2"/>
    <rerunFailure message="expected 3, got 1"/></testcase>
  <testcase classname="shop.Cart" name="waits"><skipped/></testcase>
  <testcase classname="shop.Cart" name="adds" time="0.5"/>
</testsuite></testsuites>
"""


def deepeval() -> bytes:
    def case(name: str, number: int, success: bool) -> dict[str, object]:
        data = {"metric": "Correctness", "score": float(success), "success": success}
        return {
            "name": name,
            "input": "Where is my parcel?" if number < 2 else "Cancel it.",
            "actualOutput": f"answer {number}",
            "success": success,
            "order": number,
            "metricsData": [data],
        }

    cases = [case(f"test_case_{i}", i, i != 1) for i in range(3)]
    totals = {"testPassed": 2, "testFailed": 1, "runDuration": 3.5, "evaluationCost": None}
    return json_text({"testCases": cases, "metricsScores": [], **totals})


def hal() -> bytes:
    config = {"agent_name": "Toy agent", "benchmark_name": "toybench"}
    rewards = {"0": {"reward": 1.0, "cost": 0.1}, "1": {"reward": 0.0, "cost": 0.2}}
    results = {"accuracy": 0.5, "total_cost": 0.3}
    return json_text({"config": config, "results": results, "raw_eval_results": rewards})


def openai_evals_api() -> bytes:
    return json_lines(
        [
            {
                "run_id": run,
                "data_source_idx": item,
                "item": {"question": f"q{item}"},
                "grades": {"exact": float(passed)},
                "passes": {"exact": passed},
            }
            for run, verdicts in (("evalrun_a", (True, False)), ("evalrun_b", (True, True)))
            for item, passed in enumerate(verdicts)
        ]
    )


def openai_eval_items() -> bytes:
    items = [
        {
            "object": "eval.run.output_item",
            "id": f"outputitem_000{item}",
            "run_id": "evalrun_a",
            "eval_id": "eval_toy",
            "status": status,
            "datasource_item_id": item,
            "results": [{"name": "exact", "passed": status == "pass"}],
            "sample": {"model": "gpt-toy", "usage": {"total_tokens": 40 + item}},
        }
        for item, status in enumerate(("pass", "fail", "pass"))
    ]
    return json_text({"object": "list", "data": items, "has_more": False})


def openhands() -> bytes:
    def line(name: str, resolved: bool) -> dict[str, object]:
        return {
            "instance_id": name,
            "instruction": "Fix it.",
            "test_result": {"git_patch": "diff", "report": {"resolved": resolved}},
            "metadata": {"llm_config": {"model": "toy-model"}, "dataset": "toy-bench"},
            "metrics": {"accumulated_cost": 0.25},
        }

    return json_lines([line("lib__1", True), line("lib__2", False), line("lib__3", True)])


def weave() -> bytes:
    return json_lines(
        [
            {
                "id": f"call-{task}-{trial}-00000000",
                "inputs": {"example": {"id": task}, "trial_index": trial, "model": "toy:v1"},
                "output": {"scores": {"judge": {"correct": (len(task) + trial) % 2 == 0}}},
            }
            for task in ("a", "bb")
            for trial in range(3)
        ]
    )


def phoenix() -> bytes:
    def annotated(score: float) -> list[dict[str, object]]:
        return [{"name": "correct", "annotator_kind": "CODE", "score": score}]

    runs = [
        {
            "example_id": f"example-{task}",
            "repetition_number": number,
            "input": {"q": task},
            "output": "x",
            "error": "rate limit exceeded" if (task, number) == (1, 2) else None,
            "trace_id": f"trace{task}{number}00000000",
            "annotations": annotated(float(task == 0)),
        }
        for task in (0, 1)
        for number in (1, 2)
    ]
    return json_text(runs)


def langsmith() -> bytes:
    head = "id,reference_example_id,inputs.question,feedback.correct,execution_time,error"
    rows = [
        "r1,e1,hi,1,0.5,",
        "r2,e1,hi,0,0.7,",
        "r3,e2,ho,1,0.25,",
        "r4,e2,ho,,0.1,429 rate limit",
    ]
    return "\n".join([head, *rows, ""]).encode()


def braintrust() -> bytes:
    def row(question: str, score: float, number: int) -> dict[str, object]:
        return {
            "id": f"row-{number}-00000000",
            "span_id": f"span-{number}-00000000",
            "is_root": True,
            "input": {"question": question},
            "output": "x",
            "scores": {"Factuality": score},
            "metrics": {"duration": 0.5 + number},
            "experiment_name": "toy-experiment",
        }

    child = {"id": "child", "span_id": "c", "is_root": False, "input": {}, "scores": None}
    return json_lines([row("a", 1.0, 0), row("a", 0.0, 1), row("b", 1.0, 2), child])


def langfuse() -> bytes:
    def score(item: str, number: int, name: str, value: float) -> dict[str, object]:
        return {
            "id": f"score-{item}-{number}-{name}",
            "traceId": f"trace-{item}-{number}-0000",
            "name": name,
            "value": value,
            "dataType": "NUMERIC",
            "datasetItemId": item,
            "datasetRunName": "toy-run",
        }

    return json_lines(
        [score(item, n, "correct", float(item == "a" or n)) for item in "ab" for n in (0, 1)]
    )


def mlflow() -> bytes:
    columns = ["inputs", "outputs", "exact_match/v1/score", "latency"]
    data = [["q1", "x", 1, 0.25], ["q1", "y", 0, 0.5], ["q2", "x", 1, 0.75]]
    return json_text({"columns": columns, "data": data})


def mlflow_traces() -> bytes:
    def trace(number: int, passed: bool) -> dict[str, object]:
        feedback = {"assessment_name": "correct", "feedback": {"value": passed}}
        return {
            "trace_id": f"tr-0000000{number}",
            "request": f"q{number % 2}",
            "execution_duration": 0.5,
            "assessments": [feedback],
        }

    return json_lines([trace(n, n != 1) for n in range(4)])


def helm() -> bytes:
    def instance(name: str, trial: int, mean: float) -> dict[str, object]:
        stats = [
            {"name": {"name": "num_output_tokens", "split": "test"}, "count": 1, "mean": 5.0},
            {"name": {"name": "exact_match", "split": "test"}, "count": 1, "mean": mean},
        ]
        return {"instance_id": name, "train_trial_index": trial, "stats": stats}

    rows = [instance("id1", 0, 1.0), instance("id1", 1, 0.0), instance("id2", 0, 0.0)]
    rows += [
        instance("id2", 1, 0.0),
        {**instance("id2", 0, 1.0), "perturbation": {"name": "typos"}},
    ]
    return json_text(rows)


def bfcl() -> bytes:
    head = {"accuracy": 0.6, "correct_count": 3, "total_count": 5}
    failed = {"model_name": "toy-fc", "test_category": "simple", "valid": False}
    rows = [{**failed, "id": f"simple_{n}", "error_type": "value_error"} for n in (1, 4)]
    return json_lines([head, *rows])


def promptfoo_csv() -> bytes:
    rows = [
        'question,"[openai:toy] Answer: {{question}}"',
        'one?,"[PASS] 1"',
        'two?,"[FAIL] Expected 2\n---\n3"',
        'one?,"[FAIL] Expected 1\n---\n7"',
        'two?,"[ERROR] 429 Too many requests"',
    ]
    return "\n".join([*rows, ""]).encode()


def agentbeats_board() -> bytes:
    result = {"domain": "web", "score": 1.5, "max_score": 3.0, "time_used": 9.5}
    scores = {"t1": 1.0, "t2": 0.5, "t3": 0.0}
    people = {"agent": {"name": "purple-toy"}}
    return json_text({"participants": people, "results": [{**result, "task_scores": scores}]})


def agentbeats_raw() -> bytes:
    rows = [{"task_id": f"t{n}", "success": n != 1, "duration": 1.5} for n in range(3)]
    results = [{"evaluation_results": {"raw_results": rows}}]
    return json_text({"participants": {"agent": "toy"}, "results": results})


def records_array() -> bytes:
    return json_text([{"instance_id": n, "resolved": n != "b"} for n in ("a", "b", "a")])


def records_nested() -> bytes:
    rows = [{"example_id": n % 2, "trial": n // 2, "score": int(n < 3)} for n in range(4)]
    return json_text({"config": {"model": "toy"}, "results": rows})


def excel() -> bytes:
    def cell(place: str, value: object) -> str:
        if isinstance(value, str):
            return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
        return f'<c r="{place}"><v>{value}</v></c>'

    table: list[tuple[object, ...]] = [("task", "trial", "success"), ("a", 0, 1), ("a", 1, 0)]
    table.append(("b", 0, 1))
    rows = "".join(
        f'<row r="{r}">' + "".join(cell(f"{'ABC'[c]}{r}", v) for c, v in enumerate(row)) + "</row>"
        for r, row in enumerate(table, 1)
    )
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = f'<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>'
    return zip_of(
        {"[Content_Types].xml": b"<Types/>", "xl/worksheets/sheet1.xml": sheet.encode()}, method=0
    )


def plain_xml() -> bytes:
    rows = "".join(
        f"<attempt task='{task}' trial='{trial}'><passed>{word}</passed></attempt>"
        for task, trial, word in (("a", 0, "true"), ("a", 1, "false"), ("b", 0, "true"))
    )
    return f"<report><attempts>{rows}</attempts></report>".encode()


FOLDER = Path(__file__).parent.parent / "tests" / "readers" / "fixtures"

SAMPLES: dict[str, Callable[[], bytes]] = {
    "junit": junit,
    "deepeval": deepeval,
    "hal": hal,
    "openai_evals_api": openai_evals_api,
    "openai_eval_items": openai_eval_items,
    "openhands": openhands,
    "weave": weave,
    "phoenix": phoenix,
    "langsmith": langsmith,
    "braintrust": braintrust,
    "langfuse": langfuse,
    "mlflow": mlflow,
    "mlflow_traces": mlflow_traces,
    "helm": helm,
    "bfcl": bfcl,
    "promptfoo csv": promptfoo_csv,
    "agentbeats board": agentbeats_board,
    "agentbeats raw": agentbeats_raw,
    "json array": records_array,
    "json nested": records_nested,
    "excel": excel,
    "xml": plain_xml,
    "agentbeats": agentbeats,
    "agentbeats battle": agentbeats_battle,
    "cruxeval": cruxeval,
    "evalplus": evalplus,
    "evalplus older": evalplus_older,
    "export": export,
    "harbor": harbor,
    "human_eval": human_eval,
    "inspect_ai": lambda: json_text(inspect_log()),
    "inspect_ai zip": inspect_eval,
    "livecodebench": livecodebench,
    "lm_eval": lm_eval,
    "openai_evals": openai_evals,
    "promptfoo": promptfoo,
    "swe_bench": swe_bench,
    "swe_bench summary": swe_bench_summary,
    "tau2_bench": tau2_bench,
    "tau_bench": tau_bench,
    "terminal_bench": terminal_bench,
}

FILES: dict[str, str] = {
    "junit": "junit/checkout.xml",
    "deepeval": "deepeval/run.json",
    "hal": "hal/upload.json",
    "openai_evals_api": "openai_evals_api/items.jsonl",
    "openai_eval_items": "openai_eval_items/items.json",
    "openhands": "openhands/output.jsonl",
    "weave": "weave/rows.jsonl",
    "phoenix": "phoenix/runs.json",
    "langsmith": "langsmith/experiment.csv",
    "braintrust": "braintrust/rows.jsonl",
    "langfuse": "langfuse/scores.jsonl",
    "mlflow": "mlflow/eval_results_table.json",
    "mlflow_traces": "mlflow/traces.jsonl",
    "helm": "helm/run/per_instance_stats.json",
    "bfcl": "bfcl/BFCL_v3_simple_score.json",
    "promptfoo csv": "promptfoo/output.csv",
    "agentbeats board": "agentbeats/board.json",
    "agentbeats raw": "agentbeats/raw.json",
    "json array": "table/array.json",
    "json nested": "table/results.json",
    "excel": "table/book.xlsx",
    "xml": "table/attempts.xml",
    "agentbeats": "agentbeats/results.json",
    "agentbeats battle": "agentbeats/battle.json",
    "cruxeval": "cruxeval/tiny_temp0.2_output.json",
    "evalplus": "evalplus/tiny_temp_0.0_eval_results.json",
    "evalplus older": "evalplus/older_eval_results.json",
    "export": "export/attempts.jsonl",
    "harbor": "harbor/hello__1/result.json",
    "human_eval": "human_eval/tiny_results.jsonl",
    "inspect_ai": "inspect_ai/quiz.json",
    "inspect_ai zip": "inspect_ai/quiz.eval",
    "livecodebench": "livecodebench/tiny_eval_all.json",
    "lm_eval": "lm_eval/samples_quiz_2026-01-01T00-00-00.000000.jsonl",
    "openai_evals": "openai_evals/events.jsonl",
    "promptfoo": "promptfoo/output.json",
    "swe_bench": "swe_bench/per_instance_details.json",
    "swe_bench summary": "swe_bench/tiny.run_1.json",
    "tau2_bench": "tau2_bench/results.json",
    "tau_bench": "tau_bench/gpt-airline.json",
    "terminal_bench": "terminal_bench/results.json",
}
"""Where each sample is kept below the folder of fixtures."""


def write(folder: Path = FOLDER) -> None:
    """Write every sample below a folder."""
    for name, file in FILES.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(SAMPLES[name]())


if __name__ == "__main__":
    write()
    print(f"wrote {len(FILES)} files below {FOLDER}")
