"""The leaderboard: its facts, its site, and the check of submissions."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passhat.errors import InvalidValue
from passhat.protocol import Protocol
from passhat.reporting.leaderboard import BoardOptions, build_leaderboard
from passhat.reporting.leaderboard.facts import name_skeleton
from passhat.reporting.leaderboard.page import site_files
from passhat.reporting.leaderboard.submissions import check_submission, copy_chance
from passhat.stats.outcomes import Outcomes, Run
from passhat.stats.terms import Population, Terms

RNG = np.random.default_rng(30)
TASKS = [f"t{i:02}" for i in range(40)]
PROTOCOL = Protocol(suite="desk", judge="exact")
LABELS = {"domain": ["retail" if i % 2 else "airline" for i in range(40)]}


def _run(name: str, rate: float, tasks: int = 40, **more: Any) -> Run:
    verdicts = RNG.random((tasks, 4)) < rate
    labels = {"domain": LABELS["domain"][:tasks]}
    outcomes = Outcomes.from_matrix(verdicts, TASKS[:tasks], labels=labels)
    return Run(name, name, outcomes, **{"protocol": PROTOCOL, "source": f"{name}.jsonl", **more})


RUNS = [_run("low", 0.2), _run("high", 0.95), _run("middle", 0.55), _run("twin", 0.55)]


def _table(rate: float, seed: int, agent: str, cost: float, tasks: int = 12) -> list[str]:
    rng = np.random.default_rng(seed)
    return [
        json.dumps(
            {
                "schema": "passhat.outcomes/2",
                "run": f"run of {agent}",
                "agent": agent,
                "task": f"t{task}",
                "attempt": attempt,
                "passed": bool(rng.random() < rate),
                "suite": "desk",
                "judge": "exact",
                "cost": round(cost * rng.gamma(8, 1 / 8), 6),
                "seconds": round(10 * rng.gamma(8, 1 / 8), 3),
            }
        )
        for task in range(tasks)
        for attempt in range(1, 5)
    ]


@pytest.fixture
def board(tmp_path: Path) -> Path:
    for i, (agent, rate, cost) in enumerate([("a", 0.9, 0.02), ("b", 0.4, 0.01), ("c", 0.8, 0.05)]):
        text = "\n".join(_table(rate, i, agent, cost))
        (tmp_path / f"{agent}.jsonl").write_text(f"{text}\n")
    return tmp_path


def test_agents_are_ordered_with_the_ranks_that_are_possible() -> None:
    (found,) = build_leaderboard(RUNS).boards
    assert [agent.name for agent in found.agents][0::3] == ["high", "low"]
    assert [str(agent.ranks[0]) for agent in found.agents] == ["1", "2–3", "2–3", "4"]
    assert found.headline == "high is the best of 4 agents by pass^1."
    assert [len(group) for group in found.groups] == [1, 2, 1]
    assert [str(word) for word in found.metrics] == ["pass^1", "pass^4", "pass^2"]
    assert {(part.value, part.tasks) for part in found.slices} == {("retail", 20), ("airline", 20)}
    first = found.agents[0]
    assert (first.source, first.protocol) == ("high.jsonl", PROTOCOL.digest)
    assert found.rates.shape == (40, 4)


def test_other_protocols_and_tasks_are_not_ranked_together() -> None:
    other = _run("other judge", 0.9, protocol=Protocol(suite="desk", judge="lenient"))
    few = _run("few tasks", 0.9, tasks=10)
    some = _run("some tasks", 0.9, tasks=30)
    empty = Run("empty", "empty", Outcomes.from_counts(0, [0], ["t00"], missing=[4]))
    found = build_leaderboard([*RUNS, other, few, some, empty])
    names = [{agent.name for agent in board.agents} for board in found.boards]
    assert names[0] == {"low", "high", "middle", "twin", "some tasks"}
    assert {"other judge"} in names
    assert {"few tasks"} in names
    assert len(found.boards[0].tasks) == 30
    assert "ranked on the 30 tasks" in found.boards[0].notes[0]
    assert "none of its attempts has a verdict" in found.notes[0]
    with pytest.raises(InvalidValue, match="nothing can be ranked"):
        build_leaderboard([empty])


def test_stated_metrics_rank_and_impossible_ones_are_refused() -> None:
    options = BoardOptions(("pass^4", "worst@2"), Terms(population=Population.THESE_TASKS))
    (found,) = build_leaderboard(RUNS[:2], options).boards
    assert [str(rank.metric) for rank in found.agents[0].ranks] == ["pass^4", "worst@2"]
    assert found.about == "these tasks"
    for word, text in (("delta^2", "not ranked by delta"), ("pass^8", "needs 8 attempts")):
        with pytest.raises(InvalidValue, match=text):
            build_leaderboard(RUNS, BoardOptions((word,)))


def test_missing_attempts_are_bounds() -> None:
    rows = (RNG.random((40, 4)) < 0.9).astype(float)
    rows[:, 0] = np.nan
    run = Run("open", "open", Outcomes.from_matrix(rows, TASKS), protocol=PROTOCOL)
    (found,) = build_leaderboard([*RUNS, run]).boards
    agent = next(agent for agent in found.agents if agent.name == "open")
    estimate = agent.find("pass^1")
    assert estimate is not None
    assert estimate.value_if_passed == pytest.approx(estimate.value + 0.25)
    assert agent.ranks[0].best <= 2
    assert agent.ranks[0].worst >= 2
    assert agent.missing == 40


def test_the_site_is_whole_and_safe(board: Path, passhat: Callable[..., Any]) -> None:
    nasty = board / "x.jsonl"
    nasty.write_text("\n".join(_table(0.5, 9, "</script><img src=x>", 0.03)))
    ended = passhat("leaderboard", board, "-o", board / "site", "--title", "Desk")
    assert ended.code == 0, ended.err
    files = {path.name: path.read_text() for path in (board / "site").iterdir()}
    assert set(files) == {"index.html", "board.json", "agents.csv", "tasks.csv"}
    page = files["index.html"]
    assert "<img src=x>" not in page
    assert "default-src &#39;none&#39;" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    data = json.loads(files["board.json"])
    assert data["schema"] == "passhat.leaderboard/1"
    agents = data["boards"][0]["agents"]
    assert len(agents[0]["file_digest"]) == 64
    assert all(agent["protocol"] for agent in agents)
    rows = list(csv.DictReader(io.StringIO(files["agents.csv"])))
    assert {row["metric"] for row in rows} == {"pass^1", "pass^2", "pass^4"}
    assert float(rows[0]["cost_per_attempt"]) > 0
    assert len(list(csv.reader(io.StringIO(files["tasks.csv"])))) == 13
    assert "on the front" in page
    assert "ranks" in ended.out


def test_the_page_of_one_agent_and_of_two_boards() -> None:
    alone = build_leaderboard(RUNS[:1])
    assert "is alone on this board" in site_files(alone)["index.html"]
    other = _run("other", 0.9, protocol=Protocol(suite="desk", judge="lenient"))
    page = site_files(build_leaderboard([*RUNS, other]))["index.html"]
    assert 'id="board-2"' in page


GOOD: dict[str, Any] = {"rate": 0.7, "seed": 50, "agent": "new", "cost": 0.02}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({}, ""),
        ({"tasks": 11}, "tasks: 1 task of the board is absent: t11"),
        ({"tasks": 13}, "tasks: 1 task is not on the board: t12"),
        ({"agent": "a"}, "duplicate: a is on the board already"),
        ({"cost": 900.0}, "cost: $"),
        ({"rate": 0.9, "seed": 0, "cost": 0.02}, "copy: "),
    ],
)
def test_a_submission_is_checked(
    board: Path, passhat: Callable[..., Any], change: dict[str, Any], kind: str
) -> None:
    path = board / "new.json.jsonl"
    path.write_text("\n".join(_table(**{**GOOD, **change})))
    ended = passhat("leaderboard", board, "--check", path)
    assert (ended.code, kind in ended.out) == (bool(kind), True), ended.out
    if not kind:
        assert "checked beside 3 runs" in ended.out


def _changed(lines: list[str], **fields: Any) -> str:
    return "\n".join(json.dumps(json.loads(line) | fields) for line in lines)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (_changed(_table(**GOOD), judge="lenient"), "protocol: judge: lenient against exact"),
        (_changed(_table(**GOOD), cost=0.5), "cost is 0.5 for every attempt"),
        (_changed(_table(**GOOD), cost=0, tokens=10), "used tokens and are said to cost nothing"),
        (_changed(_table(**GOOD), cost=-1), "schema: "),
        (_changed(_table(**GOOD), passed="yes"), "schema: "),
        (_changed(_table(**GOOD), suite=None, judge=None), "suite and judge are not recorded"),
        ("\n".join(_table(**GOOD)[:-1]), "1 task has fewer attempts than the others: t11 has 3"),
        (
            "\n".join([*_table(**GOOD), _table(**GOOD)[0].replace('"attempt": 1', '"attempt": 5')]),
            "1 task has more attempts than the others: t0 has 5, others 4",
        ),
        (_changed(_table(**GOOD), score=0.0), "passed with a score of 0"),
        (_changed(_table(**GOOD), score=1.0), "failed with a score of 1"),
        (_changed(_table(**GOOD), seconds=0), "48 attempts took 0 seconds"),
        (_changed(_table(**GOOD), agent=" А"), "looks like a"),
        (_changed(_table(**GOOD), agent="ne\u202ew"), "characters that cannot be seen"),
        (_changed(_table(**GOOD), agent=""), "the agent has no name"),
        (
            _changed(_table(**GOOD)[:1], judge="x") + "\n" + "\n".join(_table(**GOOD)[1:]),
            "judge is ",
        ),
        (_changed(_table(**GOOD), cost=float("nan")), "schema: line 1 and 47 more rows: cost"),
        ("", "schema: the file: has no rows"),
        ("\n".join([*_table(**GOOD), _table(**GOOD)[0]]), "schema: "),
        ("nonsense", "schema: "),
    ],
)
def test_a_broken_submission_is_named(
    board: Path, passhat: Callable[..., Any], text: str, says: str
) -> None:
    path = board / "new.jsonl"
    path.write_text(text)
    ended = passhat("leaderboard", board / "a.jsonl", board / "b.jsonl", "--check", path)
    assert ended.code == 1, ended.out + ended.err
    assert says in ended.out


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("flips", [0, 1, 6])
def test_a_copy_is_found_by_its_passes(shuffled: bool, flips: int) -> None:
    rng = np.random.default_rng(3)
    rates = np.clip(rng.normal(0.5, 0.3, 60), 0, 1)
    tasks = [f"t{i}" for i in range(60)]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows, others = (rng.random((60, 8)) < rates[:, None] for _ in range(2))
        copied = np.stack([rng.permutation(row) for row in rows]) if shuffled else rows.copy()
        copied.reshape(-1)[rng.choice(480, flips, replace=False)] ^= True
        first, second, other = (Outcomes.from_matrix(m, tasks) for m in (rows, copied, others))
        assert copy_chance(first, second) < 1e-4
        assert copy_chance(first, other) > 1e-3
    alone = Outcomes.from_matrix(rows[:, :1], tasks)
    assert copy_chance(alone, alone) < 1e-4
    assert copy_chance(first, Outcomes.from_matrix(rows, [f"x{i}" for i in range(60)])) == 1


def test_fewer_attempts_at_all_tasks_are_a_plan(board: Path, passhat: Callable[..., Any]) -> None:
    rows = [row for row in map(json.loads, _table(0.5, 7, "brief", 0.02)) if row["attempt"] <= 2]
    (board / "brief.jsonl").write_text("\n".join(map(json.dumps, rows)))
    passhat("leaderboard", board, "-o", board / "site")
    (found,) = json.loads((board / "site/board.json").read_text())["boards"]
    agent = next(entry for entry in found["agents"] if entry["name"] == "brief")
    assert agent["missing"] == 0
    assert any("different numbers of attempts" in note for note in found["notes"])


def test_leaving_out_failures_gains_no_rank(board: Path, passhat: Callable[..., Any]) -> None:
    rows = [json.loads(line) for line in _table(0.5, 7, "cherry", 0.02)]
    chosen = [row for row in rows if row["passed"] or row["attempt"] == 1]
    path = board / "cherry.jsonl"
    path.write_text("\n".join(map(json.dumps, chosen)))
    ended = passhat("leaderboard", board, "-o", board / "site")
    (found,) = json.loads((board / "site/board.json").read_text())["boards"]
    agent = next(entry for entry in found["agents"] if entry["name"] == "cherry")
    assert agent["missing"] == agent["missing_by_reason"]["no row"] == 48 - len(chosen)
    assert agent["ranks"][0]["worst"] == 4
    estimate = agent["estimates"][0]
    assert estimate["value_if_passed"] > estimate["value"]
    assert "pass^4" in [entry["metric"] for entry in agent["estimates"]]
    assert "lacks" in ended.out


def test_a_stated_plan_of_fewer_attempts_is_no_gap() -> None:
    rows = RNG.random((40, 2)) < 0.9
    protocol = Protocol(suite="desk", judge="exact", attempts=2)
    short = Run("short", "short", Outcomes.from_matrix(rows, TASKS), protocol=protocol)
    (found,) = build_leaderboard([*RUNS, short]).boards
    assert [agent.missing for agent in found.agents] == [0] * 5
    assert "different numbers of attempts" in found.notes[-1]


def test_scores_beside_verdicts_only() -> None:
    graded = Outcomes.from_scores(RNG.random((40, 4)), TASKS)
    runs = [Run("graded", "graded", graded, protocol=PROTOCOL), RUNS[0]]
    (found,) = build_leaderboard(runs).boards
    assert "mean" not in map(str, found.metrics)
    assert "low has verdicts and no scores" in found.notes[-1]
    with pytest.raises(InvalidValue, match="low has verdicts only"):
        build_leaderboard(runs, BoardOptions(("mean",)))


def test_wrong_usage_of_the_check_is_refused(board: Path, passhat: Callable[..., Any]) -> None:
    path = board / "a.jsonl"
    itself = passhat("leaderboard", path, "--check", path)
    assert (itself.code, "the submission itself" in itself.err) == (2, True)
    ignored = passhat("leaderboard", board, "--check", path, "-o", board / "site")
    assert (ignored.code, "leave out -o" in ignored.err) == (2, True)
    folder = board / "new"
    folder.mkdir()
    path.rename(folder / "a.jsonl")
    ended = passhat("leaderboard", folder, "--check", folder / "a.jsonl")
    assert (ended.code, "the first of its board" in ended.out) == (0, True)


def test_names_that_look_alike_are_pointed_out() -> None:
    assert name_skeleton("Аgent ") == name_skeleton("a\u200bgent") == "agent"
    twins = [_run("A", 0.5), _run("A ", 0.5), _run("li\u202eve", 0.5)]
    (found,) = build_leaderboard(twins).boards
    assert "names that look alike: 'A', 'A '" in found.notes[0]
    assert "li\\u202eve" in [agent.name for agent in found.agents]


def test_a_copy_with_other_verdicts_is_found_by_what_it_took(board: Path) -> None:
    from passhat import read

    (run,) = read(board / "a.jsonl")
    lines = [json.loads(line) for line in (board / "a.jsonl").read_text().splitlines()]
    for line in lines[::3]:
        line["passed"] = not line["passed"]
    other = board / "z.jsonl"
    other.write_text("\n".join(json.dumps(line | {"agent": "z"}) for line in lines))
    (copied,) = read(other)
    kinds = [problem.kind for problem in check_submission(copied, [run])]
    assert kinds == ["copy"]


def test_scores_rank_by_their_mean() -> None:
    graded = [
        Run(name, name, Outcomes.from_scores(np.clip(RNG.normal(mean, 0.2, (40, 4)), 0, 1), TASKS))
        for name, mean in (("half", 0.5), ("good", 0.8))
    ]
    (found,) = build_leaderboard(graded).boards
    assert [str(rank.metric) for rank in found.agents[0].ranks] == ["pass^1", "pass^4", "mean"]
    assert [str(agent.ranks[2]) for agent in found.agents if agent.name == "good"] == ["1"]
    (by_worst,) = build_leaderboard(graded, BoardOptions(("worst@4",))).boards
    assert [agent.name for agent in by_worst.agents] == ["good", "half"]


def test_agents_that_new_tasks_do_not_tell_apart(passhat: Callable[..., Any]) -> None:
    words = " ".join(passhat("leaderboard", "example:helpdesk").out.split())
    assert "By pass^1 no two agents are told apart about new tasks; --about these-tasks" in words
    others = passhat("leaderboard", "example:helpdesk", "--about", "these-tasks").out
    assert "careful is the best of 2 agents" in others
    assert "told apart about new" not in others
