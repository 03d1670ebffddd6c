"""The little of pytest that hidden tests use: raises, approx, parametrize; classes of tests."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["pytest_stand_in", "run_functions"]


class _Raises:
    """``with pytest.raises(ValueError, match="..."):``"""

    def __init__(self, kinds: Any, match: str | None) -> None:
        self._kinds, self._match = kinds, match
        self.value: BaseException | None = None

    def __enter__(self) -> _Raises:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, _trace: Any) -> bool:
        assert error is not None, f"did not raise {self._kinds}"
        if not isinstance(error, self._kinds):
            return False
        self.value = error
        if self._match is not None:
            assert re.search(self._match, str(error)), f"{error} does not match {self._match!r}"
        return True


def _raises(kinds: Any, *call: Any, match: str | None = None, **keywords: Any) -> Any:
    if not call:
        return _Raises(kinds, match)
    with _Raises(kinds, match) as caught:
        call[0](*call[1:], **keywords)
    return caught


class _Approx:
    """Numbers, and lists, tuples and dicts of them, equal up to a tolerance."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expected: Any, rel: float | None = None, abs: float | None = None) -> None:  # noqa: A002
        self._expected = expected
        self._rel = (1e-6 if abs is None else 0.0) if rel is None else rel
        self._abs = 1e-12 if abs is None else abs

    def __eq__(self, other: object) -> bool:
        return self._close(other, self._expected)

    def _close(self, mine: Any, wanted: Any) -> bool:
        if isinstance(wanted, dict):
            same = type(mine) is dict and mine.keys() == wanted.keys()
            return same and all(self._close(mine[key], wanted[key]) for key in wanted)
        if isinstance(wanted, (list, tuple)):
            same = type(mine) is type(wanted) and len(mine) == len(wanted)
            return same and all(map(self._close, mine, wanted))
        if not isinstance(mine, (int, float)) or not isinstance(wanted, (int, float)):
            return bool(mine == wanted)
        return math.isclose(mine, wanted, rel_tol=self._rel, abs_tol=self._abs)


def _parametrize(names: Any, values: Any, **_options: Any) -> Callable[[Any], Any]:
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

    def mark(function: Any) -> Any:
        rows = [dict(zip(keys, row if len(keys) > 1 else [row])) for row in values]  # noqa: B905
        known = getattr(function, "__passhat_rows__", [{}])
        function.__passhat_rows__ = [{**old, **new} for old in known for new in rows]
        return function

    return mark


def pytest_stand_in(refusal: type[BaseException]) -> ModuleType:
    """A module ``pytest`` with what is supported; anything else stops the judgement."""
    module, mark = ModuleType("pytest"), ModuleType("pytest.mark")
    mark.parametrize = _parametrize  # type: ignore[attr-defined]
    module.raises, module.approx, module.mark = _raises, _Approx, mark  # type: ignore[attr-defined]

    def refuse(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise refusal(f"pytest.{name} in the tests")

    module.__getattr__ = mark.__getattr__ = refuse  # type: ignore[method-assign]
    return module


def run_functions(functions: list[Callable[..., Any]], own: dict[str, Any]) -> bool:
    """Run test functions, and the test methods of plain classes called Test...; was there any?"""
    found = list(functions)
    for name, kind in own.items():
        plain = isinstance(kind, type) and not hasattr(kind, "run")
        if name.startswith("Test") and plain:
            methods = [key for key in vars(kind) if key.startswith("test")]
            found += [getattr(kind(), key) for key in methods]
    for function in found:
        for row in getattr(function, "__passhat_rows__", [{}]):
            _refuse_fixtures(function, row)
            function(**row)
    return bool(found)


def _refuse_fixtures(function: Callable[..., Any], row: dict[str, Any]) -> None:
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in row and parameter.default is inspect.Parameter.empty:
            raise NameError(f"the test {function.__name__} needs a fixture {name!r}")
