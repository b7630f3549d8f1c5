"""A running service with all roles, a mailbox simulator as its destination, and webhook endpoints.

Simulator and endpoints live on an event loop of their own, in a thread, so that tests can be plain. Endpoints are
https://127.0.0.2, which this one installation calls public; everything else about webhooks is as in production, but for
delays of one second. Every test has an account of its own, because an account has one endpoint.
"""

import asyncio
import contextlib
import dataclasses
import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx
import trustme

from postroad import context
from postroad.services.messages import dev_inbox
from postroad.simulator import mailbox
from tests import webhook_server
from tests.conformance import live_service

T = TypeVar("T")
ROLES: Final = ("api", "delivery", "webhooks", "maintenance")
OWN_NAME: Final = "mail.postroad.example"
CREDITS: Final = 1_000
# Two delays: recipients are tried three times, and that is when the simulator accepts those that it has deferred.
DELIVERY: Final = (
    '[[upstreams]]\nname = "simulator"\nhost = "{host}"\nport = {port}\ntls = "off"\n'
    "[delivery]\nretry_seconds = [1, 1]\n"
)
# Six delays as in production, only shorter.
WEBHOOKS: Final = (
    '[webhooks]\nallow_private = ["127.0.0.2/32"]\nca_file = "{ca_file}"\n'
    "retry_seconds = [1, 1, 1, 1, 1, 1]\n[testing]\npoll_milliseconds = 50\n"
)
FINAL: Final = {"delivered", "bounced", "failed"}


class Background:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it there, for a bounded time."""
        return asyncio.run_coroutine_threadsafe(_bounded(work), self._loop).result()

    @contextlib.contextmanager
    def entering(self, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """What a manager gives, for the time of the block."""
        value = self.call(_enter(manager))
        try:
            yield value
        finally:
            self.call(_leave(manager))

    def close(self) -> None:
        """End the loop; what runs on it has ended."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _bounded(work: Coroutine[Any, Any, T]) -> T:
    async with asyncio.timeout(live_service.TIMEOUT_SECONDS):
        return await work


async def _enter(manager: AbstractAsyncContextManager[T]) -> T:
    return await manager.__aenter__()


async def _leave(manager: AbstractAsyncContextManager[Any]) -> None:
    await manager.__aexit__(None, None, None)


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """A request that an endpoint got."""

    request: webhook_server.ReceivedRequest

    @property
    def event(self) -> dict[str, Any]:
        """What its body says."""
        event: dict[str, Any] = json.loads(self.request.body)
        return event

    @property
    def data(self) -> dict[str, Any]:
        """The recipient's detail."""
        data: dict[str, Any] = self.event["data"]
        return data

    @property
    def signature(self) -> str:
        """The value of the header."""
        return self.request.headers["service-signature"]

    @property
    def signed_at(self) -> int:
        """The `t` of the signature."""
        return int(self.signature.split(",")[0].removeprefix("t="))


@dataclass(frozen=True, slots=True)
class WebhookListener:
    """An endpoint."""

    background: Background
    receiver: webhook_server.WebhookServer

    @property
    def url(self) -> str:
        """Where it listens."""
        return self.receiver.literal_url

    def answer(self, answer: webhook_server.Answer) -> None:
        """What it says from now on."""
        self.receiver.answer = answer

    def events(self) -> list[ReceivedEvent]:
        """What it has received until now."""
        return [ReceivedEvent(request) for request in list(self.receiver.requests)]

    def wait_for_events(self, count: int = 1) -> list[ReceivedEvent]:
        """What it has received, as soon as it is so much; more is a failure."""
        self.background.call(self.receiver.received(count))
        told = self.events()
        assert len(told) == count, [one.event for one in told]
        return told


