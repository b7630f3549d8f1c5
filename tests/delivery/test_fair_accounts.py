"""Accounts that send to the same destination take turns, however much one of them has queued before."""

import pytest

from tests.delivery import bulk_queue, engine_harness
from tests.reliability import delivery_harness, profile, sinks

MUCH, LITTLE = 5_000 if profile.IS_LONG else 3_000, 5
DOMAIN = "example.net"


@pytest.mark.parametrize("pool_connections", [2, 20])
async def test_a_little_mail_does_not_wait_behind_much_of_another_account(
    database_url: str, pool_connections: int
) -> None:
    async with sinks.running() as sink:
        tables = delivery_harness.sections(sink, pool_connections=pool_connections)
        async with delivery_harness.open_harness(database_url, tables) as harness:
            little = await bulk_queue.new_account(harness.ctx, "Little", domain="little.example")
            much = set(await bulk_queue.fill(harness.ctx, harness.account_id, DOMAIN, count=MUCH))
            async with engine_harness.running(harness.ctx):
                await sink.got(1)
                before = len(sink.taken)
                addresses = await bulk_queue.fill(harness.ctx, little, DOMAIN, count=LITTLE, name="little")
                await sink.got(before + MUCH // 5)
            # They were queued when some of the others were sent already; the rest of those would have taken long.
            order = [address in much for address in sink.recipients]
            last = max(sink.recipients.index(address) for address in addresses)
            assert sum(order[before:last]) < MUCH // 5
