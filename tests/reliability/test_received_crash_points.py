"""Every moment of storing a received mail: the process dies there, before the client hears 250, and the client repeats.

Between any two statements, at any byte of the commit, and after it: the mail, its event and its count are there
together or not at all, and with the repetition they are there once.
"""

from collections.abc import Callable

import pytest

from postroad.model.events import events
from postroad.services.accounts import account_registry
from postroad.services.domains import domain_registry as domains
from postroad.services.inbound import receive, routes
from postroad.storage.engine import store
from postroad.storage.mail import received, webhooks
from tests import webhook_endpoints
from tests.inbound.received_mail import MAIL, TO
from tests.reliability import crashable_stores, faults
from tests.reliability.faults import Moment

# More statements than the transaction has: the last ones come before its commit.
STATEMENTS = 11


class CrashHarness(crashable_stores.CrashHarness):
    """With an account that has a route, and an endpoint for its mail."""

    webhook: webhooks.Webhook
    route: received.Route

    async def open(self) -> None:
        await super().open()
        ctx = self.process.ctx
        account = await account_registry.create(ctx, "Shop")
        await domains.add(ctx, account.id, "example.com", verified=True)
        self.route = await routes.add(ctx, account.id, TO)
        self.webhook = await webhook_endpoints.subscribe(ctx, account.id, events.EventType.RECEIVED)

    async def deliver(self, content: bytes) -> receive.Result:
        arrival = receive.Arrival(
            route=self.route,
            sender="",
            recipient=TO,
            content=content,
            client_address="192.0.2.1",
            helo="mail.example.net",
            protocol="ESMTP",
        )
        return await receive.Receiver(self.process.ctx, host="mx.example.com").receive(arrival)

    async def kept(self) -> tuple[int, int, int]:
        """Mails with their content, events, and what was counted."""
        ctx, account_id = self.process.ctx, self.route.account_id
        async with ctx.store.reading() as tx:
            found = await received.of_account(tx, account_id, before="in_~", limit=100)
            bodies = [await received.body(tx, account_id, mail.id) for mail in found]
            counted = await received.count_of_day(tx, account_id, ctx.clock() // (24 * 3600 * 1_000_000))
        assert all(bodies)
        return len(bodies), len(await webhook_endpoints.written_events(ctx, self.webhook)), counted.messages


async def test_a_death_before_the_reply_loses_nothing_and_the_repetition_adds_nothing(
    make_engine: Callable[[], crashable_stores.Engine],
) -> None:
    harness = CrashHarness(make_engine())
    await harness.open()
    try:
        for number, (moment, statements, share) in enumerate(faults.deaths(STATEMENTS)):
            content = f"X-Number: {number}\r\n".encode() + MAIL
            fault = harness.engine.death(harness.process, moment, statements=statements, share=share)
            harness.process.store.expect(fault)
            with pytest.raises(store.UNAVAILABLE):
                await harness.deliver(content)
            await harness.restart(fault)
            kept = await harness.kept()
            assert kept in {(number,) * 3, (number + 1,) * 3}
            assert moment is Moment.DURING or (kept[0] == number + 1) == (moment is Moment.AFTER)
            result = await harness.deliver(content)
            assert result == (receive.Result.STORED if kept[0] == number else receive.Result.DUPLICATE)
            assert await harness.kept() == (number + 1,) * 3
    finally:
        await harness.close()
