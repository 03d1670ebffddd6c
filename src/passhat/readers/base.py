"""The contract of a reader: its options, its base class, and the builder that makes runs.

A reader hands over one attempt at a time, and at the end the facts that the log states of each run.
The builder keeps columns, not objects, counts what was read, skipped and lost, and sees to it that
no attempt counts twice.
"""

from __future__ import annotations

import difflib
import inspect
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, ClassVar

from passhat.errors import InvalidValue, PasshatError, ReadError, shorten
from passhat.protocol import Protocol
from passhat.readers.parsing import LONGEST_DETAIL, conversation_text, number_or_none, with_answers
from passhat.readers.sources import Source
from passhat.stats.outcomes import Loss, Outcomes, Run, ScoreRange, Tally
from passhat.stats.outcomes.columns import SLICE_PREFIX, ColumnMap
from passhat.stats.outcomes.gathering import AttemptGatherer, Gathered

GROUP = "passhat.readers"
"""The entry-point group; passhat's own readers are registered in it, too."""

FEW_ATTEMPTS = 20_000
"""Runs up to this size are always read attempt by attempt: that costs a few megabytes."""
MOST_ATTEMPTS = 1_000_000
"""Larger runs are counted by the database unless ``one_by_one`` is set: a million attempts take
about a gigabyte of memory."""
PAGE_ATTEMPTS = 100_000
"""Runs up to this size show single attempts on an HTML page: each adds 30 bytes to the page and
a kilobyte of memory while the page is built."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Parts of the data that a command uses, so that nothing else is read from a large source.

    Numbers that follow from how many attempts of each task passed need none of these.

    Attributes
    ----------
    attempts : bool
        Single attempts. Above a million they are counted, unless ``one_by_one`` is set.
    attempts_up_to : int, optional
        Single attempts only in runs up to this size, where that is less than a million.
    measures : bool
        Total seconds, steps, tokens and cost.
    spread : bool
        The distribution of these measures over attempts. Not read beyond a million attempts.
    answers : bool
        Whether attempts at a task gave the identical answer.
    scores : bool
        Graded results of attempts, where there are any. Not read beyond a million attempts.
    details : bool
        The judge's words, retries and answers of single attempts in a store.
    one_by_one : bool
        Read every attempt, in spite of the memory that takes.
    conversations : bool
        What each attempt said, as ``extras["conversation"]``: JSON of (role, text) pairs.
    streamed : bool
        Attempts of a store are not kept, but read again by ``Run.stream``.
    growing : bool
        The file is still being written: the last line counts once it has ended.
    """

    attempts: bool = True
    measures: bool = True
    answers: bool = True
    one_by_one: bool = False
    attempts_up_to: int | None = None
    spread: bool = False
    scores: bool = False
    growing: bool = False
    details: bool = False
    conversations: bool = False
    streamed: bool = False


COUNTS_ONLY = Needs(attempts=False, measures=False, answers=False)


def is_counted(attempts: int, needs: Needs) -> bool:
    """Whether a run of this size is counted by the database rather than read."""
    if needs.one_by_one or attempts <= FEW_ATTEMPTS:
        return False
    limit = min(needs.attempts_up_to or MOST_ATTEMPTS, MOST_ATTEMPTS)
    return not needs.attempts or attempts > limit


