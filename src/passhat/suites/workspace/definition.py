"""Tasks for coding agents: a folder with ``task.toml``, or one TOML file with many tasks."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

import msgspec

from passhat.errors import InvalidValue, ReadError, shorten
from passhat.judging.walls import CommandLimits

__all__ = [
    "PROTECTED",
    "ResultKind",
    "Start",
    "WorkspaceTask",
    "digest_of_tree",
    "load_folder",
    "read_instruction",
    "read_size",
]

PROTECTED = (
    *(".git", ".hg", ".svn", ".gitmodules", ".gitattributes"),
    *("conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml"),
    *("noxfile.py", "sitecustomize.py", "usercustomize.py", "*.pth", "*.egg-link", "*.egg-info"),
    *("__pycache__", "*.pyc", ".pytest_cache", ".coveragerc", ".tox", ".venv", "venv", ".env"),
    *("node_modules", "package.json", "package-lock.json", ".npmrc", ".yarnrc*", "jest.config.*"),
    *("vitest.config.*", "vite.config.*", ".mocharc*", "babel.config.*", ".babelrc*"),
    *("karma.conf.*", "Makefile", "makefile", "GNUmakefile", "*.mk", "CMakeLists.txt"),
    *("Cargo.toml", "build.rs", ".cargo", "go.mod", "Rakefile", "phpunit.xml*", "justfile"),
    *("tests", "test", "__tests__", "spec", "test_*.py", "*_test.py", "*.test.*", "*.spec.*"),
    *("*_test.go", "reward.txt", "reward.json"),
)
"""Names that steer a test run. An agent's changes to them are left out, unless a task allows them.

