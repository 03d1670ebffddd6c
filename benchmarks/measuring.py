"""What benchmarks share: timing by ratio, a throw-away environment for peers, a printed table."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "benchmarks.md"


def fastest(work: Callable[[], object], repeats: int = 7) -> float:
    """Seconds of the fastest of several runs: on a shared machine the least disturbed one."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def in_throwaway_environment(script: Path, peers: Sequence[str], arguments: Sequence[str]) -> str:
    """Run a script beside other tools, installed for this run alone; returns what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        print(f"installing {', '.join(peers)} beside passhat for this run ...", file=sys.stderr)
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, str(ROOT), *peers], check=True, stderr=subprocess.DEVNULL)
        command = [python, str(script), "--inside", *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(header)} |", "|" + " --- |" * len(header)]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join(lines)


def machine() -> str:
    """What it ran on, without naming the machine."""
    import numpy as np

    return f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}"


def write_section(name: str, text: str, path: Path = RESULTS) -> None:
    """Replace a section of a page, between its two markers; of docs/benchmarks.md unless named."""
    page = path.read_text(encoding="utf-8")
    start, stop = f"<!-- {name}: start -->", f"<!-- {name}: stop -->"
    before, rest = page.split(start)
    _, after = rest.split(stop)
    path.write_text(f"{before}{start}\n{text.strip()}\n{stop}{after}", encoding="utf-8")


def study_parser(about: str | None, repetitions: int | None = None) -> argparse.ArgumentParser:
    """The options of a study that may become a page; ``about`` is the script's docstring."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    if repetitions is not None:
        parser.add_argument("--repetitions", type=int, default=repetitions)
    parser.add_argument("--markdown", type=Path, help="the page to write")
    return parser


def publish(text: str, page: Path | None) -> None:
    """Print a study, and write its page where one is named."""
    if page is not None:
        page.write_text(text, encoding="utf-8")
    print(text)


def versions_in_turns(
    script: str, arguments: Sequence[object], other: str, turns: int
) -> dict[str, list[float]]:
    """What a script printed with another version's source and with this one's, in turns.

    The other one runs in the environment beside its source, where there is one: plug-ins, such as
    readers, are found by what is installed.
    """
    its_own = Path(other).parent / ".venv" / "bin" / "python"
    pythons = {"other": str(its_own) if its_own.exists() else sys.executable}
    sources = {"other": other, "this": str(ROOT / "src")}
    printed: dict[str, list[float]] = {name: [] for name in sources}
    for _ in range(turns):
        for name, source in sources.items():
            done = subprocess.run(
                [pythons.get(name, sys.executable), "-c", script, *map(str, arguments)],
                env={**os.environ, "PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"},
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            printed[name].append(float(done.stdout))
    return printed


def run_against(section: str, measure: Callable[[str], str]) -> None:
    """The main of a benchmark against another version: print, and with --write keep the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--against", required=True, help="src folder of another version")
    parser.add_argument("--write", action="store_true", help="keep the table in the docs")
    chosen = parser.parse_args()
    table = measure(chosen.against)
    print(table)
    if chosen.write:
        write_section(section, table)


def run_with_peers(
    script: str, section: str, peers: Sequence[str], measure: Callable[[], str]
) -> None:
    """The main of a benchmark: measure beside peers, print, and with --write keep the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="keep the table in the docs")
    chosen = parser.parse_args()
    if chosen.inside:
        print(measure())
        return
    text = in_throwaway_environment(Path(script), peers, [])
    print(text)
    if chosen.write:
        write_section(section, text)
