"""Tables that say in another form what plain columns say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from passhat import read
from passhat.errors import PasshatError
from passhat.stats.outcomes import Run

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(text: str, name: str = "mine.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


def _counts(runs: list[Run]) -> dict[str, tuple[int, int, int]]:
    return {
        run.name: (run.outcomes.passes, run.outcomes.scored, int(run.outcomes.missing.sum()))
        for run in runs
    }


def test_merged_cells_are_filled_and_said(write: Write) -> None:
    text = "Task,Model,Attempt,Result\na,x,1,ok\n,,2,fail\n,y,1,ok\n,,2,ok\nb,x,1,fail\n,,2,fail\n"
    runs = read(write(text + ",y,1,ok\n,,2,fail\n"))
    assert _counts(runs) == {"x": (1, 4, 0), "y": (3, 4, 0)}
    assert any("filled with the cell above" in line for line in runs[0].decisions)
    # One name among many rows is no merged cell.
    (run,) = read(write("task,passed\na,1\nb,0\nc,1\n,1\n"))
    assert run.outcomes.scored == 3


def test_one_mark_in_a_column_for_each_verdict(write: Write) -> None:
    text = "Task,Round,Pass,Fail,No verdict\na,1,X,,\na,2,,X,\nb,1,,,X\nb,2,X,,\n"
    (run,) = read(write(text))
    assert (run.outcomes.passes, run.outcomes.scored, run.outcomes.total_missing) == (2, 3, 1)


def test_the_others_of_those_that_solved_a_task_failed(write: Write) -> None:
    runs = read(write('task,solved_by\na,"x, y"\nb,y\nc,(none)\nd,"x; y"\n'))
    assert _counts(runs) == {"x": (2, 4, 0), "y": (3, 4, 0)}


@pytest.mark.parametrize(
    ("heading", "passes"), [("score (1-5, pass >= 4)", 2), ("score (pass > 4)", 1)]
)
def test_a_heading_that_states_the_rule(write: Write, heading: str, passes: int) -> None:
    (run,) = read(write(f'task,"{heading}"\na,4\nb,5\nc,3\nd,\n'))
    assert (run.outcomes.passes, run.outcomes.scored) == (passes, 3)
    assert any("as its heading states" in line for line in run.decisions)


def test_counts_of_each_model_side_by_side(write: Write) -> None:
    runs = read(write("task,x_pass,x_fail,y_pass,y_fail\na,3,1,2,2\nb,0,4,4,0\n"))
    assert _counts(runs) == {"x": (3, 8, 0), "y": (6, 8, 0)}


def test_an_id_with_the_number_of_the_attempt(write: Write) -> None:
    (run,) = read(write("instance,result\na/b#1,ok\na/b#2,wrong\nc#1,ok\nc#2,ok\n"))
    assert (len(run.outcomes), run.outcomes.passes, run.outcomes.scored) == (2, 3, 4)
    # Numbers that make no attempts of one name are part of it.
    (run,) = read(write("task,passed\nsort#1,1\nfind#2,0\nmerge#3,1\n"))
    assert len(run.outcomes) == 3


@pytest.mark.parametrize(
    ("names", "tasks"),
    [
        (["geometry#0", "geometry#1", "poetry#0", "poetry#1"], ["geometry", "poetry"]),
        (["a_run1", "a_run2", "b_run1", "b_run2"], ["a", "b"]),
        (["a (trial 1)", "a (trial 2)", "b (trial 1)", "b (trial 2)"], ["a", "b"]),
        ([f"{t}/attempt-{i}" for t in ("x", "y") for i in (0, 1, 2)], ["x", "y"]),
        ([f"{t}__{i}" for t in ("a", "b") for i in (1, 2)], ["a", "b"]),
        ([f"t-{t}@{i}" for t in (7, 9) for i in (1, 2, 3)], ["t-7", "t-9"]),
        ([f"{t}#{i}" for t in ("algebra", "biology") for i in (1, 2, 3)], None),
        ([f"{t}_sample_{i}" for t in ("algebra", "biology") for i in (1, 2, 3)], None),
    ],
)
@pytest.mark.parametrize("name", ["mine.csv", "mine.json"])
def test_names_that_end_with_the_number_of_an_attempt(
    write: Write, names: list[str], tasks: list[str] | None, name: str
) -> None:
    rows = {one: place % 3 == 0 for place, one in enumerate(names)}
    table = "task,passed\n" + "".join(f"{one},{int(passed)}\n" for one, passed in rows.items())
    path = write(json.dumps(rows) if name.endswith("json") else table, name)
    (run,) = read(path)
    assert list(run.outcomes.tasks) == (tasks or names)
    assert (run.outcomes.passes, run.outcomes.scored) == (sum(rows.values()), len(rows))
    assert any("attempt" in line for line in run.decisions) == (tasks is not None)
    keys = {"records": "*", "task": "@key", "success": "@value"}
    (run,) = read(path, columns=keys if name.endswith("json") else {"task": "task"})
    assert list(run.outcomes.tasks) == names


@pytest.mark.parametrize(
    "names",
    [
        ["a#1", "a#2", "b1#1", "b1#3"],  # not the same numbers
        ["a1#1", "a1#2", "plain"],
        ["a1#1", "a1#2"],  # one task
        ["a1#1", "b1#1"],
        ["a1#2", "a1#3", "b1#2", "b1#3"],
        ["a1#" + "0" * 300 + "1", "a1#2"],
    ],
)
def test_keys_with_numbers_that_are_no_attempts(write: Write, names: list[str]) -> None:
    (run,) = read(write(json.dumps(dict.fromkeys(names, True) | {names[0]: False}), "mine.json"))
    assert list(run.outcomes.tasks) == names


def test_words_for_a_fault_of_the_surroundings_are_missing(write: Write) -> None:
    (run,) = read(write("task,result\na,passed\nb,infra_error\nc,n/a (vm lost)\nd,agent crashed\n"))
    assert (run.outcomes.passes, run.outcomes.scored, run.outcomes.total_missing) == (1, 2, 2)


def test_a_first_column_of_texts_without_a_name_is_the_task(write: Write) -> None:
    (run,) = read(write(",run 1,run 2\nsort,1,0\nfind,1,1\n"))
    assert (sorted(run.outcomes.tasks), run.outcomes.passes) == (["find", "sort"], 3)


def test_headings_above_several_columns_hold_for_all_of_them(write: Write) -> None:
    text = ",x,,y,\ntask,run 1,run 2,run 1,run 2\na,PASS,FAIL,FAIL,FAIL\nb,PASS,PASS,FAIL,PASS\n"
    assert _counts(read(write(text))) == {"x": (3, 4, 0), "y": (1, 4, 0)}


def test_blocks_with_a_title_each(write: Write) -> None:
    block = "Model: {},,\ntask,t1,t2\na,1,{}\nb,0,1\nsolved,1,2\n\n"
    runs = read(write("Experiment 3\n\n" + block.format("x", 1) + block.format("y", 1)))
    assert _counts(runs) == {"x": (3, 4, 0), "y": (3, 4, 0)}


_SPELLED = {
    "signs": (("+-+", "+++", "---"), ("++-", "+?+", "+++"), ()),
    "signs apart": (("+ - +", "+ + +", "- - -"), ("+ + -", "+ ? +", "+ + +"), ()),
    "ticks above sums": (("✓✗✓", "✓✓✓", "✗✗✗"), ("✓✓✗", "✓?✓", "✓✓✓"), ("**5/9**", "7 of 9")),
    "ticks above shares": (
        ("✅❌✅", "✅✅✅", "❌❌❌"),
        ("✅✅❌", "✅⚠️✅", "✅✅✅"),
        ("56%", "88%"),
    ),
    "counts beside": (("✓✗✓ (2/3)", "✓✓✓ 3/3", "✗✗✗ 0/3"), ("✓✓✗ 2/3", "✓?✓ 2/2", "✓✓✓"), ()),
    "letters above sums": (("PFP", "PPP", "FFF"), ("PPF", "P?P", "PPP"), ("5/9", "7/9")),
}


@pytest.mark.parametrize("kind", _SPELLED)
@pytest.mark.parametrize("form", ["csv", "md"])
def test_cells_of_several_marks(tmp_path: Path, kind: str, form: str) -> None:
    first, second, sums = _SPELLED[kind]
    rows = [["Task", "gpt-4", "claude"], *map(list, zip("abc", first, second, strict=True))]
    rows += [["Passed", *sums]] if sums else []
    lines = [",".join(row) if form == "csv" else f"| {' | '.join(row)} |" for row in rows]
    path = tmp_path / f"mine.{form}"
    path.write_text("\n".join([*lines[:1], *["|---|---|---|"] * (form == "md"), *lines[1:]]))
    runs = read(path)
    figures = {r.agent: (len(r.outcomes), r.outcomes.passes, r.outcomes.scored) for r in runs}
    assert figures == {"gpt-4": (3, 5, 9), "claude": (3, 7, 8)}


def test_bits_are_marks_beside_each_other_and_numbers_are_not(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("task,gpt-4,claude\na,101,011\nb,000,111\n")
    assert [(run.outcomes.passes, run.outcomes.scored) for run in read(path)] == [(2, 6), (5, 6)]
    path.write_text("task,gpt-4,claude\na,101,110\nb,100,111\n")
    with pytest.raises(PasshatError):
        read(path)


def test_marks_of_columns_that_name_no_model_get_a_command(tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_text(
        "| Flow | North | South |\n|---|---|---|\n| a | +-+ | ++- |\n| b | --- | +++ |\n"
    )
    with pytest.raises(PasshatError) as caught:
        read(path)
    assert "--map task=Flow,model=@column\n" in str(caught.value.hint)