def note_counted(attempts: int) -> str:
    """The note on a run that was counted: its report omits figures on single attempts."""
    note = f"{attempts:,} attempts were counted in the database, not read one by one"
    left_out = (
        f" (more than {MOST_ATTEMPTS:,}): first@k, first^k and window^w, which need their order, "
        "mean, best@k and worst@k, which need their scores, the spread of what attempts took, and "
        "notes on identical answers are left out; passhat read --one-by-one reads them all"
    )
    return note if attempts <= MOST_ATTEMPTS else note + left_out


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a source, as the user stated it.

    Attributes
    ----------
    columns : mapping
        passhat's name of a column to the table's, as in ``{"model": "llm"}``.
    pass_at : float, optional
        The reward from which an attempt passes; ``None`` when not stated.
    scorer : str, optional
        The judge whose verdicts count, where a log holds those of several; ``SUITE=SCORER`` with
        commas between them chooses one per suite.
    labels : tuple of str
        Columns to keep as labels of the tasks.
    needs : Needs
        The parts of the data that are needed.
    agent : str, optional
        The agent of all runs; overrides the name in a source or in its file name.
    records, trials, passes, where : str, optional
        Where the records are, which fields hold one attempt each, what passes, which records count.
    mapping : path, optional
        A mapping as TOML.
    score_range : ScoreRange, optional
        The lowest and highest score of the source, where they are not 0 and 1.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    pass_at: float | None = None
    scorer: str | None = None
    labels: tuple[str, ...] = ()
    needs: Needs = field(default_factory=Needs)
    agent: str | None = None
    records: str | None = None
    trials: str | None = None
    passes: str | None = None
    mapping: str | None = None
    score_range: ScoreRange | None = None
    where: str | None = None

    @property
    def threshold(self) -> float:
        """The score on [0, 1] from which an attempt passes, or the reward without a range."""
        if self.pass_at is None:
            return 1.0
        bounds = self.score_range
        return (
            self.pass_at
            if bounds is None
            else (self.pass_at - bounds.low) / (bounds.high - bounds.low)
        )

    def scorer_for(self, suite: object) -> str | None:
        """The scorer for a suite: ``scorer`` is one for all, or SUITE=SCORER pairs with commas."""
        if self.scorer is None or "=" not in self.scorer:
            return self.scorer
        pairs = (pair.partition("=") for pair in self.scorer.split(","))
        return next((name for word, _, name in pairs if word.strip() == str(suite)), None)

    @property
    def is_stated(self) -> bool:
        """Whether the user states anything about columns, fields, judges or scores."""
        values = (self.pass_at, self.score_range, self.scorer)
        return bool(self.columns or self.is_mapped or any(v is not None for v in values))

    @property
    def is_mapped(self) -> bool:
        """Whether the user states how the records of a file are to be read."""
        options = (self.records, self.trials, self.passes, self.mapping, self.where)
        is_single = self.columns.get("task") == "@file"
        return is_single or any(option is not None for option in options)


class NotResults(ReadError):
    """A file that is known to hold no verdicts; in a folder it is passed over."""


class Reader:
    """Base class of all readers: one file format each.

    A reader needs a ``name`` and the two methods below; everything else has a default. Register
    the class in the entry-point group ``passhat.readers``.
    """

    name: ClassVar[str] = ""
    """The format's name, as ``passhat read`` prints it."""

    general: ClassVar[bool] = False
    """Whether this reader takes nearly any file, and so is asked after all others."""

    repeats_in_siblings: ClassVar[bool] = False
    """Whether the harness keeps k repeats as k sibling folders, so that they join by themselves."""

    has_scorers: ClassVar[bool] = False
    """Whether a log may hold the verdicts of several judges, so that ``--scorer`` chooses one."""

    def recognizes(self, source: Source) -> bool:
        """Whether the content looks like this format.

        Look at ``source.head`` and ``source.outline``, never at the whole file, and not at the
        file's name: people rename files.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method recognizes(source)")

    def read(self, source: Source, options: ReadOptions) -> list[Run]:
        """All runs in the source.

        Raise ReadError with file and line where nothing can be read; a broken row is reported
        with ``LogBuilder.lose`` and the others are read.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method read(source, options)")

    def __init_subclass__(cls, **keywords: object) -> None:
        """Point out a public name that is nearly that of a hook, which would never be called."""
        super().__init_subclass__(**keywords)
        hooks = [name for name in vars(Reader) if not name.startswith("_")]
        for name in vars(cls):
            if name.startswith("_") or name in hooks:
                continue
            near = difflib.get_close_matches(name, hooks, n=1, cutoff=0.75)
            if near:
                raise TypeError(
                    f"{cls.__name__}.{name} is not a hook of a reader. Did you mean {near[0]!r}? "
                    f"The hooks are: {', '.join(hooks)}."
                )


def load_readers() -> list[Reader]:
    """Every installed reader, those that take nearly any file last."""
    readers = [reader for entry in _entries(tuple(sys.path)) for reader in _load_entry(entry)]
    return sorted(readers, key=lambda reader: reader.general)


