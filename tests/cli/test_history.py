"""passhat history: a folder of exports and a store, shown changes, the badge, and other forms."""

from __future__ import annotations

import json
import random
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Passhat = Callable[..., Any]
NIGHTS, CHANGE = 14, 9


def write_night(
    folder: Path,
    night: int,
    *,
    agent: str = "bot",
    broken: bool = False,
    tasks: int = 6,
    started: str = "",
) -> None:
    """An export of one night: some tasks pass always, one of them never once it is broken."""
    draw = random.Random(f"{agent} {night}")
    rows = []
    for task in range(tasks):
        for attempt in range(1, 9):
            rate = 0.0 if broken and task == 2 else 1 - task / 12
            rows.append(
                {
                    "run": "nightly",
                    "agent": agent,
                    "task": f"t{task}",
                    "attempt": attempt,
                    "passed": draw.random() < rate,
                    "category": None,
                    "reason": None,
                    "suite": "desk",
                    "model_version": "m-2" if broken else "m-1",
                    "revision": f"{night:040x}",
                    "started": started or f"2026-03-{night + 1:02d}T02:00:00+00:00",
                    "decoding": {"temperature": 0.7 if broken else 0.2},
                    "schema": "passhat.outcomes/2",
                }
            )
    # Names that are not in the order of time.
    path = folder / f"artifact-{(night * 5) % 17:02d}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def nightly(tmp_path: Path) -> Path:
    folder = tmp_path / "nightly"
    folder.mkdir()
    for night in range(NIGHTS):
        write_night(folder, night, broken=night >= CHANGE, tasks=6 if night < 5 else 7)
    return folder


def test_a_folder_of_exports_in_the_order_of_time(passhat: Passhat, nightly: Path) -> None:
    ended = passhat("history", str(nightly), "--json")
    facts = json.loads(ended.out)
    assert ended.code == 0
    assert [run["started"][8:10] for run in facts["runs"]] == [
        f"{night + 1:02d}" for night in range(NIGHTS)
    ]
    (change,) = facts["changes"]
    assert change["direction"] == "drop"
    assert change["since_started"].startswith("2026-03-10")
    assert change["since_revision"] == f"{CHANGE:040x}"
    assert [(task["task"], task["change"]) for task in change["tasks"]] == [("t2", "broke")]
    assert {entry["field"]: entry["b"] for entry in change["differences"]} == {
        "decoding.temperature": 0.7,
        "model served": "m-2",
        "revision": f"{CHANGE:040x}",
    }
    assert facts["runs"][5]["added"] == ["t6"]
    assert {one["metric"] for one in facts["runs"][0]["estimates"]} == {"pass^1", "pass^8"}


def test_screen_files_and_badge(passhat: Passhat, nightly: Path, tmp_path: Path) -> None:
    badge, page, chart = (tmp_path / name for name in ("b.svg", "h.md", "h.svg"))
    passhat("history", str(nightly), "--badge", str(badge), "-o", str(page), "-o", str(chart))
    screen = passhat("history", str(nightly)).out
    assert "✗ dropped  since run 10, 2026-03-10 02:00" in screen
    assert "broke: t2 (" in screen
    assert "temperature: 0.2, now 0.7" in screen
    assert "●" in screen
    assert "┊" in screen
    assert "and 4 more; --full" in screen
    assert "1 new task" in passhat("history", str(nightly), "--full").out.replace("\n", " ")
    assert "**✗ dropped** since run 10" in page.read_text(encoding="utf-8")
    for path in (badge, chart):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    assert ", dropped" in badge.read_text(encoding="utf-8")
    assert "%" in badge.read_text(encoding="utf-8")


def test_other_agents_are_left_out_and_can_be_chosen(passhat: Passhat, nightly: Path) -> None:
    write_night(nightly, 15, agent="other")  # the newest
    facts = json.loads(passhat("history", str(nightly), "-a", "bot", "--json").out)
    assert len(facts["runs"]) == NIGHTS
    ended = passhat("history", str(nightly))
    assert "History of other at desk  1 run" in ended.out
    assert "14 runs of other agents or suites left out" in ended.out
    refused = passhat("history", str(nightly), "-a", "nobody")
    assert refused.code == 2
    assert "There are: bot at desk, other at desk" in refused.err


def test_without_a_change_it_says_so(passhat: Passhat, tmp_path: Path) -> None:
    for night in range(4):
        write_night(tmp_path, night)
    assert "No change of the agent is shown." in passhat("history", str(tmp_path)).out


