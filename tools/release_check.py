"""Everything that is looked at before a release, with a table of what passed at the end.

    make release-check                      all steps (hours: deep properties, frameworks, a model)
    make release-check STEPS="package pythons"

``package`` builds wheel and sdist, has twine look at them and lists what ships; ``pythons``
installs the wheel in a clean environment of every supported Python and takes the first steps;
``sdist`` unpacks the source package and runs its own ``make demo`` and ``make test``. The others
are targets of the Makefile. A Python that is not on this machine is named as not run, and the
check is red.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGETS = {
    "lint": "lint",
    "tests": "test",
    "deep": "test-deep",
    "frameworks": "test-frameworks",
    "a2a": "test-a2a",
    "llm": "test-llm",
    "coding": "test-coding-agent",
    "platforms": "test-platforms",
    "site": "docs",
}
"""Steps that are targets of the Makefile."""
MUTANTS = 40
FIRST_STEPS = ("init", "run", "report", "gate", "runs", "report example:helpdesk")
STRANGE = re.compile(
    r"^(site|dist|build)/|(^|/)(\.passhat|\.venv[^/]*|__pycache__|\.hypothesis)(/|$)"
    r"|\.(pyc|log|swp|orig|rej)$|(^|/)\.env"
)
"""What never ships."""


class Failed(Exception):
    """Why a step did not pass."""


def call(words: Sequence[str | Path], folder: Path = ROOT, **variables: str) -> str:
    """Run a command and return what it printed; a failure shows the end of it."""
    ended = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        end = (ended.stdout + ended.stderr).strip().splitlines()[-12:]
        raise Failed(
            f"{' '.join(map(str, words))} ended with {ended.returncode}\n" + "\n".join(end)
        )
    return ended.stdout


def check_versions() -> str:
    """One version in source, citation and the list of changes."""
    source = (ROOT / "src/passhat/_version.py").read_text(encoding="utf-8")
    version = source.split('"')[-2]
    for name, pattern in (
        ("CITATION.cff", rf"^version: [\"']?{re.escape(version)}[\"']?$"),
        ("CHANGELOG.md", rf"^## {re.escape(version)}$"),
    ):
        if not re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE):
            raise Failed(f"{name} does not name version {version}")
    return version


def build_package(folder: Path) -> tuple[Path, Path]:
    """Wheel and sdist, built in a clean environment as the release workflow does."""
    bin_folder = environment(folder / "build-environment", "build", "twine")
    call([bin_folder / "python", "-m", "build", "--outdir", folder, ROOT])
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    call([bin_folder / "twine", "check", "--strict", wheel, sdist])
    return wheel, sdist


def check_contents(wheel: Path, sdist: Path) -> str:
    """Nothing ships that should not, and the sdist holds what its Makefile names."""
    with zipfile.ZipFile(wheel) as opened:
        in_wheel = opened.namelist()
    with tarfile.open(sdist) as opened_sdist:
        in_sdist = [name.partition("/")[2] for name in opened_sdist.getnames()]
    strange = [name for name in (*in_wheel, *in_sdist) if STRANGE.search(name)]
    outside = [name for name in in_wheel if not re.match(r"passhat(-[\d.a-z]+\.dist-info)?/", name)]
    if strange or outside:
        raise Failed(f"ships: {', '.join((strange + outside)[:10])}")
    if lacking := {"Makefile", "tools/setup", "tests/conftest.py", "README.md"} - set(in_sdist):
        raise Failed(f"the sdist lacks {', '.join(sorted(lacking))}")
    return f"wheel {len(in_wheel)} files, sdist {len(in_sdist)}"


def environment(folder: Path, *packages: str | Path, python: str = sys.executable) -> Path:
    """A clean environment with these packages; returns the folder of its commands."""
    if python == sys.executable:
        venv.create(folder, with_pip=True)
    else:
        call([python, "-m", "venv", folder])
    words: list[str | Path] = [folder / "bin/python", "-m", "pip", "install", "--quiet"]
    call([*words, "--disable-pip-version-check", *packages])
    return folder / "bin"


def supported_versions() -> list[str]:
    """The versions that the package's classifiers name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    words = [entry.rpartition(" :: ")[2] for entry in project["classifiers"]]
    return [word for word in words if re.fullmatch(r"3\.\d+", word)]


