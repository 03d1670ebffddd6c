"""Several runners on one store in simulated time; benchmarks/simulation.py makes 100,000 steps."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from passhat.store import sqlite
from passhat.store.base import Store
from passhat.store.leases import HeldClaims
from simulated_runners import Broken, Settings, Simulation, prepare_postgres

SEED = 3
STORMY = Settings(
    tasks=1,
    attempts=3,
    jobs=2,
    runners=3,
    lease_seconds=1.0,
    answer_seconds=4.0,
    missing=0.0,
    trouble=0.02,
    kills=0.005,
    pauses=0.03,
    removals=0.01,
)
"""Short leases and long answers: claims change hands while attempts are being made."""


@pytest.mark.parametrize("store_place", ["sqlite"], indirect=True)
def test_no_interleaving_loses_doubles_or_mixes_a_result(store_place: str) -> None:
    tally = Simulation(store_place, SEED, STORMY).run(4_000)
    # It was a simulation of trouble.
    assert min(tally.kills, tally.pauses, tally.failed_calls, tally.lost_answers) > 0
    assert min(tally.slow_calls, tally.removals, tally.takeovers, tally.written) > 0


@pytest.mark.parametrize("store_place", ["postgres"], indirect=True)
def test_nor_on_postgres(store_place: str) -> None:
    assert Simulation(prepare_postgres(store_place), SEED).run(600).written > 0


@pytest.mark.parametrize("store_place", ["postgres"], indirect=True)
@pytest.mark.parametrize("episode", [10, 23], ids=["waits", "renews"])
def test_episodes_that_once_broke_on_postgres(store_place: str, episode: int) -> None:
    """A runner that lost its result did not wait; a lease was renewed while its run was removed."""
    simulation = Simulation(prepare_postgres(store_place), 1)
    simulation.tally.episodes = episode
    assert simulation.run(1).episodes == episode + 1


def test_the_same_seed_makes_the_same_simulation(tmp_path: Path) -> None:
    first, second = (Simulation(str(tmp_path / f"{i}.db"), 5).run(1_000) for i in range(2))
    assert first == second


def _every_lease_is_over(_store: object, token: str, claims: int, *_: object) -> HeldClaims:
    return HeldClaims(token, claims, beats=int(str(_[-1])), left=0.0)


@pytest.mark.parametrize(
    ("owner", "name", "replacement"),
    [
        (sqlite, "_CLAIM", sqlite._CLAIM.replace("IGNORE", "REPLACE")),
        (sqlite, "_TALK", "INSERT OR IGNORE INTO transcripts SELECT ?, ?, ?, ? WHERE 0"),
        (sqlite.SqliteStore, "_as_claims", _every_lease_is_over),
        (Store, "_own_key", Store._key),
    ],
    ids=["claim", "transcript", "lease", "generation"],
)
def test_a_store_without_one_of_its_guards_is_found_out(
    tmp_path: Path, owner: object, name: str, replacement: object
) -> None:
    with (
        mock.patch.object(owner, name, replacement),
        pytest.raises(Broken, match=rf"seed {SEED}, episode \d+, step \d+"),
    ):
        Simulation(str(tmp_path / "store.db"), SEED, STORMY).run(20_000)