def _load_entry(entry: EntryPoint) -> list[Reader]:
    """The reader that an entry point names, or those that its function returns."""
    try:
        target: Any = entry.load()
    except (ImportError, AttributeError, TypeError) as error:
        raise InvalidValue(
            f"the reader {entry.name!r} ({entry.value}) cannot be loaded: {error}",
            hint="Fix or uninstall the package that brings it.",
        ) from None
    if inspect.isclass(target) and issubclass(target, Reader):
        return [target()]
    readers: list[Reader] = [] if inspect.isclass(target) else list(target())
    if inspect.isclass(target) or not all(isinstance(reader, Reader) for reader in readers):
        raise InvalidValue(
            f"the reader {entry.name!r} ({entry.value}) is not a subclass of passhat's Reader.",
            hint="Write: from passhat.readers import Reader; class MyReader(Reader): ...",
        )
    return readers


@lru_cache(maxsize=1)
def _entries(_path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Entry points of readers, cached per search path: the scan takes longer than reading."""
    return tuple(sorted(entry_points(group=GROUP), key=lambda entry: entry.name))


_CHUNK_ROWS = 2_000
_LOSSES_KEPT = 1_000
"""A file of a million broken lines is described by the first thousand and a count."""
_NUMBERS = ("duration", "steps", "tokens", "cost", "score")
_EXTRAS = ("seed", "transcript", "source_id")
_TASK_TYPES = (str, int, float)  # a constant: a union would be made anew for every row


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts that a log states about a run as a whole.

    ``variant`` distinguishes it from the other runs of the same log (a suite, a prompt, a filter),
    unless it has a ``name``; ``says`` are numbers the log prints, ``counts`` how it is known to
    count; ``guessed`` is set when the agent is named after the file. ``decisions`` are choices of
    the reader that change a number, ``about`` holds the model, its version and its provider.
    """

    agent: str
    protocol: Protocol = field(default_factory=Protocol)
    variant: str = ""
    name: str = ""
    says: Mapping[str, float] = field(default_factory=dict)
    counts: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()
    origin: str = ""
    guessed: bool = False
    decisions: tuple[str, ...] = ()
    edited: str = ""
    started: str = ""
    about: Mapping[str, str] = field(default_factory=dict)


class LogBuilder:
    """Collects the attempts of a log.

    Parameters
    ----------
    source : Source
        The log.
    kind : str
        The recognized format, for a person.
    options : ReadOptions
        Options of the user.
    order : {"appearance", "trial"}
        Whether attempts are listed in their order, or each carries its number.
    slices : sequence of str
        Labels of tasks that the log has.
    extras : sequence of str
        Further columns of attempts that are kept as text.
    """

    def __init__(
        self,
        source: Source,
        kind: str,
        options: ReadOptions,
        *,
        order: str = "appearance",
        slices: Sequence[str] = (),
        extras: Sequence[str] = (),
    ) -> None:
        self.source = source
        self.kind = kind
        self.options = options
        self._numbered = order == "trial"
        self._slices = tuple(slices)
        self._labels: dict[tuple[str, str], tuple[str, ...]] = {}
        self._keys: dict[str, int] = {}
        # By run first: a pair of names per task would take twice the memory.
        self._seen: dict[str, dict[str, int]] = {}
        self._trials: dict[str, dict[str, set[str]]] = {}
        self._ids: set[tuple[str, str, str]] = set()
        self._read = self._absent = self._lost_rows = self._losses_more = self._repeats = 0
        self._skipped: Counter[str] = Counter()
        self._losses: list[Loss] = []
        self._names = ["model", "task", "trial", "success", "failure", "answer"]
        self._names += [*_NUMBERS, *(SLICE_PREFIX + name for name in slices)]
        # The reader's columns have passhat's own names: nothing is left to guess.
        columns = ColumnMap.resolve(self._names)
        extra_names = (*_EXTRAS, *extras, *("conversation",) * options.needs.conversations)
        self._gatherer = AttemptGatherer(
            columns, options.pass_at, extra_names, score_range=options.score_range
        )
        self._names += extra_names
        self._buffer: list[tuple[object, ...]] = []

    # -- taking ------------------------------------------------------------------------------

    def add(
        self,
        where: str,
        task: object,
        reward: object,
        *,
        run: str = "",
        trial: object = None,
        why: str = "",
        seconds: object = None,
        steps: object = None,
        tokens: object = None,
        cost: object = None,
        answer: object = None,
        seed: object = None,
        transcript: str = "",
        labels: Sequence[object] = (),
        absent: bool = False,
        source_id: object = None,
        score: object = None,
        extras: Sequence[object] = (),
        conversation: Iterable[tuple[str, str]] = (),
        expected: object = None,
    ) -> None:
        """Take one attempt; ``reward`` is a bool, a number, or ``None`` for missing.

        A row without a task, with a reward that is not a number, or with a trial seen before is
        lost. ``absent`` marks an attempt that was planned and has no row. ``source_id`` is the id
        that the source itself gave to the attempt: the same one again is the same attempt, and is
        skipped. ``score`` is the graded result beside a verdict; a graded reward needs none.
        ``conversation`` are (role, text) pairs as in :mod:`passhat.readers.parsing`, and
        ``expected`` is the right answer; both are only looked at where they are needed.
        """
        name = "" if task is None else str(task).strip()
        if not name or not isinstance(task, _TASK_TYPES):
            self.lose(where, "has no task id")
            return
        try:
            value = _reward(reward)
        except ValueError:
            self.lose(where, f"the reward should be a number, not {shorten(reward)}")
            return
        self._gatherer.has_rewards |= type(reward) in (int, float)
        own_id = "" if source_id is None else str(source_id)
        if own_id and (run, name, own_id) in self._ids:
            self.skip("the same attempt again, by its own id")
            return
        label = self._trial(run, name, trial)
        if label is None:
            self._repeats += 1
            self.lose(where, f"trial {trial} of task {shorten(name)} is listed twice")
            return
        if own_id:
            self._ids.add((run, name, own_id))
        if self._slices:
            # Per run: two suites in one log may use the same task ids for different tasks.
            labels = self._labels.setdefault((run, name), tuple(map(_label, labels)))
        self._read += not absent
        self._absent += absent
        key = self._keys.setdefault(run, len(self._keys))
        pairs = with_answers(conversation, answer, expected)
        talk = (conversation_text(pairs),) if self.options.needs.conversations else ()
        self._buffer.append(
            (
                *(key, name, label, value, why[:LONGEST_DETAIL], answer),
                *map(number_or_none, (seconds, steps, tokens, cost, score)),
                *labels,
                *("" if seed is None else str(seed), transcript, own_id),
                *map(_label, extras),
                *talk,
            )
        )
        if len(self._buffer) >= _CHUNK_ROWS:
            self._flush()

    def row(self, where: str) -> _Row:
        """A context in which any exception loses the row rather than the file."""
        return _Row(self, where)

    def skip(self, why: str, rows: int = 1) -> None:
        """Skip a row on purpose."""
        self._skipped[why] += rows

    def lose(self, where: str, what: str, rows: int = 1) -> None:
        """A row, or a part of the file, cannot be used."""
        if len(self._losses) < _LOSSES_KEPT:
            self._losses.append(Loss(where, what, rows))
        else:
            self._losses_more += 1
            self._lost_rows += rows

    def refuse_repeats(self) -> None:
        """Refuse a file with many attempts of the same task and number: something else differs."""
        total = self._read + self._repeats
        if 4 * self._repeats > total:
            raise ReadError(
                f"{self._repeats:,} of {total:,} attempts have the task and number of another one.",
                source=self.source.name,
                hint="State the field that tells them apart: as the model, the trial or the task.",
            )

    # -- giving ------------------------------------------------------------------------------

    def tally(self) -> Tally:
        """Counts of rows so far: read, skipped and lost."""
        losses = list(self._losses)
        if self._losses_more:
            losses.append(Loss("", f"{self._losses_more:,} more like these", self._lost_rows))
        skipped = MappingProxyType(dict(self._skipped))
        rows = self._read + sum(skipped.values()) + sum(loss.rows for loss in losses)
        return Tally(rows, self._read, skipped, tuple(losses), self._absent)

    def runs(self, facts: RunFacts | Callable[[str], RunFacts]) -> list[Run]:
        """One run per key that attempts were added under, in order of appearance."""
        facts_of = facts if callable(facts) else lambda _: facts
        self._flush()
        tally = self.tally()
        if self._gatherer.count == 0:
            raise self._empty(tally)
        try:
            gathered_runs = self._gatherer.runs()
        except PasshatError as error:
            raise ReadError(error.message, source=self.source.name, hint=error.hint) from None
        keys = list(self._keys)
        parts = [(part, facts_of(keys[int(part.model or 0)])) for part in gathered_runs]
        several = len({fact.variant for _, fact in parts}) > 1
        reading = (self.kind, *tally.sentences())
        return [
            _run(part, fact, self.source, self.options, reading, tally, several)
            for part, fact in parts
        ]

    def _empty(self, tally: Tally) -> ReadError:
        reasons = "; ".join(tally.sentences()[1:4])
        because = f": {reasons}" if reasons else ""
        return ReadError(
            f"was recognized as {self.kind}, and holds no attempt{because}.",
            source=self.source.name,
            hint="Copy the file again, or read the log from its beginning.",
        )

    def _trial(self, run: str, task: str, trial: object) -> str | None:
        """The label of an attempt, or None when the log used it before for the same task."""
        counts = self._seen.setdefault(run, {})
        count = counts[task] = counts.get(task, 0) + 1
        if not self._numbered:
            return str(count)
        if trial is None:
            # A label that is no number: the order of the attempts is then unknown.
            return f"without number {count}"
        label = str(trial)
        labels = self._trials.setdefault(run, {}).setdefault(task, set())
        if label in labels:
            return None
        labels.add(label)
        return label

    def _flush(self) -> None:
        if self._buffer:
            columns = zip(*self._buffer, strict=True)
            self._gatherer.add(
                {name: list(cells) for name, cells in zip(self._names, columns, strict=True)}
            )
            self._buffer.clear()


class _Row:
    """Loses its row when anything but a refusal of the whole file is raised inside it."""

    __slots__ = ("_log", "_where")

    def __init__(self, log: LogBuilder, where: str) -> None:
        self._log = log
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, _: object) -> bool:
        if kind is None or not issubclass(kind, Exception) or issubclass(kind, PasshatError):
            return False
        self._log.lose(self._where, f"cannot be read ({kind.__name__}: {shorten(str(error))})")
        return True


