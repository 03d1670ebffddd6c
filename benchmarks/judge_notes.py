"""Whether attempts at a task can tell each other anything: 20 answers, 20 attempts at each.

Every task asks for a secret number below 20, and all attempts at all tasks are the same program:
it reads a counter that the machine shares and answers with it, so that attempts in a row would try
the answers one after the other and find each of them. Independent guesses find an answer with
chance 1 - (19/20)^20, 12.8 of 20. The program may also leave a note: by creating files, pipes or
processes, or by waiting for the next slot of the clock. The last one knows its task, and looks up
names that are not there: those that an earlier attempt asked for take less time. With --tasks 1
no other task comes between: then "pipes left" finds every answer.

python benchmarks/judge_notes.py [--sandbox landlock] [--tasks 20] [--judge split] [--only process]
"""

from __future__ import annotations

import argparse
import time

from passhat.judging.bench import judge_all
from passhat.judging.interpreters import find_interpreter
from passhat.judging.sandbox_check import choose_sandbox
from passhat.judging.sandbox_kinds import JudgeRules, ProgramLimits, read_sandbox
from passhat.judging.tasks import CodeTask
from passhat.stats.outcomes.vocabulary import Verdict

ANSWERS = ATTEMPTS = 20
COUNTERS = {
    "guess": "random.randrange(10 ** 6)",
    "process": "os.getpid()",
    "threads": "burn(lambda: threading.Thread(target=int).start()) or threading.get_native_id()",
    "file": "os.fstat(os.open('/tmp/x', os.O_CREAT | os.O_RDWR)).st_ino",
    "file removed": "burn(lambda: (open('/tmp/y', 'w').close(), os.unlink('/tmp/y')))"
    " or os.fstat(os.open('/tmp/x', os.O_CREAT | os.O_RDWR)).st_ino",
    "pipe": "os.fstat(os.pipe()[0]).st_ino // 4",
    "pipes burnt": "burn(pipe, 1024) or os.fstat(os.pipe()[0]).st_ino // 1024",
    "clock": "int(time.time() / SLOT)",
    "clock, waited": "time.sleep(SLOT - time.time() % SLOT) or int(time.time() / SLOT)",
    "file time": "int(os.fstat(os.open('/tmp/x', os.O_CREAT | os.O_RDWR)).st_mtime / SLOT)",
    "sockets": "int.from_bytes(socket.socketpair()[0].getsockopt(1, 57, 8), 'little')",
    "pidfd": "os.fstat(os.pidfd_open(os.getpid())).st_ino",
    "age of the folder": "int(os.stat('/tmp').st_ctime / SLOT)",
    "pipes left": "leave_pipes()",
    "names looked up": "count_earlier()",
}
PROGRAM = """
import os, random, socket, threading, time
SLOT = 0.05
def pipe():
    for end in os.pipe(): os.close(end)
def number():
    ends = os.pipe()
    result = os.fstat(ends[0]).st_ino % 1024
    for end in ends: os.close(end)
    return result
def leave_pipes():
    count = number() // 50
    for _ in range(3000):
        if number() == (count + 1) % {answers} * 50 + 2: break
    return count
def burn(action, times=16):
    for _ in range(times): action()
def ask(name, times=40):
    spent = []
    for number in range(times):
        start = time.perf_counter_ns()
        os.path.exists(f"{{os.path.dirname(os.__file__)}}/json/{{name}}-{{number}}")
        spent.append(time.perf_counter_ns() - start)
    return sorted(spent)[times // 2]
def count_earlier():
    new = str(random.random())
    limit = (ask(new) + ask(new)) / 2
    for number in range({answers}):
        if ask(f"{{TASK}}-{{number}}") > limit:
            return number
    return 0
TASK = {task!r}
def f():
    return ({counter}) % {answers}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--tasks", type=int, default=ANSWERS)
    parser.add_argument("--judge", default="both")
    parser.add_argument("--only", default="", help="counters with this word in their names")
    options = parser.parse_args()
    interpreter = find_interpreter()
    kind = choose_sandbox(interpreter, read_sandbox(options.sandbox))
    tasks = [
        CodeTask(f"secret{number}", entry_point="f", tests=f"def check(f): assert f() == {number}")
        for number in range(options.tasks)
    ]
    chance = options.tasks * (1 - (1 - 1 / ANSWERS) ** ATTEMPTS)
    print(f"{kind}, {options.tasks} tasks, {ATTEMPTS} attempts at each; by chance {chance:.1f}")
    began = time.time_ns()
    for name, counter in COUNTERS.items():
        if options.only not in name:
            continue
        work = [
            (task, PROGRAM.format(counter=counter, answers=ANSWERS, task=f"{began}-{task.id}"))
            for task in tasks
            for _ in range(ATTEMPTS)
        ]
        verdicts = judge_all(
            work,
            kind=kind,
            interpreter=interpreter,
            limits=ProgramLimits(),
            rules=JudgeRules(options.judge),
        )
        found = {work[at][0].id for at, one in verdicts if one.verdict is Verdict.PASSED}
        print(f"{name}: {len(found)} of {options.tasks}", flush=True)


if __name__ == "__main__":
    main()
