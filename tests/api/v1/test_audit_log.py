"""`/v1/audit-log`, and that every route that changes something leaves its entry there.

The actions are held against the route table, so a new route without one fails here.
"""

from collections.abc import Mapping

import pytest

from postroad import config, context
from postroad.api import routes as api_routes
from postroad.model.people import callers
from postroad.services import audit_log
from postroad.services.domains import domain_registry
from postroad.services.people import sso_connections, users
from tests import contexts, webhook_rows
from tests.api.management import AccountClients
from tests.api.v1.test_tenancy import BODIES, NAMED, Key, assert_refused, call, create_sample_data, key_of

# What each route that changes something writes to the audit log; None writes nothing, because it only reads.
ACTIONS: Mapping[Key, str | None] = {
    ("POST", "/v1/messages/{id}/retry"): "message.retried",
    ("POST", "/v1/messages/{id}/resend"): "message.resent",
    ("POST", "/v1/test-email"): None,
    # What is sent changes nothing; tests/api/v1/test_account.py has the actions.
    ("PATCH", "/v1/account"): None,
    ("POST", "/v1/credentials"): "credential.created",
    ("DELETE", "/v1/credentials/{id}"): "credential.revoked",
    ("POST", "/v1/api-keys"): "api_key.created",
    ("PATCH", "/v1/api-keys/{id}"): "api_key.changed",
    ("DELETE", "/v1/api-keys/{id}"): "api_key.revoked",
    ("POST", "/v1/domains"): "domain.added",
    ("PATCH", "/v1/domains/{id}"): "domain.link_host_changed",
    ("DELETE", "/v1/domains/{id}"): "domain.removed",
    ("POST", "/v1/domains/{id}/check"): None,
    ("POST", "/v1/domains/{id}/rotate-key"): "domain.key_created",
    ("PUT", "/v1/templates/{alias}"): "template.saved",
    ("DELETE", "/v1/templates/{alias}"): "template.removed",
    ("POST", "/v1/suppressions"): "suppression.added",
    ("POST", "/v1/suppressions/import"): "suppression.imported",
    ("DELETE", "/v1/suppressions/{email}"): "suppression.removed",
    ("POST", "/v1/inbound/routes"): "inbound_route.added",
    ("DELETE", "/v1/inbound/routes/{id}"): "inbound_route.removed",
    ("POST", "/v1/inbound/routes/{id}/check"): None,
    ("DELETE", "/v1/inbound/{id}"): "received_message.removed",
    ("PUT", "/v1/webhook"): "webhook.saved",
    ("DELETE", "/v1/webhook"): "webhook.removed",
    ("POST", "/v1/webhook/rotate-secret"): "webhook.secret_rotated",
    ("POST", "/v1/webhook/ping"): "webhook.pinged",
    ("POST", "/v1/webhook/deliveries/replay"): "webhook.replayed",
    ("POST", "/v1/webhook/deliveries/{id}/replay"): "webhook.replayed",
    ("POST", "/v1/webhooks"): "webhook.saved",
    ("POST", "/v1/webhook-listeners"): "webhook.saved",
    ("POST", "/v1/webhook-listeners/{id}/receive"): None,
    ("PATCH", "/v1/webhooks/{webhook}"): "webhook.saved",
    ("DELETE", "/v1/webhooks/{webhook}"): "webhook.removed",
    ("POST", "/v1/webhooks/{webhook}/rotate-secret"): "webhook.secret_rotated",
    ("POST", "/v1/webhooks/{webhook}/ping"): "webhook.pinged",
    ("POST", "/v1/webhooks/{webhook}/deliveries/replay"): "webhook.replayed",
    ("POST", "/v1/webhooks/{webhook}/deliveries/{id}/replay"): "webhook.replayed",
    ("PUT", "/v1/sso"): "sso.changed",
    ("DELETE", "/v1/sso"): "sso.removed",
    ("POST", "/v1/team"): "user.invited",
    ("PATCH", "/v1/team/{id}"): "user.role_changed",
    ("DELETE", "/v1/team/{id}"): "user.removed",
    ("POST", "/v1/team/{id}/password-link"): "user.password_link_made",
    ("POST", "/v1/team/{id}/recovery-link"): "user.recovery_link_made",
}
CHANGING = {callers.Permission.CHANGE, callers.Permission.MANAGE, callers.Permission.OWN}


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return webhook_rows.settings(database_url)


async def connect_provider(ctx: context.Context, account_id: str) -> None:
    """Single sign-on, and an owner who can log in without it."""
    await domain_registry.add(ctx, account_id, "corp.example", verified=True)
    await sso_connections.save(ctx, account_id, sso_connections.Draft(**BODIES["PUT", "/v1/sso"], groups={}))
    await users.create(ctx, account_id, email="boss@example.com", password=contexts.PASSWORD, role=callers.Role.OWNER)


def test_every_route_that_changes_something_has_an_action() -> None:
    changing = {key_of(route) for route in api_routes.ROUTES if route.permission in CHANGING and route.method != "GET"}
    assert changing == ACTIONS.keys()
    assert {action for action in ACTIONS.values() if action is not None} <= audit_log.ACTIONS.keys()


