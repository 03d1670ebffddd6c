"""passhat bisect: a repository, interrupted, killed and continued; searches without processes."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from passhat.cli.bisect import make_question
from passhat.cli.shared.bisecting import Bisector, Question
from passhat.cli.shared.live import StepLines
from passhat.errors import InvalidValue
from passhat.protocol import Protocol
from passhat.reporting.bisect import BisectStatus, Budget
from passhat.runner.revisions import (
    Lineage,
    Revision,
    SubmoduleAbsent,
    list_revisions,
    open_worktree,
)
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, RunRecord, open_store
from passhat.suites.base import Judgement, Task

Passhat = Callable[..., Any]
COMMITS, BREAKS = 40, 27
AGENT = """read request
if grep -q carry prompt.txt; then echo '{"text": "4"}'; else echo '{"text": "5"}'; fi
"""


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    command = ["git", *identity, *words]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path, message: str) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, list[str]]:
    """A repository with an agent in a subfolder, and its commits."""
    folder = tmp_path / "repository" / "bot"
    folder.mkdir(parents=True)
    git(folder.parent, "init", "--quiet", "--initial-branch", "main")
    (folder / "agent.sh").write_text(AGENT, encoding="utf-8")
    (folder / "prompt.txt").write_text("Add.\nRemember to carry.\n", encoding="utf-8")
    tasks = [{"id": f"t{i}", "prompt": "2+2?", "answer": "4"} for i in range(2)]
    tasks.append({"id": "never", "prompt": "?", "answer": "6"})
    text = "".join(json.dumps(task) + "\n" for task in tasks)
    (folder / "tasks.jsonl").write_text(text, encoding="utf-8")
    commits = [commit(folder, "First version")]
    for number in range(1, COMMITS + 1):
        if number == BREAKS:
            (folder / "prompt.txt").write_text("Add quickly.\n", encoding="utf-8")
        commits.append(commit(folder, f"Change {number}"))
    return folder, commits


def start(folder: Path, commits: Sequence[str]) -> subprocess.Popen[str]:
    ends = ["--good", commits[0], "--bad", commits[-1]]
    words = [*ends, "-n", "4", "-a", "command:sh agent.sh", "-s", "jsonl:tasks.jsonl", "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "passhat", "bisect", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PASSHAT_LEASE": "2"},
    )


def wait_for(process: subprocess.Popen[str], word: str) -> None:
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith(word):
            return
    raise AssertionError("".join(lines))


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_is_found_after_an_interrupt_and_a_kill(
    repository: tuple[Path, list[str]],
) -> None:
    folder, commits = repository
    (folder / "prompt.txt").write_text("Not committed.\n", encoding="utf-8")
    before = git(folder, "status", "--porcelain"), git(folder, "rev-parse", "HEAD")

    interrupted = start(folder, commits)
    wait_for(interrupted, "good ")
    interrupted.send_signal(signal.SIGINT)
    interrupted.communicate()
    assert interrupted.returncode == 130
    assert len(git(folder, "worktree", "list").splitlines()) == 1

    killed = start(folder, commits)
    wait_for(killed, "tried ")
    killed.kill()
    killed.communicate()
    assert len(git(folder, "worktree", "list").splitlines()) == 2

    continued = start(folder, commits)
    out, errors = continued.communicate()
    assert continued.returncode == 0, errors
    facts = json.loads(out)
    assert [one["id"] for one in facts["left"]] == [commits[BREAKS]]
    assert facts["left"][0]["title"] == f"Change {BREAKS}"
    assert facts["parent"]["id"] == commits[BREAKS - 1]
    assert facts["confirmed"]
    assert {task["task"] for task in facts["tasks"]} == {"t0", "t1"}
    with open_store(str(folder / ".passhat" / "passhat.db"), read_only=True) as store:
        runs = {run.id: run for run in store.runs()}
    assert all(runs[step["run"]].revision == step["revision"] for step in facts["steps"])
    assert all(run.is_fresh for run in runs.values())
    assert len(runs) == len(facts["steps"])  # nothing was made twice

    assert len(git(folder, "worktree", "list").splitlines()) == 1
    status = git(folder, "status", "--porcelain").splitlines()
    assert [line for line in status if ".passhat" not in line] == before[0].splitlines()
    assert git(folder, "rev-parse", "HEAD") == before[1]
    assert (folder / "prompt.txt").read_text(encoding="utf-8") == "Not committed.\n"


# -- without processes ----------------------------------------------------------------------------


class Told(StepLines):
    """Keeps the lines instead of printing them."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.lines = lines

    def tell(self, line: str) -> None:
        self.lines.append(line)


