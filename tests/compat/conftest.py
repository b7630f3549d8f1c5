"""Compatible APIs are tested with a real context. They have no queries of their own, so one engine is enough."""

import pytest

from tests.contexts import account, clock, ctx, settings

__all__ = ["account", "clock", "ctx", "database_url", "settings"]


@pytest.fixture
def database_url(clean_sqlite_url: str) -> str:
    return clean_sqlite_url