@pytest.mark.parametrize("key", ACTIONS, ids=" ".join)
async def test_a_request_that_changes_something_is_in_the_audit_log_with_who_sent_it(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock, key: Key
) -> None:
    things = await create_sample_data(ctx, mine.account_id, domain="mine.example")
    await webhook_rows.put_ended(ctx, mine.account_id, webhook_rows.State.FAILED)
    await connect_provider(ctx, mine.account_id)
    clock.pass_seconds(31)  # so that what was tried can be tried again
    before = (await mine.reader.get("/v1/audit-log?limit=100")).json()["entries"]
    answer = await call(mine.owner, key, things[NAMED.get(key, "template")])
    assert answer.status_code in {200, 201, 202, 204}, answer.text
    entries = (await mine.reader.get("/v1/audit-log?limit=100")).json()["entries"]
    new = [entry for entry in entries if entry not in before]
    assert [entry["action"] for entry in new] == ([] if ACTIONS[key] is None else [ACTIONS[key]])
    me = (await mine.owner.get("/v1/auth/me")).json()["user"]
    for entry in new:
        assert entry["actor"] == {"kind": "person", "id": me["id"], "name": me["email"]}
        assert entry["request_id"] == answer.headers["x-request-id"]
        assert entry["client_address"] == "127.0.0.1"


async def test_an_entry_says_what_was_done_in_words(mine: AccountClients, clock: contexts.Clock) -> None:
    clock.pass_seconds(1)
    made = await mine.owner.post("/v1/domains", json={"name": "Shop.Example"})
    (entry,) = (await mine.reader.get("/v1/audit-log?limit=1")).json()["entries"]
    assert entry == {
        "id": entry["id"],
        "at": "2027-01-15T08:00:01.000Z",
        "actor": entry["actor"],
        "action": "domain.added",
        "subject": "shop.example",
        "detail": "",
        "text": "added the domain shop.example",
        "request_id": made.json()["request_id"],
        "client_address": "127.0.0.1",
    }


async def test_what_no_request_did_has_no_request(mine: AccountClients) -> None:
    (entry,) = (await mine.reader.get("/v1/audit-log")).json()["entries"]
    assert entry["actor"] == {"kind": "operator", "id": None, "name": "operator"}
    assert (entry["text"], entry["request_id"], entry["client_address"]) == ("created the account Mine", None, None)


async def test_a_link_and_a_password_never_get_into_the_audit_log(mine: AccountClients) -> None:
    invited = (await mine.owner.post("/v1/team", json={"email": "jo@example.com", "role": "read_only"})).json()
    made = (await mine.owner.post("/v1/credentials", json={"name": "Shop"})).json()
    reported = (await mine.owner.get("/v1/audit-log")).text
    assert "jo@example.com" in reported
    assert invited["link"].rpartition("/")[2] not in reported
    assert made["password"] not in reported


async def test_the_audit_log_is_read_in_pages_and_only_by_its_own_account(
    mine: AccountClients, theirs: AccountClients, clock: contexts.Clock
) -> None:
    for name in ("one.example", "two.example"):
        clock.pass_seconds(1)
        await mine.owner.post("/v1/domains", json={"name": name})
    first = (await mine.reader.get("/v1/audit-log?limit=2")).json()
    rest = (await mine.reader.get("/v1/audit-log", params={"before": first["next_before"]})).json()
    assert [entry["subject"] for entry in first["entries"] + rest["entries"]] == ["two.example", "one.example", "Mine"]
    assert rest["next_before"] is None
    for entry in first["entries"]:
        foreign = (await theirs.reader.get("/v1/audit-log", params={"before": entry["id"]})).json()["entries"]
        assert [entry["subject"] for entry in foreign] == ["Theirs"]


async def test_limits_and_places_are_bounded(mine: AccountClients) -> None:
    for query in ("limit=0", "limit=101", "limit=x", "before=", "before=%00", "before=em_1", "account_id=x"):
        assert_refused(await mine.owner.get(f"/v1/audit-log?{query}"), 400, "invalid_request")
    assert_refused(await mine.nobody.get("/v1/audit-log"), 401, "unauthorized")


async def test_the_log_is_filtered_by_actor_action_subject_and_time(
    mine: AccountClients, clock: contexts.Clock
) -> None:
    for name in ("shop.example", "bakery.example"):
        clock.pass_seconds(60)
        await mine.owner.post("/v1/domains", json={"name": name})

    async def found(**filters: str) -> list[str]:
        answer = await mine.reader.get("/v1/audit-log", params=filters)
        assert answer.status_code == 200, answer.text
        assert answer.json()["next_before"] is None
        return [entry["subject"] for entry in answer.json()["entries"] if entry["action"] == "domain.added"]

    assert await found(action="domain") == ["bakery.example", "shop.example"]
    assert await found(action="domain.added", subject="SHOP") == ["shop.example"]
    assert await found(actor="nobody") == []
    assert await found(since="2027-01-15T08:02:00Z") == ["bakery.example"]
    assert await found(until="2027-01-15T08:02:00Z") == ["shop.example"]
    for wrong in ({"since": "yesterday"}, {"actor": "x" * 201}, {"who": "ada"}):
        assert (await mine.reader.get("/v1/audit-log", params=wrong)).status_code == 400