class Simulated(Bisector):
    """Attempts are drawn and written to the store, instead of made by ``passhat run``."""

    rates: dict[str, Callable[[int], float | None]]
    calls: int
    settings: dict[str, float]

    def _plan_protocol(self) -> Protocol:
        return Protocol(suite="desk")

    def _call(
        self, revision: Revision, name: str, tasks: Sequence[str], attempts: int
    ) -> tuple[int, str]:
        self.calls += 1
        place = self.question.lineage.revisions.index(revision)
        draw = random.Random(name)
        names = list(tasks) or list(self.rates)
        if self.rates[names[0]](place) is None:
            return 2, "passhat: agent.py: no module named 'tools'.\n  Check it."
        protocol = Protocol(suite="desk", decoding=self.settings)
        record = RunRecord("agent", protocol, [Task(one, "?") for one in names],
                           name, revision=revision.id)  # fmt: skip
        wanted = [(task, number) for task in names for number in range(1, attempts + 1)]
        with open_store(self.store) as store:
            store.begin(record, attempts)
            store.claim(record.id, wanted)
            store.finish(
                record.id,
                [
                    AttemptRecord(task, number, judge(draw, self.rates[task](place)), cost=0.01)
                    for task, number in wanted
                ],
            )
        return 0, ""


def judge(draw: random.Random, rate: float | None) -> Judgement:
    assert rate is not None
    passed = draw.random() < rate
    return Judgement(Verdict.PASSED) if passed else Judgement(Verdict.FAILED, "wrong_answer")


def simulate(
    tmp_path: Path,
    lineage: Lineage,
    rates: dict[str, Callable[[int], float | None]],
    budget: Budget | None = None,
    told: list[str] | None = None,
) -> Simulated:
    question = Question(lineage, ("-a", "agent"), "agent", "desk", 8, is_git=False)
    lines = Told([] if told is None else told)
    bisector = Simulated(question, str(tmp_path / "s.db"), budget or Budget(), lines)
    bisector.rates, bisector.calls, bisector.settings = rates, 0, {}
    return bisector


def steady(rate: float) -> Callable[[int], float | None]:
    return lambda _place: rate


def breaks(lineage: Lineage, change: int, good: float = 0.95, bad: float = 0.05) -> Any:
    """A rate that falls at every revision that contains the change."""
    return lambda place: bad if lineage.contains[change, place] else good


def test_revisions_that_cannot_run_are_skipped_and_left_together(tmp_path: Path) -> None:
    lineage = Lineage.of_list([f"v{i}" for i in range(21)])
    broken = breaks(lineage, 11)
    rates = {
        "a": lambda place: None if place in (10, 11) else broken(place),
        "b": lambda place: None if place in (10, 11) else 0.5,
    }
    result = simulate(tmp_path, lineage, rates).run()
    assert result.status is BisectStatus.FOUND
    assert [one.id for one in result.left] == ["v11", "v12", "v13"]
    assert {one.id for one, _ in result.skipped} <= {"v11", "v12"}
    assert "no module named 'tools'" in result.skipped[0][1]
    assert result.cost == pytest.approx(result.attempts / 100)


def test_the_same_question_is_answered_from_the_store(tmp_path: Path) -> None:
    lineage = Lineage.of_list([f"v{i}" for i in range(33)])
    rates = {"a": breaks(lineage, 20), "b": steady(0.9)}
    first = simulate(tmp_path, lineage, rates)
    result = first.run()
    again = simulate(tmp_path, lineage, rates)
    assert again.run().to_dict() == result.to_dict()
    assert first.calls > 0
    assert again.calls == 0
    assert [one.id for one in result.left] == ["v21"]


def test_stored_runs_of_the_ends_are_used(tmp_path: Path) -> None:
    lineage = Lineage.of_list([f"v{i}" for i in range(9)])
    rates = {"a": breaks(lineage, 3), "b": steady(0.9)}
    for end in (lineage.good, lineage.bad):
        other = simulate(tmp_path, lineage, rates)
        other._call(lineage.revisions[end], f"nightly {end}", (), 8)
    told: list[str] = []
    bisector = simulate(tmp_path, lineage, rates, told=told)
    assert bisector.run().status is BisectStatus.FOUND
    assert [line.rpartition(", ")[2] for line in told[:2]] == ["from the store"] * 2