@dataclass(frozen=True, slots=True)
class Customer:
    """An account of a running service, and what it can do."""

    service: live_service.Service
    installation: "Installation"

    @property
    def account(self) -> live_service.Account:
        """The account."""
        return self.service.mine

    def ask(self, method: str, path: str = "", *, authorization: str | None = None, **rest: Any) -> httpx.Response:
        """A request to `/v1/webhook` and what is below it, as the owner unless told otherwise."""
        fields = {"Authorization": authorization or self.account.owner}
        return self.service.client.request(method, f"/v1/webhook{path}", headers=fields, **rest)

    def get(self, method: str, path: str = "", *, status: int = 200, **rest: Any) -> dict[str, Any]:
        """The body of an answer that has to be good."""
        response = self.ask(method, path, **rest)
        assert response.status_code == status, response.text
        body: dict[str, Any] = response.json()
        assert body["request_id"] == response.headers["x-request-id"]
        return body

    def subscribe(self, url: str, **fields: Any) -> str:
        """Make the endpoint; its secret."""
        secret: str = self.get("PUT", json={"url": url, **fields})["secret"]
        return secret

    def send(self, *to: str, **changes: Any) -> dict[str, Any]:
        """The 202 of a message to these."""
        return self.service.accept(from_=f"shop@{self.account.domain}", to=list(to), **changes)

    def recipients(self, message_id: str) -> list[dict[str, Any]]:
        """A message's recipients, all of them final."""

        def final() -> list[dict[str, Any]] | None:
            found: list[dict[str, Any]] = self.service.read(message_id)["recipients"]
            return found if all(one["status"] in FINAL for one in found) else None

        return until(final)

    def deliveries(self, **query: Any) -> list[dict[str, Any]]:
        """The log."""
        found: list[dict[str, Any]] = self.get("GET", "/deliveries", params=query)["deliveries"]
        return found

    def ended(self, count: int = 1, **query: Any) -> list[dict[str, Any]]:
        """The log, as soon as it has so many entries and none of them is pending."""

        def over() -> list[dict[str, Any]] | None:
            found = self.deliveries(**query)
            return found if len(found) == count and all(one["status"] != "pending" for one in found) else None

        return until(over)


@dataclass(frozen=True, slots=True)
class Installation:
    """A service, and what stands around it."""

    service: live_service.Service
    background: Background
    authority: trustme.CA

    def customer(self) -> Customer:
        """A new account with credits and a domain of its own."""
        name = uuid.uuid4().hex[:12]

        async def make(ctx: context.Context) -> live_service.Account:
            return await live_service.make_account(ctx, name, domain=f"{name}.example", amount=CREDITS)

        account = self.service.installation.ask(make)
        return Customer(dataclasses.replace(self.service, mine=account), self)

    @contextlib.contextmanager
    def listener(self, **options: Any) -> Iterator[WebhookListener]:
        """An endpoint whose certificate the service trusts, for the time of the block."""
        with self.background.entering(webhook_server.running(authority=self.authority, **options)) as receiver:
            yield WebhookListener(self.background, receiver)


def until(ask: Callable[[], T | None]) -> T:
    """Ask until there is an answer, for a bounded time."""
    deadline = time.monotonic() + live_service.TIMEOUT_SECONDS
    while (answer := ask()) is None:
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(live_service.POLL_SECONDS)
    return answer


@contextlib.contextmanager
def installed(folder: Path, *, url: str, settings: str) -> Iterator[Installation]:
    """A service on the store behind the URL; when it ends, its log may hold no secret of a webhook."""
    background = Background()
    authority = trustme.CA()
    ca_file = folder / "authority.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    mail = dev_inbox.Inbox(clock=context.system_clock, entropy=os.urandom)
    failures: list[Exception] = []
    simulator = mailbox.serve(mail, host="127.0.0.1", port=0, failed=failures.append)
    try:
        with background.entering(simulator) as (host, port):
            chosen = (
                f'base_url = "https://{OWN_NAME}"\n'
                + settings
                + DELIVERY.format(host=host, port=port)
                + WEBHOOKS.format(ca_file=ca_file)
            )
            with live_service.running(folder, url=url, settings=chosen, roles=ROLES) as service:
                yield Installation(service, background, authority)
    finally:
        background.close()
    assert failures == []
    assert "whsec_" not in (folder / "log").read_text()
