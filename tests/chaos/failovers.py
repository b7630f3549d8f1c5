"""Failovers of PostgreSQL under load: the primary is killed, its synchronous standby promoted, another one added."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.postgres_pair import Pair


@dataclass(frozen=True, slots=True)
class Outage:
    """One failover: how long the promotion took, and for how long no mail was accepted, which includes it."""

    promotion_seconds: float
    seconds: float


@dataclass(slots=True)
class Failovers:
    """Two servers, and when each primary was killed and its standby promoted."""

    pair: Pair
    times: list[tuple[float, float]] = field(default_factory=list)

    async def fail_over(self) -> Mapping[str, int]:
        """One failover; the hosts of the service have to find the new primary by themselves."""
        loop = asyncio.get_running_loop()
        killed_at = loop.time()
        await asyncio.to_thread(self.pair.fail_over)
        self.times.append((killed_at, loop.time()))
        await asyncio.to_thread(self.pair.add_standby)
        return {"failovers": 1}


def outages(times: Sequence[tuple[float, float]], accepted_at: Sequence[float]) -> list[Outage]:
    """What each failover cost, by the moments when mail was accepted: from the last one before it to the next."""
    return [
        Outage(
            promoted_at - killed_at,
            min(at for at in accepted_at if at > promoted_at) - max(at for at in accepted_at if at < killed_at),
        )
        for killed_at, promoted_at in times
    ]
