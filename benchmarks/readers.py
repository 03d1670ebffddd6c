"""Speed of the readers in megabytes per second, and of reading inspect_ai's logs against its own.

The logs are written here, in each harness's format, with conversations as long as real ones; the
inspect_ai log is written by inspect_ai itself.

    python benchmarks/readers.py            prints the tables
    python benchmarks/readers.py --write    and keeps them in docs/benchmarks.md
    python benchmarks/readers.py --against OTHER/src    this version and another one, in turns
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from measuring import (
    fastest,
    machine,
    markdown,
    run_against,
    run_with_peers,
    versions_in_turns,
)
from passhat import read

TASKS, TRIALS = 2_000, 4
TALK = [{"role": "user", "content": "Please change my flight to the next day. " * 12}] * 12
ANSWER = "def solve(numbers):\n    return sorted(numbers)\n" * 6
INSPECT_SAMPLES, INSPECT_EPOCHS = 1_000, 10


def measure() -> str:
    """Both tables."""
    with tempfile.TemporaryDirectory() as folder:
        return f"{_speeds(Path(folder))}\n\n{_against_inspect(Path(folder))}"


def _speeds(folder: Path) -> str:
    rows = []
    for name, write in sorted(WRITERS.items()):
        path = folder / name
        write(path)
        size = path.stat().st_size / 1e6
        (attempts,) = {sum(run.outcomes.attempts for run in read(path))}
        seconds = fastest(lambda path=path: read(path), 3)  # type: ignore[misc]
        rows.append((name, f"{size:.1f}", f"{attempts:,}", f"{size / seconds:,.0f}"))
    header = ("log", "megabytes", "attempts", "megabytes per second")
    return f"{machine()}.\n\n{markdown(header, rows)}"


def _against_inspect(folder: Path) -> str:
    from inspect_ai.log import (
        read_eval_log,
        read_eval_log_sample_summaries,
    )

    path = folder / "inspect.eval"
    _write_inspect(path)
    (run,) = read(path)
    theirs = read_eval_log_sample_summaries(str(path))
    assert run.outcomes.attempts == len(theirs)
    assert run.outcomes.passes == sum(s.scores["match"].value == "C" for s in theirs if s.scores)
    ours = fastest(lambda: read(path), 5)
    summaries = fastest(lambda: read_eval_log_sample_summaries(str(path)), 3)
    whole = fastest(lambda: read_eval_log(str(path)), 1)
    work = f"a .eval file with {len(theirs):,} samples, {path.stat().st_size / 1e6:.1f} MB"
    rows = [
        (work, "**passhat**, into runs", "1", f"{ours:.3f}"),
        (work, "inspect_ai, its summaries alone", f"{summaries / ours:.1f}", f"{summaries:.3f}"),
        (work, "inspect_ai, `read_eval_log`", f"{whole / ours:.0f}", f"{whole:.2f}"),
    ]
    return markdown(("work", "way", "ratio", "seconds"), rows)


def _trials() -> Iterator[tuple[int, int, bool]]:
    for task in range(TASKS):
        for trial in range(TRIALS):
            yield task, trial, (task * 7 + trial * 3) % 5 < 3


def _tau_bench(path: Path) -> None:
    info = {"task": {"instruction": "x"}, "source": "user", "reward_info": {}}
    _dump(
        path,
        [
            {"task_id": t, "reward": float(ok), "info": info, "traj": TALK, "trial": i}
            for t, i, ok in _trials()
        ],
    )


def _tau2_bench(path: Path) -> None:
    simulations = [
        {
            "id": f"{t}-{i}",
            "task_id": str(t),
            "trial": i,
            "duration": 9.5,
            "termination_reason": "user_stop",
            "agent_cost": 0.01,
            "reward_info": {"reward": float(ok)},
            "messages": TALK,
        }
        for t, i, ok in _trials()
    ]
    info = {"agent_info": {"llm": "m"}, "environment_info": {"domain_name": "airline"}}
    _dump(path, {"info": info, "tasks": [], "simulations": simulations})


def _human_eval(path: Path) -> None:
    with path.open("w") as stream:
        for t, _, ok in _trials():
            row: dict[str, object] = {"task_id": f"HumanEval/{t}", "completion": ANSWER}
            row |= {"result": "passed" if ok else "failed: AssertionError", "passed": ok}
            stream.write(json.dumps(row) + "\n")


def _evalplus(path: Path) -> None:
    found: dict[str, list[Any]] = {}
    for t, _, ok in _trials():
        status = "pass" if ok else "fail"
        one = {"solution": ANSWER, "base_status": "pass", "plus_status": status}
        found.setdefault(f"HumanEval/{t}", []).append(one)
    _dump(path, {"hash": "x", "eval": found})


def _livecodebench(path: Path) -> None:
    _dump(
        path,
        [
            {
                "question_id": str(t),
                "question_content": ANSWER,
                "difficulty": "easy",
                "code_list": [ANSWER] * TRIALS,
                "graded_list": [(t + i) % 2 == 0 for i in range(TRIALS)],
            }
            for t in range(TASKS)
        ],
    )


def _cruxeval(path: Path) -> None:
    tasks = [f"sample_{t}" for t in range(TASKS)]
    _dump(
        path,
        {
            "raw_generations": {task: [ANSWER] * TRIALS for task in tasks},
            "raw_scored_generations": {task: [True, False] * (TRIALS // 2) for task in tasks},
            "pass_at_1": 50.0,
        },
    )


def _lm_eval(path: Path) -> None:
    with path.open("w") as stream:
        for t in range(TASKS * TRIALS):
            row = {"doc_id": t, "doc": {"question": ANSWER}, "resps": [[ANSWER]], "filter": "none"}
            row |= {"filtered_resps": [ANSWER], "metrics": ["exact_match"], "exact_match": t % 2}
            stream.write(json.dumps(row) + "\n")


def _promptfoo(path: Path) -> None:
    rows = [
        {
            "promptIdx": 0,
            "provider": {"id": "p"},
            "prompt": {"raw": ANSWER, "label": "ask"},
            "vars": {"task": t},
            "response": {"output": ANSWER, "tokenUsage": {"total": 9}, "cached": False},
            "success": ok,
            "latencyMs": 12,
        }
        for t, _, ok in _trials()
    ]
    _dump(path, {"results": {"version": 3, "results": rows}})


def _openai_evals(path: Path) -> None:
    with path.open("w") as stream:
        stream.write(json.dumps({"spec": {"completion_fns": ["f"], "eval_name": "e"}}) + "\n")
        for t, _, ok in _trials():
            shared = {"run_id": "r", "event_id": t, "sample_id": f"e.{t}"}
            sampled = {"prompt": ANSWER, "sampled": ANSWER}
            stream.write(json.dumps({**shared, "type": "sampling", "data": sampled}) + "\n")
            stream.write(json.dumps({**shared, "type": "match", "data": {"correct": ok}}) + "\n")


def _terminal_bench(path: Path) -> None:
    rows = [
        {
            "task_id": f"task-{t}",
            "trial_name": f"task-{t}.{i + 1}-of-{TRIALS}.run",
            "instruction": ANSWER,
            "is_resolved": ok,
            "failure_mode": "unset",
        }
        for t, i, ok in _trials()
    ]
    _dump(path, {"results": rows, "pass_at_k": {}})


def _swe_bench(path: Path) -> None:
    _dump(
        path,
        {
            f"project__{t}-{i}": {"resolved": ok, "cost": 0.31, "api_calls": 40}
            for t, i, ok in _trials()
        },
    )


def _agentbeats(path: Path) -> None:
    rows = [{"task_id": t, "passed": ok, "log": ANSWER} for t, _, ok in _trials()]
    _dump(path, {"participants": {"agent": "a"}, "results": rows})


def _export(path: Path) -> None:
    with path.open("w") as stream:
        for t, i, ok in _trials():
            row = {"run": "r", "agent": "a", "task": str(t), "attempt": i + 1, "passed": ok}
            row |= {"category": None, "reason": None, "detail": None, "source": "somewhere"}
            stream.write(json.dumps(row) + "\n")


def _inspect_json(path: Path) -> None:
    _dump(path, _inspect_log(TASKS, TRIALS))


def _inspect_log(samples: int, epochs: int) -> dict[str, object]:
    dataset = {"name": "d", "samples": samples, "sample_ids": list(range(1, samples + 1))}
    about = {
        "eval_id": "e",
        "run_id": "r",
        "created": "2026-01-01T00:00:00+00:00",
        "task": "t",
        "task_id": "i",
        "model": "m/m",
        "dataset": dataset,
        "config": {"epochs": epochs},
    }
    rows = [
        {
            "id": number,
            "epoch": epoch,
            "input": ANSWER,
            "target": "x",
            "messages": TALK[:4],
            "scores": {"match": {"value": "C" if (number + epoch) % 3 else "I"}},
            "model_usage": {"m/m": {"input_tokens": 5, "output_tokens": 6, "total_tokens": 11}},
            "total_time": 1.5,
            "uuid": f"{number}-{epoch}",
        }
        for epoch in range(1, epochs + 1)
        for number in range(1, samples + 1)
    ]
    return {"version": 2, "status": "success", "eval": about, "samples": rows}


def _write_inspect(path: Path) -> None:
    """A log written by inspect_ai's own writer."""
    from inspect_ai.log import EvalLog, write_eval_log

    log = EvalLog.model_validate(_inspect_log(INSPECT_SAMPLES, INSPECT_EPOCHS))
    write_eval_log(log, str(path), format="eval")


