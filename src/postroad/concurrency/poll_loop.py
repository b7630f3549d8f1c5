"""What the engines' poll loops share: pauses between steps, and a stop within the grace period."""

import asyncio
from typing import Final

# Between two claims, so that each takes many under load: a transaction costs the same for one row as for a hundred.
MIN_PAUSE_SECONDS: Final = 0.005
MAX_PAUSE_SECONDS: Final = 1.0
# Recording gets the rest of the grace period, but at least this: a healthy database needs a few milliseconds.
RECORDING_SECONDS: Final = 2.0
_MILLISECONDS: Final = 1_000


class GracePeriod:
    """The total time that a stopping engine has, counted from its creation."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + seconds

    @property
    def remaining(self) -> float:
        return max(0.0, self._until - self._loop.time())

    @property
    def remaining_for_recording(self) -> float:
        """Seconds left for recording, the last step, which always gets some time."""
        return max(RECORDING_SECONDS, self.remaining)


async def pause(seconds: float) -> None:
    """Pause between two steps, for a bounded time."""
    await asyncio.sleep(max(MIN_PAUSE_SECONDS, min(seconds, MAX_PAUSE_SECONDS)))


async def wait_for_work(wake: asyncio.Event, *, milliseconds: int) -> None:
    """Wait for a wake-up, or until it is time to look for work that other processes left."""
    alarm = asyncio.get_running_loop().call_later(milliseconds / _MILLISECONDS, wake.set)
    try:
        await wake.wait()
    finally:
        alarm.cancel()
    wake.clear()


async def stop(walk: asyncio.Task[None], grace: GracePeriod) -> None:
    """Let the current step end: rows that it has just claimed would otherwise wait for their lease to expire."""
    await asyncio.wait([walk], timeout=grace.remaining)
    await cancel(walk)


async def cancel(task: asyncio.Task[object]) -> None:
    task.cancel()
    await asyncio.wait([task])
