"""A running service for each engine and pytest worker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance import running
from tests.postgres_server import PostgresServer

# No test here is about the rate.
FAST = "[limits]\nrequest_rate = 100000\nrequest_burst = 100000\n"


@pytest.fixture(scope="session")
def sqlite_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[running.Service]:
    folder: Path = tmp_path_factory.mktemp("openapi-sqlite")
    with running.running(folder, url=f"sqlite:///{folder}/postroad.db", settings=FAST) as service:
        yield service


@pytest.fixture(scope="session")
def postgres_service(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[running.Service]:
    folder = tmp_path_factory.mktemp("openapi-postgres")
    url = postgres_server.create_database()
    with running.running(folder, url=url, settings=FAST) as service:
        yield service
    postgres_server.drop_database(url)
