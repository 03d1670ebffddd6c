"""Tasks of other harnesses: folders of Harbor and Terminal-Bench 2, rows in the style of SWE-bench.

A Harbor task runs in an image. It is taken from ``docker_image``, or from a Dockerfile that only
copies files into a base image; one that runs commands has to be built first. Rows name a
repository, which must be on disk: ``repos/OWNER__NAME`` beside the file.
"""

from __future__ import annotations

import json
import posixpath
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from passhat.errors import InvalidValue, ReadError
from passhat.suites.workspace.definition import (
    ResultKind,
    Start,
    WorkspaceTask,
    read_instruction,
    read_size,
)
from passhat.suites.workspace.walls import CommandLimits

_REWARD = "/logs/verifier/reward.txt"
_COPIES = ("COPY", "ADD")
_HARMLESS = ("FROM", "WORKDIR", "ENV", "LABEL", "CMD", "ENTRYPOINT", "EXPOSE", "ARG", "USER")


def is_harbor(file: Path, data: Mapping[str, object]) -> bool:
    """Whether a ``task.toml`` is one of Harbor: a folder ``environment`` and ``tests/test.sh``."""
    folder = file.parent
    has_parts = (folder / "environment").is_dir() and (folder / "tests" / "test.sh").is_file()
    return has_parts and "test" not in data


def load_harbor(file: Path, data: Mapping[str, Any]) -> WorkspaceTask:
    """A Harbor task as one of ours.

    Raises
    ------
    ReadError
        There is no image that it can run in.
    """
    folder = file.parent.resolve()
    try:
        environment, verifier, agent, about = (
            _table(data, name) for name in ("environment", "verifier", "agent", "task")
        )
        labels = {
            key: str(value)
            for key, value in _table(data, "metadata").items()
            if key in ("difficulty", "category")
        }
        image, place, copies = _read_image(folder / "environment", environment, folder.name)
        start = Start(folder / "environment", image=image, place=place, copies=copies)
        solution = folder / "solution"
        return WorkspaceTask(
            id=str(about.get("name") or folder.name).replace("#", "-"),
            source=str(folder),
            instruction=read_instruction(folder, ""),
            start=start,
            hidden=folder / "tests",
            hidden_place="/tests",
            test="bash /tests/test.sh",
            result=ResultKind("reward", _REWARD),
            solution=solution if (solution / "solve.sh").is_file() else None,
            labels=labels,
            network=bool(environment.get("allow_internet", True)),
            image=image,
            place=place,
            # The image's tests are scripts of the task's author: what they write is the reward.
            trust_exit=True,
            agent_seconds=float(agent.get("timeout_sec", 600.0)),
            limits=CommandLimits(
                float(verifier.get("timeout_sec", 600.0)),
                _size(environment, "memory", "4GB"),
                _size(environment, "storage", "10GB"),
            ),
        )
    except InvalidValue as error:
        raise ReadError(
            f"is not a task: {error.message}.", source=str(file), hint=error.hint
        ) from None
    except (TypeError, ValueError) as error:
        raise ReadError(f"is not a Harbor task ({error}).", source=str(file)) from None


