"""The management API with API keys: what each may do, what it cannot grant, and what the audit log says of it."""

import httpx

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
