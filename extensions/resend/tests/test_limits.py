"""Our limits over Resend's API: the same as for `POST /emails`, in its errors."""

import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest_asyncio

from postroad import context
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.services.accounts import account_registry, credits
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import lookup
from postroad.storage.people import accounts
from postroad.web import routing
from postroad_resend import api as resend
from tests.compat import compat_client

EMAIL: dict[str, Any] = {"from": "shop@example.com", "to": "ada@example.net", "subject": "Your order", "text": "Hi"}


@pytest_asyncio.fixture
async def client(ctx: context.Context, account: accounts.Account) -> AsyncIterator[httpx.AsyncClient]:
    """Of an account with two credits."""
    await domains.add(ctx, account.id, "example.com", verified=True)
    await credits.add(ctx, account.id, 2, None)
    key = await compat_client.new_key(ctx, account.id)
    async with compat_client.opened(ctx, resend.API, {"Authorization": f"Bearer {key}"}) as opened:
        yield opened


def refusal(response: httpx.Response) -> tuple[int, str]:
    assert response.json()["statusCode"] == response.status_code
    return response.status_code, response.json()["name"]


async def test_credits_are_a_quota(client: httpx.AsyncClient) -> None:
    two = {**EMAIL, "to": ["ada@example.net", "bob@example.net"]}
    assert (await client.post("/emails", json=two)).status_code == 200
    assert refusal(await client.post("/emails", json=EMAIL)) == (429, "monthly_quota_exceeded")


async def test_the_rate_of_sends_is_a_rate_limit(ctx: context.Context, account: accounts.Account) -> None:
    key = await compat_client.new_key(ctx, account.id)
    async with compat_client.opened(ctx, resend.API, {"Authorization": f"Bearer {key}"}) as client:
        # The clock stands still, so nothing is added to the bucket. Refused sends count as well.
        for _ in range(ctx.settings.limits.request_burst):
            assert refusal(await client.post("/emails", json=EMAIL)) == (403, "validation_error")
        limited = await client.post("/emails", json=EMAIL)
    assert refusal(limited) == (429, "rate_limit_exceeded")
    assert "retry-after" in limited.headers
    assert "ratelimit" in limited.headers


async def test_a_suspended_account_sends_nothing(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account
) -> None:
    await account_registry.suspend(ctx, account.id, "spam")
    assert refusal(await client.post("/emails", json=EMAIL)) == (403, "invalid_access")


async def test_limits_of_the_key_hold(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account
) -> None:
    only = callers.KeyLimits(domains=("other.example",))
    scopes = frozenset({callers.Scope.SEND})
    limited = await compat_client.new_key(ctx, account.id, scopes, limits=only)
    response = await client.post("/emails", json=EMAIL, headers={"Authorization": f"Bearer {limited}"})
    assert refusal(response) == (403, "validation_error")
    assert "other.example" in response.json()["message"]


async def test_a_test_key_sends_test_messages(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account
) -> None:
    scopes = frozenset({callers.Scope.SEND, callers.Scope.READ})
    key = await compat_client.new_key(ctx, account.id, scopes, mode=statuses.Mode.TEST)
    headers = {"Authorization": f"Bearer {key}"}
    message_id = (await client.post("/emails", json=EMAIL, headers=headers)).json()["id"]
    message, _ = await lookup.find(ctx, account.id, message_id)
    assert message.is_test
    listed = (await client.get("/emails", headers=headers)).json()["data"]
    assert [one["id"] for one in listed] == [message_id]
    assert (await client.get("/emails")).json()["data"] == []


async def test_a_body_has_a_limit_and_a_type(client: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "application/json"}
    large = b" " * (routing.MAX_SEND_BODY_BYTES + 1)
    assert refusal(await client.post("/emails", content=large, headers=headers)) == (413, "validation_error")
    assert refusal(await client.post("/emails", content=b"{", headers=headers)) == (422, "validation_error")
    text = await client.post("/emails", content=b"{}", headers={"Content-Type": "text/plain"})
    assert refusal(text) == (422, "validation_error")
    assert text.json()["message"] == "Content-Type: must be application/json"


async def test_a_batch_is_read_and_translated_in_threads(ctx: context.Context, account: accounts.Account) -> None:
    key = await compat_client.new_key(ctx, account.id)
    threads = compat_client.CountedThreads()
    watched = dataclasses.replace(ctx, threads=threads)  # type: ignore[arg-type]
    async with compat_client.opened(watched, resend.API, {"Authorization": f"Bearer {key}"}) as opened:
        response = await opened.post(
            "/emails/batch", json=[{"x": 1}, {**EMAIL, "to": 7}] * 50, headers={"x-batch-validation": "permissive"}
        )
    assert [one["index"] for one in response.json()["errors"]] == list(range(100))
    assert len(threads.parties) >= 2
    assert set(threads.parties) == {account.id}
