"""Domains, API keys, webhooks and suppressions over Resend's API."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio

from postroad import context
from postroad.model.domains import domain_records
from postroad.model.people import callers
from postroad.services.accounts import account_registry
from postroad.services.domains import dns_checks
from postroad.services.domains import domain_registry as domains
from postroad.services.people import api_keys
from postroad.services.suppressions import suppression_list as suppressions
from postroad.services.webhooks import endpoint_settings, endpoints
from postroad.storage.mail import suppressions as stored
from postroad.storage.people import accounts
from postroad_resend import api as resend
from postroad_resend import domains as resend_domains
from postroad_resend import event_format
from tests import accepted_mail, webhook_endpoints
from tests.compat import compat_client

URL = "https://8.8.8.8/hooks"
WEBHOOK = {"endpoint": URL, "events": ["email.bounced", "email.sent"]}


@pytest_asyncio.fixture
async def client(ctx: context.Context, account: accounts.Account) -> AsyncIterator[httpx.AsyncClient]:
    await accepted_mail.allow_sending(ctx, account.id)
    async with opened(ctx, await compat_client.new_key(ctx, account.id)) as client:
        yield client


def opened(ctx: context.Context, key: str) -> Any:  # noqa: ANN401 - an asynchronous context manager
    return compat_client.opened(ctx, resend.API, {"Authorization": f"Bearer {key}"})


def refusal(response: httpx.Response) -> tuple[int, str]:
    body = response.json()
    assert set(body) == {"name", "message", "statusCode"}
    assert body["statusCode"] == response.status_code
    return response.status_code, body["name"]


async def test_a_domain_is_created_shown_and_removed(client: httpx.AsyncClient) -> None:
    created = await client.post("/domains", json={"name": "News.Example.org", "region": "eu-west-1"})
    domain = created.json()
    records = domain.pop("records")
    assert created.status_code == 201
    assert domain == {
        "object": "domain",
        "id": domain["id"],
        "name": "news.example.org",
        "status": "not_started",
        "created_at": "2027-01-15T08:00:00.000Z",
        "region": "self-hosted",
        "capabilities": {"sending": "enabled", "receiving": "disabled"},
    }
    assert {record["record"] for record in records} == {"DKIM"}  # where mail comes from is not configured
    assert all(set(record) - {"priority"} == {"record", "name", "type", "ttl", "status", "value"} for record in records)
    assert {record["status"] for record in records} == {"not_started"}
    shown = (await client.get(f"/domains/{domain['id']}")).json()
    assert shown == domain | {"records": records}
    listed = (await client.get("/domains", params={"limit": 1})).json()
    assert (listed["object"], listed["has_more"], len(listed["data"])) == ("list", True, 1)
    rest = (await client.get("/domains", params={"after": listed["data"][0]["id"]})).json()
    names = [one["name"] for one in (*listed["data"], *rest["data"])]  # created at the same time, so in any order
    assert (sorted(names), rest["has_more"]) == (["example.com", "news.example.org"], False)
    updated = await client.patch(f"/domains/{domain['id']}", json={"open_tracking": False, "tls": "opportunistic"})
    assert updated.json() == {"object": "domain", "id": domain["id"]}
    removed = await client.delete(f"/domains/{domain['id']}")
    assert removed.json() == {"object": "domain", "id": domain["id"], "deleted": True}
    assert refusal(await client.get(f"/domains/{domain['id']}")) == (404, "not_found")


@pytest.mark.parametrize(
    "body, named",
    [
        ({"name": "a.example", "open_tracking": True}, "open_tracking"),
        ({"name": "a.example", "custom_return_path": "send"}, "custom_return_path"),
        ({"name": "a.example", "tls": "enforced"}, "tls"),
        ({"name": "a.example", "capabilities": {"receiving": "enabled"}}, "capabilities.receiving"),
        ({"name": "not a domain"}, "name"),
        ({"name": 1}, "name"),
        ({}, "name"),
        ({"name": "a.example", "colour": "red"}, "colour"),
    ],
)
async def test_a_domain_that_cannot_be_is_refused(client: httpx.AsyncClient, body: dict[str, Any], named: str) -> None:
    response = await client.post("/domains", json=body)
    assert refusal(response) == (422, "validation_error")
    assert named in response.json()["message"] or named == "name"


def test_records_have_the_names_of_resend() -> None:
    purpose, state = domain_records.RecordPurpose, domain_records.RecordState
    spf = domain_records.Record(purpose.RETURN_PATH, "send.a.example", "MX", "mail.example.com")
    shown = resend_domains._record(dns_checks.RecordStatus(spf, "mail.example.com", state.MISSING, "", 1))
    assert shown == {
        "record": "SPF",
        "name": "send.a.example",
        "type": "MX",
        "ttl": "Auto",
        "status": "pending",
        "value": "mail.example.com",
        "priority": 10,
    }


async def test_keys_have_what_their_permission_says_and_no_more_than_their_maker(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account
) -> None:
    domain = await domains.by_name(ctx, account.id, "example.com")
    full = (await client.post("/api-keys", json={"name": "full"})).json()
    sending = {"name": "sends", "permission": "sending_access", "domain_id": domain.id}
    made = await client.post("/api-keys", json=sending)
    assert (made.status_code, set(made.json())) == (201, {"id", "token"})
    rows = {row.id: row for row in await api_keys.of_account(ctx, account.id)}
    assert callers.scopes_of(rows[full["id"]].scopes) == callers.SCOPES
    assert (rows[made.json()["id"]].scopes, rows[made.json()["id"]].limits.domains) == ("send", ("example.com",))
    async with opened(ctx, made.json()["token"]) as sender:
        assert refusal(await sender.get("/api-keys")) == (401, "restricted_api_key")
        assert refusal(await sender.get("/domains")) == (401, "restricted_api_key")
        assert refusal(await sender.get("/webhooks")) == (401, "restricted_api_key")
        assert refusal(await sender.get("/suppressions")) == (401, "restricted_api_key")
    team = await compat_client.new_key(ctx, account.id, frozenset({"team"}))
    async with opened(ctx, team) as manager:
        for body in ({"name": "more"}, {"name": "more", "permission": "sending_access"}):
            assert refusal(await manager.post("/api-keys", json=body))[0] == 403
    limited = await compat_client.new_key(
        ctx, account.id, frozenset({"team", "send"}), limits=callers.KeyLimits(domains=("example.com",))
    )
    async with opened(ctx, limited) as manager:
        assert refusal(await manager.post("/api-keys", json={"name": "x", "permission": "sending_access"}))[0] == 403
        assert (await manager.post("/api-keys", json=sending)).status_code == 201


async def test_keys_are_listed_renamed_and_removed(client: httpx.AsyncClient) -> None:
    made = (await client.post("/api-keys", json={"name": "one", "permission": "sending_access"})).json()
    path = f"/api-keys/{made['id']}"
    assert (await client.patch(path, json={"name": "two"})).json() == {"object": "api_key", "id": made["id"]}
    listed = (await client.get("/api-keys")).json()
    assert {one["id"]: one for one in listed["data"]}[made["id"]] == {
        "id": made["id"],
        "name": "two",
        "created_at": "2027-01-15T08:00:00.000Z",
        "last_used_at": None,
    }
    assert made["token"] not in str(listed)
    assert (await client.delete(path)).json() == {"object": "api_key", "id": made["id"], "deleted": True}
    assert made["id"] not in str((await client.get("/api-keys")).json())
    assert refusal(await client.delete(path)) == (404, "not_found")
    for body in ({"name": ""}, {"permission": "root", "name": "a"}, {"name": "a", "domain_id": "x"}):
        assert refusal(await client.post("/api-keys", json=body)) == (422, "validation_error")
    unknown = {"name": "a", "permission": "sending_access", "domain_id": "dom_1"}
    assert refusal(await client.post("/api-keys", json=unknown)) == (404, "not_found")


async def test_a_webhook_gets_events_in_the_format_of_resend(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account
) -> None:
    own = await webhook_endpoints.subscribe(ctx, account.id)
    created = (await client.post("/webhooks", json=WEBHOOK)).json()
    webhook_id, secret = created["id"], created["signing_secret"]
    assert created == {"object": "webhook", "id": webhook_id, "signing_secret": secret}
    assert secret.startswith("whsec_")
    shown = {
        "id": webhook_id,
        "created_at": "2027-01-15T08:00:00.000Z",
        "status": "enabled",
        "endpoint": URL,
        "events": ["email.sent", "email.bounced"],
    }
    assert (await client.get("/webhooks")).json() == {"object": "list", "has_more": False, "data": [shown]}
    hint = f"whsec_…{secret[-4:]}"
    assert (await client.get(f"/webhooks/{webhook_id}")).json() == {"object": "webhook", **shown} | {
        "signing_secret": hint
    }
    assert refusal(await client.get(f"/webhooks/{own.id}")) == (404, "not_found")

    email = {"from": "shop@example.com", "to": "ada@example.net", "subject": "Hi", "text": "Hello"}
    sent = (await client.post("/emails", json=email | {"tags": [{"name": "order", "value": "1042"}]})).json()
    [event] = (await client.get(f"/webhooks/{webhook_id}/events")).json()["data"]
    assert (event["type"], event["status"]) == ("email.sent", "pending")
    path = f"/webhooks/{webhook_id}/events/{event['id']}"
    payload = (await client.get(path)).json()["payload"]
    assert payload["data"]["email_id"] == sent["id"]
    assert payload["data"]["tags"] == {"order": "1042"}
    assert (await client.get(f"{path}/attempts")).json() == {"object": "list", "has_more": False, "data": []}
    again = (await client.post(f"{path}/replay")).json()
    assert again["object"] == "webhook_event"
    assert len(await webhook_endpoints.deliveries_for(ctx, await endpoints.get(ctx, account.id, webhook_id))) == 2

    rotated = (await client.post(f"/webhooks/{webhook_id}/signing-secret/rotate")).json()
    assert rotated["signing_secret"] not in (secret, "")
    change = {"endpoint": "https://8.8.4.4/hooks", "events": ["email.failed"], "status": "disabled"}
    assert (await client.patch(f"/webhooks/{webhook_id}", json=change)).json() == {
        "object": "webhook",
        "id": webhook_id,
    }
    changed = await endpoints.get(ctx, account.id, webhook_id)
    assert (changed.url, changed.events, changed.enabled) == (change["endpoint"], "email.failed email.expired", 0)
    removed = await client.delete(f"/webhooks/{webhook_id}")
    assert removed.json() == {"object": "webhook", "id": webhook_id, "deleted": True}
    assert refusal(await client.delete(f"/webhooks/{webhook_id}")) == (404, "not_found")


@pytest.mark.parametrize(
    "change",
    [
        {"events": ["email.opened"]},
        {"events": ["email.sent", "contact.created"]},
        {"events": []},
        {"endpoint": "http://8.8.8.8/hooks"},
        {"endpoint": "https://127.0.0.1/"},
        {"endpoint": 1},
        {"more": 1},
    ],
)
async def test_a_webhook_that_cannot_be_is_refused(client: httpx.AsyncClient, change: dict[str, Any]) -> None:
    assert refusal(await client.post("/webhooks", json=WEBHOOK | change)) == (422, "validation_error")
    assert (await client.get("/webhooks")).json()["data"] == []


async def test_an_account_has_no_more_webhooks_than_its_quota(client: httpx.AsyncClient) -> None:
    for _ in range(10):
        assert (await client.post("/webhooks", json=WEBHOOK)).status_code == 201
    assert refusal(await client.post("/webhooks", json=WEBHOOK))[1] == "validation_error"


async def test_addresses_are_suppressed_listed_by_origin_and_removed(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account
) -> None:
    added = await client.post("/suppressions", json={"email": "Ada@Example.net"})
    assert (added.status_code, added.json()) == (201, {"object": "suppression", "id": "ada@example.net"})
    assert (await client.post("/suppressions", json={"email": "ada@example.net"})).json() == added.json()
    await suppressions.add(ctx, account.id, "bo@example.net", reason="550", source=stored.Source.LATE_BOUNCE)
    await suppressions.add(ctx, account.id, "cy@example.net", reason="spam", source=stored.Source.COMPLAINT)
    await suppressions.add(ctx, account.id, "di@example.net", reason="550", source=stored.Source.BOUNCE)
    shown = (await client.get("/suppressions/ADA%40example.net")).json()
    assert shown == {
        "object": "suppression",
        "id": "ada@example.net",
        "email": "ada@example.net",
        "origin": "manual",
        "source_id": None,
        "created_at": "2027-01-15T08:00:00.000Z",
    }
    for origin, expected in (
        ("manual", ["ada@example.net"]),
        ("bounce", ["bo@example.net", "di@example.net"]),
        ("complaint", ["cy@example.net"]),
    ):
        listed = (await client.get("/suppressions", params={"origin": origin})).json()
        assert [one["email"] for one in listed["data"]] == expected
    first = (await client.get("/suppressions", params={"limit": 1, "origin": "bounce"})).json()
    assert first["has_more"] is True
    rest = (await client.get("/suppressions", params={"after": first["data"][0]["id"]})).json()
    assert [one["id"] for one in rest["data"]] == ["cy@example.net", "di@example.net"]
    removed = await client.delete("/suppressions/bo@example.net")
    assert removed.json() == {"object": "suppression", "id": "bo@example.net", "deleted": True}
    assert refusal(await client.get("/suppressions/bo@example.net")) == (404, "not_found")


async def test_many_addresses_are_suppressed_together_or_none(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account
) -> None:
    refused = await client.post("/suppressions/batch/add", json={"emails": ["ada@example.net", "nobody"]})
    assert refusal(refused) == (422, "validation_error")
    assert "emails[1]" in refused.json()["message"]
    assert await suppressions.page(ctx, account.id, after="", limit=9) == []
    added = await client.post("/suppressions/batch/add", json={"emails": ["ada@example.net", "bo@example.net"]})
    assert [one["id"] for one in added.json()["data"]] == ["ada@example.net", "bo@example.net"]
    removed = await client.post("/suppressions/batch/remove", json={"ids": ["bo@example.net", "x"]})
    assert [(one["id"], one["deleted"]) for one in removed.json()["data"]] == [("bo@example.net", True), ("x", False)]
    unclear: list[dict[str, list[str]]] = [{}, {"emails": [], "ids": []}, {"emails": ["a@b.example"], "ids": ["x"]}]
    for body in unclear:
        assert refusal(await client.post("/suppressions/batch/remove", json=body)) == (422, "validation_error")
    too_many = {"emails": [f"a{number}@example.net" for number in range(101)]}
    assert refusal(await client.post("/suppressions/batch/add", json=too_many)) == (422, "validation_error")


async def test_another_accounts_things_do_not_exist(ctx: context.Context, client: httpx.AsyncClient) -> None:
    other = await account_registry.create(ctx, "Other")
    domain = await domains.add(ctx, other.id, "other.example", verified=False)
    changes = endpoint_settings.Changes(url=URL, format_events=["email.sent"])
    saved = await endpoints.create(ctx, other.id, changes, of_format=event_format.FORMAT.name)
    await suppressions.add(ctx, other.id, "ada@example.net", reason="550", source=stored.Source.BOUNCE)
    key = await compat_client.new_key(ctx, other.id)
    [row] = await api_keys.of_account(ctx, other.id)
    assert key
    for path in (
        f"/domains/{domain.id}",
        f"/webhooks/{saved.webhook.id}",
        f"/api-keys/{row.id}",
        "/suppressions/ada@example.net",
    ):
        assert refusal(await client.delete(path)) == (404, "not_found")
        if not path.startswith("/api-keys"):
            assert refusal(await client.get(path)) == (404, "not_found")
    assert refusal(await client.post(f"/domains/{domain.id}/verify")) == (404, "not_found")
    events = f"/webhooks/{saved.webhook.id}/events"
    assert refusal(await client.get(events)) == (404, "not_found")
    assert refusal(await client.patch(f"/webhooks/{saved.webhook.id}", json={"status": "disabled"})) == (
        404,
        "not_found",
    )
    for path in ("/domains", "/webhooks", "/suppressions"):
        listed = (await client.get(path)).json()["data"]
        assert [one for one in listed if "example.com" not in msgspec.json.encode(one).decode()] == []
