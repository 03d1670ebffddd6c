"""Options that several commands share, and how their text is read."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from passhat._display import visible
from passhat.cli.shared.commands import setting
from passhat.cli.shared.corrections import complete_hint
from passhat.cli.shared.exits import ExitCode, hint_text

if TYPE_CHECKING:
    from passhat.readers import Needs, Reading
    from passhat.stats.outcomes import Run
    from passhat.stats.terms import OptionName

F = TypeVar("F", bound=Callable[..., Any])

_MOST_LOSSES = 20


class KList(click.ParamType[tuple[int, ...]]):
    """``1,2,4`` or ``1-4`` or both: ``1-4,8``."""

    name = "LIST"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        ks: list[int] = []
        for part in str(value).split(","):
            match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
            if match is None:
                self.fail(f"{part.strip()!r} is not a k; write 1,2,4 or 1-4.", param, ctx)
            low, high = int(match[1]), int(match[2] or match[1])
            if not 1 <= low <= high <= low + 10_000:
                self.fail(f"{part.strip()!r}: k starts at 1 and ranges go upwards.", param, ctx)
            ks.extend(range(low, high + 1))
        return tuple(sorted(set(ks)))


def column_map(
    _ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> tuple[dict[str, str], str | None]:
    """Read ``model=llm,task=question`` and the name of a TOML file; the option may be repeated."""
    columns = {}
    files = [
        value
        for value in values
        if "=" not in value and (value.endswith(".toml") or Path(value).is_file())
    ]
    if len(files) > 1:
        raise click.BadParameter(f"{' and '.join(files)}: only one file can be used.", param=param)
    words = (value for value in values if value not in files)
    for pair in (pair for word in words for pair in re.findall(r'(?:[^,"]|"[^"]*"|")+', word)):
        word, sign, column = pair.partition("=")
        if not sign or not word.strip() or not column.strip():
            raise click.BadParameter(
                f"{pair!r} should read NAME=COLUMN, as in model=llm, or name a .toml file.",
                param=param,
            )
        name = column.strip()
        is_quoted = "," in name and re.fullmatch(r'"[^"]*"', name) is not None
        columns[word.strip()] = name[1:-1] if is_quoted else name
    return columns, next(iter(files), None)


def sources_argument(function: F) -> F:
    """SOURCE..., at least one."""
    return click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)(function)


def sources_or_latest_argument(function: F) -> F:
    """SOURCE..., or the newest run of the store."""
    return click.argument("sources", metavar="[SOURCE...]", nargs=-1)(function)


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """The user's options for reading sources, as a single object."""

    columns: Mapping[str, str]
    mapping: str | None = None
    join: bool = False
    join_by: str | None = None
    agent: str | None = None
    scorer: str | None = None
    pass_at: float | None = None
    score_range: str | None = None
    passes: str | None = None
    records: str | None = None
    trials: str | None = None
    max_unpacked: int | None = None
    one_by_one: bool = False

    @property
    def needs_export(self) -> bool:
        """Whether an option is set that only passhat read has: others need what it writes."""
        others = [name for name in _READING_OPTIONS if name not in _DAILY]
        return any(getattr(self, name) not in (None, False) for name in others)

    def read(
        self,
        sources: str | Sequence[str],
        labels: Iterable[str | None] = (),
        needs: Needs | None = None,
    ) -> list[Run]:
        """All runs in the sources; ``labels`` are columns to keep as labels of the tasks."""
        from passhat.readers import read_all

        reading = read_all(sources, **self.options(labels, needs))
        self.note_refused(reading)
        return list(reading.runs)

    def note_refused(self, reading: Reading) -> None:
        """Print which of several sources could not be read; the command then ends with 4."""
        for name, why in reading.refused:
            click.echo(visible(f"passhat: {name}: {why}"), err=True)
        if reading.refused:
            click.get_current_context().meta[_REFUSED] = True

    def options(
        self, labels: Iterable[str | None] = (), needs: Needs | None = None
    ) -> dict[str, Any]:
        """The keyword arguments of ``passhat.read``."""
        from passhat.readers import Needs

        names = [name for name in labels if name is not None]
        options = {name: getattr(self, name) for name in _READING_OPTIONS}
        del options["one_by_one"]
        options |= {
            "labels": names,
            "mapping": self.mapping,
            "needs": replace(needs or Needs(), one_by_one=self.one_by_one),
        }
        return options | {"store": _store_place()}

    def read_one(
        self,
        source: str,
        name: str | None,
        option: str = "--run",
        needs: Needs | None = None,
        labels: Iterable[str | None] = (),
    ) -> Run:
        """The run called ``name``, or the only one there is, where a command is about one."""
        from passhat._display import some
        from passhat.errors import InvalidValue
        from passhat.store import without_password

        runs = self.read(source, labels, needs=needs)
        matches = runs if name is None else runs_called(runs, name)
        if len(matches) == 1:
            return matches[0]
        problem = f"there are {len(runs)} runs"
        if name is not None:
            problem = f"{len(matches)} runs are called {name!r}" if matches else _no_run(name)
        advice = f"Choose one with {option}: {some([run.name for run in runs], 20)}"
        names = (word for run in runs for word in (run.name, run.id) if word)
        only = next((word for word in names if len(runs_called(runs, word)) == 1), None)
        if only is not None:
            advice += f"\nAs in: {this_command(option, only)}"
        raise InvalidValue(f"{without_password(source)}: {problem}.", hint=advice)


