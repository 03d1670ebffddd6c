"""The path of a new user: the wheel in a fresh environment, five commands, no network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("first steps")  # the wheel is built once
ROOT = Path(__file__).resolve().parent.parent
MOST_LINES = 14
EXTRAS = (
    *("a2a", "anthropic", "duckdb", "genai_prices", "httpx", "inspect_ai", "mcp", "openai"),
    *("opentelemetry", "psycopg", "ray"),
)


@pytest.fixture(scope="module")
def passhat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command as installed from the wheel; only its dependencies come from this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("passhat-*.whl")
    place = folder / "venv"
    venv.create(place, symlinks=True)
    python = place / "bin" / "python"
    installed = _site_packages(python)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"),
            *("--target", str(installed), str(wheel)),
        ],
        check=True,
        capture_output=True,
    )
    # Of the path files of this environment none is read, so the checkout is not importable.
    (installed / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    script = place / "bin" / "passhat"
    # `pip install .` brings no extra; this environment has them all.
    script.write_text(
        f"#!{python}\nimport sys\nsys.modules.update(dict.fromkeys({EXTRAS}))\n"
        "from passhat.cli import main\nsys.exit(main())\n"
    )
    script.chmod(0o755)
    where = [str(python), "-c", "import passhat; print(passhat.__file__)"]
    found = subprocess.run(where, check=True, capture_output=True, text=True, cwd=folder).stdout
    assert Path(found.strip()).is_relative_to(installed)
    return script


def _site_packages(python: Path) -> Path:
    word = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([str(python), "-c", word], check=True, capture_output=True, text=True)
    return Path(found.stdout.strip())


def test_from_nothing_to_a_gate_in_five_commands(passhat: Path, tmp_path: Path) -> None:
    def call(*words: str, code: int = 0) -> str:
        done = subprocess.run(
            [str(passhat), *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert len(done.stdout.splitlines()) <= MOST_LINES, done.stdout
        assert "Traceback" not in done.stderr
        return done.stdout

    call("init")
    assert "of single attempts pass" in call("run")
    assert "5 tasks x 8 attempts" in call("report")
    agent = tmp_path / "agent.py"
    agent.write_text(agent.read_text().replace("0.3 if sign", "1.0 if sign"))
    call("run")  # the file changed, so that this is another run
    text = call("gate", "--against", "latest~1", code=1)
    assert "multiply" in text


WITHOUT_EXTRAS = """
import sys
for name in ("psycopg", "duckdb", "openai", "anthropic", "httpx", "a2a", "mcp", "inspect_ai"):
    sys.modules[name] = None  # as if it were not installed
from passhat.cli.main import main
assert main(["report", "example:helpdesk", "--metric", "pass^2"]) == 0
assert main(["read", "mlflow:x"]) == 2
"""


def test_a_plain_installation_needs_no_extra() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS], capture_output=True, text=True, check=True
    )
    assert "pip install 'passhat[platforms]'" in done.stderr


def test_the_install_line_of_the_readme_in_a_clean_environment(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    checkout = tmp_path / "checkout"
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in files.stdout.splitlines():
        if name.startswith(("src/", "pyproject", "README", "LICENSE")):
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, checkout / name)
    venv.create(tmp_path / "venv", with_pip=True, symlinks=True)
    path = f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for command in (block, "passhat --version", "passhat report example:helpdesk"):
        done = subprocess.run(
            ["bash", "-c", command], cwd=checkout, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "pass^8" in done.stdout
