"""Several runners on one store, in simulated time: every interleaving comes from one seed.

The real runner, its queues, retries and leases, and a real store run here. Simulated are the clock,
the event loops, the threads and what goes wrong. Each statement of a store is a step, and so is
each turn of a runner's loop; which one is next, and what happens to it, is drawn. Runners are
paused and killed between two statements, calls are slow, fail before they are made, or fail after
they were made, and runs are removed while runners are at work.

After each write the tables are compared with :class:`Model`, plain Python that says which change
the present call may make. :class:`Broken` names the seed, the episode and the step.
"""

from __future__ import annotations

import asyncio
import gc
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

from passhat.agents import Agent, AttemptInfo, Session
from passhat.agents.base import ModelCall, Usage
from passhat.errors import InvalidValue, PasshatError, RunStopped, StoreUnavailable
from passhat.protocol import Protocol
from passhat.runner.attempt import seed_of
from passhat.runner.queues import StoreThread
from passhat.runner.run import Progress, RunPlan, Stop, _Execution, _work, expire_leases
from passhat.stats.outcomes import FailureCategory, MissingReason, Verdict
from passhat.store import AttemptRecord, PlannedAttempts, RunRecord, Store, open_store
from passhat.store.leases import Heartbeat
from passhat.suites.base import Episode, Judgement, Suite, Task, Turn, WorldFault
from simulated_model import Broken, Call, Entry, Model, Tables, find_mark, verdict_of
from simulated_time import NEVER, Fiber, Killed, SimulatedLoop

__all__ = ["Broken", "Settings", "Simulation", "Tally", "prepare_postgres"]


@dataclass
class Tally:
    """What happened in a simulation."""

    steps: int = 0
    episodes: int = 0
    runners: int = 0
    kills: int = 0
    pauses: int = 0
    slow_calls: int = 0
    failed_calls: int = 0
    lost_answers: int = 0
    takeovers: int = 0
    dropped: int = 0
    removals: int = 0
    refused_removals: int = 0
    written: int = 0
    trace: int = 0
    """A checksum of all decisions: the same seed gives the same one."""


class SimulatedThread(StoreThread):
    """The store's thread of a runner: a call at a time, each a fiber."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._process = process

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        result: Future[Any] = Future()
        if self._process.is_dead:
            result.cancel()
        else:
            self._process.calls.append((work, result))
        return result

    def close(self) -> None:
        pass


class SimulatedHeartbeat(Heartbeat):
    """Renews the lease when the simulation lets it."""

    def __init__(self, process: Process, renew: Callable[[], None], end: Any, seconds: float):
        super().__init__(renew, end, lambda: None, seconds)
        self._process = process
        self.seconds = seconds

    def start(self) -> None:
        if self._process.next_beat == NEVER:
            self._process.next_beat = self._process.simulation.now + self._every

    def stop(self) -> None:
        was_started = self._process.next_beat < NEVER
        self._process.next_beat = NEVER
        with suppress(PasshatError):
            self._end(was_started)

    def beat(self) -> None:
        """One renewal; sooner again after a failure."""
        pause = self._every
        try:
            self._renew()
        except PasshatError:
            pause = min(1.0, self._every)
        if self._process.next_beat < NEVER:
            self._process.next_beat = self._process.simulation.now + pause


class SimulatedDatabase:
    """A connection; each of its statements waits for its turn, and may fail."""

    def __init__(self, process: Process, connection: Any, is_postgres: bool) -> None:
        self._process = process
        self._connection = connection
        self._is_postgres = is_postgres
        self.waiting: Fiber | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        return self._step(sql, lambda: self._connection.execute(sql, parameters))

    def executemany(self, sql: str, parameters: Any, /) -> Any:
        rows = list(parameters)
        return self._step(sql, lambda: self._connection.executemany(sql, rows))

    def interrupt(self) -> None:
        """What waits fails: perhaps it was never sent, perhaps its answer is lost."""
        if self.waiting is not None:
            draw = self._process.simulation.draw
            self.waiting.fault = draw.choice(("before", "after"))
            self.waiting.ready_at = 0.0

    def _step(self, sql: str, run: Callable[[], Any]) -> Any:
        process = self._process
        if process.is_dead:
            raise Killed
        if sql.startswith("PRAGMA busy_timeout"):
            return None  # nobody waits in simulated time
        fiber = process.current_fiber
        fault = ""
        if fiber is not None:
            self.waiting = fiber
            try:
                fault = fiber.wait(sql)
            finally:
                self.waiting = None
        # A rollback of SQLite writes nothing, and cannot fail.
        if fault == "before" and (self._is_postgres or not sql.startswith("ROLLBACK")):
            self._break()
        if "clock_timestamp" in sql:
            now = process.simulation.now
            self._connection.execute("SELECT set_config('simulated.now', ?, false)", (str(now),))
        rows = run()
        if not sql.startswith(("SELECT", "BEGIN", "ROLLBACK")) and not self.in_transaction:
            process.simulation.check(process.simulation.compare_tables, process)
        if fault == "after" and (self._is_postgres or not sql.startswith("ROLLBACK")):
            self._break()
        return rows

    def _break(self) -> None:
        if self._is_postgres:
            self._connection.close()
        raise StoreUnavailable("was cut off.", source="the simulation")


class SimulatedSuite(Suite):
    """Questions whose answers begin with yes or no."""

    name = "simulated"

    def __init__(self, count: int) -> None:
        self._tasks = [Task(f"t{i}", "?") for i in range(count)]

    @property
    def tasks(self) -> Sequence[Task]:
        return self._tasks

    def episode(self, task: Task, seed: int) -> Episode:
        del task, seed
        return _Question()


class _Question(Episode):
    def __init__(self) -> None:
        self._answer = ""

    def open(self) -> Turn:
        return Turn("?")

    def reply(self, answer: str) -> None:
        self._answer = answer

    def judge(self) -> Judgement:
        if self._answer.startswith("yes"):
            return Judgement.passed()
        return Judgement.failed(FailureCategory.WRONG_ANSWER)


class SimulatedAgent(Agent):
    """Answers by the attempt's seed alone, marked with a number that no other answer has."""

    name = "simulated"

    def __init__(self, process: Process) -> None:
        self._process = process

    async def session(self, attempt: AttemptInfo) -> Session:
        return _Talk(self._process, attempt)


