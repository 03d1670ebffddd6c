"""The suite of workspaces: a fresh copy for every attempt, hidden tests in a clean one."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from passhat.judging.bench import JudgingChoice
from passhat.judging.sandbox import SandboxFault
from passhat.judging.sandbox_kinds import SandboxKind, SandboxSpec, read_sandbox
from passhat.stats.outcomes import FailureCategory, MissingReason
from passhat.suites.base import (
    Episode,
    Judgement,
    Settings,
    Suite,
    Task,
    TaskCheck,
    Turn,
    WorldFault,
    fingerprint,
)
from passhat.suites.workspace.changes import Changes, Snapshot, find_changes
from passhat.suites.workspace.checking import Checker, Readiness
from passhat.suites.workspace.definition import WorkspaceTask
from passhat.suites.workspace.handle import Workspace, agent_kind
from passhat.suites.workspace.loading import load_folder
from passhat.suites.workspace.places import AttemptFolder, Places
from passhat.suites.workspace.results import TestRun, decide
from passhat.suites.workspace.testing import Tester
from passhat.suites.workspace.walls import CommandLimits, Walls, choose_walls, visible_programs

_PAUSE = 60.0
"""Seconds beside the agent's own limit, for its start and its end."""
_LONGEST_OUTPUT = 40_000


class WorkspaceSuite(Suite):
    """Coding tasks on a repository, judged by hidden tests: workspace:FOLDER, or a TOML file."""

    has_tools = False
    single_turn = True
    judges_programs = True
    has_workspaces = True
    takes_reference = True

    def __init__(self, rest: str) -> None:
        self._by_id = {task.id: task for task in load_folder(rest)}
        self.name = f"workspace:{rest}"
        self.tasks = tuple(
            Task(task.id, task.instruction, MappingProxyType(dict(task.labels)))
            for task in self._by_id.values()
        )
        longest = max(task.agent_seconds for task in self._by_id.values())
        self.step_seconds = longest + _PAUSE
        self.attempt_seconds = longest + 2 * _PAUSE
        self._choice = JudgingChoice()
        self._keep_home = False
        self._stores: tuple[str, ...] = ()
        self.places = Places()
        self._checker: Checker | None = None

    def configure(self, settings: Settings) -> None:
        super().configure(settings)
        self._keep_home = settings.keep_home
        # Other stores and exports are beside this one.
        folder = str(Path(settings.store).resolve().parent) if settings.store else "/"
        self._stores = (folder,) if folder != "/" else ()

    def judge_with(self, choice: JudgingChoice) -> None:
        """Choose the sandbox; before the first episode."""
        self._choice = choice

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint([task.agent_data() for task in self._by_id.values()])

    @cached_property
    def judge_fingerprint(self) -> str:
        return fingerprint([task.judge_data() for task in self._by_id.values()])

    @cached_property
    def kind(self) -> SandboxSpec:
        """The sandbox of agents and tests; raises SandboxUnavailable."""
        return choose_walls(read_sandbox(self._choice.sandbox), unsafe=self._choice.unsafe)

    @cached_property
    def judge(self) -> str:
        """The judge by name. A plan reads it, so that a refusal comes before any attempt."""
        walls = "UNSAFE: no sandbox" if self.kind is SandboxKind.NONE else str(self.kind)
        home = "; the agent keeps the user's home" if self._keep_home else ""
        return f"hidden tests ({walls}){home}"

    @cached_property
    def tester(self) -> Tester:
        """Runs tests in clean copies."""
        secrets = {path for task in self._by_id.values() for path in task.secrets()}
        return Tester(self.kind, self.places, sorted({*secrets, *self._stores}))

    @property
    def checker(self) -> Checker:
        """Prepares and checks tasks; of one event loop."""
        if self._checker is None:
            self._checker = Checker(self.tester, self.places, os.cpu_count() or 1)
        return self._checker

    async def check(self, tasks: Sequence[Task]) -> list[TaskCheck]:
        """Prepare the tasks; test the start and the reference of each."""
        ready = await asyncio.gather(*(self.checker.ready(self._by_id[task.id]) for task in tasks))
        return [one.check for one in ready]

    async def episode(self, task: Task, seed: int) -> _Attempt:  # noqa: ARG002 - nothing is random
        definition = self._by_id[task.id]
        ready = await self.checker.ready(definition)
        if ready.check.problems:
            raise WorldFault(MissingReason.JUDGE_ERROR, "; ".join(ready.check.problems))
        try:
            place = await self.places.attempt(ready.base)
            snapshot = await self.places.snapshot(ready.base, place)
        except OSError as error:
            raise WorldFault(MissingReason.INFRASTRUCTURE, str(error)) from None
        return _Attempt(self, definition, ready, place, snapshot)

    def workspace(
        self, task: WorkspaceTask, ready: Readiness, place: AttemptFolder, snapshot: Snapshot
    ) -> Workspace:
        """The workspace of an attempt, as its agent gets it."""
        kind = agent_kind(self.kind)
        home = str(Path.home())
        folders = {ready.base.tree: place.work}
        visible = visible_programs()
        secrets = self.tester.hidden_paths()
        if self._keep_home:
            folders[home] = home
            secrets = tuple(path for path in secrets if path != home)
        own_home = place.home
        if kind is SandboxKind.BUBBLEWRAP:  # the same path in every attempt
            own_home = str(Path(ready.base.tree).with_name("home"))
        if not self._keep_home:
            folders[own_home] = place.home
        walls = Walls(folders, place.temporary, hidden=secrets, visible=visible, network=True)
        limits = CommandLimits(task.agent_seconds, task.limits.memory, task.limits.disk)
        return Workspace(
            Path(place.work),
            "" if self._keep_home else own_home,
            ready.base.tree,
            walls,
            kind,
            limits,
            snapshot,
        )

    async def close(self) -> None:
        """Remove the folders of attempts."""
        await self.places.close()
        self._checker = None


