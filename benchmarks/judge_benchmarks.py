"""How the judge treats right and wrong programs of public benchmarks.

Nothing of them is part of this repository. Fetch the files first:

- HumanEval.jsonl.gz from openai/human-eval, folder data
- BigCodeBench.jsonl.gz from bigcode-project/bigcodebench-annotation, folder data
- ClassEval_data.json from FudanSELab/ClassEval, folder data
- HumanEvalPlus-OriginFmt.jsonl.gz from evalplus/humanevalplus_release; its tests need --with numpy
- MbppPlus-OriginFmt.jsonl.gz from evalplus/mbppplus_release; with --with numpy its extended tests
  are used, else those of MBPP

LiveCodeBench has no reference solutions, so it cannot be in this study.

python benchmarks/judge_benchmarks.py FILE... [--every N] [--mutants N] [--sandbox podman:IMAGE]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from passhat.judging.bench import judge_all
from passhat.judging.interpreters import find_interpreter
from passhat.judging.sandbox_check import choose_sandbox
from passhat.judging.sandbox_kinds import JudgeRules, ProgramLimits, read_sandbox
from passhat.judging.tasks import CodeTask
from passhat.judging.verdict import CodeVerdict
from passhat.stats.outcomes.vocabulary import Verdict
from passhat.suites.code_files import json_lines, read_task
from passhat.suites.code_mutants import mutants_of


def read_tasks(path: str, packages: Sequence[str] = ()) -> Iterator[CodeTask]:
    """Tasks of a file that need nothing but the standard library and these packages."""
    if path.endswith(".json"):
        for row in json.loads(Path(path).read_text()):
            program = row["solution_code"]
            yield CodeTask(row["task_id"], tests=row["test"], canonical=program)
        return
    for line, row in json_lines(path):
        libraries = re.findall(r"\w+", str(row.get("libs") or ""))
        if "test_list" in row and "test" in row and "numpy" in packages:
            yield CodeTask(str(row["task_id"]), tests=str(row["test"]), canonical=str(row["code"]))
        elif set(libraries) <= sys.stdlib_module_names | set(packages):
            yield read_task(row, path, line)


def name_verdict(verdict: CodeVerdict) -> str:
    """The column of a verdict."""
    if verdict.verdict is Verdict.PASSED:
        return "confirmed"
    if verdict.verdict is Verdict.MISSING:
        return verdict.why if verdict.why in ("unsupported", "unconfirmed") else "missing"
    return "failed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--every", type=int, default=1, help="only every so many tasks")
    parser.add_argument("--with", dest="packages", action="append", default=[])
    parser.add_argument("--mutants", type=int, default=0, help="wrong programs per task")
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--details", action="store_true")
    options = parser.parse_args()
    interpreter = find_interpreter(packages=options.packages)
    kind = choose_sandbox(interpreter, read_sandbox(options.sandbox))
    print(f"sandbox {kind}, {os.cpu_count()} processors")

    def judge(work: list[tuple[CodeTask, str]], judges: str) -> dict[int, CodeVerdict]:
        limits = ProgramLimits(cpu_seconds=10)
        rules = JudgeRules(judges)
        return dict(
            judge_all(work, kind=kind, interpreter=interpreter, limits=limits, jobs=2, rules=rules)
        )

    for path in options.files:
        tasks = list(read_tasks(path, options.packages))[:: options.every]
        work = [(task, task.program(task.canonical)) for task in tasks]
        verdicts = judge(work, "both")
        counts = Counter(map(name_verdict, verdicts.values()))
        print(f"{Path(path).name}: {len(tasks)} reference solutions: {dict(counts)}", flush=True)
        if options.details:
            for at, verdict in sorted(verdicts.items()):
                if name_verdict(verdict) != "confirmed":
                    print(f"  {work[at][0].id}: {verdict.words[:200]}")
        right = [
            work[at]
            for at, verdict in sorted(verdicts.items())
            if name_verdict(verdict) in ("confirmed", "unconfirmed")
        ]
        wrong = [
            (task, mutant)
            for task, program in right
            for mutant in (mutants_of(program, options.mutants) if options.mutants else ())
        ]
        if wrong:
            plain, split = judge(wrong, "plain"), judge(wrong, "both")
            fails = [at for at, verdict in plain.items() if verdict.verdict is Verdict.FAILED]
            counts = Counter(name_verdict(split[at]) for at in fails)
            print(f"  {len(fails)} mutants that plain fails: {dict(counts)}")


if __name__ == "__main__":
    main()
