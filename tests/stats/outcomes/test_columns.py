"""Which column is taken for what."""

from __future__ import annotations

import pytest

from passhat.errors import InvalidValue
from passhat.stats.outcomes.columns import ALIASES, ColumnMap


@pytest.mark.parametrize("alias", ["run", "seed", "epoch", "attempt", "sample"])
def test_aliases_of_trial(alias: str) -> None:
    columns = ColumnMap.resolve(["model", "task", alias, "success"])
    assert columns.meaning["trial"] == alias
    assert columns.trial_gives_order == (alias != "seed")


@pytest.mark.parametrize("alias", ["item", "task_id", "question_id"])
def test_aliases_of_task(alias: str) -> None:
    assert ColumnMap.resolve([alias, "success"]).meaning["task"] == alias


@pytest.mark.parametrize("alias", ["score", "passed", "correct", "reward", "resolved", "Success"])
def test_aliases_of_success(alias: str) -> None:
    assert ColumnMap.resolve(["task", alias]).meaning["success"] == alias


def test_the_own_name_wins_over_an_alias_and_the_rest_is_listed() -> None:
    columns = ColumnMap.resolve(["task_id", "task", "reward", "success", "colour"])
    assert columns.meaning["task"] == "task"
    assert columns.meaning["success"] == "success"
    assert columns.ignored == ("task_id", "colour")
    assert columns.sentences() == (
        "columns: task = 'task', success = 'success', score = 'reward'",
        "columns ignored: task_id, colour",
    )


def test_an_override_wins_and_its_column_is_not_used_twice() -> None:
    columns = ColumnMap.resolve(["model", "llm", "task", "score"], {"model": "llm", "c": "score"})
    assert columns.meaning["model"] == "llm"
    assert "success" not in columns.meaning


def test_slices_are_columns_with_a_prefix() -> None:
    columns = ColumnMap.resolve(["task", "success", "slice:band", "slice:Size"])
    assert dict(columns.slices) == {"band": "slice:band", "Size": "slice:Size"}


def test_stated_counts_beat_a_score_unless_attempts_are_numbered() -> None:
    assert ColumnMap.resolve(["task", "n", "c"]).holds_counts
    assert ColumnMap.resolve(["task", "n", "c", "success"]).holds_counts
    assert ColumnMap.resolve(["task", "n", "c", "success", "trial"]).holds_attempts
    assert ColumnMap.resolve(["task", "n", "c", "success"], {"success": "success"}).holds_attempts
    assert not ColumnMap.resolve(["task", "n"]).holds_counts


def test_wrong_overrides_are_explained() -> None:
    with pytest.raises(InvalidValue, match="Did you mean 'model'"):
        ColumnMap.resolve(["a"], {"modle": "a"})
    with pytest.raises(InvalidValue, match="no column 'b'"):
        ColumnMap.resolve(["a"], {"model": "b"})


def test_no_alias_means_two_things() -> None:
    # A score decides where nothing else does, and is kept beside a verdict where one does.
    names = [a for word, aliases in ALIASES.items() if word != "score" for a in aliases]
    assert len(names) == len(set(names))
