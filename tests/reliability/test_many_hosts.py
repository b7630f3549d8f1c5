"""Seven processes on one PostgreSQL, as on seven hosts: two with listeners, four that deliver, one that sends webhooks.

Together they do what one does: every recipient gets one copy and every event is sent once, a host that stops hands its
work to the others at once, and a revoked credential is refused within a second.
"""

import asyncio
import base64
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from postroad import context
from postroad.model.people import callers
from postroad.services.people import api_keys, credentials, users
from tests import contexts, webhook_server
from tests.reliability import (
    delivery_harness,
    service_process,
    sinks,
    submission_service,
    webhook_processes,
    whole_service,
)
from tests.reliability.sinks import Point

DELIVERERS = 4
LISTENER_HOSTS = 2
MESSAGES = 100
AT_ONCE = 20
# Few, so that a host holds more than it is sending.
CONNECTIONS = 2
HELD_BACK = 60
# Longer than the test: work that returns sooner was handed back.
LEASE_SECONDS = 3600
OWNER = "owner@example.com"


def recipients(number: int) -> list[str]:
    """Three, two of them at one destination."""
    return [f"ada-{number}@example.net", f"bob-{number}@example.net", f"cleo-{number}@example.org"]


@dataclass(slots=True)
class Hosts:
    """The processes, and what the customer knows."""

    listeners: Sequence[submission_service.SubmissionService]
    deliverers: Sequence[service_process.Service]
    webhook_sender: service_process.Service
    post: delivery_harness.DeliveryHarness
    login: tuple[str, str]
    client: httpx.AsyncClient
    addresses: list[str] = field(default_factory=list)
    numbers: Callable[[], int] = field(default_factory=lambda: itertools.count().__next__)

    async def send(self, count: int) -> None:
        """So many messages, to the listeners in turn."""
        await asyncio.gather(*(self._send(self.numbers()) for _ in range(count)))

    async def _send(self, number: int) -> None:
        to = recipients(number)
        response = await self.client.post(
            f"{self.listeners[number % LISTENER_HOSTS].base_url}/emails",
            json={"from": submission_service.SENDER, "to": to, "subject": f"{number}", "text": "Hello"},
            auth=self.login,
            headers={"Idempotency-Key": f"{number}"},
        )
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
            # It waited for the lock for longer than clocks may differ, so its host seems to be behind.
            await asyncio.sleep(int(response.headers["Retry-After"]))
            await self._send(number)
            return
        assert response.status_code == 202, response.text
        self.addresses += to

    async def stop(self) -> None:
        """All stop in order, and none had a fault of its own."""
        everybody = [
            host for host in (*self.listeners, *self.deliverers, self.webhook_sender) if host.process.poll() is None
        ]
        assert await asyncio.gather(*(host.stop() for host in everybody)) == [0] * len(everybody)
        assert [host.errors() for host in (*self.listeners, *self.deliverers, self.webhook_sender)] == [[]] * 7


@contextlib.asynccontextmanager
async def running_listeners(folder: Path, url: str) -> AsyncIterator[list[submission_service.SubmissionService]]:
    """Two processes with the HTTP and the SMTP listener."""
    sections = delivery_harness.as_toml({"submission": whole_service.SUBMISSION})
    async with contextlib.AsyncExitStack() as stack:
        listeners = []
        for number in range(LISTENER_HOSTS):
            own = folder / f"listener-{number}"
            own.mkdir()
            listener = submission_service.SubmissionService(own, url, roles=("api", "submission"), sections=sections)
            await stack.enter_async_context(service_process.ending(listener))
            listeners.append(listener)
        await asyncio.gather(*(listener.start() for listener in listeners))
        yield listeners


