"""What ships with passhat: small tables, read as ``example:NAME``, and a model's success rates."""

from __future__ import annotations

import csv
import gzip
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passhat.stats.temperature import KnownRates

__all__ = ["transformer"]


def transformer() -> dict[str, KnownRates]:
    """The chance of a small transformer at 1,500 multiplications, at 25 temperatures.

    A character transformer of 14 million parameters, trained for this project on products of up to
    4 x 3 digits, at four stages of its training: early, middle, late and final. The tasks were held
    out. A rate is the exact chance of the one right answer, the product of its tempered softmax
    terms, to three digits; below 1e-9 it is written as 0.

    Examples
    --------
    >>> early = transformer()["early"]
    >>> len(early.tasks), early.temperatures[0], early.temperatures[-1]
    (1500, 0.05, 3.2)
    """
    import numpy as np

    from passhat.stats.temperature import KnownRates

    packed = files("passhat.examples").joinpath("transformer_multiplication.csv.gz").read_bytes()
    header, *rows = csv.reader(gzip.decompress(packed).decode().splitlines())
    heats = tuple(map(float, header[2:]))
    found = {}
    for stage in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == stage]
        rates = np.array([row[2:] for row in own], np.float64).T
        found[stage] = KnownRates(stage, tuple(row[1] for row in own), heats, rates)
    return found
