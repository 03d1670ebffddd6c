"""The check of names: what counts, and when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

import check_names

SOURCE = """
def _written(x):
    known = x
    kept_rows = [own for own in x]
    return known, kept_rows

def write(x):
    seed = x
    return seed

def __added__(x): ...

class Run:
    @property
    def finished(self): ...

    async def settled_soon(self): ...
"""


def test_counts_first_words_of_functions_and_whole_local_names() -> None:
    functions, variables = check_names.count_names([SOURCE])
    assert (functions.total, dict(functions.hits)) == (3, {"_written": 1, "settled_soon": 1})
    assert (variables.total, dict(variables.hits)) == (4, {"known": 1, "own": 1})


@pytest.mark.parametrize("word", ["made", "settled", "around", "judged"])
def test_a_participle_is_one(word: str) -> None:
    assert check_names.is_participle(word)


@pytest.mark.parametrize("word", ["seed", "passed", "read", "make", "edge", "embed"])
def test_a_verb_or_noun_is_not(word: str) -> None:
    assert not check_names.is_participle(word)


def test_fails_only_above_the_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "module.py").write_text("def made(): ...\ndef make(): ...\n")
    assert check_names.main([str(tmp_path)]) == 0
    assert check_names.main([str(tmp_path), "--limit", "50"]) == 0
    assert "the limit" not in capsys.readouterr().out
    assert check_names.main([str(tmp_path), "--limit", "49.9"]) == 1
    assert "50.0% of 2 function names are participles or adverbs; the limit is 49.9%" in (
        capsys.readouterr().out
    )


def test_a_folder_without_python_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        check_names.main([str(tmp_path)])
