"""The service that the conformance tests speak to: one for each engine and pytest worker, shared by all of them.

Every test runs on both engines, unless it asks for something of SQLite: the store has no say then, or it is heavy.
"""

from collections.abc import Iterator

import pytest

from tests.conformance import running, telling
from tests.conformance.served import postgres_service, sqlite_service, telling_postgres, telling_sqlite

__all__ = ["postgres_service", "sqlite_service", "telling_postgres", "telling_sqlite"]


@pytest.fixture(params=["sqlite", "postgres"])
def service(request: pytest.FixtureRequest) -> running.Service:
    chosen: running.Service = request.getfixturevalue(f"{request.param}_service")
    return chosen


@pytest.fixture(params=["sqlite", "postgres"])
def installation(request: pytest.FixtureRequest) -> telling.Installation:
    """A service that delivers and tells, on each engine in turn."""
    chosen: telling.Installation = request.getfixturevalue(f"telling_{request.param}")
    return chosen


@pytest.fixture
def customer(installation: telling.Installation) -> telling.Customer:
    return installation.customer()


@pytest.fixture
def sqlite_customer(telling_sqlite: telling.Installation) -> telling.Customer:
    return telling_sqlite.customer()


@pytest.fixture(scope="session")
def newcomer(telling_sqlite: telling.Installation) -> telling.Customer:
    """A customer without an endpoint, for tests that get none either."""
    return telling_sqlite.customer()


@pytest.fixture
def sqlite_ear(telling_sqlite: telling.Installation) -> Iterator[telling.Ear]:
    with telling_sqlite.ear() as heard:
        yield heard


@pytest.fixture
def ear(installation: telling.Installation) -> Iterator[telling.Ear]:
    with installation.ear() as heard:
        yield heard
