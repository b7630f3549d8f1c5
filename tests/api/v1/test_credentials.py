"""`/v1/credentials`: made with a password that is shown once, listed, read and revoked."""

import httpx

from postroad import context
from tests import accepted_mail, contexts
from tests.api.management import AccountClients


async def test_a_new_credential_sends_and_its_password_is_shown_once(
    ctx: context.Context, mine: AccountClients
) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    (me,) = [one for one in (await mine.owner.get("/v1/team")).json()["users"] if one["role"] == "owner"]
    response = await mine.owner.post("/v1/credentials", json={"name": "Web shop"})
    made = response.json()
    assert response.status_code == 201
    assert made.keys() == {"credential", "password", "request_id"}
    assert made["credential"] == {
        "id": made["credential"]["id"],
        "name": "Web shop",
        "username": made["credential"]["username"],
        "created_at": "2027-01-15T08:00:00.000Z",
        "created_by": me["id"],
        "created_by_email": me["email"],
        "last_used_at": None,
        "disabled_at": None,
        "revoked_at": None,
    }
    assert response.headers["cache-control"] == "no-store"
    basic = httpx.BasicAuth(made["credential"]["username"], made["password"])
    message = {"from": "shop@example.com", "to": "ada@example.net", "subject": "Hi", "text": "x"}
    sent = await mine.nobody.post("/emails", json=message, auth=basic, headers={"Idempotency-Key": "1"})
    assert sent.status_code == 202
    for path in ("/v1/credentials", f"/v1/credentials/{made['credential']['id']}"):
        shown = (await mine.owner.get(path)).text
        assert made["credential"]["username"] in shown
        assert made["password"] not in shown
        assert "argon2" not in shown


async def test_a_revoked_credential_stops_and_stays_in_the_list(mine: AccountClients, clock: contexts.Clock) -> None:
    made = (await mine.owner.post("/v1/credentials", json={"name": "Web shop"})).json()
    path = f"/v1/credentials/{made['credential']['id']}"
    assert (await mine.owner.get(path)).json()["credential"] == made["credential"]
    revoked = await mine.owner.delete(path)
    assert (revoked.status_code, revoked.content) == (204, b"")
    assert revoked.headers["x-request-id"].startswith("req_")
    basic = httpx.BasicAuth(made["credential"]["username"], made["password"])
    assert (await mine.nobody.get("/emails/em_" + "0" * 28, auth=basic)).status_code == 401
    (listed,) = (await mine.owner.get("/v1/credentials")).json()["credentials"]
    assert listed == {**made["credential"], "revoked_at": "2027-01-15T08:00:00.000Z"}
    assert (await mine.owner.get(path)).status_code == 404
    assert (await mine.owner.delete(path)).status_code == 404
