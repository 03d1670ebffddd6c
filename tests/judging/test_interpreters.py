"""What a sandbox shows of an interpreter, and which packages it may be granted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from passhat.errors import InvalidValue, SandboxUnavailable
from passhat.judging import interpreters
from passhat.judging.interpreters import Granted, Interpreter, find_interpreter, grant


def _interpreter(root: Path, *, packages: bool = False, **parts: Any) -> Interpreter:
    fields: dict[str, Any] = {
        "executable": f"{root}/bin/python",
        "prefix": f"{root}/env",
        "base": f"{root}/base",
    }
    return Interpreter(**fields, stdlib=f"{root}/lib/py", packages=packages, **parts)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an interpreter, its library and packages."""
    for place in ("bin", "env/lib", "base/bin", "lib/py/site-packages", "lib/py/json", "data"):
        (tmp_path / place).mkdir(parents=True)
    for place in ("bin/python", "lib/py/os.py", "libc.so"):
        (tmp_path / place).write_text("")
    monkeypatch.setattr(interpreters, "_DATA", (f"{tmp_path}/data", f"{tmp_path}/absent"))
    monkeypatch.setattr(interpreters, "_ALL_LIBRARIES", (f"{tmp_path}/lib", f"{tmp_path}/lib64"))
    return tmp_path


def _below(root: Path, paths: Any) -> list[str]:
    return [str(Path(path).relative_to(root)) for path in paths if str(path).startswith(str(root))]


@pytest.mark.parametrize(
    ("packages", "libraries", "shown"),
    [
        # The standard library is below a folder that is shown.
        (False, (), ["lib", "data", "bin/python"]),
        (False, ("libc.so",), ["data", "lib/py", "libc.so", "bin/python"]),
        (False, ("libc.so", "libc.so", "gone.so"), ["data", "lib/py", "libc.so", "bin/python"]),
        (True, (), ["env", "lib", "data", "base/bin", "bin/python"]),
    ],
)
def test_folders_are_shown_once_and_the_outermost_alone(
    root: Path, packages: bool, libraries: tuple[str, ...], shown: list[str]
) -> None:
    places = tuple(f"{root}/{name}" for name in libraries)
    interpreter = _interpreter(root, packages=packages, libraries=places)
    found = _below(root, interpreter.shown)
    assert sorted(found) == sorted(shown)
    assert [len(path) for path in found] == sorted(len(path) for path in found)


def test_a_folder_with_a_longer_name_is_not_inside_another(root: Path) -> None:
    (root / "lib64").mkdir()
    found = _below(root, _interpreter(root).shown)
    assert {"lib", "lib64"} <= set(found)
    assert "lib/py" not in found


def test_installed_packages_are_hidden_unless_they_are_asked_for(root: Path) -> None:
    hidden = _interpreter(root).hidden
    assert _below(root, hidden) == ["lib/py/site-packages"]
    assert _interpreter(root, packages=True).hidden == ()


def test_what_may_be_listed_and_what_may_be_read(root: Path) -> None:
    granted = (Granted(f"{root}/env/lib/a", f"{root}/env/lib", "a"),)
    listable, readable = _interpreter(root, granted=granted).readable()
    assert _below(root, listable) == ["lib", "data", "lib/py", "env/lib"]
    found = _below(root, readable)
    assert {"bin/python", "env/lib/a", "lib/py/os.py", "lib/py/json"} <= set(found)
    assert not {"lib/py/site-packages", "lib/py"} & set(found)  # they hold what is hidden
    whole = _interpreter(root, packages=True)
    assert whole.readable() == ([], list(whole.shown))


@pytest.mark.parametrize(
    ("packages", "options"), [(True, ["-I", "-B"]), (False, ["-I", "-B", "-S"])]
)
def test_an_interpreter_is_called_alone(root: Path, packages: bool, options: list[str]) -> None:
    interpreter = _interpreter(root, packages=packages)
    assert interpreter.command == [f"{root}/bin/python", *options]


def test_roots_of_granted_packages_are_named_once(root: Path) -> None:
    granted = tuple(Granted(f"/{name}", root_, name) for name, root_ in ("ax", "by", "cx"))
    assert _interpreter(root, granted=granted).granted_roots == ("x", "y")


