"""For every management route: a thing of another account is exactly like an unknown one.

The cases are held against the route table, so a new route without a case fails here.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from postroad import config, context
from postroad.api.v1 import (
    account,
    audit_log,
    inbound,
    message_checks,
    messages,
    requests,
    sample_send,
    sso,
    statistics,
    team,
    webhook_listeners,
    webhooks,
)
from postroad.api.v1 import api_keys as v1_api_keys
from postroad.api.v1 import credentials as v1_credentials
from postroad.api.v1 import domains as v1_domains
from postroad.api.v1 import suppressions as v1_suppressions
from postroad.api.v1 import templates as v1_templates
from postroad.model.people import callers
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import queue_changes
from postroad.services.people import api_keys, credentials, users
from postroad.services.suppressions import suppression_list as suppressions
from postroad.services.templates import templates
from postroad.services.webhooks import endpoint_settings, endpoints, listeners
from postroad.storage.mail import suppressions as stored_suppressions
from postroad.storage.people import accounts as stored_accounts
from postroad.web import routing
from tests import accepted_mail, contexts, logged_requests, queue_steps, received_rows, webhook_rows
from tests.api.management import AccountClients

ROUTES = (
    *account.ROUTES,
    *v1_api_keys.ROUTES,
    *v1_credentials.ROUTES,
    *v1_domains.ROUTES,
    *audit_log.ROUTES,
    *inbound.ROUTES,
    *requests.ROUTES,
    *messages.ROUTES,
    *message_checks.ROUTES,
    *statistics.ROUTES,
    *v1_suppressions.ROUTES,
    *sso.ROUTES,
    *team.ROUTES,
    *v1_templates.ROUTES,
    *sample_send.ROUTES,
    *webhooks.FIRST_ROUTES,
    *webhooks.ROUTES,
    *webhook_listeners.ROUTES,
)
Key = tuple[str, str]
BODIES: Mapping[Key, dict[str, Any]] = {
    # Required of nobody: those who walk have no second factor.
    ("PATCH", "/v1/account"): {"second_factor_required": False},
    ("POST", "/v1/credentials"): {"name": "New"},
    ("POST", "/v1/api-keys"): {"name": "New"},
    ("PATCH", "/v1/api-keys/{id}"): {"name": "New"},
    ("POST", "/v1/domains"): {"name": "new.example"},
    ("PATCH", "/v1/domains/{id}"): {"link_host": None},
    ("POST", "/v1/inbound/routes"): {"match": "*@mine.example"},
    ("POST", "/v1/messages/{id}/resend"): {},
    ("POST", "/v1/messages/{id}/retry"): {},
    ("POST", "/v1/suppressions"): {"email": "new@example.net"},
    ("PUT", "/v1/sso"): {"issuer": "https://login.example.org", "client_id": "postroad", "domains": ["corp.example"]},
    ("POST", "/v1/team"): {"email": "new@example.net", "role": "developer"},
    ("PATCH", "/v1/team/{id}"): {"role": "owner"},
    ("PUT", "/v1/templates/{alias}"): {"subject": "New", "text": "x"},
    ("POST", "/v1/templates/{alias}/preview"): {},
    ("POST", "/v1/test-email"): {"to": "new@example.net"},
    ("PUT", "/v1/webhook"): {"url": webhook_rows.URL},
    ("POST", "/v1/webhook/rotate-secret"): {},
    ("POST", "/v1/webhook/deliveries/replay"): {"after": "2026-01-01T00:00:00Z", "before": "2030-01-01T00:00:00Z"},
    ("POST", "/v1/webhooks"): {"url": webhook_rows.URL},
    ("POST", "/v1/webhook-listeners"): {"version": 2},
    ("POST", "/v1/webhook-listeners/{id}/receive"): {"wait_seconds": 0},
    ("PATCH", "/v1/webhooks/{webhook}"): {"description": "New"},
    ("POST", "/v1/webhooks/{webhook}/rotate-secret"): {},
    ("POST", "/v1/webhooks/{webhook}/deliveries/replay"): {
        "after": "2026-01-01T00:00:00Z",
        "before": "2030-01-01T00:00:00Z",
    },
}
# What is not JSON, and its type.
FILES: Mapping[Key, tuple[bytes, str]] = {
    ("POST", "/v1/suppressions/import"): (b"email\r\nnew@example.net\r\n", "text/csv"),
}
# The kind of thing that stands in the path. A PUT makes what does not exist: it has a test of its own below.
NAMED: Mapping[Key, str] = {
    ("GET", "/v1/requests/{id}"): "request",
    ("PATCH", "/v1/api-keys/{id}"): "api_key",
    ("DELETE", "/v1/api-keys/{id}"): "api_key",
    ("GET", "/v1/credentials/{id}"): "credential",
    ("DELETE", "/v1/credentials/{id}"): "credential",
    ("GET", "/v1/domains/{id}"): "domain",
    ("PATCH", "/v1/domains/{id}"): "domain",
    ("DELETE", "/v1/domains/{id}"): "domain",
    ("GET", "/v1/domains/{id}/reports"): "domain",
    ("POST", "/v1/domains/{id}/check"): "domain",
    ("POST", "/v1/domains/{id}/rotate-key"): "domain",
    ("GET", "/v1/inbound/routes/{id}"): "inbound_route",
    ("DELETE", "/v1/inbound/routes/{id}"): "inbound_route",
    ("POST", "/v1/inbound/routes/{id}/check"): "inbound_route",
    ("GET", "/v1/inbound/{id}"): "received_mail",
    ("DELETE", "/v1/inbound/{id}"): "received_mail",
    ("GET", "/v1/inbound/{id}/raw"): "received_mail",
    ("GET", "/v1/messages/{id}"): "message",
    ("GET", "/v1/messages/{id}/raw"): "message",
    ("POST", "/v1/messages/{id}/resend"): "ended_message",
    ("GET", "/v1/messages/{id}/checks"): "message",
    ("POST", "/v1/messages/{id}/retry"): "message",
    ("GET", "/v1/suppressions/{email}"): "suppression",
    ("DELETE", "/v1/suppressions/{email}"): "suppression",
    ("PATCH", "/v1/team/{id}"): "person",
    ("DELETE", "/v1/team/{id}"): "person",
    ("POST", "/v1/team/{id}/password-link"): "person",
    ("POST", "/v1/team/{id}/recovery-link"): "person",
    ("GET", "/v1/templates/{alias}"): "template",
    ("DELETE", "/v1/templates/{alias}"): "template",
    ("POST", "/v1/templates/{alias}/preview"): "template",
    ("GET", "/v1/webhook/deliveries/{id}"): "webhook_delivery",
    ("POST", "/v1/webhook/deliveries/{id}/replay"): "webhook_delivery",
    ("GET", "/v1/webhooks/{webhook}"): "webhook",
    ("PATCH", "/v1/webhooks/{webhook}"): "webhook",
    ("DELETE", "/v1/webhooks/{webhook}"): "webhook",
    ("POST", "/v1/webhooks/{webhook}/rotate-secret"): "webhook",
    ("POST", "/v1/webhooks/{webhook}/ping"): "webhook",
    ("GET", "/v1/webhooks/{webhook}/deliveries"): "webhook",
    ("POST", "/v1/webhooks/{webhook}/deliveries/replay"): "webhook",
    ("GET", "/v1/webhooks/{webhook}/deliveries/{id}"): "delivery_of_webhook",
    ("POST", "/v1/webhooks/{webhook}/deliveries/{id}/replay"): "delivery_of_webhook",
    ("POST", "/v1/webhook-listeners/{id}/receive"): "listener",
}
UNKNOWN = {
    "api_key": "key_" + "0" * 28,
    "credential": "cred_" + "0" * 28,
    "domain": "dom_" + "0" * 28,
    "inbound_route": "rt_" + "0" * 28,
    "received_mail": "in_" + "0" * 28,
    "message": "em_" + "0" * 28,
    "ended_message": "em_" + "0" * 28,
    "person": "usr_" + "0" * 28,
    "request": "req_" + "0" * 28,
    "suppression": "nobody@example.net",
    "template": "nothing-here",
    "webhook": "whk_" + "0" * 28,
    "webhook_delivery": "whd_" + "0" * 28,
    "listener": "whk_" + "0" * 28,
    "delivery_of_webhook": "whk_" + "0" * 28 + "/whd_" + "0" * 28,
}
# The members that hold the rows and the place of the next part, and what asks for it.
LISTS: Mapping[str, tuple[str, str, str]] = {
    "/v1/account/ledger": ("entries", "before", "next_before"),
    "/v1/credentials": ("credentials", "cursor", "next_cursor"),
    "/v1/api-keys": ("api_keys", "cursor", "next_cursor"),
    "/v1/domains": ("domains", "cursor", "next_cursor"),
    "/v1/inbound": ("messages", "cursor", "next_cursor"),
    "/v1/inbound/routes": ("routes", "cursor", "next_cursor"),
    "/v1/suppressions": ("suppressions", "cursor", "next_cursor"),
    "/v1/templates": ("templates", "cursor", "next_cursor"),
    "/v1/messages": ("messages", "cursor", "next_cursor"),
    "/v1/webhook/deliveries": ("deliveries", "before", "next_before"),
}


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return webhook_rows.settings(database_url)


def key_of(route: routing.Route[context.Context]) -> Key:
    return route.method, route.path


async def create_sample_data(ctx: context.Context, account_id: str, *, domain: str) -> dict[str, str]:
    """One of everything; the ids by kind."""
    await accepted_mail.allow_sending(ctx, account_id, domain=domain)
    credential, _ = await credentials.create(ctx, account_id, "Furniture")
    scopes = frozenset({callers.Permission.SEND})
    key, _ = await api_keys.create(ctx, account_id, credential_id=None, name="Furniture", scopes=scopes)
    await templates.put(ctx, account_id, "furniture", subject="Furniture", text="x", html=None)
    (owned,) = await domains.of_account(ctx, account_id)
    endpoint = (await endpoints.save(ctx, account_id, url=webhook_rows.URL)).webhook
    message_id = await accepted_mail.accept(ctx, account_id, sender=f"shop@{domain}")
    # So that it waits, and can be tried.
    for claimed in await queue_steps.claim(ctx, account_id):
        await queue_steps.defer(ctx, claimed)
    ended_id = await accepted_mail.accept(ctx, account_id, sender=f"shop@{domain}", to=("bob@example.net",))
    await queue_changes.cancel_message(ctx, account_id, ended_id)
    return {
        "api_key": key.id,
        "credential": credential.id,
        "domain": owned.id,
        "inbound_route": (route := await received_rows.route(ctx, account_id, f"furniture@in.{domain}")).id,
        "received_mail": (await received_rows.put(ctx, account_id, route_id=route.id)).id,
        "message": message_id,
        "ended_message": ended_id,
        "person": (await users.invite(ctx, account_id, email=f"jo@{domain}", role=callers.Role.DEVELOPER)).user.id,
        "request": logged_requests.note(ctx, account_id),
        "suppression": await suppress(ctx, account_id, f"furniture@{domain}"),
        "template": "furniture",
        "webhook": endpoint.id,
        "webhook_delivery": (delivery := await webhook_rows.put_ended(ctx, account_id)).id,
        "delivery_of_webhook": f"{endpoint.id}/{delivery.id}",
        "listener": (await listeners.create(ctx, account_id, endpoint_settings.Changes())).webhook.id,
    }


async def suppress(ctx: context.Context, account_id: str, email: str) -> str:
    source = stored_suppressions.Source.ACCOUNT
    added, _ = await suppressions.add(ctx, account_id, email, reason="Furniture", source=source)
    return added.email_key


async def call(client: httpx.AsyncClient, key: Key, name: str = "x", **more: Any) -> httpx.Response:
    method, path = key
    body: dict[str, Any] = {"json": BODIES[key]} if key in BODIES else {}
    if key in FILES:
        content, content_type = FILES[key]
        body = {"content": content}
        more["headers"] = {"Content-Type": content_type, **more.get("headers", {})}
    if path.endswith("/resend"):
        more["headers"] = {"Idempotency-Key": "once", **more.get("headers", {})}
    # What belongs to an endpoint has two names.
    owner, _, part = name.rpartition("/")
    url = path.replace("{webhook}", owner or name).replace("{id}", part)
    url = url.replace("{alias}", name).replace("{email}", name)
    return await client.request(method, url, **{**body, **more})


@contextlib.contextmanager
def naming(case: str) -> Iterator[None]:
    """Says which case of a walk it was that failed: to furnish an account for each takes longer than the calls."""
    try:
        yield
    except AssertionError as problem:
        problem.add_note(f"in the case {case}")
        raise


def assert_refused(response: httpx.Response, status: int, code: str) -> None:
    refusal = response.json()
    assert (response.status_code, refusal["code"]) == (status, code)
    assert refusal["request_id"] == response.headers["x-request-id"]
    assert refusal.keys() == {"error", "code", "request_id"}


def test_every_route_with_a_name_in_its_path_has_a_case() -> None:
    named = {key_of(route) for route in ROUTES if routing.parameters(route.path)}
    # A link to a file is a credential of its own, for anybody.
    others = {("PUT", "/v1/templates/{alias}"), ("GET", "/v1/inbound/attachments/{token}")}
    assert named - others == NAMED.keys()
    assert {key_of(route) for route in ROUTES if route.body} == BODIES.keys() | FILES.keys()
    # No account's audit log is ever empty: its list is tested with it, and that of requests too. The log of an endpoint
    # is that of the first.
    without_rows = {
        "/v1/statistics",
        "/v1/audit-log",
        "/v1/requests",
        "/v1/webhooks/{webhook}/deliveries",
        "/v1/suppressions/{email}",
        "/v1/team/{id}",
    }
    assert {route.path for route in ROUTES if route.query} - without_rows == LISTS.keys()


async def test_a_thing_of_another_account_is_like_an_unknown_one(
    ctx: context.Context, mine: AccountClients, theirs: AccountClients, clock: contexts.Clock
) -> None:
    foreign = await create_sample_data(ctx, theirs.account_id, domain="theirs.example")
    clock.pass_seconds(31)  # so that what was tried could be tried again
    for key, kind in NAMED.items():
        with naming(" ".join(key)):
            of_foreign = await call(mine.owner, key, foreign[kind])
            of_unknown = await call(mine.owner, key, UNKNOWN[kind])
            for response in (of_foreign, of_unknown):
                assert_refused(response, 404, "not_found")
            assert of_foreign.json()["error"] == of_unknown.json()["error"]
            assert of_foreign.headers.keys() == of_unknown.headers.keys()


async def test_no_name_in_a_path_is_more_than_not_found(mine: AccountClients) -> None:
    for key in NAMED:
        for name in ("%00", "em_%00", "%0a", "..%2f..%2fx", "%27%20OR%201%3D1", "%F0%9F%92%A9", "%ff", "x" * 2000):
            assert_refused(await call(mine.owner, key, name), 404, "not_found")


async def test_saving_a_template_touches_only_the_callers_own(
    ctx: context.Context, mine: AccountClients, theirs: AccountClients
) -> None:
    await templates.put(ctx, theirs.account_id, "welcome", subject="Theirs", text="x", html=None)
    saved = await call(mine.owner, ("PUT", "/v1/templates/{alias}"), "welcome")
    assert saved.status_code == 201
    assert (await templates.find(ctx, theirs.account_id, "welcome")).subject == "Theirs"


async def test_an_api_key_cannot_be_issued_under_a_foreign_credential(
    ctx: context.Context, mine: AccountClients, theirs: AccountClients
) -> None:
    foreign = await create_sample_data(ctx, theirs.account_id, domain="theirs.example")
    refusals = [
        await mine.owner.post("/v1/api-keys", json={"name": "x", "credential_id": credential_id})
        for credential_id in (foreign["credential"], UNKNOWN["credential"])
    ]
    for refusal in refusals:
        assert_refused(refusal, 404, "not_found")
    assert refusals[0].json()["error"] == refusals[1].json()["error"]


async def test_limits_and_cursors_are_bounded(mine: AccountClients) -> None:
    for path, (_, cursor, _) in LISTS.items():
        with naming(path):
            for limit in ("0", "-1", "101", "1e3", "9" * 30, "", "ten", "1.0", "%00", "１"):
                assert_refused(await mine.owner.get(f"{path}?limit={limit}"), 400, "invalid_request")
            for text in ("", "%00", "%0A", "%27", "x" * 1000, "EM_", "%F0%9F%92%A9", "..", "ABC", "%ff"):
                assert_refused(await mine.owner.get(f"{path}?{cursor}={text}"), 400, "invalid_request")
            assert_refused(await mine.owner.get(f"{path}?limit=1&limit=2"), 400, "invalid_request")
            assert_refused(await mine.owner.get(f"{path}?account_id=x"), 400, "invalid_request")
            for limit in ("1", "100"):
                assert (await mine.owner.get(f"{path}?limit={limit}")).status_code == 200


async def test_a_suspended_account_still_reads_and_tidies_up(ctx: context.Context, mine: AccountClients) -> None:
    things = await create_sample_data(ctx, mine.account_id, domain="mine.example")
    async with ctx.store.transaction() as tx:
        await stored_accounts.suspend(tx, mine.account_id, reason="spam", by=stored_accounts.OPERATOR, now=1)
    assert (await mine.owner.get("/v1/account")).json()["account"]["status"] == "suspended"
    assert (await mine.owner.get(f"/v1/messages/{things['message']}")).status_code == 200
    assert (await mine.owner.delete(f"/v1/credentials/{things['credential']}")).status_code == 204