def test_stored_runs_with_other_settings_are_not_the_ends(tmp_path: Path) -> None:
    lineage = Lineage.of_list([f"v{i}" for i in range(9)])
    rates = {"a": breaks(lineage, 3), "b": steady(0.9)}
    other = simulate(tmp_path, lineage, rates)
    other.settings = {"temperature": 0.7}
    for end in (lineage.good, lineage.bad):
        other._call(lineage.revisions[end], f"nightly {end}", (), 8)
    told: list[str] = []
    assert simulate(tmp_path, lineage, rates, told=told).run().status is BisectStatus.FOUND
    assert sum("is not used: decoding.temperature" in line for line in told) == 2
    assert not any("from the store" in line for line in told)


def test_ends_that_fresh_attempts_contradict_stop_the_search(tmp_path: Path) -> None:
    lineage = Lineage.of_list([f"v{i}" for i in range(9)])
    stored = simulate(tmp_path, lineage, {"a": breaks(lineage, 3, 1.0, 0.0), "b": steady(0.9)})
    for end in (lineage.good, lineage.bad):
        stored._call(lineage.revisions[end], f"nightly {end}", (), 8)
    today = simulate(tmp_path, lineage, {"a": steady(1.0), "b": steady(0.9)})
    with pytest.raises(InvalidValue, match="bad revision are not reproduced: a passes"):
        today.run()


def test_the_settings_of_the_command_reach_every_run() -> None:
    lineage = Lineage.of_list(["v0", "v1"])
    run = ("passhat", "run", "-a", "demo:careful", "-s", "orderdesk/retail")
    words = (*run, "--temperature", "0.7", "--set", "max_steps=9")
    question = make_question(lineage, None, None, words, 4, is_git=True)
    assert {"--temperature", "0.7", "max_steps=9"} <= set(question.words)
    shell = ("sh", "-c", "test $PASSHAT_CANDIDATE = v0")
    command = make_question(lineage, None, None, shell, 4, is_git=False)
    assert command.words[command.words.index("--pass-env") + 1] == "*"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_submodules_are_filled_from_the_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, top = tmp_path / "module", tmp_path / "top"
    commits = []
    for folder in (module, top):
        folder.mkdir()
        git(folder, "init", "--quiet", "--initial-branch", "main")
    (module / "prompt.txt").write_text("one", encoding="utf-8")
    commit(module, "one")
    git(top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(module), "mod")
    commits.append(commit(top, "with one"))
    (top / "mod" / "prompt.txt").write_text("two", encoding="utf-8")
    commit(top / "mod", "two")
    commits.append(commit(top, "with two"))
    settings = (top / ".git" / "config").read_text(encoding="utf-8")
    monkeypatch.chdir(top)
    with open_worktree() as tree:
        for expected, revision in zip(("one", "two", "one"), (*commits, commits[0]), strict=True):
            tree.check_out(revision)
            assert (tree.path / "mod" / "prompt.txt").read_text(encoding="utf-8") == expected
        shutil.rmtree(top / ".git" / "modules")
        with pytest.raises(SubmoduleAbsent, match="mod is not in this clone"):
            tree.check_out(commits[0])
    assert (top / ".git" / "config").read_text(encoding="utf-8") == settings


def test_it_begins_only_where_a_drop_is_shown_and_says_what_would_show_it(tmp_path: Path) -> None:
    lineage = Lineage.of_list([f"v{i}" for i in range(17)])
    rates = {f"t{i}": breaks(lineage, 5, 0.55, 0.45) for i in range(4)}
    result = simulate(tmp_path, lineage, rates).run()
    assert result.status is BisectStatus.NO_DROP
    assert result.found is None
    assert {step.revision for step in result.steps} == {"v0", "v16"}
    assert result.more is not None
    assert result.more.each > 8
    assert result.more.cost == pytest.approx(result.more.total / 100)


def test_a_budget_ends_it_with_the_range_that_is_left(tmp_path: Path) -> None:
    lineage = Lineage.of_list([f"v{i}" for i in range(65)])
    rates = {"a": breaks(lineage, 40), "b": steady(0.9)}
    small = simulate(tmp_path, lineage, rates, Budget.of_text("60")).run()
    assert small.status is BisectStatus.RANGE
    assert small.attempts <= 60
    assert "v41" in [one.id for one in small.left]
    assert 1 < len(small.left) < 64
    large = simulate(tmp_path, lineage, rates, Budget.of_text("5usd")).run()
    assert [one.id for one in large.left] == ["v41"]