def _store_place() -> str:
    """The store in which run ids are looked up, the same as for every command with --store."""
    from passhat.cli.shared.configuring import read_store_setting

    return os.environ.get("PASSHAT_STORE") or read_store_setting()


def sources_or_latest(sources: Sequence[str]) -> tuple[str, ...]:
    """The sources that were named, or the newest run of the store where there is one."""
    named = sources_or_store(sources)
    return named if sources else ("latest",)


def sources_or_store(sources: Sequence[str], store_path: str | None = None) -> tuple[str, ...]:
    """The sources that were named, or the store where there is one."""
    from passhat.errors import InvalidValue
    from passhat.store import is_address, without_password

    if sources:
        return tuple(sources)
    store = store_path or _store_place()
    if not is_address(store) and not Path(store).is_file():
        raise InvalidValue(
            f"no SOURCE was given, and there is no store at {without_password(store)}.",
            hint="passhat run makes one; or name a log or a table, as in "
            f"{click.get_current_context().command_path} log.csv",
        )
    return (store,)


_DAILY = ("columns", "join")
"""Options for reading that every command has; passhat read has all of them."""
_REFUSED = "passhat.refused"
"""Set in click's context when one of several sources could not be read."""


class Share(click.ParamType[float]):
    """A number such as ``0.05``, or the same as ``5%``, as rules of a gate take it."""

    name = "SHARE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            return float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            self.fail(f"{value!r} is not a number; write 0.05 or 5%.", param, ctx)


