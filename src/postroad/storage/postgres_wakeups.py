"""Wake-ups between hosts: NOTIFY after a commit, and LISTEN in the processes that have the work to do.

NOTIFY takes a lock of the whole server until the end of its transaction, which in a transaction that writes would make
all hosts flush to disk one after the other. So it has a transaction of its own, which nobody waits for to be on disk.
A wake-up may be lost, with its connection or with the server: whoever listens also polls.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any

from postroad.storage import postgres_connections, postgres_errors

_BEGIN = "BEGIN; SET LOCAL synchronous_commit = off; "


class Wakeups:
    """One connection for wake-ups of both directions; `is_lost` is set when it ends."""

    def __init__(self, connection: Any) -> None:  # noqa: ANN401 - untyped library
        self.is_lost = asyncio.Event()
        self._connection = connection
        connection.add_termination_listener(lambda _: self.is_lost.set())

    async def listen(self, wake: Mapping[str, Callable[[], None]]) -> bool:
        """Call these functions by channel from now on; False behind a pooler, which keeps no session for it."""
        with postgres_errors.translated():
            if await postgres_connections.is_pooled(self._connection):
                return False
            for channel, call in wake.items():
                await self._connection.add_listener(channel, lambda *_, call=call: call())
        return True

    async def send(self, channels: Collection[str]) -> None:
        """Wake up the listeners of these channels; with none, find out whether the server still answers."""
        statements = "".join(f"NOTIFY {channel}; " for channel in channels)
        with postgres_errors.translated():
            await self._connection.execute(f"{_BEGIN}{statements}COMMIT", timeout=postgres_connections.CONNECT_SECONDS)


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[Wakeups]:
    """A connection for the time of the block."""
    with postgres_errors.translated():
        connection = await postgres_connections.connect(
            url,
            timeout=postgres_connections.CONNECT_SECONDS,
            server_settings={"application_name": "postroad_wakeups"},
        )
    try:
        yield Wakeups(connection)
    finally:
        connection.terminate()
