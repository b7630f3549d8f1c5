"""Listeners are tested with a real context: a walk over every route, and what has no service tests, on both engines.

The rest runs on SQLite alone, because what engines do differently is tested on both where it is: in services and
storage.
"""

from typing import Final

import pytest

from tests.api.management import mine, served, switch, theirs
from tests.contexts import account, clock, ctx, owner, settings

__all__ = ["account", "clock", "ctx", "mine", "owner", "served", "settings", "switch", "theirs"]

ON_BOTH: Final = (
    "operator.test_accounts",
    "operator.test_destinations",
    "operator.test_health",
    "operator.test_jobs",
    "operator.test_queue",
    "operator.test_sources",
    "test_health",
    "v1.test_messages",
    "v1.test_requests",
    "v1.test_tenancy",
    "v1.test_webhook_listeners",
)


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """The address of a store without rows."""
    return str(request.getfixturevalue(f"clean_{request.param}_url"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Say on which engines a test runs."""
    if "database_url" in metafunc.fixturenames:
        module = metafunc.module.__name__.removeprefix(f"{__package__}.")
        engines = ["sqlite", "postgres"] if module in ON_BOTH else ["sqlite"]
        metafunc.parametrize("database_url", engines, indirect=True)
