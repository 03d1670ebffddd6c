"""What many tests need: the shared data, and a command line that can be called."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from hypothesis_profiles import load_profile
from passhat.cli import main
from postgres_cluster import Cluster, binaries
from ray_cluster import RayCluster

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

load_profile()

# Whatever the terminal of whoever runs this is like: text is broken where it is without one.
os.environ["COLUMNS"] = "80"

# Tests start hundreds of processes. Where bytecode is not kept (many containers say so), each of
# them would compile all that it imports, a second or three.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def shared(name: str) -> Path | None:
    """A folder of files that lie beside the checkout, or beside the folder it is in."""
    above = Path(__file__).resolve().parents[2:5]
    return next((path for at in above if (path := at / "shared" / name).is_dir()), None)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real repeated-attempt data beside the checkout; never part of the project."""
    folder = shared("data")
    if folder is None:
        pytest.skip("the folder shared/data is not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def shared_formats() -> Path:
    """Raw logs as other tools wrote them, beside the checkout; never part of the project."""
    folder = shared("formats")
    if folder is None:
        pytest.skip("the folder shared/formats is not beside this checkout")
    return folder


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture
def passhat(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    """Call the command line in this process: ``passhat("report", "table.csv")``."""
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments: object) -> Ended:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ended(int(code), captured.out, captured.err)

    return call


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str], Path]:
    """Write a table and return its path: ``table("task,success\\na,1\\n")``."""

    def write(text: str | bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with five questions whose answer is yes, and no key in the environment."""
    lines = [{"id": f"t{i}", "prompt": f"yes? {i}", "answer": "yes"} for i in range(5)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "passhat-prices.toml").write_text(
        '[openai]\n"small" = { input = 1.0, output = 4.0 }\n'
        '[anthropic]\n"small" = { input = 1.0, output = 4.0 }\n'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def serving() -> Iterator[Callable[[Callable[[str], Any]], str]]:
    """Serve an application on loopback, in a thread: ``url = serving(lambda url: app)``."""
    with ExitStack() as stack:
        yield lambda make: stack.enter_context(_served(make))


@contextmanager
def _served(make: Callable[[str], Any]) -> Iterator[str]:
    from passhat.runner.serving import Listening, open_socket

    sock = open_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    ready, loop, ended = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def whole() -> None:
        async with Listening(make(url), sock):
            ready.set()
            await ended.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(whole())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(60)
        yield url
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()


@pytest.fixture(scope="session")
def old_a2a() -> Path:
    """The interpreter of an environment with a2a-sdk 0.3.26, made once and kept in build/."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = Path(__file__).parents[1] / "build" / f"a2a-0.3.26-py{version}"
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes want it at once
        if not (folder / "complete").exists():
            _make_old_a2a(folder)
    return folder / "bin" / "python"


def _make_old_a2a(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
    wanted = ("a2a-sdk[http-server]==0.3.26", "uvicorn")
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *wanted]
    made = subprocess.run(pip, capture_output=True, text=True)
    if made.returncode:
        lines = made.stderr.strip().splitlines() or ["no reason given"]
        pytest.skip(f"a2a-sdk 0.3.26 cannot be installed: {lines[-1]}")
    (folder / "complete").touch()


@pytest.fixture(scope="session")
def agentbeats_v1(old_a2a: Path) -> Path:
    """A folder with the package agentbeats 1.2.6, without its needs; kept like its interpreter."""
    folder = old_a2a.parents[1] / "agentbeats"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            wanted = ["install", "--quiet", "--no-deps", "--target", str(folder)]
            pip = [str(old_a2a), "-m", "pip", *wanted, "agentbeats==1.2.6"]
            made = subprocess.run(pip, capture_output=True, text=True)
            if made.returncode:
                lines = made.stderr.strip().splitlines() or ["no reason given"]
                pytest.skip(f"agentbeats 1.2.6 cannot be installed: {lines[-1]}")
    return folder


_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass
class Watched:
    """A page in a browser, what its console complained of, and every address it asked for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def external(self) -> list[str]:
        """Requests that leave this machine."""
        inside = ("file:", "data:", "blob:", "http://127.0.0.1", "http://localhost")
        return [address for address in self.requests if not address.startswith(inside)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium, one for all tests of a module.

    Not of the session: while Playwright is up its event loop runs in this thread, and tests of
    other modules that call ``asyncio.run`` could not.
    """
    from playwright.sync_api import expect, sync_playwright

    # As long as all else waits below: the machine may be busy with everybody else's tests.
    expect.set_options(timeout=60_000)
    found = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no Chromium is installed ({', '.join(_BROWSERS)})")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=flags, timeout=120_000)
        yield started
        started.close()


@pytest.fixture
def browser_page(browser: Browser) -> Iterator[Callable[..., Watched]]:
    """Open a page and watch it: ``browser_page(address, scheme="dark", width=420)``."""
    opened: list[Watched] = []

    def open_(
        address: str, *, scheme: str = "light", width: int = 1400, cookies: Sequence[Any] = ()
    ) -> Watched:
        dark_or_light: Literal["dark", "light"] = "dark" if scheme == "dark" else "light"
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=dark_or_light
        )
        context.set_default_timeout(60_000)
        context.add_cookies(cookies)
        own = Watched(context.new_page())
        opened.append(own)
        own.page.on(
            "console",
            lambda said: (
                own.complaints.append(said.text) if said.type in ("error", "warning") else None
            ),
        )
        own.page.on("pageerror", lambda error: own.complaints.append(str(error)))
        own.page.on("request", lambda request: own.requests.append(request.url))
        own.page.goto(address)
        return own

    yield open_
    for own in opened:
        own.page.context.close()


