"""Every sentence that the builders make on generated data: its words agree with its numbers.

Runs of all shapes (one task, one attempt, ties, missing attempts, nothing judged, unequal numbers
of attempts, all pass, all fail, clusters, other levels) are reported, compared, gated and forecast,
fitted as two temperatures of an agent and held against claims; then each text of each document,
short and full, is read.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import click
import numpy as np
import pytest

from hypothesis_profiles import max_examples
from passhat.cli import main
from passhat.cli.main import COMMANDS as NAMES
from passhat.cli.main import cli
from passhat.errors import PasshatError
from passhat.reporting.build import ReportOptions, build_report
from passhat.reporting.document import (
    Block,
    Document,
    Facts,
    Finding,
    Heading,
    Level,
    Listing,
    NextStep,
    Note,
    Properties,
    Sentence,
    Table,
)
from passhat.reporting.documents.forecast import default_words, forecast_document, plan_document
from passhat.reporting.documents.report import report_document, run_document
from passhat.reporting.documents.temperature import fit_document
from passhat.reporting.documents.verdicts import comparison_document, gate_document
from passhat.reporting.review import review, review_document
from passhat.reporting.task_changes import task_changes
from passhat.stats.compare import compare, compare_all
from passhat.stats.forecast import forecast_all
from passhat.stats.gate import gate
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.plan import plan_tasks
from passhat.stats.temperature import fit_temperatures
from passhat.stats.terms import Terms

RANDOM_CASES = max_examples(8)


@dataclass(frozen=True)
class Case:
    """Two runs on the same tasks, and the level of everything said about them."""

    name: str
    a: Run
    b: Run
    level: float = 0.95
    cluster: str | None = None

    def __str__(self) -> str:
        return self.name


def _run(name: str, n: Sequence[int], c: Sequence[int], m: Sequence[int] = ()) -> Run:
    tasks = [f"t{i}" for i in range(len(c))]
    labels = {"topic": [f"topic{i % 3}" for i in range(len(c))]}
    outcomes = Outcomes.from_counts(n, c, tasks, missing=list(m) or None, labels=labels)
    return Run(name, name, outcomes)


def _pair(name: str, n: list[int], a: list[int], b: list[int], **more: object) -> Case:
    return Case(name, _run("old", n, a), _run("new", n, b), **more)  # type: ignore[arg-type]


def _shapes() -> Iterator[Case]:
    yield _pair("one task, one attempt", [1], [1], [0])
    yield _pair("one task", [8], [6], [3])
    yield _pair("one attempt each", [1] * 9, [1, 0, 1, 1, 0, 1, 1, 1, 0], [1] * 8 + [0])
    yield _pair("two attempts each", [2] * 4, [2, 1, 0, 2], [2, 2, 1, 2])
    yield _pair("ties", [4] * 6, [4, 3, 2, 1, 0, 4], [4, 3, 2, 1, 0, 4])
    yield _pair("all pass", [4] * 5, [4] * 5, [4] * 5)
    yield _pair("all fail", [4] * 5, [0] * 5, [0] * 5)
    yield _pair("from all to none", [6] * 6, [6] * 6, [0] * 6)
    yield _pair("nearly all pass", [50] * 2, [50, 49], [50, 50])
    yield _pair("a point apart", [100] * 3, [98, 98, 98], [99, 98, 98])
    yield _pair("another level", [5] * 8, [5, 4, 3, 2, 1, 0, 5, 4], [5] * 8, level=0.8)
    yield _pair("clusters", [4] * 12, [4, 3, 2, 1] * 3, [4, 4, 4, 2] * 3, cluster="topic")
    ragged = [1, 2, 4, 8, 3, 5]
    yield _pair("unequal numbers", ragged, [1, 1, 2, 8, 0, 5], [0, 2, 4, 8, 3, 1])
    lost = _run("lost", [0, 0, 0], [0, 0, 0], [4, 4, 4])
    whole = _run("whole", [4, 4, 4], [4, 2, 1])
    yield Case("nothing judged", whole, lost)
    holes = _run("holes", [3, 4, 2, 4], [3, 2, 1, 0], [1, 0, 2, 0])
    yield Case("missing attempts", _run("whole", [4] * 4, [4, 2, 2, 1]), holes)
    one = _run("one", [3], [3], [1])
    yield Case("one missing attempt at one task", one, replace(one, name="again", agent="again"))


def _random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    tasks = int(rng.integers(2, 15))
    most = int(rng.integers(1, 9))
    n = rng.integers(1, most + 1, tasks) if rng.random() < 0.3 else np.full(tasks, most)
    rate = rng.beta(1, 1, tasks)
    runs = []
    for name, shift in (("old", 0.0), ("new", float(rng.choice([-0.3, 0.0, 0.3])))):
        m = rng.binomial(n, 0.15) if rng.random() < 0.3 else np.zeros(tasks, int)
        c = rng.binomial(n - m, np.clip(rate + shift, 0, 1))
        runs.append(_run(name, (n - m).tolist(), c.tolist(), m.tolist() if m.any() else ()))
    return Case(f"random {seed}", runs[0], runs[1], float(rng.choice([0.8, 0.95, 0.99])))


CASES = [*_shapes(), *map(_random_case, range(RANDOM_CASES))]


# The documents of a case are built once, by the process that runs all tests of it.
each_case = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=pytest.mark.xdist_group(f"sentences of {case}"))
        for case in CASES
    ],
)


@cache
def _documents(name: str) -> tuple[tuple[str, Document], ...]:
    case = next(case for case in CASES if case.name == name)
    return tuple(_build(case))


def _build(case: Case) -> Iterator[tuple[str, Document]]:
    runs = [case.a, case.b]
    terms = Terms(level=case.level, cluster=case.cluster)
    options = ReportOptions(terms=terms, with_tasks=True, with_details=True, with_forecasts=False)
    report = build_report([case.b], options)
    yield "report", report_document(report)
    yield "run", run_document(report.runs[0], "0123456789 t0#1")
    several = ReportOptions(terms=terms, short=True)
    yield "report", report_document(build_report(runs, several), left_out=1)
    words = ["pass^1", "pass^2"] if min(int(run.outcomes.n.min()) for run in runs) > 1 else "pass^1"
    compared = compare(case.a, case.b, words, terms, allow=True)
    yield (
        "compare",
        comparison_document(compared, runs, task_changes(case.a, case.b, "pass^1", terms)),
    )
    three = [*runs, replace(case.a, name="third", agent="third")]
    with suppress(PasshatError):  # nothing is shared by three runs
        yield "compare", comparison_document(compare_all(three, ["pass^1"]), three)
    for rules, base in (("pass^1 >= 0.5", None), ((), case.a)):
        with suppress(PasshatError):  # a gate that refuses says so itself
            yield "gate", gate_document(gate(case.b, rules, against=base))
    if case.b.outcomes.scored:
        forecasts = forecast_all(case.b, default_words(case.b), level=case.level)
        yield "forecast", forecast_document(case.b, forecasts, [])
    with suppress(PasshatError):  # one attempt per task cannot separate tasks from chance
        yield "plan", plan_document(plan_tasks(case.b, metric="pass^1", half_width=0.1))
    for sources in ([case.b], runs):
        yield "review", review_document(review(_CLAIMS, sources, level=case.level))
    with suppress(PasshatError):  # a run without a verdict has no curve
        yield "temperature fit", fit_document(fit_temperatures(_temperatures(case), (), terms))


_CLAIMS = """The new agent solves 64% of the tasks.

