"""What is looked at before a release: it notices what it is there to notice."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import release_check
from release_check import Failed, check_contents, find_python, supported_versions

WHEEL = ("passhat/__init__.py", "passhat-0.2.0.dist-info/METADATA")
SDIST = ("Makefile", "tools/setup", "tests/conftest.py", "README.md", "src/passhat/__init__.py")


def _packages(folder: Path, wheel: tuple[str, ...], sdist: tuple[str, ...]) -> tuple[Path, Path]:
    with zipfile.ZipFile(folder / "p.whl", "w") as packed:
        for name in wheel:
            packed.writestr(name, "")
    with tarfile.open(folder / "p.tar.gz", "w:gz") as unpacked:
        for name in sdist:
            unpacked.addfile(tarfile.TarInfo(f"passhat-0.2.0/{name}"), io.BytesIO())
    return folder / "p.whl", folder / "p.tar.gz"


def test_what_should_ship_ships(tmp_path: Path) -> None:
    assert check_contents(*_packages(tmp_path, WHEEL, SDIST)) == "wheel 2 files, sdist 5"


@pytest.mark.parametrize(
    ("wheel", "sdist", "message"),
    [
        ((*WHEEL, "tests/test_a.py"), SDIST, "ships: tests/test_a.py"),
        ((*WHEEL, "passhat/__pycache__/a.pyc"), SDIST, "__pycache__"),
        (WHEEL, (*SDIST, ".passhat/passhat.db"), r"ships: \.passhat"),
        (WHEEL, (*SDIST, "docs/.env"), "ships: docs/.env"),
        (WHEEL, (*SDIST, "site/index.html"), "ships: site"),
        (WHEEL, SDIST[:1], "the sdist lacks README.md"),
    ],
)
def test_what_should_not_ship_is_named(
    tmp_path: Path, wheel: tuple[str, ...], sdist: tuple[str, ...], message: str
) -> None:
    with pytest.raises(Failed, match=message):
        check_contents(*_packages(tmp_path, wheel, sdist))


def test_the_python_of_a_version_is_found_and_another_is_not() -> None:
    version = ".".join(map(str, sys.version_info[:2]))
    assert version in supported_versions()
    assert find_python(version)
    assert find_python("3.99") is None


def test_a_python_that_is_not_here_makes_the_check_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_check, "supported_versions", lambda: ["3.99"])
    ((version, result),) = release_check.check_pythons(tmp_path / "p.whl", tmp_path)
    assert version == "3.99"
    assert result.startswith("NOT RUN: there is no python3.99")


def test_a_step_that_fails_is_kept_with_its_reason_and_the_next_is_taken() -> None:
    steps = release_check.Steps(lambda _text: None)
    steps.take("broken", lambda: release_check.call([sys.executable, "-c", "raise SystemExit(3)"]))
    steps.take("good", lambda: "passes")
    assert [name for name, _ in steps.results] == ["broken", "good"]
    assert "ended with 3" in steps.results[0][1]
    assert steps.results[1][1] == "passes"


def test_the_versions_agree() -> None:
    assert release_check.check_versions().count(".") == 2
