"""The service that the conformance tests speak to: one for each engine and pytest worker, shared by all of them.

Every test runs on both engines, unless it asks for something of SQLite: the store has no say then, or it is heavy.
"""

from collections.abc import Iterator

import pytest

from tests.conformance import live_service, webhook_service
from tests.conformance.service_fixtures import postgres_service, sqlite_service, webhook_postgres, webhook_sqlite

__all__ = ["postgres_service", "sqlite_service", "webhook_postgres", "webhook_sqlite"]


@pytest.fixture(params=["sqlite", "postgres"])
def service(request: pytest.FixtureRequest) -> live_service.Service:
    chosen: live_service.Service = request.getfixturevalue(f"{request.param}_service")
    return chosen


@pytest.fixture(params=["sqlite", "postgres"])
def installation(request: pytest.FixtureRequest) -> webhook_service.Installation:
    """A service that delivers and sends webhooks, on each engine in turn."""
    chosen: webhook_service.Installation = request.getfixturevalue(f"webhook_{request.param}")
    return chosen


@pytest.fixture
def customer(installation: webhook_service.Installation) -> webhook_service.Customer:
    return installation.customer()


@pytest.fixture
def sqlite_customer(webhook_sqlite: webhook_service.Installation) -> webhook_service.Customer:
    return webhook_sqlite.customer()


@pytest.fixture(scope="session")
def newcomer(webhook_sqlite: webhook_service.Installation) -> webhook_service.Customer:
    """A customer without an endpoint, for tests that get none either."""
    return webhook_sqlite.customer()


@pytest.fixture
def sqlite_listener(webhook_sqlite: webhook_service.Installation) -> Iterator[webhook_service.WebhookListener]:
    with webhook_sqlite.listener() as heard:
        yield heard


@pytest.fixture
def listener(installation: webhook_service.Installation) -> Iterator[webhook_service.WebhookListener]:
    with installation.listener() as heard:
        yield heard
