"""`/live`: tells a page that something has changed, as server-sent events (HTML standard, section 9.2).

A stream looks at the account's pulse once a second and says `changed` when it is another one; the page then asks for
itself again, as it does when the stream begins: what happened before is not told. The streams of an account in a
process share one look. A stream ends with the session, with the service, and after some minutes: the browser opens the
next one by itself.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Final

from postroad import errors
from postroad.dashboard import site as sites
from postroad.dashboard import visits
from postroad.services import context, statistics, turns
from postroad.web import routing

LOOK_SECONDS: Final = 1.0
# Shorter than what most proxies bear, long enough that opening a new one costs nothing.
STREAM_SECONDS: Final = 300
# Open pages of one account, and of all, in a process. Each holds a connection.
STREAMS: Final = turns.Kind("live updates", of_account=20, of_process=500, retry_seconds=10)
# One person leaves places for the others of the account.
OF_PERSON: Final = turns.Kind("live updates of a person", of_account=10, of_process=500, retry_seconds=10)
# Accounts whose last pulse is kept; beyond it all are forgotten, which costs each a look.
MOST_ACCOUNTS: Final = 1_000
KIND: Final = "text/event-stream"
# nginx would otherwise collect what is to come at once.
UNBUFFERED: Final = ("X-Accel-Buffering", "no")
HELLO: Final = b"retry: 3000\n\n"
CHANGED: Final = b"event: changed\ndata:\n\n"
# A comment with every look. Only by sending something is it noticed that the browser has gone, and its place is free.
STILL_HERE: Final = b":\n\n"


class Pulses:
    """The last look at each account."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, bytes]] = {}

    async def of(self, ctx: context.Context, account_id: str) -> bytes:
        """The account's pulse, a second old at the most."""
        seen = self._seen.get(account_id)
        if seen is not None and time.monotonic() - seen[0] < LOOK_SECONDS:
            return seen[1]
        pulse = await statistics.pulse(ctx, account_id)
        if len(self._seen) >= MOST_ACCOUNTS:
            self._seen.clear()
        self._seen[account_id] = time.monotonic(), pulse
        return pulse


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The stream."""
    pulses = Pulses()

    async def show(visit: visits.Visit) -> routing.Answer:
        return routing.Answer(200, _stream(visit, pulses), headers=(UNBUFFERED,), content_type=KIND)

    return (visits.look(site, "/live", show),)


async def _stream(visit: visits.Visit, pulses: Pulses) -> AsyncGenerator[bytes, None]:
    ctx, end = visit.ctx, time.monotonic() + STREAM_SECONDS
    with turns.taken(ctx, STREAMS, visit.account_id), turns.taken(ctx, OF_PERSON, visit.user.id):
        # Before the page hears that the stream is there: whatever it then reads is not older than this.
        before = await pulses.of(ctx, visit.account_id)
        yield HELLO
        while time.monotonic() < end and not visit.site.is_stopping():
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await visits.recognise(visit.site, ctx, visit.request.headers)
                pulse = await pulses.of(ctx, visit.account_id)
            except errors.PostroadError:
                # The session is over, or the store is away: the browser asks again and is told.
                return
            yield CHANGED if pulse != before else STILL_HERE
            before = pulse
