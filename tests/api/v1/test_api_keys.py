"""`/v1/api-keys`: made with a secret that is shown once, listed and revoked."""

from typing import Any

import pytest

from postroad import context
from postroad.services.people import api_keys
from tests import accepted_mail, contexts
from tests.api.management import AccountClients


async def credential(clients: AccountClients) -> str:
    made = (await clients.owner.post("/v1/credentials", json={"name": "Web shop"})).json()
    return str(made["credential"]["id"])


async def test_a_new_key_sends_and_its_secret_is_shown_once(ctx: context.Context, mine: AccountClients) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    credential_id = await credential(mine)
    (me,) = [one for one in (await mine.owner.get("/v1/team")).json()["users"] if one["role"] == "owner"]
    response = await mine.owner.post("/v1/api-keys", json={"name": "Shop"})
    made = response.json()
    assert response.status_code == 201
    assert made.keys() == {"api_key", "secret", "request_id"}
    assert made["api_key"] == {
        "id": made["api_key"]["id"],
        "name": "Shop",
        "credential_id": credential_id,
        "hint": made["api_key"]["hint"],
        "mode": "live",
        "scopes": ["send"],
        "domains": [],
        "networks": [],
        "templates": [],
        "recipients_per_day": None,
        "recipients_today": None,
        "credit_budget": None,
        "credits_used": None,
        "expires_at": None,
        "approval_above": None,
        "created_at": "2027-01-15T08:00:00.000Z",
        "created_by": me["id"],
        "created_by_email": me["email"],
        "last_used_at": None,
        "disabled_at": None,
        "revoked_at": None,
    }
    bearer = {"Authorization": f"Bearer {made['secret']}"}
    message = {"from": "shop@example.com", "to": "ada@example.net", "subject": "Hi", "text": "x"}
    sent = await mine.nobody.post("/emails", json=message, headers={**bearer, "Idempotency-Key": "1"})
    assert sent.status_code == 202
    refused = await mine.nobody.get(f"/emails/{sent.json()['id']}", headers=bearer)
    assert refused.status_code == 401
    assert "'read'" in refused.json()["error"]
    shown = (await mine.owner.get("/v1/api-keys")).text
    assert made["api_key"]["id"] in shown
    assert made["secret"] not in shown


@pytest.mark.parametrize(
    "given, scopes",
    [
        (None, ["send"]),
        (["send"], ["send"]),
        (["send", "send"], ["send"]),
        (["read", "send"], ["send", "read"]),
        (["send", "read"], ["send", "read"]),
        (["read"], ["read"]),
        (["team", "statistics", "domains"], ["domains", "statistics", "team"]),
        (["send", "*"], ["*"]),
    ],
)
async def test_a_key_has_the_scopes_that_were_asked_for(
    mine: AccountClients, given: list[str] | None, scopes: list[str]
) -> None:
    await credential(mine)
    made = (await mine.owner.post("/v1/api-keys", json={"name": "Shop", "scopes": given})).json()
    assert made["api_key"]["scopes"] == scopes


async def test_impossible_keys_are_refused(mine: AccountClients) -> None:
    await credential(mine)
    cases: list[tuple[str, dict[str, Any]]] = [
        ("scopes", {"scopes": []}),
        ("scopes", {"scopes": ["send", "view"]}),
        ("scopes", {"scopes": ["send", "change"]}),
        ("scopes", {"scopes": ["all"]}),
        ("scopes", {"scopes": ["send"] * 10}),
        ("scopes", {"scopes": "send"}),
        ("name", {"name": ""}),
        ("name", {"name": "a\0b"}),
        ("name", {"name": "x" * 101}),
        ("credential_id", {"credential_id": 5}),
    ]
    for field, change in cases:
        response = await mine.owner.post("/v1/api-keys", json={"name": "Shop", **change})
        assert (response.status_code, response.json()["code"]) == (400, "invalid_request")
        assert response.json()["error"].startswith(field)
    assert (await mine.owner.get("/v1/api-keys")).json()["api_keys"] == []


async def test_a_revoked_key_stops_and_stays_in_the_list(mine: AccountClients, clock: contexts.Clock) -> None:
    await credential(mine)
    made = (await mine.owner.post("/v1/api-keys", json={"name": "Shop", "scopes": ["send", "read"]})).json()
    path = f"/v1/api-keys/{made['api_key']['id']}"
    assert (await mine.owner.delete(path)).status_code == 204
    bearer = {"Authorization": f"Bearer {made['secret']}"}
    assert (await mine.nobody.get("/emails/em_" + "0" * 28, headers=bearer)).status_code == 401
    (listed,) = (await mine.owner.get("/v1/api-keys")).json()["api_keys"]
    assert listed == {**made["api_key"], "revoked_at": "2027-01-15T08:00:00.000Z"}
    assert (await mine.owner.delete(path)).status_code == 404


async def test_a_test_key_has_a_prefix_of_its_own(mine: AccountClients) -> None:
    await credential(mine)
    made = (await mine.owner.post("/v1/api-keys", json={"name": "CI", "mode": "test"})).json()
    assert made["secret"].startswith("pr_test_")
    assert made["api_key"]["hint"].startswith("pr_test_")
    assert made["api_key"]["mode"] == "test"
    (listed,) = (await mine.owner.get("/v1/api-keys")).json()["api_keys"]
    assert listed["mode"] == "test"
    refused = await mine.owner.post("/v1/api-keys", json={"name": "CI", "mode": "both"})
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")


async def test_a_key_of_an_operator_is_listed(ctx: context.Context, mine: AccountClients) -> None:
    await credential(mine)
    scopes = frozenset({"operator", "read"})
    await api_keys.create(ctx, mine.account_id, credential_id=None, name="ops", scopes=scopes)
    (listed,) = (await mine.owner.get("/v1/api-keys")).json()["api_keys"]
    assert listed["scopes"] == ["read", "operator"]
