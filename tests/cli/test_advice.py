"""Commands that passhat advises do what they say when they are typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import passhat as api

Passhat = Callable[..., Any]
AGENTS = """
def raises(prompt):
    raise KeyError("KEY")

def four(prompt):
    return "4"

def same(prompt):
    return "Error: 401"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "300")
    (tmp_path / "advised.py").write_text(AGENTS)
    lines = [f'{{"id": "t{i}", "prompt": "{i}?", "answer": "{4 + i}"}}' for i in range(3)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(lines))
    return tmp_path


def _run(passhat: Passhat, agent: str, *words: str) -> Any:
    command = ("run", "-a", f"python:advised:{agent}", "-s", "jsonl:tasks.jsonl", "-n", "2")
    return passhat(*command, "--keep-going", *words)


def _advised(text: str) -> list[list[str]]:
    """The commands in the lines of advice, without the words after them."""
    found = re.findall(r"^(?:Next|Read a failure): (?:.*: )?(passhat .*)$", text, re.M)
    more = re.findall(r"(passhat report[^,\n]*)", text)
    return [shlex.split(line)[1:] for line in (*found, *more)]


@pytest.mark.parametrize(
    ("agent", "store"),
    [
        ("four", ()),
        ("four", ("--store", "other place.db")),
        ("raises", ("--store", "other place.db")),
        ("same", ("--store", "other place.db")),
    ],
)
@pytest.mark.usefixtures("folder")
def test_commands_after_a_run_and_its_report_work(
    passhat: Passhat, agent: str, store: tuple[str, ...]
) -> None:
    first = _run(passhat, agent, *store)
    source = store[1:] or ("latest",)
    texts = [first.out, passhat("report", *source).out]
    assert ("plan" in texts[1]) is (agent == "four")
    _run(passhat, "same" if agent == "four" else "four", *store)
    texts.append(passhat("report", store[1] if store else ".passhat/passhat.db").out)
    commands = [words for text in texts for words in _advised(text)]
    assert {words[0] for words in commands} >= {"show", "report"}
    for words in commands:
        assert passhat(*words).code == 0, words


@pytest.mark.parametrize("name", ["advised:four", "python:advised:four"])
@pytest.mark.usefixtures("folder")
def test_the_name_in_a_report_chooses_the_run(passhat: Passhat, name: str) -> None:
    for agent in ("four", "same"):
        _run(passhat, agent, "--store", "s.db")
    chosen = passhat("explain", "pass^1", "s.db", "--run", name)
    assert "python:advised:four" in chosen.out
    _run(passhat, "four", "--store", "s.db", "--name", "again")
    several = passhat("explain", "pass^1", "s.db", "--run", "python:advised:four")
    assert several.code == 2
    assert "2 runs are called 'python:advised:four'" in several.err


@pytest.mark.usefixtures("folder")
def test_a_sample_of_a_model_judge_can_be_labeled_as_the_note_says(
    passhat: Passhat, monkeypatch: pytest.MonkeyPatch
) -> None:
    from passhat.cli.shared.configuring import store_words

    tasks = [{"id": "t", "prompt": "2 + 2?", "answer": "4"}]
    api.run(lambda _prompt: "4", tasks, n=3, store="r.db", progress=False)
    command = f"label latest --sample 50{store_words('r.db')} -o drawn.csv"
    ended = passhat(*shlex.split(command))
    assert (ended.code, "drawn" in ended.out) == (0, True), ended.err
    monkeypatch.setenv("PASSHAT_STORE", "r.db")
    assert store_words("./r.db") == ""


def test_one_attempt_at_one_task_is_counted_in_the_singular(passhat: Passhat, folder: Path) -> None:
    (folder / "tasks.jsonl").write_text('{"id": "t", "prompt": "?", "answer": "4"}')
    ended = passhat("run", "-a", "python:advised:four", "-s", "jsonl:tasks.jsonl", "-n", "1")
    text = ended.out + ended.err + passhat("report", "--full").out + passhat("runs").out
    assert "1 of 1 attempt: 1 passed" in text
    assert not re.findall(
        r"(?<![\d,.])1 (?:attempts|tasks|calls|runs|steps|notes|failures|labels|times)\b", text
    )


def test_a_suggestion_is_made_for_near_names_only(passhat: Passhat, folder: Path) -> None:
    package = folder / "pkg"
    package.mkdir()
    (package / "agent.py").write_text(AGENTS)
    ask = ("run", "-s", "jsonl:tasks.jsonl", "-a")
    assert "Did you mean python:advised:four?" in passhat(*ask, "python:advised:fourr").err
    far = passhat(*ask, "python:advised:nothere").err
    assert "Did you mean" not in far
    assert "It has: raises, four, same" in far
    dotted = passhat(*ask, "python:pkg/agent:four").err
    assert "Write python:pkg.agent:NAME, with dots as in an import." in dotted


def _table(rows: list[tuple[str, str, object]]) -> str:
    lines = [f"{task},{model},{passed}" for task, model, passed in rows]
    return "\n".join(["task,model,passed", *lines])


