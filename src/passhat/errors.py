"""Everything passhat raises on purpose.

A person's mistake never ends in a traceback: the command line prints the message of any of
these and exits with the code beside it.

    PasshatError                      base of all                                    exit 2
    ├── MetricError                   a metric word that is not in the grammar
    ├── RuleError                     a gate's rule that cannot be read
    ├── InvalidCounts (ValueError)    n, c or k that cannot be counts of attempts
    ├── InvalidValue (ValueError)     any other argument outside its allowed values
    ├── TooFewAttempts                k is larger than the attempts a task has
    ├── OrderUnknown                  an ordered metric on outcomes without an order
    ├── UnequalAttempts               a metric that needs the same n on every task
    ├── NotComparable                 two runs that do not answer the same question
    ├── RunStopped                    a run that cannot go on: a key is refused, a model unknown
    ├── SandboxUnavailable            generated code cannot be run safely on this machine
    ├── EngineUnavailable             a cluster that cannot be reached or cannot do the work
    ├── ReadError                     a file that cannot be read in its format
    │   ├── UnknownFormat             no reader recognizes the file
    │   ├── NoRows                    a table without a row, or an empty file
    │   ├── StoreConflict             two stores that hold different things under one name
    │   └── StoreUnavailable          a store that is locked, full or away for the moment
    └── MissingExtra                  an optional package is not installed

Each message says what was expected, what came, where, and what to do. The last part is kept in
``hint``, so that a program can show it apart. A :class:`Hint` names options as data: Python reads
``margin=0.05``, and the command line words its own flags.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "EngineUnavailable",
    "Hint",
    "InvalidCounts",
    "InvalidValue",
    "MetricError",
    "MissingExtra",
    "NoRows",
    "NotComparable",
    "OrderUnknown",
    "PasshatError",
    "ReadError",
    "RuleError",
    "RunStopped",
    "SandboxUnavailable",
    "StoreConflict",
    "StoreUnavailable",
    "TooFewAttempts",
    "UnequalAttempts",
    "UnknownFormat",
    "shorten",
]


def _python_option(name: str, value: object) -> str:
    """An option as a Python call writes it; a value in capitals is a placeholder."""
    if value is None:
        return name
    placeholder = isinstance(value, str) and value.isidentifier() and value.isupper()
    return f"{name}={value}" if placeholder else f"{name}={value!r}"


class _Entries(str):
    """The words of a mapping; an entry alone by its key."""

    words: dict[str, str]

    def __getitem__(self, key: Any) -> str:
        return self.words[key]


def _word_options(options: dict[str, Any], word: Callable[[str, Any], str]) -> dict[str, str]:
    words: dict[str, str] = {}
    for name, value in options.items():
        words[name] = word(name, value)
        if isinstance(value, dict):
            entries = _Entries(words[name])
            entries.words = {key: word(name, {key: value[key]}) for key in value}
            words[name] = entries
    return words


class Hint(str):
    """Advice that names options: their words for Python, and the data for other words.

    Examples
    --------
    >>> hint = Hint("For example {margin}, or leave out {cluster}.", margin=0.05, cluster=None)
    >>> print(hint)
    For example margin=0.05, or leave out cluster.
    >>> hint.reword(lambda name, value: f"--{name}")
    'For example --margin, or leave out --cluster.'

    One entry of a mapping is named by its key:

    >>> print(Hint("{columns[n]} or {columns[c]}", columns={"n": "COLUMN", "c": "COLUMN"}))
    columns={'n': 'COLUMN'} or columns={'c': 'COLUMN'}
    """

    template: str
    options: dict[str, Any]

    def __new__(cls, template: str, /, **options: Any) -> Hint:
        hint = super().__new__(cls, template.format(**_word_options(options, _python_option)))
        hint.template = template
        hint.options = options
        return hint

    def reword(self, word_option: Callable[[str, Any], str]) -> str:
        """The advice with every option worded by ``word_option(name, value)``."""
        return self.template.format(**_word_options(self.options, word_option))

    def then(self, rest: str) -> Hint:
        """This advice, then other advice with options of its own."""
        if isinstance(rest, Hint):
            return Hint(self.template + rest.template, **self.options, **rest.options)
        return Hint(self.template + rest.replace("{", "{{").replace("}", "}}"), **self.options)

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.template,), self.options


class PasshatError(Exception):
    """Base of every error that passhat raises on purpose."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} {self.hint}"


