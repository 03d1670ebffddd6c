"""Description of a run, for the command line, the config file, Python, and Ray workers.

``RunSpec -> load() -> plan() -> run``: a spec holds words or objects, loading turns words into a
suite and agents, and the plan has the protocol that decides which run in the store continues.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from passhat.agents import Agent, as_agent, load_agent
from passhat.agents.chat import ChatAgent
from passhat.agents.command import pass_variables
from passhat.agents.function import FunctionAgent
from passhat.agents.prices import PriceTable, read_prices
from passhat.errors import InvalidValue, StoreUnavailable
from passhat.judging.bench import JudgingChoice
from passhat.protocol import AGENT_CODE, Protocol, Question, Scalar
from passhat.runner.attempt import maybe_await
from passhat.runner.boundary import run_guarded
from passhat.runner.redaction import Redactor
from passhat.runner.run import (
    RETRY_SECONDS,
    Harness,
    Progress,
    RunPlan,
    Seen,
    Stop,
    Work,
    run_attempts,
    silent,
)
from passhat.runner.spending import Spending, budget_for, prepare
from passhat.runner.task_choice import (
    Shard,
    choose_tasks,
    digest_selection,
    distribute_attempts,
    refuse_other_attempts,
    refuse_pair,
)
from passhat.runner.telemetry import Telemetry, telemetry_for
from passhat.runner.time_limits import AttemptLimits
from passhat.runner.users import attach_judges, with_user
from passhat.runner.workers import MOST_WORKERS, WorkerAgent, attach_graders, can_have_workers
from passhat.stats.plan import Allocation
from passhat.store import (
    DEFAULT_PATH,
    LEASE_SECONDS,
    RunRecord,
    Store,
    StoredRun,
    open_store,
)
from passhat.suites import Suite, load_suite
from passhat.suites.base import Settings

T = TypeVar("T")
_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Loaded:
    """A spec's suite and agent as objects; ``models`` are all that spend: the agent, and a user."""

    suite: Suite
    agent: Agent
    models: Sequence[Agent]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """Everything a run needs.

    Attributes
    ----------
    agent, suite : str or object
        Words such as ``openai:gpt-5`` and ``jsonl:tasks.jsonl``, or an agent and a suite. Ray
        workers load them for themselves, so there they must be words.
    attempts : int or Allocation
        Attempts at every task, or at each, as an earlier run showed where they decide.
    store : str or Store
        A path, ``postgresql://...``, or an open store (which stays open).
    tasks : tuple of str
        Only these tasks, by id or by position from 0. All tasks if empty.
    random_tasks : int, optional
        Only so many tasks, drawn by ``seed``.
    shard : Shard, optional
        Only this part of the tasks.
    jobs : int
        Attempts at the same time.
    max_steps, step_seconds, attempt_seconds
        Limits of one attempt: turns, seconds for one answer (60) and in all (600); the suite's
        usual ones if ``None``.
    name : str
        Distinguishes runs that are otherwise the same.
    lease_seconds : float
        How long attempts claimed here are kept when this process gives no sign of life.
    user : str, optional
        The agent that plays the user.
    tools : str
        ``text``, or ``mcp`` for an MCP endpoint of every attempt.
    in_process : bool
        Call a function ``python:MODULE:NAME`` in this process, rather than in worker processes.
        Functions that are given as objects always are.
    isolate : bool
        Run a Python agent in a process of its own for every attempt, so that it can be killed.
    agent_memory : int, optional
        The most memory of such a process, in MiB.
    canary : bool, optional
        Whether conversations carry a reference by which a leak is detected; by default those of
        suites made of conversations do, and prompts that are graded word for word do not.
    stop_when : tuple of str
        Rules such as ``pass^4 >= 0.6``; the run ends once they are settled.
    give_up_after : int
        Stop when so many attempts in a row got no answer at all; 0 never stops.
    keep_going : bool
        Count the first three attempts, too, when all raise the same exception, give an empty or
        unusable answer, are refused, cut or late, or meet a judge that raises; else the run stops.
    wait : bool
        Stay until other runners of the run have finished, and make what they leave.
    pass_env : tuple of str
        Variables that a ``command:`` agent gets beside ``PATH`` and the like.
    only_missing : bool
        Make attempts without a verdict again.
    timeouts_are : {"missing", "failed"}, optional
        Whose fault a late answer is. By default the agent's (failed), and for a bare model behind
        an API the server's (missing).
    spending : Spending
        Caps, rates and retries.
    prices : PriceTable, optional
        Prices of models; those that ship with passhat by default.
    judging : JudgingChoice, optional
        How programs are judged; only for suites of programs.
    judges : int, optional
        How many programs are judged at once; one per processor by default.
    settings : Settings
        Options that only some suites use.
    question : Question, optional
        What the run is to answer; recorded with the protocol, before the first attempt.
    otlp : str, optional
        Address of an OpenTelemetry collector (OTLP/HTTP) that every attempt is sent to as a trace.
    otlp_port : int, optional
        Port on 127.0.0.1 that takes the spans of an agent that is not started here.
    revision : str
        The state of the code, such as a commit of git; recorded with the run.
    redact : Redactor
        Removes secrets from everything that is stored.
    """

    agent: str | Agent | Callable[..., object]
    suite: str | Suite
    attempts: int | Allocation = 4
    store: str | Store = DEFAULT_PATH
    tasks: tuple[str, ...] = ()
    random_tasks: int | None = None
    shard: Shard | None = None
    seed: int = 0
    jobs: int = 8
    max_steps: int | None = None
    step_seconds: float | None = None
    attempt_seconds: float | None = None
    temperature: float | None = None
    top_p: float | None = None
    name: str = ""
    lease_seconds: float = LEASE_SECONDS
    user: str | None = None
    tools: str = "text"
    in_process: bool = False
    isolate: bool = False
    agent_memory: int | None = None
    canary: bool | None = None
    stop_when: tuple[str, ...] = ()
    give_up_after: int = 8
    keep_going: bool = False
    wait: bool = False
    pass_env: tuple[str, ...] = ()
    only_missing: bool = False
    timeouts_are: str | None = None
    spending: Spending = field(default_factory=Spending)
    prices: PriceTable | None = None
    judging: JudgingChoice | None = None
    judges: int | None = None
    settings: Settings = field(default_factory=Settings)
    question: Question | None = None
    otlp: str | None = None
    otlp_port: int | None = None
    revision: str = ""
    redact: Redactor = field(default_factory=lambda: Redactor(os.environ))

    def __post_init__(self) -> None:
        for name in ("attempts", "jobs"):
            value = getattr(self, name)
            if isinstance(value, Allocation):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidValue(
                    f"{name} must be a whole number of at least 1, not {value!r}.",
                    hint="On the command line these are -n and --jobs.",
                )
        if self.timeouts_are not in (None, "missing", "failed"):
            raise InvalidValue(
                f"timeouts_are must be 'missing' or 'failed', not {self.timeouts_are!r}."
            )
        if self.tools not in ("text", "mcp"):
            raise InvalidValue(f"tools must be 'text' or 'mcp', not {self.tools!r}.")
        if isinstance(self.attempts, Allocation) and self.stop_when:
            raise InvalidValue(
                "--stop-when needs the same number of attempts at every task, and the plan gives "
                "tasks different ones.",
                hint="Leave out --stop-when, or give --attempts a number.",
            )
        if self.shard is not None and self.stop_when:
            raise InvalidValue(
                "--stop-when looks at all tasks, and a shard sees only its own.",
                hint="Let runners share one --store without --shard, or gate the merged store.",
            )

    @property
    def is_portable(self) -> bool:
        """Whether another process can load the same suite and agent: both are words."""
        return isinstance(self.suite, str) and isinstance(self.agent, str)

    def load(self) -> Loaded:
        """Load suite and agent; put prices, rates, the judge and the user in place."""
        settings = replace(
            self.settings,
            user=self.user,
            max_steps=self.max_steps,
            attempt_seconds=self.attempt_seconds,
            temperature=self.temperature,
            store=self.store if isinstance(self.store, str) else None,
        )
        suite = load_suite(self.suite, settings) if isinstance(self.suite, str) else self.suite
        agent = self._agent(suite)
        self._choose_judge(suite)
        models = [agent]
        if self.user is not None and self.user != "scripted" and not suite.takes_user:
            models.append(load_agent(self.user))
            suite = with_user(suite, models[-1])
        models += attach_judges(suite)
        if not self.in_process:
            attach_graders(suite)
        pass_variables(models, self.pass_env)
        prepare(models, self.spending, self.prices or read_prices(None))
        if self.tools == "mcp":
            from passhat.runner.mcp import McpSuite

            suite = McpSuite(suite)
        return Loaded(suite, agent, models)

    def _agent(self, suite: Suite) -> Agent:
        agent = self._load_agent(suite)
        if (name := self.redact(agent.name)) != agent.name:
            agent.name = name  # it is stored and shown: a key among a command's words is not
        return agent

    def _load_agent(self, suite: Suite) -> Agent:
        is_function = isinstance(self.agent, str) and self.agent.startswith("python:")
        # A coding agent gets its folder in a process of its own, behind walls.
        isolate_function = suite.has_workspaces and is_function and not self.in_process
        if not self.isolate and not isolate_function:
            agent = as_agent(self.agent)
            is_word = isinstance(self.agent, str) and not self.in_process
            if is_word and self.jobs <= MOST_WORKERS and can_have_workers(agent):
                return WorkerAgent(agent)
            return agent
        if not isinstance(self.agent, str):
            raise InvalidValue(
                "isolate needs an agent that another process can import, and an object was given.",
                hint="Name it: agent='python:MODULE:NAME'.",
            )
        from passhat.agents.isolated import isolate

        agent = load_agent(self.agent)  # a mistake in its module is found before the first attempt
        if isolate_function and type(agent) is not FunctionAgent:
            return agent
        isolated = isolate(self.agent, self.agent_memory)
        isolated.source_files = agent.source_files
        return isolated

    def plan(
        self, loaded: Loaded | None = None, *, tell: Callable[[str], None] = silent
    ) -> RunPlan:
        """The plan for all chosen tasks, with the protocol of the run."""
        loaded = loaded or self.load()
        suite, agent = loaded.suite, loaded.agent
        refuse_pair(suite, agent)
        tasks = choose_tasks(suite, self.tasks, self.random_tasks, self.seed)
        limits = self._limits(suite)
        protocol = (
            suite.protocol if isinstance(suite, Harness) else self._protocol(suite, agent, limits)
        )
        return RunPlan(
            suite=suite,
            agent=agent,
            record=RunRecord(
                *(agent.name, protocol, tasks, self.name, digest_selection(suite, tasks)),
                revision=self.revision,
            ),
            tasks=tasks if self.shard is None else self.shard.of(tasks),
            attempts=distribute_attempts(self.attempts, suite, tasks, tell),
            limits=limits,
            jobs=self.jobs,
            seed=self.seed,
            temperature=self.temperature,
            top_p=self.top_p,
            redact=self.redact,
            stop_when=self.stop_when,
            give_up_after=self.give_up_after,
            keep_going=self.keep_going,
            wait=self.wait,
            canary=suite.takes_reference if self.canary is None else self.canary,
            timeouts_are_missing=self.timeouts_are_missing(agent),
            tell=tell,
        )

    def telemetry(
        self, loaded: Loaded, run: str, tell: Callable[[str], None] = silent
    ) -> Telemetry | None:
        """Where spans go to and come from; ``None`` where there are none."""
        if loaded.suite.harness:
            if self.otlp is not None or self.otlp_port is not None:
                raise InvalidValue(
                    f"otlp does not go with {loaded.suite.name}: its attempts are made by "
                    f"{loaded.suite.harness} itself, which has tracing of its own."
                )
            return None
        return telemetry_for(
            loaded.agent,
            otlp=self.otlp,
            port=self.otlp_port,
            prices=self.prices or read_prices(None),
            about=(run, loaded.suite.name),
            tell=tell,
        )

    def timeouts_are_missing(self, agent: Agent) -> bool:
        """Whether a late answer is the server's fault."""
        if self.timeouts_are is None:
            return isinstance(agent, ChatAgent)
        return self.timeouts_are == "missing"

    def _limits(self, suite: Suite) -> AttemptLimits:
        return AttemptLimits(
            self.max_steps or suite.max_steps,
            self.step_seconds or suite.step_seconds,
            self.attempt_seconds or suite.attempt_seconds,
        )

    def _protocol(self, suite: Suite, agent: Agent, limits: AttemptLimits) -> Protocol:
        # Settings of the agent's own word, overridden by those of the run.
        options: dict[str, Scalar | None] = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "reference": self.canary,
            "timeouts_are": self.timeouts_are,
        }
        decoding = {name: value for name, value in options.items() if value is not None}
        if agent.source_files:
            decoding[AGENT_CODE] = _digest_of(agent.source_files)
        return Protocol(
            suite=suite.name,
            suite_fingerprint=suite.fingerprint,
            tests_fingerprint=suite.judge_fingerprint,
            decoding={**agent.decoding, **decoding},
            max_steps=limits.max_steps,
            step_seconds=limits.step_seconds,
            attempt_seconds=limits.attempt_seconds,
            user_simulator=suite.user_simulator,
            judge=suite.judge,
            question=self.question or Question(),
        )

    def _choose_judge(self, suite: Suite) -> None:
        """Pass the judging options to a suite of programs; refuse them for any other suite."""
        if suite.judges_programs:
            suite.judge_with(replace(self.judging or JudgingChoice(), jobs=self.judges))
        elif self.judging is not None:
            raise InvalidValue(
                f"{suite.name} has no programs to judge, so --sandbox, --python, --with and the "
                "limits of programs mean nothing there.",
                hint="They go with code suites, as in -s code:ordercode.",
            )


