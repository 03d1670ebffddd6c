"""No line of any command is wider than the screen, and none is cut.

Commands to copy, code, paths and ids stay whole; everything else is broken between words.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from passhat.cli import main
from passhat.cli.main import SECTIONS

WIDTHS = (60, 80, 120, 200)
TO_COPY = re.compile(r"(^|[\s('])(passhat [a-z]|pip install )")
TABLE = """question,model,try,correct
q1,a,1,1
q1,a,2,0
q2,a,1,1
q2,a,2,1
q3,a,1,0
q3,a,2,
q1,b as of 18 November,1,1
q1,b as of 18 November,2,1
q2,b as of 18 November,1,1
q3,b as of 18 November,1,1
"""
CLAIM = "Our agent reaches 78.3% pass@1 on SWE-bench Verified, and beats B by 20 points."
COMMANDS = """
agents
battle
bisect
bisect --good a --bad b
compare
compare latest
compare latest~1 latest
compare latest~1 latest --allow --full
compare r.csv
compare r.csv --full
completion nix
demo --nix
doctor --nix
explain delta^2 latest
explain pass^2 r.csv --run a
explain passs
export latest --nix
figure
figure r.csv
forecast latest
forecast latest --full
gate
gate latest 'pass^1 >= 0.9'
gate latest 'pass^1 >= x'
gate latest --against latest~1 --allow
gate r.csv
gate r.csv --run a --against nothere
history
history r.csv
import nothere
init --nix
judge
judge-check nothere
label latest
leaderboard r.csv
mcp --nix
plan
plan --half-width .05
plan latest --detect .05 --full
plan latest --half-width .05
plan r.csv
read claim.md
read latest
read nothere
read r.csv
regrade latest
report
report --full
report latest --tasks
report nothere.csv
report r.csv
report r.csv --full
report r.csv --map task=nix
report r.csv --metric pass@9
review claim.md
review claim.md --source r.csv
rm nix
run --nix
run --show-config
run -a nix
run -s nothere.jsonl
runs
sandbox
serve --nix
show
show latest
show latest add#1
show latest nix#1
store
store check
suites
tasks nothere
tasks tasks.jsonl
temperature
temperature fit latest
temperature toy
validate
validate r.csv
view r.csv
white --nix
why latest
why latest add
why r.csv
"""
LINES = COMMANDS.strip().splitlines()


class _Terminal(io.StringIO):
    """A stream of messages that somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder after ``passhat init`` and two runs, with a table and a claim."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        for line in ("init", "run -n 4", "run -n 3 --seed 1 --name again"):
            assert main(line.split()) == 0
    sys.modules.pop("agent", None)
    (folder / "r.csv").write_text(TABLE)
    (folder / "claim.md").write_text(f"{CLAIM}\n")
    return folder


def _is_whole(line: str) -> bool:
    """Whether a line may be wider than the screen: to copy, code, or one long word."""
    code = line.startswith("    ") and re.search(r"[=(]", line) is not None
    return code or TO_COPY.search(line) is not None


@pytest.mark.parametrize("line", LINES)
def test_no_line_is_wider_than_the_screen(
    prepared: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(prepared)
    monkeypatch.syspath_prepend(str(prepared))
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        out, err = io.StringIO(), _Terminal()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.StringIO())
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            main(shlex.split(line))
        text = out.getvalue() + err.getvalue()
        assert text
        assert "Traceback" not in text
        for shown in text.splitlines():
            breakable = " " in shown[: width + 1].strip()
            assert len(shown) <= width or not breakable or _is_whole(shown), (width, shown)
    assert "…" not in text


def test_every_command_is_looked_at() -> None:
    names = {name for section in SECTIONS.values() for name in section}
    assert {line.split()[0] for line in LINES} == names
