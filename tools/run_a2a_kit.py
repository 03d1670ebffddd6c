"""Run the A2A project's test kit (a2aproject/a2a-tck) against passhat, from a local checkout.

    git clone -b 0.3.x https://github.com/a2aproject/a2a-tck kit-0.3
    git clone -b 1.0-dev https://github.com/a2aproject/a2a-tck kit-1.0
    python -m venv kit-venv && kit-venv/bin/pip install ./kit-0.3 ./kit-1.0 pytest-timeout
    python tools/run_a2a_kit.py kit-0.3 --kit-python kit-venv/bin/python
    python tools/run_a2a_kit.py kit-1.0 --kit-python kit-venv/bin/python

Both agents that we ship are started on free ports, tested and stopped. Every failure has to be in
``tools/a2a_kit_failures.toml`` with its reason; the others are printed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kept_ports import kept_port

ROOT = Path(__file__).resolve().parents[1]
REASONS = ROOT / "tools" / "a2a_kit_failures.toml"
START_SECONDS = 60


def command(agent: str, port: int, python: str, folder: str) -> list[str]:
    """The command that starts one of our agents."""
    if agent == "serve":
        store = f"{folder}/store.db"
        return [python, "-m", "passhat", "serve", "--port", str(port), "--store", store]
    if agent == "kit":
        return [python, str(ROOT / "tools" / "a2a_kit_agent.py"), str(port)]
    # The kit talks about nothing in particular; the demo agents answer at their desk only.
    Path(folder, "echo.py").write_text("def answer(text):\n    return f'You said: {text}'\n")
    return [python, "-m", "passhat", "white", "python:echo:answer", "--port", str(port)]


@contextmanager
def started(agent: str, python: str) -> Iterator[str]:
    """Start an agent on a free port, wait for its card, and stop it afterwards."""
    with tempfile.TemporaryDirectory() as folder, kept_port() as port:
        log = Path(folder) / "log"
        with log.open("w") as out:
            process = subprocess.Popen(
                command(agent, port, python, folder), stdout=out, stderr=out, cwd=folder
            )
        url = f"http://127.0.0.1:{port}"
        try:
            wait_for_card(url, process, log)
            yield url
        finally:
            process.terminate()
            process.wait()


def wait_for_card(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(f"{url}/.well-known/agent-card.json", timeout=5).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(f"the agent did not start: {log.read_text()[-2000:]}")
            time.sleep(0.1)


def kit_version(checkout: Path) -> str:
    """Which of the two kits a checkout is."""
    if (checkout / "tests" / "compatibility").is_dir():
        return "1.0"
    if (checkout / "tests" / "mandatory").is_dir():
        return "0.3"
    sys.exit(f"{checkout} is no checkout of a2aproject/a2a-tck, branch 0.3.x or 1.0-dev.")


def run_kit(checkout: Path, python: str, url: str, report: Path, more: list[str]) -> None:
    """Run the kit's tests for JSON-RPC, the transport that passhat speaks."""
    kit = [python, "-m", "pytest", "-q", "--tb=short", f"--junitxml={report}", "-p", "no:randomly"]
    if kit_version(checkout) == "1.0":
        kit += ["tests/compatibility/", f"--sut-host={url}", "--transport=jsonrpc"]
    else:
        kit += ["tests/mandatory/", "tests/optional/", f"--sut-url={url}"]
        kit += ["--test-scope=all", "--transports=jsonrpc"]
    with report.with_suffix(".txt").open("w") as out:
        subprocess.run([*kit, *more], cwd=checkout, stdout=out, stderr=subprocess.STDOUT)


def results(report: Path) -> dict[str, str]:
    """What every test came to, by its name."""
    found = {}
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        kinds = {child.tag for child in case}
        found[name] = next((k for k in ("failure", "error", "skipped") if k in kinds), "passed")
    return found


def headline(output: Path) -> list[str]:
    """The kit's own summary, as it prints it: lines with a share of requirements."""
    lines = (re.sub(r"\x1b\[[0-9;]*m", "", line).strip() for line in output.open())
    return [line for line in lines if re.search(r"\d%", line) and "[" not in line]


def unreached(report: Path) -> Counter[str]:
    """Why tests were skipped in their middle: requirements that look passed, and are not.

    The kit skips a test whose agent does not get into the state that the test is about.
    """
    reasons: Counter[str] = Counter()
    for case in ET.parse(report).iter("testcase"):
        for skipped in case.iter("skipped"):
            message = skipped.get("message") or ""
            if message.startswith("Expected task state"):
                reasons[message] += 1
    return reasons


def explained(version: str, agent: str) -> set[str]:
    """The failures that stay, with a reason, for one kit and one agent."""
    listed = tomllib.loads(REASONS.read_text(encoding="utf-8"))["failure"]
    return {
        name
        for entry in listed
        if entry["kit"] == version and agent in entry["agents"]
        for name in entry["tests"]
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="a checkout of a2aproject/a2a-tck")
    parser.add_argument(
        "--kit-python",
        # The kit runs in its own folder; a link to an interpreter stays a link.
        type=lambda word: str(Path(word).absolute()) if os.sep in word else word,
        default=sys.executable,
        help="Python with the kit's needs",
    )
    parser.add_argument("--python", default=sys.executable, help="Python with passhat[a2a]")
    parser.add_argument("--agent", choices=["serve", "white", "kit"], action="append")
    parser.add_argument("--reports", type=Path, help="folder for the kit's reports")
    parser.add_argument("--kit-option", action="append", default=[], help="for the kit's pytest")
    told = parser.parse_args()
    version = kit_version(told.checkout)
    folder = told.reports or Path(tempfile.mkdtemp(prefix="a2a-kit-"))
    folder.mkdir(parents=True, exist_ok=True)
    unexplained = 0
    for agent in told.agent or ["serve", "white", "kit"]:
        report = (folder / f"{version}-{agent}.xml").resolve()
        with started(agent, told.python) as url:
            run_kit(told.checkout, told.kit_python, url, report, told.kit_option)
        ended = results(report)
        counts = Counter(ended.values())
        known = explained(version, agent)
        failed = sorted(name for name, how in ended.items() if how in ("failure", "error"))
        new = [name for name in failed if name not in known]
        unexplained += len(new)
        print(
            f"kit {version}, {agent}: {counts['passed']} passed, {len(failed)} failed "
            f"({len(failed) - len(new)} explained), {counts['skipped']} skipped"
        )
        for line in headline(report.with_suffix(".txt")):
            print(f"  the kit says: {line}")
        for reason, count in unreached(report).most_common():
            print(f"  not reached, {count} times: {reason}")
        for name in failed:
            print(f"  {'UNEXPLAINED' if name in new else 'explained'} {name}")
        for name in sorted(known - set(failed)):
            print(f"  listed, but it passes or is gone: {name}")
    print(f"reports in {folder}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
