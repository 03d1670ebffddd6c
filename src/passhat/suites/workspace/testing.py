"""Tests of a change: a clean copy of the start, allowed changes, hidden tests, a sandbox."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from passhat.errors import InvalidValue
from passhat.judging.sandbox_kinds import Container, SandboxKind, SandboxSpec
from passhat.suites.workspace.changes import (
    Change,
    Changes,
    apply_changes,
    copy_over,
    find_changes,
)
from passhat.suites.workspace.definition import WorkspaceTask, digest_of_tree
from passhat.suites.workspace.places import AttemptFolder, Base, Places, apply_patch
from passhat.suites.workspace.results import PytestReport, TestRun, read_results
from passhat.suites.workspace.walls import Command, Walls, run_command, visible_programs

_PASSED = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "JAVA_HOME")
_PATCHES = (".patch", ".diff")
_REPORT = "report"


class Tester:
    """Runs the tests of tasks, each time in a copy of its own."""

    def __init__(self, kind: SandboxSpec, places: Places, secrets: Sequence[str]) -> None:
        self.kind = kind
        self._places = places
        self._secrets = tuple(secrets)

    def hidden_paths(self) -> tuple[str, ...]:
        """Real paths that no code of an agent may see, its tests included."""
        # Where the run was started are earlier stores, reports, exports and patches.
        folders = [str(Path.home()), str(Path.cwd().resolve())]
        roots = [path for path in dict.fromkeys(folders) if path != "/"]
        return (*roots, str(self._places.root), *self._secrets)

    async def prepare(self, task: WorkspaceTask, real: str, path: str) -> None:
        """Run the set-up of a task in the folder that will be its start.

        Raises
        ------
        InvalidValue
            It failed; the message has the end of its output.
        """
        if not task.setup:
            return
        place = AttemptFolder(Path(real).parent)
        for folder in (place.home, place.temporary):
            Path(folder).mkdir(exist_ok=True)
        kind = self._kind_for(task)
        mount = task.place if isinstance(kind, Container) else path
        walls = Walls(
            {mount: real, place.home: place.home},
            place.temporary,
            hidden=self.hidden_paths(),
            visible=visible_programs(),
            network=True,
        )
        words = ["/bin/sh", "-c", task.setup]
        command = Command(words, mount, self._environment(place, kind), task.limits)
        end = await run_command(kind, walls, command)
        shutil.rmtree(place.home, ignore_errors=True)
        shutil.rmtree(place.temporary, ignore_errors=True)
        if end.status or end.over:
            lines = (end.output + end.errors).strip().splitlines()
            why = f"limit: {end.over}" if end.over else f"exit status {end.status}"
            raise InvalidValue(f"the set-up failed ({why}): {lines[-1] if lines else 'no output'}")

    def _kind_for(self, task: WorkspaceTask) -> SandboxSpec:
        if not task.image:
            return self.kind
        engine, _, image = task.image.partition(":")
        is_named = engine in ("docker", "podman")
        return Container(engine, image) if is_named else Container("podman", task.image)

    def _environment(self, place: AttemptFolder, kind: SandboxSpec) -> dict[str, str]:
        if isinstance(kind, Container):
            return {"HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}
        variables = {name: os.environ[name] for name in _PASSED if name in os.environ}
        # A relative entry would be a folder of the workspace.
        entries = variables.get("PATH", os.defpath).split(os.pathsep)
        path = [str(Path(sys.executable).parent), *(e for e in entries if e.startswith("/"))]
        return {
            **variables,
            "PATH": os.pathsep.join(dict.fromkeys(path)),
            "HOME": place.home,
            "TMPDIR": "/tmp" if kind is SandboxKind.BUBBLEWRAP else place.temporary,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONNOUSERSITE": "1",
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "CI": "1",
        }

    async def run_tests(
        self,
        task: WorkspaceTask,
        base: Base,
        changes: Sequence[Change],
        place: AttemptFolder | None = None,
    ) -> TestRun:
        """Test changes of a start, in a clean copy of it: ``place``, or a new one."""
        if place is None:
            place = await self._places.attempt(base)
        try:
            work = Path(place.work)
            await asyncio.to_thread(apply_changes, changes, place.work)
            frozen = await asyncio.to_thread(lay_over, task, work)
            if task.result.path:
                (work / task.result.path).unlink(missing_ok=True)
            return await self._run(task, base, place, frozen)
        finally:
            self._places.discard(place)

    async def _run(
        self, task: WorkspaceTask, base: Base, place: AttemptFolder, frozen: Sequence[str]
    ) -> TestRun:
        kind = self._kind_for(task)
        work = Path(place.work)
        mount = task.place if isinstance(kind, Container) else base.tree
        report = PytestReport(place.path / _REPORT)
        folders, results = {mount: place.work}, work
        if not isinstance(kind, Container):
            folders[place.home] = place.home
        frozen_paths = [f"{mount}/{name}" for name in frozen]
        if task.hidden_place:
            # As a harness with images has them: beside the workspace, not in it.
            assert task.hidden is not None
            copy = place.path / "tests"
            await asyncio.to_thread(shutil.copytree, task.hidden, copy, symlinks=True)
            folders[task.hidden_place] = str(copy)
            frozen_paths.append(task.hidden_place)
            results = place.path / "results"
            (results / task.result.path.lstrip("/")).parent.mkdir(parents=True)
            top = task.result.path.split("/")[1]
            folders[f"/{top}"] = str(results / top)
        walls = Walls(
            folders,
            place.temporary,
            frozen=tuple(frozen_paths),
            hidden=self.hidden_paths(),
            visible=visible_programs(),
            shown=(str(report.folder),),
            network=task.network,
            guarded=True,
        )
        before = digest_frozen(work, frozen)
        try:
            environment = self._environment(place, kind) | report.environment(str(report.folder))
            command = Command(["/bin/sh", "-c", task.test], mount, environment, task.limits)
            end = await run_command(kind, walls, command)
        finally:
            await asyncio.to_thread(report.close)
        run = await asyncio.to_thread(read_results, task, end, results, report)
        if digest_frozen(work, frozen) != before:
            return TestRun(end, run.outcomes, None, "the hidden tests were changed", True)
        return run

    async def reference_changes(self, task: WorkspaceTask, base: Base) -> Changes:
        """The reference solution as changes, with the same rules as an agent's.

        Raises
        ------
        InvalidValue
            It cannot be applied.
        """
        place = await self._places.attempt(base)
        snapshot = await self._places.snapshot(base, place)
        try:
            work = Path(place.work)
            if task.solution_patch:
                await asyncio.to_thread(apply_patch, task.solution_patch, work)
            solution = task.solution
            if solution is None:
                pass
            elif solution.is_dir() and (solution / "solve.sh").is_file():
                await self._solve(task, base, place)
            elif solution.is_dir():
                await asyncio.to_thread(copy_over, solution, work)
            elif solution.name.endswith(_PATCHES):
                await asyncio.to_thread(apply_patch, solution.read_text(encoding="utf-8"), work)
            else:
                raise InvalidValue("the solution should be a folder, or a .patch or .diff file")
            return await asyncio.to_thread(find_changes, task, base.tree, place.work, snapshot)
        finally:
            self._places.discard(place)

    async def _solve(self, task: WorkspaceTask, base: Base, place: AttemptFolder) -> None:
        """Run a script that solves the task."""
        assert task.solution is not None
        kind = self._kind_for(task)
        mount = task.place if isinstance(kind, Container) else base.tree
        folders = {mount: place.work, place.home: place.home}
        scripts = (str(task.solution),)
        hidden = tuple(path for path in self.hidden_paths() if path != str(task.solution))
        walls = Walls(
            folders, place.temporary, (), hidden, visible_programs(), scripts, network=True
        )
        words = ["/bin/sh", str(task.solution / "solve.sh")]
        command = Command(words, mount, self._environment(place, kind), task.limits)
        end = await run_command(kind, walls, command)
        if end.status or end.over:
            raise InvalidValue(f"solve.sh ended with exit status {end.status}")


def lay_over(task: WorkspaceTask, work: Path) -> list[str]:
    """Put the hidden tests into a workspace; the names at its top that they are in."""
    if task.hidden_place:
        return []
    names: set[str] = set()
    if task.hidden is not None:
        copy_over(task.hidden, work)
        names |= {path.name for path in task.hidden.iterdir()}
    if task.hidden_patch:
        apply_patch(task.hidden_patch, work)
        paths = [row[6:] for row in task.hidden_patch.splitlines() if row.startswith("+++ b/")]
        names |= {path.partition("/")[0].strip() for path in paths}
    return sorted(name for name in names if (work / name).exists())


def digest_frozen(work: Path, names: Sequence[str]) -> list[str]:
    """Digests of paths that tests must leave as they are."""
    try:
        return [
            digest_of_tree(path) if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (work / name for name in names)
        ]
    except (OSError, InvalidValue) as error:
        return [str(error)]
