"""Wake-ups between processes on PostgreSQL, so that work that another host left is claimed at once.

A process has an event for queued mail and one for webhook events. Where the engine of an event runs in this process, it
waits for the event, and other hosts may set it. Where it does not, the event is sent to all that have such an engine. A
process that does both tells nobody: its own engine is the first to come, and the others would only get in its way.

On SQLite, and behind a pooler, engines find the work of other processes by polling.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from postroad.roles import role
from postroad.storage import postgres_wakeups, store

# An engine pauses for as long between two claims, so more wake-ups would come to nothing.
MIN_INTERVAL_SECONDS: Final = 0.005
# How often an idle connection is tried: one that nobody uses may be gone without anybody noticing.
CHECK_SECONDS: Final = 30.0
RECONNECT_SECONDS: Final = 1.0
# The channels, and the roles whose engines wait for them.
MAIL, EVENTS = "postroad_mail", "postroad_events"
ROLES: Final = {MAIL: "delivery", EVENTS: "webhooks"}


async def start(role_context: role.RoleContext, *, names: Sequence[str]) -> role.Started:
    """Exchange wake-ups with other processes until this one stops."""

    async def work() -> None:
        if role_context.context.store.dialect == "postgres":
            await role.until_stopped(role_context, lambda given: _work(given, names))
        await role_context.stopping.wait()

    return role.Started(work)


async def _work(role_context: role.RoleContext, names: Sequence[str]) -> None:
    ctx = role_context.context
    events = {MAIL: ctx.mail_wakeup, EVENTS: ctx.webhook_wakeup}
    heard = {channel: event for channel, event in events.items() if ROLES[channel] in names}
    sent = {channel: event for channel, event in events.items() if channel not in heard}
    while True:
        try:
            async with postgres_wakeups.connected(ctx.settings.database.url) as wakeups:
                if heard and not await wakeups.listen({channel: event.set for channel, event in heard.items()}):
                    role_context.log.info(
                        "wakeups_by_polling", reason="a connection pooler keeps no session for LISTEN"
                    )
                    heard = {}
                # What came while there was no connection.
                for event in events.values():
                    event.set()
                await _send_forever(wakeups, sent)
        except store.UNAVAILABLE as error:
            role_context.log.warning("wakeups_unavailable", error=error.message)
            await asyncio.sleep(RECONNECT_SECONDS)


async def _send_forever(wakeups: postgres_wakeups.Wakeups, sent: Mapping[str, asyncio.Event]) -> None:
    """Send wake-ups until the connection is lost, which raises."""
    while True:
        await _wait_for_any([*sent.values(), wakeups.is_lost])
        channels = [channel for channel, event in sent.items() if event.is_set()]
        for channel in channels:
            sent[channel].clear()
        await wakeups.send(channels)
        await asyncio.sleep(MIN_INTERVAL_SECONDS)


async def _wait_for_any(events: Sequence[asyncio.Event]) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
