"""The engine is tested on a real store: SQLite (`url`), or both engines where it matters (`database_url`)."""

from pathlib import Path

import pytest

from tests.contexts import database_url

__all__ = ["database_url", "url"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The address of an empty store."""
    return f"sqlite:///{tmp_path}/postroad.db"