def _digest_of(files: Sequence[Path]) -> str:
    """Sixteen digits that change with the content of the files; not with their places."""
    digest = hashlib.sha256()
    for file in files:
        with suppress(OSError), file.open("rb") as stream:  # deleted since it was imported
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of a run.

    Attributes
    ----------
    id : str
        The run's id in the store.
    store : str
        Where the store is, without a password.
    stored : StoredRun
        The run as the store has it now, with earlier attempts.
    plan : RunPlan
        The plan of the run.
    progress : Progress
        Counts of the attempts that this call added.
    stopped : bool
        Whether it was stopped early (Ctrl-C, a signal).
    """

    id: str
    store: str
    stored: StoredRun
    plan: RunPlan
    progress: Progress
    stopped: bool = False
    left: int = 0
    """Planned attempts that are not finished, by this or another runner."""
    unscored: int = 0
    """Attempts that ended without a verdict: missing."""
    held: int = 0
    """Attempts that other runners are making."""


Before = Callable[[RunPlan, Store, int], None]
"""Called before the first attempt with the plan, the store, and how many claims were freed."""
Engine = Callable[[RunPlan, Loaded], AbstractContextManager[Work | None]]
"""Where attempts are made, if not in this process."""


async def arun(
    spec: RunSpec,
    *,
    progress: Seen | None = None,
    tell: Callable[[str], None] = silent,
    stop: Stop | None = None,
    before: Before | None = None,
    engine: Engine | None = None,
) -> RunResult:
    """Make every planned attempt that the store does not have, and return the stored run.

    Parameters
    ----------
    progress : callable, optional
        Called with every finished attempt and the counts so far.
    tell : callable
        Called with messages for the user, such as a store that cannot be reached.
    stop : Stop, optional
        Ask it to end the run early.
    before : callable, optional
        Called once before the first attempt, when nothing is spent yet.
    engine : callable, optional
        Gives the workers that make the attempts; this process makes them otherwise.
    """
    stop = stop or Stop()
    loaded = spec.load()
    plan = spec.plan(loaded, tell=tell)
    with ExitStack() as stack:
        store = spec.store
        if isinstance(store, str):
            opening = partial(open_store, store, lease_seconds=spec.lease_seconds)
            store = stack.enter_context(await _wait_for_store(opening, stop, tell))
        refuse_other_attempts(plan, store)
        release = partial(store.release, plan.record.id, missing=spec.only_missing, account=True)
        free_count = await _wait_for_store(release, stop, tell)
        if before is not None:
            before(plan, store, free_count)
        budget = budget_for(loaded.models, spec.spending, plan.limits, store, plan.record.id)
        # Elsewhere every worker has its own.
        telemetry = None if engine else spec.telemetry(loaded, plan.record.id, tell)
        plan = replace(plan, budget=budget, telemetry=telemetry)
        others = loaded.models[1:]  # the runner itself calls the agent
        workers: AbstractContextManager[Work | None] = nullcontext()
        # With nothing to make no model is called, and no Ray worker started.
        if (others or engine is not None) and left_to_make(plan, store):
            for model in others:
                await maybe_await(model.check())
            if engine is not None:
                workers = engine(plan, loaded)
        work = stack.enter_context(workers)
        try:
            counts = await run_attempts(
                plan, store, stop, progress or (lambda _record, _progress: None), work
            )
        finally:
            if telemetry is not None:
                await telemetry.close()
            for model in loaded.models:
                for line in model.notices():
                    tell(line)
        load = partial(load_result, plan, store, counts, stopped=stop.asked)
        return await _wait_for_store(load, stop, tell)


async def _wait_for_store(work: Callable[[], T], stop: Stop, tell: Callable[[str], None]) -> T:
    """Call the store before and after the run; a server that starts is waited for."""
    clock, end = asyncio.get_running_loop().time, math.inf
    while True:
        try:
            return await asyncio.to_thread(work)
        except StoreUnavailable as error:
            if clock() >= end or stop.asked:
                raise
            if end == math.inf:
                end = clock() + RETRY_SECONDS
                tell(f"{error.message} Trying again for {RETRY_SECONDS:g} s.")
        await asyncio.sleep(_PAUSE_SECONDS)


def load_result(
    plan: RunPlan, store: Store, counts: Progress | None = None, *, stopped: bool = False
) -> RunResult:
    """The state of a plan in the store; ``counts`` are the attempts that this call added."""
    run, tasks = plan.record.id, [task.id for task in plan.tasks]
    # In one snapshot: claims that another runner gives back meanwhile would be in no count.
    with store.snapshot():
        unmade = store.load_attempts(run).left(tasks, plan.attempts)
        claim_count = sum(claims.claims for claims in store.list_claims(run))
        stored = store.find(run)
        missing_count = 0
        if stored.missing:
            unscored = store.load_attempts(run, finished=True).left(tasks, plan.attempts)
            missing_count = unscored - unmade - claim_count
    return RunResult(
        id=run,
        store=store.path,
        stored=stored,
        plan=plan,
        progress=counts or Progress(total=0),
        stopped=stopped,
        left=unmade + claim_count,
        unscored=max(missing_count, 0),
        held=claim_count,
    )


def run(
    spec: RunSpec,
    *,
    progress: Seen | None = None,
    tell: Callable[[str], None] = silent,
    stop: Stop | None = None,
) -> RunResult:
    """:func:`arun` for callers without ``await``; also where an event loop runs (a notebook)."""

    def work() -> RunResult:
        return run_guarded(arun(spec, progress=progress, tell=tell, stop=stop))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    # A second loop cannot run in the thread of the first one.
    pool = ThreadPoolExecutor(1, "passhat-run")
    result = pool.submit(work)
    pool.shutdown(wait=False)  # so that Ctrl-C is not held up until the run has ended
    return result.result()


def left_to_make(plan: RunPlan, store: Store) -> int:
    """How many attempts of the plan the store does not have yet."""
    return store.load_attempts(plan.record.id).left([task.id for task in plan.tasks], plan.attempts)
