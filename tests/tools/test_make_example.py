"""The example table is what its script writes."""

from __future__ import annotations

import runpy
from pathlib import Path

from passhat.readers.sources import examples

SCRIPT = Path(__file__).parents[2] / "tools" / "make_example.py"


def test_the_example_is_up_to_date() -> None:
    made = runpy.run_path(str(SCRIPT))["table"]()
    assert examples()["helpdesk"].read_text(encoding="utf-8") == made
