"""Attachments by URL: fetched through the guard of webhooks, within bounds."""

import asyncio
import dataclasses
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from postroad import config, context
from postroad.model.mail import limits
from postroad.services.accounts import account_registry
from postroad.services.messages import lookup
from postroad.storage.people import accounts
from postroad_resend import api as resend
from postroad_resend import payload
from tests import accepted_mail, contexts, webhook_server
from tests.compat import compat_client


class HeldCommits:
    """Real commits, which begin when they may."""

    def __init__(self, real: Any) -> None:  # noqa: ANN401 - what the context has
        self._real = real
        self.waiting = asyncio.Semaphore(0)
        self.may_begin = asyncio.Event()

    async def start(self, entry: object, *, party: str, size: int, count: int) -> object:
        self.waiting.release()
        await self.may_begin.wait()
        return await self._real.start(entry, party=party, size=size, count=count)


EMAIL: dict[str, Any] = {"from": "shop@example.com", "to": "ada@example.net", "subject": "Your order", "text": "Hi"}


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    """Files on loopback may be fetched from one address, without TLS."""
    overrides = {
        "database": {"url": database_url},
        "security": {"installation_key": contexts.SECRET_KEY},
        "warmup": {"enabled": False},
        "webhooks": {"allow_private": [f"{webhook_server.PUBLIC}/32"], "allow_insecure": True},
    }
    return config.load(environment={}, overrides=overrides)


@pytest_asyncio.fixture
async def client(ctx: context.Context, account: accounts.Account) -> AsyncIterator[httpx.AsyncClient]:
    await accepted_mail.allow_sending(ctx, account.id)
    key = await compat_client.new_key(ctx, account.id)
    async with compat_client.opened(ctx, resend.API, {"Authorization": f"Bearer {key}"}) as opened:
        yield opened


@pytest_asyncio.fixture
async def files() -> AsyncIterator[webhook_server.WebhookServer]:
    async with webhook_server.running(tls=False) as server:
        yield server


def url(files: webhook_server.WebhookServer, path: str) -> str:
    return f"http://{webhook_server.PUBLIC}:{files.port}{path}"


async def test_the_file_is_attached(
    ctx: context.Context, client: httpx.AsyncClient, files: webhook_server.WebhookServer, account: accounts.Account
) -> None:
    files.answer = webhook_server.ok(200, b"%PDF-" * 10_000)
    attachments = [{"path": url(files, "/2027/invoice%207.pdf?a=b")}, {"path": url(files, "/x"), "filename": "b.txt"}]
    response = await client.post("/emails", json={**EMAIL, "attachments": attachments})
    assert response.status_code == 200, response.text
    receipt = (await lookup.details(ctx, account.id, response.json()["id"])).receipt
    assert [(attachment.filename, attachment.content_type, attachment.size) for attachment in receipt.attachments] == [
        ("invoice 7.pdf", "application/pdf", 50_000),
        ("b.txt", "text/plain", 50_000),
    ]
    assert [(request.method, request.path) for request in files.requests] == [
        ("GET", "/2027/invoice%207.pdf?a=b"),
        ("GET", "/x"),
    ]


