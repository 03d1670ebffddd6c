"""Arrow files, datasets and SQLite databases as other files."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from passhat.errors import MissingExtra, ReadError, shorten
from passhat.readers.sources import Source, make_folder
from passhat.readers.zip_members import write_lines
from passhat.store.schema import APPLICATION_ID

ARROW_STARTS = b"ARROW1", b"\xff\xff\xff\xff"
"""Of a file, and of a stream."""


def is_dataset(source: Source) -> bool:
    """Whether a folder is a dataset as the library datasets saves it to disk."""
    return (source.path / "state.json").is_file() and bool(_find_shards(source))


def convert_dataset(source: Source) -> Source:
    """A Parquet file with the rows of a dataset."""
    return convert_arrow(source, _find_shards(source))


def _find_shards(source: Source) -> list[Path]:
    return sorted(source.path.glob("*.arrow"))


def convert_arrow(source: Source, files: list[Path]) -> Source:
    """A Parquet file with the rows of all files; a dataset on disk is split into several."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtra("Reading Arrow files and datasets", extra="arrow") from None
    path = make_folder() / f"{source.stem}.parquet"
    try:
        tables = []
        for file in files:
            with arrow.memory_map(str(file)) as stream:
                is_stream = stream.read(4) == ARROW_STARTS[1]
                stream.seek(0)
                batches = (arrow.ipc.open_stream if is_stream else arrow.ipc.open_file)(stream)
                tables.append(batches.read_all())
        parquet.write_table(arrow.concat_tables(tables), path)
    except (arrow.ArrowException, OSError) as error:
        message = shorten(str(error).splitlines()[0], 120)
        raise ReadError(f"is not a sound Arrow file ({message}).", source=source.name) from None
    return Source(source.name, path, found=source.found, max_unpacked=source.max_unpacked)


# -- databases ------------------------------------------------------------------------------------


SQLITE = b"SQLite format 3\x00"


def convert_sqlite(source: Source) -> Source | None:
    """A folder with a file of JSON lines for every table.

    ``None`` for a store of passhat, and for a file without tables: a store that was copied without
    its write-ahead log is one.
    """
    folder = make_folder()
    uri = f"{source.path.resolve().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as database:
            if database.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID:
                return None
            tables = database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            ).fetchall()
            if not tables:
                return None
            for number, (table,) in enumerate(tables):
                rows = database.execute(
                    _select_joined(database, table, [name for (name,) in tables])
                )
                names = [column[0] for column in rows.description]
                # A name may hold anything, also what leads out of a folder.
                name = re.sub(r"[^\w-]", "_", table)
                name = f"{name}-{number}" if (folder / f"{name}.jsonl").exists() else name
                dicts = (dict(zip(names, row, strict=True)) for row in rows)
                write_lines(folder / f"{name}.jsonl", dicts)
    except sqlite3.Error as error:
        raise ReadError(
            f"is a database that cannot be read ({error}).", source=source.name
        ) from None
    return replace(source, path=folder)


def _select_joined(database: sqlite3.Connection, table: str, tables: list[str]) -> str:
    """A query for a table with the columns of the rows that it refers to, as by ``run_id``.

    Also of those that these refer to. The name of a row stands in place of its number.
    """
    infos = {
        name: database.execute(f"PRAGMA table_info({_quote_sql(name)})").fetchall()
        for name in tables
    }
    columns = {name: [str(row[1]) for row in info] for name, info in infos.items()}
    keys = {name: [str(row[1]) for row in info if row[5]] for name, info in infos.items()}
    selected = {name: f"t.{_quote_sql(name)}" for name in columns[table]}
    names, joins = set(selected), list[str]()
    pending: list[tuple[str, str, tuple[str, ...]]] = [("t", table, (table,))]
    while pending and len(joins) < _MOST_JOINS:
        alias, owner, path = pending.pop(0)
        for column, (other, key) in _references(database, owner, columns, keys).items():
            if other in path or other not in columns or not _is_unique(database, other, key):
                continue
            inner = f"j{len(joins)}"
            on = f"{inner}.{_quote_sql(key)} = {alias}.{_quote_sql(column)}"
            joins.append(f" LEFT JOIN {_quote_sql(other)} AS {inner} ON {on}")
            pending.append((inner, other, (*path, other)))
            stem = _KEY_END.sub("", column)
            words = (*_LABELS, *(f"{stem.lower()}{end}" for end in ("", "_name", "_slug")))
            label = next((n for word in words for n in columns[other] if n.lower() == word), key)
            is_free = stem == column or stem not in names
            if label != key and stem and is_free and _is_unique(database, other, label):
                selected.pop(column, None)  # a number
                selected[stem] = f"{inner}.{_quote_sql(label)}"
                names.add(stem)
            for name in columns[other]:
                new = f"{stem}_{name}" if name in names or name == "name" else name
                is_label = selected.get(stem) == f"{inner}.{_quote_sql(name)}"
                if name != key and not is_label and new not in names:
                    selected[new] = f"{inner}.{_quote_sql(name)}"
                    names.add(new)
    fields = ", ".join(f"{cell} AS {_quote_sql(name)}" for name, cell in selected.items())
    return f"SELECT {fields} FROM {_quote_sql(table)} AS t{''.join(joins)}"


def _references(
    database: sqlite3.Connection,
    table: str,
    columns: Mapping[str, Sequence[str]],
    keys: Mapping[str, Sequence[str]],
) -> dict[str, tuple[str, str]]:
    """The table and the key that columns refer to, as stated or by their names."""
    stated = database.execute(f"PRAGMA foreign_key_list({_quote_sql(table)})").fetchall()
    found = {str(r[3]): (str(r[2]), str(r[4] or (*keys.get(r[2], ()), "id")[0])) for r in stated}
    others = {name.lower(): name for name in columns if name != table}
    for column in columns[table]:
        stem = _KEY_END.sub("", column.lower())
        is_plain = column.lower() in ("id", "rowid", "pk", "key", "uuid")  # each table has its own
        by_key = [n for n in others.values() if list(keys[n]) == [column] and not is_plain]
        named = [others[name] for name in (stem, f"{stem}s", f"{stem}es") if name in others]
        for other in (*named, *(by_key if len(by_key) == 1 else ())):
            key = next((n for n in (column, "id", *keys[other]) if n in columns[other]), None)
            if key is not None and (stem != column.lower() or not named):
                found.setdefault(column, (other, key))
    return found


_MOST_JOINS = 16
_KEY_END = re.compile(r"_?(?:uuid|id|fk|ref|key)$", re.IGNORECASE)
_LABELS = ("name", "slug", "title", "key", "label")


def _is_unique(database: sqlite3.Connection, table: str, column: str) -> bool:
    name = _quote_sql(column)
    counts = f"count(*), count({name}), count(DISTINCT {name})"
    query = f"SELECT {counts} FROM {_quote_sql(table)}"
    return len(set(database.execute(query).fetchone())) == 1


def _quote_sql(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
