"""No account delays another's mail, whatever its destinations do: hold on to transactions, or not answer in DNS.

In each test the hostile part never ends, so mail that waited for it would never arrive.
"""

import contextlib
import functools
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest

from postroad.delivery import dispatcher, permits
from postroad.network.dns import resolver
from tests import dns_server
from tests.delivery import bulk_queue, engine_harness
from tests.reliability import delivery_harness, profile, service_process, sinks

CONNECTIONS = 20
HOSTS = 15
# What one account may hold of the connections: four fifths.
HELD = 16
MESSAGES = 10
GOOD, NEW = "good.example", "new.example"


class Peers(NamedTuple):
    """A store, a host that is good, and one with many names that will hold."""

    harness: delivery_harness.DeliveryHarness
    dns: dns_server.DnsServer
    good: sinks.Sink
    bad: sinks.Sink


@contextlib.asynccontextmanager
async def peers(url: str, **delivery: object) -> AsyncIterator[Peers]:
    good, bad = engine_harness.loopback_addresses(2)
    zones: dns_server.Zones = {}
    for domain, address in [(GOOD, good), (NEW, good), *((hostile(number), bad) for number in range(HOSTS))]:
        zones |= engine_harness.zones_of({f"mx.{domain}": address}, domain=domain)
    async with (
        sinks.running(good) as good_sink,
        sinks.running(bad, port=good_sink.port) as bad_sink,
        dns_server.running(zones) as dns,
    ):
        tables = delivery_harness.sections(
            good_sink,
            is_direct=True,
            resolvers=[dns.address],
            connections=CONNECTIONS,
            pool_connections=4,
            grace_seconds=1,
            **delivery,
        )
        async with delivery_harness.open_harness(url, tables) as harness:
            yield Peers(harness, dns, good_sink, bad_sink)


def hostile(number: int) -> str:
    return f"{number}.attacker.example"


async def test_hosts_that_accept_at_first_and_then_hold_the_final_reply_delay_no_other_account(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with peers(url) as around, engine_harness.running(around.harness.ctx) as (running, _):
        ctx, attacker = around.harness.ctx, around.harness.account_id
        innocent = await bulk_queue.new_account(ctx, "Innocent", domain="innocent.example")
        for number in range(HOSTS):
            await bulk_queue.fill(ctx, attacker, hostile(number), count=MESSAGES)
        await around.bad.got(HOSTS * MESSAGES)
        monkeypatch.setattr(permits, "SLOW_SECONDS", 0.1)
        around.bad.hold(sinks.Point.CONTENT)
        for number in range(HOSTS):
            await bulk_queue.fill(ctx, attacker, hostile(number), count=MESSAGES, name="held")
        await around.bad.waiting(sinks.Point.CONTENT, HELD)
        # To a host that nobody knows, then to one that is known, and again to new ones when all that is held is old.
        await bulk_queue.fill(ctx, innocent, GOOD, count=1)
        await around.good.got(1)
        await bulk_queue.fill(ctx, innocent, GOOD, count=50, name="more")
        await around.good.got(51)
        queues = running._dispatcher.provider_queues.by_name

        async def are_known() -> bool:
            return not any(one._is_responsive for name, one in queues.items() if "attacker" in name and one._slots)

        await service_process.until(are_known)
        await bulk_queue.fill(ctx, innocent, NEW, count=50)
        await around.good.got(101)
        assert len(around.bad.taken) == HOSTS * MESSAGES
        await around.bad.waiting(sinks.Point.CONTENT, HELD)
        around.bad.release(sinks.Point.CONTENT)


async def test_names_that_never_answer_in_dns_delay_no_other_account(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = functools.partial(resolver.Resolver, try_seconds=600.0, query_seconds=3600.0)
    monkeypatch.setattr(resolver, "Resolver", patient)
    monkeypatch.setattr(dispatcher, "MAX_QUEUES_PER_STEP", 100)
    async with peers(url) as around:
        ctx, attacker = around.harness.ctx, around.harness.account_id
        innocent = await bulk_queue.new_account(ctx, "Innocent", domain="innocent.example")
        silent = [f"{number}.silent.example" for number in range(2 * resolver.MAX_CONCURRENT_QUERIES)]
        around.dns.zones |= dict.fromkeys(silent, dns_server.Fault.SILENCE)
        for domain in silent:
            await bulk_queue.fill(ctx, attacker, domain, count=1)
        async with engine_harness.running(ctx):

            async def asked() -> bool:
                return len(set(around.dns.questions)) >= dispatcher.MAX_CONCURRENT_LOOKUPS * 4 // 5

            await service_process.until(asked)
            await bulk_queue.fill(ctx, innocent, GOOD, count=5)
            await bulk_queue.fill(ctx, innocent, NEW, count=5)
            await around.good.got(10)


MUCH, LITTLE = 5_000 if profile.IS_LONG else 2_000, 5
DOMAIN = "example.net"


@pytest.mark.parametrize("pool_connections", [2, 20])
async def test_a_little_mail_does_not_wait_behind_much_of_another_account(url: str, pool_connections: int) -> None:
    async with sinks.running() as sink:
        tables = delivery_harness.sections(sink, pool_connections=pool_connections)
        async with delivery_harness.open_harness(url, tables) as harness:
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
