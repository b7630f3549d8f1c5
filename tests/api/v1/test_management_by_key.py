"""The management API with API keys: what each may do, what it cannot grant, and what the audit log says of it."""

import httpx
import pytest

from postroad import context
from postroad.model.people import callers
from postroad.services.people import api_keys, credentials
from tests.api.management import AccountClients


async def key(ctx: context.Context, account_id: str, *scopes: str, name: str = "deploy") -> dict[str, str]:
    """The header field of a new key."""
    if not await credentials.of_account(ctx, account_id):
        await credentials.create(ctx, account_id, "first")
    _, secret = await api_keys.create(ctx, account_id, credential_id=None, name=name, scopes=frozenset(scopes))
    return {"Authorization": f"Bearer {secret}"}


def refused(response: httpx.Response, status: int, code: str) -> str:
    assert (response.status_code, response.json()["code"]) == (status, code)
    return str(response.json()["error"])


async def test_a_key_manages_what_its_scope_names_and_the_audit_log_names_the_key(
    ctx: context.Context, mine: AccountClients
) -> None:
    headers = await key(ctx, mine.account_id, "templates")
    saved = await mine.nobody.put("/v1/templates/hello", json={"subject": "Hi", "text": "x"}, headers=headers)
    assert saved.status_code == 201
    assert (await mine.nobody.get("/v1/templates/hello", headers=headers)).status_code == 200
    entries = (await mine.owner.get("/v1/audit-log")).json()["entries"]
    (entry,) = (entry for entry in entries if entry["action"] == "template.saved")
    (listed,) = (await mine.owner.get("/v1/api-keys")).json()["api_keys"]
    assert entry["actor"] == {"kind": "api_key", "id": listed["id"], "name": "API key deploy"}
    assert entry["request_id"] == saved.headers["x-request-id"]


async def test_a_key_without_the_scope_is_told_which_one_is_missing(ctx: context.Context, mine: AccountClients) -> None:
    headers = await key(ctx, mine.account_id, "templates")
    assert "scope 'suppressions'" in refused(
        await mine.nobody.get("/v1/suppressions", headers=headers), 401, "unauthorized"
    )
    message = {"from": "a@example.com", "to": "b@example.net", "subject": "x", "text": "x"}
    sent = await mine.nobody.post("/emails", json=message, headers={**headers, "Idempotency-Key": "1"})
    assert "scope 'send'" in refused(sent, 401, "unauthorized")


async def test_a_login_needs_a_user_whatever_the_key_may_do(ctx: context.Context, mine: AccountClients) -> None:
    headers = await key(ctx, mine.account_id, "*")
    for method, path in (("GET", "/v1/auth/me"), ("POST", "/v1/auth/logout")):
        answer = await mine.nobody.request(method, path, headers=headers)
        assert "login token" in refused(answer, 401, "unauthorized")


async def test_a_key_creates_keys_with_what_it_has_under_its_own_credential(
    ctx: context.Context, mine: AccountClients
) -> None:
    first, _ = await credentials.create(ctx, mine.account_id, "first")
    second, _ = await credentials.create(ctx, mine.account_id, "second")
    _, secret = await api_keys.create(
        ctx, mine.account_id, credential_id=second.id, name="deploy", scopes=frozenset({"send", "team"})
    )
    headers = {"Authorization": f"Bearer {secret}"}
    made = await mine.nobody.post("/v1/api-keys", json={"name": "shop"}, headers=headers)
    assert made.status_code == 201
    assert made.json()["api_key"]["credential_id"] == second.id
    for body in ({"scopes": ["read"]}, {"scopes": ["*"]}, {"credential_id": first.id}):
        answer = await mine.nobody.post("/v1/api-keys", json={"name": "more", **body}, headers=headers)
        refused(answer, 403, "forbidden")
    assert {row.name for row in await api_keys.of_account(ctx, mine.account_id)} == {"deploy", "shop"}


async def test_a_key_gains_no_rights_by_a_credential_or_a_user(ctx: context.Context, mine: AccountClients) -> None:
    headers = await key(ctx, mine.account_id, "send", "team")
    (owner, *_) = (await mine.owner.get("/v1/team")).json()["users"]
    for method, path, body in (
        ("POST", "/v1/credentials", {"name": "x"}),
        ("POST", "/v1/team", {"email": "eve@example.net", "role": "owner"}),
        ("POST", "/v1/team", {"email": "eve@example.net", "role": "read_only"}),
        ("PATCH", f"/v1/team/{owner['id']}", {"role": "developer"}),
        ("POST", f"/v1/team/{owner['id']}/password-link", None),
    ):
        answer = await mine.nobody.request(method, path, json=body, headers=headers)
        assert "does not have the scope 'read'" in refused(answer, 403, "forbidden")
    assert len((await mine.nobody.get("/v1/team", headers=headers)).json()["users"]) == 2
    full = await key(ctx, mine.account_id, "*", name="admin")
    invited = await mine.nobody.post("/v1/team", json={"email": "eve@example.net", "role": "developer"}, headers=full)
    assert invited.status_code == 201
    assert (await mine.nobody.post("/v1/credentials", json={"name": "x"}, headers=full)).status_code == 201


async def test_a_key_that_may_only_send_some_templates_does_not_change_them(
    ctx: context.Context, mine: AccountClients
) -> None:
    await credentials.create(ctx, mine.account_id, "first")
    content = {"subject": "Hi", "text": "x"}
    assert (await mine.owner.put("/v1/templates/hello", json=content)).status_code == 201
    limits = callers.KeyLimits(templates=("hello",))
    for scopes, is_allowed in (({"send", "templates"}, False), ({"templates"}, True)):
        _, secret = await api_keys.create(
            ctx, mine.account_id, credential_id=None, name="x", scopes=frozenset(scopes), limits=limits
        )
        headers = {"Authorization": f"Bearer {secret}"}
        saved = await mine.nobody.put("/v1/templates/hello", json=content, headers=headers)
        assert saved.is_success == is_allowed
        if not is_allowed:
            removed = await mine.nobody.delete("/v1/templates/hello", headers=headers)
            assert "may only send the templates hello" in refused(removed, 403, "forbidden")


@pytest.mark.parametrize("scopes", [("team",), ("*",)])
async def test_what_belongs_to_another_account_is_not_found(
    ctx: context.Context, mine: AccountClients, theirs: AccountClients, scopes: tuple[str, ...]
) -> None:
    headers = await key(ctx, mine.account_id, *scopes)
    await key(ctx, theirs.account_id, "send")
    (foreign,) = (await theirs.owner.get("/v1/api-keys")).json()["api_keys"]
    refused(await mine.nobody.delete(f"/v1/api-keys/{foreign['id']}", headers=headers), 404, "not_found")
    assert foreign["id"] not in (await mine.nobody.get("/v1/api-keys", headers=headers)).text
