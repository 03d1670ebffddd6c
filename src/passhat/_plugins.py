"""The base of every plug-in contract: hooks have defaults, and a misspelt hook is an error.

A contract (``Agent``, ``Session``, ``Suite``, ``Episode``) derives from
:class:`Contract` and lists every hook with its default. A class derived from a contract is checked
when it is defined, so that ``def clsoe(self)`` is reported at import and not silently never called.
"""

from __future__ import annotations

import re
import sysconfig
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from passhat.errors import InvalidValue, RunStopped

_CLOSE = 0.75
"""Similarity (difflib) that counts as misspelt: a swap in a word of four letters has 0.75."""
_PLACE = re.compile(r" \([^\s()]{1,100}:\d+\)$")
"""A line of code as :func:`describe_error` names it."""
_NOT_THE_USERS = (
    str(Path(__file__).parent),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
)
"""Folders of code that is not the user's: passhat, Python, installed packages."""


class Contract:
    """Base of the contracts; checks the names in every class that is derived from one.

    Attributes
    ----------
    required_hooks : tuple of str
        Hooks without a useful default: a plug-in that lacks one is refused when it is loaded.
    """

    required_hooks: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        contracts = _contracts(cls)
        if cls not in contracts:
            _check_names(cls, {name: _kind(value) for name, value in vars(cls).items()}, contracts)


def check_instance(plugin: object, contract: type[Contract], where: str) -> None:
    """Refuse an object that does not fulfil a contract; the error lists the missing hooks.

    Raises
    ------
    InvalidValue
        It is not derived from the contract, lacks a required hook, or has a misspelt attribute.
    """
    article = "an" if contract.__name__[0] in "AE" else "a"
    if not isinstance(plugin, contract):
        raise InvalidValue(
            f"{where} is not {article} {contract.__name__}: it is {_described(plugin)}.",
            hint=f"Derive its class from passhat.{contract.__name__}; "
            f"required: {', '.join(contract.required_hooks)}.",
        )
    kind = type(plugin)
    own = vars(plugin) if hasattr(plugin, "__dict__") else {}
    _check_names(kind, {name: _kind(value) for name, value in own.items()}, _contracts(kind))
    for name in plugin.required_hooks:
        if name not in own and not _overridden(kind, name):
            raise InvalidValue(
                f"{where}: {kind.__name__} has no {name}{_near(kind, name)}.",
                hint=f"Every {contract.__name__} needs: {', '.join(plugin.required_hooks)}.",
            )


def not_written(plugin: object, hook: str) -> RunStopped:
    """The error of a required hook that a plug-in does not have."""
    return RunStopped(
        f"{type(plugin).__name__} has no {hook}{_near(type(plugin), hook)}.",
        hint=f"Write it: def {hook}(self, ...)",
    )


def describe_error(error: BaseException) -> str:
    """The error as text, with the last line of the user's own code that it came through.

    Of a group of errors the first is told, and of one that was raised from another both. One whose
    ``__str__`` raises or returns no text is named only.
    """
    try:
        place = _place(error.__traceback__)
        text = _name_error(error)
        if isinstance(error, BaseExceptionGroup):
            leaves = _leaves(error)
            place = _place(leaves[0].__traceback__) or place
            more = f" and {len(leaves) - 1} more" if len(leaves) > 1 else ""
            text = f"{_name_error(leaves[0])}{more} in {type(error).__name__}"
        elif error.__cause__ is not None:
            text += f", caused by {_name_error(error.__cause__)}"
    except BaseException:
        return f"{type(error).__name__} (it cannot be shown as text)"
    return text + (f" ({place})" if place else "")


def _name_error(error: BaseException) -> str:
    name, text = type(error).__name__, str(error)
    return f"{name}: {text}" if text else name


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    """The errors that a group of errors, such as a TaskGroup's, is about."""
    leaves: list[BaseException] = []
    for error in group.exceptions:
        leaves += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return leaves


def shorten_detail(detail: str, width: int) -> str:
    """At most ``width`` characters of a detail; the line of code at its end is kept."""
    if len(detail) <= width:
        return detail
    place = match[0] if (match := _PLACE.search(detail)) else ""
    return f"{detail[: width - len(place) - 1]}…{place}"


def _place(trace: TracebackType | None) -> str:
    """File and line, as in ``agent.py:12``; empty where no code of the user is involved."""
    place = ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith((*_NOT_THE_USERS, "<")):
            place = f"{Path(file).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _contracts(cls: type) -> tuple[type[Contract], ...]:
    return tuple(kind for kind in cls.__mro__ if Contract in kind.__bases__)


def _overridden(cls: type, name: str) -> bool:
    """Whether a class below the contracts defines the name."""
    contracts = _contracts(cls)
    above = {kind for contract in contracts for kind in contract.__mro__}
    return any(name in vars(kind) for kind in cls.__mro__ if kind not in above)


def _check_names(cls: type, names: dict[str, str], contracts: tuple[type[Contract], ...]) -> None:
    hooks = {name: _kind(value) for contract in contracts for name, value in _hooks(contract)}
    for name, kind in names.items():
        if name.startswith("_"):
            continue
        if name in hooks:
            _check_kind(cls, name, kind, hooks[name])
            continue
        likely = _misspelt(name, [hook for hook in hooks if hooks[hook] == kind])
        if kind == "data" and name == f"{likely}s":
            continue  # ``prices`` next to the hook ``price`` is a list of something
        if likely and not _overridden(cls, likely):
            raise InvalidValue(
                f"{cls.__module__}.{cls.__qualname__} has {name!r}, which looks like a "
                f"misspelling of the hook {likely!r} and would never be called.",
                hint=f"Rename it to {likely}, or to _{name} if it is your own helper.",
            )


def _hooks(contract: type[Contract]) -> list[tuple[str, object]]:
    return [(name, value) for name, value in vars(contract).items() if not name.startswith("_")]


def _check_kind(cls: type, name: str, kind: str, expected: str) -> None:
    if kind in (expected, "other"):
        return
    where = f"{cls.__module__}.{cls.__qualname__}.{name}"
    if expected == "method":
        raise InvalidValue(f"{where} should be a method.", hint=f"Write def {name}(self, ...)")
    raise InvalidValue(
        f"{where} should be an attribute or a property.", hint=f"Put @property above {name}."
    )


def _kind(value: object) -> str:
    if isinstance(value, property | cached_property):
        return "data"
    if isinstance(value, staticmethod | classmethod) or type(value).__name__ == "function":
        return "method"
    return "other" if callable(value) else "data"


def _misspelt(name: str, hooks: list[str]) -> str:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, hooks, 1, _CLOSE)), "")


def _near(cls: type, hook: str) -> str:
    """A hint at a public name that may have been meant for the hook."""
    names = [name for name in dir(cls) if not name.startswith("_") and _overridden(cls, name)]
    likely = _misspelt(hook, names)
    return f"; did you mean {likely!r} to be it?" if likely else ""


def _described(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"