def _table(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = data.get(name, {})
    if not isinstance(table, dict):
        raise InvalidValue(f"{name} should be a table, not {table!r}")
    return table


def _size(environment: Mapping[str, Any], name: str, usual: str) -> int:
    if f"{name}_mb" in environment:
        return int(environment[f"{name}_mb"]) << 20
    return read_size(environment.get(name, usual))


def _read_image(
    folder: Path, environment: Mapping[str, Any], name: str
) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """The image, the working folder in it, and the files that are copied there."""
    place, image = "/app", str(environment.get("docker_image") or "")
    copies: list[tuple[str, str]] = []
    recipe = folder / "Dockerfile"
    steps = recipe.read_text(encoding="utf-8") if recipe.is_file() else ""
    built = bool(image)
    for line in steps.replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        word, rest = word.upper(), rest.strip()
        if word == "FROM" and not built:
            image = rest.split()[0]
        elif word == "WORKDIR":
            place = rest if rest.startswith("/") else f"{place.rstrip('/')}/{rest}"
        elif word in _COPIES and not built:
            *sources, target = [part for part in shlex.split(rest) if not part.startswith("--")]
            whole = target if target.startswith("/") else f"{place.rstrip('/')}/{target}"
            copies += [(source, _path_below(whole, place)) for source in sources]
        elif word and not word.startswith("#") and word not in (*_HARMLESS, *_COPIES) and not built:
            raise InvalidValue(
                f"its Dockerfile runs {word}, and no built image is named",
                hint=f"podman build -t {name} {folder}, then docker_image = "
                f'"{name}" below [environment].',
            )
    if not image:
        raise InvalidValue("it names no image: neither docker_image nor a Dockerfile with FROM")
    return f"podman:{image}", place, tuple(copies)


def _path_below(target: str, place: str) -> str:
    """A target of a copy below the working folder; empty for the folder itself."""
    path, root = posixpath.normpath(target), posixpath.normpath(place)
    if path == root:
        return ""
    if not path.startswith(f"{root.rstrip('/')}/"):
        raise InvalidValue(f"its Dockerfile copies files to {target}, outside of {place}")
    return path[len(root.rstrip("/")) + 1 :] + ("/" if target.endswith(("/", "/.")) else "")


# -- SWE-bench -------------------------------------------------------------------------------------


class _Row(msgspec.Struct):
    instance_id: str
    repo: str
    base_commit: str
    problem_statement: str
    patch: str
    test_patch: str
    FAIL_TO_PASS: str | list[str]
    PASS_TO_PASS: str | list[str] = "[]"
    test_command: str = ""
    setup: str = ""


def load_rows(file: Path) -> list[WorkspaceTask]:
    """Tasks of a file with a row per line, or a list, in the style of SWE-bench.

    Raises
    ------
    ReadError
        Names the line, what was expected and what came.
    """
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}.", source=str(file)) from None
    if raw.lstrip().startswith(b"["):
        try:
            rows = [(i, json.dumps(row).encode()) for i, row in enumerate(json.loads(raw), 1)]
        except ValueError as error:
            raise ReadError(f"is not JSON ({error}).", source=str(file)) from None
    else:
        rows = [(i, line) for i, line in enumerate(raw.splitlines(), 1) if line.strip()]
    if not rows:
        raise ReadError("holds no task.", source=str(file))
    return [_load_row(file, number, line) for number, line in rows]


def _load_row(file: Path, number: int, line: bytes) -> WorkspaceTask:
    try:
        row = msgspec.json.decode(line, type=_Row)
        repository = _repository(file.parent.resolve(), row.repo)
        start = Start(repository, row.base_commit)
        start.check()
        names = [_names(text) for text in (row.FAIL_TO_PASS, row.PASS_TO_PASS)]
        if not names[0]:
            raise InvalidValue("FAIL_TO_PASS is empty, so nothing would show that it was solved")
        files = sorted({name.partition("::")[0] for name in (*names[0], *names[1])})
    except msgspec.DecodeError as error:
        raise ReadError(
            f"is not a row of SWE-bench ({error}).",
            source=str(file),
            line=number,
            hint=f"Keys: {', '.join(_Row.__struct_fields__)}.",
        ) from None
    except InvalidValue as error:
        raise ReadError(
            f"is not a task: {error.message}.", source=str(file), line=number, hint=error.hint
        ) from None
    return WorkspaceTask(
        id=row.instance_id.replace("#", "-"),
        source=str(file.resolve()),
        instruction=row.problem_statement,
        start=start,
        setup=row.setup,
        hidden_patch=row.test_patch,
        test=row.test_command or f"python -m pytest -q {shlex.join(files)}",
        result=ResultKind("pytest"),
        must_pass=tuple(names[0]),
        must_stay=tuple(names[1]),
        solution_patch=row.patch,
        labels={"repo": row.repo},
    )


def _names(text: str | list[str]) -> list[str]:
    """Names of tests; the data set keeps them as JSON within a text."""
    try:
        names = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        raise InvalidValue(f"a list of tests should be JSON, not {str(text)[:60]!r}") from None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidValue(f"a list of tests should hold names, not {str(text)[:60]!r}")
    return names


def _repository(folder: Path, repo: str) -> Path:
    owner, _, name = repo.rpartition("/")
    places = [folder / "repos" / f"{owner}__{name}", folder / "repos" / name, folder / repo]
    for place in places:
        if place.is_dir() and ".." not in repo:
            return place
    raise InvalidValue(
        f"the repository {repo} is not on disk",
        hint=f"git clone it to {places[0]}",
    )