class Size(click.ParamType[int]):
    """A number of bytes: ``4GB``, ``500MB``, ``1000000``."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]?)B?\s*", str(value), re.IGNORECASE)
        if match is None:
            self.fail(f"{value!r} is not a size; write 4GB or 500MB.", param, ctx)
        return int(float(match[1]) * 1000 ** " KMGT".index(match[2].upper() or " "))


def term_options(
    *names: OptionName,
    help: Mapping[OptionName, str] = MappingProxyType({}),  # noqa: A002
) -> Callable[[F], F]:
    """The options of :class:`passhat.stats.terms.Terms`; the command receives them as ``terms``.

    ``help`` replaces the help text of single options.
    """
    texts = {**_TERM_HELP, **help}

    def decorate(function: F) -> F:
        @wraps(function)
        def with_terms(*arguments: Any, **options: Any) -> Any:
            from passhat.stats.terms import Terms

            terms = Terms.from_options({name: options.pop(name) for name in names})
            return function(*arguments, terms=terms, **options)

        for name in reversed(names):
            flags = f"--{name.replace('_', '-')}"
            with_terms = click.option(flags, name, help=texts[name], **_TERM_KINDS[name])(
                with_terms
            )
        return cast("F", with_terms)

    return decorate


_TERM_KINDS: Mapping[OptionName, dict[str, Any]] = MappingProxyType(
    {
        "missing": {
            "type": click.Choice(["bound", "fail", "exclude"]),
            "default": "bound",
            "show_default": True,
        },
        "level": {"type": float, "default": 0.95, "show_default": True},
        "drop_short": {"is_flag": True},
        "cluster": {"metavar": "COLUMN"},
        "about": {
            "type": click.Choice(["new-tasks", "these-tasks", "re-runs"]),
            "metavar": "[new-tasks|these-tasks]",
        },
        "allow": {"is_flag": True},
    }
)
_TERM_HELP: Mapping[OptionName, str] = MappingProxyType(
    {
        "missing": "What attempts without a verdict count as.",
        "level": "Confidence of intervals, as in 0.9.",
        "drop_short": "Leave out tasks with fewer than k attempts, and say so, rather than refuse.",
        "cluster": "Tasks that share a value there are not independent, as in --cluster template.",
        "about": "The tasks it is about: tasks like these, or exactly these again.",
        "allow": "Compare although the protocols differ; list how.",
    }
)


_READING_OPTIONS = {
    "columns": click.option(
        "--map",
        "--mapping",
        "columns",
        multiple=True,
        callback=column_map,
        metavar="NAME=FIELD,...",
        help="What a file calls its columns or fields, as in model=llm,task=meta.id; or a TOML "
        "file, as read --guess writes it.",
    ),
    "join": click.option(
        "--join",
        is_flag=True,
        help="Make one run of the same agent's files: k files with one attempt each become k.",
    ),
    "join_by": click.option(
        "--join-by",
        type=click.Choice(["agent", "folder", "column"]),
        help="What makes files one agent: its stated name, the folder, or the model column.",
    ),
    "agent": click.option(
        "--agent",
        metavar="NAME",
        help="The agent of all sources, where they do not state it, as in --agent gpt-4.1.",
    ),
    "scorer": click.option(
        "--scorer",
        metavar="NAME",
        help="Whose verdicts count, where a log holds several judges', as in --scorer exact.",
    ),
    "pass_at": click.option(
        "--pass-at",
        type=float,
        metavar="REWARD",
        help="The reward from which an attempt passes, as in 0.5.  [default: 1.0]",
    ),
    "score_range": click.option(
        "--score-range",
        metavar="LOW..HIGH",
        help="The lowest and highest score, as in 1..5; scores are kept on 0 to 1.",
    ),
    "passes": click.option(
        "--pass", "passes", metavar="RULE", help="What passes, as in 'score >= 0.5'."
    ),
    "records": click.option(
        "--records",
        metavar="PATH",
        help="Where the records are in a JSON or XML file, as in 'results[*]'.",
    ),
    "trials": click.option(
        "--trials",
        metavar="GLOB",
        help="Fields that hold one attempt each (wide to long), as in 'run_*'.",
    ),
    "max_unpacked": click.option(
        "--max-unpacked",
        type=Size(),
        metavar="SIZE",
        help="How much a compressed file may unpack to, as in 4GB.  [default: 50 x its size]",
    ),
    "one_by_one": click.option(
        "--one-by-one",
        is_flag=True,
        help="Read every attempt of a large store or Parquet file, rather than count them.",
    ),
}


def source_options(function: F) -> F:
    """The daily options for reading; the command receives them as one argument, ``how``."""
    return _reading_options(_DAILY)(function)


def all_source_options(function: F) -> F:
    """Every option for reading, for ``passhat read``; received as ``how``."""
    return _reading_options(tuple(_READING_OPTIONS))(function)


def _reading_options(names: Sequence[str]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        @wraps(function)
        def with_how(*arguments: Any, **options: Any) -> Any:
            columns, mapping = options.pop("columns")
            others = {name: options.pop(name) for name in names if name != "columns"}
            how = ReadingOptions(columns, mapping, **others)
            return function(*arguments, how=how, **options)

        for name in reversed(names):
            with_how = _READING_OPTIONS[name](with_how)
        return cast("F", with_how)

    return decorate


def suite_settings(function: Callable[..., Any]) -> Callable[..., Any]:
    """Settings that only some suites use, handed over as one ``Settings`` called ``asked``."""

    @setting(
        "tau2",
        envvar="PASSHAT_TAU2",
        help="The checkout of tau2-bench, for tau2 suites, as in tau2=../tau2-bench.",
    )
    @setting(
        "tau2_python",
        envvar="PASSHAT_TAU2_PYTHON",
        help="The interpreter that tau2 is installed in; its .venv by default.",
    )
    @setting("scorer", help="The scorer that decides, for inspect tasks, as in scorer=match.")
    @wraps(function)
    def with_settings(
        *arguments: Any,
        tau2: str | None,
        tau2_python: str | None,
        scorer: str | None,
        **options: Any,
    ) -> Any:
        from passhat.suites.base import Settings

        return function(*arguments, asked=Settings(tau2, tau2_python, scorer=scorer), **options)

    return cast("Callable[..., Any]", with_settings)


def look_at_attempts(words: Iterable[str]) -> bool:
    """Whether a metric among these looks at single attempts: their order, or their scores."""
    from passhat.errors import PasshatError
    from passhat.stats.estimate import metric
    from passhat.stats.estimate.metrics import OrderedMetric, ScoreMetric

    for word in words:
        with suppress(PasshatError):  # an invalid metric is refused where it is used
            if isinstance(metric(word), OrderedMetric | ScoreMetric):
                return True
    return False


def needs_of_page(words: Iterable[str], *, page: bool, transcripts: bool | None) -> Needs:
    """Data that a report with details reads: single attempts, unless there are very many."""
    from passhat.readers import Needs
    from passhat.readers.base import PAGE_ATTEMPTS

    order = look_at_attempts(words)
    up_to = None if order or transcripts else PAGE_ATTEMPTS
    return Needs(attempts=page or order, spread=True, scores=True, attempts_up_to=up_to)


def choose_runs(runs: Sequence[Run], names: Sequence[str]) -> list[Run]:
    """The runs by these names and in this order, or all of them."""
    from passhat.errors import InvalidValue

    chosen: dict[str, Run] = {}
    for name in names:
        matches = runs_called(runs, name)
        if not matches:
            names_text = ", ".join([run.name for run in runs][:20])
            raise InvalidValue(f"{_no_run(name)}.", hint=f"There are: {names_text}")
        chosen |= {run.name: run for run in matches}
    return list(chosen.values()) or list(runs)


def runs_called(runs: Sequence[Run], name: str) -> list[Run]:
    """The runs by a name, an id, the beginning of an id, or as a report names them."""
    from passhat.reporting.view import run_labels, short_labels, strip_kind

    by_id = [run for run in runs if name and run.id.startswith(name)]
    if found := [run for run in runs if run.name == name] or by_id:
        return found
    shown = zip(runs, run_labels(runs), short_labels(runs), strict=True)
    found = [run for run, *labels in shown if name in labels]
    # A screen of some runs names the agent alone.
    return found or [run for run in runs if name in (run.agent, strip_kind(run.agent))]


def _no_run(name: str) -> str:
    return f"no run is called {name!r}"


def full_option(function: F) -> F:
    """Everything instead of one screen."""
    return click.option(
        "--full", is_flag=True, help="Print every table and note instead of one screen."
    )(function)


def transcripts_option(function: F) -> F:
    """Conversations in an HTML file, or not."""
    return click.option(
        "--with-transcripts/--without-transcripts",
        "transcripts",
        default=None,
        help="Put the conversations of stored runs into the HTML.  [default: when below 1 MB]",
    )(function)


def this_command(*more: str) -> str:
    """The command line as it was given, without passwords; ``more`` is an option it then has."""
    import re

    from passhat.cli.shared.corrections import join_command, with_option
    from passhat.store import without_password

    arguments = click.get_current_context().find_root().obj
    if not isinstance(arguments, tuple):
        return "passhat"
    # A word is an address, or an option joined to one.
    parts = [re.split(r"(?=postgres(?:ql)?://)", word, maxsplit=1) for word in arguments]
    words = ["".join(map(without_password, part)) for part in parts]
    return join_command(["passhat", *with_option(words, *more)])


def exit_code(runs: Iterable[Run]) -> ExitCode:
    """OK, or INCOMPLETE with a message when part of a source could not be read."""
    losses = {id(run.tally): (run.source, run.losses) for run in runs if run.losses}
    for source, of_source in losses.values():
        for loss in of_source[:_MOST_LOSSES]:
            click.echo(visible(f"passhat: {source}, {loss}"), err=True)
        if len(of_source) > _MOST_LOSSES:
            click.echo(f"  and {len(of_source) - _MOST_LOSSES:,} more", err=True)
        for hint in dict.fromkeys(hint_text(loss) for loss in of_source if loss.hint):
            for line in (hint, *_command_lines(hint)):
                click.echo(visible(f"  {line}"), err=True)
    context = click.get_current_context(silent=True)
    has_refusal = context is not None and context.meta.get(_REFUSED)
    return ExitCode.INCOMPLETE if losses or has_refusal else ExitCode.OK


def _command_lines(hint: str) -> list[str]:
    """Command lines for the options of a hint that this command does not have."""
    context = click.get_current_context(silent=True)
    root = context and context.find_root()
    if root is None or not isinstance(root.command, click.Group):
        return []
    return complete_hint(root.command, root.obj or (), hint)


def forget_standard_output() -> None:
    """The reader of our output (head, less) has gone; Python would complain when it flushes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
