"""A real coding agent with a real model, end to end: `make test-coding-agent`.

mini-swe-agent from the package index, started in fresh workspaces, with SmolLM2 behind a llama.cpp
server. A model of 135 million parameters fixes little: the question is whether the agent runs
behind the walls, reaches its model, and is judged.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from passhat.store import open_store

CONFIG = """
agent:
  system_template: Answer with one shell command in a block that begins with ```mswea_bash_command
  instance_template: "{{task}} Write: ```mswea_bash_command"
  step_limit: 2
  cost_limit: 0
  mode: yolo
model:
  model_class: litellm_textbased
  cost_tracking: ignore_errors
  observation_template: "{{output.output}}"
  model_kwargs:
    api_base: URL/v1
    api_key: none
    max_tokens: 60
environment:
  env: {}
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    here = Path(__file__).parent / "serve_model.py"
    with subprocess.Popen(
        [sys.executable, str(here)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.kill()


def passhat(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "passhat", *words], capture_output=True, text=True)


def test_an_agent_from_the_index_is_run_and_judged(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert passhat("init", "--coding", ".").returncode == 0
    (tmp_path / "mini.yaml").write_text(CONFIG.replace("URL", url))
    program = Path(sys.executable).parent / "mini"
    words = "--yolo --exit-immediately -m openai/smollm2 -c mini.yaml -t {prompt}"
    monkeypatch.setenv("MSWEA_CONFIGURED", "true")  # else it asks questions in an empty home
    agent = ("-a", f"command:{program} {words}", "--pass-env", "MSWEA_CONFIGURED")
    done = passhat("run", *agent, "-n", "2", "--jobs", "2", "--keep-going", "--verbose")
    with open_store() as store:
        (run,) = store.runs()
        assert (run.attempts, run.missing) == (4, 0)
        texts = [
            {entry["role"]: entry["text"] for entry in ended.transcript}
            for task in ("basket", "newest")
            if (ended := store.attempt(run.id, task, 1)) is not None
        ]
    assert len(texts) == 2
    # Its own banner, and the end of its two steps with the model.
    assert all("mini-swe-agent" in text.get("agent", "") for text in texts), done.stderr
    assert all("LimitsExceeded" in text["agent"] for text in texts), json.dumps(texts, indent=2)
    assert list((tmp_path / "cache/passhat/workspaces/attempts").iterdir()) == []
