"""Files a public project has, and that they agree with each other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import passhat

ROOT = Path(__file__).parents[1]


def test_the_citation_names_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == passhat.__version__
    assert citation["license"] == "Apache-2.0"


@pytest.mark.parametrize(
    "path",
    sorted([*ROOT.glob(".github/**/*.yml"), ROOT / ".pre-commit-config.yaml"]),
    ids=lambda path: path.name,
)
def test_project_yaml_is_valid(path: Path) -> None:
    assert yaml.safe_load(path.read_text())


def test_the_workflow_runs_on_every_supported_python() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    versions = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert versions == ["3.11", "3.12", "3.13", "3.14"]


def test_contributing_names_folders_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for folder in (
        "stats",
        "judging",
        "suites",
        "agents",
        "store",
        "runner",
        "readers",
        "reporting",
    ):
        assert f"`{folder}/`" in text
        assert (ROOT / "src/passhat" / folder).is_dir()


def test_every_slow_test_is_there() -> None:
    """A test that was renamed would run in ``make test-fast`` again, unnoticed."""
    tests = Path(__file__).parent
    for line in (tests / "slow.txt").read_text().splitlines():
        file, _, name = line.partition("::")
        if line.startswith("#"):
            continue
        assert (tests / file).exists(), line
        assert not name or f"def {name}(" in (tests / file).read_text(), line


CODE = re.compile(r"`([^`\n]+)`")


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_what_pages_about_the_source_name_is_there(page: str) -> None:
    """Folders, files and classes; the page was once true for a layout that was gone."""
    source = Path(passhat.__file__).parent
    words = set(CODE.findall((ROOT / page).read_text(encoding="utf-8")))
    code = "\n".join(path.read_text(encoding="utf-8") for path in source.rglob("*.py"))
    names = {path.name for path in source.rglob("*")}
    for word in words:
        if (ROOT / word).exists() or " " in word:
            continue
        if word.startswith(("tests/", "src/", "docs/", "tools/")):
            assert (ROOT / word).exists(), word
        elif "/" in word:
            assert (source / word).exists() or word.rstrip("/") in names, word
        elif word.endswith((".py", ".js")):
            assert word in names, word
        elif re.fullmatch(r"[A-Z][a-z]+(?:[A-Z][a-z]+)*", word):
            assert re.search(rf"^(class )?{word}\b", code, re.MULTILINE), word
        elif re.fullmatch(r"[A-Z]+_[A-Z]+", word) and word != "PASSHAT_":
            assert re.search(rf"^{word} =", code, re.MULTILINE), word


def test_the_page_names_the_versions_of_frameworks_that_are_tested() -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    pins: dict[str, str] = {}
    for file in (ROOT / "tests" / "frameworks" / "requirements").glob("*.txt"):
        pins |= dict(re.findall(r"^([\w-]+)(?:\[\w+\])?==([\d.]+)", file.read_text(), re.M))
    tested = re.findall(r"^\| [^|]+ \| ([\w-]+) ([\d.]+) \|", page, re.M)
    assert len(tested) == 13
    assert {name: pins.get(name) for name, _ in tested} == dict(tested)
