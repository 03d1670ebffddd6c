"""Where attempts are made, if not in this process: the workers of ``--on ray``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from passhat.runner import RunSpec
    from passhat.runner.run import RunPlan, Work
    from passhat.runner.run_spec import Loaded

__all__ = ["ray_address", "ray_workers"]


def ray_address(on: str) -> str:
    """The address of the cluster that ``--on`` names; empty for a new one on this machine."""
    from passhat.integrations.ray.ray_runner import OnRay

    return OnRay.address_of(on, here=os.environ.get("RAY_ADDRESS", ""))


@contextmanager
def ray_workers(
    spec: RunSpec, address: str, plan: RunPlan, loaded: Loaded
) -> Iterator[Work | None]:
    """Start workers, and stop them when the run is over."""
    # Half a minute on a small machine, in which Ray itself prints nothing.
    where = f"at {address}" if address else "on this machine"
    click.echo(f"starting Ray workers {where}; the first can take half a minute", err=True)
    from passhat.integrations.ray.ray_runner import OnRay

    with OnRay(plan, spec, loaded.models, address) as engine:
        click.echo(f"{engine.workers} Ray workers", err=True)
        yield engine.work