# -- granting --------------------------------------------------------------------------------------

REPLY = {
    "absent": [],
    "parts": [["/r/a", "/r", "a"], ["/r/b", "/r", "b"], ["/r/a", "/r", "a"]],
    "named": ["a 1.0"],
    "libraries": ["/l/x.so"],
}


def test_packages_are_granted_with_what_they_need() -> None:
    asked: list[tuple[str, ...]] = []

    def run_code(code: str, *names: str) -> Any:
        assert code is interpreters._ASK_PACKAGES
        asked.append(names)
        return REPLY

    granted, named, libraries = grant(["a", "my_pkg.sub-x"], run_code)
    assert granted == (Granted("/r/a", "/r", "a"), Granted("/r/b", "/r", "b"))
    assert (named, libraries) == (("a 1.0",), ("/l/x.so",))
    assert asked == [("a", "my_pkg.sub-x")]
    assert grant([], run_code) == ((), (), ())
    assert len(asked) == 1


@pytest.mark.parametrize("name", ["", "a b", "a==1", "../a", "-", "a;b"])
def test_what_is_no_name_of_a_package_is_refused(name: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        grant(["a", name], lambda *_: REPLY)
    assert caught.value.message == f"--with {name!r} is not the name of a package."


def test_packages_that_are_absent_are_named() -> None:
    with pytest.raises(InvalidValue) as caught:
        grant(["a"], lambda *_: {**REPLY, "absent": ["a", "b"]})
    assert caught.value.message == "--with: the interpreter has no package a, b."


# -- finding ---------------------------------------------------------------------------------------

FACTS = {
    "libraries": ["/l/c.so"],
    "executable": "/real",
    "called": "/called",
    "prefix": "/p",
    "base": "/b",
    "stdlib": "/s",
    "version": "3.12.1",
}


@pytest.mark.parametrize(
    ("path", "packages", "executable", "whole"),
    [
        (None, [], "/real", False),
        (None, ["a"], "/real", False),
        ("/x", [], "/called", True),
        ("/x", ["a"], "/real", False),
    ],
)
@pytest.mark.parametrize("libraries", [[], ["/l/c.so"]])
def test_an_interpreter_comes_with_everything_if_it_is_named_alone(
    monkeypatch: pytest.MonkeyPatch,
    path: str | None,
    packages: list[str],
    executable: str,
    whole: bool,
    libraries: list[str],
) -> None:
    def run_code(asked: str | None, code: str, *_: str) -> Any:
        assert asked == path
        return {**FACTS, "libraries": libraries} if code == interpreters._ASK else REPLY

    monkeypatch.setattr(interpreters, "_run_code", run_code)
    found = find_interpreter(path, packages)
    assert (found.executable, found.packages, found.version) == (executable, whole, "3.12.1")
    assert (found.prefix, found.base, found.stdlib) == ("/p", "/b", "/s")
    assert len(found.granted) == (2 if packages else 0)
    more = ["/l/x.so"] if packages else []
    assert found.libraries == (tuple(libraries + more) if libraries else ())


@pytest.mark.parametrize("path", [None, "/x/python"])
def test_code_is_run_by_the_interpreter_that_is_meant(
    monkeypatch: pytest.MonkeyPatch, path: str | None
) -> None:
    calls: list[list[str]] = []

    def run(command: list[str], **options: Any) -> object:
        calls.append(command)
        assert options == {"capture_output": True, "timeout": 60, "check": True}
        return SimpleNamespace(stdout=json.dumps({"a": 1}))

    monkeypatch.setattr(subprocess, "run", run)
    assert interpreters._run_code(path, "code", "w") == {"a": 1}
    assert calls == [[path or sys.executable, "-I", "-c", "code", "w"]]


@pytest.mark.parametrize(
    "error", [OSError("gone"), subprocess.TimeoutExpired("x", 60), json.JSONDecodeError("x", "", 0)]
)
def test_what_is_no_interpreter_is_refused(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def run(*_: object, **__: object) -> object:
        raise error

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(SandboxUnavailable, match="/x does not work as a Python interpreter"):
        interpreters._run_code("/x", "code")