def _dump(path: Path, data: object) -> None:
    path.write_text(json.dumps(data), encoding="utf-8")


WRITERS: dict[str, Callable[[Path], None]] = {
    "agentbeats": _agentbeats,
    "cruxeval": _cruxeval,
    "evalplus": _evalplus,
    "human_eval": _human_eval,
    "inspect_ai (.json)": _inspect_json,
    "livecodebench": _livecodebench,
    "lm_eval": _lm_eval,
    "openai_evals": _openai_evals,
    "passhat export": _export,
    "promptfoo": _promptfoo,
    "swe_bench": _swe_bench,
    "tau2_bench": _tau2_bench,
    "tau_bench": _tau_bench,
    "terminal_bench": _terminal_bench,
}

TURNS = 3
ONE_VERSION = """
import sys, time
from passhat import read

def once():
    start = time.process_time()
    read(sys.argv[1])
    return time.process_time() - start

once()
print(min(once() for _ in range(3)))
"""


def against(other: str) -> str:
    """CPU of reading each log with another version and with this one, in turns; the least."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, write in sorted(WRITERS.items()):
            path = Path(folder) / name
            write(path)
            printed = versions_in_turns(ONE_VERSION, [path], other, TURNS)
            before, now = (min(values) for values in printed.values())
            rows.append((name, f"{before:.3f}", f"{now:.3f}", f"{now / before:.2f}"))
    return markdown(("log", "other", "this", "ratio"), rows)


if __name__ == "__main__":
    if "--against" in sys.argv:
        run_against("readers-versions", against)
    else:
        run_with_peers(__file__, "readers", ["inspect-ai"], measure)