class _Talk(Session):
    def __init__(self, process: Process, attempt: AttemptInfo) -> None:
        self._process = process
        self._attempt = attempt
        self._mark = process.simulation.model.note_made(process, attempt)
        self.usage = Usage(1.0, float(self._mark))

    async def answer(self, _turn: Turn) -> str:
        simulation, attempt = self._process.simulation, self._attempt
        await asyncio.sleep(simulation.draw.expovariate(1 / simulation.episode.answer_seconds))
        attempt.meter.record(ModelCall("simulated", reply=f"mark {self._mark}"))
        if simulation.draw.random() < simulation.episode.missing:
            raise WorldFault(MissingReason.INFRASTRUCTURE, f"mark {self._mark}")
        passed = verdict_of(attempt.seed) is Verdict.PASSED
        return f"{'yes' if passed else 'no'} mark {self._mark}"


class Process:
    """A runner, or somebody who removes a run: one store, one loop, one thread for its calls."""

    def __init__(self, simulation: Simulation, number: int, lease_seconds: float) -> None:
        self.simulation = simulation
        self.number = number
        self.machine = simulation.draw.choice(("m0", "m0", "m1", "m2"))
        self.is_dead = self.was_killed = False
        self.paused_until = 0.0
        self.next_beat = NEVER
        self.calls: list[tuple[Callable[[], Any], Future[Any]]] = []
        self.call = Call("")
        self.fiber: Fiber | None = None
        self.beating: Fiber | None = None
        self.current_fiber: Fiber | None = None
        self.generation = ""
        self.stop = Stop()
        self.ended = False
        self.told: list[str] = []
        self.observed: dict[str, bool] = {}
        self.loop = SimulatedLoop(lambda: simulation.now)
        self.loop.set_exception_handler(self._note_unseen)
        self.store = self._open(lease_seconds)
        self.token = self.store._token
        self.task: asyncio.Task[None] | None = None

    def _open(self, lease_seconds: float) -> Store:
        store = open_store(self.simulation.place, lease_seconds=lease_seconds)
        is_postgres = self.simulation.is_postgres
        database = SimulatedDatabase(self, store._db, is_postgres)
        beating = getattr(store, "_beating", None)
        if beating is None:
            beating = open_store(self.simulation.place)._db
            for connection in (store._db, beating):
                connection.execute("PRAGMA busy_timeout = 0")
        self._connections = (store._db, beating)
        store._db = database
        store._beating = SimulatedDatabase(self, beating, is_postgres)  # type: ignore[attr-defined]
        heart = SimulatedHeartbeat(
            self,
            store._beat,  # type: ignore[attr-defined]
            store._end_lease,  # type: ignore[attr-defined]
            lease_seconds,
        )
        store._heart = self.heart = heart
        for name in ("claim", "finish", "release", "begin", "remove", "list_claims"):
            self._note_calls(store, name)
        return store

    def _note_calls(self, store: Store, name: str) -> None:
        """Tell the model what is being asked for."""
        work = getattr(store, name)

        def call(run: Any, *rest: Any, **named: Any) -> Any:
            if name == "list_claims":  # asked for by others, too
                claims = work(run, *rest, **named)
                now = self.simulation.now
                for held in claims:
                    alive = self.simulation.model.is_alive(held.token, now)
                    self.observed[held.token] = alive
                    if held.expired and alive:
                        self.simulation.broken = Broken(f"{held} is called expired, and lives")
                return claims
            self.call = Call(name)
            if name == "claim":
                self.call.keys = frozenset(rest[0])
            elif name == "finish":
                self.call.marks = {(r.task, r.number): int(r.cost) for r in rest[0]}
            elif name == "release":
                self.call.drops_missing = bool(named.get("missing"))
            elif name == "remove":
                self.call.is_forced = bool(named.get("force"))
            answer = work(run, *rest, **named)
            if name == "begin":
                self.generation = store._generations[run.id]
            self.simulation.check(self.simulation.check_answer, self, answer, rest)
            return answer

        setattr(store, name, call)

    def _note_unseen(self, _loop: object, context: dict[str, Any]) -> None:
        """An error that nobody took notice of would be printed in the middle of a run."""
        if not self.was_killed:
            unseen = Broken(f"{context['message']}: {context.get('exception')!r}")
            self.simulation.broken = self.simulation.broken or unseen

    def owner_was_alive(self, token: str, now: float) -> bool:
        """Whether a lease lived when it was given up for dead."""
        return self.simulation.model.is_alive(token, now) and self.observed.get(token, True)

    # -- what there is to do -------------------------------------------------------------------

    def actions(self, now: float) -> Iterator[tuple[float, Callable[[], None]]]:
        """(when it can be done, what)."""
        if self.is_dead or self.ended:
            return
        yield max(self.loop.due(), self.paused_until), self._turn
        if self.fiber is not None:
            yield max(self.fiber.ready_at, self.paused_until), self._step_call
        elif self.calls:
            yield self.paused_until, self._begin_call
        if self.beating is not None:
            yield max(self.beating.ready_at, self.paused_until), self._step_beat
        elif self.next_beat < NEVER:
            yield max(self.next_beat, self.paused_until), self._begin_beat
        del now

    def _turn(self) -> None:
        self.loop.turn()
        if self.task is not None and self.task.done() and not self.calls and self.fiber is None:
            self.simulation.end(self)

    def _begin_call(self) -> None:
        work, result = self.calls.pop(0)
        if not result.set_running_or_notify_cancel():
            return

        def run() -> None:
            try:
                result.set_result(work())
            except Exception as error:
                result.set_exception(error)

        self.fiber = Fiber(run)
        self._step_call()

    def _step_call(self) -> None:
        assert self.fiber is not None
        self._resume(self.fiber)
        if self.fiber.done:
            self.fiber = None

    def _begin_beat(self) -> None:
        self.beating = Fiber(self.heart.beat)
        self._step_beat()

    def _step_beat(self) -> None:
        assert self.beating is not None
        before, self.call = self.call, Call("beat")
        self._resume(self.beating)
        self.call = before
        if self.beating.done:
            self.beating = None

    def _resume(self, fiber: Fiber) -> None:
        self.current_fiber = fiber
        try:
            fiber.resume()
        finally:
            self.current_fiber = None
        if not fiber.done:
            self.simulation.disturb(fiber)

    def kill(self) -> None:
        """End it with nothing said to anybody: transactions under way are rolled back."""
        self.is_dead = self.was_killed = True
        for fiber in (self.fiber, self.beating):
            if fiber is not None:
                fiber.kill()
        self.dispose()

    def dispose(self) -> None:
        """Close what this process of Python holds for it; its store hears nothing."""
        self.is_dead = True
        for connection in self._connections:
            connection.close()
        for _ in range(100):
            tasks = asyncio.all_tasks(self.loop)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            self.loop.turn()
        if self.task is not None and self.task.done() and not self.task.cancelled():
            self.task.exception()
        self.loop.close()