@contextlib.asynccontextmanager
async def seven_hosts(folder: Path, url: str, sink: sinks.Sink, receiver_url: str) -> AsyncIterator[Hosts]:
    """All of them, and an account with an endpoint."""
    tables = delivery_harness.sections(
        sink, pool_connections=CONNECTIONS, lease_seconds=LEASE_SECONDS, grace_seconds=30
    )
    async with contextlib.AsyncExitStack() as stack:
        ctx = await stack.enter_async_context(delivery_harness.open_context(url, webhook_processes.sections()))
        account_id, login = await submission_service.open_account(ctx)
        await webhook_processes.subscribe(ctx, account_id, receiver_url)
        deliverers = [
            await stack.enter_async_context(delivery_harness.process(folder / f"deliverer-{number}", url, tables))
            for number in range(DELIVERERS)
        ]
        webhook_sender = await stack.enter_async_context(
            webhook_processes.process(folder / "teller", url, webhook_processes.sections())
        )
        listeners = await stack.enter_async_context(running_listeners(folder, url))
        await asyncio.gather(*(host.start() for host in (*deliverers, webhook_sender)))
        client = await stack.enter_async_context(
            httpx.AsyncClient(timeout=service_process.TIMEOUT_SECONDS, trust_env=False)
        )
        yield Hosts(
            listeners, deliverers, webhook_sender, delivery_harness.DeliveryHarness(ctx, account_id), login, client
        )


def delivered(host: service_process.Service) -> int:
    return len(webhook_processes.logged_events(host, "recipient_delivered"))


async def test_everybody_takes_part_and_a_host_that_stops_hands_its_work_back_at_once(
    clean_postgres_url: str, tmp_path: Path
) -> None:
    async with (
        sinks.running() as sink,
        webhook_server.running(tls=False) as receiver,
        seven_hosts(tmp_path, clean_postgres_url, sink, receiver.url) as hosts,
    ):
        async with asyncio.timeout(service_process.TIMEOUT_SECONDS):
            while len(hosts.addresses) < 3 * MESSAGES or not all(delivered(host) for host in hosts.deliverers):
                await hosts.send(AT_ONCE)

        # Everybody holds more than is on its way when one of them has to go.
        await hosts.post.finished()
        sink.hold(Point.CONTENT)
        await hosts.send(HELD_BACK)
        leaving = hosts.deliverers[0]
        await service_process.until(lambda: holds(hosts.post, leaving, more_than=3 * CONNECTIONS))
        leaving.process.terminate()
        await webhook_processes.logged(leaving, "stopping")
        sink.release(Point.CONTENT)
        assert await leaving.ended() == 0
        await hosts.post.finished()
        await webhook_processes.got(receiver, len(hosts.addresses))

        await hosts.stop()
        await hosts.post.prove(hosts.addresses, sink)
        await webhook_processes.prove_log(hosts.post.ctx, hosts.post.account_id, receiver)
        assert len(webhook_processes.bodies(receiver)) == len(hosts.addresses)
        assert sum(delivered(host) for host in hosts.deliverers) == len(hosts.addresses)
        for host in hosts.deliverers:
            assert webhook_processes.logged_events(host, "previous_attempt_unrecorded") == []


async def holds(post: delivery_harness.DeliveryHarness, host: service_process.Service, *, more_than: int) -> bool:
    """Whether a process has more recipients under leases than it can be sending."""
    workers = Counter((row.worker or "::").split(":")[1] for row in await post.rows())
    return workers[str(host.process.pid)] > more_than


@dataclass(frozen=True, slots=True)
class Customer:
    """Somebody who sends in three ways, and has a session open at every listener with each of two credentials."""

    account_id: str
    key_id: str
    doomed_id: str
    # The key, the credential that stays, and the one that does not.
    fields: tuple[str, str, str]
    sessions: list[tuple[submission_service.Session, submission_service.Session]]
    numbers: Callable[[], int]

    async def codes(
        self, client: httpx.AsyncClient, listener: submission_service.SubmissionService
    ) -> list[tuple[int, str]]:
        """The result of each way of sending over HTTP to a listener."""
        responses = []
        for way in self.fields:
            body = {"from": submission_service.SENDER, "to": ["ada@example.net"], "subject": "Hello", "text": "Hello"}
            headers = {"Idempotency-Key": f"{self.numbers()}", "Authorization": way}
            responses.append(await client.post(f"{listener.base_url}/emails", json=body, headers=headers))
        return [(response.status_code, response.json().get("code", "")) for response in responses]

    async def replies(self, number: int) -> list[int]:
        """The results of sending in the sessions at a listener."""
        return [(await session.send(submission_service.content("Hello"))).code for session in self.sessions[number]]


