"""DNS that fails or does not answer: mail is accepted and waits, nothing bounces, and it goes when DNS is back."""

import functools
from pathlib import Path
from typing import Any

import pytest

from postroad.delivery import host_addresses
from postroad.network import resolver
from tests import dns_server
from tests.delivery import engines
from tests.dns_server import Fault
from tests.reliability import delivering, houses, serving, sinks

# More attempts than DNS will be away for.
RETRIES = [1] * 30


async def tried(house: houses.House, count: int) -> list[tuple[str, str, str, bool]]:
    """The log of attempts, when it has so many."""
    async with houses.look(house.door.url) as ctx:
        post = delivering.Post(ctx, house.account_id)

        async def is_so() -> bool:
            return len(await post.attempts()) >= count

        await serving.until(is_so)
        assert await post.statuses() == {"deferred": len(house.accepted)}
        return await post.attempts()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_mail_waits_for_dns_that_fails_and_the_doors_do_not(url: str, tmp_path: Path) -> None:
    async with dns_server.running({"*": Fault.SERVFAIL}) as dns:
        settings: dict[str, Any] = {"smarthost": "", "resolvers": [dns.address], "retry_seconds": RETRIES}
        async with houses.open_house(tmp_path, url, **settings) as house:
            await house.accept("first", "second")
            attempts = await tried(house, 2)
            assert {verdict for _, verdict, _, _ in attempts} == {"retry"}, attempts
            assert all("example.net" in response for _, _, response, _ in attempts), attempts
            # Who sends or asks does not notice.
            await house.accept("third", "fourth")
            assert (await house.client.get(f"{house.door.base_url}/readyz")).status_code == 200
            assert house.sink.connections == 0
            dns.zones = engines.zones_of({engines.HOST: house.sink.host})
        await house.prove()


@pytest.mark.parametrize("fault", [Fault.SILENCE, Fault.REFUSED, Fault.GARBAGE])
async def test_mail_waits_for_dns_that_says_nothing_of_use(
    url: str, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = functools.partial(resolver.Resolver, try_seconds=0.1, question_seconds=0.3)
    monkeypatch.setattr(resolver, "Resolver", impatient)
    monkeypatch.setattr(host_addresses, "FAILURE_SECONDS", 0.1)
    async with (
        sinks.running() as sink,
        engines.delivering(url, port=sink.port, zones={"*": fault}, retry_seconds=RETRIES) as post,
    ):
        message_id = await post.send()
        seen = await post.settle(message_id)
        assert (seen.recipient.status, seen.attempt.verdict) == ("deferred", "retry")
        post.dns.zones = engines.zones_of({engines.HOST: sink.host})
        # The failure is remembered for a moment, which may be longer than the next attempt is away.
        for attempts in range(2, len(RETRIES)):
            post.pass_seconds(await post.due_in(message_id))
            seen = await post.settle(message_id, attempts=attempts)
            if seen.recipient.status == "delivered":
                break
        assert {attempt.verdict for attempt in seen.attempts[:-1]} == {"retry"}
        assert sink.recipients == [seen.recipient.email]
        assert await post.suppressed(seen.recipient.email) == {}
