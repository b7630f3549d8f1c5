"""Numbered migrations, forwards only.

`migration_scripts/<engine>/0001_baseline.sql` is the schema of the first release. It and those after it are applied in
order, all pending ones in one transaction, under a lock, so that hosts that start together migrate once. Checking the
version never writes, so a service can run without the right to change the schema.

Hosts of two versions run side by side during a roll-out. A script begins with `-- compatible from: N`: the oldest
schema version whose code can still work with the new schema. It is stored with the migration, so that an older host
that restarts knows whether it may run.

Builds from before the first release had other migrations, or another baseline. Their databases are refused. So is one
whose data were moved to another database: two services would deliver the same queue. It is marked by a migration with
the number 0, whose name is the address of the other.
"""

import hashlib
import re
import time
from importlib import resources
from typing import Final, NamedTuple

from postroad.storage.engine import queries, store

_COMMENTS: Final = re.compile(r"--.*|\s+")
_COMPATIBLE_FROM: Final = re.compile(r"\A-- compatible from: (\d+)\n")
# The number of the mark.
_MOVED: Final = 0


class Migration(NamedTuple):
    version: int
    name: str
    script: str
    # The oldest schema version whose code works after this step.
    compatible_from: int

    @property
    def fingerprint(self) -> str:
        """What is stored of it: the name, and a digest of the statements."""
        digest = hashlib.sha256(_COMMENTS.sub("", self.script).encode()).hexdigest()
        return f"{self.name} {digest[:16]}"


class State(NamedTuple):
    """The version of a database, the migrations to apply, and whether this version of Postroad is too old for it."""

    version: int
    pending: list[Migration]
    is_too_new: bool
    # The address of the database that has the data now.
    moved_to: str | None = None


class Applied(NamedTuple):
    """What was applied to a database, and how long it took from the lock to the commit."""

    migrations: list[Migration]
    version_before: int
    seconds: float

    @property
    def version(self) -> int:
        return self.migrations[-1].version if self.migrations else self.version_before


class SchemaError(RuntimeError):
    """The schema of the database does not match this version of Postroad."""


def known(dialect: str) -> list[Migration]:
    folder = resources.files("postroad.storage").joinpath("migration_scripts").joinpath(dialect)
    found = []
    for file in folder.iterdir():
        if not file.name.endswith(".sql"):
            continue
        number, _, name = file.name.removesuffix(".sql").partition("_")
        script = file.read_text(encoding="utf-8")
        header = _COMPATIBLE_FROM.match(script)
        if header is None:
            raise SchemaError(f"{file.name} does not begin with '-- compatible from: N'")
        found.append(Migration(int(number), name, script, int(header[1])))
    return sorted(found)


def compatible_from(pending: list[Migration]) -> int:
    """The oldest schema version whose code works after all of these steps."""
    return max(migration.compatible_from for migration in pending)


async def apply(database: store.Store) -> Applied:
    migrations = known(database.dialect)
    async with database.transaction() as tx:
        await tx.fetch("migrations.lock")
        began = time.monotonic()
        state = await read_state(tx, migrations)
        _refuse(state, migrations)
        try:
            await _apply(tx, state.pending)
        except store.NotPermitted as problem:
            msg = (
                f"{_outdated(state, migrations)}, and the role of database.url may not change it ({problem}): "
                "run 'postroad migrate' with the URL of the role that owns the tables"
            )
            raise SchemaError(msg) from problem
    return Applied(state.pending, state.version, time.monotonic() - began)


async def _apply(tx: store.Transaction, pending: list[Migration]) -> None:
    if not await _is_recorded(tx):
        await tx.execute("migrations.create_table")
    for migration in pending:
        await tx.run_script(migration.script)
        await tx.execute("migrations.record", migration.version, migration.fingerprint, migration.compatible_from)


async def state_of(database: store.Store) -> State:
    """Compare the schema with what this version knows; nothing is changed."""
    async with database.reading() as tx:
        return await read_state(tx, known(database.dialect))


async def require_current(database: store.Store) -> None:
    """Raise SchemaError unless this version can work with the schema."""
    migrations = known(database.dialect)
    async with database.reading() as tx:
        state = await read_state(tx, migrations)
    _refuse(state, migrations)
    if state.pending:
        raise SchemaError(f"{_outdated(state, migrations)}: run 'postroad migrate'")


async def _is_recorded(tx: store.Transaction) -> bool:
    return await tx.fetch_one("migrations.is_recorded") is not None


async def mark_moved(tx: store.Transaction, address: str) -> None:
    """Refuse to start on this database from now on, because its data were moved to another one."""
    await forget_move(tx)
    await tx.execute("migrations.record", _MOVED, address, _MOVED)


@queries.change("migrations.forget_move")
async def forget_move(tx: store.Transaction) -> None: ...


async def read_state(tx: store.Transaction, migrations: list[Migration]) -> State:
    row = await tx.fetch_one("migrations.version") if await _is_recorded(tx) else None
    current, first, moved_to = row or (0, migrations[0].fingerprint, None)
    if first != migrations[0].fingerprint:
        raise SchemaError(
            "the database was created by a build from before the first release, and cannot be migrated: "
            "set database.url to a new database, or keep using the build that created it"
        )
    newest = migrations[-1].version
    pending = [migration for migration in migrations if migration.version > current]
    is_too_new = current > newest and await tx.fetch_one("migrations.incompatible", newest) is not None
    return State(current, pending, is_too_new, moved_to)


def _outdated(state: State, migrations: list[Migration]) -> str:
    return f"the database schema is at version {state.version}, but this version needs {migrations[-1].version}"


def moved(state: State) -> str:
    """What to do with a database whose data were moved."""
    return (
        f"its data were moved to {state.moved_to}: set database.url to that address, or use this database again after "
        "'postroad move --back'"
    )


def _refuse(state: State, migrations: list[Migration]) -> None:
    if state.moved_to is not None:
        raise SchemaError(f"the database is no longer in use, because {moved(state)}")
    if state.is_too_new:
        msg = (
            f"the database schema is at version {state.version} and does not work with this version, "
            f"which knows only {migrations[-1].version}: use a newer Postroad"
        )
        raise SchemaError(msg)
