"""read(): from the words of a user to runs with unique names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TypedDict, Unpack

from passhat._display import some
from passhat.errors import InvalidValue, MissingExtra, NoRows, PasshatError, ReadError
from passhat.readers.base import Needs, NotResults, Reader, ReadOptions, load_readers
from passhat.readers.conversions import (
    convert,
    is_path_pattern,
    read_paths,
    refuse_folder,
)
from passhat.readers.formats.attempt_files import gather_documents, is_summary
from passhat.readers.formats.databases import is_dataset
from passhat.readers.identity import (
    count_once,
    folder_agent,
    join_group,
    join_runs,
    say_numbered,
    with_unique_names,
    without_retries,
)
from passhat.readers.interpretations import (
    gather_tables,
    is_table_pattern,
    say_tables,
    suggest_tables,
)
from passhat.readers.json_records import gather_tasks
from passhat.readers.record_map import split_map
from passhat.readers.records import content_kind
from passhat.readers.sources import Source, expand, files_inside, unknown_file
from passhat.readers.table import TableReader
from passhat.readers.zip_members import Members, is_zip, unpack
from passhat.stats.outcomes import Run, ScoreRange
from passhat.stats.outcomes.rewards import check_threshold
from passhat.store import DEFAULT_PATH, is_same_place

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_FILES_INTERPRETED = 3  # of a folder that nothing is read from
JOIN_BY = ("agent", "folder", "column")


@dataclass(frozen=True, slots=True)
class FileRead:
    """A source that was recognized, and the runs in it."""

    source: str
    reader: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that was read from the sources a user named.

    Attributes
    ----------
    runs : tuple of Run
        After copies are counted once and, on request, runs of the same agent are joined.
    files : tuple of FileRead
        The runs of each file.
    passed_over : tuple of (name, why)
        Files in a named folder that were not read.
    refused : tuple of (name, why)
        Sources that the user named, and that could not be read while others could.
    """

    runs: tuple[Run, ...]
    files: tuple[FileRead, ...]
    passed_over: tuple[tuple[str, str], ...]
    refused: tuple[tuple[str, str], ...] = ()


class ReadKeywords(TypedDict, total=False):
    """The keyword arguments of :func:`read_all`; :func:`read` documents them."""

    columns: Mapping[str, str] | None
    pass_at: float | None
    scorer: str | None
    join: bool
    join_by: str | None
    agent: str | None
    labels: Iterable[str]
    store: str
    needs: Needs | None
    max_unpacked: int | None
    records: str | None
    trials: str | None
    passes: str | None
    mapping: str | PathLike[str] | None
    score_range: str | None


def read(
    sources: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    columns: Mapping[str, str] | None = None,
    pass_at: float | None = None,
    scorer: str | None = None,
    join: bool = False,
    join_by: str | None = None,
    agent: str | None = None,
    labels: Iterable[str] = (),
    store: str = DEFAULT_PATH,
    needs: Needs | None = None,
    max_unpacked: int | None = None,
    records: str | None = None,
    trials: str | None = None,
    passes: str | None = None,
    mapping: str | PathLike[str] | None = None,
    score_range: str | None = None,
) -> list[Run]:
    """Read runs from files.

    Parameters
    ----------
    sources : path, glob, folder or several of them
        ``example:helpdesk`` is a table that ships with passhat, ``-`` is standard input.
    columns : mapping, optional
        The table's name of a column, as in ``{"model": "llm"}``.
    pass_at : float, optional
        The reward from which an attempt passes; needed when rewards go beyond 1.
    scorer : str, optional
        The judge whose verdicts count, where a log holds those of several.
    join : bool
        Make one run of all that have the same agent and set-up: k files with one attempt per task
        become k attempts. Refused where the agent is only guessed from the name of a file.
    join_by : {"agent", "folder", "column"}, optional
        What says that two files are the same agent: the name the log states (as with ``join``),
        the folder a file is in, or a table's column for the model.
    agent : str, optional
        The agent of all sources, where they do not state it.
    labels : iterable of str
        Columns to keep as labels of the tasks, beside those named ``slice:NAME``.
    store : str
        Where a word that is not a file is looked up as the id of a run: a path or an address.
    needs : Needs, optional
        The data that are needed. Of a store or a Parquet file with many attempts only that is read;
        without it, single attempts of runs up to a million.
    max_unpacked : int, optional
        How many bytes a compressed file may unpack to, at any ratio.
    records : str, optional
        Where the records of a JSON or XML file are, as in ``results[*]``; ``columns`` may then name
        fields inside a record, as in ``{"success": "report.resolved"}``.
    trials : str, optional
        Fields that hold one attempt each, as in ``run_*``: wide to long.
    passes : str, optional
        The rule for a pass, as in ``score >= 0.5``.
    mapping : path, optional
        A mapping as TOML.
    score_range : str, optional
        The lowest and highest score, as in ``1..5``; needed to keep scores beyond 0 and 1.

    Returns
    -------
    list of Run
        One per agent and set-up. Each lists in ``reading`` how columns and fields were read, and in
        ``losses`` the parts that could not be read.
    """
    reading = read_all(
        sources,
        columns=columns,
        pass_at=pass_at,
        scorer=scorer,
        join=join,
        join_by=join_by,
        agent=agent,
        labels=labels,
        store=store,
        needs=needs,
        max_unpacked=max_unpacked,
        records=records,
        trials=trials,
        passes=passes,
        mapping=mapping,
        score_range=score_range,
    )
    if reading.refused:
        name, why = reading.refused[0]
        raise ReadError(why, source=name)
    return list(reading.runs)