@pytest.mark.parametrize("text", ["", "x", "1.5", "-3", "5eur"])
def test_a_budget_is_attempts_or_dollars(text: str) -> None:
    with pytest.raises(InvalidValue):
        Budget.of_text(text)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_commits_of_branches_are_after_their_ancestors_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    base = commit(tmp_path, "base")
    one = commit(tmp_path, "one")
    git(tmp_path, "checkout", "--quiet", "-b", "side", base)
    two = commit(tmp_path, "two")
    git(tmp_path, "checkout", "--quiet", "main")
    git(tmp_path, "merge", "--quiet", "--no-ff", "--message", "merge", "side")
    merge = git(tmp_path, "rev-parse", "HEAD")
    lineage = list_revisions(base, "main")
    place = {revision.id: i for i, revision in enumerate(lineage.revisions)}
    assert lineage.revisions[lineage.good].id == base
    assert lineage.revisions[lineage.bad].id == merge
    contained = {
        (a, b): bool(lineage.contains[place[a], place[b]])
        for a in (one, two, merge)
        for b in (one, two, merge, base)
    }
    assert contained == {pair: pair[1] == merge or pair[0] == pair[1] for pair in contained}
    assert lineage.parents[place[merge]] == place[one]
    assert lineage.parents[place[two]] == lineage.good
    with pytest.raises(InvalidValue, match="not an ancestor"):
        list_revisions("side", one)
    with pytest.raises(InvalidValue, match="same commit"):
        list_revisions(base, base)
    with pytest.raises(InvalidValue, match="not a commit"):
        list_revisions("--nonsense", base)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_red_gate_offers_the_search_between_the_commits_of_both_runs(
    passhat: Passhat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "--quiet")
    commits = [commit(tmp_path, f"change {number}") for number in range(4)]

    def export(name: str, revision: str, passes: bool) -> str:
        path = tmp_path / f"{name}.jsonl"
        rows = [
            {"run": name, "agent": "python:bot:answer", "task": f"t{task}", "attempt": attempt,
             "passed": passes or task > 2, "category": None, "reason": None, "cost": 0.02,
             "suite": "jsonl:t.jsonl", "revision": revision, "decoding": {"temperature": 0.7},
             "protocol": {"max_steps": 9, "step_seconds": 60.0}, "schema": "passhat.outcomes/2"}
            for task in range(8)
            for attempt in range(1, 9)
        ]  # fmt: skip
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return str(path)

    old, new = export("old", commits[0], True), export("new", commits[-1], False)
    ended = passhat("gate", new, "--against", old, "-o", "md")
    assert ended.code == 1
    sentence, command = (
        next(line for line in ended.out.splitlines() if word in line)
        for word in ("which of", "passhat bisect")
    )
    assert "which of 3 commits broke it" in sentence
    assert "$" in sentence
    expected = (
        f"passhat bisect --good {commits[0][:10]} --bad {commits[-1][:10]} -- passhat run "
        "--agent python:bot:answer --suite jsonl:t.jsonl --temperature 0.7 --set max_steps=9"
    )
    assert command == f"`{expected}`"
    assert expected in passhat("gate", new, "--against", old).out.splitlines()  # not broken
    dirty = export("dirty", f"{commits[-1]}-dirty", False)
    assert "passhat bisect" not in passhat("gate", dirty, "--against", old, "-o", "md").out
    assert "passhat bisect" not in passhat("gate", old, "--against", new, "-o", "md").out


def test_mistakes_of_the_command_line(
    passhat: Passhat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("-a", "demo:careful", "-s", "orderdesk/retail")
    assert "--good and --bad are needed" in passhat("bisect", *words).err
    ended = passhat("bisect", "--good", "a", "--bad", "b", *words)
    assert ended.code == 2
    assert "not in a git repository" in ended.err
    models = tmp_path / "models.txt"
    models.write_text("# in order\none\n\ntwo\n", encoding="utf-8")
    listed = ("bisect", "--candidates", str(models))
    assert "no such line" in passhat(*listed, "--good", "three", *words).err
    assert "at least one more" in passhat(*listed, "--good", "two", *words).err
    assert "needs {} where" in passhat(*listed, *words).err
    assert "passhat bisect -a 'demo:{}' -s" in passhat(*listed, "-a", "demo:{}").err
    models.write_text("one\ntwo\none\n", encoding="utf-8")
    assert "has 'one' twice" in passhat(*listed, "-a", "demo:{}", "-s", "desk").err
    models.write_text("one\ntwo\n", encoding="utf-8")
    assert "not both" in passhat(*listed, *words, "--", "make", "test").err
