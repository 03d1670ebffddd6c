"""Damaged logs in every format: no traceback, no hang, little memory, and every row accounted for.

Each mutation takes one of our fixtures (tests/readers/fixtures), damages it, and reads it. What is
read must satisfy rows = read + skipped + lost; anything else must be a refusal in one line.

    python benchmarks/mutations.py            prints the table (2,000 mutations)
    python benchmarks/mutations.py --write    and keeps it in docs/benchmarks/mutations.md
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from passhat import PasshatError
from passhat.readers import read_all

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "tests" / "readers" / "fixtures"
MUTATIONS, SEED, SECONDS = 2_000, 19, 20

_HOSTILE: tuple[object, ...] = (
    *(
        None,
        True,
        -1,
        1e308,
        "",
        "\x1b[2J",
        "=1+1",
        "x" * 10_000,
        [],
        {},
        [[[]]],
        {"a": {"b": None}},
    ),
    *("NaN", "9" * 400, -0.0, "\ud800", "null", ["a", 1, None]),
)


def _cut_off(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def _cut_out(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + data[at + chance.randrange(1, max(2, len(data) // 4)) :]


def _overwrite(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 12)):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _insert(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    junk = chance.choice(
        [b"}", b'"', b"]", b",", b"\x00", b"\xff", b"<x>", b"\n", b"9" * 400, b"[" * 500]
    )
    return data[:at] + junk + data[at:]


def _double(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[: chance.randrange(at, len(data))] + data[at:]


def _replace_value(data: bytes, chance: random.Random) -> bytes:
    """Put a hostile value somewhere into sound JSON."""
    lines = data.decode("utf-8", "replace").splitlines()
    try:
        documents = [json.loads(data)]
    except ValueError:
        try:
            documents = [json.loads(line) for line in lines if line.strip()]
        except ValueError:
            return _overwrite(data, chance)
    target = chance.choice(documents)
    places = list(_places(target))
    if places:
        container, key = chance.choice(places)
        container[key] = chance.choice(_HOSTILE)  # type: ignore[call-overload]
    return "\n".join(json.dumps(document) for document in documents).encode("utf-8", "replace")


def _places(data: object) -> list[tuple[dict[object, object] | list[object], object]]:
    found: list[tuple[dict[object, object] | list[object], object]] = []
    pairs = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in pairs:
        found.append((data, key))  # type: ignore[arg-type]
        found += _places(value)
    return found


KINDS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_cut_off, _cut_out, _overwrite, _insert, _double, _replace_value),
)


class Hang(Exception):
    """Reading took too long."""


def _alarm(_number: int, _frame: FrameType | None) -> None:
    raise Hang


def outcome(path: Path) -> str:
    """What became of one damaged file: read, lost, refused, or what must not happen."""
    try:
        found = read_all(path)
    except PasshatError as error:
        # A line for each reading, at most five.
        is_short = str(error).count("\n") <= 5 and len(str(error)) < 2_500
        return "refused" if is_short else "long refusal"
    except Hang:
        return "HANG"
    except Exception as error:
        return f"TRACEBACK {type(error).__name__}: {error}"
    lost = 0
    for file in found.files:
        tally = file.runs[0].tally
        made = sum(run.outcomes.attempts for run in file.runs)
        if tally is None:
            continue
        if tally.rows != tally.attempts + sum(tally.skipped.values()) + tally.lost:
            return f"UNACCOUNTED {tally}"
        if made != tally.attempts + tally.absent:
            return f"UNACCOUNTED {made} attempts, {tally}"
        lost += bool(tally.losses)
    return "read, with losses" if lost else "read"


def run(mutations: int = MUTATIONS, seed: int = SEED) -> tuple[Counter[str], Counter[str], float]:
    """Outcomes, mutations per format, and the slowest read in seconds."""
    chance = random.Random(seed)
    fixtures = sorted(path for path in FIXTURES.rglob("*") if path.is_file())
    outcomes: Counter[str] = Counter()
    formats: Counter[str] = Counter()
    slowest = 0.0
    signal.signal(signal.SIGALRM, _alarm)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(mutations):
            fixture = fixtures[number % len(fixtures)]
            data = fixture.read_bytes()
            for _ in range(chance.choice((1, 1, 2))):
                data = chance.choice(KINDS)(data, chance) if data else data
            path = Path(folder, fixture.name)
            path.write_bytes(data)
            started = time.perf_counter()
            signal.alarm(SECONDS)
            result = outcome(path)
            signal.alarm(0)
            slowest = max(slowest, time.perf_counter() - started)
            outcomes[result] += 1
            formats[fixture.relative_to(FIXTURES).parts[0]] += 1
    return outcomes, formats, slowest


def report(mutations: int) -> str:
    outcomes, formats, slowest = run(mutations)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines = [
        f"{sum(outcomes.values()):,} mutations of {len(formats)} formats; the slowest took "
        f"{slowest:.2f} s; peak memory {memory:,.0f} MB.",
        "",
        "| outcome | mutations |",
        "| --- | ---: |",
        *(f"| {name} | {count:,} |" for name, count in sorted(outcomes.items())),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--mutations", type=int, default=MUTATIONS)
    asked = parser.parse_args()
    text = report(asked.mutations)
    print(text)
    if asked.write:
        path = ROOT / "docs" / "benchmarks" / "mutations.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Damaged logs\n\n`python benchmarks/mutations.py`\n\n{text}\n")


if __name__ == "__main__":
    main()
