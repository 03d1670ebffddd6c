"""The command line. ``main`` is what the ``passhat`` command calls."""

from passhat.cli.main import main

__all__ = ["main"]
