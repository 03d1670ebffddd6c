"""The generated parts of the documentation are up to date: `make docs` writes them again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _made(function: str, *given: str) -> str:
    """Call a function of tools/write_docs.py where no other test has touched the commands."""
    code = (
        "import runpy; "
        f"print(runpy.run_path('tools/write_docs.py')['{function}'](*{given!r}), end='')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_reference() -> None:
    written = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == _made("command_reference")


def test_the_api_reference() -> None:
    written = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert written == _made("api_reference")


def test_the_picture_of_reliability() -> None:
    picture = (ROOT / "docs" / "images" / "reliability.svg").read_text(encoding="utf-8")
    assert picture == _made("reliability_picture")
    assert "70% per try is 17% eight times running" in picture


def test_links_of_readme_work_on_the_package_index() -> None:
    made = _made("package_readme", "owner/name", "v1")
    assert not re.search(r'\]\((?!https?:|#)|src(?:set)?="(?!https?:)', made)
    assert "https://github.com/owner/name/blob/v1/docs/tutorial.md" in made
    assert "https://raw.githubusercontent.com/owner/name/v1/docs/images/reliability.svg" in made


def test_the_picture_of_the_report() -> None:
    picture = (ROOT / "docs" / "images" / "report.svg").read_text(encoding="utf-8")
    assert picture == _made("report_picture")
    assert "http" not in picture.replace("http://www.w3.org", "")


def test_the_tables_of_other_tools_are_those_that_were_checked() -> None:
    code = (
        "import sys; sys.path.insert(0, 'benchmarks'); import peers; "
        "print('\\n\\n'.join(peers.table(*table) for table in peers.TABLES))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert done.stdout.strip() in readme
    assert "Checked against inspect_ai " in readme