class MetricError(PasshatError):
    """The word is not a metric; the hint names the nearest metric."""


class RuleError(PasshatError):
    """The text is not a rule such as ``pass^4 >= 0.6``; the hint suggests a correction."""


class InvalidCounts(PasshatError, ValueError):
    """n, c or k are not whole numbers with n >= 1, 0 <= c <= n, 1 <= k <= n."""


class InvalidValue(PasshatError, ValueError):
    """An argument is outside its allowed range or set of values."""


class TooFewAttempts(PasshatError):
    """A metric at k was requested for tasks with fewer than k attempts.

    Attributes
    ----------
    k : int
        The requested k.
    largest_k : int
        The largest k that every task supports.
    tasks : tuple of str
        The tasks that are short, in the order of the outcomes.
    """

    def __init__(self, message: str, *, k: int, largest_k: int, tasks: Sequence[str], hint: str):
        super().__init__(message, hint=hint)
        self.k = k
        self.largest_k = largest_k
        self.tasks = tuple(tasks)


class OrderUnknown(PasshatError):
    """first@k, first^k and window^w need to know which attempt came first."""


class UnequalAttempts(PasshatError):
    """window^w means something different for every n, so all tasks need the same n."""


class NotComparable(PasshatError):
    """Two runs that share no task, follow different protocols or answer different metrics.

    Attributes
    ----------
    differences : tuple of str
        The protocol fields that differ, or ``metric``; empty when no task is shared.
    """

    def __init__(self, message: str, *, hint: str, differences: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint)
        self.differences = tuple(differences)


class RunStopped(PasshatError):
    """No further attempt could succeed; finished attempts are kept, the rest were not made."""


class SandboxUnavailable(PasshatError):
    """No isolation for hostile programs on this machine; the hint names a way to get it.

    Raised before anything is run, so that no paid attempt is lost to it.
    """


class EngineUnavailable(PasshatError):
    """A cluster cannot be reached, or has no worker that can do the work."""


class ReadError(PasshatError):
    """A source has unexpected content; names the file and, where known, the line."""

    def __init__(
        self, message: str, *, source: str, line: int | None = None, hint: str | None = None
    ) -> None:
        where = source if line is None else f"{source}, line {line}"
        super().__init__(f"{where}: {message}", hint=hint)
        self.source = source
        self.line = line
        self.reason = message


class StoreConflict(ReadError):
    """Two stores hold different things under one name; nothing is overwritten."""


class StoreUnavailable(ReadError):
    """A store that cannot be written for the moment; trying again later may well work."""


class UnknownFormat(ReadError):
    """No reader recognizes the content of the file."""


class NoRows(ReadError):
    """The file has no rows; a growing file has none yet."""


class MissingExtra(PasshatError):
    """A feature needs an optional package; the hint is the command that installs it."""

    def __init__(self, what: str, *, extra: str) -> None:
        super().__init__(
            f"{what} needs the optional packages of the extra [{extra}].",
            hint=f"Install them with: pip install 'passhat[{extra}]'",
        )
        self.extra = extra


def shorten(value: object, width: int = 40) -> str:
    """Show a value in an error message without flooding the screen."""
    text = value if isinstance(value, str) else repr(value)
    printable = "".join(ch if ch.isprintable() else "�" for ch in text[: width + 1])
    quoted = f"'{printable[:width]}'" if isinstance(value, str) else printable[:width]
    return quoted if len(text) <= width else f"{quoted}… ({len(text):,} characters)"
