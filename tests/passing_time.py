"""Time that passes for the connections of a listener without being waited for.

Their deadlines are numbers that the listener compares with the clock, so a test that says what the clock shows needs no
short limits: these would end what comes before, whenever a busy machine stands still for a moment.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from postroad.network import listener

# Long enough for a loaded machine; a test that waits this long has failed.
TIMEOUT_SECONDS: Final = 300
# Several turns of the loop, in which what was sent before is read.
TURNS_SECONDS: Final = 0.01

T = TypeVar("T")


def pass_seconds(listening: listener.Listener, seconds: float) -> None:
    """What the listener does when so much time has passed."""
    now = asyncio.get_running_loop().time() + seconds
    for connection in list(listening._connections):
        connection.sweep(now)


async def until_one(listening: listener.Listener, is_so: Callable[[Any], bool]) -> None:
    """Wait until there is one connection, of which this is so."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while [is_so(connection) for connection in listening._connections] != [True]:
            await asyncio.sleep(0)


async def meanwhile(listening: listener.Listener, seconds: float, waiting: Coroutine[None, None, T]) -> T:
    """The result of something that waits until so much time has passed."""
    task = asyncio.create_task(waiting)
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not task.done():
            await asyncio.sleep(TURNS_SECONDS)
            await asyncio.sleep(TURNS_SECONDS)
            pass_seconds(listening, seconds)
    return await task