def read_all(
    sources: str | PathLike[str] | Iterable[str | PathLike[str]], **how: Unpack[ReadKeywords]
) -> Reading:
    """As :func:`read`, with the content of each file.

    A source that cannot be read does not take the others with it: it is listed in ``refused``. When
    none can be read, the first error is raised.
    """
    words = [sources] if isinstance(sources, str | PathLike) else list(sources)
    join_by = how.get("join_by") or ("agent" if how.get("join") else None)
    if join_by not in (None, *JOIN_BY):
        raise InvalidValue(f"cannot join by {join_by!r}.", hint=f"Choose: {', '.join(JOIN_BY)}.")
    options = _options(how, joining=join_by is not None)
    reader_list = load_readers()
    store = how.get("store") or DEFAULT_PATH
    all_sources = expand(map(str, words), store, how.get("max_unpacked"))
    if join_by is not None or len(all_sources) > 1 or any(s.is_folder for s in all_sources):
        # Attempts are joined, or compared to find copies of a run.
        options = replace(options, needs=replace(options.needs, streamed=False))
    collector = _Collected(reader_list, options, store)
    for source in all_sources:
        collector.add(source, several=len(all_sources) > 1)
    if not collector.read:
        raise (
            collector.errors[0]
            if collector.errors
            else ReadError(
                "matches nothing that passhat can read.", source=", ".join(map(str, words))
            )
        )
    return collector.reading(join_by, [str(word) for word in words])


def _options(how: ReadKeywords, *, joining: bool) -> ReadOptions:
    needs, mapping = how.get("needs") or Needs(), how.get("mapping")
    bounds = ScoreRange.parse(text) if (text := how.get("score_range")) else None
    check_threshold(how.get("pass_at"), bounds)
    stated = split_map(how.get("columns") or {})
    return ReadOptions(
        stated["columns"],
        how.get("pass_at"),
        how.get("scorer"),
        tuple(how.get("labels") or ()),
        # Only attempts can be joined, not their counts.
        replace(needs, attempts=needs.attempts or joining),
        how.get("agent"),
        how.get("records") or stated["records"],
        how.get("trials"),
        how.get("passes") or stated["passes"],
        None if mapping is None else str(mapping),
        bounds,
        stated["where"],
    )


@dataclass(frozen=True, slots=True)
class _ReadSource:
    source: Source
    reader: Reader
    runs: tuple[Run, ...]