def test_a_store_is_read_by_default_and_runs_keep_their_commit(
    passhat: Passhat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    empty = passhat("history")
    assert empty.code == 2
    assert "there is no store" in empty.err
    words = ("run", "-a", "demo:careful", "-s", "orderdesk/retail", "--random", "2", "-n", "2")
    for name in ("monday", "tuesday"):
        passhat(*words, "--name", name, "--set", f"revision=of-{name}")
    facts = json.loads(passhat("history", "--json").out)
    assert [run["revision"] for run in facts["runs"]] == ["of-monday", "of-tuesday"]
    exported = tmp_path / "runs.jsonl"
    passhat("export", ".passhat/passhat.db", "-o", str(exported))
    again = json.loads(passhat("history", str(exported), "--json").out)
    assert [run["started"] for run in again["runs"]] == [run["started"] for run in facts["runs"]]
    assert [run["revision"] for run in again["runs"]] == ["of-monday", "of-tuesday"]


def test_times_of_other_zones_are_in_the_order_of_time(passhat: Passhat, tmp_path: Path) -> None:
    zones = ("2026-03-10T02:00:00Z", "2026-03-09T19:00:00-08:00", "2026-03-10T09:30:00+09:00")
    for night, started in enumerate(zones):
        write_night(tmp_path, night, started=started)
    facts = json.loads(passhat("history", str(tmp_path), "--json").out)
    hours = [run["started"] for run in facts["runs"]]
    assert hours == [f"2026-03-10T{hour}:00+00:00" for hour in ("00:30", "02:00", "03:00")]


def test_imported_artifacts_keep_when_they_began(passhat: Passhat, tmp_path: Path) -> None:
    artifact, store = tmp_path / "artifact-00.jsonl", str(tmp_path / "s.db")
    for started in ("2026-03-09T19:00:00-08:00", "2026-03-02T02:00:00Z"):
        write_night(tmp_path, 0, started=started)  # under the same name every night
        for _ in range(2):
            passhat("import", str(artifact), "--store", store)
    runs = json.loads(passhat("history", store, "--json").out)["runs"]
    assert [run["started"][:13] for run in runs] == ["2026-03-02T02", "2026-03-10T03"]
    assert {run["revision"] for run in runs} == {"0" * 40}


def test_missing_attempts_are_bounds_and_tasks_that_go_are_noted(
    passhat: Passhat, tmp_path: Path
) -> None:
    for night in range(4):
        write_night(tmp_path, night, tasks=6 if night < 2 else 4)
    newest = tmp_path / f"artifact-{3 * 5:02d}.jsonl"
    rows = [{**json.loads(line), "passed": None} for line in newest.read_text().splitlines()]
    newest.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    copy = tmp_path / "copy.jsonl"
    copy.write_text(newest.read_text(encoding="utf-8"), encoding="utf-8")
    torn = (tmp_path / "artifact-00.jsonl").read_text(encoding="utf-8")[:600]
    (tmp_path / "torn.jsonl").write_text(torn.replace("03-01", "03-28"), encoding="utf-8")
    badge = tmp_path / "b.svg"
    screen = passhat("history", str(tmp_path), "--badge", str(badge)).out
    assert "The newest run has no verdict" in screen
    assert "0.000 to 1.000 [0.000, 1.000]" in screen
    assert "Run 3, 2026-03-03 02:00 UTC" in screen
    assert "2 removed tasks" in screen
    assert "1 run left out: other sources have the same." in screen
    assert "torn.jsonl" in screen
    assert "no verdict" in badge.read_text(encoding="utf-8")
    needs = passhat("history", str(tmp_path), "--metric", "pass^99").out
    assert "4 runs without a value: " in needs


def test_runs_that_share_no_task_are_not_compared(passhat: Passhat, tmp_path: Path) -> None:
    for night in range(3):
        write_night(tmp_path, night)
    last = tmp_path / "artifact-10.jsonl"
    last.write_text(
        last.read_text(encoding="utf-8").replace('"task": "t', '"task": "u'), encoding="utf-8"
    )
    text = passhat("history", str(tmp_path)).out.replace("\n", " ")
    assert "No change of the agent is shown where runs can be compared." in text
    assert "no task is one of the runs before" in text


def test_scores_after_verdicts_only_are_another_measure(passhat: Passhat, tmp_path: Path) -> None:
    for night in range(2):
        write_night(tmp_path, night, tasks=2)
    last = tmp_path / "artifact-05.jsonl"
    rows = [json.loads(line) for line in last.read_text(encoding="utf-8").splitlines()]
    lines = [json.dumps(row | {"score": 1.0 if row["passed"] else 0.5}) + "\n" for row in rows]
    last.write_text("".join(lines), encoding="utf-8")
    fields = {}
    for metric in ("mean", "pass^1"):
        done = passhat("history", str(tmp_path), "--metric", metric, "--json")
        entry = json.loads(done.out)["runs"][-1]
        fields[metric] = [difference["field"] for difference in entry["differences"]]
    assert fields == {"mean": ["revision", "grading"], "pass^1": ["revision"]}
