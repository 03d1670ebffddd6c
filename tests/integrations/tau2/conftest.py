"""The stand-in checkout, and agents that know what its tasks want."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent / "checkout"

AGENTS = """
import json

WANTS = {"add_tea": "tea", "add_and_tell": "milk", "with_history": "jam", "both_act": "salt",
         "by_rules": "tea", "by_model": "tea"}

def call(name, **arguments):
    return "<json>" + json.dumps({"name": name, "arguments": arguments}) + "</json>"

class Good:
    def __init__(self):
        self.heard = []
    def __call__(self, prompt, attempt):
        self.heard.append(prompt)
        if len(self.heard) == 1:
            assert "Be brief." in prompt and "- add: Add a thing." in prompt
            assert ("Is this the shop?" in prompt) == (attempt.task == "with_history")
            return call("add", thing=WANTS[attempt.task])
        if len(self.heard) == 2:
            assert prompt == "Tool result: 1 things"
            return call("respond", content="That makes 1 things. Is that all right?")
        assert prompt == "User: Yes, please."
        return call("respond", content="Done.")

def forgets(prompt, attempt):
    if attempt.task == "add_and_tell" and "User:" in prompt:
        return call("add", thing="milk")
    return call("respond", content="Done.")

async def by_mcp(prompt, attempt):
    import re
    from mcp import Client
    if endpoint := re.search(r"http://\\S+/mcp", prompt):
        assert "Be brief." in prompt and "- add: Add a thing." not in prompt
        async with Client(endpoint[0]) as client:
            (tool,) = [one for one in (await client.list_tools()).tools if one.name == "add"]
            assert tool.description.startswith("Add a thing.")
            added = await client.call_tool("add", {"thing": WANTS[attempt.task]})
            assert (added.content[0].text, added.is_error) == ("1 things", False)
            assert (await client.call_tool("no_such_tool", {})).is_error
        return "That makes 1 things. Is that all right?"
    return "Done."

def mumbles(prompt):
    return "I would rather not use your form."

def blank(prompt):
    return call("respond", content="  ")

def errs(prompt):
    return call("no_such_tool")

def crashes(prompt):
    return call("crash")

def talks(prompt):
    return call("respond", content="Tell me more.")

def coin(prompt, attempt):
    if prompt.startswith("Tool result") or attempt.seed % 2:
        return call("respond", content="1 things")
    return call("add", thing=WANTS[attempt.task])
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with agents, which passhat is called in; the checkout is named by environment."""
    (tmp_path / "shop_agents.py").write_text(AGENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PASSHAT_TAU2", str(CHECKOUT))
    monkeypatch.delenv("PASSHAT_TAU2_PYTHON", raising=False)
    yield tmp_path
    sys.modules.pop("shop_agents", None)
