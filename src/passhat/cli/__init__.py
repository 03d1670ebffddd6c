"""The command line; ``main`` is the entry point of the ``passhat`` command."""

from passhat.cli.main import main

__all__ = ["main"]
