"""The tools are tested with a real context, through the application and the SDK's own client."""

import pytest

from tests.agents.agent_server import server
from tests.contexts import account, clock, ctx, settings

__all__ = ["account", "clock", "ctx", "server", "settings"]


@pytest.fixture
def database_url(clean_sqlite_url: str) -> str:
    """One engine: the tools have no SQL of their own."""
    return clean_sqlite_url
