"""What the engines' walks share: the rests between two steps, and an end within the grace time."""

import asyncio
import contextlib
from typing import Final

# Between two claims, so that under load each takes many: a transaction costs the same for one row as for a hundred.
MIN_PAUSE_SECONDS: Final = 0.005
MAX_PAUSE_SECONDS: Final = 1.0
# Recording gets what is left of the grace time, but at least this: a store that works needs a few milliseconds.
RECORDING_SECONDS: Final = 2.0
_MILLISECONDS: Final = 1_000


class GracePeriod:
    """The time that a stopping engine has for everything together; it runs from the making of this."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + seconds

    @property
    def remaining(self) -> float:
        """How many seconds are left of it."""
        return max(0.0, self._until - self._loop.time())

    @property
    def remaining_for_recording(self) -> float:
        """The same for what comes last, and must have some time."""
        return max(RECORDING_SECONDS, self.remaining)


async def pause(seconds: float) -> None:
    """Pause between two steps: a moment at least, and never for long."""
    await asyncio.sleep(max(MIN_PAUSE_SECONDS, min(seconds, MAX_PAUSE_SECONDS)))


async def wait_for_work(wake: asyncio.Event, *, milliseconds: int) -> None:
    """Wait until there may be work: because somebody says so, or it is time to look what other processes have left."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(milliseconds / _MILLISECONDS):
            await wake.wait()
    wake.clear()


async def stop(walk: asyncio.Task[None], grace: GracePeriod) -> None:
    """Let the step under way end: what it has just claimed would else wait for the end of its lease."""
    await asyncio.wait([walk], timeout=grace.remaining)
    await cancel(walk)


async def cancel(task: asyncio.Task[object]) -> None:
    """End a task, and wait until it has."""
    task.cancel()
    await asyncio.wait([task])
