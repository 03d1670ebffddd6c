"""Progress of a run: a bar on a terminal, else plain lines, and a line per attempt on request."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

import click

from passhat._display import counted, duration, duration_range, money, money_range
from passhat.cli.shared.configuring import store_words
from passhat.protocol import AGENT_CODE
from passhat.runner.preview import Spread, sum_of, time_left
from passhat.stats.outcomes import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType
    from rich.live import Live

    from passhat.agents import Agent
    from passhat.protocol import Protocol
    from passhat.runner import Progress, RunPlan
    from passhat.runner.preview import Range, RunPreview
    from passhat.stats.outcomes import Run
    from passhat.store import AttemptRecord, Store, StoredRun

_CLEAR = "\r\x1b[K"


_FINGERPRINTS = (("suite_fingerprint", "other tasks"), ("tests_fingerprint", "another judge"))


_FEW, _MANY = (500, 50), (4_000, 500)
"""Tokens in and out of one call that are assumed while none was seen."""


def print_preview(plan: RunPlan, store: Store, baseline: str | None = None) -> None:
    """Print warnings and the expected calls, time and cost of a run on standard error."""
    from passhat.runner.run_spec import left_to_make
    from passhat.suites.jsonl import QuestionSuite

    runs = store.runs()
    left = left_to_make(plan, store)
    if not left:
        stored = counted(sum(plan.attempts.of(task.id) for task in plan.tasks), "attempt")
        line = f"nothing to make: all {stored} of this run are stored; --name NAME makes a new run"
        click.echo(line, err=True)
        return
    if plan.temperature == 0 and plan.attempts.each > 1:
        click.echo("note: temperature 0 usually makes all attempts alike", err=True)
    if isinstance(plan.suite, QuestionSuite) and plan.suite.judge_words:
        click.echo(
            f"note: the judge is a model ({', '.join(plan.suite.judge_words)}), and its verdicts "
            "have errors of their own; afterwards check a sample: passhat label latest --sample 50"
            f"{store_words(store.path)}",
            err=True,
        )
    for line in _changes(plan, store, runs, baseline):
        click.echo(f"note: {line}", err=True)
    from passhat.runner.preview import preview_run

    pilot = store.measures(plan.agent.name, plan.suite.name)
    price = _price_per_call(plan.agent)
    steps = 1 if plan.suite.single_turn else plan.limits.max_steps
    needs = preview_run(left, plan.jobs, steps, pilot, price)
    source = plan.agent.price.source if plan.agent.price is not None else ""
    line = _needs_line(needs, plan.limits.attempt_seconds * -(-left // plan.jobs), source)
    click.echo(f"up to {line}" if plan.stop_when else line, err=True)


def name_failure(store: Store, run_id: str, run: Run) -> str:
    """The first failed attempt, as a shell passes it to ``passhat show``; empty without one."""
    import shlex

    outcomes = run.outcomes
    failed = (outcomes.n > outcomes.c).nonzero()[0]
    task = outcomes.tasks[int(failed[0])] if len(failed) else ""
    number = store.first_failure(run_id, task) if task else None
    if number is None:
        return ""
    attempt = f"{task}#{number}"  # a shell takes # within a word as it is
    return f"{run_id} {attempt if shlex.quote(task) == task else shlex.quote(attempt)}"


def _price_per_call(agent: Agent) -> Range | None:
    """Estimated cost of a call, for an agent with a ``price`` in dollars per million tokens."""
    from passhat.runner.preview import Range

    price = agent.price
    if price is None:
        return None
    low, high = (
        (inputs * price.input + outputs * price.output) / 1_000_000
        for inputs, outputs in (_FEW, _MANY)
    )
    return Range(low, high)


def _changes(
    plan: RunPlan, store: Store, runs: Sequence[StoredRun], baseline: str | None
) -> Iterator[str]:
    """Differences between the suite and that of the baseline, or of the last such run."""
    earlier = store.find(baseline) if baseline else _last_like(plan, runs)
    if earlier is None:
        return
    protocol, earlier_protocol = plan.record.protocol, store.protocol(earlier.id)
    if baseline and earlier_protocol.suite != protocol.suite:
        yield f"run {earlier.id} is about another suite, {earlier_protocol.suite}"
        return
    parts = [what for field, what in _FINGERPRINTS if _differ(protocol, earlier_protocol, field)]
    if parts:
        yield (
            f"{plan.suite.name} changed since run {earlier.id} ({earlier.started}): "
            f"it has {' and '.join(parts)}, so the two cannot be compared"
        )
    elif not baseline and _another_code(protocol, earlier_protocol):
        files = ", ".join(path.name for path in plan.agent.source_files)
        yield f"{files} changed since run {earlier.id} ({earlier.started}): this is a new run"
    elif baseline and _differ(protocol, earlier_protocol, "suite_fingerprint", unknown=True):
        yield f"run {earlier.id} does not record which tasks {plan.suite.name} had"


def _differ(current: Protocol, earlier: Protocol, field: str, *, unknown: bool = False) -> bool:
    a, b = getattr(current, field), getattr(earlier, field)
    return (a is None or b is None) if unknown else (a != b and None not in (a, b))


def _another_code(current: Protocol, earlier: Protocol) -> bool:
    a, b = current.decoding.get(AGENT_CODE), earlier.decoding.get(AGENT_CODE)
    return a != b and None not in (a, b)


def _last_like(plan: RunPlan, runs: Sequence[StoredRun]) -> StoredRun | None:
    """The newest run of this agent at this suite; none when this very run is there already."""
    if any(run.id == plan.record.id for run in runs):
        return None
    like = (plan.agent.name, plan.suite.name)
    return next((run for run in reversed(runs) if (run.agent, run.suite) == like), None)


_TELLING_SECONDS = 3600.0


def _needs_line(needs: RunPreview, at_most: float, source: str = "") -> str:
    from passhat._display import counted, duration, duration_range, money_range

    what = f"{counted(needs.attempts, 'attempt')} to make"
    if needs.seconds is not None:
        parts = [f"about {duration_range(needs.seconds.low, needs.seconds.high)}"]
    else:
        # All limits used up: of many attempts that says nothing about how long the run takes.
        bound = f", at most {duration(at_most)}" if at_most <= _TELLING_SECONDS else ""
        parts = [f"time unknown until the first are done{bound}"]
    low, high = round(needs.calls.low), round(needs.calls.high)
    parts.append(f"{low:,} to {high:,} calls" if low != high else counted(low, "call"))
    if needs.cost is not None:
        assumption = f" at {_FEW[0]:,} to {_MANY[0]:,} tokens a call" if needs.by_price else ""
        assumption += f" (prices of {source})" if assumption and source else ""
        parts.append(f"{money_range(needs.cost.low, needs.cost.high)}{assumption}")
    if needs.pilot:
        parts.append(f"judging by {counted(needs.pilot, 'earlier attempt')}")
    return f"{what}: {', '.join(parts)}"


_PLAIN_SECONDS = 2.0
_SHOWN_PER_SECOND = 5
_MARKS = {Verdict.PASSED: "✓", Verdict.FAILED: "✗", Verdict.MISSING: "?"}


class Display:
    """Shows a run on standard error.

    Counting an attempt is cheap: a terminal is painted by a thread a few times a second, and lines
    are written at most every two seconds.
    """

    def __init__(
        self,
        title: str = "",
        jobs: int = 1,
        *,
        verbose: bool = False,
        terminal: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title = title
        self._jobs = jobs
        self._verbose = verbose
        self._terminal = sys.stderr.isatty() if terminal is None else terminal
        self._clock = clock
        self._began = self._written = clock()
        self._seconds, self._cost = Spread(), Spread()
        self._last = ""
        self._progress: Progress | None = None
        self._live: Live | None = None
        self._note = ""
        self._ended = False

    def begin(self, title: str, jobs: int) -> Self:
        """Set title and number of jobs once the run is planned, and start the clock."""
        self._title, self._jobs = title, jobs
        self._began = self._written = self._clock()
        return self

    def __enter__(self) -> Self:
        if self._terminal:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(stderr=True),
                get_renderable=self._paint,
                refresh_per_second=_SHOWN_PER_SECOND,
                transient=True,
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()
        self._ended = True
        if self._progress is not None and self.line() != self._last:
            click.echo(self.line(), err=True)  # also the usage of a run that was stopped

    def note_attempt(self, record: AttemptRecord, progress: Progress) -> None:
        """Take note of a finished attempt."""
        self._progress = progress
        self._seconds.add(record.seconds)
        self._cost.add(record.cost)
        if self._verbose:
            self.say(attempt_line(record))
        if self._terminal:
            return
        now = self._clock()
        if progress.done == progress.total or now - self._written > _PLAIN_SECONDS:
            self._written = now
            self._last = self.line()
            click.echo(self._last, err=True)

    def say(self, text: str) -> None:
        """A line that stays, above the bar where there is one."""
        if self._live is None:
            click.echo(text, err=True)
        else:
            from passhat.reporting.terminal import plain

            self._live.console.print(plain(text))

    def note(self, text: str) -> None:
        """Show a message: next to the bar on a terminal, as a line elsewhere."""
        self._note = text
        if self._live is None:
            click.echo(text, err=True)

    def line(self) -> str:
        """How far the run is, in one line."""
        now = self._progress
        if now is None:
            return "no attempt is finished yet"
        parts = [
            f"{now.done:,} of {counted(now.total, 'attempt')}: {now.passed:,} passed, "
            f"{now.failed:,} failed, {now.missing:,} missing"
        ]
        return ", ".join([*parts, *self._extras(now)])

    def _extras(self, now: Progress) -> list[str]:
        """Facts that are shown only when they are not zero: retries, leaks, tokens ..."""
        parts = []
        if now.retries:
            last = f" (last: {now.last_retry})" if now.last_retry else ""
            parts.append(f"{counted(now.retries, 'retry', 'retries')}{last}")
        if now.leaks:
            parts.append(f"{counted(now.leaks, 'leak')} between attempts")
        if now.tokens:
            parts.append(f"{now.tokens:,.0f} tokens")
        left = now.total - now.done
        unknown = now.done - now.costed
        if now.costed and unknown and not now.cost:
            parts.append(f"cost unknown for {counted(unknown, 'attempt')}")
        elif now.costed:
            cost = f"cost {money(now.cost)}"
            if unknown:
                without = counted(unknown, "attempt")
                cost = f"cost at least {money(now.cost)}, unknown for {without}"
            share = sum_of(left, self._cost)
            if share is not None and left and not self._ended:
                cost += f", {money_range(now.cost + share.low, now.cost + share.high)} in all"
            parts.append(cost)
        if (
            left
            and not self._ended
            and (rest := time_left(left, self._jobs, self._seconds, self._run_seconds()))
        ):
            parts.append(f"{duration_range(rest.low, rest.high)} to go")
        return parts

    def _run_seconds(self) -> float:
        return self._clock() - self._began

    def _paint(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        from passhat.reporting.terminal import plain

        now = self._progress
        total, done_count = (now.total, now.done) if now else (1, 0)
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            plain(self._title, "bold"),
            ProgressBar(total=max(1, total), completed=done_count, width=24),
            Text(f"{done_count:,} of {total:,}" if now else "waiting for the first attempt"),
            Text(duration(self._run_seconds()), style="grey50"),
        )
        parts: list[RenderableType] = [bar]
        if now is not None:
            parts.append(
                Text.assemble(
                    (f"✓ {now.passed:,} passed", "#0072B2"),
                    "   ",
                    (f"✗ {now.failed:,} failed", "#E69F00"),
                    "   ",
                    f"? {now.missing:,} missing",
                )
            )
            if extras := self._extras(now):
                parts.append(Text(" · ".join(extras)))
        if self._note:
            parts.append(plain(self._note, "bold"))
        return Group(*parts)


def attempt_line(record: AttemptRecord) -> str:
    """The line that ``--verbose`` prints: number, verdict, reward, steps, seconds, category."""
    judgement = record.judgement
    reward = {Verdict.PASSED: "1", Verdict.FAILED: "0", Verdict.MISSING: "–"}[judgement.verdict]
    parts = [
        f"{_MARKS[judgement.verdict]} {record.task}#{record.number} {judgement.verdict}",
        f"reward {reward}",
        "– steps" if record.steps is None else counted(int(record.steps), "step"),
        "– s" if record.seconds is None else f"{record.seconds:.1f} s",
    ]
    if record.retries:
        parts.append(counted(record.retries, "retry", "retries"))
    if judgement.why:
        parts.append(f"{judgement.why}: {judgement.detail}" if judgement.detail else judgement.why)
    return ", ".join(parts)


class StepLines:
    """Lines of a search on standard error: one for every step, and one that is redrawn.

    Where standard error is no terminal, the beginning of a step is a line of its own.
    """

    def __init__(self) -> None:
        self.is_live = sys.stderr.isatty()

    def tell(self, line: str) -> None:
        """Write a line that stays."""
        click.echo(f"{_CLEAR if self.is_live else ''}{line}", err=True)

    def draw(self, line: str) -> None:
        """Write a line that the next one replaces."""
        if self.is_live:
            width = shutil.get_terminal_size().columns
            click.echo(f"{_CLEAR}{line[: width - 1]}", err=True, nl=False)
