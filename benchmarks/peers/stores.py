"""The database of one round, as the benchmark looks into it from outside: a SQLite file, or a database of PostgreSQL.

Looking costs the service next to nothing: a question is answered from an index or asked after the round.
"""

import contextlib
import pathlib
import sqlite3
import typing

if typing.TYPE_CHECKING:  # the wheel is not needed for SQLite, and takes long to import
    from benchmarks.peers import postgres

Name = typing.Literal["SQLite", "PostgreSQL"]
DATABASE = "postroad_bench"


class Store(typing.Protocol):
    """Where Postroad finds the database (`url`), its server's process, and the name of its type for bytes."""

    url: str
    pid: int | None
    bytes_type: str

    def ask(self, question: str) -> int:
        """The one number that a SELECT gives."""

    def texts(self, question: str) -> list[str]:
        """The one column of texts that a SELECT gives."""

    def load(self, script: str) -> None:
        """Run statements in one transaction and leave no work of it for later; before the service starts.

        PostgreSQL gets statistics, as it makes them by itself. SQLite gets none, because the service makes none.
        """


class SqliteFile:
    """A file that the service makes."""

    pid: int | None = None
    bytes_type = "BLOB"

    def __init__(self, path: pathlib.Path) -> None:
        self.url = f"sqlite:///{path}"
        self._path = path

    def ask(self, question: str) -> int:
        """See Store."""
        with contextlib.closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True)) as connection:
            return int(connection.execute(question).fetchone()[0])

    def texts(self, question: str) -> list[str]:
        """See Store."""
        with contextlib.closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True)) as connection:
            return [str(row[0]) for row in connection.execute(question)]

    def load(self, script: str) -> None:
        """See Store."""
        with contextlib.closing(sqlite3.connect(self._path)) as connection:
            # A million rows fall all over an index: where the cache is small, each is read from the disk again.
            connection.execute("PRAGMA cache_size = -1000000")
            connection.executescript(f"BEGIN;\n{script}\nCOMMIT;\nPRAGMA wal_checkpoint(TRUNCATE);")


class PostgresDatabase:
    """A database of a server that lives through all rounds."""

    bytes_type = "BYTEA"

    def __init__(self, server: "postgres.Postgres", *, name: str) -> None:
        self.url = server.url(name)
        self.pid: int | None = server.pid
        self._server = server
        self._name = name

    def ask(self, question: str) -> int:
        """See Store."""
        return int(self._server.ask(question, database=self._name))

    def texts(self, question: str) -> list[str]:
        """See Store."""
        return self._server.run(f"{question};\n", database=self._name).split()

    def load(self, script: str) -> None:
        """See Store."""
        self._server.run(f"BEGIN;\n{script}\nCOMMIT;\nVACUUM ANALYZE;\nCHECKPOINT;\n", database=self._name)


@contextlib.contextmanager
def empty(name: Name, *, folder: pathlib.Path, server: "postgres.Postgres | None") -> typing.Iterator[Store]:
    """A new store of this kind: a file in the service's folder, or a database of the server, dropped at the end."""
    if name == "SQLite":
        yield SqliteFile(folder / "mail.db")
        return
    if server is None:
        raise ValueError("a database of PostgreSQL needs its server")
    with server.database(DATABASE):
        yield PostgresDatabase(server, name=DATABASE)
