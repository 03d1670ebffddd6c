"""Files a public project has, and that they agree with each other."""

from __future__ import annotations

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
    for folder in ("stats", "judging", "suites", "agents", "store", "runner", "readers", "report"):
        assert f"`{folder}/`" in text
        assert (ROOT / "src/passhat" / folder).is_dir()


def test_every_slow_test_is_there() -> None:
    """A test that was renamed would run in ``make test-fast`` again, unnoticed."""
    tests = Path(__file__).parent
    for line in (tests / "slow.txt").read_text().splitlines():
        file, _, name = line.partition("::")
        if not line.startswith("#"):
            assert f"def {name}" in (tests / file).read_text(), line
