"""Every example in README and docs is run, and prints what the page says it prints.

In a fenced block ``csv title="NAME"`` is a file to write, ``console`` holds ``$`` commands with
their output, and ``python`` holds ``>>>`` lines or a script. Blocks of a page share one folder and
one namespace. ``...`` stands for anything: alone on a line, for any number of lines. Ports of
servers are other ones here, so that pages can be read at the same time.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.docs.preloaded import preloaded_command

from kept_ports import kept_port

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
PORT = re.compile(r"\b9(?:006|111|210)\b")
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of(
    page: Path, command_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names: dict[str, object] = {}
    with _with_free_ports(page.read_text(encoding="utf-8")) as text:
        for language, rest, body in BLOCK.findall(text):
            if file := re.search(r'title="([^"]+)"', rest):
                (tmp_path / file[1]).write_text(body, encoding="utf-8")
            elif language == "console":
                _run_console(body, tmp_path, command_folder)
            elif language == "python" and ">>>" in body:
                _run_python(body, names, page.name)
            elif language == "python":
                exec(compile(body, page.name, "exec"), names)


@contextmanager
def _with_free_ports(text: str) -> Iterator[str]:
    """The page with ports that are kept for it."""
    with ExitStack() as kept:
        free = {
            port: str(kept.enter_context(kept_port())) for port in sorted(set(PORT.findall(text)))
        }
        yield PORT.sub(lambda found: free[found[0]], text)


@pytest.fixture(scope="module")
def command_folder() -> Iterator[Path]:
    with preloaded_command() as folder:
        yield folder


def _run_console(body: str, folder: Path, command_folder: Path) -> None:
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        # What runs in the background is killed by its number: that is the installed program's.
        is_server = re.search(r"(?<![&>])&(?![&>\d])", command)
        folders = [] if is_server else [str(command_folder)]
        environment = {
            **os.environ,
            "PATH": os.pathsep.join(
                [*folders, str(Path(sys.executable).parent), os.environ["PATH"]]
            ),
            "COLUMNS": "80",
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PASSHAT_TAU2": str(ROOT / "tests" / "integrations" / "tau2" / "checkout"),
        }
        done = subprocess.run(
            ["bash", "-c", f"{{ {command} ; }} 2>&1"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        pattern = "".join(
            r"(?:.*\n)*?" if line.strip() == "..." else _as_pattern(line)
            for line in expected.splitlines()
        )
        assert re.fullmatch(pattern, done.stdout), f"$ {command}\n{done.stdout}"
        if killed := re.fullmatch(r"kill \$\(cat (\S+)\)", command):
            _wait_for_the_end_of(int((folder / killed[1]).read_text()))


def _wait_for_the_end_of(process: int) -> None:
    """A reader is slower than this test: what was killed is gone before the next command."""
    deadline = time.monotonic() + 60
    with suppress(OSError):  # there is no such process any more
        # One that has ended and that nobody has asked about has no words left.
        while Path(f"/proc/{process}/cmdline").read_bytes() and time.monotonic() < deadline:
            time.sleep(0.02)


def _as_pattern(line: str) -> str:
    """The line as it is, with ``...`` for anything within it."""
    return re.escape(line.rstrip()).replace(r"\.\.\.", ".*") + r"[ \t]*\n"


def _run_python(body: str, names: dict[str, object], page: str) -> None:
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    test = parser.get_doctest(body, names, page, page, 0)
    said: list[str] = []
    runner.run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert runner.failures == 0, "".join(said)
