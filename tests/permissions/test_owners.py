"""Who may make whom what: admins and keys make no owners, nobody raises themselves, a changed role counts at once."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import pytest_asyncio

from postroad import context, errors
from postroad.dashboard.framework import site as sites
from postroad.model.people import callers
from postroad.services.people import credentials as credentials_service
from postroad.services.people import logins, password_links
from postroad.services.people import users as account_users
from postroad.storage.people import accounts, users
from tests.dashboard import browser_client
from tests.permissions import surfaces

Role = callers.Role


@dataclass(frozen=True, slots=True)
class Team:
    """People of an account by role, and credentials of theirs and of programs."""

    ctx: context.Context
    account_id: str
    built: list[surfaces.Surface]
    people: dict[str, users.User]
    credentials: dict[str, surfaces.Credential]

    async def call(self, kind: str, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        """A request to the API."""
        api = self.built[0]
        async with surfaces.opened(api) as client:
            headers = self.credentials[kind].headers(api)
            return await client.request(method, path, json=body, headers=headers)

    async def open(self, kind: str, path: str) -> httpx.Response:
        """A page of the dashboard."""
        pages = self.built[-1]
        async with surfaces.opened(pages) as client:
            return await client.get(path, headers=self.credentials[kind].headers(pages))

    async def roles(self) -> dict[str, str]:
        """The role of everybody."""
        found = await account_users.of_account(self.ctx, self.account_id)
        return {one.email: one.role for one in found if one.disabled_at is None}


@pytest_asyncio.fixture
async def team(ctx: context.Context, site: sites.Site, mine: accounts.Account) -> AsyncIterator[Team]:
    built = surfaces.build(ctx, site)
    await credentials_service.create(ctx, mine.id, "SMTP")
    kinds = [role.value for role in Role]
    credentials = {kind: await surfaces.new_credential(ctx, built, mine.id, kind) for kind in kinds}
    second = await browser_client.person(ctx, mine.id, "second@mine.example", Role.OWNER)
    people = {one.email.partition("@")[0]: one for one in await account_users.of_account(ctx, mine.id)}
    yield Team(ctx, mine.id, built, {**people, "second": second}, credentials)


def changes_of(user: users.User) -> list[tuple[str, str, dict[str, Any] | None]]:
    """Everything that can be done to somebody over the API; the pages do the same."""
    path = f"/v1/team/{user.id}"
    return [
        ("PATCH", path, {"role": "read_only"}),
        ("PATCH", path, {"enabled": False}),
        ("POST", f"{path}/password-link", None),
        ("DELETE", path, None),
    ]


@pytest.mark.parametrize("kind", ["admin", "admin's key"])
async def test_who_is_no_owner_makes_no_owner_and_changes_none(team: Team, kind: str) -> None:
    made = await team.call("admin", "POST", "/v1/api-keys", {"name": "everything", "scopes": ["*"]})
    assert made.status_code == 201, made.text
    team.credentials["admin's key"] = surfaces.Credential(kind, f"Bearer {made.json()['secret']}")
    before = await team.roles()
    promotions = [
        ("POST", "/v1/team", {"email": "new@mine.example", "role": "owner"}),
        ("PATCH", f"/v1/team/{team.people['admin'].id}", {"role": "owner"}),
        ("PATCH", f"/v1/team/{team.people['developer'].id}", {"role": "owner"}),
    ]
    for method, path, body in (*promotions, *changes_of(team.people["second"])):
        answer = await team.call(kind, method, path, body)
        assert (answer.status_code, answer.json()["error"]) == (
            403,
            "only an owner of this account, logged in as a user, can add, change or remove owners",
        ), (method, path)
    assert await team.roles() == before
    # Everybody else is theirs to manage.
    invited = await team.call(kind, "POST", "/v1/team", {"email": "new@mine.example", "role": "admin"})
    assert invited.status_code == 201
    for method, path, body in changes_of(team.people["developer"]):
        answer = await team.call(kind, method, path, body)
        assert answer.is_success or "disabled; enable the user first" in answer.text, (method, path, answer.text)
    assert "developer@mine.example" not in await team.roles()


async def test_an_owner_makes_and_removes_owners(team: Team) -> None:
    promoted = await team.call("owner", "PATCH", f"/v1/team/{team.people['admin'].id}", {"role": "owner"})
    assert promoted.json()["user"]["role"] == "owner"
    assert (await team.call("owner", "DELETE", f"/v1/team/{team.people['second'].id}")).status_code == 204


@pytest.mark.parametrize("kind", ["developer", "analyst", "read_only"])
async def test_nobody_raises_their_own_role(team: Team, kind: str) -> None:
    before = await team.roles()
    user = team.people[kind]
    for role in ("owner", "admin"):
        answer = await team.call(kind, "PATCH", f"/v1/team/{user.id}", {"role": role})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    for scope in ("team", "*"):
        answer = await team.call(kind, "POST", "/v1/api-keys", {"name": "x", "scopes": [scope]})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert await team.roles() == before


async def test_a_link_that_an_admin_made_does_not_open_who_becomes_an_owner(team: Team) -> None:
    body = {"email": "new@mine.example", "role": "developer"}
    invited = (await team.call("admin", "POST", "/v1/team", body)).json()
    linked = (await team.call("admin", "POST", f"/v1/team/{team.people['developer'].id}/password-link")).json()
    acting = logins.acting(team.ctx, client_address="192.0.2.1")
    for answer in (invited, linked):
        token = answer["link"].rpartition("/")[2]
        user = await password_links.find_user(acting, token)
        assert (await team.call("owner", "PATCH", f"/v1/team/{user.id}", {"role": "owner"})).status_code == 200
        with pytest.raises(errors.NotFound, match="this link is invalid"):
            await password_links.find_user(acting, token)


async def test_a_key_with_the_scope_team_removes_users_but_no_owner(team: Team) -> None:
    made = await team.call("owner", "POST", "/v1/api-keys", {"name": "team", "scopes": ["team"]})
    team.credentials["key"] = surfaces.Credential("key", f"Bearer {made.json()['secret']}")
    for person, status in (("second", 403), ("admin", 204)):
        answer = await team.call("key", "DELETE", f"/v1/team/{team.people[person].id}")
        assert answer.status_code == status, answer.text


async def test_only_an_owner_decides_whether_a_second_factor_is_required(team: Team) -> None:
    change = {"second_factor_required": False}
    for scopes in (["statistics"], ["*"]):
        made = await team.call("owner", "POST", "/v1/api-keys", {"name": "a key", "scopes": scopes})
        team.credentials["key"] = surfaces.Credential("key", f"Bearer {made.json()['secret']}")
        assert (await team.call("key", "GET", "/v1/account")).status_code == 200
        assert (await team.call("key", "PATCH", "/v1/account", change)).status_code == 401
    for kind, status in (("admin", 403), ("developer", 403), ("owner", 200)):
        assert (await team.call(kind, "PATCH", "/v1/account", change)).status_code == status, kind


async def test_a_changed_role_counts_for_sessions_and_tokens_that_are_open(team: Team) -> None:
    user = team.people["developer"]
    assert (await team.open("developer", "/template/new")).status_code == 200
    assert (await team.call("developer", "POST", "/v1/domains", {"name": "new.example"})).status_code == 201
    await account_users.change(team.ctx, team.account_id, user.id, role=Role.ANALYST)
    assert (await team.open("developer", "/template/new")).status_code == 403
    assert (await team.open("developer", "/inbox")).status_code == 403
    refused = await team.call("developer", "POST", "/v1/domains", {"name": "other.example"})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert (await team.call("developer", "GET", "/v1/auth/me")).json()["user"]["role"] == "analyst"


async def test_a_role_that_ended_while_the_request_was_under_way_is_not_used(team: Team) -> None:
    """The permission of the caller was read before the role changed; the transaction reads it again."""
    cases = ((Role.ADMIN, Role.DEVELOPER, "developer", Role.ANALYST), (Role.OWNER, Role.ADMIN, "second", Role.ADMIN))
    for before, after, person, role in cases:
        acting = team.people[before]
        who = callers.Caller(
            team.account_id, None, callers.Scheme.TOKEN, callers.ROLE_PERMISSIONS[before], user_id=acting.id
        )
        ctx = context.acting_as(team.ctx, who, request_id="req_1", client_address="192.0.2.1")
        await account_users.change(team.ctx, team.account_id, acting.id, role=after)
        with pytest.raises(errors.Forbidden):
            await account_users.change(ctx, team.account_id, team.people[person].id, role=role)
    assert (await team.roles())["second@mine.example"] == "owner"


async def test_forms_for_owners_are_shown_to_owners_only(team: Team) -> None:
    second, developer = (f'href="/team/{team.people[one].id}"' for one in ("second", "developer"))
    for kind, shown in (("owner", (True, True, True)), ("admin", (False, True, False)), ("developer", (False,) * 3)):
        page = (await team.open(kind, "/team")).text
        assert (second in page, developer in page, '<option value="owner"' in page) == shown, kind
        assert 'href="/team/roles"' in page
        assert ('action="/team/second-factor"' in page) == (kind == "owner"), kind


async def test_an_admin_neither_sees_nor_ends_the_sessions_of_an_owner(team: Team) -> None:
    for kind, person, status in (
        ("admin", "second", 403),
        ("admin", "developer", 200),
        ("owner", "second", 200),
        ("developer", "developer", 403),
    ):
        answer = await team.open(kind, f"/team/{team.people[person].id}")
        assert answer.status_code == status, (kind, person)
        assert (f'action="/team/{team.people[person].id}/role"' in answer.text) == (status == 200), (kind, person)


async def test_the_page_of_roles_shows_the_table(team: Team) -> None:
    for kind in ("owner", "analyst"):
        page = (await team.open(kind, "/team/roles")).text
        assert page.count("<span>yes</span>") == sum(map(len, callers.ROLE_PERMISSIONS.values())) + 1
        assert page.count("<span>no</span>") == 6 * 8 - page.count("<span>yes</span>")
