"""Sensitive requests with a login token need a confirmation; those of API keys and of the interface do not."""

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from postroad import context
from postroad.api import authentication
from postroad.services.people import api_keys
from postroad.storage.people import accounts, users
from postroad.web import application
from tests import asgi
from tests.contexts import PASSWORD, Clock

LATER = 15 * 60
LOG_IN = {"email": "owner@example.com", "password": PASSWORD}


@pytest_asyncio.fixture
async def client(
    served: application.Application[context.Context], owner: users.User
) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(asgi.of(served))
    async with httpx.AsyncClient(transport=transport, base_url="http://postroad.test", timeout=60) as made:
        session = (await made.post("/v1/auth/login", json=LOG_IN)).json()
        made.headers["Authorization"] = f"Bearer {session['token']}"
        yield made


async def test_a_token_makes_credentials_for_fifteen_minutes_and_again_after_a_confirmation(
    client: httpx.AsyncClient, clock: Clock
) -> None:
    assert (await client.post("/v1/credentials", json={"name": "one"})).status_code == 201
    clock.pass_seconds(LATER)
    refused = await client.post("/v1/credentials", json={"name": "two"})
    assert (refused.status_code, refused.headers["confirmation"]) == (403, "required")
    assert refused.json()["code"] == "forbidden"
    assert refused.json()["error"] == (
        "confirm that it is you before this action: on the page /confirm, with POST /v1/auth/confirm, or by logging in "
        "again"
    )
    assert (await client.get("/v1/credentials")).status_code == 200
    wrong = await client.post("/v1/auth/confirm", json={"password": "not this one"})
    assert (wrong.status_code, wrong.json()["error"]) == (401, "password: incorrect")
    assert (await client.post("/v1/credentials", json={"name": "two"})).status_code == 403
    confirmed = await client.post("/v1/auth/confirm", json={"password": PASSWORD})
    assert (confirmed.status_code, confirmed.content) == (204, b"")
    assert (await client.post("/v1/credentials", json={"name": "two"})).status_code == 201


@pytest.mark.parametrize(
    "endpoint", sorted(label for label in authentication.STEP_UP_ROUTES if "/operator/" not in label)
)
async def test_every_sensitive_endpoint_refuses_an_old_token_before_it_reads_anything(
    client: httpx.AsyncClient, clock: Clock, endpoint: str
) -> None:
    clock.pass_seconds(LATER)
    method, path = endpoint.split()
    refused = await client.request(method, path.replace("{", "").replace("}", ""))
    assert (refused.status_code, refused.headers.get("confirmation")) == (403, "required")


async def test_the_endpoints_of_the_interface_answer_an_old_token_as_a_new_one(
    client: httpx.AsyncClient, clock: Clock
) -> None:
    clock.pass_seconds(LATER)
    saved = await client.put("/v1/webhook", json={"url": "https://hooks.example.com/postroad"})
    assert saved.status_code == 200
    assert (await client.get("/v1/webhook")).status_code == 200
    assert (await client.post("/v1/webhook/rotate-secret")).status_code == 200
    assert (await client.get("/v1/webhook/deliveries")).status_code == 200
    assert (await client.delete("/v1/webhook")).status_code == 204


async def test_an_api_key_needs_no_confirmation_and_cannot_be_confirmed(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account, clock: Clock
) -> None:
    await client.post("/v1/credentials", json={"name": "one"})
    _, secret = await api_keys.create(ctx, account.id, credential_id=None, name="deploy", scopes=frozenset({"*"}))
    clock.pass_seconds(LATER)
    headers = {"Authorization": f"Bearer {secret}"}
    assert (await client.post("/v1/api-keys", json={"name": "shop"}, headers=headers)).status_code == 201
    refused = await client.post("/v1/auth/confirm", json={"password": PASSWORD}, headers=headers)
    assert refused.status_code == 401
