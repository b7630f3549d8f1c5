"""The extensions are tested with a real context. They have no queries of their own, so one engine is enough.

Where an extension is not installed, its tests are left out, and those of all together as well.
"""

from importlib import metadata

import pytest

from postroad import extensions
from tests import conftest as service_tests
from tests.conftest import (
    _same_environment_everywhere,
    _shortcuts,
    clean_databases,
    clean_file,
    clean_postgres_url,
    clean_sqlite_url,
    postgres_server,
    postgres_url,
    real_disk,
    real_files,
    real_keys,
    real_passwords,
)
from tests.contexts import account, clock, ctx, settings

__all__ = [
    "_same_environment_everywhere",
    "_shortcuts",
    "account",
    "clean_databases",
    "clean_file",
    "clean_postgres_url",
    "clean_sqlite_url",
    "clock",
    "ctx",
    "database_url",
    "postgres_server",
    "postgres_url",
    "real_disk",
    "real_files",
    "real_keys",
    "real_passwords",
    "settings",
]

ALL = {"mcp", "postmark", "resend"}
MISSING = ALL - {entry.name for entry in metadata.entry_points(group=extensions.GROUP)}
collect_ignore = [*MISSING, *(["tests"] if MISSING else [])]


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.is_registered(service_tests):  # a run of these tests alone
        service_tests.pytest_configure(config)


@pytest.fixture
def database_url(clean_sqlite_url: str) -> str:
    return clean_sqlite_url
