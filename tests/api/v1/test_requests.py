"""`/v1/requests`: what was refused or failed, and what keys changed, for those who may see it."""

import httpx

from postroad import context
from postroad.model.people import callers
from postroad.services.people import api_keys, credentials
from postroad.services.suppressions import suppression_list
from postroad.web import application
from tests import accepted_mail, asgi
from tests.api import management
from tests.api.management import AccountClients

MAIL = {"from": "shop@unknown.example", "to": ["ada@example.net"], "subject": "Hello", "text": "Hi"}
Served = application.Application[context.Context]


async def client_of_key(
    ctx: context.Context, served: Served, account_id: str, *scopes: str, name: str = "shop"
) -> tuple[httpx.AsyncClient, str]:
    """A client with a new API key, and the id of the key."""
    await credentials.create(ctx, account_id, "main")
    key, secret = await api_keys.create(
        ctx, account_id, credential_id=None, name=name, scopes=frozenset(map(callers.Scope, scopes))
    )
    headers = {"Authorization": f"Bearer {secret}"}
    transport = httpx.ASGITransport(asgi.of(served))
    return httpx.AsyncClient(transport=transport, base_url="http://postroad.test", headers=headers), key.id


async def listed(client: httpx.AsyncClient, **query: str) -> list[dict[str, object]]:
    response = await client.get("/v1/requests", params=query)
    assert response.status_code == 200
    found: list[dict[str, object]] = response.json()["requests"]
    return found


async def test_a_refused_send_is_found_with_its_error_key_and_body(
    ctx: context.Context, served: Served, mine: AccountClients
) -> None:
    shop, key_id = await client_of_key(ctx, served, mine.account_id, "send")
    refused = await shop.post("/emails", json=MAIL, headers={"Idempotency-Key": "1"})
    assert refused.status_code == 403
    (entry,) = await listed(mine.owner)
    assert entry == {
        "id": refused.json()["request_id"],
        "at": entry["at"],
        "method": "POST",
        "path": "/emails",
        "status": 403,
        "code": "forbidden",
        "error": refused.json()["error"],
        "caller": {"kind": "api_key", "id": key_id, "name": "shop"},
        "client_address": "127.0.0.1",
        "body_size": len(refused.request.content),
        "skipped": 0,
    }
    shown = (await mine.owner.get(f"/v1/requests/{entry['id']}")).json()["request"]
    assert '"subject": "Hello"' in shown.pop("body")
    assert shown == entry


async def test_a_body_that_breaks_the_schema_is_there_too(
    ctx: context.Context, served: Served, mine: AccountClients
) -> None:
    shop, _ = await client_of_key(ctx, served, mine.account_id, "send")
    wrong = await shop.post("/emails", json=MAIL | {"subjct": "Hello"}, headers={"Idempotency-Key": "1"})
    assert wrong.status_code == 400
    shown = (await mine.owner.get(f"/v1/requests/{wrong.json()['request_id']}")).json()["request"]
    assert ("subjct" in shown["error"], '"subjct": "Hello"' in shown["body"]) == (True, True)


async def test_accepted_mail_and_reads_leave_nothing(
    ctx: context.Context, served: Served, mine: AccountClients
) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id, domain="shop.example")
    shop, _ = await client_of_key(ctx, served, mine.account_id, "send", "read", "suppressions")
    mail = MAIL | {"from": "orders@shop.example"}
    answers = [await shop.post("/emails", json=mail, headers={"Idempotency-Key": "1"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert (await shop.get(f"/emails/{answers[0].json()['id']}")).status_code == 200
    assert (await shop.get("/v1/suppressions")).status_code == 200
    assert (await mine.owner.post("/v1/suppressions", json={"email": "a@example.net"})).status_code == 201
    assert await listed(mine.owner) == []


async def test_a_change_by_a_key_is_listed(ctx: context.Context, served: Served, mine: AccountClients) -> None:
    shop, key_id = await client_of_key(ctx, served, mine.account_id, "suppressions")
    assert (await shop.post("/v1/suppressions", json={"email": "gone@example.net"})).status_code == 201
    assert len(await suppression_list.page(ctx, mine.account_id, after="", limit=9)) == 1
    (entry,) = await listed(mine.owner, status="succeeded", caller=key_id)
    assert (entry["method"], entry["path"], entry["status"], entry["code"]) == ("POST", "/v1/suppressions", 201, None)


async def test_the_list_is_filtered_and_paged(ctx: context.Context, served: Served, mine: AccountClients) -> None:
    shop, key_id = await client_of_key(ctx, served, mine.account_id, "send")
    ids: list[str] = []
    for _ in range(3):
        refused = await shop.get("/v1/domains")
        assert refused.status_code == 401
        ids.insert(0, refused.json()["request_id"])
    assert (await mine.owner.get("/v1/domains/dom_x")).status_code == 404
    by_key = {"caller": key_id, "status": "refused"}
    assert [entry["id"] for entry in await listed(mine.owner, **by_key)] == ids
    first = (await mine.owner.get("/v1/requests", params={**by_key, "limit": "2"})).json()
    assert [entry["id"] for entry in first["requests"]] == ids[:2]
    assert [entry["id"] for entry in await listed(mine.owner, **by_key, before=first["next_before"])] == ids[2:]
    assert await listed(mine.owner, status="failed") == []
    assert await listed(mine.owner, until="2020-01-01T00:00:00Z") == []
    assert len(await listed(mine.owner, since="2020-01-01T00:00:00Z")) == 4
    assert (await mine.owner.get("/v1/requests", params={"before": "x"})).json()["code"] == "invalid_request"


async def test_another_account_finds_nothing(
    ctx: context.Context, served: Served, mine: AccountClients, theirs: AccountClients
) -> None:
    shop, key_id = await client_of_key(ctx, served, theirs.account_id, "send")
    refused = await shop.post("/emails", json=MAIL, headers={"Idempotency-Key": "1"})
    assert await listed(mine.owner, caller=key_id) == []
    foreign = await mine.owner.get(f"/v1/requests/{refused.json()['request_id']}")
    unknown = await mine.owner.get("/v1/requests/req_" + "0" * 28)
    assert (foreign.status_code, foreign.json()["error"]) == (404, unknown.json()["error"])


async def test_bodies_are_for_those_who_may_see_content(
    ctx: context.Context, served: Served, mine: AccountClients
) -> None:
    shop, _ = await client_of_key(ctx, served, mine.account_id, "send")
    refused = await shop.post("/emails", json=MAIL, headers={"Idempotency-Key": "1"})
    path = f"/v1/requests/{refused.json()['request_id']}"
    transport = httpx.ASGITransport(asgi.of(served))
    token = await management.token(ctx, mine.account_id, callers.Role.ANALYST)
    analyst = httpx.AsyncClient(
        transport=transport, base_url="http://postroad.test", headers={"Authorization": f"Bearer {token}"}
    )
    team, _ = await client_of_key(ctx, served, mine.account_id, "team", name="team")
    reading, _ = await client_of_key(ctx, served, mine.account_id, "team", "read", name="reading")
    sees = [(await client.get(path)).json()["request"]["body"] is not None for client in (analyst, team)]
    assert sees == [False, False]
    for client in (mine.owner, mine.reader, reading):
        assert "Hello" in (await client.get(path)).json()["request"]["body"]
    assert (await shop.get(path)).status_code == 401
