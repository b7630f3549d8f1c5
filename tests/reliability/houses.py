"""The whole service in one process, with a mail host and a receiver of webhooks around it, for days that hit all of it.

Mail goes in by both doors, one recipient a message, and the subject is the idempotency key. `prove` holds what the
doors have acknowledged against the store, the mail host and the receiver: each there exactly once.
"""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from postroad.services import context
from tests import webhook_receivers
from tests.reliability import delivering, serving, sinks, submitting, telling
from tests.webhook_receivers import Receiver

ROLES = ("api", "submission", "delivery", "webhooks", "maintenance")
SUBMISSION = {"listen": "127.0.0.1:0", "auth_without_tls": True, "grace_seconds": 5}
# What a door may say on a bad day: come back.
UNAVAILABLE = (421, "4.3.2 service_unavailable")
BUSY = (451, "4.3.0 temporary_failure")


@dataclass(slots=True)
class House:
    """A process with every role, an account that may send, and what its owner was told."""

    door: submitting.Door
    sink: sinks.Sink
    receiver: Receiver
    account_id: str
    login: tuple[str, str]
    client: httpx.AsyncClient
    # The ids of messages by their keys.
    accepted: dict[str, str] = field(default_factory=dict)

    async def post(self, key: str, *, base_url: str = "", to: Sequence[str] = ()) -> httpx.Response:
        """Send by HTTP, once."""
        body = {"from": submitting.SENDER, "to": list(to) or [address(key)], "subject": key, "text": "Hello"}
        response = await self.client.post(
            f"{base_url or self.door.base_url}/emails", json=body, auth=self.login, headers={"Idempotency-Key": key}
        )
        if response.status_code == 202:
            assert self.accepted.setdefault(key, response.json()["id"]) == response.json()["id"]
        return response

    async def hand_in(self, key: str) -> tuple[int, str]:
        """Send by SMTP, once; the code of the reply, and its first words."""
        session = await submitting.Session.open(self.door.smtp)
        try:
            reply = await session.log_in(self.login)
            for octets in (
                f"MAIL FROM:<{submitting.SENDER}>\r\n".encode(),
                f"RCPT TO:<{address(key)}>\r\n".encode(),
                b"DATA\r\n",
                submitting.content(key, key=key),
            ):
                if reply.code >= submitting.REFUSED_FROM:
                    break
                reply = await session.say(octets)
        finally:
            session.close()
            await asyncio.sleep(0)  # lets the loop tell the aborted transport
        if reply.code == submitting.TAKEN:
            assert self.accepted.setdefault(key, reply.message_id) == reply.message_id
        return reply.code, reply.text.partition(":")[0]

    async def accept(self, *keys: str) -> None:
        """Send by HTTP and by SMTP in turn; all are taken."""
        for number, key in enumerate(keys):
            if number % 2:
                assert (await self.hand_in(key))[0] == submitting.TAKEN
            else:
                response = await self.post(key)
                assert response.status_code == 202, response.text

    async def refuse(self, *keys: str) -> None:
        """Nothing is taken, by either door, and both say that it is not for good."""
        for number, key in enumerate(keys):
            if number % 2:
                assert await self.hand_in(key) in {UNAVAILABLE, BUSY}
            else:
                response = await self.post(key)
                assert response.status_code == 503, response.text
                serving.check_refusal(response, 503, response.json()["code"])

    async def under_way(self, in_flight: str, told: str) -> telling.Gate:
        """One message whose final dot the mail host does not answer, and one event that the receiver does not."""
        self.receiver.answer = gate = telling.Gate()
        before = len(self.receiver.requests)
        await self.accept(told)
        await telling.got(self.receiver, before + 1)
        self.sink.hold(sinks.Point.CONTENT)
        await self.accept(in_flight)
        await self.sink.waiting(sinks.Point.CONTENT)
        return gate

    async def says(self, event: str) -> None:
        """Until the process has said this."""
        await telling.logged(self.door, event)

    async def finished(self) -> None:
        """Until every recipient is final and its event was told."""
        async with look(self.door.url) as ctx:
            post = delivering.Post(ctx, self.account_id)
            await post.finished()
            async with asyncio.timeout(serving.PATIENCE_SECONDS):
                while len(telling.bodies(self.receiver)) < sum((await post.statuses()).values()):
                    await asyncio.sleep(serving.POLL_SECONDS)

    async def prove(self, *, doubts: Mapping[str, int] | None = None) -> None:
        """What was acknowledged is stored, delivered and told once, and nothing else is."""
        async with look(self.door.url) as ctx:
            assert dict(await serving.stored_messages(ctx, self.account_id)) == self.accepted
            addresses = [address(key) for key in self.accepted]
            await delivering.Post(ctx, self.account_id).prove(addresses, self.sink, doubts=doubts)
        told = [json.loads(got[0])["data"] for got in telling.bodies(self.receiver).values()]
        assert Counter(one["email_id"] for one in told) == Counter(self.accepted.values())
        assert telling.copies(self.receiver) == {1: len(self.accepted)}


def address(key: str) -> str:
    """The recipient of the message with this key."""
    return f"{key.replace(' ', '-')}@example.net"


@contextlib.asynccontextmanager
async def look(url: str) -> AsyncIterator[context.Context]:
    """The test's own context on the store."""
    async with delivering.open_context(url, {}) as ctx:
        yield ctx


@contextlib.asynccontextmanager
async def closed_house(
    folder: Path, url: str, *, limits: Mapping[str, int] | None = None, **delivery: object
) -> AsyncIterator[House]:
    """Everything but the start of the process; it will have ended when the block does."""
    async with sinks.running() as sink, webhook_receivers.receiving(tls=False) as receiver:
        tables = {**delivering.sections(sink, **delivery), **telling.sections(), "submission": SUBMISSION}
        door = submitting.Door(folder, url, roles=ROLES, sections=delivering.as_toml(tables), limits=limits)
        async with delivering.open_context(url, telling.sections()) as ctx:
            account_id, login = await submitting.open_account(ctx)
            await telling.subscribe(ctx, account_id, receiver.url)
        async with (
            serving.ending(door),
            httpx.AsyncClient(timeout=serving.PATIENCE_SECONDS, trust_env=False) as client,
        ):
            yield House(door, sink, receiver, account_id, login, client)


@contextlib.asynccontextmanager
async def open_house(
    folder: Path, url: str, *before: str, limits: Mapping[str, int] | None = None, **delivery: object
) -> AsyncIterator[House]:
    """A running house; in the end it stops in order, its books are right, and it had no fault of its own."""
    async with closed_house(folder, url, limits=limits, **delivery) as house:
        await house.door.start(*before)
        yield house
        await house.finished()
        if house.door.process.poll() is None:
            assert await house.door.stop() == 0
        assert house.door.errors() == []
