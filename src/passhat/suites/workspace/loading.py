"""Tasks for coding agents in TOML: a folder with ``task.toml``, or one file with many tasks."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path

import msgspec

from passhat.errors import InvalidValue, ReadError, shorten
from passhat.suites.workspace.definition import (
    ResultKind,
    Start,
    WorkspaceTask,
    read_instruction,
    read_size,
)
from passhat.suites.workspace.formats import is_harbor, load_harbor, load_rows
from passhat.suites.workspace.walls import CommandLimits


class _GitStart(msgspec.Struct, forbid_unknown_fields=True):
    git: str
    commit: str


class _Limits(msgspec.Struct, forbid_unknown_fields=True):
    seconds: float = 300.0
    agent_seconds: float = 600.0
    memory: str | int = "4GB"
    disk: str | int = "2GB"


class _Table(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of a task; each is described at :class:`WorkspaceTask`."""

    test: str
    id: str = ""
    instruction: str = ""
    start: str | _GitStart = "start"
    setup: str = ""
    hidden: str = ""
    result: str = "exit"
    must_pass: list[str] = []
    must_stay: list[str] = []
    solution: str = ""
    allow: list[str] = []
    protect: list[str] = []
    slices: dict[str, str | int | float | bool] = {}
    network: bool = False
    image: str = ""
    place: str = "/workspace"
    pass_at: float = 1.0
    trust_exit: bool = False
    limits: _Limits = msgspec.field(default_factory=_Limits)


_KEYS = _Table.__struct_fields__
_EXAMPLE = (
    'A task reads: instruction = "Fix the total.", start = "start", hidden = "hidden", '
    'test = "python -m pytest -q", result = "pytest".'
)


def load_folder(rest: str) -> tuple[WorkspaceTask, ...]:
    """The tasks of a folder, or of a TOML file.

    Raises
    ------
    ReadError
        Names the file, what was expected and what came.
    """
    place = Path(rest)
    if place.is_file():
        tasks = _load_file(place)
    elif not place.is_dir():
        raise ReadError(
            "is neither a folder nor a file.",
            source=rest,
            hint="As in -s workspace:tasks, with a task.toml in every folder below tasks.",
        )
    else:
        files = [place / "task.toml"] if (place / "task.toml").is_file() else []
        files = files or sorted(place.glob("*/task.toml")) or sorted(place.glob("*.toml"))
        if not files:
            raise ReadError(
                "holds no task: no task.toml in it or in a folder below it.",
                source=rest,
                hint="passhat init --coding writes an example.",
            )
        tasks = [task for file in files for task in _load_file(file)]
    seen: dict[str, str] = {}
    for task in tasks:
        if task.id in seen:
            raise ReadError(
                f"task {shorten(task.id)} is listed twice, here and in {seen[task.id]}.",
                source=task.source,
            )
        seen[task.id] = task.source
    return tuple(tasks)


def _load_file(file: Path) -> list[WorkspaceTask]:
    if file.suffix in (".jsonl", ".json"):
        return load_rows(file)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}.", source=str(file)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ReadError(f"is not TOML ({error}).", source=str(file)) from None
    if is_harbor(file, data):
        return [load_harbor(file, data)]
    if "task" not in data:
        return [_load_task(file, data, file.parent.resolve().name)]
    rows = data.pop("task")
    defaults = data.pop("defaults", {})
    if data:
        raise ReadError(
            f"has the unknown key {next(iter(data))!r} beside [[task]].",
            source=str(file),
            hint="Values for all tasks go below [defaults].",
        )
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ReadError("has a task that is not a table.", source=str(file), hint="Write [[task]].")
    if not rows:
        raise ReadError("holds no task.", source=str(file))
    return [
        _load_task(file, {**defaults, **row}, "", f" (task {i})") for i, row in enumerate(rows, 1)
    ]


def _load_task(file: Path, data: dict[str, object], name: str, where: str = "") -> WorkspaceTask:
    source = f"{file}{where}"
    for key in data:
        if key not in _KEYS:
            names = {**dict(zip(_KEYS, _KEYS, strict=True)), "tests": "hidden"}
            near = get_close_matches(key, names, 1, 0.6)
            guess = names[near[0]] if near else ""
            raise ReadError(
                f"has the unknown key {key!r}." + (f" Did you mean {guess!r}?" if guess else ""),
                source=source,
                hint=f"Keys of a task: {', '.join(_KEYS)}.",
            )
    try:
        table = msgspec.convert(data, _Table)
        return _resolve(file, table, name)
    except msgspec.ValidationError as error:
        raise ReadError(f"is not a task ({error}).", source=source, hint=_EXAMPLE) from None
    except InvalidValue as error:
        raise ReadError(
            f"is not a task: {error.message}.", source=source, hint=error.hint
        ) from None


def _resolve(file: Path, table: _Table, name: str) -> WorkspaceTask:
    folder = file.parent.resolve()
    task_id = table.id or name
    if not task_id or "#" in task_id or not task_id.isprintable():
        raise InvalidValue(f"it needs a printable id without '#', not {task_id!r}")
    if not table.test.strip():
        raise InvalidValue("test is empty; it should be a command, as in 'python -m pytest -q'")
    start = table.start
    if isinstance(start, str):
        begin = Start((folder / start).resolve())
    else:
        begin = Start((folder / start.git).resolve(), start.commit)
    begin.check()
    hidden = _existing(folder, table, "hidden")
    if hidden is not None and not hidden.is_dir():
        raise InvalidValue(f"hidden should be a folder, and {str(hidden)!r} is a file")
    solution = _existing(folder, table, "solution")
    if not 0 < table.pass_at <= 1:
        raise InvalidValue(f"pass_at must be above 0 and at most 1, not {table.pass_at:g}")
    for key in ("seconds", "agent_seconds"):
        if not 0 < getattr(table.limits, key) <= 86_400:
            raise InvalidValue(
                f"limits.{key} must be between 0 and 86400, not {getattr(table.limits, key):g}"
            )
    if not table.place.startswith("/"):
        raise InvalidValue(f"place must be an absolute path in the image, not {table.place!r}")
    return WorkspaceTask(
        id=task_id,
        source=str(folder if name else file),
        instruction=read_instruction(folder, table.instruction),
        start=begin,
        setup=table.setup,
        hidden=hidden,
        test=table.test,
        result=ResultKind.of_text(table.result),
        must_pass=tuple(table.must_pass),
        must_stay=tuple(table.must_stay),
        solution=solution,
        allow=tuple(table.allow),
        protect=tuple(table.protect),
        labels={key: str(value) for key, value in table.slices.items()},
        network=table.network,
        image=table.image,
        place=table.place,
        pass_at=table.pass_at,
        trust_exit=table.trust_exit,
        agent_seconds=table.limits.agent_seconds,
        limits=CommandLimits(
            table.limits.seconds, read_size(table.limits.memory), read_size(table.limits.disk)
        ),
    )


def _existing(folder: Path, table: _Table, key: str) -> Path | None:
    """The file or folder that a key names, or that has its name; the latter may be absent."""
    name: str = getattr(table, key)
    path = (folder / (name or key)).resolve()
    if name and not path.exists():
        raise InvalidValue(f"{key} names {name!r}, and there is no such file or folder")
    return path if path.exists() else None
