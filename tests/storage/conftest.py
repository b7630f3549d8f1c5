"""The same tests on both engines: `store` is a migrated store on SQLite and, in a second run, on PostgreSQL.

`tx` is one transaction of it that lasts as long as the test. `database_url` is a database of that engine with the
current schema, `new_database_url` one without any; `reopen` opens the first once more, as another process would.
`empty` is a store on the second. `sqlite_store` is for what only a file can do. `ledger` and `gate` are for group
commits: what went down together, and a store whose transactions wait to be let through.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from postroad.storage.engine import open_store, sqlite
from postroad.storage.engine.store import Store, Transaction
from tests.contexts import database_url
from tests.storage import group_commits

__all__ = ["database_url"]

Reopen = Callable[[], Awaitable[Store]]


@pytest.fixture(params=["sqlite", "postgres"])
def new_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'postroad.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    opened = await open_store.open_current(database_url, migrate=True)
    yield opened
    await opened.close()


@pytest.fixture
async def tx(store: Store) -> AsyncIterator[Transaction]:
    async with store.transaction() as begun:
        yield begun


@pytest.fixture
async def reopen(database_url: str) -> AsyncIterator[Reopen]:
    async with contextlib.AsyncExitStack() as stack:

        async def reopen() -> Store:
            opened = await open_store.open_store(database_url)
            stack.push_async_callback(opened.close)
            return opened

        yield reopen


@pytest.fixture
async def empty(new_database_url: str) -> AsyncIterator[Store]:
    opened = await open_store.open_store(new_database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def sqlite_store(clean_sqlite_url: str) -> AsyncIterator[sqlite.SqliteStore]:
    opened = await open_store.open_current(clean_sqlite_url, migrate=True)
    assert isinstance(opened, sqlite.SqliteStore)
    yield opened
    await opened.close()


@pytest.fixture
def ledger() -> group_commits.Ledger:
    return group_commits.Ledger()


@pytest.fixture
def gate(store: Store) -> group_commits.Gate:
    return group_commits.Gate(store)
