"""The example with labels is what its script makes."""

from __future__ import annotations

import pytest

from make_judged_example import main
from passhat.readers.sources import examples


def test_the_example_is_what_the_script_makes(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    assert examples()["judged"].read_text(encoding="utf-8") == capsys.readouterr().out
