"""Does ``passhat why`` name a planted cause, and nothing where there is none?

    python benchmarks/why.py                      # 400 runs a row, a few minutes of CPU
    python benchmarks/why.py --repetitions 40     # a rough look
    python benchmarks/why.py --markdown docs/benchmarks/why.md

Every task has a script of tool calls. An attempt follows it and strays from it by chance: it looks
something up in between, repeats a call, swaps two, meets an error, chooses an argument. The planted
cause is a wrong tool among the first two calls, in three of ten attempts; these fail three times as
often as the others at the same task. In runs without a cause the tool is called just as often.

In single tasks four attempts fail, all of them by the same deviation at the same place: a wrong
call in the place of the right one or in between, a call that is left out, or another argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from measuring import machine, markdown, publish, study_parser
from passhat.stats.why import Step, Trace, explain_failures, explain_task

TOOLS = (
    "find_user",
    "list_orders",
    "get_order",
    "get_item",
    "refund",
    "cancel",
    "exchange",
    "note",
)
LOOKUPS = ("search", "get_policy", "calculate")
PLANTED = "close_account"
EVENT_RATE = 0.3
TIMES = 3
BASE_RATES = {"fails 10 to 33%": (0.1, 1 / 3), "fails 20%": (0.2, 0.2), "fails 30%": (0.3, 0.3)}
STRAYING = (0.0, 0.1, 0.2)
DEVIATIONS = ("in the place of a call", "in between", "left out", "another argument")
SEED = 2033
"""Not the seed that the method was developed with."""


@dataclass(frozen=True, slots=True)
class Script:
    """The calls of a task, as an attempt that does not stray makes them."""

    task: str
    calls: tuple[Step, ...]


def write_script(rng: np.random.Generator, task: str) -> Script:
    names = rng.choice(TOOLS, size=int(rng.integers(3, 7)), replace=False)
    identity = f"{task}-{int(rng.integers(1000))}"
    return Script(task, tuple(Step(str(name), {"id": identity}) for name in names))


def stray(rng: np.random.Generator, calls: Sequence[Step], chance: float) -> list[Step]:
    """The calls with small deviations, each by the same chance."""
    made: list[Step] = []
    for step in calls:
        if rng.random() < chance:
            made.append(Step(str(rng.choice(LOOKUPS)), {"kind": str(rng.choice(["a", "b", "c"]))}))
        made.append(replace(step, failed=bool(rng.random() < chance)))
        if rng.random() < chance:
            made.append(step)
    for place in range(len(made) - 1):
        if rng.random() < chance / 2:
            made[place], made[place + 1] = made[place + 1], made[place]
    return made


def make_run(
    rng: np.random.Generator,
    base: tuple[float, float],
    times: float,
    *,
    tasks: int = 20,
    attempts: int = 8,
    straying: float = 0.1,
) -> list[Trace]:
    """A run in which attempts that call the wrong tool early fail ``times`` as often."""
    traces = []
    for index in range(tasks):
        script = write_script(rng, f"t{index}")
        rate = float(rng.uniform(*base))
        for number in range(1, attempts + 1):
            calls = stray(rng, script.calls, straying)
            is_wrong = bool(rng.random() < EVENT_RATE)
            if is_wrong:
                calls.insert(int(rng.integers(0, 2)), Step(PLANTED))
            fails = rng.random() < min(1.0, rate * (times if is_wrong else 1))
            messages = int(rng.integers(1, 4))
            traces.append(Trace(script.task, number, not fails, tuple(calls), messages))
    return traces


def names_planted(traces: Sequence[Trace]) -> bool:
    """Whether the planted event, or one of the same attempts, is shown to go with failure."""
    return any(
        finding.is_shown
        and finding.goes_with_failure
        and any(PLANTED in (event.tool, event.detail) for event in (finding.event, *finding.same))
        for finding in explain_failures(traces)
    )


def names_anything(traces: Sequence[Trace]) -> bool:
    return any(finding.is_shown for finding in explain_failures(traces))


def make_task(rng: np.random.Generator, straying: float, deviation: str = "") -> list[Trace]:
    """A task with four passes and four failures; without a deviation, failures by chance."""
    script = write_script(rng, "task")
    place = int(rng.integers(0, len(script.calls)))
    fails = rng.permutation([True] * 4 + [False] * 4)
    traces = []
    for number, is_failure in enumerate(fails.tolist(), 1):
        calls = deviate(list(script.calls), place, deviation if is_failure else "")
        traces.append(Trace("task", number, not is_failure, tuple(stray(rng, calls, straying))))
    return traces


def deviate(calls: list[Step], place: int, deviation: str) -> list[Step]:
    """The calls with the planted deviation at a place."""
    match deviation:
        case "in the place of a call":
            calls[place] = Step(PLANTED)
        case "in between":
            calls.insert(place, Step(PLANTED))
        case "left out":
            calls.pop(place)
        case "another argument":
            calls[place] = replace(calls[place], arguments={"id": "another"})
    return calls


def is_decisive(traces: Sequence[Trace]) -> bool:
    found = explain_task("task", traces).decisive
    planted = {trace.number for trace in traces if not trace.passed}
    return found is not None and planted in (set(found.numbers), set(found.others))


def page(repetitions: int) -> str:
    rows = []
    for row, (name, base) in enumerate(BASE_RATES.items()):
        shares = []
        for column, (times, test) in enumerate(((TIMES, names_planted), (1, names_anything))):
            rng = np.random.default_rng([SEED, 0, row, column])
            shares.append(np.mean([test(make_run(rng, base, times)) for _ in range(repetitions)]))
        rows.append((name, *(f"{share:.3f}" for share in shares)))
    steps = []
    for row, deviation in enumerate(DEVIATIONS):
        shares = []
        for column, straying in enumerate(STRAYING):
            rng = np.random.default_rng([SEED, 1, row, column])
            tasks = (make_task(rng, straying, deviation) for _ in range(repetitions))
            shares.append(np.mean([is_decisive(task) for task in tasks]))
        steps.append((deviation, *(f"{share:.3f}" for share in shares)))
    shares = []
    for column, straying in enumerate(STRAYING):
        rng = np.random.default_rng([SEED, 2, column])
        tasks = (make_task(rng, straying) for _ in range(repetitions))
        shares.append(np.mean([explain_task("task", task).decisive is not None for task in tasks]))
    steps.append(("no cause: any step", *(f"{share:.3f}" for share in shares)))
    parts = [
        "# What goes with failure, measured",
        f"Made by `python benchmarks/why.py --repetitions {repetitions} --markdown "
        "docs/benchmarks/why.md`. 20 tasks with 8 "
        f"attempts each, {repetitions:,} runs a row; attempts stray from their script at every "
        f"tenth call. {machine()}.",
        markdown(
            (
                "other attempts",
                "planted event named (3 times as often)",
                "anything named without a cause",
            ),
            rows,
        ),
        "One task with 4 passes and 4 failures; every failure has the deviation, no pass has it. "
        f"How often its step is the decisive one, by the chance of an attempt to stray at a call; "
        f"{repetitions:,} tasks a cell.",
        markdown(("deviation", *(f"{straying:g}" for straying in STRAYING)), steps),
        "A decisive step is tested within its task alone: of 20 tasks without a cause, up to one "
        "shows a step by chance.",
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run the study and print it."""
    options = study_parser(__doc__, 400).parse_args()
    publish(page(options.repetitions), options.markdown)


if __name__ == "__main__":
    main()
