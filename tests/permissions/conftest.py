"""The whole service in one process: the API, the compatible APIs, the dashboard and the operator console.

One engine is enough: permissions are decided before anything is read.
"""

import pytest

from tests.contexts import clock, ctx
from tests.dashboard.browser_client import mail, mine, prepared, served, settings, site, switch

__all__ = ["clock", "ctx", "database_url", "mail", "mine", "prepared", "served", "settings", "site", "switch"]


@pytest.fixture
def database_url(clean_sqlite_url: str) -> str:
    return clean_sqlite_url
