"""Fresh attempts for a gate: the agent and suite of a recorded run, at some of its tasks."""

from __future__ import annotations

import asyncio
import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import click

from passhat._display import counted, money, some
from passhat.errors import InvalidValue, PasshatError
from passhat.protocol import AGENT_CODE

if TYPE_CHECKING:
    from passhat.runner import RunPlan
    from passhat.runner.run_spec import RunSpec
    from passhat.stats.gate import FreshRun, GateOptions, GateResult, Rule
    from passhat.stats.gate.confirm import Suspects
    from passhat.stats.outcomes import Run
    from passhat.store import Store

_FIRST_ROUND = 8
"""Fresh attempts per task in the first round of settling; each round doubles them."""
_OPTIONS = {"temperature": "--temperature", "attempt_seconds": "--timeout"}
_SETTINGS = {
    "top_p": "top_p",
    "reference": "canary",
    "timeouts_are": "timeouts_are",
    "max_steps": "max_steps",
    "step_seconds": "step_timeout",
}
"""Fields of a protocol, and the settings of ``passhat run`` that state them."""
_COUNTS = ("attempts", "allocation")
_IDENTITY = {
    AGENT_CODE: "the agent's code has changed since",
    "base_url": "the model is at another address",
}
"""Settings that two runs may differ in, and attempts of one run may not."""
_HINT = "Say what passhat run needs: --again '-a python:agent:answer -s jsonl:tasks.jsonl'"


@dataclass(frozen=True, slots=True)
class Again:
    """How recorded runs are run again.

    ``words`` are options of ``passhat run`` that come before what the run recorded; for the
    baseline what it recorded comes first, since they are about the new run.
    """

    words: str = ""

    def spec_of(self, run: Run, *, is_base: bool = False) -> RunSpec:
        """The spec of a recorded run, as far as it is recorded."""
        from passhat.cli.run import read_spec

        recorded = _recorded_words(run)
        stated = shlex.split(self.words)
        try:
            spec = read_spec([*stated, *recorded] if is_base else [*recorded, *stated])
        except click.UsageError as error:
            raise InvalidValue(
                f"{run.name} does not record what fresh attempts need: {error.message}", hint=_HINT
            ) from None
        # A database's address is recorded without its password; then the configured one is used.
        is_file = run.id and "://" not in run.source
        return replace(spec, store=run.source) if is_file else spec

    def make(
        self,
        run: Run,
        tasks: Sequence[str],
        attempts: int,
        purpose: str,
        *,
        is_base: bool = False,
    ) -> FreshRun:
        """Make fresh attempts at some tasks of a run; they are stored as a run of their own.

        Name and seeds follow from the run, so that the same gate finds the same attempts again
        rather than asking until the answer pleases.
        """
        from passhat.readers.store import run_from_store
        from passhat.runner.run_spec import arun
        from passhat.stats.gate import FreshRun
        from passhat.stats.gate.confirm import pick_tasks
        from passhat.store import open_store
        from passhat.store.rows import GATE_PREFIX

        identity = f"{purpose} {run.id or run.name} {run.protocol.digest} {is_base}"
        spec = replace(
            self.spec_of(run, is_base=is_base),
            tasks=tuple(tasks),
            attempts=attempts,
            name=f"{GATE_PREFIX}{purpose} {run.id or run.name}",
            seed=int.from_bytes(hashlib.sha256(identity.encode()).digest()[:4], "big"),
            random_tasks=None,
            shard=None,
            stop_when=(),
            only_missing=False,
            keep_going=True,  # a task that raises every time is what may be confirmed
        )

        def check(plan: RunPlan, store: Store, freed: int) -> None:  # noqa: ARG001
            _refuse_other_protocol(plan, run)
            click.echo(
                f"{purpose}: {counted(attempts, 'attempt')} at each of "
                f"{counted(len(tasks), 'task')} ({some(list(tasks), 5)}) by {plan.agent.name}",
                err=True,
            )

        result = asyncio.run(arun(spec, before=check, tell=lambda line: click.echo(line, err=True)))
        with open_store(str(spec.store)) as store:
            stored_run = run_from_store(store, result.stored)
        costs = stored_run.measured("cost")
        return FreshRun(
            result.id,
            "baseline" if is_base else "new",
            pick_tasks(stored_run.outcomes, tasks, attempts),
            None if costs is None else costs.total,
        )