New beats old: pass^2 rose from 50% to 75% on 40 tasks.

All 8 attempts pass on most tasks, so the agent is reliable (pass@8 = 100%).
"""


def _temperatures(case: Case) -> list[Run]:
    """Both runs as two temperatures of an agent, and of another agent the other way round."""
    agents = (("first", (case.a, case.b)), ("second", (case.b, case.a)))
    return [
        replace(
            run,
            name=f"{agent} {temperature}",
            agent=agent,
            protocol=replace(run.protocol, decoding={"temperature": temperature}),
        )
        for agent, runs in agents
        for temperature, run in zip((0.2, 0.8), runs, strict=True)
    ]


def _texts(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield from (block.text, block.detail)
    elif isinstance(block, Sentence):
        yield f"{block.text}{block.ending}"
    elif isinstance(block, Note | NextStep):
        yield block.text
    elif isinstance(block, Table):
        yield from (block.caption, *(cell for row in block.rows for cell in row))
    elif isinstance(block, Facts | Properties):
        yield from (text for _, text in block.entries)
    elif isinstance(block, Listing):
        yield from block.items
    elif isinstance(block, Finding):
        yield from (block.text, *block.details)


def _all_texts(case: Case) -> Iterator[tuple[str, str]]:
    for command, document in _documents(case.name):
        for section in document.sections:
            for block in section.blocks:
                yield from ((command, text) for text in _texts(block))


_NOUN = (
    "(?:more |paired |shared |missing |judged )?"
    "(task|attempt|run|pair|field|metric|point|user|slice|cluster|note|finding|agent|sample)"
)
_PLURAL = re.compile(rf"(?<![\d.,#^@-])1 {_NOUN}s\b")
_SINGULAR = re.compile(rf"(?<![\d.,#^@])(\d[\d,]*) {_NOUN}\b(?!s)")


@each_case
def test_singular_and_plural(case: Case) -> None:
    for _, text in _all_texts(case):
        assert not _PLURAL.search(text), text
        for count, _ in _SINGULAR.findall(text):
            assert count == "1", text


_ESTIMATE = re.compile(
    r"^(?:([\d.]+) to )?([\d.]+)% \((?:[\d.]+% interval )?([\d.]+)%? to ([\d.]+)%\)"
)


@each_case
def test_a_value_lies_in_its_interval(case: Case) -> None:
    for _, text in _all_texts(case):
        if found := _ESTIMATE.match(text):
            first, value, low, high = (None if x is None else float(x) for x in found.groups())
            assert value is not None
            assert low is not None
            assert high is not None
            assert low <= (value if first is None else first) <= value <= high, text


_MOVED = re.compile(
    r"(rose|dropped) by (?:([\d.]+) to )?([\d.]+) points?.*? from (?:between )?([\d.]+)%(?: and "
    r"([\d.]+)%)? \(.*?\) to (?:between )?([\d.]+)%(?: and ([\d.]+)%)? \("
)
_OPEN = re.compile(
    r"No change.*? from (?:between )?([\d.]+)%(?: and ([\d.]+)%)? \(.*?\) to (?:between )?"
    r"([\d.]+)%(?: and ([\d.]+)%)? \(.*?\): between ([\d.]+) points? lower and ([\d.]+) higher"
)


@each_case
def test_a_verdict_adds_up(case: Case) -> None:
    """Before, after and the change agree at the digits that are printed."""
    for _, text in _all_texts(case):
        if found := _MOVED.search(text):
            word, *numbers = found.groups()
            low, high, a, top_a, b, top_b = (None if x is None else float(x) for x in numbers)
            assert None not in (high, a, b)
            change = (b or 0.0) - (a or 0.0) if word == "rose" else (a or 0.0) - (b or 0.0)
            assert (low or 0) - 1e-9 <= change <= (high or 0) + 1e-9, text
            assert top_a is None or top_a > (a or 0)
            assert top_b is None or top_b > (b or 0)
        if found := _OPEN.search(text):
            a, _, b, _, lower, higher = (None if x is None else float(x) for x in found.groups())
            assert a is not None
            assert b is not None
            assert lower is not None
            assert higher is not None
            assert -lower - 1e-9 <= b - a <= higher + 1e-9, text


@each_case
def test_rows_of_a_comparison_add_up(case: Case) -> None:
    """98% against 98% is not +1 points."""
    for command, document in _documents(case.name):
        if command != "compare":
            continue
        for block in document.blocks(Level.SHORT):
            if isinstance(block, Table) and block.header[0] == "metric":
                for _, a, b, *lifts in block.rows:
                    for lift in lifts:
                        if lift == "–":
                            continue
                        if " to " in a + b:  # missing attempts: the interval stands alone
                            low, high = map(float, lift.split(" to "))
                            ends = [[float(x) for x in v.rstrip("%").split(" to ")] for v in (a, b)]
                            assert low <= ends[1][0] - ends[0][-1] + 1e-6, (a, b, lift)
                            assert ends[1][-1] - ends[0][0] <= high + 1e-6, (a, b, lift)
                            continue
                        gap = float(b.rstrip("%")) - float(a.rstrip("%"))
                        found = re.match(r"([+-]?[\d.]+) \((-?[\d.]+) to (-?[\d.]+)\)", lift)
                        assert found is not None, lift
                        value, low, high = map(float, found.groups())
                        assert value == pytest.approx(gap, abs=1e-6), (a, b, lift)
                        assert low <= value <= high, (a, b, lift)


@each_case
def test_shares_of_attempts_add_up(case: Case) -> None:
    for _, text in _all_texts(case):
        if text.startswith("Attempts") and ": both pass " in text:
            shares = re.findall(r"(\d+)%", text)
            if len(shares) == 4 and "." not in text:
                assert sum(map(int, shares)) == 100, text


@each_case
def test_counts_are_those_of_the_run(case: Case) -> None:
    outcomes = case.b.outcomes
    rows = dict(zip(outcomes.tasks, zip(outcomes.n, outcomes.c, strict=True), strict=True))
    size = re.compile(r"(?:(\d+) tasks? x|1 task,)")
    for command, document in _documents(case.name):
        if command not in ("report", "run") or document.title != "new":
            continue
        for block in document.blocks(Level.SHORT):
            if isinstance(block, Heading) and (found := size.search(block.text)):
                assert int(found[1] or 1) == len(outcomes), block.text
            if isinstance(block, Listing) and block.title == "Never passed:":
                assert all(rows[task][1] == 0 < rows[task][0] for task in block.items)
            if isinstance(block, Listing) and block.title == "Flaky tasks:":
                for item in block.items:
                    task, c, _, n = item.split()
                    assert rows[task] == (int(n), int(c))
                    assert 0 < int(c) < int(n)


@each_case
def test_never_and_all_are_true(case: Case) -> None:
    scored = case.b.outcomes.scored
    for command, text in _all_texts(case):
        if command in ("report", "run") and text.startswith("No attempt has a verdict"):
            assert scored == 0 or case.a.outcomes.scored == 0
        if scored == 0 and command == "compare":
            assert "0% (lost)" not in text, "nothing judged is no number"
        if "never see a failure" in text:
            assert command == "forecast"


@each_case
def test_a_bound_is_never_below_an_interval(case: Case) -> None:
    """No column that is called a bound lies within the interval beside it."""
    for _, document in _documents(case.name):
        for block in document.blocks(Level.FULL):
            if isinstance(block, Table) and "at most" in block.header:
                place = block.header.index("at most")
                for row in block.rows:
                    found = _ESTIMATE.match(row[place - 1])
                    if found and row[place] != "–":
                        assert float(found[4]) <= float(row[place].rstrip("%")), row


_FLAGS = re.compile(r"(?<![\w-])(--[a-z-]+)")


COMMANDS = {name: cli.get_command(click.Context(cli), name) for name in NAMES}
_TEMPERATURE = COMMANDS["temperature"]
assert isinstance(_TEMPERATURE, click.Group)
COMMANDS["temperature fit"] = _TEMPERATURE.get_command(click.Context(_TEMPERATURE), "fit")


@each_case
def test_advice_names_commands_and_options_that_exist(case: Case) -> None:
    own = {"report": "report", "run": "run", "compare": "compare", "gate": "gate"}
    own |= {"forecast": "forecast", "plan": "plan", "review": "review"}
    own |= {"temperature fit": "temperature fit"}
    for command, text in _all_texts(case):
        name = own[command]
        for part in re.split(r"(?=passhat [a-z]+\b)", text):
            if found := re.match(r"passhat ([a-z]+)\b", part):
                assert found[1] in {*COMMANDS, "reports", "refuses", "prints"}, text
                name = found[1] if found[1] in COMMANDS else name
            click_command = COMMANDS[name]
            assert click_command is not None
            known = {option for each in click_command.params for option in each.opts}
            for flag in _FLAGS.findall(part):
                assert flag in known, (name, text)


def test_the_next_step_of_a_report_works_when_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "my runs.csv"
    rows = [f"bot,t{i},{int((i * j) % 3 > 0)}" for i in range(6) for j in range(4)]
    table.write_text("\n".join(["model,task,success", *rows, ""]), encoding="utf-8")
    assert main(["report", str(table)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    found = re.search(r"Next: how many tasks are enough: (passhat plan .*?) More:", printed)
    assert found is not None, printed
    assert main(shlex.split(found[1])[1:]) == 0
    assert "attempts in all" in capsys.readouterr().out
    (more,) = re.findall(r"More: (.*)", printed)
    for flag in _FLAGS.findall(more):
        if flag in ("--full", "--tasks", "--json"):
            assert main(["report", str(table), flag]) == 0
