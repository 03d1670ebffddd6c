"""A long simulation of several runners on one store: 100,000 steps from one seed.

    python benchmarks/simulation.py                        a seed that is printed
    python benchmarks/simulation.py --seed 7 --steps 5000  the same steps again
    python benchmarks/simulation.py --postgres             on PostgreSQL

Ends with an error that names seed, episode and step at the first result that is lost, doubled or
mixed. See tools/simulated_runners.py.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from postgres_cluster import Cluster
from simulated_runners import Simulation, Tally, prepare_postgres


def simulate(seed: int, steps: int, *, postgres: bool) -> Tally:
    """Run a simulation on a store that is removed afterwards."""
    if not postgres:
        with tempfile.TemporaryDirectory() as folder:
            return Simulation(f"{folder}/store.db", seed).run(steps)
    cluster = Cluster()
    cluster.start()
    try:
        return Simulation(prepare_postgres(cluster.make_database("simulated")), seed).run(steps)
    finally:
        cluster.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulate runners on one store.")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9))
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    sys.stdout.write(f"seed {options.seed}\n")
    tally = simulate(options.seed, options.steps, postgres=options.postgres)
    for name, count in asdict(tally).items():
        sys.stdout.write(f"{name:>18} {count:,}\n")


if __name__ == "__main__":
    main()
