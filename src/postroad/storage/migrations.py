"""Numbered migrations, forwards only.

`migration_scripts/<engine>/0001_name.sql` are applied in order, all pending ones in one transaction, under a lock, so
that hosts that start together migrate once. A schema that is newer than this version of Postroad is refused: an old
version must not write to it. Checking the version never writes, so a service can run without the right to change the
schema.
"""

from importlib import resources
from typing import NamedTuple

from postroad.storage import store


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    name: str
    script: str


class SchemaError(RuntimeError):
    """The schema of the database does not match this version of Postroad."""


def known(dialect: str) -> list[Migration]:
    """The migrations of this version, oldest first."""
    folder = resources.files(__package__).joinpath("migration_scripts").joinpath(dialect)
    found = []
    for file in folder.iterdir():
        if not file.name.endswith(".sql"):
            continue
        number, _, name = file.name.removesuffix(".sql").partition("_")
        found.append(Migration(int(number), name, file.read_text(encoding="utf-8")))
    return sorted(found)


async def apply(database: store.Store) -> list[Migration]:
    """Bring the schema up to date; returns what was applied."""
    migrations = known(database.dialect)
    async with database.transaction() as tx:
        await tx.fetch("migrations.lock")
        if not await _is_recorded(tx):
            await tx.execute("migrations.create_table")
        current = await _version(tx)
        _refuse_newer(current, migrations)
        pending = [migration for migration in migrations if migration.version > current]
        for migration in pending:
            await tx.run_script(migration.script)
            await tx.execute("migrations.record", migration.version, migration.name)
    return pending


async def require_current(database: store.Store) -> None:
    """Raise SchemaError unless the schema is exactly the one this version knows."""
    migrations = known(database.dialect)
    async with database.reading() as tx:
        current = await _version(tx) if await _is_recorded(tx) else 0
    _refuse_newer(current, migrations)
    if current < migrations[-1].version:
        needed = migrations[-1].version
        msg = f"the database schema is at version {current}, but this version needs {needed}: run 'postroad migrate'"
        raise SchemaError(msg)


async def _is_recorded(tx: store.Transaction) -> bool:
    return await tx.fetch_one("migrations.is_recorded") is not None


async def _version(tx: store.Transaction) -> int:
    row = await tx.fetch_one("migrations.version")
    return int(row[0]) if row else 0


def _refuse_newer(current: int, migrations: list[Migration]) -> None:
    newest = migrations[-1].version
    if current > newest:
        msg = f"the database schema is at version {current}, but this version knows only {newest}: use a newer Postroad"
        raise SchemaError(msg)