def _recorded_words(run: Run, *, with_defaults: bool = True) -> list[str]:
    """Options of ``passhat run`` that state what the run recorded.

    Without defaults, limits that hold anyway, unless a suite sets others, are left out.
    """
    from passhat.suites import Suite

    protocol = run.protocol
    words = [] if run.agent_guessed else ["--agent", run.agent]
    words += ["--suite", protocol.suite] if protocol.suite else []
    # A user that is a model is recorded by its word, the suite's own as "scripted".
    user = protocol.user_simulator or ""
    words += ["--user", user] if ":" in user else []
    values = {
        "attempt_seconds": protocol.attempt_seconds,
        "max_steps": protocol.max_steps,
        "step_seconds": protocol.step_seconds,
        **protocol.decoding,
    }
    if not with_defaults:
        for name in ("attempt_seconds", "max_steps", "step_seconds"):
            if values[name] == getattr(Suite, name):
                del values[name]
    for name, option in _OPTIONS.items():
        if values.get(name) is not None:
            words += [option, str(values[name])]
    for name, setting in _SETTINGS.items():
        if values.get(name) is not None:
            words += ["--set", f"{setting}={values[name]}"]
    return words


def _refuse_other_protocol(plan: RunPlan, run: Run) -> None:
    """Refuse fresh attempts that would not be of the same protocol: another suite or agent."""
    differences = [
        difference
        for difference in run.protocol.differences(plan.record.protocol)
        if difference.known and difference.field not in _COUNTS
    ]
    texts = list(map(str, differences))
    earlier, now = run.protocol.decoding, plan.record.protocol.decoding
    texts += [
        text for name, text in _IDENTITY.items() if earlier.get(name) not in (None, now.get(name))
    ]
    if texts:
        raise InvalidValue(
            f"fresh attempts would not be like those of {run.name}: {some(texts, 3)}.",
            hint="Run the gate where the run was made, with the same agent, suite and settings.",
        )


def confirm_run(
    again: Again, run: Run, base: Run, options: GateOptions, attempts: int | None
) -> GateResult:
    """Judge a run against its baseline, with fresh attempts at the tasks that look broken."""
    from passhat.stats.estimate import metric as parse_metric
    from passhat.stats.gate import Confirmation, confirm_suspects, find_suspects, judge
    from passhat.stats.gate.confirm import FRESH_ATTEMPTS, count_mean_attempts

    result = judge(run, (), base, options)
    if result.incomplete:
        return result  # completed first: nothing is spent on half a run
    suspects = find_suspects(run, base, options)
    if not suspects.tasks:
        confirmation = Confirmation((), (), (), suspects.alpha)
        return judge(run, (), base, replace(options, confirmation=confirmation))
    # Before the baseline's attempts are paid for.
    _refuse_other_protocol(again.spec_of(run).plan(), run)
    fresh_base, kept = _repeat_baseline(again, run, base, suspects, attempts or FRESH_ATTEMPTS)
    needed = FRESH_ATTEMPTS if fresh_base is not None else suspects.attempts_to_confirm()
    fresh = again.make(run, suspects.names, attempts or needed, "confirm")
    metric, terms = parse_metric(options.metric), options.terms
    pairing, everywhere = suspects.pairing, None
    if more := count_mean_attempts(pairing, metric, terms.missing, 1 - terms.level):
        everywhere = again.make(run, pairing.b.tasks, more, "confirm-mean")
    confirmation = confirm_suspects(suspects, fresh, fresh_base, kept, everywhere)
    return judge(run, (), base, replace(options, confirmation=confirmation))


