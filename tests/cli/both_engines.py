"""An installation on SQLite and one on PostgreSQL, for modules whose commands meet what differs between them."""

from pathlib import Path

import pytest

from tests.cli import cli_runner


@pytest.fixture
def empty(tmp_path: Path, database_url: str) -> cli_runner.Installation:
    return cli_runner.Installation.at(tmp_path, url=database_url)