class _Attempt(Episode):
    """A fresh workspace, an instruction, and the tests."""

    def __init__(
        self,
        suite: WorkspaceSuite,
        task: WorkspaceTask,
        ready: Readiness,
        place: AttemptFolder,
        snapshot: Snapshot,
    ) -> None:
        self._suite = suite
        self._task = task
        self._ready = ready
        self._place = place
        self._snapshot = snapshot
        self._answer = ""
        self._clean: asyncio.Task[AttemptFolder] | None = None
        self._off_the_clock: Callable[[], AbstractContextManager[None]] = nullcontext
        self.workspace = suite.workspace(task, ready, place, snapshot)

    def join(self, attempt: object) -> None:
        self._off_the_clock = attempt.meter.off_the_clock  # type: ignore[attr-defined]

    def open(self) -> Turn:
        # While the agent works: the copy that its changes are tested in costs no time then.
        self._clean = asyncio.create_task(self._suite.places.attempt(self._ready.base))
        return Turn(self._task.instruction)

    def reply(self, answer: str) -> Turn | None:
        self._answer = answer
        return None

    async def judge(self) -> Judgement:
        with self._off_the_clock():
            changes = await asyncio.to_thread(
                find_changes,
                self._task,
                self._ready.base.tree,
                self._place.work,
                self._snapshot,
            )
            self._remark(changes, None)
            if not changes.changes:
                return self._judge_nothing(changes)
            try:
                run = await self._suite.tester.run_tests(
                    self._task, self._ready.base, changes.changes, await self._take_clean()
                )
            except SandboxFault as error:
                raise WorldFault(MissingReason.SANDBOX_ERROR, str(error)) from None
            except OSError as error:
                raise WorldFault(MissingReason.INFRASTRUCTURE, str(error)) from None
        self._remark(changes, run)
        judgement = decide(self._task, run, self._ready.expected)
        return replace(judgement, got=changes.summary)

    async def _take_clean(self) -> AttemptFolder | None:
        """The clean copy, once; a judge that is asked again makes its own."""
        copying, self._clean = self._clean, None
        return None if copying is None else await copying

    def _judge_nothing(self, changes: Changes) -> Judgement:
        lines = self._answer.strip().splitlines()
        last_line = f"; it ended with: {lines[-1][:200]}" if lines else ""
        what = "only changes that do not count" if changes.refused else "it changed nothing"
        judgement = Judgement.failed(FailureCategory.MISSING_OUTPUTS, f"{what}{last_line}")
        return replace(judgement, got=changes.summary, score=0.0)

    def _remark(self, changes: Changes, run: TestRun | None) -> None:
        """Keep the diff and the output of the tests with the attempt."""
        content = repr([(c.path, c.content, c.target, c.executable) for c in changes.changes])
        self.answer_hash = hashlib.sha256(content.encode()).hexdigest()[:16]
        diff = "\n".join(part for part in (changes.diff, changes.notes) if part)
        remarks = [("diff", diff or "nothing changed")]
        if run is not None:
            output = "\n".join(part for part in (run.end.output, run.end.errors) if part.strip())
            short = output[-_LONGEST_OUTPUT:]
            status = f"[exit status {run.end.status}, {run.end.seconds:.1f} s]"
            remarks.append(("tests", f"{short.rstrip()}\n{status}".lstrip()))
        self.remarks = tuple(remarks)

    async def close(self) -> None:
        self._suite.places.discard(self._place)
        if self._clean is not None:
            with suppress(OSError):
                self._suite.places.discard(await self._clean)
