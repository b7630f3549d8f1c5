"""Operators: who is one, who makes one, and what ends with the role."""

import pytest

from postroad import context, errors
from postroad.model.people import callers
from postroad.services import audit_log
from postroad.services.accounts import account_registry
from postroad.services.people import api_keys, authentication, credentials, password_links, sessions, users
from tests import contexts

PASSWORD = "a sentence of the operator alone"


async def user(ctx: context.Context, account_id: str, name: str = "jo", role: callers.Role = callers.Role.OWNER) -> str:
    made, _ = await users.create(ctx, account_id, email=f"{name}@example.org", password=PASSWORD, role=role)
    return made.id


async def logged_in(ctx: context.Context, account_id: str, user_id: str) -> context.Context:
    """The context of a user's request."""
    session = await contexts.begin_session(ctx, await users.find(ctx, account_id, user_id))
    who, _ = await sessions.authenticate(ctx, session.token)
    return context.acting_as(ctx, who, request_id="req_1", client_address="192.0.2.1")


@pytest.mark.parametrize("role", [callers.Role.READ_ONLY, callers.Role.OWNER])
async def test_an_operator_has_one_permission_more_than_the_role_in_the_account_while_the_role_lasts(
    ctx: context.Context, account_id: str, role: callers.Role
) -> None:
    for email in ("nobody@example.org", "no address"):
        with pytest.raises(errors.NotFound, match="does not exist; create or invite the user first"):
            await users.add_operator(ctx, email)
    user_id = await user(ctx, account_id, role=role)
    session = await contexts.begin_session(ctx, await users.find(ctx, account_id, user_id))

    async def permissions() -> frozenset[callers.Permission]:
        who, _ = await sessions.authenticate(ctx, session.token)
        return who.permissions

    assert await permissions() == callers.ROLE_PERMISSIONS[role]
    assert callers.Permission.OPERATE not in callers.ROLE_PERMISSIONS[role]
    await users.add_operator(ctx, "Jo@Example.org")
    assert await permissions() == callers.ROLE_PERMISSIONS[role] | {callers.Permission.OPERATE}
    assert [one.id for one in await users.operators(ctx)] == [user_id]
    await users.remove_operator(ctx, user_id)
    assert await permissions() == callers.ROLE_PERMISSIONS[role]


async def test_an_operator_invites_another_and_the_last_one_who_can_log_in_stays_except_at_the_command_line(
    ctx: context.Context, account_id: str
) -> None:
    user_id = await user(ctx, account_id)
    await users.add_operator(ctx, "jo@example.org")
    acting = context.as_operator(await logged_in(ctx, account_id, user_id))
    invited = await users.invite_operator(acting, account_id, email="sam@example.org")
    assert (invited.user.role, invited.user.joined_at) == ("read_only", None)
    assert {one.email for one in await users.operators(ctx)} == {"jo@example.org", "sam@example.org"}
    with pytest.raises(errors.Conflict, match="the last active operator"):
        await users.remove_operator(acting, user_id)
    assert (await users.remove_operator(ctx, user_id)).email == "jo@example.org"
    with pytest.raises(errors.NotFound, match="no such operator"):
        await users.remove_operator(ctx, user_id)


async def test_changes_are_in_the_log_of_the_installation_and_not_in_that_of_the_account(
    ctx: context.Context, account_id: str
) -> None:
    user_id = await user(ctx, account_id)
    await users.add_operator(ctx, "jo@example.org")
    await users.add_operator(ctx, "jo@example.org")
    await users.remove_operator(ctx, user_id)
    written = await audit_log.page(ctx, audit_log.INSTALLATION, before=None, limit=10)
    assert sorted(audit_log.text(one) for one in written) == [
        "ended the operator role of jo@example.org",
        "made jo@example.org an operator",
    ]
    own = await audit_log.page(ctx, account_id, before=None, limit=10)
    assert not any(one.action.startswith("operator.") for one in own)


async def test_an_owner_of_the_account_cannot_become_the_operator_by_a_password_link(
    ctx: context.Context, account_id: str
) -> None:
    owner_id, operator_id = await user(ctx, account_id, "owner"), await user(ctx, account_id, "jo")
    await users.add_operator(ctx, "jo@example.org")
    owner = await logged_in(ctx, account_id, owner_id)
    for attempt in (
        users.create_password_link(owner, account_id, operator_id),
        users.change(owner, account_id, operator_id, role=callers.Role.DEVELOPER),
        users.disable(owner, account_id, operator_id),
        users.remove(owner, account_id, operator_id),
    ):
        with pytest.raises(errors.Forbidden, match="operates the installation; only an operator can change this user"):
            await attempt


async def test_a_password_link_from_before_does_not_make_its_holder_an_operator(
    ctx: context.Context, account_id: str
) -> None:
    owner = await logged_in(ctx, account_id, await user(ctx, account_id, "owner"))
    link = await users.create_password_link(owner, account_id, await user(ctx, account_id, "jo"))
    await users.add_operator(ctx, "jo@example.org")
    with pytest.raises(errors.NotFound, match="invalid or has expired"):
        await password_links.redeem(ctx, link.token, password=PASSWORD)
    invited = await users.invite(owner, account_id, email="sam@example.org", role=callers.Role.DEVELOPER)
    with pytest.raises(
        errors.Conflict, match="has not accepted the invitation yet, and whoever invited this user has the link"
    ):
        await users.add_operator(ctx, "sam@example.org")
    await password_links.redeem(ctx, invited.link_token, password=PASSWORD)
    assert (await users.add_operator(ctx, "sam@example.org")).operator_since is not None