A pattern without a slash is the name of a file or folder anywhere in the workspace.
"""

_KINDS = ("exit", "pytest", "tap", "junit", "reward")
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst", ".zip")
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)\s*", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_GIT_SECONDS = 120
_LARGEST_TEXT = 1 << 20


@dataclass(frozen=True, slots=True)
class ResultKind:
    """How the test command tells its result; ``path`` is of a JUnit or reward file."""

    kind: str = "exit"
    path: str = ""

    @classmethod
    def of_text(cls, text: str) -> ResultKind:
        """Read ``exit``, ``pytest``, ``tap``, ``junit:report.xml`` or ``reward:reward.txt``."""
        kind, sign, path = text.partition(":")
        needs_path = kind in ("junit", "reward")
        if kind not in _KINDS or bool(sign and path) != needs_path:
            raise InvalidValue(
                f"result must be one of exit, pytest, tap, junit:FILE and reward:FILE, not {text!r}"
            )
        if needs_path and not path.startswith("/") and not _is_inside(path):
            raise InvalidValue(f"the result file must lie in the workspace, not at {path!r}")
        return cls(kind, path)

    def __str__(self) -> str:
        return f"{self.kind}:{self.path}" if self.path else self.kind


@dataclass(frozen=True, slots=True)
class Start:
    """The starting point: a folder, an archive, or a commit of a git repository on disk."""

    path: Path
    commit: str = ""
    image: str = ""
    """A container's image with its engine; the start is its folder ``place`` with ``copies``."""
    place: str = ""
    copies: tuple[tuple[str, str], ...] = ()

    def check(self) -> None:
        """Refuse a starting point that is not there."""
        if self.commit:
            self.find_tree()
        elif not self.path.is_dir() and not (self.path.is_file() and self.is_archive):
            what = "a folder, an archive (.tar.gz, .zip) or { git, commit }"
            came = "there is no such file" if not self.path.exists() else "it is another file"
            raise InvalidValue(f"start should be {what}, and {str(self.path)!r} is not: {came}")

    @property
    def is_archive(self) -> bool:
        return self.path.name.endswith(_ARCHIVES)

    def find_tree(self) -> str:
        """The id of the commit's tree."""
        if not self.path.is_dir():
            raise InvalidValue(f"start names a git repository, and {str(self.path)!r} is no folder")
        answer = run_git(self.path, "rev-parse", "--verify", f"{self.commit}^{{tree}}")
        if answer.returncode:
            error = answer.stderr.decode("utf-8", "replace").strip().splitlines() or ["no answer"]
            raise InvalidValue(
                f"git finds no commit {self.commit!r} in {str(self.path)!r} ({error[-1]})"
            )
        return answer.stdout.decode().strip()

    @property
    def digest(self) -> str:
        """Changes with the content."""
        if self.commit:
            content = self.find_tree()
        elif self.path.is_dir():
            content = digest_of_tree(self.path)
        else:
            with self.path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        parts = [content, self.image, self.place, *map(str, self.copies)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def run_git(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run git with no settings, hooks or filters of a user or a repository's own."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
    }
    quiet = ("-c", f"core.hooksPath={os.devnull}", "-c", "safe.directory=*")
    try:
        return subprocess.run(
            ["git", *quiet, "-C", str(folder), *words],
            capture_output=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=_GIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess([], 1, b"", str(error).encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceTask:
    """A task for a coding agent, with all its paths resolved.

    Attributes
    ----------
    instruction : str
        Told to the agent.
    start : Start
        The workspace before the attempt.
    setup : str
        Command that prepares it, run once for all attempts.
    hidden : Path, optional
        Folder whose content is laid over the workspace for the tests.
    hidden_patch : str
        The same as a patch.
    test : str
        The test command.
    must_pass, must_stay : tuple of str
        Names of tests; empty for all that the reference passes.
    solution : Path, optional
        A folder that is laid over the start, a patch, or a script: the reference.
    allow : tuple of str
        Patterns of paths that the agent may change; all but protected ones by default.
    protect : tuple of str
        More patterns that it may not change.
    image : str
        Image of a container for the tests, with its engine, as in ``podman:node:20``.
    place : str
        Where the workspace is in the image.
    trust_exit : bool
        Accept an exit status although the code under test could set it.
    """

    id: str
    source: str
    instruction: str
    start: Start
    test: str
    setup: str = ""
    hidden: Path | None = None
    hidden_patch: str = ""
    hidden_place: str = ""
    result: ResultKind = field(default_factory=ResultKind)
    must_pass: tuple[str, ...] = ()
    must_stay: tuple[str, ...] = ()
    solution: Path | None = None
    solution_patch: str = ""
    allow: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    image: str = ""
    place: str = "/workspace"
    pass_at: float = 1.0
    trust_exit: bool = False
    agent_seconds: float = 600.0
    limits: CommandLimits = field(default_factory=lambda: CommandLimits(seconds=300.0))

    def agent_data(self) -> list[object]:
        """All that shapes the agent's side of the task."""
        limits = [self.agent_seconds, self.limits.memory, self.limits.disk]
        return [self.id, self.instruction, self.start.digest, self.setup, limits]

    def judge_data(self) -> list[object]:
        """All that decides about a change."""
        hidden = "" if self.hidden is None else digest_of_tree(self.hidden)
        names = [list(self.must_pass), list(self.must_stay)]
        rules = [list(self.allow), list(self.protect), self.pass_at, self.trust_exit]
        where = [self.network, self.image, self.place, self.hidden_place, self.limits.seconds]
        return [
            self.id,
            hidden,
            self.hidden_patch,
            self.test,
            str(self.result),
            names,
            rules,
            where,
        ]

    def reference_data(self) -> str:
        """Changes with the reference solution."""
        if self.solution is None:
            return self.solution_patch
        if self.solution.is_dir():
            return digest_of_tree(self.solution)
        return hashlib.sha256(self.solution.read_bytes()).hexdigest()

    @property
    def has_reference(self) -> bool:
        return self.solution is not None or bool(self.solution_patch)

    def secrets(self) -> tuple[str, ...]:
        """Real paths that neither the agent nor the code under test may see."""
        paths = [self.hidden, self.solution, Path(self.source)]
        paths += [self.start.path] if self.start.commit else []
        return tuple(str(path.resolve()) for path in paths if path is not None)


def digest_of_tree(folder: Path) -> str:
    """A digest over names, modes and contents below a folder; links by their targets."""
    digest = hashlib.sha256()
    for path in sorted(_walk(folder)):
        state = path.lstat()
        name = os.fsencode(path.relative_to(folder))
        if stat.S_ISLNK(state.st_mode):
            content = os.fsencode(os.readlink(path))  # noqa: PTH115 - text as it is
        elif stat.S_ISREG(state.st_mode):
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").digest()
        else:
            raise InvalidValue(f"{str(path)!r} is neither a file nor a link")
        kind = b"%o" % (stat.S_IFMT(state.st_mode) | state.st_mode & 0o100)
        for part in (name, kind, content):
            digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest()


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in (*names, *(name for name in folders if (Path(root) / name).is_symlink())):
            yield Path(root) / name


def read_size(value: str | int) -> int:
    """Bytes of ``512MB`` or of a number."""
    match = _SIZE.fullmatch(str(value))
    power = 0 if match is None else _POWERS[match[2].lower()[:1].strip("b")]
    size = 0 if match is None else int(float(match[1]) * 1024**power)
    if size <= 0:
        raise InvalidValue(f"a size is written as in 512MB or 2GB, not {value!r}")
    return size


# -- reading ---------------------------------------------------------------------------------------


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
    from passhat.suites.workspace.formats import is_harbor, load_harbor, load_rows

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
    hidden = _existing(folder, table.hidden or "hidden", "hidden", required=bool(table.hidden))
    if hidden is not None and not hidden.is_dir():
        raise InvalidValue(f"hidden should be a folder, and {str(hidden)!r} is a file")
    solution = _existing(
        folder, table.solution or "solution", "solution", required=bool(table.solution)
    )
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


def _existing(folder: Path, name: str, key: str, *, required: bool) -> Path | None:
    path = (folder / name).resolve()
    if path.exists():
        return path
    if required:
        raise InvalidValue(f"{key} names {name!r}, and there is no such file or folder")
    return None


def read_instruction(folder: Path, text: str) -> str:
    """The instruction: the text, the file that it names, or ``instruction.md``."""
    is_name = bool(text) and "\n" not in text and text.endswith((".md", ".txt"))
    path = folder / (text if is_name else "instruction.md")
    if is_name or not text:
        try:
            if path.stat().st_size > _LARGEST_TEXT:
                raise InvalidValue(f"{path.name} is larger than 1 MiB")
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InvalidValue(
                f"it has no instruction: write instruction.md or a key instruction ({path.name}: "
                f"{reason})"
            ) from None
    if not text.strip():
        raise InvalidValue("its instruction is empty")
    return text


def _is_inside(path: str) -> bool:
    return not path.startswith("/") and ".." not in path.split("/")
