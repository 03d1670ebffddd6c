"""The runner's suite of one-line questions serves the tests on Ray, too."""

from __future__ import annotations

from tests.runner.conftest import folder as folder
