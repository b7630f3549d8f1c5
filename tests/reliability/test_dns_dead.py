"""DNS that fails or does not answer: mail is accepted and waits, nothing bounces, and it goes when DNS is back."""

import functools
from pathlib import Path
from typing import Any

import pytest

from postroad.delivery import host_addresses
from postroad.network.dns import resolver
from tests import dns_server
from tests.delivery import engine_harness
from tests.dns_server import Fault
from tests.reliability import delivery_harness, service_process, sinks, whole_service

# More attempts than DNS will be away for.
RETRIES = [1] * 30


async def tried(whole: whole_service.WholeService, count: int) -> list[tuple[str, str, str, bool]]:
    """The log of attempts, when it has so many."""
    async with whole_service.open_context(whole.service.url) as ctx:
        harness = delivery_harness.DeliveryHarness(ctx, whole.account_id)

        async def is_so() -> bool:
            return len(await harness.attempts()) >= count

        await service_process.until(is_so)
        assert await harness.statuses() == {"deferred": len(whole.accepted)}
        return await harness.attempts()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_mail_waits_for_dns_that_fails_and_the_listeners_do_not(url: str, tmp_path: Path) -> None:
    async with dns_server.running({"*": Fault.SERVFAIL}) as dns:
        settings: dict[str, Any] = {"is_direct": True, "resolvers": [dns.address], "retry_seconds": RETRIES}
        async with whole_service.running_service(tmp_path, url, **settings) as whole:
            await whole.accept("first", "second")
            attempts = await tried(whole, 2)
            assert {verdict for _, verdict, _, _ in attempts} == {"retry"}, attempts
            assert all("example.net" in response for _, _, response, _ in attempts), attempts
            # Who sends or asks does not notice.
            await whole.accept("third", "fourth")
            assert (await whole.client.get(f"{whole.service.base_url}/readyz")).status_code == 200
            assert whole.sink.connections == 0
            dns.zones = engine_harness.zones_of({engine_harness.HOST: whole.sink.host})
        await whole.prove()


@pytest.mark.parametrize("fault", [Fault.SILENCE, Fault.REFUSED, Fault.GARBAGE])
async def test_mail_waits_for_dns_that_says_nothing_of_use(
    url: str, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_timeouts = functools.partial(resolver.Resolver, try_seconds=0.1, query_seconds=0.3)
    monkeypatch.setattr(resolver, "Resolver", short_timeouts)
    monkeypatch.setattr(host_addresses, "FAILURE_SECONDS", 0.1)
    async with (
        sinks.running() as sink,
        engine_harness.running_engine(url, port=sink.port, zones={"*": fault}, retry_seconds=RETRIES) as harness,
    ):
        message_id = await harness.send()
        seen = await harness.settle(message_id)
        assert (seen.recipient.status, seen.attempt.verdict) == ("deferred", "retry")
        harness.dns.zones = engine_harness.zones_of({engine_harness.HOST: sink.host})
        # The failure is remembered for a moment, which may be longer than the next attempt is away.
        for attempts in range(2, len(RETRIES)):
            harness.pass_seconds(await harness.due_in(message_id))
            seen = await harness.settle(message_id, attempts=attempts)
            if seen.recipient.status == "delivered":
                break
        assert {attempt.verdict for attempt in seen.attempts[:-1]} == {"retry"}
        assert sink.recipients == [seen.recipient.email]
        assert await harness.suppressed(seen.recipient.email) == {}