@contextmanager
def _shared_server(notes: Path) -> Iterator[Cluster]:
    """One server for all processes of a test session: the first starts it, the last stops it."""

    @contextmanager
    def locked() -> Iterator[dict[str, object]]:
        with notes.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            said = json.loads(file.read() or '{"users": 0}')
            yield said
            file.seek(0)
            file.truncate()
            file.write(json.dumps(said))

    with locked() as said:
        if not said["users"]:
            cluster = Cluster()
            cluster.start()
            said["folder"] = str(cluster.folder)
        said["users"] = int(str(said["users"])) + 1
        cluster = Cluster(Path(str(said["folder"])))
    try:
        yield cluster
    finally:
        with locked() as said:
            said["users"] = int(str(said["users"])) - 1
            if not said["users"]:
                cluster.stop()


@pytest.fixture(scope="session")
def needs_postgres() -> None:
    """For tests that start a server themselves."""
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed on this machine: apt-get install postgresql")


@pytest.fixture(scope="session")
def postgres_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A real PostgreSQL server, started for this test session."""
    request.getfixturevalue("needs_postgres")
    alone = not hasattr(request.config, "workerinput")
    folder = tmp_path_factory.getbasetemp()
    with _shared_server((folder if alone else folder.parent) / "postgres") as one:
        yield one


@pytest.fixture
def own_postgres(needs_postgres: None) -> Iterator[Cluster]:  # noqa: ARG001
    """A server for this test alone, which may be killed."""
    one = Cluster()
    one.start()
    yield one
    one.stop()


@pytest.fixture
def postgres_address(postgres_server: Cluster) -> Iterator[str]:
    """The address of a new, empty database, which is dropped afterwards."""
    name = f"t{secrets.token_hex(6)}"
    yield postgres_server.make_database(name)
    postgres_server.drop_database(name)


@pytest.fixture
def store_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new store goes: every test that asks for this is run on both kinds.

    Those that are marked ``also_on_ray`` are run once more, with attempts made by Ray workers.
    """
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_address"))
    if request.param == "ray":
        request.getfixturevalue("on_ray")
    return str(tmp_path / "store" / "passhat.db")


class _Ray:
    """One cluster, and this process's connection to it, for all tests of the group ``ray``.

    Not fixtures of the session: when the group is over they end, and not hundreds of tests later.
    """

    def __init__(self) -> None:
        self._open = ExitStack()
        self._cluster: RayCluster | None = None
        self._workers: list[Any] = []

    def cluster(self) -> RayCluster:
        if self._cluster is None:
            self._cluster = RayCluster()
            self._open.callback(self._cluster.stop)
        return self._cluster

    def workers(self) -> list[Any]:
        if not self._workers:
            cluster = self.cluster()
            patch = self._open.enter_context(pytest.MonkeyPatch.context())
            for name, value in cluster.environment.items():
                patch.setenv(name, value)
            import ray  # reads the environment, once

            from kept_workers import kept_workers

            with pytest.MonkeyPatch.context() as elsewhere:
                # Workers look for modules where this process does; the folder of the first test
                # must not be one of these places in all later ones.
                places = [place for place in sys.path if place != str(Path.cwd())]
                elsewhere.setattr(sys, "path", places)
                elsewhere.chdir(Path(__file__).parent)
                ray.init(cluster.address, log_to_driver=False, logging_level=logging.ERROR)
            self._open.callback(ray.shutdown)
            self._workers = kept_workers(ray, 2)
        return self._workers

    def kill(self) -> None:
        """Kill the cluster, but not this process, which Ray would end with it."""
        cluster = self.cluster()
        if "ray" in sys.modules:
            sys.modules["ray"].shutdown()
        cluster.kill()

    def end(self) -> None:
        self._open.close()
        self._cluster, self._workers = None, []


_RAY = _Ray()


@pytest.fixture
def ray_cluster() -> RayCluster:
    """A real Ray cluster of two workers, one for all tests; they are in the group ``ray``."""
    return _RAY.cluster()


@pytest.fixture
def kill_ray_cluster() -> Callable[[], None]:
    """Ends the cluster for good: tests that ask for this come last in their group."""
    return _RAY.kill


