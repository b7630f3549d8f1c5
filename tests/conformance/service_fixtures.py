"""A running service for each engine and pytest worker: fixtures for every folder that speaks to one from outside."""

from collections.abc import Iterator

import pytest

from tests.conformance import live_service, webhook_service
from tests.postgres_server import PostgresServer

# Nothing but the tests of rate and warm-up is to meet their limits; those start a service of their own.
FAST = """
[limits]
request_rate = 100000
request_burst = 100000
api_rate = 100000
[warmup]
enabled = false
[domains]
check_hours = 0
"""
# Links to unsubscribe need a URL. Webhooks may go to one address of this machine; all others stay private.
SETTINGS = f'base_url = "https://mail.example.com"\n{FAST}[webhooks]\nallow_private = ["127.0.0.2/32"]\n'


@pytest.fixture(scope="session")
def sqlite_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live_service.Service]:
    folder = tmp_path_factory.mktemp("service-sqlite")
    with live_service.running(folder, url=f"sqlite:///{folder}/postroad.db", settings=SETTINGS) as service:
        yield service


@pytest.fixture(scope="session")
def postgres_service(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[live_service.Service]:
    folder = tmp_path_factory.mktemp("service-postgres")
    url = postgres_server.create_database()
    with live_service.running(folder, url=url, settings=SETTINGS) as service:
        yield service
    postgres_server.drop_database(url)


@pytest.fixture(scope="session")
def webhook_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webhook_service.Installation]:
    folder = tmp_path_factory.mktemp("telling-sqlite")
    with webhook_service.installed(folder, url=f"sqlite:///{folder}/postroad.db", settings=FAST) as installation:
        yield installation


@pytest.fixture(scope="session")
def webhook_postgres(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[webhook_service.Installation]:
    folder = tmp_path_factory.mktemp("telling-postgres")
    url = postgres_server.create_database()
    with webhook_service.installed(folder, url=url, settings=FAST) as installation:
        yield installation
    postgres_server.drop_database(url)
