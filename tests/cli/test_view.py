"""passhat view"""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.dashboard.conftest import served

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


def test_other_machines_need_the_token(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    open_store(path).close()
    with served(path, "--host", "0.0.0.0") as address:
        plain, _, token = address.partition("?token=")
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
