"""Accounts that send to the same destination take turns, however much one of them has queued before."""

import pytest

from tests.delivery import engines, piles
from tests.reliability import delivering, sinks

MUCH, LITTLE = 5_000, 5
DOMAIN = "example.net"


@pytest.mark.parametrize("pool_connections", [2, 20])
async def test_a_little_mail_does_not_wait_behind_much_of_another_account(
    database_url: str, pool_connections: int
) -> None:
    async with sinks.running() as sink:
        tables = delivering.sections(sink, pool_connections=pool_connections)
        async with delivering.post_office(database_url, tables) as post:
            little = await piles.new_account(post.ctx, "Little", domain="little.example")
            much = set(await piles.pile(post.ctx, post.account_id, DOMAIN, count=MUCH))
            async with engines.running(post.ctx):
                await sink.got(1)
                before = len(sink.taken)
                addresses = await piles.pile(post.ctx, little, DOMAIN, count=LITTLE, name="little")
                await sink.got(before + MUCH // 5)
            # They were queued when some of the others were sent already; the rest of those would have taken long.
            order = [address in much for address in sink.recipients]
            last = max(sink.recipients.index(address) for address in addresses)
            assert sum(order[before:last]) < MUCH // 5
