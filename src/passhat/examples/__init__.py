"""Example data: tables that are read as ``example:NAME``, and success rates of two models."""

from __future__ import annotations

import csv
import gzip
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passhat.stats.temperature import KnownRates

__all__ = ["smollm2", "transformer"]


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

    content = (
        files("passhat.examples").joinpath("transformer_multiplication.rates.csv.gz").read_bytes()
    )
    header, *rows = csv.reader(gzip.decompress(content).decode().splitlines())
    temperatures = tuple(map(float, header[2:]))
    stages = {}
    for stage in dict.fromkeys(row[0] for row in rows):
        stage_rows = [row for row in rows if row[0] == stage]
        rates = np.array([row[2:] for row in stage_rows], np.float64).T
        stages[stage] = KnownRates(stage, tuple(row[1] for row in stage_rows), temperatures, rates)
    return stages


def smollm2() -> KnownRates:
    """The measured success rates of a language model at 590 short tasks and 16 temperatures.

    SmolLM2-135M-Instruct (Apache-2.0), sampled for this project 2,048 times per task and
    temperature (46 tasks: 1,024 times), at most 16 tokens, graded by the last number or the word:
    18.6 million samples. The counts themselves are the table ``example:smollm2``.

    Examples
    --------
    >>> rates = smollm2()
    >>> len(rates.tasks), rates.temperatures[0], rates.temperatures[-1]
    (590, 0.1, 2.0)
    >>> round(float(rates.pass_at_k(1)[0]), 3)
    0.287
    """
    import numpy as np

    from passhat.stats.temperature import KnownRates

    content = files("passhat.examples").joinpath("smollm2.csv.gz").read_bytes()
    rows = list(csv.DictReader(gzip.decompress(content).decode().splitlines()))
    tasks = tuple(dict.fromkeys(row["task"] for row in rows))
    temperatures = tuple(sorted({float(row["temperature"]) for row in rows}))
    rates = np.zeros((len(temperatures), len(tasks)))
    column = {task: at for at, task in enumerate(tasks)}
    for row in rows:
        at = temperatures.index(float(row["temperature"])), column[row["task"]]
        rates[at] = int(row["c"]) / int(row["n"])
    return KnownRates(rows[0]["model"], tasks, temperatures, rates)
