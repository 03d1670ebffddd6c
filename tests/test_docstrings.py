"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import passhat

MODULES = [module.name for module in pkgutil.walk_packages(passhat.__path__, "passhat.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
