"""An empty store for each test, on both engines; whatever happens in it, no library reports a bug of ours."""

import itertools
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.reliability import crashable_stores
from tests.reliability.disks import small_disk
from tests.reliability.libc_faults import libc, libc_library

__all__ = ["libc", "libc_library", "small_disk"]


@pytest.fixture(autouse=True)
def _nothing_is_reported(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    errors = [record for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert [record for record in errors if not _is_cut_copy(record.getMessage())] == []


def _is_cut_copy(message: str) -> bool:
    """When a connection is cut during COPY, asyncpg forgets a future; the caller gets the error by another way."""
    return message.startswith("Future exception was never retrieved") and "ConnectionDoesNotExistError" in message


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """The address of an empty store."""
    return str(request.getfixturevalue(f"clean_{request.param}_url"))


@pytest.fixture(params=["sqlite", "postgres"])
def make_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], crashable_stores.Engine]:
    """Makes a new and empty store whenever it is called; the one before has to be closed."""
    if request.param == "postgres":
        url = str(request.getfixturevalue("clean_postgres_url"))
        return lambda: crashable_stores.PostgresEngine(url)
    numbers = itertools.count()
    template = Path(str(request.getfixturevalue("clean_sqlite_url")).removeprefix("sqlite:///"))
    return lambda: crashable_stores.SqliteEngine(tmp_path / f"run-{next(numbers)}", template)