async def make_key(
    ctx: context.Context, account_id: str, *scopes: str, limits: callers.KeyLimits = callers.NO_LIMITS
) -> str:
    _, secret = await api_keys.create(
        ctx, account_id, credential_id=None, name="ops", scopes=frozenset(scopes), limits=limits
    )
    return secret


@pytest.mark.parametrize(
    "limits", [callers.KeyLimits(networks=("192.0.2.0/24",)), callers.KeyLimits(expires_at=4_000_000_000_000_000)]
)
async def test_a_key_with_limits_makes_no_operator_who_would_have_none(
    ctx: context.Context, account_id: str, limits: callers.KeyLimits
) -> None:
    await credentials.create(ctx, account_id, "app")
    await user(ctx, account_id)

    async def acting(limits: callers.KeyLimits) -> context.Context:
        secret = await make_key(ctx, account_id, "operator", limits=limits)
        who = (await authentication._by_api_key(ctx, secret)).caller
        return context.as_operator(context.acting_as(ctx, who, request_id="req_1", client_address="192.0.2.1"))

    limited = await acting(limits)
    for attempt in (
        users.add_operator(limited, "jo@example.org"),
        users.invite_operator(limited, account_id, email="sam@example.org"),
    ):
        with pytest.raises(errors.Forbidden, match="limits, which an operator would not have"):
            await attempt
    assert await users.by_email(ctx, "sam@example.org") is None
    await users.add_operator(await acting(callers.NO_LIMITS), "jo@example.org")


async def scopes_of(ctx: context.Context, secret: str) -> set[str]:
    known = await authentication._by_api_key(ctx, secret)
    assert known.caller.key is not None
    return {scope.value for scope in known.caller.key.scopes}


async def test_only_an_operator_gives_a_key_the_scope(ctx: context.Context, account_id: str) -> None:
    await credentials.create(ctx, account_id, "app")
    user_id = await user(ctx, account_id)
    owner = await logged_in(ctx, account_id, user_id)
    for scopes in (["operator"], ["*", "operator"]):
        with pytest.raises(errors.Forbidden, match="only an operator of this installation"):
            await make_key(owner, account_id, *scopes)
    await users.add_operator(ctx, "jo@example.org")
    acting = await logged_in(ctx, account_id, user_id)
    assert await scopes_of(ctx, await make_key(acting, account_id, "operator", "read")) == {"operator", "read"}
    # A key for everything in the account does not operate the installation.
    assert "operator" not in await scopes_of(ctx, await make_key(ctx, account_id, "*"))
    assert {"operator", "send", "team"} <= await scopes_of(ctx, await make_key(ctx, account_id, "*", "operator"))


async def test_a_key_of_somebody_who_is_no_longer_an_operator_is_one_of_the_account_only(
    ctx: context.Context, account_id: str
) -> None:
    await credentials.create(ctx, account_id, "app")
    user_id = await user(ctx, account_id)
    await user(ctx, account_id, "owner")
    await users.add_operator(ctx, "jo@example.org")
    secret = await make_key(await logged_in(ctx, account_id, user_id), account_id, "operator", "read")
    await users.remove_operator(ctx, user_id)
    assert await scopes_of(ctx, secret) == {"read"}
    await users.disable(ctx, account_id, user_id)
    with pytest.raises(errors.CreatorDisabled):
        await scopes_of(ctx, secret)


async def test_what_an_operator_does_at_the_console_names_the_role_and_knows_the_user(
    ctx: context.Context, account_id: str
) -> None:
    user_id = await user(ctx, account_id)
    await users.add_operator(ctx, "jo@example.org")
    acting = context.as_operator(await logged_in(ctx, account_id, user_id))
    await account_registry.suspend(acting, account_id, "too many complaints")
    written = await audit_log.page(ctx, account_id, before=None, limit=10)
    entry = next(one for one in written if one.action == "account.suspended")
    assert (entry.actor, entry.user_id, entry.actor_kind) == ("operator", user_id, "operator")
    assert (entry.request_id, entry.client_address) == ("req_1", "192.0.2.1")


async def test_an_operator_of_a_closed_account_does_not_count_as_able_to_log_in(
    ctx: context.Context, account_id: str
) -> None:
    other = await account_registry.create(ctx, "Other")
    remaining, elsewhere = await user(ctx, account_id), await user(ctx, other.id, "sam")
    await users.add_operator(ctx, "jo@example.org")
    await users.add_operator(ctx, "sam@example.org")
    acting = context.as_operator(await logged_in(ctx, account_id, remaining))
    await account_registry.close(acting, other.id)
    with pytest.raises(errors.Conflict, match="the last active operator"):
        await users.remove_operator(acting, remaining)
    await users.remove_operator(acting, elsewhere)
    assert [one.id for one in await users.operators(ctx)] == [remaining]
