"""`/v1/sso`: owners set up the single sign-on of their account; nobody else, and no key."""

from postroad import context
from postroad.model.people import callers
from postroad.services.domains import domain_registry
from postroad.services.people import users as account_users
from tests import contexts
from tests.api.management import AccountClients

BODY = {"issuer": "https://login.corp.example", "client_id": "postroad", "domains": ["corp.example"]}


async def test_it_is_set_up_shown_without_its_secret_changed_and_removed(
    ctx: context.Context, mine: AccountClients
) -> None:
    await domain_registry.add(ctx, mine.account_id, "corp.example", verified=True)
    assert (await mine.owner.get("/v1/sso")).status_code == 404
    made = await mine.owner.put("/v1/sso", json={**BODY, "client_secret": "hush", "groups": {"a": "owner"}})
    assert made.status_code == 200, made.text
    expected = {
        **BODY,
        "has_client_secret": True,
        "scopes": "email",
        "creates_users": False,
        "role": "read_only",
        "groups_claim": "groups",
        "groups": {"a": "owner"},
        "allows_passwords": True,
        "redirect_uri": f"http://{ctx.settings.http.listen}/sso/{mine.account_id}/callback",
        "created_at": "2027-01-15T08:00:00.000Z",
        "updated_at": "2027-01-15T08:00:00.000Z",
    }
    assert made.json()["sso"] == expected
    shown = await mine.owner.get("/v1/sso")
    assert shown.json()["sso"] == expected
    assert "hush" not in shown.text
    changed = await mine.owner.put("/v1/sso", json={**BODY, "client_secret": "", "role": "developer"})
    assert (changed.json()["sso"]["has_client_secret"], changed.json()["sso"]["role"]) == (False, "developer")
    assert (await mine.owner.delete("/v1/sso")).status_code == 409, "no owner has a password"
    await account_users.create(
        ctx, mine.account_id, email="boss@example.com", password=contexts.PASSWORD, role=callers.Role.OWNER
    )
    assert (await mine.owner.delete("/v1/sso")).status_code == 204
    assert (await mine.owner.delete("/v1/sso")).status_code == 404


async def test_a_domain_that_is_not_verified_and_a_wrong_issuer_are_refused(mine: AccountClients) -> None:
    answer = await mine.owner.put("/v1/sso", json=BODY)
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    answer = await mine.owner.put("/v1/sso", json={**BODY, "issuer": "http://127.0.0.1:9"})
    assert (answer.status_code, answer.json()["error"].partition(":")[0]) == (400, "issuer")