class _Collected:
    """Reads sources one by one, each file once, and keeps the errors."""

    def __init__(self, readers: list[Reader], options: ReadOptions, store: str) -> None:
        self._store = store
        self._readers = readers
        self._table = next(reader for reader in readers if reader.general)
        self._options = options
        self._names: dict[tuple[int, int], str] = {}
        self.read: list[_ReadSource] = []
        self.errors: list[PasshatError] = []
        self._refused: list[tuple[str, str]] = []
        self._passed_over: list[tuple[str, str]] = []

    def add(self, source: Source, *, several: bool) -> None:
        try:
            source = convert(source) or source
            if source.head.startswith(_LFS_POINTER):
                raise ReadError(
                    "this is a pointer of Git LFS, not the file itself.",
                    source=source.name,
                    hint="Fetch the file with git lfs pull, then read it again.",
                )
            if self._is_archive(source):
                source = unpack(source)
            if source.is_folder and is_path_pattern(self._options.records):
                self.read.append(_ReadSource(source, self._table, self._read_paths(source)))
            elif source.is_folder and self._reader_of(source) is None:
                self._add_folder(source)
            elif not self._is_known(source):
                self.read.append(self._read_one(source))
        except MissingExtra:
            raise
        except PasshatError as error:
            if not several or not isinstance(error, ReadError):
                raise
            self.errors.append(error)
            why = error.message.removeprefix(f"{source.name}: ")
            self._refused.append((source.name, f"{why} {error.hint or ''}".rstrip()))

    def _read_paths(self, folder: Source) -> tuple[Run, ...]:
        pattern = self._options.records or ""
        if not is_table_pattern(pattern):
            return tuple(read_paths(folder, self._options))
        rows, options = gather_tables(folder, pattern), replace(self._options, records=None)
        try:
            return tuple(self._table.read(rows, options))
        except ReadError as error:
            assert isinstance(self._table, TableReader)
            other = ReadError(error.message, source=folder.name)
            if self._table.add_readings(other, rows, options, folder.name, records=pattern):
                error.hint = other.hint
            raise

    def _is_archive(self, source: Source) -> bool:
        """Whether this is a zip file that no reader takes as a log of its own."""
        if not is_zip(source.head) or any(r.recognizes(source) for r in self._readers):
            return False
        return any(name.strip("\0") for name in Members(source).names())

    def _with_stated_agent(self, runs: list[Run]) -> list[Run]:
        """Name all runs after --agent; sources that state several agents are not merged into it."""
        agent = self._options.agent
        if agent is None:
            return runs
        agents = {run.agent for run in runs if not run.agent_guessed} - {agent}
        if len(agents) > 1:
            raise InvalidValue(
                f"--agent {agent} names one agent, but the sources state {len(agents)}: "
                f"{some(sorted(agents))}.",
                hint="Leave --agent out, or read the files of each agent on their own.",
            )
        return [_Rename(agent)(run) for run in runs]

    def _refuse_useless_scorer(self) -> None:
        scorer = self._options.scorer
        has_mapping = self._options.mapping is not None  # by the user, perhaps with {scorer}
        if scorer is None or any(
            f.reader.has_scorers
            or (has_mapping and f.reader.general)
            or any((run.protocol.judge or "").startswith(scorer) for run in f.runs)
            for f in self.read
        ):
            return
        kinds = some(sorted({file.reader.name for file in self.read}))
        raise InvalidValue(
            f"--scorer {scorer} chooses between the judges of a log, and no source has several "
            f"(read as: {kinds}).",
            hint="Leave out --scorer. Which column decides is stated by --map success=COLUMN.",
        )

    def reading(self, join_by: str | None, words: Sequence[str]) -> Reading:
        self._refuse_useless_scorer()
        files = self._with_repeats_joined()
        if join_by == "folder":
            files = [replace(f, runs=tuple(map(_folder_name(f.source), f.runs))) for f in files]
        runs = without_retries([run for file in files for run in file.runs])
        runs = self._with_stated_agent(runs)
        runs = count_once(runs, joining=join_by is not None)
        is_joined, flags = join_by is not None, self._map_flags()
        runs = join_runs(runs, words) if is_joined else say_numbered(runs, words, flags)
        runs = [self._with_words(run, words, join_by) for run in runs]
        per_file = tuple(FileRead(f.source.name, f.reader.name, f.runs) for f in self.read)
        return Reading(
            tuple(with_unique_names(runs)),
            per_file,
            tuple(self._passed_over),
            tuple(self._refused),
        )

    def _with_words(self, run: Run, words: Sequence[str], join_by: str | None) -> Run:
        """The run with the words of a command that reads it again, where its file is not enough."""
        flags = [*self._map_flags(), *["--join"] * (join_by is not None)]
        sources = words if join_by is not None else [_file_of(run.source)]
        if run.id and not is_same_place(run.source, self._store):
            return replace(run, words=(run.source, "--run", run.id))
        if run.id or (not flags and list(sources) == [run.source]):
            return run
        return replace(run, words=(*sources, *flags))

    def _map_flags(self) -> list[str]:
        options = self._options
        rules = {"records": options.records, "where": options.where, "success": options.passes}
        pairs = {**options.columns, **{word: rule for word, rule in rules.items() if rule}}
        flags = ["--map", ",".join(map("=".join, pairs.items()))] if pairs else []
        return [*flags, *(["--map", options.mapping] if options.mapping is not None else [])]

    def _with_repeats_joined(self) -> list[_ReadSource]:
        """Join repeats that a harness keeps in sibling folders, where each states its agent.

        A folder's name is no statement: two agents of one suite lie side by side as two repeats do.
        """
        groups: dict[object, list[_ReadSource]] = {}
        for index, file in enumerate(self.read):
            run = file.runs[0] if len(file.runs) == 1 else None
            key: object = index
            if file.reader.repeats_in_siblings and run is not None and run.attempts is not None:
                digest = replace(run.protocol, attempts=None).digest
                folder = _run_folder(file.source).parent
                key = index if run.agent_guessed else (file.reader.name, folder, run.agent, digest)
            groups.setdefault(key, []).append(file)
        return [group[0] if len(group) == 1 else _join_siblings(group) for group in groups.values()]

    def _members(self, folder: Source, skipped: list[tuple[str, str]]) -> Iterator[Source]:
        """The files of a folder, those in archives and databases, folders that are one log."""

        def is_log(inner: Source) -> bool:
            return is_dataset(inner) or self._reader_of(inner) is not None

        for file in files_inside(folder, is_log, skipped):
            if self._is_known(file):
                continue
            try:
                source = convert(file) or file
                source = unpack(source) if self._is_archive(source) else source
            except PasshatError as error:  # also settings in YAML without the package for it
                skipped.append((file.name, error.message.removeprefix(f"{file.name}: ")))
                continue
            is_packed = source.is_folder and not file.is_folder
            yield from files_inside(source, is_log, skipped) if is_packed else (source,)

    def _add_folder(self, folder: Source) -> None:
        """Read every log in a folder; other files are passed over, and named."""
        read: list[_ReadSource] = []
        skipped: list[tuple[str, str]] = []
        errors: list[PasshatError] = []
        not_logs: list[PasshatError] = []
        refused: list[tuple[str, str]] = []
        others: list[Source] = []
        for source in self._members(folder, skipped):
            reader = self._reader_of(source)
            try:
                read.append(self._read_one(source))
            except MissingExtra:
                raise
            except (ReadError, InvalidValue) as error:
                why = error.message.removeprefix(f"{source.name}: ")
                is_other = isinstance(error, NotResults | InvalidValue)
                if reader is None or reader.general or is_other:
                    skipped.append((source.name, why))
                    not_logs.append(error)
                    others.append(source)
                else:  # a log that cannot be read costs itself, and the command says so
                    errors.append(error)
                    refused.append((source.name, f"{why} {error.hint or ''}".rstrip()))
        read = _leave_out_analysis(read, skipped)
        table = None if errors else _gather(folder, read, others)
        if table is not None:
            self.read.append(_ReadSource(folder, self._table, self._read_one(table).runs))
            return
        if not read:
            self._add_readings(folder, others, [] if errors or folder.found else not_logs)
            is_only = not self.read and len(not_logs) == len(skipped) == 1
            if errors or is_only:
                raise [*errors, *not_logs][0]
        self._refused += refused
        if not read and folder.found:
            # A glob also matches folders the user did not mean.
            self._passed_over.append((folder.name, "a folder without any log"))
            return
        if not read and not (self.read and not skipped):
            raise refuse_folder(folder, not_logs, len(skipped))
        runs = say_tables(folder, [file.runs for file in read], self._options.columns)
        read = [replace(file, runs=its) for file, its in zip(read, runs, strict=True)]
        self.read += [_with_skipped(file, folder, skipped) for file in read]
        self._passed_over += skipped

    def _add_readings(
        self, folder: Source, files: Sequence[Source], errors: Sequence[PasshatError]
    ) -> None:
        """Add the likeliest readings of the tables in a folder, or of its first, to its refusal."""
        assert isinstance(self._table, TableReader)
        found: list[tuple[int, str]] = []
        tables, stated = [*zip(files, errors, strict=False)][:_FILES_INTERPRETED], dict[str, str]()
        if errors and (pattern := suggest_tables(folder)) is not None:
            tables, stated = [(gather_tables(folder, pattern), errors[0])], {"records": pattern}
        for source, error in tables:
            other = ReadError(error.message, source=source.name)
            readings = self._table.add_readings(other, source, self._options, folder.name, **stated)
            if readings and not isinstance(error, NotResults):
                found.append((max(one.attempts for one in readings), str(other.hint)))
        for error in errors if found else ():
            error.hint = max(found)[1]

    def _is_known(self, source: Source) -> bool:
        """Whether the same file was read before, under this name, a link, or a second hard link."""
        if source.address or source.part or source.is_folder:
            return False
        try:
            status = os.stat(source.path)  # noqa: PTH116 - follows links, as is wanted here
        except OSError:
            return False
        first = self._names.setdefault((status.st_dev, status.st_ino), source.name)
        if first == source.name:
            return False
        self._passed_over.append((source.name, f"the same file as {first}: counted once"))
        return True

    def _reader_of(self, source: Source) -> Reader | None:
        if self._options.is_mapped and not (source.is_folder or source.address or source.part):
            return self._table  # the user states how to read it
        return next((reader for reader in self._readers if reader.recognizes(source)), None)

    def _read_one(self, source: Source) -> _ReadSource:
        reader = self._reader_of(source)
        if reader is not None:
            return _ReadSource(source, reader, tuple(reader.read(source, self._options)))
        if not source.head:
            raise NoRows("the file is empty.", source=source.name)
        raise unknown_file(source)


