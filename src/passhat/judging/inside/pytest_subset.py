"""The part of pytest that hidden tests use: raises, approx, parametrize, fixtures; test classes."""

from __future__ import annotations

import inspect
import io
import math
import re
import sys
from collections import namedtuple
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Any


class _Raises:
    """``with pytest.raises(ValueError, match="..."):``"""

    def __init__(self, kinds: Any, match: str | None) -> None:
        self._kinds, self._match = kinds, match
        self.value: BaseException | None = None

    @property
    def type(self) -> Any:
        return type(self.value)

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

    def _close(self, mine: Any, expected: Any) -> bool:
        if isinstance(expected, dict):
            same = type(mine) is dict and mine.keys() == expected.keys()
            return same and all(self._close(mine[key], expected[key]) for key in expected)
        if isinstance(expected, (list, tuple)):
            same = type(mine) is type(expected) and len(mine) == len(expected)
            return same and all(map(self._close, mine, expected))
        if not isinstance(mine, (int, float)) or not isinstance(expected, (int, float)):
            return bool(mine == expected)
        return math.isclose(mine, expected, rel_tol=self._rel, abs_tol=self._abs)


def _parametrize(names: Any, values: Any, **_options: Any) -> Callable[[Any], Any]:
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

    def mark(function: Any) -> Any:
        rows = [dict(zip(keys, row if len(keys) > 1 else [row])) for row in values]  # noqa: B905
        earlier = getattr(function, "__passhat_rows__", [{}])
        function.__passhat_rows__ = [{**old, **new} for old in earlier for new in rows]
        return function

    return mark


def _fixture(function: Any = None, **_options: Any) -> Any:
    if function is None:
        return _fixture
    function.__passhat_fixture__ = True
    return function


def _fail(reason: str = "", **_options: Any) -> None:
    raise AssertionError(reason)


def pytest_module(refusal: type[BaseException]) -> ModuleType:
    """A module ``pytest`` with the supported names; any other name stops the judgement."""
    module, mark = ModuleType("pytest"), ModuleType("pytest.mark")
    mark.parametrize = _parametrize  # type: ignore[attr-defined]
    names = {"raises": _raises, "approx": _Approx, "mark": mark, "fail": _fail}
    module.__dict__.update(names, fixture=_fixture)

    def refuse(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise refusal(f"pytest.{name} in the tests")

    module.__getattr__ = mark.__getattr__ = refuse  # type: ignore[method-assign]
    return module


# -- fixtures -------------------------------------------------------------------------------------

_Captured = namedtuple("_Captured", "out err")


class _Capsys:
    def __init__(self, stack: ExitStack) -> None:
        self._kept = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        stack.callback(self._restore)

    def _restore(self) -> None:
        sys.stdout, sys.stderr = self._kept

    def readouterr(self) -> Any:
        streams: Any = (sys.stdout, sys.stderr)
        texts = [stream.getvalue() for stream in streams]
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        return _Captured(*texts)


class _Monkeypatch:
    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def setattr(self, target: Any, name: Any, *value: Any, raising: bool = True) -> None:
        if isinstance(target, str):
            module, _, last = target.rpartition(".")
            target, name, value = __import__(module, fromlist=["_"]), last, (name,)
        if raising or hasattr(target, name):
            self._stack.callback(setattr, target, name, getattr(target, name))
        else:
            self._stack.callback(delattr, target, name)
        setattr(target, name, *value)

    def setitem(self, target: Any, key: Any, value: Any) -> None:
        undo = (target.__setitem__, key, target[key]) if key in target else (target.pop, key)
        self._stack.callback(*undo)
        target[key] = value

    def setenv(self, name: str, value: str) -> None:
        import os

        self.setitem(os.environ, name, value)

    def delenv(self, name: str, raising: bool = True) -> None:
        import os

        if raising or name in os.environ:
            self._stack.callback(os.environ.__setitem__, name, os.environ.pop(name))


def _tmp_path(stack: ExitStack) -> Any:
    import pathlib
    import tempfile

    return pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))


FIXTURES: dict[str, Callable[[ExitStack], Any]] = {
    "capsys": _Capsys,
    "monkeypatch": _Monkeypatch,
    "tmp_path": _tmp_path,
}
"""Fixtures of pytest's own, by name."""


def _value(name: str, definitions: dict[str, Any], stack: ExitStack, values: dict[str, Any]) -> Any:
    if name in values:
        return values[name]
    function = definitions.get(name)
    if getattr(function, "__passhat_fixture__", False):
        assert function is not None
        parameters = inspect.signature(function).parameters
        values[name] = function(
            **{key: _value(key, definitions, stack, values) for key in parameters}
        )
        if inspect.isgenerator(values[name]):
            steps = values[name]
            values[name] = next(steps)
            stack.callback(next, steps, None)
    elif name in FIXTURES:
        values[name] = FIXTURES[name](stack)
    else:
        raise NameError(f"the tests need a fixture {name!r}")
    return values[name]


# -- running --------------------------------------------------------------------------------------


def run_functions(functions: list[Callable[..., Any]], definitions: dict[str, Any]) -> None:
    """Run test functions, and the test methods of plain classes called Test..."""
    tests = [(function, None) for function in functions]
    for name, kind in definitions.items():
        plain = isinstance(kind, type) and not hasattr(kind, "run")
        if name.startswith("Test") and plain:
            for key in [key for key in vars(kind) if key.startswith("test")]:
                instance = kind()
                tests.append((getattr(instance, key), instance))
    for function, instance in tests:
        for row in getattr(function, "__passhat_rows__", [{}]):
            _run(function, instance, row, definitions)


def _run(
    function: Callable[..., Any], instance: Any, row: dict[str, Any], definitions: Any
) -> None:
    with ExitStack() as stack:
        values = dict(row)
        for name in ("setup_method", "teardown_method"):
            step = getattr(instance, name, None)
            if step is not None:
                arguments = (function,) if inspect.signature(step).parameters else ()
                if name == "setup_method":
                    step(*arguments)
                else:
                    stack.callback(step, *arguments)
        for name, parameter in inspect.signature(function).parameters.items():
            if name not in values and parameter.default is inspect.Parameter.empty:
                _value(name, definitions, stack, values)
        parameters = inspect.signature(function).parameters
        given = {name: value for name, value in values.items() if name in parameters}
        assert function(**given) is not False, f"{function.__name__} returns False"
