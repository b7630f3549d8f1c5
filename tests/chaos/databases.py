"""Where a trial keeps its data, and what can happen to a database server beside the deaths of its clients."""

import asyncio
import contextlib
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.chaos import killing
from tests.postgres_server import PostgresServer
from tests.reliability.test_kill import MortalServer

# How long a server that was shut down is away: its clients have to wait for it.
AWAY_SECONDS: Final = 1.0


@contextlib.contextmanager
def opened(engine: str, folder: Path) -> Iterator[tuple[str, killing.Disturbances]]:
    """An empty database for the time of the block: its address, and what can happen to it."""
    if engine == "sqlite":
        yield f"sqlite:///{folder / 'postroad.db'}", {}
        return
    with MortalServer() as server:
        url = server.create_database()
        yield url, {"connections cut": cutting(server, url), "server shut down at once": _crashing(server)}


def cutting(server: PostgresServer, url: str) -> killing.Happening:
    """Cut some of the connections, as a network does."""
    name = urllib.parse.urlsplit(url).path.removeprefix("/")
    chosen = f"datname = '{name}' AND pid <> pg_backend_pid() AND random() < 0.5"
    statement = f"SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {chosen}"  # noqa: S608 - ours

    async def cut() -> None:
        await asyncio.to_thread(server.execute, statement)

    return cut


def _crashing(server: MortalServer) -> killing.Happening:
    """Shut the server down without a chance to tidy up, and start it again after a moment."""

    async def crash() -> None:
        await asyncio.to_thread(server.crash)
        await asyncio.sleep(AWAY_SECONDS)
        await asyncio.to_thread(server.start)

    return crash