def _gather(folder: Source, read: list[_ReadSource], others: list[Source]) -> Source | None:
    """The files of a folder as one table, where each is an attempt or a task."""
    others += [file.source for file in read if _is_attempt(file)]
    sums = [file.source for file in read if not _is_attempt(file) and is_summary(file.source)]
    if len(read) <= len(others) and all(_is_attempt(file) or file.source in sums for file in read):
        table = gather_documents(folder, others, sums)
        if table is not None:
            return table
    if not all(file.reader.general for file in read):
        return None
    files = {file.name: file for file in (*others, *(file.source for file in read))}
    return gather_tasks(folder, list(files.values()))


def _is_attempt(file: _ReadSource) -> bool:
    """Whether a document holds one attempt."""
    (run, *others) = file.runs
    is_single = not others and run.outcomes.attempts == 1
    return is_single and file.reader.general and content_kind(file.source) == "JSON"


def _with_skipped(
    file: _ReadSource, folder: Source, skipped: Sequence[tuple[str, str]]
) -> _ReadSource:
    """The file with a note about the others in its folder that were passed over."""
    names = [name for name, _ in skipped]
    notes = (f"passed over in {folder.name}: {some(names)}",) if names else ()
    tables = [name for name in names if name.lower().endswith(_TABLE_ENDINGS)]
    said = (f"tables not read: {some(tables, 4)}",) if tables else ()
    runs = (
        replace(run, reading=(*run.reading, *notes), decisions=(*run.decisions, *said))
        for run in file.runs
    )
    return replace(file, runs=tuple(runs))


