"""Broken logs: what is sound is read, what was lost is said, and nothing ends in a traceback."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hypothesis_profiles import max_examples
from passhat import PasshatError, read
from passhat.readers import Reading, read_all

Samples = Any
UNCHECKED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def _check_counts(found: Reading) -> None:
    """Every row of every file is an attempt, was skipped, or was lost."""
    for file in found.files:
        tally = file.runs[0].tally
        assert tally is not None
        assert tally.rows == tally.attempts + sum(tally.skipped.values()) + tally.lost
        made = sum(run.outcomes.attempts for run in file.runs)
        assert made == tally.attempts + tally.absent
        assert made >= 1


_BEFORE_READINGS = re.compile(r"\s(?:Say how to read it|No field looks like a verdict)")


def _read_or_refuse(path: Path) -> Reading | None:
    try:
        found = read_all(path)
    except PasshatError as error:
        message = _BEFORE_READINGS.split(str(error))[0]  # then a line for each reading
        assert "\n" not in message
        assert len(str(error)) < 1500  # noqa: PT017
        return None
    _check_counts(found)
    return found


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, float, float, bytes]:
    """A way to damage a file: where, how much of it, and with what."""
    kind = draw(st.sampled_from(["cut off", "cut out", "overwrite", "insert", "double"]))
    junk = draw(st.binary(min_size=1, max_size=6) | st.sampled_from([b"}", b'"', b"]", b",", b"{"]))
    return kind, draw(st.floats(0, 1)), draw(st.floats(0, 0.2)), junk


def _damaged(content: bytes, change: tuple[str, float, float, bytes]) -> bytes:
    kind, place, share, junk = change
    at = int(place * len(content))
    stop = min(len(content), at + max(1, int(share * len(content))))
    return {
        "cut off": content[:at],
        "cut out": content[:at] + content[stop:],
        "overwrite": content[:at] + junk + content[at + len(junk) :],
        "insert": content[:at] + junk + content[at:],
        "double": content[:stop] + content[at:],
    }[kind]


@settings(suppress_health_check=UNCHECKED, max_examples=max_examples(25))
@given(change=changes())
def test_a_damaged_log_is_read_or_refused(
    samples: Samples, sample_name: str, change: tuple[str, float, float, bytes]
) -> None:
    _read_or_refuse(samples.write("", _damaged(samples.content(sample_name), change)))


@settings(suppress_health_check=UNCHECKED, max_examples=max_examples(60))
@given(change=changes(), which=st.integers(0, 10_000))
def test_a_damaged_real_log_is_read_or_refused(
    shared_formats: Path, samples: Samples, change: tuple[str, float, float, bytes], which: int
) -> None:
    logs = sorted(path for path in shared_formats.rglob("*") if path.is_file())
    content = logs[which % len(logs)].read_bytes()
    _read_or_refuse(samples.write("", _damaged(content, change)))


DOCUMENTS = (
    *("agentbeats", "cruxeval", "evalplus", "inspect_ai", "livecodebench", "promptfoo"),
    *("swe_bench", "tau2_bench", "tau_bench", "terminal_bench"),
)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_that_is_cut_off_says_so_wherever_it_is_cut(samples: Samples, name: str) -> None:
    content = samples.content(name)
    whole = read_all(samples.write("", content)).runs[0].tally
    assert whole is not None
    most = 0
    for at in (*range(1, len(content), 7), len(content) - 1):
        found = _read_or_refuse(samples.write("", content[:at]))
        if found is None or found.files[0].reader == "table":
            continue
        tally = found.runs[0].tally
        assert tally is not None
        assert tally.losses, f"cut at {at}"
        assert tally.attempts <= whole.attempts
        most = max(most, tally.attempts)
    assert most == whole.attempts


def test_one_broken_record_does_not_take_the_others_with_it(samples: Samples) -> None:
    content = samples.content("tau2_bench").replace(b'"task_id": "b"', b'"task_id": ["b"', 1)
    (run,) = read(samples.write("", content))
    assert run.agent == "gpt"
    assert run.losses
    assert run.outcomes.attempts >= 2


def test_a_broken_line_is_named(samples: Samples) -> None:
    lines = samples.content("human_eval").splitlines(keepends=True)
    lines[1] = b'{"task_id": "H/1", "pass\n'
    (run,) = read(samples.write("", b"".join(lines)))
    assert run.outcomes.attempts == 3
    assert [loss.where for loss in run.losses] == ["line 2"]


def test_a_gzip_that_breaks_off_keeps_what_came_before(samples: Samples) -> None:
    rows = [
        {"task_id": i, "completion": str(i * 7919), "result": "passed", "passed": True}
        for i in range(20_000)
    ]
    packed = gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    (run,) = read(samples.write("", packed[: len(packed) // 2]))
    assert 1_000 < run.outcomes.attempts < 20_000
    assert "ends too early" in str(run.losses[-1])


def test_a_million_losses_are_counted_and_a_thousand_kept(samples: Samples) -> None:
    content = samples.content("human_eval") + b"not json\n" * 5_000
    (run,) = read(samples.write("", content))
    assert run.tally is not None
    assert run.tally.lost == 5_000
    assert len(run.losses) == 1_001


def test_wrong_types_lose_their_row_only(samples: Samples) -> None:
    rows: list[object] = [
        {"task_id": 0, "reward": 1.0, "trial": 0, "traj": []},
        {"task_id": 0, "reward": "much", "trial": 1, "traj": []},
        {"task_id": {"a": 1}, "reward": 1.0, "trial": 1, "traj": []},
        {"task_id": 0, "reward": [1], "trial": 1, "traj": "none"},
        None,
        17,
        {"task_id": 0, "reward": float("inf"), "trial": 2, "traj": []},
        {"task_id": 0, "reward": "0.0", "trial": 1, "traj": []},
    ]
    (run,) = read(samples.write("", rows))
    assert (run.outcomes.n.tolist(), run.outcomes.missing.tolist()) == ([2], [1])
    assert run.tally is not None
    assert (run.tally.rows, run.tally.lost) == (8, 5)


def test_deep_nesting_is_no_traceback(samples: Samples) -> None:
    deep = b"[" * 50_000 + b"]" * 50_000
    _read_or_refuse(samples.write("", b'[{"task_id": 0, "reward": ' + deep + b', "traj": []}]'))
    _read_or_refuse(samples.write("", b'{"info": {"environment_info": ' + deep + b"}}"))
