"""Run the A2A project's test kit (a2aproject/a2a-tck) against passhat, from local checkouts.

    git clone -b 0.3.x https://github.com/a2aproject/a2a-tck kit-0.3
    git clone -b 1.0-dev https://github.com/a2aproject/a2a-tck kit-1.0
    python -m venv kit-0.3/.venv && kit-0.3/.venv/bin/pip install ./kit-0.3 pytest-timeout
    python -m venv kit-1.0/.venv && kit-1.0/.venv/bin/pip install ./kit-1.0
    python tools/run_a2a_kit.py kit-0.3 kit-1.0 --write

The agents are started on free ports, tested and stopped. Every failure has to be in
``tools/a2a_kit_failures.toml`` with its reason; the others are printed, and the exit code is 1.
``--write`` writes the tables of docs/a2a.md.
"""

from __future__ import annotations

import argparse
import json
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
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from kept_ports import kept_port

ROOT = Path(__file__).resolve().parents[1]
REASONS = ROOT / "tools" / "a2a_kit_failures.toml"
PAGE = ROOT / "docs" / "a2a.md"
RESULTS = "<!-- results of the kits -->", "<!-- end of results -->"
NAMES = {
    "serve": "`passhat serve`",
    "white": "white agent",
    "kit": "kit agent",
    "bare": "kit agent, `--bare`",
}
AGENTS = {"0.3": ("serve", "white"), "1.0": ("serve", "white", "kit", "bare")}
START_SECONDS = 60


def command(agent: str, port: int, python: str, folder: str) -> list[str]:
    """The command that starts one of our agents."""
    if agent == "serve":
        store = f"{folder}/store.db"
        return [python, "-m", "passhat", "serve", "--port", str(port), "--store", store]
    if agent in ("kit", "bare"):
        flags = ["--bare"] if agent == "bare" else []
        return [python, str(ROOT / "tools" / "a2a_kit_agent.py"), str(port), *flags]
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
    """Run the kit's tests, for every transport that the agent's card names."""
    kit = [python, "-m", "pytest", "-q", "--tb=short", f"--junitxml={report}", "-p", "no:randomly"]
    if kit_version(checkout) == "1.0":
        kit += ["tests/compatibility/", f"--sut-host={url}"]
        kit += [f"--compatibility-report={report}"]
    else:
        kit += ["tests/mandatory/", "tests/optional/", f"--sut-url={url}"]
        kit += ["--test-scope=all", "--transports=jsonrpc"]
    with report.with_suffix(".txt").open("w") as out:
        subprocess.run([*kit, *more], cwd=checkout, stdout=out, stderr=subprocess.STDOUT)


def results(report: Path) -> dict[str, str]:
    """What every test came to, by its name. A failure that the kit expects is one."""
    found = {}
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        kinds = {"failure" if child.get("type") == "pytest.xfail" else child.tag for child in case}
        found[name] = next((k for k in ("failure", "error", "skipped") if k in kinds), "passed")
    return found


def requirements(report: Path) -> dict[str, str]:
    """What every requirement came to; the kit of version 0.3 does not say so."""
    by_name = report.with_suffix(".json")
    if not by_name.exists():
        return {}
    listed = json.loads(by_name.read_text(encoding="utf-8"))["per_requirement"]
    return {name: entry["status"] for name, entry in listed.items()}


def headline(output: Path) -> str:
    """The kit's own figure, as it prints it; the kit of version 0.3 prints none."""
    found = re.search(r"OVERALL COMPATIBILITY: (\S+%)", output.read_text(encoding="utf-8"))
    return found[1] if found else ""


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


def reasons(version: str, agent: str) -> dict[str, str]:
    """The failures that stay, each with its reason, for one kit and one agent."""
    listed = tomllib.loads(REASONS.read_text(encoding="utf-8"))["failure"]
    return {
        name: entry["reason"]
        for entry in listed
        if entry["kit"] == version and agent in entry["agents"]
        for name in entry["tests"]
    }


@dataclass(frozen=True)
class Result:
    """What a kit found in an agent."""

    version: str
    agent: str
    counts: Counter[str]
    failed: tuple[str, ...]
    headline: str
    requirements: dict[str, str]
    unreached: Counter[str]

    @property
    def unexplained(self) -> list[str]:
        known = reasons(self.version, self.agent)
        return [name for name in self.failed if name not in known]

    def describe(self) -> Iterator[str]:
        new = self.unexplained
        yield (
            f"kit {self.version}, {self.agent}: {self.counts['passed']} passed, "
            f"{len(self.failed)} failed ({len(self.failed) - len(new)} explained), "
            f"{self.counts['skipped']} skipped"
        )
        if self.headline:
            yield f"  the kit says: {self.headline}"
        if self.requirements:
            yield f"  requirements: {dict(Counter(self.requirements.values()))}"
        for reason, count in self.unreached.most_common():
            yield f"  not reached, {count} times: {reason}"
        for name in self.failed:
            yield f"  {'UNEXPLAINED' if name in new else 'explained'} {name}"
        for name in sorted(reasons(self.version, self.agent).keys() - set(self.failed)):
            yield f"  listed, but it passes or is gone: {name}"

    @property
    def row(self) -> str:
        cells = [
            *(self.version, NAMES[self.agent], f"{self.counts['passed']:,}"),
            *(f"{len(self.failed)}", f"{len(self.unexplained)}", f"{self.counts['skipped']}"),
            *(f"{self.unreached.total()}", self.headline),
        ]
        return f"| {' | '.join(cells)} |"