def _repeat_baseline(
    again: Again, run: Run, base: Run, suspects: Suspects, attempts: int
) -> tuple[FreshRun | None, str]:
    """Fresh attempts of the baseline's agent; or none, and why."""
    if base.agent_guessed or base.protocol.suite is None:
        return None, "its agent and suite are not recorded."
    if base.agent == run.agent:
        # Its files may be the same, and still not its prompts, packages or what it calls.
        return None, f"both runs name {run.agent}, and what runs now is the new one."
    try:
        return again.make(base, suspects.names, attempts, "confirm", is_base=True), ""
    except PasshatError as error:
        return None, error.message


def settle_run(
    again: Again, run: Run, rules: Sequence[Rule], base: Run | None, options: GateOptions, most: int
) -> GateResult:
    """Judge rules on each task, with up to ``most`` further attempts at tasks not decided yet."""
    from passhat.stats.gate import GateVerdict, judge
    from passhat.stats.gate.confirm import add_attempts

    options = replace(options, anytime=True)
    fresh_runs: list[FreshRun] = []
    made, size = 0, _FIRST_ROUND
    while True:
        counts = add_attempts(run.outcomes, [fresh.outcomes for fresh in fresh_runs])
        extended = replace(run, outcomes=counts) if fresh_runs else run
        result = judge(extended, rules, base, options)
        undecided = dict.fromkeys(
            task.task
            for each in result.results
            for task in each.by_task
            if task.verdict is GateVerdict.NOT_SETTLED
        )
        if result.incomplete or not undecided or made >= most:
            return replace(result, settling=tuple(fresh_runs))
        size = min(size, most - made)
        purpose = f"settle-{len(fresh_runs) + 1}"
        fresh_runs.append(again.make(run, list(undecided), size, purpose))
        made, size = made + size, 2 * size


def offer_search(run: Run, base: Run) -> tuple[str, ...]:
    """A sentence, and the command that finds the commit between two runs with their settings.

    Nothing where the commits are not known or not in this repository, or the agent cannot be run
    again.
    """
    import numpy as np

    from passhat.agents.function import GROUP
    from passhat.runner.revisions import DIRTY, list_revisions
    from passhat.stats.changes import Search
    from passhat.stats.compare.pairing import pair

    good, bad = (one.about.get("revision", "") for one in (base, run))
    is_known = good and bad and good != bad and not (good + bad).count(DIRTY)
    names = [(one.agent, one.protocol.suite) for one in (base, run)]
    kinds = {entry.name for entry in entry_points(group=GROUP)}
    can_run = not run.agent_guessed and run.protocol.suite is not None
    if not is_known or names[0] != names[1] or not can_run:
        return ()
    if run.agent.partition(":")[0] not in kinds:
        return ()
    try:
        lineage = list_revisions(good, bad)
    except InvalidValue:
        return ()
    pairing = pair(base.outcomes, run.outcomes)
    n = np.zeros((len(lineage.revisions), len(pairing)), np.int64)
    c = np.zeros_like(n)
    for place, side in ((lineage.good, pairing.a), (lineage.bad, pairing.b)):
        n[place], c[place] = side.n, side.c
    search = Search(lineage.contains, lineage.parents, n, c, np.ones(len(n), np.bool_))
    attempts = search.foresee()
    costs = run.measured("cost")
    cost = "" if costs is None else f", {money(costs.total / costs.recorded * attempts)}"
    ends = [lineage.revisions[place].short for place in (lineage.good, lineage.bad)]
    words = ["passhat", "bisect", "--good", ends[0], "--bad", ends[1], "--", "passhat", "run"]
    commits = counted(len(lineage.parents), "commit")
    return (
        f"To find which of {commits} broke it (about {counted(attempts, 'attempt')}{cost}):",
        shlex.join([*words, *_recorded_words(run, with_defaults=False)]),
    )
