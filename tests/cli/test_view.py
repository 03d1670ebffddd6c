"""passhat view"""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.dashboard.conftest import TOKENS, served

from passhat.dashboard.guard import Access
from passhat.store import open_store

Passhat = Callable[..., Any]


def test_a_port_that_is_in_use(passhat: Passhat, tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    open_store(path).close()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = passhat("view", "--store", path, "--port", port)
    assert ended.code == 2
    assert f"port {port} of 127.0.0.1 is in use" in ended.err
    assert "--port 0" in ended.err


def test_no_store_and_no_address(passhat: Passhat, tmp_path: Path) -> None:
    ended = passhat("view", "--store", tmp_path / "none.db")
    assert ended.code == 2
    assert "there is no store" in ended.err
    path = str(tmp_path / "s.db")
    open_store(path).close()
    ended = passhat("view", "--store", path, "--host", "no.such.host.invalid")
    assert ended.code == 2
    assert "is not an address of this machine" in ended.err


def test_a_browser_is_started_with_a_ticket(
    passhat: Passhat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its arguments are in the list of processes, so they do not hold the token."""
    path = str(tmp_path / "s.db")
    open_store(path).close()
    addresses: list[str] = []
    tickets: list[set[str]] = []

    def serve(
        _store: str, access: Access, *_: object, ready: Callable[[], None], **__: object
    ) -> None:
        ready()
        tickets.append(access.tickets)

    monkeypatch.setattr("passhat.dashboard.app.serve", serve)
    monkeypatch.setattr("webbrowser.open", addresses.append)
    ended = passhat("view", "--store", path, "--open")
    printed = ended.out.splitlines()[0].rpartition("?token=")[2]
    (address,) = addresses
    assert len(printed) > 20
    assert printed not in address
    assert tickets == [{address.partition("?token=")[2]}]


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_everybody_needs_the_token(tmp_path: Path, host: str) -> None:
    """On this machine, too: agents reach its ports."""
    path = str(tmp_path / "s.db")
    open_store(path).close()
    with served(path, "--host", host) as plain:
        token = TOKENS[plain]
        assert len(token) > 20
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{plain}runs.json")
        with refused.value as answer:
            assert answer.code == 401
        asked = urllib.request.Request(
            f"{plain}runs.json", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(asked) as answer:
            assert answer.read() == b'{\n  "runs": []\n}\n'
