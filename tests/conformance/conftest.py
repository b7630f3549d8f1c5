"""The service that the conformance tests speak to: one for each engine and pytest worker, shared by all of them.

Every test runs on both engines, unless it asks for `sqlite_service`: then the door alone decides, or the test is heavy.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance import running
from tests.postgres_server import PostgresServer

# Nothing but the tests of the rate is to meet its limit; those start a service of their own.
FAST = "[limits]\nrequest_rate = 100000\nrequest_burst = 100000\n"


@pytest.fixture(scope="session")
def sqlite_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[running.Service]:
    folder: Path = tmp_path_factory.mktemp("conformance-sqlite")
    with running.running(folder, url=f"sqlite:///{folder}/postroad.db", settings=FAST) as service:
        yield service


@pytest.fixture(scope="session")
def postgres_service(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[running.Service]:
    folder = tmp_path_factory.mktemp("conformance-postgres")
    url = postgres_server.create_database()
    with running.running(folder, url=url, settings=FAST) as service:
        yield service
    postgres_server.drop_database(url)


@pytest.fixture(params=["sqlite", "postgres"])
def service(request: pytest.FixtureRequest) -> running.Service:
    chosen: running.Service = request.getfixturevalue(f"{request.param}_service")
    return chosen
