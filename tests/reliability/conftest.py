"""A new and empty store for each story, on both engines."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reliability import engines


@pytest.fixture(params=["sqlite", "postgres"])
def make_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], engines.Engine]:
    """Makes a new and empty store whenever it is called; the one before has to be closed."""
    if request.param == "postgres":
        url = str(request.getfixturevalue("postgres_url"))
        engines.migrate(url)
        return lambda: engines.PostgresEngine(url)
    numbers, template = itertools.count(), tmp_path / "template.db"
    engines.migrate(f"sqlite:///{template}")
    return lambda: engines.SqliteEngine(tmp_path / f"run-{next(numbers)}", template)
