"""The whole service in one process, with a mail host and a webhook endpoint, for faults that hit all of it.

Mail is submitted over HTTP and SMTP, one recipient a message, and the subject is the idempotency key. `prove` compares
what was acknowledged with the store, the mail host and the endpoint: each message is there exactly once.
"""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from postroad import context
from tests import webhook_server
from tests.reliability import delivery_harness, service_process, sinks, submission_service, webhook_processes
from tests.webhook_server import WebhookServer

ROLES = ("api", "submission", "delivery", "webhooks", "maintenance")
SUBMISSION = {"listen": "127.0.0.1:0", "auth_without_tls": True}
# The temporary refusals that a listener may give.
UNAVAILABLE = (421, "4.3.2 service_unavailable")
BUSY = (451, "4.3.0 temporary_failure")


@dataclass(slots=True)
class WholeService:
    """A process with every role, an account that may send, and the answers that its owner got."""

    service: submission_service.SubmissionService
    sink: sinks.Sink
    receiver: WebhookServer
    account_id: str
    login: tuple[str, str]
    client: httpx.AsyncClient
    # The ids of messages by their keys.
    accepted: dict[str, str] = field(default_factory=dict)

    async def post(self, key: str, *, base_url: str = "", to: Sequence[str] = ()) -> httpx.Response:
        """Send by HTTP, once."""
        body = {"from": submission_service.SENDER, "to": list(to) or [address(key)], "subject": key, "text": "Hello"}
        response = await self.client.post(
            f"{base_url or self.service.base_url}/emails", json=body, auth=self.login, headers={"Idempotency-Key": key}
        )
        if response.status_code == 202:
            assert self.accepted.setdefault(key, response.json()["id"]) == response.json()["id"]
        return response

    async def hand_in(self, key: str) -> tuple[int, str]:
        """Send by SMTP, once; the code of the reply, and its first words."""
        session = await submission_service.Session.open(self.service.smtp)
        try:
            reply = await session.log_in(self.login)
            for octets in (
                f"MAIL FROM:<{submission_service.SENDER}>\r\n".encode(),
                f"RCPT TO:<{address(key)}>\r\n".encode(),
                b"DATA\r\n",
                submission_service.content(key, key=key),
            ):
                if reply.code >= submission_service.REFUSED_FROM:
                    break
                reply = await session.say(octets)
        finally:
            session.close()
            await asyncio.sleep(0)  # lets the loop close the aborted transport
        if reply.code == submission_service.ACCEPTED:
            assert self.accepted.setdefault(key, reply.message_id) == reply.message_id
        return reply.code, reply.text.partition(":")[0]

    async def accept(self, *keys: str) -> None:
        """Send by HTTP and by SMTP in turn; all are accepted."""
        for number, key in enumerate(keys):
            if number % 2:
                assert (await self.hand_in(key))[0] == submission_service.ACCEPTED
            else:
                response = await self.post(key)
                assert response.status_code == 202, response.text

    async def refuse(self, *keys: str) -> None:
        """Both listeners refuse, and temporarily."""
        for number, key in enumerate(keys):
            if number % 2:
                assert await self.hand_in(key) in {UNAVAILABLE, BUSY}
            else:
                response = await self.post(key)
                assert response.status_code == 503, response.text
                service_process.check_refusal(response, 503, response.json()["code"])

    async def under_way(self, in_flight: str, reported: str) -> webhook_processes.Gate:
        """One message whose final dot the mail host does not answer, and one event that the endpoint does not."""
        self.receiver.answer = gate = webhook_processes.Gate()
        before = len(self.receiver.requests)
        await self.accept(reported)
        await webhook_processes.got(self.receiver, before + 1)
        self.sink.hold(sinks.Point.CONTENT)
        await self.accept(in_flight)
        await self.sink.waiting(sinks.Point.CONTENT)
        return gate

    async def says(self, event: str) -> None:
        """Until the process has said this."""
        await webhook_processes.logged(self.service, event)

    async def finished(self) -> None:
        """Until every recipient is final and its event was delivered."""
        async with open_context(self.service.url) as ctx:
            post = delivery_harness.DeliveryHarness(ctx, self.account_id)
            await post.finished()
            async with asyncio.timeout(service_process.TIMEOUT_SECONDS):
                while len(webhook_processes.bodies(self.receiver)) < sum((await post.statuses()).values()):
                    await asyncio.sleep(service_process.POLL_SECONDS)

    async def prove(self, *, doubts: Mapping[str, int] | None = None) -> None:
        """What was acknowledged is stored, delivered and reported once, and nothing else is."""
        async with open_context(self.service.url) as ctx:
            assert dict(await service_process.stored_messages(ctx, self.account_id)) == self.accepted
            addresses = [address(key) for key in self.accepted]
            await delivery_harness.DeliveryHarness(ctx, self.account_id).prove(addresses, self.sink, doubts=doubts)
            await webhook_processes.prove_log(ctx, self.account_id, self.receiver)
        reported = [json.loads(got[0])["data"] for got in webhook_processes.bodies(self.receiver).values()]
        assert Counter(one["email_id"] for one in reported) == Counter(self.accepted.values())


def address(key: str) -> str:
    """The recipient of the message with this key."""
    return f"{key.replace(' ', '-')}@example.net"


@contextlib.asynccontextmanager
async def open_context(url: str) -> AsyncIterator[context.Context]:
    """The test's own context on the store."""
    async with delivery_harness.open_context(url, {}) as ctx:
        yield ctx


@contextlib.asynccontextmanager
async def configured_service(
    folder: Path, url: str, *, limits: Mapping[str, int] | None = None, **delivery: Any
) -> AsyncIterator[WholeService]:
    """Everything but the start of the process; it will have ended when the block does."""
    async with sinks.running() as sink, webhook_server.running(tls=False) as receiver:
        tables = {
            **webhook_processes.sections(),
            **delivery_harness.sections(sink, **delivery),
            "submission": SUBMISSION,
        }
        service = submission_service.SubmissionService(
            folder, url, roles=ROLES, sections=delivery_harness.as_toml(tables), limits=limits
        )
        async with delivery_harness.open_context(url, webhook_processes.sections()) as ctx:
            account_id, login = await submission_service.open_account(ctx)
            await webhook_processes.subscribe(ctx, account_id, receiver.url)
        async with (
            service_process.ending(service),
            httpx.AsyncClient(timeout=service_process.TIMEOUT_SECONDS, trust_env=False) as client,
        ):
            yield WholeService(service, sink, receiver, account_id, login, client)


@contextlib.asynccontextmanager
async def running_service(
    folder: Path, url: str, *before: str, limits: Mapping[str, int] | None = None, **delivery: object
) -> AsyncIterator[WholeService]:
    """A running service; in the end it stops cleanly, its store is consistent, and it logged no error."""
    async with configured_service(folder, url, limits=limits, **delivery) as whole:
        await whole.service.start(*before)
        yield whole
        await whole.finished()
        if whole.service.process.poll() is None:
            assert await whole.service.stop() == 0
        assert whole.service.errors() == []
