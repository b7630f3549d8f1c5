"""The service that the conformance tests speak to: one for each engine and pytest worker, shared by all of them.

Every test runs on both engines, unless it asks for `sqlite_service`: then the door alone decides, or the test is heavy.
"""

import pytest

from tests.conformance import running
from tests.conformance.served import postgres_service, sqlite_service

__all__ = ["postgres_service", "sqlite_service"]


@pytest.fixture(params=["sqlite", "postgres"])
def service(request: pytest.FixtureRequest) -> running.Service:
    chosen: running.Service = request.getfixturevalue(f"{request.param}_service")
    return chosen