@pytest.fixture
def ray_workers() -> list[Any]:
    """This process connected to the cluster, with two workers that go from run to run."""
    return _RAY.workers()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Behind the last test of the group, the cluster ends."""
    grouped = hasattr(item.config, "workerinput")  # otherwise other tests stand between
    if nextitem is None or (grouped and _on_ray(item) and not _on_ray(nextitem)):
        _RAY.end()


def _on_ray(item: pytest.Item) -> bool:
    group = item.get_closest_marker("xdist_group")
    return group is not None and group.args == ("ray",)


@pytest.fixture
def workers_of_its_own(ray_workers: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ``passhat run`` of the test starts workers on the cluster, which may be killed."""
    del ray_workers  # others than these, on the same connection
    monkeypatch.setenv("PASSHAT_ON", "ray")


@pytest.fixture
def on_ray(ray_workers: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ``passhat run`` of the test has its attempts made by the workers of the cluster."""
    import ray

    from passhat.integrations.ray.ray_runner import OnRay

    def hired(_engine: OnRay, count: int, job: object) -> list[Any]:
        ray.get([worker.begin.remote(job) for worker in ray_workers[:count]])
        return ray_workers[:count]

    monkeypatch.setattr(OnRay, "_start_workers", hired)
    monkeypatch.setattr(OnRay, "_stop_workers", lambda _engine: None)
    monkeypatch.setenv("PASSHAT_ON", "ray")


ON_RAY = pytest.param("ray", marks=pytest.mark.xdist_group("ray"))
"""One process runs them all, so that there is one cluster."""


@pytest.fixture(params=["local", ON_RAY])
def way(request: pytest.FixtureRequest) -> str:
    """Who makes the attempts: every test that asks for this is run by this process and on Ray."""
    if request.param == "ray":
        request.getfixturevalue("on_ray")
    return str(request.param)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Which stores ``store_place`` stands for, and whether Ray is tried beside them."""
    chosen = {mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")}
    if "store_place" in metafunc.fixturenames and "store_place" not in chosen:
        marked = metafunc.definition.get_closest_marker("also_on_ray")
        places = ["sqlite", "postgres", *([ON_RAY] if marked else [])]
        metafunc.parametrize("store_place", places, indirect=True)


SLOW_FIXTURES = frozenset(
    {
        # a browser, a database server, a cluster, other interpreters
        *("browser", "needs_postgres", "postgres_server", "ray_cluster", "ray_workers", "old_a2a"),
        # programs in a sandbox or a container
        *("podman", "examiner", "contained", "best", "kind"),
        # inspect in a process of its own
        "inspect_process",
    }
)
"""Fixtures that start something outside this process. Every test that asks for one is slow."""

SLOW_PARAMETERS = frozenset({"postgres", "ray"})
"""What fixtures such as ``store_place`` and ``way`` start when they are asked for these."""


SLOW_TESTS = frozenset(
    line
    for line in (Path(__file__).parent / "slow.txt").read_text().splitlines()
    if not line.startswith("#")
)


def _is_slow_as_a_whole(path: Path) -> bool:
    """Whether a file or folder, or the folder it is in, is listed."""
    place = path.relative_to(Path(__file__).parent)
    return any(part.as_posix() in SLOW_TESTS for part in (place, *place.parents))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import what ``make test-fast`` leaves out: inspect alone takes seconds."""
    here = Path(__file__).parent
    if config.option.markexpr != "not slow" or not collection_path.is_relative_to(here):
        return None
    return _is_slow_as_a_whole(collection_path) or None


def _is_slow(item: pytest.Item) -> bool:
    """Whether a test is listed, or starts something outside this process."""
    file = item.path.relative_to(Path(__file__).parent).as_posix()
    test = f"{file}::{getattr(item, 'originalname', item.name)}"
    if test in SLOW_TESTS or _is_slow_as_a_whole(item.path):
        return True
    if SLOW_FIXTURES & set(getattr(item, "fixturenames", ())) or _on_ray(item):
        return True
    call = getattr(item, "callspec", None)
    return call is not None and any(
        isinstance(value, str) and value in SLOW_PARAMETERS for value in call.params.values()
    )


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what ``make test-fast`` leaves out."""
    if _is_slow(item):
        item.add_marker("slow")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep groups of tests together, and what ends the cluster of the group ``ray`` behind it.

    pytest-xdist 3.8 writes the group behind a test's ``_nodeid``, which pytest 9.2 does not read
    any more: without this, every process would start a cluster and a browser of its own.
    """
    items.sort(key=lambda item: "kill_ray_cluster" in getattr(item, "fixturenames", ()))
    for item in items if getattr(config.option, "loadgroup", False) else ():
        written = getattr(item, "_nodeid", item.nodeid)
        if written != item.nodeid:
            item._id = type(item._id).parse(written)