def _run(
    gathered: Gathered,
    fact: RunFacts,
    source: Source,
    options: ReadOptions,
    reading: tuple[str, ...],
    tally: Tally,
    several: bool,
) -> Run:
    outcomes = Outcomes.from_columns(gathered.columns)
    per_task = outcomes.n + outcomes.missing
    even = int(per_task[0]) if per_task.min() == per_task.max() else None
    # A source may state its own threshold, as an export does.
    pass_at = fact.protocol.pass_at if options.pass_at is None else options.threshold
    order_note = () if outcomes.order is not None else ("the order of attempts is unknown",)
    return Run(
        name=fact.name or (f"{fact.agent} {fact.variant}".strip() if several else fact.agent),
        agent=fact.agent,
        outcomes=outcomes,
        protocol=replace(fact.protocol, attempts=fact.protocol.attempts or even, pass_at=pass_at),
        attempts=gathered.attempts,
        source=source.name,
        source_says=MappingProxyType(dict(fact.says)),
        source_counts=fact.counts,
        reading=(*reading, *fact.reading, *order_note, *gathered.notes, *gathered.remarks),
        decisions=(*source.decisions, *fact.decisions, *gathered.notes),
        tally=tally,
        origin=fact.origin,
        edited=fact.edited,
        started=fact.started,
        about=MappingProxyType({word: text for word, text in fact.about.items() if text}),
        agent_guessed=fact.guessed,
        attempts_counted=fact.protocol.attempts is None,
    )


def _label(value: object) -> str:
    return "" if value is None else str(value)


def _reward(value: object) -> float | None:
    if type(value) is float and 0.0 <= value <= 1.0:  # nearly always, and quick
        return value
    if value is True or value is False:
        return float(value)
    if value is None or value == "":
        return None
    if not isinstance(value, bool | int | float | str):
        raise ValueError
    try:
        number = float(value)
    except OverflowError:  # a whole number of 400 digits
        raise ValueError from None
    if math.isnan(number):
        return None
    if math.isinf(number):
        raise ValueError
    return number
