"""A real kernel, spoken to as a notebook does: what a cell shows, while it runs and after."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

pytestmark = pytest.mark.slow

SET_UP = """
import passhat
tasks = [{"id": f"t{i}", "prompt": "2+2?", "answer": "4"} for i in range(3)]
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[BlockingKernelClient]:
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=120)
    try:
        assert messages(client, SET_UP) == []
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def messages(client: BlockingKernelClient, cell: str) -> list[dict[str, Any]]:
    """What a cell sends to the notebook, but for its state and its own text."""
    asked = client.execute(cell)
    found: list[dict[str, Any]] = []
    while True:
        try:
            message = client.get_iopub_msg(timeout=120)
        except queue.Empty:  # pragma: no cover - a kernel that hangs
            pytest.fail("the cell did not end")
        if message["parent_header"].get("msg_id") != asked:
            continue
        kind, content = message["msg_type"], message["content"]
        if kind == "status" and content["execution_state"] == "idle":
            return found
        if kind not in ("status", "execute_input"):
            found.append({"kind": kind, **content})


def test_a_run_shows_its_progress_below_the_cell_and_then_its_numbers(
    kernel: BlockingKernelClient,
) -> None:
    shown = messages(kernel, 'run = passhat.run(lambda _: "4", tasks, n=4)\nrun')
    first, *updates, result = shown
    assert first["kind"] == "display_data"
    assert "starting" in first["data"]["text/plain"]
    assert {update["kind"] for update in updates} == {"update_display_data"}
    ids = {message["transient"]["display_id"] for message in (first, *updates)}
    assert len(ids) == 1
    last = updates[-1]["data"]
    assert last["text/plain"] == "12 of 12 attempts: 12 passed, 0 failed"
    assert '<progress value="12" max="12">' in last["text/html"]
    assert result["kind"] == "execute_result"
    assert "<td>missing</td><td>0 attempts</td>" in result["data"]["text/html"]


def test_progress_that_is_not_wanted_shows_nothing(kernel: BlockingKernelClient) -> None:
    assert messages(kernel, 'passhat.run(lambda _: "4", tasks, n=2, progress=False);') == []


def test_an_awaited_run_shows_it_too(kernel: BlockingKernelClient) -> None:
    cell = """
async def agent(prompt):
    return "4" if prompt else ""
run = await passhat.arun(agent, tasks, n=2)
"""
    shown = messages(kernel, cell)
    assert shown[-1]["data"]["text/plain"] == "6 of 6 attempts: 6 passed, 0 failed"


def test_a_report_is_a_table_in_the_font_of_its_columns(kernel: BlockingKernelClient) -> None:
    messages(kernel, 'run = passhat.run(lambda _: "4", tasks, n=4, progress=False)')
    (shown,) = messages(kernel, "passhat.report(run)")
    assert shown["kind"] == "execute_result"
    page = shown["data"]["text/html"]
    assert page.startswith('<pre style="font-family: monospace')


def test_a_cell_that_is_interrupted_ends_with_what_was_made(kernel: BlockingKernelClient) -> None:
    cell = """
import os, signal
def agent(prompt):
    os.kill(os.getpid(), signal.SIGINT)
    return "4"
try:
    passhat.run(agent, tasks, n=2, jobs=1)
except KeyboardInterrupt:
    print("stopped")
"""
    shown = messages(kernel, cell)
    assert not [message for message in shown if message["kind"] == "error"]
    assert any("stopped" in message.get("text", "") for message in shown)


@pytest.mark.parametrize(
    "expression",
    [
        "passhat.estimate(run, 'pass^2')",
        "passhat.compare(run, other)",
        "passhat.gate(run, 'pass^2 >= 0.5')",
        "passhat.forecast(run, 'pass^8')",
        "passhat.plan_tasks(run, half_width=0.1)",
        "passhat.report([run, other])",
    ],
)
def test_a_result_is_one_output_and_its_text_is_short(
    kernel: BlockingKernelClient, expression: str
) -> None:
    """Nothing beside the result: the report once sent an empty block before itself."""
    messages(
        kernel,
        "run = [[1, 0, 1, 1], [1, 1, 1, 1], [0, 0, 1, 0]]\n"
        "other = [[1, 1, 1, 1], [1, 0, 1, 1], [0, 0, 1, 1]]",
    )
    (shown,) = messages(kernel, expression)
    assert shown["kind"] == "execute_result", shown
    assert len(shown["data"]["text/plain"].splitlines()) <= 30
