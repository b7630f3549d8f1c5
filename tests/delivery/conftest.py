"""Deliveries are tested on a real store: SQLite (`url`), or both engines where it matters (`database_url`)."""

import pytest

from tests.contexts import database_url

__all__ = ["database_url", "url"]


@pytest.fixture
def url(clean_sqlite_url: str) -> str:
    """The address of an empty store."""
    return clean_sqlite_url