def reached_lines(found: list[Result]) -> list[str]:
    """How many of the requirements at least one agent was tested for, and which ones not."""
    states: dict[str, set[str]] = {}
    for result in found:
        for name, state in result.requirements.items():
            states.setdefault(name, set()).add(state)
    if not states:
        return []
    passed = [name for name, seen in states.items() if "PASS" in seen]
    untested = sorted(name for name, seen in states.items() if seen == {"NOT TESTED"})
    skipped = sorted(name for name, seen in states.items() if not seen - {"NOT TESTED", "SKIPPED"})
    failed = sorted(states.keys() - set(passed) - set(skipped))
    unreached = sorted(set(skipped) - set(untested))
    families = sorted({name.rpartition("-")[0] for name in untested})
    return [
        f"Of the {len(states)} requirements of the kit 1.0, {len(untested)} have no test in it "
        f"({', '.join(families)}). Of the other {len(states) - len(untested)}, {len(passed)} are "
        f"passed by at least one of the agents, {len(failed)} failed for a reason below "
        f"({', '.join(failed) or 'none'}), and {len(unreached)} not reached"
        f"{' (' + ', '.join(unreached) + ')' if unreached else ''}.",
    ]


def tables(found: list[Result], commits: list[str]) -> str:
    """The part of the page that the kits' runs fill."""
    lines = [
        f"Measured on {date.today():%d %B %Y}, all categories, commits {' and '.join(commits)}:",
        "",
        "| kit | agent | passed | failed | of them unexplained | skipped "
        "| state not reached | the kit's headline |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(result.row for result in found),
        "",
        *(reached_lines(found)),
        "",
        "Failures that stay (`tools/a2a_kit_failures.toml` names the tests; another failure makes "
        "the tool end with 1):",
        "",
        "| kit | agent | tests | reason |",
        "| --- | --- | ---: | --- |",
    ]
    stay: Counter[tuple[str, str, str]] = Counter()
    for result in found:
        known = reasons(result.version, result.agent)
        stay.update(
            (result.version, result.agent, known[name]) for name in result.failed if name in known
        )
    merged: dict[tuple[str, int, str], list[str]] = {}
    for (version, agent, reason), count in stay.items():
        merged.setdefault((version, count, reason), []).append(agent)
    lines += [
        f"| {version} | {', '.join(agents)} | {count} | {reason} |"
        for (version, count, reason), agents in merged.items()
    ]
    return "\n".join(lines)


def write_page(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(RESULTS[0])
    _, _, after = rest.partition(RESULTS[1])
    PAGE.write_text(f"{before}{RESULTS[0]}\n{text}\n{RESULTS[1]}{after}", encoding="utf-8")


def run_agent(checkout: Path, agent: str, told: argparse.Namespace, folder: Path) -> Result:
    version = kit_version(checkout)
    report = (folder / f"{version}-{agent}.xml").resolve()
    # The kit runs in its own folder; a link to an interpreter stays a link.
    python = str(Path(told.kit_python or checkout / ".venv" / "bin" / "python").absolute())
    with started(agent, told.python) as url:
        run_kit(checkout, python, url, report, told.kit_option)
    ended = results(report)
    return Result(
        version,
        agent,
        Counter(ended.values()),
        tuple(sorted(name for name, how in ended.items() if how in ("failure", "error"))),
        headline(report.with_suffix(".txt")),
        requirements(report),
        unreached(report),
    )


def commit(checkout: Path) -> str:
    asked = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    short = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return f"{short} ({kit_version(checkout)})"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("checkouts", type=Path, nargs="+", help="checkouts of a2aproject/a2a-tck")
    parser.add_argument("--kit-python", help="Python with the kit's needs (CHECKOUT/.venv)")
    parser.add_argument("--python", default=sys.executable, help="Python with passhat[a2a]")
    parser.add_argument("--agent", choices=list(NAMES), action="append")
    parser.add_argument("--reports", type=Path, help="folder for the kit's reports")
    parser.add_argument("--kit-option", action="append", default=[], help="for the kit's pytest")
    parser.add_argument("--write", action="store_true", help="write the tables of docs/a2a.md")
    told = parser.parse_args()
    folder = told.reports or Path(tempfile.mkdtemp(prefix="a2a-kit-"))
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for checkout in told.checkouts:
        for agent in told.agent or AGENTS[kit_version(checkout)]:
            found.append(run_agent(checkout, agent, told, folder))
            print(*found[-1].describe(), sep="\n", flush=True)
    print(*reached_lines(found), f"reports in {folder}", sep="\n")
    if told.write:
        write_page(tables(found, [commit(checkout) for checkout in told.checkouts]))
    return 1 if any(result.unexplained for result in found) else 0


if __name__ == "__main__":
    sys.exit(main())
