"""What every test may ask for: PostgreSQL, and a process environment that is the same on every machine.

Each pytest worker starts one server when its first test asks, and stops it at the end; each test gets a database of its
own on it, new and empty or with the schema in it. A test that stops and restarts a server makes its own
`PostgresServer`.
"""

import contextlib
import gc
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import hypothesis
import pytest
import structlog

# What is imported and collected stays, so the garbage collector is off until collection ends (collection.py).
gc.disable()

# A failed assertion in a module that tests share shows its values too. It has to be said before the first import.
SHARED = {path.stem for path in Path(__file__).parent.iterdir()} - {"conftest", "__pycache__"}
pytest.register_assert_rewrite(*(f"tests.{name}" for name in SHARED))

# ruff: noqa: E402
from postroad.cli.framework import server_command
from tests import closed_servers, collection, open_resources, pgbouncer_server
from tests.browser import skip_report
from tests.browser.skip_report import pytest_terminal_summary
from tests.clean_databases import CleanDatabases, CleanFile
from tests.postgres_server import PostgresServer
from tests.reliability import profile
from tests.shortcuts import _shortcuts, real_disk, real_files, real_keys, real_passwords

__all__ = ["_shortcuts", "pytest_terminal_summary", "real_disk", "real_files", "real_keys", "real_passwords"]

# Settings of whoever runs the tests must not reach the service under test.
FOREIGN_PREFIXES = ("POSTROAD_", "PG")
FOREIGN_NAMES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})

# The time of an example is no promise of ours on a shared machine, so hypothesis does not check it. `make test` tries
# the same few examples every time, and `make test-all` many, others each time.
EXAMPLES = 40
FEW_EXAMPLES = 10
hypothesis.settings.register_profile(
    "postroad",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    print_blob=True,
    derandomize=not profile.IS_LONG,
    max_examples=EXAMPLES * profile.SCALE if profile.IS_LONG else FEW_EXAMPLES,
)


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("postroad")
    _hear_interrupts()
    _keep_bytecode()
    open_resources.install()
    closed_servers.install()
    config.pluginmanager.register(open_resources)
    config.pluginmanager.register(collection)


def _hear_interrupts() -> None:
    """A shell starts background jobs with Ctrl-C ignored, and every process that a test starts would inherit it.

    The handler is our own. asyncio would replace Python's default for every fixture and test, and putting that back
    formats the `repr` of what the fixture returned: a tenth of a second for a whole service.
    """
    signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.default_int_handler(number, frame)


def _keep_bytecode() -> None:
    """Compile once what workers and hundreds of processes import, even for who wants no such files in their folders."""
    if sys.dont_write_bytecode:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(Path(sys.prefix) / "bytecode")
        sys.dont_write_bytecode = False


@pytest.fixture(autouse=True)
def _same_environment_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(server_command, "CONFIG_FILE", Path("/nowhere/postroad.toml"))
    for name in list(os.environ):
        if name.startswith(FOREIGN_PREFIXES) or name.lower() in FOREIGN_NAMES:
            monkeypatch.delenv(name)
    yield
    if structlog.is_configured():  # by a command or role in this process; its stream may be closed already
        structlog.reset_defaults()
        logging.basicConfig(handlers=[logging.NullHandler()], force=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The server of this worker. Tests share it: stop it in no test."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a new, empty database that lives as long as the test."""
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(scope="session")
def clean_databases(postgres_server: PostgresServer) -> Iterator[CleanDatabases]:
    """The databases of this worker that are used again."""
    with contextlib.closing(CleanDatabases(postgres_server)) as databases:
        yield databases


@pytest.fixture(scope="session")
def clean_file(tmp_path_factory: pytest.TempPathFactory) -> CleanFile:
    """The file of this worker that is copied."""
    return CleanFile(tmp_path_factory.mktemp("clean"))


@pytest.fixture
def clean_postgres_url(clean_databases: CleanDatabases) -> Iterator[str]:
    """The address of a database with the current schema and without rows."""
    url = clean_databases.take()
    yield url
    clean_databases.give_back(url)


@pytest.fixture
def bouncer_url(clean_postgres_url: str, tmp_path: Path) -> Iterator[str]:
    """The address of the same database through PgBouncer in transaction mode."""
    if pgbouncer_server.program() is None:
        skip_report.skip("tests of PgBouncer", because="PgBouncer was not found", remedy=pgbouncer_server.REMEDY)
    with pgbouncer_server.before(clean_postgres_url, tmp_path) as url:
        yield url


@pytest.fixture
def clean_sqlite_url(clean_file: CleanFile, tmp_path: Path) -> str:
    """The same in a file of SQLite."""
    return clean_file.copy_to(tmp_path)
