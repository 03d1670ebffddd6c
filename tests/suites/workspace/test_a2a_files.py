"""A2A agents get the workspace as a file and return changed ones."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Part
from tests.agents.test_a2a import application
from tests.suites.workspace.conftest import SHELL_FIXED, Attempting

from passhat.errors import InvalidValue
from passhat.suites.workspace.handle import Workspace

Serving = Callable[[Callable[[str], Any]], str]


def pack(**entries: str | None) -> bytes:
    """An archive; a value of None is a link to /etc, and ``__`` stands for a slash."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in entries.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            if text is None:
                member.type, member.linkname = tarfile.SYMTYPE, "/etc"
            member.size = len(text or "")
            archive.addfile(member, io.BytesIO((text or "").encode()))
    return buffer.getvalue()


class Coder(AgentExecutor):
    """Sends files back: in a message, or as an artifact of a task."""

    def __init__(self, files: dict[str, bytes], *, as_task: bool = False) -> None:
        self.files, self.as_task = files, as_task
        self.names: list[str] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        (file,) = [part for part in context.message.parts if part.filename]
        assert (file.filename, file.media_type) == ("workspace.tar.gz", "application/gzip")
        with tarfile.open(fileobj=io.BytesIO(file.raw)) as archive:
            self.names = archive.getnames()
        parts = [
            Part(raw=content, filename=name, media_type="text/plain")
            for name, content in self.files.items()
        ]
        message = new_text_message("", context_id=str(context.context_id))
        if not self.as_task:
            message.parts.extend(parts)
            await event_queue.enqueue_event(message)
            return
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, str(context.context_id))
        await updater.add_artifact(parts)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


FIXED = SHELL_FIXED.encode()


@pytest.mark.parametrize(
    ("files", "as_task", "summary"),
    [
        ({"add.sh": FIXED}, False, "1 file changed, +1 -1: add.sh"),
        ({"workspace.tar.gz": pack(**{"./add.sh": SHELL_FIXED})}, True, "2 files changed, +1 -2"),
    ],
    ids=["a message", "an artifact: an archive without the README"],
)
def test_files_come_back(
    attempt: Attempting,
    serving: Serving,
    files: dict[str, bytes],
    as_task: bool,
    summary: str,
) -> None:
    coder = Coder(files, as_task=as_task)
    url = serving(lambda url: application(coder, url, streaming=as_task))
    ended = attempt("", agent=f"a2a:{url}")
    assert ended.verdict == "passed", ended
    assert ended.texts["got"].startswith(summary)
    assert ended.texts["agent"] == "[1 file]"
    assert coder.names == ["README.md", "add.sh"]  # no hidden tests, no reference


@pytest.mark.parametrize(
    "files",
    [
        *({"../out": b"x"}, {"/tmp/out": b"x"}, {"a/../../out": b"x"}, {".git/hooks/a": b"x"}),
        *({"workspace.tar.gz": pack(**{"..__out": "x"})}, {"workspace.tar.gz": b"no archive"}),
        {"workspace.tar.gz": pack(**{"add.sh": SHELL_FIXED * 9})[:40]},
    ],
)
def test_files_that_lead_elsewhere_are_refused(tmp_path: Path, files: dict[str, bytes]) -> None:
    (tmp_path / "work").mkdir()
    with pytest.raises(InvalidValue, match="workspace"):
        Workspace(tmp_path / "work").take_files(list(files.items()))
    assert not list(tmp_path.rglob("out"))


def test_no_link_is_followed(tmp_path: Path) -> None:
    outside, work = tmp_path / "outside", tmp_path / "work"
    for folder in (outside, work):
        folder.mkdir()
    (work / "link").symlink_to(outside)
    archive = pack(etc=None, etc__out="x", link__out="x")
    Workspace(work).take_files([("workspace.tar.gz", archive)])
    assert not list(outside.iterdir())
    assert (work / "etc" / "out").read_text() == (work / "link" / "out").read_text() == "x"
