"""Commands are tested on real installations.

What they do to the store is tested with the services, on both engines. Here it is SQLite, except in a module that takes
`empty` from `both_engines.py`.
"""

from pathlib import Path

import pytest

from tests.cli import cli_runner
from tests.contexts import database_url

__all__ = ["database_url"]


@pytest.fixture
def empty(tmp_path: Path, clean_sqlite_url: str) -> cli_runner.Installation:
    """An installation whose schema is there, and nothing else."""
    return cli_runner.Installation.at(tmp_path, url=clean_sqlite_url)


@pytest.fixture
def installation(empty: cli_runner.Installation) -> cli_runner.Installation:
    """An installation with one account, "Shop"."""
    empty.text("account", "create", "--name", "Shop")
    return empty
