"""A running service for each engine and pytest worker: fixtures for every folder that speaks to one from outside."""

from collections.abc import Iterator

import pytest

from tests.conformance import running, telling
from tests.postgres_server import PostgresServer

# Nothing but the tests of rate and warm-up is to meet their limits; those start a service of their own.
FAST = (
    "[limits]\nrequest_rate = 100000\nrequest_burst = 100000\n[warmup]\nenabled = false\n[domains]\ncheck_hours = 0\n"
)
# Webhooks may go to one address of this machine; all others stay private.
SETTINGS = f'{FAST}[webhooks]\nallow_private = ["127.0.0.2/32"]\n'


@pytest.fixture(scope="session")
def sqlite_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[running.Service]:
    folder = tmp_path_factory.mktemp("service-sqlite")
    with running.running(folder, url=f"sqlite:///{folder}/postroad.db", settings=SETTINGS) as service:
        yield service


@pytest.fixture(scope="session")
def postgres_service(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[running.Service]:
    folder = tmp_path_factory.mktemp("service-postgres")
    url = postgres_server.create_database()
    with running.running(folder, url=url, settings=SETTINGS) as service:
        yield service
    postgres_server.drop_database(url)


@pytest.fixture(scope="session")
def telling_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[telling.Installation]:
    folder = tmp_path_factory.mktemp("telling-sqlite")
    with telling.installed(folder, url=f"sqlite:///{folder}/postroad.db", settings=FAST) as installation:
        yield installation


@pytest.fixture(scope="session")
def telling_postgres(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[telling.Installation]:
    folder = tmp_path_factory.mktemp("telling-postgres")
    url = postgres_server.create_database()
    with telling.installed(folder, url=url, settings=FAST) as installation:
        yield installation
    postgres_server.drop_database(url)
