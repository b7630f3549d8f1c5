"""What the security cases of webhooks share: one account seen from outside, and every way in which a URL is used.

`PUBLIC` counts as public because the operator allows its network; `INSIDE` stays private. Both listen on one port. What
a test knows of a delivery is what `GET /v1/webhook/deliveries` says.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import httpx
import msgspec

from postroad.storage.mail import webhooks
from tests import dns_server, webhook_server
from tests.api import webhook_calls
from tests.api.management import AccountClients
from tests.webhooks import webhook_harness

PUBLIC: Final = webhook_server.PUBLIC
INSIDE: Final = "127.0.0.1"
# More addresses that count as public, for answers that hold many.
CALLED_PUBLIC: Final = (f"{PUBLIC}/32", "127.2.0.0/16")
OWN_NAME: Final = "post.example.net"
OWN_HOST: Final = "mx1.example.net"
# A port that is free on one address is nearly always free on another.
PORT_TRIES: Final = 20
PING_SECONDS: Final = 15
RETRY_SECONDS: Final = 5
BROKEN: Final = webhook_server.ok(500, b"broken")

Delivery = dict[str, Any]


@dataclass(frozen=True, slots=True)
class WebhookScenario:
    """The service, and the hosts around it."""

    harness: webhook_harness.WebhookHarness
    dns: dns_server.DnsServer
    public: webhook_server.WebhookServer
    inside: webhook_server.WebhookServer
    mine: AccountClients
    dialled: list[str]

    async def call(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Call the API as somebody who has just logged in, however far the clock has moved."""
        headers = await webhook_calls.logged_in(self.harness.ctx, self.mine)
        return await self.mine.nobody.request(method, path, headers=headers, **request)

    async def save(self, url: str, **members: Any) -> httpx.Response:
        """`PUT /v1/webhook`."""
        return await self.call("PUT", webhook_calls.WEBHOOK, json={"url": url, **members})

    async def subscribe(self, url: str = "") -> str:
        """A webhook, with its server's address unless told otherwise; the secret."""
        saved = await self.save(url or self.public.literal_url)
        assert saved.status_code == 200, saved.text
        return str(saved.json().get("secret", ""))

    async def endpoint(self) -> webhooks.Webhook:
        """The webhook as it is stored."""
        async with self.harness.ctx.store.reading() as tx:
            found = await webhooks.first_of(tx, self.mine.account_id)
        assert found is not None
        return found

    async def plant(self, url: str) -> None:
        """Put a URL into the store as if it had been saved under other rules."""
        endpoint = await self.endpoint()
        async with self.harness.ctx.store.transaction() as tx:
            await webhooks.update(tx, msgspec.structs.replace(endpoint, url=url))

    async def event(self, **members: Any) -> str:
        """An event to send; the id of its delivery."""
        return await self.harness.write(await self.endpoint(), **members)

    async def log(self) -> list[Delivery]:
        """The newest deliveries, as the API shows them."""
        answer = await self.call("GET", webhook_calls.DELIVERIES, params={"limit": 100})
        assert answer.status_code == 200, answer.text
        return list(answer.json()["deliveries"])

    async def delivery(self, delivery_id: str) -> Delivery:
        """One of them."""
        (found,) = [one for one in await self.log() if one["id"] == delivery_id]
        return found

    async def attempted(self, delivery_id: str, *, attempts: int = 1) -> Delivery:
        """A delivery when so many of its attempts are in the log."""
        async with asyncio.timeout(webhook_harness.TIMEOUT_SECONDS):
            while len((found := await self.delivery(delivery_id))["attempts"]) < attempts:
                await asyncio.sleep(webhook_harness.LOOK_SECONDS)
        return found

    async def send_event(self, **members: Any) -> Delivery:
        """An event to send, after its first attempt."""
        return await self.attempted(await self.event(**members))

    async def ping(self) -> Delivery:
        """A ping that does not come too soon."""
        self.harness.pass_seconds(PING_SECONDS)
        answer = await self.call("POST", webhook_calls.PING)
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["delivery"])

    async def replay(self, delivery_id: str) -> Delivery:
        """Tell something again; the new delivery after its first attempt."""
        answer = await self.call("POST", webhook_calls.replay_of(delivery_id))
        assert answer.status_code == 202, answer.text
        return await self.attempted(answer.json()["delivery"]["id"])

    async def goes_on(self) -> None:
        """See that the worker is alive, that the endpoint can make up for it, and that nobody inside has heard."""
        self.public.answer = webhook_server.OK
        assert (await self.send_event())["status"] == "succeeded"
        assert self.inside.connections == 0
        assert set(self.dialled) <= {PUBLIC}

    async def every_use(self, change: Callable[[], Awaitable[None]]) -> dict[str, str | None]:
        """Fail once at the endpoint, let something change, and use the URL in every way: why each attempt failed."""
        self.public.answer = BROKEN
        async with self.harness.delivering():
            pending = (await self.send_event())["id"]
            await change()
            self.dialled.clear()
            pinged = await self.ping()
            reported = await self.send_event()
            replayed = await self.replay(pending)
            retried = await self.attempted(pending, attempts=2)
        return {
            "ping": error(pinged),
            "delivery": error(reported),
            "replay": error(replayed),
            "retry": retried["attempts"][1]["error"],
        }


def error(delivery: Delivery) -> str | None:
    """Why the last attempt failed, where no status says so."""
    found: str | None = delivery["attempts"][-1]["error"]
    return found


def status(delivery: Delivery) -> int | None:
    """What the endpoint answered last."""
    found: int | None = delivery["attempts"][-1]["status_code"]
    return found
