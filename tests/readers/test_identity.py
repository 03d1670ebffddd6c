"""Whose attempt is it: nothing counts twice, and nothing is joined on a guess."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from passhat import read
from passhat.cli.main import main
from passhat.errors import InvalidValue
from passhat.readers import read_all
from passhat.readers.identity import from_name
from passhat.readers.sources import Source
from passhat.reporting.source_checks import check_source

Samples = Any


def _one_trial(
    samples: Samples, name: str, rewards: dict[str, float], llm: str = "gpt", tag: str = ""
) -> Path:
    agent = {**samples.tau2_info["agent_info"], "llm": llm}
    rows = [samples.simulation(task, 0, reward) for task, reward in rewards.items()]
    for row in rows:
        row["id"] = f"simulation-{tag or name}-{row['task_id']}"
    info = {**samples.tau2_info, "agent_info": agent}
    path: Path = samples.write("", {"info": info, "tasks": [], "simulations": rows}, name)
    return path


def _table(folder: Path, name: str, *verdicts: int, column: str = "") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    head, cell = ("model,", f"{column},") if column else ("", "")
    rows = "".join(f"{cell}{chr(97 + i)},{v}\n" for i, v in enumerate(verdicts))
    path.write_text(f"{head}task,success\n{rows}")
    return path


# -- joining ---------------------------------------------------------------------------------


def test_files_stay_apart_until_they_are_joined(samples: Samples) -> None:
    files = [
        _one_trial(samples, "1.json", {"a": 1.0, "b": 0.0}),
        _one_trial(samples, "2.json", {"b": 1.0, "a": 1.0}),
        _one_trial(samples, "3.json", {"a": 0.0}),
    ]
    apart = read(files)
    assert [run.outcomes.attempts_text() for run in apart] == ["1 attempt"] * 3
    assert len({run.name for run in apart}) == 3
    (run,) = read(files, join=True)
    assert run.name == "gpt"
    assert run.outcomes.tasks == ("a", "b")
    assert run.outcomes.n.tolist() == [3, 2]
    assert run.outcomes.order is not None
    assert [int(v) for v in run.outcomes.order.of(0)] == [1, 1, 0]
    assert run.tally is not None
    assert run.tally.attempts == 5
    assert "3 runs of the same agent joined" in run.reading[0]
    assert run.protocol.attempts is None


def test_what_differs_is_not_joined(samples: Samples) -> None:
    files = [
        _one_trial(samples, "1.json", {"a": 1.0}, tag="x"),
        _one_trial(samples, "2.json", {"a": 1.0}, llm="other", tag="x"),
    ]
    assert [run.agent for run in read(files, join=True)] == ["gpt", "other"]


def test_tables_join_with_their_slices(tmp_path: Path) -> None:
    for name, verdict in (("one", 1), ("two", 0)):
        (tmp_path / f"{name}.csv").write_text(
            f"model,task,trial,success,cost,slice:band\nm,a,0,{verdict},0.5,easy\n"
        )
    (run,) = read(str(tmp_path / "*.csv"), join=True)
    assert run.outcomes.n.tolist() == [2]
    assert run.outcomes.labels == {"band": ("easy",)}
    assert [attempt.measures["cost"] for attempt in run.attempts or ()] == [0.5, 0.5]


def test_counts_cannot_be_joined_and_stay_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text("model,task,n,c\nm,a,5,2\n")
    assert len(read(str(tmp_path / "*.csv"), join=True)) == 2


def test_a_solver_names_the_agent_where_inspect_used_no_model(tmp_path: Path) -> None:
    about = {"task": "quiz", "task_id": "T", "model": "none/none", "config": {}}
    samples = [{"id": "a", "epoch": 1, "scores": {"match": {"value": "C"}}}]
    names = []
    for solver in ({}, {"solver": "clerk"}):
        path = tmp_path / "log.json"
        log = {"version": 2, "status": "success", "eval": about | solver, "samples": samples}
        path.write_text(json.dumps(log | {"plan": {}}), encoding="utf-8")
        (run,) = read(path)
        names.append((run.agent, run.agent_guessed))
    assert names == [("none/none", True), ("clerk", False)]


@pytest.mark.parametrize("join", [True, False])
def test_a_joined_run_no_longer_shows_the_number_of_one_file(samples: Samples, join: bool) -> None:
    content = json.loads(samples.content("cruxeval"))
    files = [samples.write("", content, "1/m_temp0.2_output.json")]
    content["raw_scored_generations"]["sample_1"] = [False]
    files.append(samples.write("", content, "2/m_temp0.2_output.json"))
    runs = read(files, join=join, agent="m")
    assert [bool(check_source(run)) for run in runs] == ([False] if join else [True, True])


def test_two_prompts_of_one_file_are_not_two_attempts(samples: Samples) -> None:
    files = []
    for number in (1, 2):
        data = json.loads(samples.content("promptfoo"))
        rows = data["results"]["results"]
        rows[0]["response"]["output"] = f"answer {number}"
        rows.append({**rows[0], "promptIdx": 1, "prompt": {"raw": "y", "label": "beg"}})
        files.append(samples.write("", data, f"{number}.json"))
    runs = read(files, join=True)
    assert [(run.name, run.outcomes.attempts) for run in runs] == [
        ("p prompt 1", 4),
        ("p prompt 2", 2),
    ]


# -- names of files --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("gpt-4.1.csv", "gpt-4.1"),
        ("gpt-4.5.csv.gz", "gpt-4.5"),
        ("claude-3.5-sonnet.jsonl", "claude-3.5-sonnet"),
        ("v1.2.3.CSV", "v1.2.3"),
        ("results.v2.tsv", "results.v2"),
        ("plain.parquet", "plain"),
    ],
)
def test_only_known_endings_are_stripped(name: str, agent: str) -> None:
    assert Source(name, Path(name)).stem == agent


@pytest.mark.parametrize(
    ("name", "agent", "temperature"),
    [
        ("flan-t5-large_results.jsonl", "flan-t5-large", None),
        ("codegen16b_t0.8_samples.jsonl_results.jsonl", "codegen16b", 0.8),
        ("m_temp0.2_output.json", "m", 0.2),
        ("m-t1.json", "m", 1.0),
        ("gpt-4.1_results.jsonl", "gpt-4.1", None),
    ],
)
def test_a_temperature_in_a_name_is_one(name: str, agent: str, temperature: float | None) -> None:
    named, decoding, _ = from_name(Source(name, Path(name)))
    assert (named, decoding.get("temperature")) == (agent, temperature)


def test_models_with_a_dot_are_not_merged(tmp_path: Path, samples: Samples) -> None:
    _table(tmp_path, "gpt-4.1.csv", 1, 1)
    _table(tmp_path, "gpt-4.5.csv", 0, 1)
    runs = read(str(tmp_path / "gpt*.csv"), join=True)
    assert [(run.agent, run.outcomes.n.tolist()) for run in runs] == [
        ("gpt-4.1", [1, 1]),
        ("gpt-4.5", [1, 1]),
    ]
    names = ("gpt-4.1-mini.json", "gpt-4.5-preview.json")
    for name in names:
        samples.write("swe_bench summary", file=f"swe/{name}")
    agents = [run.agent for run in read(samples.folder / "swe")]
    assert agents == ["gpt-4.1-mini", "gpt-4.5-preview"]


def test_a_join_on_a_guessed_name_is_refused_with_the_command(
    samples: Samples,
) -> None:
    one = samples.write("human_eval", file="mine_run1_results.jsonl")
    two = samples.write("human_eval", file="mine_run2_results.jsonl")
    with pytest.raises(InvalidValue, match="joined on a guess") as caught:
        read([one, two], join=True)
    assert f"--join --agent mine {one} {two}" in str(caught.value)
    (run,) = read([one, two], join=True, agent="mine")
    assert (run.agent, run.outcomes.n.tolist()) == ("mine", [4, 4])


def test_the_folder_can_be_the_agent(tmp_path: Path) -> None:
    for agent, verdicts in (("alpha", (1, 0)), ("beta", (0, 0))):
        for run, verdict in enumerate(verdicts):
            _table(tmp_path, f"{agent}/{run}.csv", verdict, 1)
    runs = read(tmp_path, join_by="folder")
    assert {run.agent: run.outcomes.c.tolist() for run in runs} == {
        "alpha": [1, 2],
        "beta": [0, 2],
    }


def test_join_by_column_needs_the_column(tmp_path: Path) -> None:
    named = [_table(tmp_path, f"{i}.csv", i, column="m") for i in (0, 1)]
    (run,) = read(named, join_by="column")
    assert run.outcomes.n.tolist() == [2]
    with pytest.raises(InvalidValue, match="cannot join by 'weather'"):
        read(named, join_by="weather")


def test_one_stated_agent_does_not_swallow_two(tmp_path: Path) -> None:
    files = [_table(tmp_path, f"{name}.csv", 1, column=name) for name in ("m", "o")]
    with pytest.raises(InvalidValue, match="the sources state 2: m, o"):
        read(files, agent="x")


# -- the same thing twice --------------------------------------------------------------------


def test_links_to_a_file_are_the_file(tmp_path: Path) -> None:
    path = _table(tmp_path, "table.csv", 1, 0, column="m")
    (tmp_path / "linked.csv").symlink_to(path)
    os.link(path, tmp_path / "hard.csv")
    found = read_all(tmp_path, join=True)
    assert found.runs[0].outcomes.n.tolist() == [1, 1]
    assert [name for name, why in found.passed_over if "counted once" in why] == [
        str(tmp_path / "table.csv"),
        str(tmp_path / "linked.csv"),
    ]
    (run,) = read([path, tmp_path / "linked.csv", tmp_path / "hard.csv"], join=True)
    assert run.outcomes.n.tolist() == [1, 1]


def test_a_loop_of_links_is_named_and_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    _table(folder, "one.csv", 1, column="m")
    _table(folder, "two.csv", 0, column="m")
    (folder / "loop").symlink_to(".")
    (folder / "self").symlink_to("self")
    outside = _table(tmp_path, "secret/three.csv", 1, column="m")
    (folder / "out.csv").symlink_to(outside)
    (folder / "away").symlink_to(outside.parent)
    found = read_all(folder, join=True)
    assert found.runs[0].outcomes.n.tolist() == [2]
    assert {Path(name).name for name, _ in found.passed_over} == {"loop", "self", "out.csv", "away"}


@pytest.mark.parametrize("name", ["tau2_bench", "livecodebench", "terminal_bench", "evalplus"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_copy_counts_once_and_is_named(samples: Samples, name: str, packed: bool) -> None:
    original = samples.write(name, file="output/run.json")
    content = original.read_bytes()
    copy = samples.write(
        "", gzip.compress(content) if packed else content + b"\n", "artifacts/run.json"
    )
    once = [run.outcomes.n.tolist() for run in read(original)]
    runs = read([original, copy], join=True)
    assert [run.outcomes.n.tolist() for run in runs] == once
    assert any("counted once" in line for run in runs for line in run.reading)


def test_attempts_that_two_files_share_count_once(samples: Samples) -> None:
    rows = [samples.simulation(task, 0, 1.0) for task in "abcd"]
    for number, row in enumerate(rows):
        row["id"] = f"0f3b9c1e-{number}"
    info = {"info": samples.tau2_info, "tasks": []}
    first = samples.write("", {**info, "simulations": rows[:3]}, "first.json")
    second = samples.write("", {**info, "simulations": rows[1:]}, "second.json")
    (run,) = read([first, second], join=True)
    assert dict(zip(run.outcomes.tasks, run.outcomes.n.tolist(), strict=True)) == dict.fromkeys(
        "abcd", 1
    )
    assert any("2 attempts of" in line and "counted once" in line for line in run.reading)


def test_an_attempt_twice_in_one_file_is_skipped(samples: Samples) -> None:
    rows = [samples.simulation("a", 0, 1.0), samples.simulation("a", 0, 1.0)]
    rows[1]["trial"] = 1
    data = {"info": samples.tau2_info, "tasks": [], "simulations": rows}
    (run,) = read(samples.write("", data))
    assert run.outcomes.n.tolist() == [1]
    assert run.tally is not None
    assert run.tally.skipped == {"the same attempt again, by its own id": 1}


def test_a_counter_is_no_identity(samples: Samples) -> None:
    """Ids that every file starts anew do not make two attempts one."""
    files = []
    for number in (1, 2):
        row = samples.simulation("a", 0, 1.0)
        row |= {"id": "0", "duration": 2.5 * number}
        data = {"info": samples.tau2_info, "tasks": [], "simulations": [row]}
        files.append(samples.write("", data, f"{number}.json"))
    (run,) = read(files, join=True)
    assert run.outcomes.n.tolist() == [2]


def test_equal_verdicts_are_no_copies(tmp_path: Path) -> None:
    """Two agents that pass everything are two runs, and numbered repeats are repeats."""
    _table(tmp_path, "old.csv", 1, 1)
    _table(tmp_path, "new.csv", 1, 1)
    assert len(read(str(tmp_path / "*.csv"))) == 2
    for number in (1, 2, 3):
        _table(tmp_path, f"repeats/run{number}.csv", 1, 1, column="m")
    (run,) = read(tmp_path / "repeats", join=True)
    assert run.outcomes.n.tolist() == [3, 3]


def test_a_copied_table_counts_once_in_a_join(tmp_path: Path) -> None:
    path = _table(tmp_path, "table.csv", 1, 0, column="m")
    shutil.copy(path, tmp_path / "table (copy).csv")
    (run,) = read(tmp_path, join=True)
    assert run.outcomes.n.tolist() == [1, 1]
    assert any("counted once" in line for line in run.reading)


def _terminal_bench(samples: Samples, path: str, run: int, **about: str) -> None:
    content = json.loads(samples.content("terminal_bench"))
    for number, row in enumerate(content["results"]):
        row |= {"is_resolved": (run + number) % 2 == 0, "id": ""}
    samples.write("", content, f"board/{path}/results.json")
    if about:
        samples.write("", about, f"board/{path}/run_metadata.json")


def test_terminal_bench_runs_join_by_themselves_where_agent_and_model_are_stated(
    samples: Samples,
) -> None:
    for agent in ("Warp", "Goose"):
        for run in range(5):
            place = f"{agent}/2025-0{run + 1}-01"
            _terminal_bench(samples, place, run, agent_name=agent, model_name="m")
    runs = read(samples.folder / "board")
    assert {(run.agent, tuple(run.outcomes.n.tolist())) for run in runs} == {
        ("Warp m", (15,)),
        ("Goose m", (15,)),
    }
    assert all("5 runs of the same agent joined" in run.decisions[0] for run in runs)


@pytest.mark.parametrize("about", [{}, {"agent_name": "Architect"}])
def test_two_agents_of_one_suite_are_not_joined_by_their_folder(
    samples: Samples, about: dict[str, str]
) -> None:
    for run, folder in enumerate(("0902_architect_qwen", "0902_architect_sonnet")):
        _terminal_bench(samples, f"core@0.1.1/{folder}", run, **about)
    runs = read(samples.folder / "board")
    assert len(runs) == 2
    assert all(run.agent_guessed for run in runs)
    if about:
        with pytest.raises(InvalidValue, match="not joined on a guess"):
            read(samples.folder / "board", join=True)


def test_equal_repeats_by_letter_are_no_copies_and_a_reordered_copy_is_one(tmp_path: Path) -> None:
    for name in ("seed_a", "seed_b"):
        _table(tmp_path / name, "out.csv", 1, 0, column="m")
    (run,) = read(tmp_path, join=True)
    assert run.outcomes.n.tolist() == [2, 2]
    rows = ["m,a,1,0.25", "m,b,0,0.75"]
    for name, lines in (("one", rows), ("two", rows[::-1])):
        (tmp_path / "times" / name).mkdir(parents=True)
        text = "\n".join(["model,task,success,duration", *lines])
        (tmp_path / "times" / name / "out.csv").write_text(text)
    (run,) = read(tmp_path / "times", join=True)
    assert run.outcomes.n.tolist() == [1, 1]
    assert "counted once" in run.decisions[0]


def test_terminal_bench_runs_of_unknown_agents_stay_apart(samples: Samples) -> None:
    content = json.loads(samples.content("terminal_bench"))
    for run in range(2):
        content["results"][0]["is_resolved"] = bool(run)
        samples.write("", content, f"runs/2025-0{run + 1}-01/results.json")
    assert len(read(samples.folder / "runs")) == 2


def _redteam(strategy: str | None, success: bool) -> dict[str, object]:
    metadata = {"pluginId": "pii"} | ({"strategyId": strategy} if strategy else {})
    return {
        "prompt": {"raw": "{{prompt}}", "label": "ask"},
        "promptIdx": 0,
        "vars": {"prompt": "Who lives there?"},
        "provider": {"id": "p"},
        "success": success,
        "metadata": metadata,
        "response": {"output": "o", "cached": False},
    }


def test_red_team_strategies_are_not_repeats(samples: Samples) -> None:
    rows = [_redteam(None, True), _redteam("jailbreak", False), _redteam("base64", True)]
    rows.append(_redteam("jailbreak", True))
    data = {"evalId": "e", "results": {"version": 3, "results": rows, "prompts": []}}
    (run,) = read(samples.write("", data))
    assert run.outcomes.n.tolist() == [1, 2, 1]
    assert run.outcomes.c.tolist() == [1, 1, 1]


def test_tests_with_the_same_variables_are_told_apart_by_their_assertions(
    samples: Samples,
) -> None:
    rows = []
    for wanted in ("yes", "no", "yes"):
        row = _redteam(None, True)
        row |= {"metadata": {}, "testCase": {"assert": [{"type": "contains", "value": wanted}]}}
        rows.append(row)
    data = {"evalId": "e", "results": {"version": 3, "results": rows, "prompts": []}}
    (run,) = read(samples.write("", data))
    assert run.outcomes.n.tolist() == [2, 1]


def _verdicts(first: int) -> str:
    return json.dumps([{"task": t, "passed": place == first} for place, t in enumerate("abc")])


def _printed_command(decisions: tuple[str, ...]) -> list[str]:
    (line,) = (line for line in decisions if "if they are attempts of one agent: passhat" in line)
    return shlex.split(line.partition("agent: passhat ")[2])


@pytest.mark.parametrize(
    ("paths", "agent"),
    [
        (["exp/seed_1/results.json", "exp/seed_2/results.json"], "exp"),
        (["gpt-seed1.json", "gpt-seed2.json"], "gpt"),
        (["gpt/run-1.json", "gpt/run-2.json"], "gpt"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_files_that_number_repeats_are_joined_by_the_printed_command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    paths: list[str],
    agent: str,
    packed: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    archive = Path("all.zip")
    for place, name in enumerate([*paths, *([] if packed else ["other/notes_1.json"])]):
        path = Path("runs") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_verdicts(place), encoding="utf-8")
        if packed:
            with zipfile.ZipFile(archive, "a") as file:
                file.write(path, name)
    runs = read(archive if packed else Path("runs"))
    told = [run for run in runs if run.source.endswith(tuple(paths))]
    command = _printed_command(told[0].decisions)
    assert main(command) == 0
    assert command[command.index("--agent") + 1] in (agent, "all")
    (run,) = read(Path("runs.jsonl"))
    assert (len(run.outcomes), run.outcomes.scored, run.outcomes.passes) == (3, 6, 2)
    capsys.readouterr()


def _pack(path: Path, names: list[str]) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for place, name in enumerate(names):
            file.writestr(name, _verdicts(place))
    return path


def test_a_zip_with_two_agents_by_file_names_is_not_joined_by_a_command(tmp_path: Path) -> None:
    names = ["a-seed_1.json", "a-seed_2.json", "b-seed_1.json"]
    runs = read(_pack(tmp_path / "all.zip", names))
    assert len(runs) == 3
    assert not any("--join" in line for run in runs for line in run.decisions)


@pytest.mark.parametrize(
    "names",
    [
        ["a/seed_1.json", "a/seed_2.json", "b/seed_1.json"],
        ["a-run1/results.json", "a-run2/results.json", "b-run1/results.json"],
        ["a/run1/results.json", "a/run2/results.json", "b/run1/results.json"],
    ],
)
def test_folders_with_agent_and_run_are_joined_by_the_printed_command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    names: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    _pack(Path("all.zip"), names)
    runs = read("all.zip")
    assert [run.name for run in runs] == [n.removesuffix("/results.json") for n in names] or (
        "results" not in names[0]
    )
    lines = {line for run in runs for line in run.decisions if "if each folder is" in line}
    (command,) = (shlex.split(line.partition("agent: passhat ")[2]) for line in lines)
    assert main(command) == 0
    found = {run.agent: run.outcomes.attempts for run in read("runs.jsonl")}
    assert found == {"a": 6, "b": 3}
    capsys.readouterr()


def test_the_command_that_joins_repeats_has_the_stated_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        rows = f"vignette,verdikt\na,{'AB'[number - 1]}\nb,B\n"
        Path(f"gpt_run{number}.csv").write_text(rows)
    columns = {"task": "vignette"}
    runs = read(["gpt_run1.csv", "gpt_run2.csv"], columns=columns, passes="verdikt == A")
    command = _printed_command(runs[0].decisions)
    assert main(command) == 0
    (run,) = read("runs.jsonl")
    assert (len(run.outcomes), run.outcomes.attempts, run.outcomes.passes) == (2, 4, 1)
    capsys.readouterr()


@pytest.mark.parametrize("states_model", [True, False])
def test_lm_eval_in_folders_of_seeds_is_joined_by_the_printed_command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    states_model: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    for model in ("org__x", "org__y"):
        for seed in (1, 2):
            folder = Path("out", model, f"seed{seed}")
            folder.mkdir(parents=True)
            date = f"2025-02-0{seed}T10-11-12"
            lines = ({"doc_id": d, "resps": [["a"]], "acc": (d + seed) % 2} for d in range(4))
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (folder / f"samples_arc_{date}.jsonl").write_text(text)
            config = {"model_args": f"pretrained={model.replace('__', '/')},dtype=auto"}
            if states_model:
                (folder / f"results_{date}.json").write_text(json.dumps({"config": config}))
    runs = read("out")
    sign = "/" if states_model else "__"
    assert {run.agent for run in runs} == {f"org{sign}x", f"org{sign}y"}
    assert runs[0].name == f"org{sign}x seed1"
    command = shlex.split(runs[0].decisions[-1].partition(": passhat ")[2])
    if states_model:
        assert command == ["report", "out", "--join"]
        assert main(command) == 0
        command = ["read", "out", "--join", "-o", "runs.jsonl"]
    assert main(command) == 0
    found = {run.agent: (len(run.outcomes), run.outcomes.passes) for run in read("runs.jsonl")}
    assert found == {f"org{sign}x": (4, 4), f"org{sign}y": (4, 4)}
    capsys.readouterr()