async def test_the_event_loop_does_not_encode_a_large_file(
    client: httpx.AsyncClient, files: webhook_server.WebhookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, encode = list[threading.Thread](), payload.encode

    def watched(content: bytes) -> str:
        used.append(threading.current_thread())
        return encode(content)

    monkeypatch.setattr(payload, "encode", watched)
    files.answer = webhook_server.ok(200, b"%PDF-" * 100_000)
    response = await client.post("/emails", json={**EMAIL, "attachments": [{"path": url(files, "/a.pdf")}]})
    assert response.status_code == 200, response.text
    assert len(used) == 1
    assert threading.main_thread() not in used


@pytest.mark.parametrize(
    "answer, message",
    [
        (webhook_server.ok(404), "the server responded with 404; it must respond with 200"),
        (webhook_server.ok(302, b"", "Location: http://127.0.0.1/"), "the server responded with 302"),
        (webhook_server.ok(200, b"x" * (limits.MIME_BYTES + 1)), "the file is larger than 10485760 bytes"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%PDF-", "the response states no length"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n%PDF-",
            "the response ends before it is complete",
        ),
        (b"", ""),
    ],
    ids=["missing", "redirect", "large", "no length", "cut", "hangs up"],
)
async def test_what_cannot_be_fetched_is_refused_and_nothing_is_sent(
    client: httpx.AsyncClient, files: webhook_server.WebhookServer, answer: bytes, message: str
) -> None:
    files.answer = answer
    attachments = [{"filename": "a.txt", "content": "aGk="}, {"path": url(files, "/a.pdf")}]
    response = await client.post("/emails", json={**EMAIL, "attachments": attachments})
    assert (response.status_code, response.json()["name"]) == (422, "validation_error")
    assert response.json()["message"].startswith(f"attachments[1].path: could not be fetched: {message}")
    assert (await client.get("/emails")).json()["data"] == []


@pytest.mark.parametrize(
    "path", ["http://127.0.0.1/a", "http://[::1]/a", "file:///etc/hostname", "https://localhost/a", "a.pdf", ""]
)
async def test_the_guard_of_webhooks_decides_where_files_come_from(client: httpx.AsyncClient, path: str) -> None:
    response = await client.post("/emails", json={**EMAIL, "attachments": [{"path": path, "filename": "a.txt"}]})
    assert (response.status_code, response.json()["name"]) == (422, "validation_error")
    assert response.json()["message"].startswith("attachments[0].path: could not be fetched: ")


async def test_in_a_permissive_batch_only_its_own_message_is_refused(
    client: httpx.AsyncClient, files: webhook_server.WebhookServer
) -> None:
    bad = {**EMAIL, "attachments": [{"path": "http://127.0.0.1/a"}]}
    good = {**EMAIL, "attachments": [{"path": url(files, "/a.txt")}]}
    both = {**EMAIL, "attachments": [{"path": url(files, "/a.txt"), "content": "aGk="}]}
    response = await client.post(
        "/emails/batch", json=[bad, good, 7, both], headers={"x-batch-validation": "permissive"}
    )
    assert [one["index"] for one in response.json()["errors"]] == [0, 2, 3]
    assert len(response.json()["data"]) == 1


async def test_files_of_messages_that_are_refused_have_the_rate_of_sends(
    ctx: context.Context, client: httpx.AsyncClient, files: webhook_server.WebhookServer
) -> None:
    refused = {**EMAIL, "from": "else@elsewhere.example", "attachments": [{"path": url(files, "/a")}] * 20}
    for _ in range(ctx.settings.limits.request_burst // 20):
        assert (await client.post("/emails", json=refused)).status_code == 403
    limited = await client.post("/emails", json=refused)
    assert (limited.status_code, limited.json()["name"]) == (429, "rate_limit_exceeded")
    assert len(files.requests) == ctx.settings.limits.request_burst


async def test_a_request_has_files_fetched_for_as_many_messages_as_a_batch_has(
    client: httpx.AsyncClient, files: webhook_server.WebhookServer
) -> None:
    many = {**EMAIL, "attachments": [{"path": url(files, "/a")}] * 101}
    response = await client.post("/emails", json=many)
    assert response.json()["message"].startswith("attachments[100].path: at most 100 files by URL in a request")
    assert len(files.requests) == 100


async def test_nothing_is_fetched_for_a_suspended_account(
    ctx: context.Context, client: httpx.AsyncClient, files: webhook_server.WebhookServer, account: accounts.Account
) -> None:
    await account_registry.suspend(ctx, account.id, "spam")
    response = await client.post("/emails", json={**EMAIL, "attachments": [{"path": url(files, "/a")}]})
    assert (response.status_code, response.json()["name"]) == (403, "invalid_access")
    assert files.requests == []


@pytest.mark.parametrize("path", ["/emails", "/emails/batch"])
async def test_a_slot_is_held_until_the_message_is_accepted(
    ctx: context.Context, files: webhook_server.WebhookServer, account: accounts.Account, path: str
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    key = await compat_client.new_key(ctx, account.id)
    held = HeldCommits(ctx.accept_commits)
    slow = dataclasses.replace(ctx, accept_commits=held)  # type: ignore[arg-type]
    email = {**EMAIL, "attachments": [{"path": url(files, "/a")}]}
    body = [email] if path == "/emails/batch" else email
    async with compat_client.opened(slow, resend.API, {"Authorization": f"Bearer {key}"}) as client:
        sends = [asyncio.create_task(client.post(path, json=body)) for _ in range(3)]
        async with asyncio.timeout(30):
            for _ in sends:
                await held.waiting.acquire()
            refused = await client.post(path, json=body)
        held.may_begin.set()
        assert [one.status_code for one in await asyncio.gather(*sends)] == [200] * 3
    assert (refused.status_code, refused.json()["name"]) == (429, "rate_limit_exceeded")
    assert refused.json()["message"].startswith("attachments by URL: at most 3 at once per account")
