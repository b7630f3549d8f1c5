"""`/v1/team`: owners invite, change and remove users; every user sees them; a link is shown once."""

from typing import Any

from postroad import context
from postroad.model.people import callers
from postroad.services.people import password_links, second_factors, users
from tests import contexts
from tests.api.management import AccountClients
from tests.services.people import authenticator

JO = {"email": "jo@example.com", "role": "developer"}


async def invite(clients: AccountClients) -> dict[str, Any]:
    answer = await clients.owner.post("/v1/team", json=JO)
    assert answer.status_code == 201
    person: dict[str, Any] = answer.json()["user"]
    return person


async def owner_of(clients: AccountClients) -> dict[str, Any]:
    listed = (await clients.reader.get("/v1/team")).json()["users"]
    (owner,) = [person for person in listed if person["role"] == "owner"]
    return dict(owner)


async def test_an_invitation_shows_the_user_and_a_link_that_works(ctx: context.Context, mine: AccountClients) -> None:
    answer = (await mine.owner.post("/v1/team", json=JO)).json()
    person = answer["user"]
    assert person == {
        "id": person["id"],
        **JO,
        "enabled": True,
        "created_at": "2027-01-15T08:00:00.000Z",
        "joined_at": None,
        "last_login_at": None,
    }
    assert answer["expires_at"] == "2027-01-18T08:00:00.000Z"
    base, _, token = answer["link"].rpartition("/")
    assert base == f"http://{ctx.settings.http.listen}/password"
    assert (await password_links.redeem(ctx, token, password=contexts.PASSWORD)).email == "jo@example.com"
    (listed,) = [one for one in (await mine.reader.get("/v1/team")).json()["users"] if one["id"] == person["id"]]
    assert listed == {**person, "joined_at": "2027-01-15T08:00:00.000Z"}
    login = await mine.nobody.post("/v1/auth/login", json={"email": "jo@example.com", "password": contexts.PASSWORD})
    assert login.status_code == 200


async def test_an_invitation_that_makes_no_sense_is_refused(mine: AccountClients) -> None:
    for body, word in (
        ({"role": "developer"}, "email"),
        ({"email": "jo@example.com"}, "role"),
        ({**JO, "role": "king"}, "role"),
        ({**JO, "email": "jo"}, "email"),
        ({**JO, "email": "Jo <jo@example.com>"}, "email"),
    ):
        refused = await mine.owner.post("/v1/team", json=body)
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")
        assert word in refused.json()["error"]
    await invite(mine)
    assert (await mine.owner.post("/v1/team", json={**JO, "email": "JO@example.com"})).status_code == 409


async def test_role_and_lock_are_changed(mine: AccountClients) -> None:
    person = await invite(mine)
    path = f"/v1/team/{person['id']}"
    changed = await mine.owner.patch(path, json={"role": "read_only", "enabled": False})
    assert changed.json()["user"] == {**person, "role": "read_only", "enabled": False}
    assert (await mine.owner.patch(path, json={"enabled": True})).json()["user"]["enabled"] is True
    for body, problem in (
        ({}, "give at least one of role, enabled and secrets"),
        ({"role": None, "enabled": None}, "give at least one of role, enabled and secrets"),
        ({"secrets": "revoke"}, "secrets: expected 'hand_over'"),
    ):
        refused = await mine.owner.patch(path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")
        assert refused.json()["error"] == problem


async def test_a_removed_user_is_gone(mine: AccountClients) -> None:
    path = f"/v1/team/{(await invite(mine))['id']}"
    assert (await mine.owner.delete(path)).status_code == 204
    assert (await mine.owner.delete(path)).status_code == 404
    assert "jo@example.com" not in (await mine.owner.get("/v1/team")).text


async def test_a_new_link_replaces_the_one_before_it(ctx: context.Context, mine: AccountClients) -> None:
    person = await invite(mine)
    links = [(await mine.owner.post(f"/v1/team/{person['id']}/password-link")).json() for _ in range(2)]
    tokens = [link["link"].rpartition("/")[2] for link in links]
    assert links[1].keys() == {"link", "expires_at", "request_id"}
    assert (await password_links.find_user(ctx, tokens[1])).id == person["id"]
    assert tokens[0] != tokens[1]
    await mine.owner.patch(f"/v1/team/{person['id']}", json={"enabled": False})
    refused = await mine.owner.post(f"/v1/team/{person['id']}/password-link")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


async def test_a_recovery_link_removes_second_factors_and_is_for_others(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    jo, _ = await users.create(
        ctx, mine.account_id, email="jo@example.com", password=contexts.PASSWORD, role=callers.Role.DEVELOPER
    )
    await authenticator.set_up(ctx, jo, clock)
    answer = await mine.owner.post(f"/v1/team/{jo.id}/recovery-link")
    assert answer.status_code == 200
    assert answer.json().keys() == {"link", "expires_at", "request_id"}
    assert answer.json()["expires_at"] == "2027-01-16T08:00:00.000Z"
    await password_links.redeem(ctx, answer.json()["link"].rpartition("/")[2], password="another long sentence")
    assert not (await second_factors.of_login(ctx, jo.login_id or "")).exist
    refused = await mine.owner.post(f"/v1/team/{(await owner_of(mine))['id']}/recovery-link")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
