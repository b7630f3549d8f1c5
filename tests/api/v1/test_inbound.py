"""`/v1/inbound`: routes that are made, checked and removed, and the mail that they took, with its files."""

import email
import hashlib
from collections.abc import AsyncIterator
from typing import Any
from urllib import parse

import pytest
import pytest_asyncio

from postroad import config, context
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services.people import api_keys
from tests import contexts, dns_server, received_rows
from tests.api.management import AccountClients
from tests.services import domain_zones


@pytest_asyncio.fixture
async def server() -> AsyncIterator[dns_server.DnsServer]:
    async with dns_server.running({}) as running:
        yield running


@pytest.fixture
def settings(database_url: str, server: dns_server.DnsServer) -> config.Settings:
    return domain_zones.settings(database_url, server)


async def key(ctx: context.Context, account_id: str, scope: callers.Scope) -> dict[str, str]:
    _, secret = await api_keys.create(ctx, account_id, credential_id=None, name="x", scopes=frozenset({scope}))
    return {"Authorization": f"Bearer {secret}"}


def path_of(link: str) -> str:
    return parse.urlsplit(link).path


async def test_a_route_is_made_listed_read_and_removed(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    await received_rows.route(ctx, mine.account_id, "first@in.example.com")
    clock.pass_seconds(1)
    made = await mine.owner.post("/v1/inbound/routes", json={"match": "Support+*@in.EXAMPLE.com"})
    assert made.status_code == 201, made.text
    route = made.json()["route"]
    assert route == {
        "id": route["id"],
        "match": "support+*@in.example.com",
        "action": "store",
        "forward_to": None,
        "created_at": "2027-01-15T08:00:01.000Z",
    }
    listed = (await mine.reader.get("/v1/inbound/routes")).json()
    assert [one["match"] for one in listed["routes"]] == ["first@in.example.com", "support+*@in.example.com"]
    first = (await mine.reader.get("/v1/inbound/routes?limit=1")).json()
    following = (await mine.reader.get(f"/v1/inbound/routes?limit=1&cursor={first['next_cursor']}")).json()
    assert (following["routes"], following["next_cursor"]) == ([route], None)
    assert (await mine.reader.get(f"/v1/inbound/routes/{route['id']}")).json()["route"] == route
    assert (await mine.reader.delete(f"/v1/inbound/routes/{route['id']}")).status_code == 403
    assert (await mine.owner.delete(f"/v1/inbound/routes/{route['id']}")).status_code == 204
    assert (await mine.owner.get(f"/v1/inbound/routes/{route['id']}")).status_code == 404


@pytest.mark.parametrize(
    "body, status, code",
    [
        ({"match": "first@in.example.com"}, 409, "conflict"),
        ({"match": "a@other.example"}, 403, "forbidden"),
        ({"match": "a b@in.example.com"}, 400, "invalid_request"),
        ({"match": "a@in.example.com", "forward_to": "eve@example.net"}, 400, "invalid_request"),
        ({"match": "a@in.example.com", "action": "bounce"}, 400, "invalid_request"),
        ({"match": "a@in.example.com", "action": "forward"}, 400, "invalid_request"),
        ({}, 400, "invalid_request"),
    ],
)
async def test_a_route_that_cannot_be_is_refused(
    ctx: context.Context, mine: AccountClients, body: dict[str, Any], status: int, code: str
) -> None:
    await received_rows.route(ctx, mine.account_id, "first@in.example.com")
    answer = await mine.owner.post("/v1/inbound/routes", json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_a_check_says_what_to_publish_and_whether_it_is_there(
    ctx: context.Context, mine: AccountClients, server: dns_server.DnsServer
) -> None:
    route = await received_rows.route(ctx, mine.account_id)
    missing = (await mine.owner.post(f"/v1/inbound/routes/{route.id}/check")).json()
    assert missing["route"]["match"] == "support+*@in.example.com"
    assert {name: missing["mx"][name] for name in ("name", "value", "state")} == {
        "name": "in.example.com",
        "value": "10 mail.example.net",
        "state": "missing",
    }
    server.zones["in.example.com"] = {"MX": ["10 mail.example.net."]}
    server.zones["mail.example.net"] = {"A": ["192.0.2.1"]}
    found = (await mine.owner.post(f"/v1/inbound/routes/{route.id}/check")).json()["mx"]
    assert (found["state"], found["detail"]) == ("ok", "mail arrives here")


async def test_mail_is_listed_newest_first_and_found_by_route_and_text(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    route = await received_rows.route(ctx, mine.account_id)
    first = await received_rows.put(ctx, mine.account_id, route_id=route.id, email_id="em_" + "1" * 28)
    clock.pass_seconds(1)
    second = await received_rows.put(ctx, mine.account_id, subject="100% off_now", sender="Bulk <bulk@offers.example>")
    listed = (await mine.reader.get("/v1/inbound")).json()
    assert [one["id"] for one in listed["messages"]] == [second.id, first.id]
    assert listed["messages"][1] == {
        "id": first.id,
        "route_id": route.id,
        "to": "support+1042@in.example.com",
        "from": "Ada <ada@example.net>",
        "envelope_from": "ada@example.net",
        "subject": "Re: Your receipt",
        "email_id": "em_" + "1" * 28,
        "size": len(received_rows.MAIL),
        "attachment_count": 1,
        "received_at": "2027-01-15T08:00:00.000Z",
    }
    page = (await mine.reader.get("/v1/inbound?limit=1")).json()
    following = (await mine.reader.get(f"/v1/inbound?limit=1&cursor={page['next_cursor']}")).json()
    assert ([one["id"] for one in following["messages"]], following["next_cursor"]) == ([first.id], None)
    for query, found in {
        f"route={route.id}": [first.id],
        "search=RECEIPT": [first.id],
        "search=bulk@": [second.id],
        "search=100%25%20OFF_": [second.id],
        "search=100_": [],
        "search=nothing": [],
    }.items():
        answer = (await mine.reader.get(f"/v1/inbound?{query}")).json()
        assert [one["id"] for one in answer["messages"]] == found, query


async def test_a_mail_is_read_as_its_event_has_it(ctx: context.Context, mine: AccountClients) -> None:
    route = await received_rows.route(ctx, mine.account_id)
    row = await received_rows.put(ctx, mine.account_id, route_id=route.id)
    mail = (await mine.reader.get(f"/v1/inbound/{row.id}")).json()["message"]
    (file,) = mail.pop("attachments")
    assert path_of(file.pop("url")).startswith("/v1/inbound/attachments/")
    assert file == {
        "filename": "order.csv",
        "content_type": "text/csv",
        "size": 19,
        "disposition": "attachment",
        "sha256": hashlib.sha256(b"id,due\r\n1042,monday").hexdigest(),
    }
    assert {name: mail[name] for name in ("inbound_id", "route_id", "route", "to", "from", "subject", "text")} == {
        "inbound_id": row.id,
        "route_id": route.id,
        "route": "support+*@in.example.com",
        "to": "support+1042@in.example.com",
        "from": "ada@example.net",
        "subject": "Re: Your receipt",
        "text": "It was due on Monday.",
    }
    assert mail["addresses"]["from"] == [{"address": "ada@example.net", "name": "Ada"}]
    assert mail["authentication"]["dmarc"] == {"result": "pass", "domain": "example.net", "policy": "reject"}
    assert mail["attachments_expire_at"] == "2027-01-22T08:00:00.000Z"
    await mine.owner.delete(f"/v1/inbound/routes/{route.id}")
    assert (await mine.reader.get(f"/v1/inbound/{row.id}")).json()["message"]["route"] == ""


async def test_a_mail_is_downloaded_as_it_came_and_deleted(ctx: context.Context, mine: AccountClients) -> None:
    row = await received_rows.put(ctx, mine.account_id)
    raw = await mine.reader.get(f"/v1/inbound/{row.id}/raw")
    assert (raw.content, raw.headers["content-type"]) == (received_rows.MAIL, "message/rfc822")
    assert raw.headers["content-disposition"] == f'attachment; filename="{row.id}.eml"'
    assert email.message_from_bytes(raw.content)["Subject"] == "Re: Your receipt"
    assert (await mine.reader.delete(f"/v1/inbound/{row.id}")).status_code == 403
    assert (await mine.owner.delete(f"/v1/inbound/{row.id}")).status_code == 204
    for path in (f"/v1/inbound/{row.id}", f"/v1/inbound/{row.id}/raw"):
        assert (await mine.owner.get(path)).status_code == 404
    assert (await mine.owner.delete(f"/v1/inbound/{row.id}")).status_code == 404


async def test_a_file_needs_no_key_for_seven_days_and_does_nothing_in_a_browser(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    row = await received_rows.put(ctx, mine.account_id)
    (file,) = (await mine.reader.get(f"/v1/inbound/{row.id}")).json()["message"]["attachments"]
    path = path_of(file["url"])
    got = await mine.nobody.get(path)
    assert (got.status_code, got.content) == (200, b"id,due\r\n1042,monday")
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-disposition"].startswith("attachment; filename=")
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["content-security-policy"] == "sandbox; default-src 'none'; frame-ancestors 'none'"
    for wrong in (path[:-1], f"{path}x", path.replace("attachments/", "attachments/A"), "/v1/inbound/attachments/x"):
        assert (await mine.nobody.get(wrong)).status_code == 404, wrong
    clock.now += 7 * times.DAY - 1
    assert (await mine.nobody.get(path)).status_code == 200
    clock.now += 1
    assert (await mine.nobody.get(path)).status_code == 404


async def test_a_file_is_gone_with_its_mail(ctx: context.Context, mine: AccountClients) -> None:
    row = await received_rows.put(ctx, mine.account_id)
    (file,) = (await mine.reader.get(f"/v1/inbound/{row.id}")).json()["message"]["attachments"]
    await mine.owner.delete(f"/v1/inbound/{row.id}")
    assert (await mine.nobody.get(path_of(file["url"]))).status_code == 404


async def test_a_key_reads_mail_with_one_scope_and_manages_routes_with_another(
    ctx: context.Context, mine: AccountClients
) -> None:
    route = await received_rows.route(ctx, mine.account_id)
    row = await received_rows.put(ctx, mine.account_id)
    reads = await key(ctx, mine.account_id, callers.Scope.READ)
    manages = await key(ctx, mine.account_id, callers.Scope.DOMAINS)
    for path in ("/v1/inbound", f"/v1/inbound/{row.id}", f"/v1/inbound/{row.id}/raw"):
        assert (await mine.nobody.get(path, headers=reads)).status_code == 200
        assert (await mine.nobody.get(path, headers=manages)).status_code == 401
    assert (await mine.nobody.get("/v1/inbound/routes", headers=reads)).status_code == 401
    assert (await mine.nobody.delete(f"/v1/inbound/{row.id}", headers=reads)).status_code == 401
    assert (await mine.nobody.get("/v1/inbound/routes", headers=manages)).status_code == 200
    assert (await mine.nobody.delete(f"/v1/inbound/routes/{route.id}", headers=manages)).status_code == 204
    assert (await mine.nobody.delete(f"/v1/inbound/{row.id}", headers=manages)).status_code == 204
