"""Keys with an approval limit over compatible APIs; batches of Postmark are accepted in parts."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest_asyncio

from postroad import context
from postroad.model.people import callers
from postroad.services.messages import lookup
from postroad.storage.people import accounts
from postroad_postmark import api as postmark
from postroad_resend import api as resend
from tests import accepted_mail
from tests.compat import compat_client

EMAIL: dict[str, Any] = {"From": "shop@example.com", "To": "ada@example.net", "Subject": "Hello", "TextBody": "Hi"}


@pytest_asyncio.fixture
async def client(ctx: context.Context, account: accounts.Account) -> AsyncIterator[httpx.AsyncClient]:
    """With a key that needs approval for more than 150 recipients."""
    await accepted_mail.allow_sending(ctx, account.id)
    key = await compat_client.new_key(ctx, account.id, limits=callers.KeyLimits(approval_above=150))
    async with compat_client.opened(ctx, postmark.API, {"X-Postmark-Server-Token": key}) as opened:
        yield opened


async def count(ctx: context.Context, account: accounts.Account) -> int:
    return len((await lookup.page(ctx, account.id, lookup.Filters(), limit=500, cursor=None)).messages)


async def test_a_batch_does_not_pass_the_limit_in_parts(
    ctx: context.Context, account: accounts.Account, client: httpx.AsyncClient
) -> None:
    body, headers = [EMAIL] * 151, {"Idempotency-Key": "1"}
    refused = await client.post("/email/batch", json=body, headers=headers)
    assert refused.is_client_error
    assert refused.json()["Message"] == "this API key has an approval limit, so a batch may have 100 messages at most"
    assert await count(ctx, account) == 0
    two = EMAIL | {"To": "ada@example.net, bob@example.net"}
    waiting = await client.post("/email/batch", json=[two] * 100, headers=headers)
    assert "this request to 200 recipients waits for approval" in waiting.json()["Message"]
    assert (waiting.status_code, waiting.json()["ErrorCode"]) == (422, 412)
    assert await count(ctx, account) == 0


async def test_a_send_that_waits_has_an_error_of_its_own(ctx: context.Context, account: accounts.Account) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    key = await compat_client.new_key(ctx, account.id, limits=callers.KeyLimits(approval_above=0))
    email = {"from": "shop@example.com", "to": "ada@example.net", "subject": "Hello", "text": "Hi"}
    async with compat_client.opened(ctx, resend.API, {"Authorization": f"Bearer {key}"}) as client:
        waiting = await client.post("/emails", json=email, headers={"Idempotency-Key": "1"})
    assert (waiting.status_code, waiting.json()["name"]) == (403, "approval_required")
    assert "this request to 1 recipient waits for approval" in waiting.json()["message"]
    assert await count(ctx, account) == 0
