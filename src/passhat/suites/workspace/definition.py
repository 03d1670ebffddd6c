"""Tasks for coding agents: a start, an instruction, hidden tests and the rules that judge."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from passhat.errors import InvalidValue
from passhat.suites.workspace.walls import CommandLimits

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
    *("pytest.toml", ".pytest.toml", "*.dist-info", "pyvenv.cfg", "*._pth", "setup.py"),
    *("deno.json*", "bunfig.toml", "ava.config.*", "playwright.config.*", "cypress.config.*"),
    *("jasmine.json", ".taprc", ".nycrc*", ".swcrc", "tsconfig*.json", ".pnpmfile.*"),
    *("webpack.config.*", "rollup.config.*", "eslint.config.*", ".eslintrc*", "pnpm-lock.yaml"),
    *(".rspec", "spec_helper.rb", "Gemfile*", ".simplecov", "pom.xml", "*.gradle", "*.gradle.kts"),
    *("gradle", "gradlew*", "gradle.properties", ".mvn", "mvnw*", "meson.build", "composer.json"),
    *("go.work", "go.sum", "rust-toolchain*", "Justfile", ".justfile", "Makefile.*", "configure"),
    *(".envrc", ".tool-versions", ".bazelrc", "MODULE.bazel", "*.csproj", "*.runsettings"),
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
        source = Path(self.source)
        # Beside a file of tasks are patches, other rows and the repositories they were made from.
        folder = source if source.is_dir() else source.parent
        paths = [self.hidden, self.solution, folder, self.start.path]
        resolved = [str(path.resolve()) for path in paths if path is not None]
        return tuple(path for path in resolved if path != "/")

    def hidden_files(self) -> tuple[str, ...]:
        """Paths in the workspace that the hidden tests bring."""
        return () if self.hidden_place else _list_files(self.hidden, self.hidden_patch)

    def reference_files(self) -> tuple[str, ...]:
        """Paths that the reference writes, where it is a folder or a patch."""
        folder = self.solution if self.solution is not None and self.solution.is_dir() else None
        patch = self.solution_patch
        if self.solution is not None and self.solution.is_file():
            patch += self.solution.read_text(encoding="utf-8", errors="replace")
        return _list_files(folder, patch)


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


def _list_files(folder: Path | None, patch: str) -> tuple[str, ...]:
    files = [] if folder is None else [str(path.relative_to(folder)) for path in _walk(folder)]
    rows = [row[6:].split("\t")[0] for row in patch.splitlines() if row.startswith("+++ b/")]
    return tuple(dict.fromkeys((*files, *(row.rstrip() for row in rows))))


def read_size(value: str | int) -> int:
    """Bytes of ``512MB`` or of a number."""
    match = _SIZE.fullmatch(str(value))
    power = 0 if match is None else _POWERS[match[2].lower()[:1].strip("b")]
    size = 0 if match is None else int(float(match[1]) * 1024**power)
    if size <= 0:
        raise InvalidValue(f"a size is written as in 512MB or 2GB, not {value!r}")
    return size


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
