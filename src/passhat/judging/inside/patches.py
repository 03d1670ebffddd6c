"""Patches: what tests replace by ``unittest.mock.patch`` is replaced in the program's process too.

There a stand-in takes the place, so that every call of the program reaches the mock in the tests.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

_STREAMS = (("sys", "stdout"), ("sys", "stderr"))
"""What the program prints reaches the tests anyway."""
_ABSENT = object()


def forward_patches(ask: Any) -> None:
    """From now on, also ask the program's side for every patch, and for its end."""
    from unittest import mock

    patcher: Any = mock._patch
    enter, leave = patcher.__enter__, patcher.__exit__

    def begin(self: Any) -> Any:
        result = enter(self)
        if place := _place_of(self):
            ask("patch", -1, "", *place, getattr(self.target, self.attribute))
        return result

    def end(self: Any, *error: Any) -> Any:
        place = _place_of(self)
        result = leave(self, *error)
        if place:
            ask("unpatch", -1, "")
        return result

    patcher.__enter__, patcher.__exit__ = begin, end


def _place_of(patch: Any) -> tuple[str, str, str] | None:
    """Module, class in it and attribute of a patch; none for an object of the tests."""
    owner = patch.target
    module, name = getattr(owner, "__module__", None), getattr(owner, "__qualname__", "")
    if isinstance(owner, ModuleType):
        module, name = owner.__name__, ""
    elif not isinstance(owner, type):
        return None
    if module is None or (module == "tests" and name) or (module, patch.attribute) in _STREAMS:
        return None
    # Tests that patch their own module mean the program, which plain Python runs in it.
    return "solution" if module == "tests" else str(module), name, patch.attribute


class Patches:
    """Patches in the program's process, the last one on top."""

    def __init__(self) -> None:
        self._stack: list[tuple[Any, str, Any]] = []

    def begin(self, module: str, name: str, attribute: str, value: Any) -> None:
        owner: Any = __import__(module, fromlist=["_"])
        for step in filter(None, name.split(".")):
            owner = getattr(owner, step)
        self._stack.append((owner, attribute, vars(owner).get(attribute, _ABSENT)))
        setattr(owner, attribute, value)

    def end(self) -> None:
        owner, attribute, value = self._stack.pop()
        if value is _ABSENT:
            delattr(owner, attribute)
        else:
            setattr(owner, attribute, value)
