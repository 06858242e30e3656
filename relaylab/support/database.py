"""One table in a file of SQLite: made when it is first written, shared by processes, refused when it is another's.

Every row is whole once it is written. What cannot be used says so: missing, foreign, of another format, damaged.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaylab.support.errors import RelayValueError

PATIENCE = 30.0  # seconds that a writer waits for another one
KINDS = {"TEXT": str, "REAL": float, "INTEGER": int}
Value = str | int | float
Row = tuple[Any, ...]


@dataclass(frozen=True)
class TableLayout:
    """A table: its name, its columns with their SQL types, those that are its key, and marks that tell its files.

    `what` is what people call its rows; error codes begin with it. `format` grows when the columns change.
    """

    name: str
    columns: Mapping[str, str]
    key: Sequence[str]
    what: str
    application: int
    format: int = 1

    @property
    def sql(self) -> str:
        """What makes it."""
        columns = ", ".join(f"{name} {kind} NOT NULL" for name, kind in self.columns.items())
        return f"CREATE TABLE IF NOT EXISTS {self.name} ({columns}, PRIMARY KEY ({', '.join(self.key)})) WITHOUT ROWID"


class Database:
    """The table of one file. With `create` it is made if it is not there; readers need no right to write.

    Raises RelayValueError with the codes `WHAT.missing`, `.foreign`, `.version`, `.damaged`, `.unusable`.
    """

    def __init__(self, table: TableLayout, path: str | os.PathLike[str], create: bool = False):
        self.table, self.path = table, Path(path)
        if not create and not self.path.is_file():
            raise self._error("missing", f"there is no file of {table.what} at {self.path}")
        with self._opened() as base:
            application, version, empty = self._marks(base, "BEGIN")
            if create and empty:  # again, as another writer may have made it since
                application, version, empty = self._marks(base, "BEGIN IMMEDIATE", keep=True)
                if empty:
                    base.execute(f"PRAGMA application_id = {table.application}")
                    base.execute(f"PRAGMA user_version = {table.format}")
                    base.execute(table.sql)
                    application, version = table.application, table.format
                base.commit()
        if application != table.application:
            raise self._error("foreign", f"{self.path} holds no {table.what} of relaylab")
        if version != table.format:
            said = f"{self.path} has {table.what} of format {version}, this version reads format {table.format}"
            raise self._error("version", said, "name another file")

    def _marks(self, base: sqlite3.Connection, begin: str, keep: bool = False) -> tuple[int, int, bool]:
        """Whose file it is, of what format, whether nothing is in it, all at one time; `keep` goes on."""
        base.execute(begin)
        application, version, parts = (
            base.execute(query).fetchone()[0]
            for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
        )
        if not keep:
            base.rollback()
        return application, version, parts == 0

    def _error(self, code: str, said: str, help: str = "") -> RelayValueError:
        return RelayValueError(said, code=f"{self.table.what}.{code}", help=help)

    @contextmanager
    def _opened(self) -> Generator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=PATIENCE)) as base:
                yield base
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            code = "unusable" if isinstance(error, sqlite3.OperationalError) else "damaged"
            said = f"cannot use the {self.table.what} at {self.path}: {error}"
            there = self.path.is_file()
            help = "move it away; another one is made" if there else "give a path in a folder that may be written"
            raise self._error(code, said, help) from None

    def put(self, rows: Iterable[Row]) -> int:
        """Keep rows, in place of older ones of the same key; how many."""
        kept = list(rows)
        marks = ", ".join("?" * len(self.table.columns))
        with self._opened() as base, base:
            base.executemany(f"INSERT OR REPLACE INTO {self.table.name} VALUES ({marks})", kept)
        return len(kept)

    def rows(self, order: str, **wanted: Value) -> list[Row]:
        """The rows whose columns have the wanted values; `order` is SQL of this package."""
        where = " AND ".join(f"{name} = ?" for name in self.table.columns if name in wanted) or "1"
        values = [wanted[name] for name in self.table.columns if name in wanted]
        query = f"SELECT {', '.join(self.table.columns)} FROM {self.table.name} WHERE {where} ORDER BY {order}"
        with self._opened() as base:
            found = base.execute(query, values).fetchall()
        for row in found:
            for (name, kind), value in zip(self.table.columns.items(), row):
                if not isinstance(value, KINDS[kind]):  # SQLite keeps anything in any column
                    raise self.damaged(f"{value!r} as `{name}` of {self.table.what}")
        return found

    def damaged(self, what: str) -> RelayValueError:
        """The error that `what` stands in the file."""
        return self._error("damaged", f"{self.path} has {what}", "move it away; another one is made")