@dataclass(frozen=True)
class Settings:
    """What an episode draws once."""

    tasks: int
    attempts: int
    jobs: int
    runners: int
    lease_seconds: float
    answer_seconds: float
    missing: float
    trouble: float
    kills: float
    pauses: float
    removals: float

    @classmethod
    def draw(cls, draw: random.Random) -> Settings:
        return cls(
            tasks=draw.randrange(1, 5),
            attempts=draw.randrange(1, 6),
            jobs=draw.randrange(1, 5),
            runners=draw.randrange(2, 5),
            lease_seconds=draw.choice((1.0, 1.0, 2.0, 30.0)),
            answer_seconds=draw.choice((0.01, 0.5, 4.0)),
            missing=draw.choice((0.0, 0.1)),
            trouble=draw.choice((0.0, 0.02, 0.1)),
            kills=draw.choice((0.0, 0.005, 0.02)),
            pauses=draw.choice((0.0, 0.01, 0.04)),
            removals=draw.choice((0.0, 0.005, 0.02)),
        )


_PAUSES = (0.5, 2.0, 4.0, 40.0)
"""Seconds. The claims of a paused runner are kept, being made by another, or finished."""
_TABLES = (
    "SELECT r.generation, t.task, a.number, a.owner, a.verdict, a.seed, a.cost, x.body, c.body "
    "FROM runs r LEFT JOIN attempts a ON a.run = r.key "
    "LEFT JOIN tasks t ON t.run = a.run AND t.key = a.task "
    "LEFT JOIN transcripts x ON x.run = a.run AND x.task = a.task AND x.number = a.number "
    "LEFT JOIN calls c ON c.run = a.run AND c.task = a.task AND c.number = a.number"
)
_ORPHANS = " UNION ALL ".join(
    f"SELECT '{table}', count(*) FROM {table} x WHERE NOT EXISTS (SELECT 1 FROM {parent} p "
    f"WHERE {condition})"
    for table, parent, condition in (
        ("tasks", "runs", "p.key = x.run"),
        ("attempts", "tasks", "p.run = x.run AND p.key = x.task"),
        ("transcripts", "attempts", "p.run = x.run AND p.task = x.task AND p.number = x.number"),
        ("calls", "attempts", "p.run = x.run AND p.task = x.task AND p.number = x.number"),
    )
)