SITUATIONS = {
    "one task": _table([("a", "m", passed) for passed in (1, 0, 1)]),
    "one attempt each": _table([(f"t{i}", "m", i % 2) for i in range(6)]),
    "no verdicts": _table([(f"t{i}", "m", "") for i in range(4)]),
    "unequal n": _table([(f"t{i % 3}", "m", i % 2) for i in range(10)]),
    "missing": _table([(f"t{i % 3}", "m", "" if i == 4 else i % 2) for i in range(12)]),
    "two runs": _table([(f"t{i % 4}", "mn"[i % 8 > 3], int(i % 5 > 1)) for i in range(24)]),
    "three runs": _table([(f"t{i % 4}", "a b;c"[i % 3 * 2 :][:1], i % 2) for i in range(36)]),
    "odd names": _table([(f"t {i % 3}'s", "my model", i % 2) for i in range(9)]),
}
ASKED = """report; report --full; compare; forecast; why; plan; gate; read; explain pass^1
leaderboard; history; figure; show; view; label; regrade; export --nix"""


def _printed_commands(text: str) -> list[list[list[str]]]:
    """Every command line of its own, or after a colon, without placeholders; steps apart."""
    pattern = re.compile(r"(?:^\s*|(?<!Usage): )(passhat [a-z].*)$")
    found = map(pattern.search, text.splitlines())
    commands = [match[1].removesuffix(".") for match in found if match]
    plain = [line for line in commands if not re.search(r"\b(OTHER|COLUMN|WORD|NAME|FILE)\b", line)]
    return [[shlex.split(step)[1:] for step in line.split(" && ")] for line in plain]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_printed_command_leads_to_an_answer(
    passhat: Passhat, folder: Path, situation: str
) -> None:
    """It works when it is typed, or names the one that does; two hints are enough."""
    (folder / "a table.csv").write_text(SITUATIONS[situation])
    typed: set[str] = set()

    def follow(text: str, hops: int) -> None:
        for steps in _printed_commands(text):
            if str(steps) in typed or steps[-1][0] == "view":
                continue
            typed.add(str(steps))
            for words in steps:
                ended = passhat(*words)
                assert "Traceback" not in ended.err
            needs_attempts = re.search(r"two (or more )?attempts", ended.err)
            more = (hops and _printed_commands(ended.err)) or needs_attempts
            assert ended.code != 2 or more, (steps, ended.err)
            if ended.code == 2:
                follow(ended.err, hops - 1)

    for line in re.split("[;\n]", ASKED):
        command, *rest = line.split()
        ended = passhat(command, *rest, "a table.csv")
        if ended.code != 2 or command in ("plan", "gate", "why", "explain", "forecast", "figure"):
            follow(ended.out + ended.err, 2)
    assert typed


def test_a_file_is_not_to_be_run_again_and_what_is_known_needs_no_plan(
    passhat: Passhat, folder: Path
) -> None:
    (folder / "missing.csv").write_text(SITUATIONS["missing"])
    (folder / "once.csv").write_text(SITUATIONS["one attempt each"])
    for name in ("missing.csv", "once.csv"):
        assert "passhat run" not in passhat("report", name).out
    counts = [(f"t{i}", 8, 8 if i % 3 else 0) for i in range(20_000)]
    lines = "\n".join(f"{task},{n},{c}" for task, n, c in counts)
    (folder / "many.csv").write_text(f"task,n,c\n{lines}")
    known = passhat("report", "many.csv")
    assert known.code == 0
    assert "Next:" not in known.out
    assert "passhat plan" not in known.out


def test_next_announces_commands_only(passhat: Passhat, folder: Path) -> None:
    for situation, text in SITUATIONS.items():
        (folder / "t.csv").write_text(text)
        for line in ("report t.csv", "compare t.csv", "forecast t.csv", "why t.csv"):
            for shown in passhat(*line.split()).out.splitlines():
                assert not shown.startswith("Next:") or ": passhat " in shown, (situation, shown)


def test_words_that_belong_to_another_command_are_answered_with_it(
    passhat: Passhat, folder: Path
) -> None:
    (folder / "two.csv").write_text(SITUATIONS["two runs"])
    for words, line in (
        ("why two.csv", "passhat why two.csv --run m"),
        ("why two.csv --run x", "passhat why two.csv --run m"),
        ("plan two.csv --run m", "passhat plan two.csv --run m --detect 0.03"),
        (
            "plan --half-width .05",
            "passhat plan --half-width .05 --assume mean=0.7 --assume icc=0.4",
        ),
        ("gate two.csv", "passhat gate two.csv 'pass^1 >= 0.5'"),
        ("gate two.csv --run m --against n", "--run m --against two.csv --base-run n"),
        ("figure two.csv", "passhat figure curves two.csv -o fig.svg"),
        ("view two.csv", "passhat import two.csv && passhat view"),
        ("run --n 2", "passhat run -n 2"),
    ):
        ended = passhat(*words.split())
        assert ended.code == 2, words
        assert line in ended.err, words
