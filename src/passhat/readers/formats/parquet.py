"""A Parquet table of attempts, counted by DuckDB in memory that does not grow with it."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from passhat._display import counted
from passhat.errors import MissingExtra, ReadError, shorten
from passhat.readers.base import ReadOptions
from passhat.readers.sources import Source
from passhat.stats.outcomes import Aggregates, Verdict
from passhat.stats.outcomes.attempts import MeasureSum
from passhat.stats.outcomes.cells import PackedNames, whole_numbers_of
from passhat.stats.outcomes.columns import ColumnMap
from passhat.stats.outcomes.gathering import (
    RUN_COLUMNS,
    SPLIT_HINT,
    Gathered,
    OutcomeColumns,
    as_gathered,
)
from passhat.stats.outcomes.rewards import (
    COUNTED_SCORES,
    RewardWords,
    blame_notes,
    verdicts_from_rewards,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


_MEMORY = "120MB"
_BLOCK = 5_000
_MOST_REWARDS = 1_000
"""Different rewards; a table with more than that is read one by one."""
_TASKS_AT_ONCE = 200_000
"""Tasks that are counted in one pass over the table."""
_MEASURES = {"duration": "seconds", "steps": "steps", "tokens": "tokens", "cost": "cost"}


class CountedParquet:
    """The attempts of a table, task by task.

    Parameters
    ----------
    source : Source
        A Parquet file.
    columns : ColumnMap
        The meaning of each column; one row is one attempt.
    options : ReadOptions
        The reward from which an attempt passes, and the data that are needed.
    """

    def __init__(self, source: Source, columns: ColumnMap, options: ReadOptions) -> None:
        self._source = source
        self._columns = columns
        self._pass_at = options.pass_at
        self._needs = options.needs
        self._table = "read_parquet(?, file_row_number = true)"

    def runs(self) -> list[Gathered] | None:
        """A run per agent and set-up; ``None`` if there are too many distinct rewards."""
        with self._database() as database:
            verdict, notes = self._verdict(database)
            if verdict is None:
                return None
            words = [*self._columns.names_of(*RUN_COLUMNS)]
            keys = [f"{self._text(word)} AS run_{word}" for word in words]
            key_columns = ", ".join(keys) or "'' AS run_"
            groups = self._all(
                database,
                f"SELECT DISTINCT {key_columns}, min(file_row_number) AS first "
                f"FROM {self._table} GROUP BY ALL ORDER BY first",
            )
            return [
                self._run(database, dict(zip(words, row, strict=False)), verdict, notes)
                for row in groups
            ]

    def _run(
        self,
        database: DuckDBPyConnection,
        key: dict[str, str],
        verdict: str,
        notes: tuple[str, ...],
    ) -> Gathered:
        where = " AND ".join(f"{self._text(word)} = ?" for word in key) or "true"
        values = [str(self._source.path), *key.values()]
        columns = self._by_task(database, where, values, verdict)
        reasons = self._reasons(database, where, values, verdict)
        aggregates = Aggregates(
            reasons,
            self._measures(database, where, values, verdict) if self._needs.measures else {},
            self._count_equal_answers(database, where, values) if self._needs.answers else None,
        )
        notes = (*notes, *blame_notes(reasons.get(Verdict.FAILED, {})))
        return as_gathered(key, columns, notes=notes, aggregates=aggregates)

    def _by_task(
        self, database: DuckDBPyConnection, where: str, values: list[str], verdict: str
    ) -> OutcomeColumns:
        """n, c and missing of every task, in the order in which tasks first appear.

        Where there are very many tasks the table is gone through several times, with a part of
        the tasks each time, to keep memory small.
        """
        trial, trials = self._trial(database, where, values)
        labels = list(self._columns.slices)
        labels_sql = "".join(
            f", min({as_text(column)}), max({as_text(column)})"
            for column in self._columns.slices.values()
        )
        parts = self._parts(database, where, values)
        names = PackedNames()
        numbers = array("q")
        slices: dict[str, list[str]] = {name: [] for name in labels}
        same: dict[str, str] = {}
        for part in range(parts):
            own_rows = f"{where} AND hash({self._text('task')}) % {parts} = {part}"
            result = database.execute(
                f"SELECT {self._text('task')} AS the_task, "
                f"count(*) FILTER (WHERE v >= 0), count(*) FILTER (WHERE v = 1), "
                f"count(*) FILTER (WHERE v = -1), {trial}, min(file_row_number) AS first"
                f"{labels_sql} FROM (SELECT *, {verdict} AS v FROM {self._table}) WHERE "
                f"{own_rows if parts > 1 else where} GROUP BY the_task",
                values,
            )
            while block := result.fetchmany(_BLOCK):
                for row in block:
                    self._refuse_broken(row, labels, trials)
                names.extend(row[0] for row in block)
                numbers.extend(number for row in block for number in (*row[1:4], row[5]))
                for place, values_of_slice in enumerate(slices.values()):
                    values_of_slice.extend(
                        same.setdefault(row[6 + 2 * place], row[6 + 2 * place]) for row in block
                    )
        # Sorted one after the other, and each let go at once: with a million tasks this is where
        # the most is held.
        columns = np.frombuffer(numbers, np.int64).reshape(-1, 4)
        order = np.argsort(columns[:, 3])
        n, c, m = (columns[order, place] for place in range(3))
        del columns, numbers
        names = names.take(order)
        for name, values_of_slice in slices.items():
            slices[name] = [values_of_slice[i] for i in whole_numbers_of(order)]
        return OutcomeColumns(names, n, c, m, labels=slices, unscored=COUNTED_SCORES)

    def vary(self, names: Sequence[str]) -> bool:
        """Whether rows of one task and run differ in one of these columns."""
        if not names:
            return False
        groups = ", ".join(
            self._text(word) for word in ("task", *RUN_COLUMNS) if word in self._columns.meaning
        )
        having = " OR ".join(f"count(DISTINCT {as_text(name)}) > 1" for name in names)
        query = f"SELECT 1 FROM {self._table} GROUP BY {groups} HAVING {having} LIMIT 1"
        with self._database() as database:
            return bool(self._all(database, query))

    def _parts(self, database: DuckDBPyConnection, where: str, values: list[str]) -> int:
        result = database.execute(
            f"SELECT approx_count_distinct({self._text('task')}) FROM {self._table} WHERE {where}",
            values,
        ).fetchone()
        return 1 if result is None else -(-int(result[0]) // _TASKS_AT_ONCE) or 1

    # -- the verdict of a row -------------------------------------------------------------------

    def _verdict(self, database: DuckDBPyConnection) -> tuple[str | None, tuple[str, ...]]:
        """An expression for 1, 0 or -1, by the rules that single rows are read with."""
        column = quote_name(self._columns.meaning["success"])
        rows = self._all(
            database,
            f"SELECT {column}, count(*) FROM {self._table} GROUP BY ALL LIMIT {_MOST_REWARDS + 1}",
        )
        if len(rows) > _MOST_REWARDS:
            return None, ()
        words = RewardWords()
        try:
            rewards = np.array([words[cell] for cell, _ in rows])
        except ValueError as error:
            raise ReadError(
                f"column {column} (read as success) holds {error}; expected true or false, 1 or "
                "0, a reward, or nothing for missing.",
                source=self._source.name,
            ) from None
        times = np.array([count for _, count in rows])
        judged = verdicts_from_rewards(rewards, self._pass_at)
        cases: dict[int, list[str]] = {1: [], 0: []}
        for (cell, _), verdict in zip(rows, judged.verdicts.tolist(), strict=True):
            if verdict in cases:
                cases[verdict].append(as_literal(cell))
        parts = "".join(
            f" WHEN {column} IN ({', '.join(cells)}) THEN {verdict}"
            for verdict, cells in cases.items()
            if cells
        )
        notes = [weight_note(note, rewards, times) for note in judged.notes]
        return (f"(CASE{parts} ELSE -1 END)" if parts else "-1"), tuple(notes)

    def _trial(
        self, database: DuckDBPyConnection, where: str, values: list[str]
    ) -> tuple[str, bool]:
        """An SQL expression for the number of distinct trials, and whether the user chose it."""
        column = self._columns.meaning.get("trial")
        if column is None:
            return "count(*)", False
        name = quote_name(column)
        kind, low, high = database.execute(
            f"SELECT any_value(typeof({name})), min({name}), max({name}) FROM {self._table} "
            f"WHERE {where}",
            values,
        ).fetchone() or ("", None, None)
        if "INT" in str(kind) and low is not None:
            bits = different(column, int(low), int(high))
            if bits is not None:
                return bits, True
        return f"count(DISTINCT {as_text(column)})", True

    def _refuse_broken(self, row: tuple[Any, ...], labels: list[str], trials: bool) -> None:
        task, n, _, m, different, _, *slices = row
        if not task:
            raise ReadError("the task id is empty.", source=self._source.name, line=row[5] + 1)
        if trials and different != n + m:
            raise ReadError(
                f"task {task!r} has {n + m:,} rows but {counted(different, 'different trial')}: an "
                "attempt is listed twice.",
                source=self._source.name,
                hint=SPLIT_HINT,
            )
        for place, name in enumerate(labels):
            low, high = slices[2 * place : 2 * place + 2]
            if low != high:
                raise ReadError(
                    f"slice {name!r} of task {task!r} is {low!r} and {high!r}; a slice belongs to "
                    "the task, not to the attempt.",
                    source=self._source.name,
                )

    def _reasons(
        self, database: DuckDBPyConnection, where: str, values: list[str], verdict: str
    ) -> dict[Verdict, dict[str, int]]:
        column = self._columns.meaning.get("failure")
        word = "''" if column is None else as_text(column)
        reasons: dict[Verdict, dict[str, int]] = {}
        for code, why, count, _ in database.execute(
            f"SELECT {verdict} AS v, {word} AS why, count(*), min(file_row_number) AS first "
            f"FROM {self._table} WHERE {where} AND v <= 0 GROUP BY ALL ORDER BY first",
            values,
        ).fetchall():
            if code == Verdict.MISSING or column is not None:
                reasons.setdefault(Verdict(code), {})[why] = count
        return reasons

    def _measures(
        self, database: DuckDBPyConnection, where: str, values: list[str], verdict: str
    ) -> dict[str, MeasureSum]:
        columns = self._columns.names_of(*_MEASURES)
        if not columns:
            return {}
        numbers = "".join(
            f", {as_number(column)} AS number_{word}, {as_text(column)} <> '' AND "
            f"TRY_CAST({quote_name(column)} AS DOUBLE) IS NULL AS no_{word}"
            for word, column in columns.items()
        )
        names = ", ".join(
            f"count(number_{word}), coalesce(sum(number_{word}), 0), "
            f"count(number_{word}) FILTER (WHERE v = 1), min(place) FILTER (WHERE no_{word})"
            for word in columns
        )
        row = database.execute(
            f"SELECT {names} FROM (SELECT {verdict} AS v, file_row_number AS place{numbers} "
            f"FROM {self._table} WHERE {where})",
            values,
        ).fetchone()
        assert row is not None
        sums = {}
        for place, (word, column) in enumerate(columns.items()):
            recorded, total, passed, broken = row[4 * place : 4 * place + 4]
            if broken is not None:
                raise ReadError(
                    f"column {column!r} (read as {word}) should hold a number.",
                    source=self._source.name,
                    line=broken + 1,
                )
            if recorded:
                sums[_MEASURES[word]] = MeasureSum(recorded, total, passed)
        return sums

    def _count_equal_answers(
        self, database: DuckDBPyConnection, where: str, values: list[str]
    ) -> tuple[int, int] | None:
        column = self._columns.meaning.get("answer")
        if column is None:
            return None
        answer = f"CAST({quote_name(column)} AS VARCHAR)"
        row = database.execute(
            f"SELECT count(*), count(*) FILTER (WHERE low = high) FROM (SELECT count(*) AS made, "
            f"count(nullif({answer}, '')) AS known, min({answer}) AS low, max({answer}) AS high "
            f"FROM {self._table} WHERE {where} GROUP BY {self._text('task')}) "
            "WHERE made >= 2 AND known = made",
            values,
        ).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])

    # -- DuckDB ---------------------------------------------------------------------------------

    def _text(self, word: str) -> str:
        return as_text(self._columns.meaning[word])

    def _all(self, database: DuckDBPyConnection, query: str) -> list[Any]:
        return database.execute(query, [str(self._source.path)]).fetchall()

    @contextmanager
    def _database(self) -> Iterator[DuckDBPyConnection]:
        """A connection with a small memory limit that spills to a temporary folder."""
        try:
            import duckdb
        except ImportError:
            raise MissingExtra("Reading Parquet", extra="parquet") from None
        with tempfile.TemporaryDirectory(prefix="passhat-") as folder:
            try:
                with duckdb.connect() as database:
                    database.execute(f"SET memory_limit = '{_MEMORY}'")
                    database.execute(f"SET temp_directory = '{folder}'")
                    database.execute("SET preserve_insertion_order = false")
                    database.execute("SET enable_progress_bar = false")
                    yield database
            except duckdb.Error as error:
                first = str(error).splitlines()[0]
                raise ReadError(
                    f"cannot be read as Parquet ({shorten(first, 120)}).", source=self._source.name
                ) from None


_WIDEST = 65_536
_BITS = 62
_MOST_WORDS = 4


def different(column: str, low: int, high: int) -> str | None:
    """How many different whole numbers between these a group has; ``None`` if that is too wide.

    Bits in numbers, or in a text where there are many: a hundredth of the memory that the values
    themselves would take.
    """
    name, width = quote_name(column), high - low + 1
    nothing = f"CAST(count(*) FILTER (WHERE {name} IS NULL) > 0 AS INTEGER)"
    if width > _WIDEST:
        return None
    if width > _BITS * _MOST_WORDS:
        return f"bit_count(bitstring_agg({name}, {low}, {high})) + {nothing}"
    bit = f"CAST(1 AS BIGINT) << CAST(({name} - {low}) % {_BITS} AS INTEGER)"
    words = [
        # As a large number: DuckDB counts bits in a byte, and several of them do not fit.
        f"coalesce(CAST(bit_count(bit_or({bit}) "
        f"FILTER (WHERE {name} BETWEEN {start} AND {start + _BITS - 1})) AS BIGINT), 0)"
        for start in range(low, high + 1, _BITS)
    ]
    return " + ".join([*words, nothing])


def quote_name(column: str) -> str:
    doubled = column.replace('"', '""')
    return f'"{doubled}"'


def as_text(column: str) -> str:
    """A column as text, as a table's cell is read: nothing is the empty text."""
    return f"coalesce(trim(CAST({quote_name(column)} AS VARCHAR)), '')"


def as_number(column: str) -> str:
    """A column as a number; nothing where it is empty, or none."""
    number = f"TRY_CAST({quote_name(column)} AS DOUBLE)"
    return f"CASE WHEN isnan({number}) THEN NULL ELSE {number} END"


def as_literal(cell: object) -> str:
    if isinstance(cell, str):
        quote_name = cell.replace("'", "''")
        return f"'{quote_name}'"
    return str(cell).upper() if isinstance(cell, bool) else repr(cell)


def weight_note(note: str, rewards: Any, times: Any) -> str:
    """The note with numbers of attempts instead of numbers of distinct rewards."""
    if note.startswith("-1 "):
        count = int(times[rewards == -1].sum())
        return f"-1 was read as missing ({counted(count, 'attempt')})"
    odd = ~(np.isnan(rewards) | np.isin(rewards, (0, 1, -1)))
    return f"{counted(int(times[odd].sum()), 'reward')}{note[note.index(' between') :]}"
