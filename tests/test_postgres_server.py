"""The PostgreSQL that tests run on keeps its promises: separate databases, restarts, and no leftovers."""

import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

import asyncpg
import pytest

from tests.postgres_server import POLL_SECONDS, TIMEOUT_SECONDS, PostgresServer

ROOT = Path(__file__).parent.parent
OWNER = """
import sys
from tests.postgres_server import PostgresServer
server = PostgresServer()
server.start()
print(server.url(), flush=True)
sys.stdin.read()
"""


async def test_a_test_gets_an_empty_database_over_asyncpg(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    try:
        assert await connection.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
        assert await connection.fetchval("SHOW server_encoding") == "UTF8"
    finally:
        await connection.close()


def test_databases_are_separate(postgres_server: PostgresServer, postgres_url: str) -> None:
    other = postgres_server.create_database()
    postgres_server.execute("CREATE TABLE here (n int)", url=postgres_url)
    with pytest.raises(RuntimeError, match="does not exist"):
        postgres_server.execute("SELECT * FROM here", url=other)
    postgres_server.drop_database(other)


async def test_a_database_can_be_dropped_under_an_open_connection(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database()
    connection = await asyncpg.connect(url)
    postgres_server.drop_database(url)
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, ConnectionError)):
        await connection.fetchval("SELECT 1")
    connection.terminate()


async def test_a_stopped_server_refuses_and_a_restarted_one_has_its_data() -> None:
    with PostgresServer() as server:
        server.execute("CREATE TABLE kept AS SELECT 7 AS n")
        server.stop()
        with pytest.raises(OSError, match="No such file"):
            await asyncpg.connect(server.url())
        server.start()
        assert server.execute("SELECT n FROM kept") == "7"


def test_a_closed_server_leaves_nothing() -> None:
    with PostgresServer() as server:
        folder = _folder(server.url())
        assert folder.is_dir()
    assert not folder.exists()


def test_a_server_that_cannot_start_says_why() -> None:
    server = PostgresServer({"no_such_setting": "1"})
    try:
        with pytest.raises(RuntimeError, match="no_such_setting"):
            server.start()
    finally:
        server.close()


def test_a_server_ends_when_its_owner_is_killed() -> None:
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        folder = _folder(owner.stdout.readline().strip())
        assert (folder / "data" / "postmaster.pid").exists()
        owner.kill()
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    assert not folder.exists()


def _folder(url: str) -> Path:
    return Path(urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["host"][0])
