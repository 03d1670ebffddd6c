"""The page of a pair says what compare and the gate say, over HTTP and for generated pairs."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from passhat.dashboard.app import make_app
from passhat.dashboard.guard import Access
from passhat.protocol import Protocol
from passhat.readers.store import run_from_store
from passhat.stats.compare import compare
from passhat.stats.gate import GateOptions, judge
from passhat.stats.outcomes import Verdict
from passhat.store import AttemptRecord, RunRecord, Store, open_store
from passhat.suites.base import Judgement, Task

CHANGES = (0.0, -0.35, 0.35, -1.0)
ATTEMPTS = 4


def _write(store: Store, agent: str, rates: np.ndarray, rng: np.random.Generator) -> str:
    tasks = [Task(f"t{i}", "?", {}) for i in range(len(rates))]
    record = RunRecord(agent, Protocol(suite="desk"), tasks)
    store.begin(record, ATTEMPTS)
    cells = [(task.id, number) for number in range(1, ATTEMPTS + 1) for task in tasks]
    store.claim(record.id, cells)
    attempts = []
    for task, number in cells:
        is_pass = rng.random() < rates[int(task[1:])]
        judgement = Judgement(Verdict.PASSED) if is_pass else Judgement(Verdict.FAILED, "wrong")
        attempts.append(AttemptRecord(task, number, judgement, seconds=float(rng.uniform(1, 9))))
    store.finish(record.id, attempts)
    return record.id


@pytest.mark.parametrize("seed", range(len(CHANGES)))
def test_the_page_of_a_pair_has_the_verdict_of_compare_and_gate(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    before = rng.beta(3, 1, 12)
    after = np.clip(before + CHANGES[seed], 0, 1)
    place = str(tmp_path / "store.db")
    with open_store(place) as store:
        ids = [_write(store, *side, rng) for side in (("old", before), ("new", after))]
        base, new = (run_from_store(store, store.find(one)) for one in ids)
        base, new = replace(base, name="old"), replace(new, name="new")
    (verdict,) = compare(base, new, ["pass^1"]).verdicts
    gate = judge(new, (), base, GateOptions())
    pair = gate.results[0].pair
    assert pair is not None
    assert (pair.claim, pair.sentence) == (verdict.claim, verdict.sentence)
    with TestClient(make_app(place, Access()), base_url="http://127.0.0.1:8000") as client:
        page = client.get(f"/compare?run={ids[0]}&run={ids[1]}&metric=pass^1").text
    text = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", page)))
    assert verdict.sentence in text
    assert gate.headline.startswith(
        {1: "Regression", 2: "Improvement", 3: "Regression"}.get(seed, "")
    )
