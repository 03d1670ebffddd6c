"""Runs when an interpreter of the tests starts, before anything of the workspace can be imported.

Copied into the sandbox as ``sitecustomize``. pytest is then imported from the interpreter's own
folders, and finds plug-ins there only: a ``*.dist-info`` in the workspace names none.
"""

from __future__ import annotations

import sys
from typing import Any


def main() -> None:
    """Import pytest and keep the workspace out of its search for plug-ins."""
    words = sys.orig_argv[1:]
    if not any("pytest" in word or word.endswith("py.test") for word in words):
        return  # another program of the tests, which need not wait for it
    try:
        import pluggy
        import pytest  # noqa: F401 - so that no file of the workspace is taken for it
    except ImportError:
        return
    folders = list(sys.path)
    manager: Any = pluggy.PluginManager
    load = manager.load_setuptools_entrypoints

    def load_from_interpreter(self: Any, *given: Any, **named: Any) -> Any:
        path = sys.path[:]
        sys.path[:] = folders
        try:
            return load(self, *given, **named)
        finally:
            sys.path[:] = path

    manager.load_setuptools_entrypoints = load_from_interpreter


main()