async def open_customer(
    ctx: context.Context, listeners: Sequence[submission_service.SubmissionService], stack: contextlib.AsyncExitStack
) -> Customer:
    """With an owner whose password is that of the tests."""
    account_id, kept = await submission_service.open_account(ctx)
    key, secret = await api_keys.create(
        ctx, account_id, credential_id=None, name="key", scopes=frozenset({callers.Permission.SEND})
    )
    doomed, password = await credentials.create(ctx, account_id, "doomed")
    await users.create(ctx, account_id, email=OWNER, password=contexts.PASSWORD, role=callers.Role.OWNER)
    logins = (kept, (doomed.username, password))
    sessions = []
    for listener in listeners:
        opened = [await submission_service.Session.open(listener.smtp) for _ in logins]
        for session, login in zip(opened, logins, strict=True):
            stack.callback(session.close)
            assert (await session.log_in(login)).code == 235
        sessions.append((opened[0], opened[1]))
    fields = (f"Bearer {secret}", basic(logins[0]), basic(logins[1]))
    return Customer(account_id, key.id, doomed.id, fields, sessions, itertools.count().__next__)


async def test_what_is_revoked_at_one_host_is_refused_at_all_listeners_within_a_second(
    clean_postgres_url: str, tmp_path: Path
) -> None:
    async with (
        service_process.inside(clean_postgres_url) as ctx,
        running_listeners(tmp_path, clean_postgres_url) as listeners,
        httpx.AsyncClient(timeout=service_process.TIMEOUT_SECONDS, trust_env=False) as client,
        contextlib.AsyncExitStack() as stack,
    ):
        customer = await open_customer(ctx, listeners, stack)
        for number, listener in enumerate(listeners):
            assert await customer.codes(client, listener) == [(202, "")] * 3
            assert await customer.replies(number) == [250, 250]

        # A key by an operator, and a credential by another listener.
        assert (await listeners[0].command("apikey", "revoke", customer.key_id))[0] == 0
        await delete_credential(client, listeners[1], customer.doomed_id)
        await asyncio.sleep(1)  # the promise itself: whoever comes later is refused
        dead = (401, "unauthorized")
        for number, listener in enumerate(listeners):
            assert await customer.codes(client, listener) == [dead, (202, ""), dead]
            assert [code // 100 for code in await customer.replies(number)] == [2, 5]

        assert (await listeners[0].command("account", "suspend", customer.account_id, "--reason", "Unpaid"))[0] == 0
        await asyncio.sleep(1)
        for number, listener in enumerate(listeners):
            assert await customer.codes(client, listener) == [dead, (403, "account_suspended"), dead]
            assert [code // 100 for code in await customer.replies(number)] == [5, 5]
        assert await asyncio.gather(*(listener.stop() for listener in listeners)) == [0] * LISTENER_HOSTS
        assert [listener.errors() for listener in listeners] == [[]] * LISTENER_HOSTS


async def delete_credential(
    client: httpx.AsyncClient, listener: submission_service.SubmissionService, credential_id: str
) -> None:
    login = {"email": OWNER, "password": contexts.PASSWORD}
    session = await client.post(f"{listener.base_url}/v1/auth/login", json=login)
    headers = {"Authorization": f"Bearer {session.json()['token']}"}
    deleted = await client.delete(f"{listener.base_url}/v1/credentials/{credential_id}", headers=headers)
    assert deleted.is_success, deleted.text


def basic(login: tuple[str, str]) -> str:
    """The field that HTTP has for it."""
    return "Basic " + base64.b64encode(":".join(login).encode()).decode()