def find_python(version: str) -> str | None:
    """The interpreter of a version: on the path, or one that pyenv keeps."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    for candidate in (shutil.which(f"python{version}"), *map(str, reversed(kept))):
        if (
            candidate
            and not subprocess.run(
                [
                    candidate,
                    "-c",
                    f"import sys; sys.exit(sys.version_info[:2] != {version_of(version)})",
                ],
                capture_output=True,
                check=False,
            ).returncode
        ):
            return candidate
    return None


def version_of(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def take_first_steps(wheel: Path, python: str, folder: Path) -> str:
    """Install the wheel and type what a new user types, in a folder of its own."""
    bin_folder = environment(folder / "environment", wheel, python=python)
    place = folder / "evals"
    place.mkdir()
    version = call([bin_folder / "passhat", "--version"], place).strip()
    for step in FIRST_STEPS:
        call([bin_folder / "passhat", *step.split()], place, NO_COLOR="1")
    call([bin_folder / "python", "-W", "error", "-c", "import passhat; passhat.report"], place)
    return version


def check_pythons(wheel: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """A result for each supported version: what it printed, or why it did not pass."""
    for version in supported_versions():
        python = find_python(version)
        if python is None:
            yield version, f"NOT RUN: there is no python{version} on this machine"
            continue
        place = folder / version
        place.mkdir()
        try:
            yield version, take_first_steps(wheel, python, place)
        except Failed as error:
            yield version, f"FAILED: {error}"


def check_sdist(sdist: Path, folder: Path) -> str:
    """The unpacked source runs its own demo and its own tests."""
    with tarfile.open(sdist) as opened:
        opened.extractall(folder, filter="data")
    (place,) = folder.glob("passhat-*")
    call(["make", "demo"], place)
    call(["make", "test"], place)
    return "make demo and make test pass from the sdist"


class Steps:
    """The results of all steps so far, each told when it begins and when it ends."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self.results: list[tuple[str, str]] = []
        self._say = say

    def take(self, name: str, step: Callable[[], str]) -> None:
        self._say(f"{name} ...")
        try:
            result = step()
        except Failed as error:
            result = f"FAILED: {error}"
        self.results.append((name, result))
        self._say(f"{name}: {result}")


def check_packages(steps: Steps, chosen: Sequence[str], folder: Path) -> None:
    """Wheel and sdist; then the wheel on every Python, and what the sdist does by itself."""
    built: list[Path] = []

    def build() -> str:
        built.extend(build_package(folder))
        return check_contents(*built)

    steps.take("package", build)
    if not built:
        return
    if "pythons" in chosen:
        for version, result in check_pythons(built[0], folder):
            steps.take(f"Python {version}", result.__str__)
    if "sdist" in chosen:
        steps.take("sdist", lambda: check_sdist(built[1], folder / "unpacked"))


def run_steps(chosen: Sequence[str], say: Callable[[str], object]) -> list[tuple[str, str]]:
    """Every step that was asked for, with its result."""
    steps = Steps(say)
    steps.take("versions", check_versions)
    if {"package", "pythons", "sdist"} & set(chosen):
        with tempfile.TemporaryDirectory(prefix="passhat-release-") as temporary:
            check_packages(steps, chosen, Path(temporary))
    if "mutants" in chosen:
        words = [sys.executable, "tools/mutate.py", "--quick", "--count", str(MUTANTS)]
        steps.take("mutants", lambda: call(words).strip().splitlines()[-1])
    for name in TARGETS:
        if name in chosen:
            steps.take(name, partial(run_target, TARGETS[name]))
    return steps.results


def run_target(target: str) -> str:
    call(["make", target])
    return "passes"


def main() -> int:
    steps = ("package", "pythons", "sdist", "mutants", *TARGETS)
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(steps)}; else all")
    chosen = parser.parse_args().steps or steps
    if wrong := [name for name in chosen if name not in steps]:
        parser.error(f"no such step: {', '.join(wrong)}. Steps: {', '.join(steps)}")
    results = run_steps(chosen, lambda text: print(text, flush=True))
    print("\nstep | result\n--- | ---")
    for name, result in results:
        print(f"{name} | {result.partition(chr(10))[0]}")
    if left_out := [name for name in steps if name not in chosen]:
        print(f"Not asked for: {', '.join(left_out)}")
    return int(any(result.startswith(("FAILED", "NOT RUN")) for _, result in results))


if __name__ == "__main__":
    sys.exit(main())
