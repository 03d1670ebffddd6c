"""Write the transformer's success rates that ship with passhat, from the full table.

The full table has one row per training stage and task with six digits at each temperature. Three
digits are kept, and chances below 1e-9 become 0: at k up to a million they do not matter.

    python tools/make_transformer_example.py transformer_multiplication_p.csv.gz
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from pathlib import Path

EXAMPLE = Path("src", "passhat", "examples", "transformer_multiplication.rates.csv.gz")
SMALLEST, DIGITS = 1e-9, 3


def compact(table: Path) -> bytes:
    """The table as gzipped CSV; the same bytes every time."""
    with gzip.open(table, "rt", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["stage", "task", *(name.removeprefix("T") for name in header[3:])])
    writer.writerows([stage, task, *map(_short, rates)] for stage, task, _, *rates in rows)
    return gzip.compress(out.getvalue().encode(), 9, mtime=0)


def _short(rate: str) -> str:
    value = float(rate)
    return "0" if value < SMALLEST else f"{value:.{DIGITS}g}".replace("e-0", "e-")


if __name__ == "__main__":
    EXAMPLE.write_bytes(compact(Path(sys.argv[1])))
    print(f"wrote {EXAMPLE}")
