"""Where a trial keeps its data, and what can happen to a database server beside the deaths of its clients."""

import asyncio
import contextlib
import random
import urllib.parse
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.chaos import failovers, fault_injection, networks
from tests.postgres_pair import Pair
from tests.postgres_server import PostgresServer
from tests.reliability.crashable_stores import CrashingServer

# How long a server that was shut down is away: its clients have to wait for it.
AWAY_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Database:
    """Where it is, what can happen to it, and the network before it, if there is one."""

    url: str
    disturbances: Sequence[fault_injection.Disturbance] = ()
    network: networks.Network | None = None
    servers: failovers.Failovers | None = None


@contextlib.asynccontextmanager
async def opened(engine: str, folder: Path, chance: random.Random) -> AsyncIterator[Database]:
    """An empty database for the time of the block."""
    if engine == "sqlite":
        yield Database(f"sqlite:///{folder / 'postroad.db'}")
        return
    if engine == "failover":
        with Pair() as pair:
            servers = failovers.Failovers(pair)
            yield Database(pair.create_database(), (servers.fail_over,), servers=servers)
        return
    with CrashingServer() as server:
        url = server.create_database()
        async with networks.between(url, chance) as (between, url_behind):
            happenings = (
                between.reset_some,
                between.lose_commits,
                cutting(server, url),
                between.hold,
                between.refuse,
                _crashing(server),
                between.lose_commits,
                between.leave_half_open,
            )
            yield Database(url_behind, happenings, between)


def cutting(server: PostgresServer, url: str) -> fault_injection.Disturbance:
    """Let the server end some of its connections, as an administrator does."""
    name = urllib.parse.urlsplit(url).path.removeprefix("/")
    chosen = f"datname = '{name}' AND pid <> pg_backend_pid() AND random() < 0.5"
    statement = f"SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {chosen}"  # noqa: S608 - ours

    async def cut() -> Mapping[str, int]:
        return {"connections ended by the server": int(await asyncio.to_thread(server.execute, statement))}

    return cut


def _crashing(server: CrashingServer) -> fault_injection.Disturbance:
    """Shut the server down without a chance to tidy up, and start it again after a moment."""

    async def crash() -> Mapping[str, int]:
        await asyncio.to_thread(server.crash)
        await asyncio.sleep(AWAY_SECONDS)
        await asyncio.to_thread(server.start)
        return {"immediate shutdowns of the server": 1}

    return crash