class Simulation:
    """Episodes on one store, each of several runners of one run.

    Parameters
    ----------
    place : str
        An empty store: a path, or the address of a database made by :func:`prepare_postgres`.
    seed : int
        Everything is drawn from it.
    settings : Settings, optional
        The same for all episodes; by default each draws its own.
    """

    def __init__(self, place: str, seed: int, settings: Settings | None = None) -> None:
        self.place = place
        self.seed = seed
        self.is_postgres = "://" in place
        self.tally = Tally()
        self.now = 1_000.0
        self.draw = random.Random(seed)
        self.model = Model()
        self._settings = settings
        self.episode = settings or Settings.draw(self.draw)
        self._processes: list[Process] = []
        self._record = RunRecord("simulated", Protocol(suite="simulated"), [])
        self._calm = False
        self.broken: Broken | None = None

    def run(self, steps: int) -> Tally:
        """Run whole episodes until so many steps are made."""
        with self._injected():
            while self.tally.steps < steps:
                number = self.tally.episodes
                self.draw = random.Random(f"{self.seed}/{number}")
                first = self.tally.steps
                try:
                    self._run_episode()
                except Exception as error:
                    for process in self._processes:
                        if not process.is_dead and not process.ended:
                            process.kill()
                    raise Broken(
                        f"seed {self.seed}, episode {number}, step {self.tally.steps - first} "
                        f"({self.tally.steps} in all): {type(error).__name__}: {error}"
                    ) from error
                self.tally.episodes += 1
        self._checker.close()
        return self.tally

    @contextmanager
    def _injected(self) -> Iterator[None]:
        """Clocks and random tokens of the store, from the simulation."""
        names = iter(range(10**9))

        def new_token() -> str:
            return f"token{next(names)}"

        with ExitStack() as stack:
            enter = stack.enter_context
            enter(mock.patch("passhat.store.base.new_token", new_token))
            clock = SimpleNamespace(monotonic=lambda: self.now, sleep=lambda _seconds: None)
            enter(mock.patch("passhat.store.sqlite.time", clock))
            enter(mock.patch("passhat.store.sqlite.clock_now", clock.monotonic))
            enter(mock.patch("passhat.store.sqlite.clock_id", self._clock_id))
            # A thread of real time has no part in simulated time.
            enter(mock.patch("passhat.runner.time_limits.LoopWatch.start"))
            # A kill ends every task of a loop, so it must find those hidden from agents.
            enter(mock.patch("passhat.runner.run.hide_task", lambda task: task))
            self._checker = open_store(self.place)
            yield

    def _clock_id(self) -> str:
        return self._acting.machine if self._acting is not None else "checker"

    _acting: Process | None = None

    # -- an episode ----------------------------------------------------------------------------

    def _run_episode(self) -> None:
        draw = self.draw
        self.episode = settings = self._settings or Settings.draw(draw)
        self._calm = False
        suite = SimulatedSuite(settings.tasks)
        self._record = RunRecord(
            f"agent-{self.tally.episodes}", Protocol(suite="simulated"), suite.tasks
        )
        self._processes = []
        for _ in range(settings.runners):
            self._start()
        last_runners = 0
        limit = self.tally.steps + 20_000
        calm_after = self.tally.steps + draw.choice((200, 600, 1_500))
        while True:
            self._calm = self.tally.steps >= calm_after
            if self.tally.steps > limit:
                raise Broken("the run does not end")
            if not any(not p.ended and not p.is_dead for p in self._processes):
                if self._is_complete():
                    break
                last_runners += self._calm
                if last_runners > 9:
                    raise Broken("nine undisturbed runners did not complete the run")
                self._start()
            self._act()
        self._check_end()

    def _is_complete(self) -> bool:
        tables = list(self.model.tables.values())
        planned = self.episode.tasks * self.episode.attempts
        return (
            len(tables) == 1 and sum(e.verdict is not None for e in tables[0].values()) == planned
        )

    def _act(self) -> None:
        """One step: what is drawn from all that can be done now, or time goes on."""
        self.tally.steps += 1
        settings, draw = self.episode, self.draw
        alive = [p for p in self._processes if not p.is_dead and not p.ended]
        if not self._calm and alive:
            process = draw.choice(alive)
            if draw.random() < settings.kills:
                self.tally.kills += 1
                self._note("kill", process.number)
                process.kill()
                if draw.random() < 0.8:
                    self._start()
                return
            if draw.random() < settings.pauses:
                self.tally.pauses += 1
                process.paused_until = self.now + draw.choice(_PAUSES)
                self._note("pause", process.number)
                return
            if draw.random() < settings.removals:
                self._remove()
                return
            if draw.random() < settings.kills:
                process.stop.ask()
                self._note("stop", process.number)
        actions = [action for process in alive for action in process.actions(self.now)]
        soonest = min((when for when, _ in actions), default=NEVER)
        if soonest == NEVER:
            raise Broken("nothing can go on")
        if soonest > self.now:
            self.now = soonest
        self.now += draw.expovariate(1 / 0.002)
        possible = [action for when, action in actions if when <= self.now]
        action = draw.choice(possible)
        owner = action.__self__  # type: ignore[attr-defined]
        self._note(action.__name__, owner.number)
        self._acting = owner
        action()
        self._acting = None
        if self.broken is not None:
            raise self.broken

    def _note(self, what: str, who: int) -> None:
        self.tally.trace = zlib.crc32(f"{what}{who}{self.now:.6f}".encode(), self.tally.trace)

    def disturb(self, fiber: Fiber) -> None:
        """Draw what happens to the statement that waits."""
        draw, trouble = self.draw, self.episode.trouble
        if self._calm or draw.random() >= trouble:
            return
        kind = draw.choice(("before", "after", "slow"))
        if kind == "slow":
            fiber.ready_at = self.now + draw.choice((1.0, 6.0, 70.0))
            self.tally.slow_calls += 1
        else:
            fiber.fault = kind
            self.tally.failed_calls += kind == "before"
            self.tally.lost_answers += kind == "after"

    def _start(self) -> None:
        process = Process(self, self.tally.runners, self.episode.lease_seconds)
        self.tally.runners += 1
        self._processes.append(process)
        self._note("start", process.number)
        only_missing = self.draw.random() < 0.2
        process.task = process.loop.create_task(self._run_runner(process, only_missing))

    async def _run_runner(self, process: Process, only_missing: bool) -> None:
        """As the command does it: free what expired, run, close."""
        plan = RunPlan(
            suite=SimulatedSuite(self.episode.tasks),
            agent=SimulatedAgent(process),
            record=self._record,
            tasks=self._record.tasks,
            attempts=PlannedAttempts(self.episode.attempts),
            jobs=self.episode.jobs,
            give_up_after=0,
            keep_going=True,
            wait=self.draw.random() < 0.3,
            tell=process.told.append,
        )
        thread, store, run = SimulatedThread(process), process.store, self._record.id

        def seen(record: AttemptRecord, _progress: Progress) -> None:
            self.check(self._check_reported, process, record)

        try:
            await expire_leases(store, run, process.stop, process.told.append, thread)
            await thread(lambda: store.release(run, missing=only_missing, account=True))
            progress = await _Execution(plan, store, process.stop, seen, thread).run(_work)
            self.check(self._check_progress, process, progress, plan.wait)
        except RunStopped as error:
            if "was removed" not in str(error):
                raise
        except StoreUnavailable:
            if self.episode.trouble == 0.0 and not self.is_postgres and len(self._processes) < 2:
                raise
        await thread(store.close)

    def _remove(self) -> None:
        """Another process removes the run, between two steps of the runners."""
        process = Process(self, -1, 30.0)
        process.is_dead = False
        self.tally.removals += 1
        forced = self.draw.random() < 0.5
        self._note("remove", int(forced))

        async def remove() -> None:
            thread = SimulatedThread(process)
            try:
                await thread(lambda: process.store.remove(self._record.id, force=forced))
            except InvalidValue:
                self.tally.refused_removals += 1
            except StoreUnavailable:
                pass
            await thread(process.store.close)

        process.task = process.loop.create_task(remove())
        self._processes.append(process)

    def end(self, process: Process) -> None:
        """A process ended by itself; an error that no runner may end with is one of ours."""
        process.ended = True
        assert process.task is not None
        error = process.task.exception()
        process.dispose()
        if error is not None:
            raise error

    # -- checks --------------------------------------------------------------------------------

    def check(self, work: Callable[..., None], *arguments: Any) -> None:
        """Make a check inside a runner, which must not take its failure for one of the store."""
        try:
            work(*arguments)
        except Broken as error:
            self.broken = self.broken or error

    def compare_tables(self, process: Process) -> None:
        """After a write: what the tables hold must be allowed by the model."""
        tables: Tables = {}
        for generation, task, number, owner, verdict, seed, cost, talk, calls in self._checker.read(
            _TABLES
        ):
            entries = tables.setdefault(generation or "", {})
            if owner is None:
                continue
            if task is None:
                raise Broken("an attempt without its task")
            entries[task, number] = Entry(
                owner,
                verdict,
                seed,
                None if cost is None else int(cost),
                find_mark(talk),
                find_mark(calls),
            )
        leases = self._checker.read("SELECT token, beats, seen, seconds FROM leases")
        before = self.model.leases.copy()
        tables.pop("", None)
        if tables != self.model.tables:
            self.model.leases = before
            self.model.change(tables, process, self.now)
        self.model.renew({token: lease for token, *lease in leases}, self.now)

    def check_answer(self, process: Process, answer: Any, rest: Sequence[Any]) -> None:
        """What claim and finish returned is what the tables hold."""
        entries = self.model.tables.get(process.generation, {})
        if process.call.kind == "claim":
            for key in answer:
                entry = entries.get(key)
                # Between the statement and its answer the run may be removed, or the lease end.
                if entry is not None and entry.verdict is not None and entry.owner != process.token:
                    continue
                if key not in rest[0]:
                    raise Broken(f"claim returned {key}, which was not asked for")
            if len(set(answer)) != len(answer):
                raise Broken(f"claim returned an attempt twice: {answer}")
        elif process.call.kind == "finish":
            dropped = {(record.task, record.number) for record in answer}
            self.tally.dropped += len(dropped)
            for record in rest[0]:
                key, mark = (record.task, record.number), int(record.cost)
                entry = entries.get(key)
                is_there = entry is not None and entry.mark == mark
                if key in dropped and is_there:
                    raise Broken(f"{key} was called dropped, and is written")

    def _check_reported(self, process: Process, record: AttemptRecord) -> None:
        """A result that a runner shows is durable, and was shown by nobody else."""
        if process.is_dead:
            return
        key, mark = (record.task, record.number), int(record.cost or 0)
        if process.generation not in self.model.tables:
            return  # removed since it was written
        entry = self.model.tables[process.generation].get(key)
        if entry is None or entry.mark != mark:
            if record.judgement.verdict is Verdict.MISSING:
                return  # deleted since by a runner that makes missing ones again
            raise Broken(f"{key} was reported with {mark}, and the store has {entry}")
        place = (process.generation, key)
        if self.model.reported.setdefault(place, mark) != mark:
            raise Broken(f"{key} was reported twice")
        self.tally.written += 1

    def _check_progress(self, process: Process, progress: Progress, waits: bool) -> None:
        """A runner that ends unasked leaves nothing that nobody makes."""
        if process.stop.asked or process.is_dead:
            return
        entries = self.model.tables.get(process.generation)
        if entries is None:
            return
        if progress.done != progress.total:
            raise Broken(f"{progress.done} of {progress.total} attempts")
        planned = {
            (task.id, number)
            for task in self._record.tasks
            for number in range(1, self.episode.attempts + 1)
        }
        left = planned - entries.keys()
        if waits and any(entry.verdict is None for entry in entries.values()):
            raise Broken("a runner that waits ended before the others")
        if left and not self._others_at_work(process):
            raise Broken(f"a runner ended, and {sorted(left)} are made by nobody")

    def _others_at_work(self, process: Process) -> bool:
        return any(p is not process and not p.is_dead and not p.ended for p in self._processes)

    def _check_end(self) -> None:
        """The run is complete: every count of it agrees, and nothing is left over."""
        ((generation, entries),) = self.model.tables.items()
        for key, entry in entries.items():
            self.model.check_whole(key, entry)
            if entry.seed != seed_of(0, *key):
                raise Broken(f"{key} has seed {entry.seed}")
        for (of, key), mark in self.model.reported.items():
            if of == generation and entries[key].mark != mark:
                raise Broken(f"{key} was reported with {mark}, and is {entries[key]}")
        self._check_counts([Verdict(entry.verdict or 0) for entry in entries.values()])
        self._checker.remove(self._record.id)
        self._processes.clear()
        self.tally.takeovers += self.model.takeovers
        gc.collect()  # errors that nobody looked at are told when they are collected
        if self.broken is not None:
            raise self.broken
        self.model = Model()
        for table, count in self._checker.read(_ORPHANS):
            if count:
                raise Broken(f"{count} rows of {table} belong to nothing")
        self._checker._db.execute("DELETE FROM leases")

    def _check_counts(self, verdicts: list[Verdict]) -> None:
        checker, run = self._checker, self._record.id
        count, passed, missing = (
            len(verdicts),
            verdicts.count(Verdict.PASSED),
            verdicts.count(Verdict.MISSING),
        )
        (stored,) = checker.runs()
        table = checker.counts(run)
        counts = {
            "runs": (stored.attempts, stored.passed, stored.missing, stored.total),
            "counts": tuple(int(x.sum()) for x in (table.n + table.m, table.c, table.m)),
            "attempts": len(checker.load_attempts(run)),
            "verdicts": sum(1 for _ in checker.verdicts(run)),
            "usage": checker.load_usage(run, priced=True).attempt_count,
        }
        expected = {
            "runs": (count, passed, missing, count),
            "counts": (count, passed, missing),
            "attempts": count,
            "verdicts": count,
            "usage": count,
        }
        if counts != expected:
            raise Broken(f"the store counts {counts}, and there are {expected}")


def prepare_postgres(address: str) -> str:
    """Give a new database a clock that the simulation sets; return the address to simulate on.

    Functions of the simulation's schema are found before those of the server. A statement that
    would wait for a lock fails at once, as one whose patience is over.
    """
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA simulated")
        for name, seconds in (
            ("clock_timestamp", "current_setting(''simulated.now'')::float8"),
            ("pg_postmaster_start_time", "0"),
        ):
            connection.execute(
                f"CREATE FUNCTION simulated.{name}() RETURNS timestamptz LANGUAGE sql STABLE AS "
                f"'SELECT to_timestamp({seconds})'"
            )
    options = (
        "-csearch_path%3Dpublic%2Csimulated%2Cpg_catalog%20-clock_timeout%3D3%20-csimulated.now%3D0"
    )
    return f"{address}&options={options}"
