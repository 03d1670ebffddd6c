"""The files that ``passhat init --coding`` writes: two small repositories with a bug each."""

from __future__ import annotations

_PYTHON_TASK = '''instruction = """
basket.py adds up a basket. The total is wrong for baskets with more than one of an item.
Fix total(). Do not change how a basket is written.
"""
test = "python3 checks/check.py"
result = "tap"
slices = { language = "python" }

[limits]
agent_seconds = 300
seconds = 30
'''

_PYTHON_START = '''"""A basket is a list of (name, price in cents, count)."""


def total(basket):
    """Return the price of a basket in cents."""
    return sum(price for _, price, _ in basket)
'''

_PYTHON_SOLUTION = _PYTHON_START.replace(
    "sum(price for _, price, _ in basket)", "sum(price * count for _, price, count in basket)"
)

_PYTHON_CHECK = '''"""Hidden tests: put in when the agent has ended. Prints TAP."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from basket import total

CASES = [
    ("an empty basket", [], 0),
    ("one of each", [("tea", 350, 1), ("cup", 900, 1)], 1250),
    ("several of an item", [("tea", 350, 3)], 1050),
    ("none of an item", [("tea", 350, 0), ("cup", 900, 2)], 1800),
]

print(f"1..{len(CASES)}")
failures = 0
for number, (name, basket, expected) in enumerate(CASES, 1):
    got = total(basket)
    failures += got != expected
    print(f"{'ok' if got == expected else 'not ok'} {number} - {name}")
sys.exit(1 if failures else 0)
'''

_SHELL_TASK = '''instruction = """
`sh newest.sh FOLDER` prints the name of the newest file of a folder. It fails for names that
contain a space. Fix it.
"""
test = "sh checks/check.sh"
result = "tap"
slices = { language = "shell" }

[limits]
agent_seconds = 300
seconds = 30
'''

_SHELL_START = """#!/bin/sh
# Print the name of the newest file of a folder.
ls -t "$1" | head -n 1 | cut -d ' ' -f 1
"""

_SHELL_SOLUTION = _SHELL_START.replace(" | cut -d ' ' -f 1", "")

_SHELL_CHECK = """# Hidden tests: put in when the agent has ended. Prints TAP.
folder=$(mktemp -d)
status=0
echo 1..2

check() { # number, name, expected
    if [ "$(sh newest.sh "$folder")" = "$3" ]; then echo "ok $1 - $2"
    else echo "not ok $1 - $2"; status=1; fi
}

touch -d '2020-01-01' "$folder/old.txt"
touch -d '2020-01-02' "$folder/new.txt"
check 1 "a plain name" new.txt
touch -d '2020-01-03' "$folder/my notes.txt"
check 2 "a name with a space" "my notes.txt"
exit $status
"""

_AGENT = '''"""A stand-in for your coding agent: it knows both fixes, and slips now and then.

passhat calls it once per attempt, in a process of its own, with a fresh workspace. An agent with a
command line needs no Python at all: see the settings in passhat.toml.
"""

import random


def fix(prompt, attempt):
    workspace, luck = attempt.workspace, random.Random(attempt.seed).random()
    if "basket" in prompt:
        good, bad = "price * count for _, price, count", "max(price, count) for _, price, count"
        text = workspace.read("basket.py")
        fixed = text.replace("price for _, price, _", good if luck < 0.8 else bad)
        workspace.write("basket.py", fixed)
    else:
        text = workspace.read("newest.sh")
        good, bad = "", " | cut -d ' ' -f 1,3"
        fixed = text.replace(" | cut -d ' ' -f 1", good if luck < 0.5 else bad)
        workspace.write("newest.sh", fixed)
    return "Fixed:\\n" + workspace.diff()
'''

_SETTINGS = """# Options of passhat run by their long names; a flag on the command line wins.
[run]
agent = "python:agent:fix"
# An agent of your own: {prompt} becomes the instruction; the home folder is empty unless
# keep_home = true, and variables such as keys are passed by name.
# agent = "command:claude -p {prompt} --permission-mode acceptEdits"
# pass_env = "ANTHROPIC_API_KEY"
suite = "workspace:tasks"
attempts = 8

# What passhat gate asks for; raise the limit as the agent gets better.
[gate]
rules = ["pass^1 >= 0.1"]
"""

CODING_FILES = {
    "tasks/basket/task.toml": _PYTHON_TASK,
    "tasks/basket/start/basket.py": _PYTHON_START,
    "tasks/basket/hidden/checks/check.py": _PYTHON_CHECK,
    "tasks/basket/solution/basket.py": _PYTHON_SOLUTION,
    "tasks/newest/task.toml": _SHELL_TASK,
    "tasks/newest/start/newest.sh": _SHELL_START,
    "tasks/newest/hidden/checks/check.sh": _SHELL_CHECK,
    "tasks/newest/solution/newest.sh": _SHELL_SOLUTION,
    "agent.py": _AGENT,
    "passhat.toml": _SETTINGS,
}
