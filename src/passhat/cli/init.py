"""passhat init"""

from __future__ import annotations

import json
from importlib.metadata import distribution
from pathlib import Path

import click

from passhat.cli.shared.coding_files import CODING_FILES
from passhat.cli.shared.commands import Command
from passhat.cli.shared.exits import ExitCode

_AGENT = '''"""A stand-in for your agent: it adds and multiplies, and slips now and then.

Replace the body of answer() by a call of your model. passhat calls it once per attempt; drop the
argument ``attempt`` when your agent brings its own randomness.
"""

import random
import re


def answer(prompt, attempt):
    found = re.search(r"(\\d+) ([-+*]) (\\d+)", prompt)
    if found is None:
        return "I do not know"
    a, sign, b = int(found[1]), found[2], int(found[3])
    result = {"+": a + b, "-": a - b, "*": a * b}[sign]
    slip = random.Random(attempt.seed).random() < (0.3 if sign == "*" else 0.1)
    return str(result + 1 if slip else result)
'''

_TASKS = """{"id": "add", "prompt": "What is 17 + 25?", "answer": "42", "grader": "numeric"}
{"id": "add-large", "prompt": "What is 1204 + 3988?", "answer": "5192", "grader": "numeric"}
{"id": "subtract", "prompt": "What is 90 - 57?", "answer": "33", "grader": "numeric"}
{"id": "multiply", "prompt": "What is 12 * 12?", "answer": "144", "grader": "numeric"}
{"id": "multiply-large", "prompt": "What is 37 * 48?", "answer": "1776", "grader": "numeric"}
"""

_SETTINGS = """# Options of passhat run by their long names; a flag on the command line wins.
[run]
agent = "python:agent:answer"
suite = "jsonl:tasks.jsonl"
attempts = 8

# What passhat gate asks for; raise the limit as the agent gets better.
[gate]
rules = ["pass^1 >= 0.3"]
"""

_WORKFLOW = """\
# Runs the agent on every pull request, compares it with the main branch, and
# fails on a regression. Agent, suite and attempts are those of passhat.toml.
name: passhat

on:
  pull_request:
  push:
    branches: [main]

permissions:
  contents: read
  pull-requests: write

concurrency:
  group: passhat-${{ github.ref }}
  cancel-in-progress: true

jobs:
  gate:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@v4

      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
{install}

      # The main branch's attempts, as its last green run kept them.
      - uses: actions/cache/restore@v4
        with:
          path: baseline.jsonl
          key: passhat-baseline-${{ github.run_id }}-${{ github.run_attempt }}
          restore-keys: passhat-baseline-

      - uses: passhat/passhat@v0.2
        with:
          install: "" # the step above did
          baseline: baseline.jsonl
          # The first run on the main branch makes it; pull requests leave it alone.
          save-baseline: ${{ github.ref == 'refs/heads/main' && 'baseline.jsonl' || '' }}

      - uses: actions/cache/save@v4
        if: github.ref == 'refs/heads/main'
        with:
          path: baseline.jsonl
          key: passhat-baseline-${{ github.run_id }}-${{ github.run_attempt }}
"""

_FROM_FOLDER = """\
      # This passhat was installed from a folder. Add a copy of it to this repository, or name a
      # source that the runner can reach: pip install 'passhat @ git+https://...'
      - run: pip install ./passhat"""

_WORKFLOW_FILE = ".github/workflows/passhat.yml"
_FILES = {
    "tasks.jsonl": _TASKS,
    "agent.py": _AGENT,
    "passhat.toml": _SETTINGS,
    _WORKFLOW_FILE: _WORKFLOW,
}


@click.command(
    "init",
    cls=Command,
    examples=(
        "passhat init my-evals",
        "passhat init --coding my-coding-evals",
    ),
)
@click.argument("folder", default=".", metavar="[FOLDER]")
@click.option(
    "--coding",
    is_flag=True,
    help="For a coding agent: two repositories with a bug each, hidden tests, an agent.",
)
def command(folder: str, coding: bool) -> ExitCode:
    """Write a small evaluation to start from: tasks, an agent, settings and a CI workflow.

    Asks nothing, needs no key and no network. Files that exist already stay as they are.
    """
    place = Path(folder)
    workflow = {_WORKFLOW_FILE: _WORKFLOW.replace("{install}", _install_step())}
    files = (CODING_FILES if coding else _FILES) | workflow
    new_files = [name for name, text in files.items() if _write(place / name, text)]
    for name in files:
        click.echo(f"{'wrote' if name in new_files else 'kept '} {place / name}")
    change_folder = "" if place == Path() else f"cd {place} && "
    steps = ("passhat run", "passhat report", "passhat gate", "passhat view --open")
    click.echo(f"\nNext:  {change_folder}" + "\n       ".join(steps))
    return ExitCode.OK


def _install_step() -> str:
    """The step that installs passhat from where this one came: the index, git or a folder."""
    package = distribution("passhat")
    # Written by pip (PEP 610) unless the package came from an index.
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    if not origin:
        return f"      - run: pip install passhat=={package.version}"
    url, vcs = origin["url"], origin.get("vcs_info")
    if url.startswith("file:"):
        return _FROM_FOLDER
    address = url if vcs is None else f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    return f"      - run: pip install 'passhat @ {address}'"


def _write(path: Path, text: str) -> bool:
    """Write a file unless there is one; return whether it was written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        if path.is_file():
            return False
        other = path if path.exists() else path.parent
        what = "not a file" if path.exists() else "a file, and a folder is needed there"
        raise click.ClickException(f"{other} is in the way: it is {what}.") from None
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from None
    return True