def _leave_out_analysis(
    read: list[_ReadSource], skipped: list[tuple[str, str]]
) -> list[_ReadSource]:
    """Without tables that lie beside or above the logs of a harness: they were made from them.

    Likewise without a text with tables, such as a README, beside files of data.
    """
    logs = [_run_folder(file.source) for file in read if not file.reader.general]
    has_data = any(not _is_text_table(file) for file in read)
    results = []
    for file in read:
        folder = _run_folder(file.source)
        if has_data and _is_text_table(file):
            skipped.append((file.source.name, "a text beside data; name it to read it"))
        elif file.reader.general and any(log.is_relative_to(folder) for log in logs):
            why = "a table beside logs, taken to be made from them; name it to read it"
            skipped.append((file.source.name, why))
        else:
            results.append(file)
    return results


def _is_text_table(file: _ReadSource) -> bool:
    return file.reader.general and content_kind(file.source) == "Markdown"


_TABLE_ENDINGS = (".csv", ".tsv", ".xlsx", ".parquet", ".md")


def _file_of(name: str) -> str:
    """The file that a name lies in: ``logs.zip`` for ``logs.zip/a/b.csv``."""
    return next((str(p) for p in Path(name).parents if p.is_file()), name)


def _run_folder(source: Source) -> Path:
    """The folder that a run fills: the log itself, or the folder the log is in."""
    path = Path(os.path.abspath(source.path))  # noqa: PTH100 - without following links
    return path if source.is_folder else path.parent


def _join_siblings(group: list[_ReadSource]) -> _ReadSource:
    runs = count_once(without_retries([run for file in group for run in file.runs]))
    return replace(group[0], runs=(runs[0] if len(runs) == 1 else join_group(runs),))


def _folder_name(source: Source) -> _Rename:
    folder = _run_folder(source)
    return _Rename(folder_agent(folder.parent if source.is_folder else folder))


@dataclass(frozen=True, slots=True)
class _Rename:
    agent: str

    def __call__(self, run: Run) -> Run:
        name = self.agent + run.name.removeprefix(run.agent)
        return replace(run, name=name, agent=self.agent, agent_guessed=False)
