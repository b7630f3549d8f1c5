"""The single sign-on of an account: what owners may enter, what is kept of it, and who can always come in."""

import contextlib
import dataclasses
from typing import Any

import msgspec
import pytest

from postroad import config, context, errors
from postroad.model.people import callers
from postroad.roles import composition
from postroad.services.accounts import account_registry
from postroad.services.domains import domain_registry
from postroad.services.people import logins, password_links, sessions, sso_connections, sso_flow
from postroad.services.people import users as account_users
from postroad.storage.people import users
from tests import contexts, oidc_provider
from tests.services import audit_entries
from tests.services.people.sso import sso_setup

OWNER, DEVELOPER = callers.Role.OWNER, callers.Role.DEVELOPER


async def member(sso: sso_setup.Sso, email: str, role: callers.Role) -> users.User:
    user, _ = await account_users.create(sso.ctx, sso.account_id, email=email, password=contexts.PASSWORD, role=role)
    return user


async def log_in(visitor: context.Context, email: str, *, methods: str = "password") -> logins.LoggedIn:
    login = await logins.check_password(visitor, email, contexts.PASSWORD)
    return await logins.finish(visitor, login, methods=methods)


async def session_of(sso: sso_setup.Sso, user: users.User, methods: str) -> sso_setup.Sso:
    """The same as this user, who has logged in by these methods, sees it."""
    begun = await log_in(sso.visitor, user.email, methods=methods)
    who, _ = await sessions.authenticate(sso.ctx, begun.token)
    acting = context.acting_as(sso.ctx, who, request_id="req_" + "a" * 28, client_address="192.0.2.7")
    return dataclasses.replace(sso, ctx=acting)


async def test_a_connection_is_saved_and_its_secret_is_encrypted(unconnected: sso_setup.Sso) -> None:
    ctx, account_id, provider = unconnected.ctx, unconnected.account_id, unconnected.provider
    saved = await unconnected.connect(groups={"b": OWNER, "a": DEVELOPER})
    found = await sso_connections.find(ctx, account_id)
    assert found == saved
    assert found.domains == ["corp.example"]
    assert list(found.row.roles.items()) == [("b", "owner"), ("a", "developer")], "in the order in which they count"
    assert found.row.client_secret is not None
    assert oidc_provider.SECRET.encode() not in found.row.client_secret
    assert oidc_provider.SECRET not in repr(unconnected.draft())
    assert sso_connections.registration(ctx, found.row).client_secret == oidc_provider.SECRET
    host = provider.issuer.removeprefix("http://")
    assert ("sso.connected", host, "for corp.example") in await audit_entries.summaries(ctx, account_id)


async def test_the_stored_secret_stays_unless_another_is_entered(sso: sso_setup.Sso) -> None:
    kept = await sso.save(client_secret=None)
    assert sso_connections.registration(sso.ctx, kept.row).client_secret == oidc_provider.SECRET
    with pytest.raises(errors.InvalidRequest, match="issuer has changed; enter the secret again"):
        await sso.save(client_secret=None, issuer="https://evil.example")
    gone = await sso.save(client_secret="")
    assert gone.row.client_secret is None


async def test_only_verified_domains_of_the_account_can_be_used_and_none_of_the_installation(
    unconnected: sso_setup.Sso,
) -> None:
    ctx, account_id = unconnected.ctx, unconnected.account_id
    with pytest.raises(errors.Conflict, match=r"corp.example is not a verified domain of this account"):
        await unconnected.save()
    mine = await domain_registry.add(ctx, account_id, "corp.example", verified=False)
    with pytest.raises(errors.Conflict, match="not a verified domain"):
        await unconnected.save()
    theirs = await account_registry.create(ctx, "Theirs")
    foreign = await domain_registry.add(ctx, theirs.id, "corp.example", verified=True)
    with pytest.raises(errors.Conflict, match="not a verified domain"):
        await unconnected.save()
    await domain_registry.remove(ctx, theirs.id, foreign.id)
    await domain_registry.verify(ctx, account_id, mine.id, by="operator")
    reserved = unconnected.of_installation(email_domains=("CORP.example",)).of(account_id)
    with pytest.raises(errors.Conflict, match="use the single sign-on of this installation"):
        await reserved.save()
    await unconnected.save()


async def test_an_account_that_verifies_a_domain_gets_it_from_one_that_no_longer_has_it(sso: sso_setup.Sso) -> None:
    domain = await domain_registry.by_name(sso.ctx, sso.account_id, "corp.example")
    await domain_registry.remove(sso.ctx, sso.account_id, domain.id)
    with pytest.raises(errors.InvalidRequest, match="no single sign-on"):
        await sso_flow.connection_for(sso.ctx, "jo@corp.example")
    theirs = await account_registry.create(sso.ctx, "Theirs")
    await sso.of(theirs.id).connect()
    assert await sso_flow.connection_for(sso.ctx, "jo@corp.example") == theirs.id


async def test_what_cannot_be_is_refused_with_the_name_of_the_field(unconnected: sso_setup.Sso) -> None:
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"issuer": "corp.example"}, "issuer: write the URL"),
        ({"issuer": "ftp://corp.example"}, "issuer: write the URL"),
        ({"issuer": "https://corp.example/?a=b"}, "issuer: write the URL"),
        ({"issuer": "https://" + "a" * 600}, "issuer: write 1 to 500"),
        ({"client_id": ""}, "client_id: write 1 to 500"),
        ({"client_id": "a b"}, "client_id: write 1 to 500"),
        ({"client_secret": "ä"}, "client_secret: write at most"),
        ({"scopes": "email\r\nX: y"}, "scopes: write at most"),
        ({"groups_claim": ""}, "groups_claim: write 1 to 500"),
        ({"groups": {str(number): OWNER for number in range(51)}}, "groups: name at most 50"),
        ({"groups": {"": OWNER}}, "groups: name at most 50"),
        ({"domains": []}, "domains: name at least one"),
        ({"domains": ["a..b"]}, "domains: "),
        ({"domains": [f"d{number}.example" for number in range(21)]}, "domains: name at least one"),
    )
    for more, why in refused:
        with pytest.raises(errors.InvalidRequest, match=why):
            await unconnected.save(**more)


async def test_plain_http_needs_the_permission_of_the_operator(
    settings: config.Settings, clock: contexts.Clock, unconnected: sso_setup.Sso
) -> None:
    webhooks = msgspec.structs.replace(settings.webhooks, allow_insecure=False)
    async with composition.open_context(msgspec.structs.replace(settings, webhooks=webhooks), clock=clock) as strict:
        with pytest.raises(errors.InvalidRequest, match="issuer: write the URL of your provider, https://"):
            await dataclasses.replace(unconnected, ctx=strict).connect()


async def test_passwords_are_switched_off_by_an_owner_who_can_still_come_in(
    sso: sso_setup.Sso, owner: users.User
) -> None:
    weak = await session_of(sso, owner, "password")
    with pytest.raises(errors.Conflict, match="log in with your password and a second factor first"):
        await weak.save(allows_passwords=False)
    strong = await session_of(sso, owner, "password totp")
    assert not (await strong.save(allows_passwords=False)).row.allows_passwords


async def test_where_passwords_are_off_only_single_sign_on_and_owners_with_a_factor_come_in(
    sso: sso_setup.Sso, owner: users.User
) -> None:
    """The owner's email is in no domain of the connection, so nothing changes for this one."""
    people = {role: await member(sso, f"{role}@corp.example", role) for role in (OWNER, DEVELOPER)}
    await sso.save(allows_passwords=False)
    for role, methods, is_admitted in (
        (DEVELOPER, "password", False),
        (DEVELOPER, "password totp", False),
        (DEVELOPER, "passkey", False),
        (DEVELOPER, "sso", True),
        (OWNER, "password", False),
        (OWNER, "password totp", True),
        (OWNER, "password recovery_code", True),
        (OWNER, "passkey", True),
    ):
        refusal = pytest.raises(errors.Forbidden, match="log in with single sign-on")
        with contextlib.nullcontext() if is_admitted else refusal:
            assert (await log_in(sso.visitor, people[role].email, methods=methods)).user.id == people[role].id
    assert (await log_in(sso.visitor, owner.email)).user.id == owner.id


@pytest.mark.parametrize("is_operator", [False, True])
async def test_switching_passwords_off_ends_the_sessions_that_began_with_one(
    sso: sso_setup.Sso, owner: users.User, *, is_operator: bool
) -> None:
    user = await member(sso, "other@corp.example", DEVELOPER)
    theirs = await log_in(sso.visitor, user.email)
    by_sso = await sso.log_in()
    acting = sso if is_operator else await session_of(sso, owner, "password totp")
    await acting.save(allows_passwords=False)
    with pytest.raises(errors.Unauthorized):
        await sessions.authenticate(sso.ctx, theirs.token)
    assert (await sessions.authenticate(sso.ctx, by_sso.token))[0].user_id == by_sso.user.id


async def test_one_operator_can_come_in_where_passwords_are_off_for_all(
    unconnected: sso_setup.Sso, owner: users.User
) -> None:
    other = await member(unconnected, "other@example.com", OWNER)
    for user in (owner, other):
        await account_users.add_operator(unconnected.ctx, user.email)
    begun = await contexts.begin_session(unconnected.ctx, owner)
    off = unconnected.of_installation(passwords=False, break_glass=owner.email)
    for user, methods, is_admitted in (
        (owner, "password", False),
        (owner, "password totp", True),
        (other, "password totp", False),
        (other, "passkey", False),
        (other, "sso", True),
    ):
        refusal = pytest.raises(errors.Forbidden, match="log in with single sign-on")
        with contextlib.nullcontext() if is_admitted else refusal:
            assert (await log_in(off.visitor, user.email, methods=methods)).user.id == user.id
    # A session that began with a password is over.
    with pytest.raises(errors.Unauthorized):
        await sessions.authenticate(off.ctx, begun.token)
    assert (await sessions.authenticate(unconnected.ctx, begun.token))[0].user_id == owner.id


async def test_sessions_end_with_the_provider_that_vouched_for_them(sso: sso_setup.Sso, owner: users.User) -> None:
    local = await contexts.begin_session(sso.ctx, owner)
    for end in (
        sso.save(issuer="https://other.example"),
        sso_connections.remove(sso.ctx, sso.account_id),
    ):
        await sso.save()
        begun = await sso.log_in()
        assert (await sessions.authenticate(sso.ctx, begun.token))[0].user_id == begun.user.id
        await end
        with pytest.raises(errors.Unauthorized):
            await sessions.authenticate(sso.ctx, begun.token)
    assert (await sessions.authenticate(sso.ctx, local.token))[0].user_id == owner.id


async def test_a_login_that_a_provider_has_opened_never_reaches_another_account(
    sso: sso_setup.Sso, owner: users.User
) -> None:
    """An owner comes as somebody else by a provider of their own, removes it, and waits for them to join others."""
    user = await member(sso, oidc_provider.EMAIL, OWNER)
    begun = await sso.log_in()
    assert begun.user.login_id == user.login_id
    await sso_connections.remove(sso.ctx, sso.account_id)
    bank = await account_registry.create(sso.ctx, "Bank")
    invited = await account_users.invite(sso.ctx, bank.id, email=oidc_provider.EMAIL, role=OWNER)
    joined = await password_links.redeem(sso.visitor, invited.link_token, password=contexts.PASSWORD)
    assert joined.login_id != user.login_id
    async with sso.ctx.store.reading() as tx:
        login = await users.login_by_id(tx, user.login_id or "")
    assert login is not None
    for entering in (
        logins.switch(sso.visitor, begun.session, bank.id),
        logins.finish(sso.visitor, login, methods="passkey", account_id=bank.id),
    ):
        with pytest.raises((errors.Unauthorized, errors.Forbidden)):
            await entering


async def test_a_connection_that_somebody_needs_stays_until_an_owner_has_another_way(sso: sso_setup.Sso) -> None:
    ctx, account_id = sso.ctx, sso.account_id
    await sso.save(role=OWNER)
    only = (await sso.log_in()).user
    acting = audit_entries.as_user(ctx, only)
    with pytest.raises(errors.Conflict, match="no owner could log in without single sign-on"):
        await sso_connections.remove(acting, account_id)
    # An operator removes it always.
    await sso_connections.remove(ctx, account_id)
    assert await sso_connections.find(ctx, account_id) is None
    await sso.save(role=OWNER)
    await member(sso, "second@example.com", OWNER)
    await sso_connections.remove(acting, account_id)
    with pytest.raises(errors.NotFound):
        await sso_connections.remove(acting, account_id)
    assert "sso.removed" in [action for action, *_ in await audit_entries.summaries(ctx, account_id)]


async def test_a_session_with_a_password_does_not_switch_to_where_passwords_are_off(sso: sso_setup.Sso) -> None:
    """The account is one of two that the person belongs to with one login."""
    email = "two@corp.example"
    await member(sso, email, DEVELOPER)
    other = await account_registry.create(sso.ctx, "Other")
    invited = await account_users.invite(sso.ctx, other.id, email=email, role=DEVELOPER)
    await password_links.redeem(sso.visitor, invited.link_token, password=contexts.PASSWORD)
    await sso.save(allows_passwords=False)
    begun = await log_in(sso.visitor, email)
    assert begun.account.id == other.id
    with pytest.raises(errors.Forbidden, match="log in with single sign-on"):
        await logins.switch(sso.visitor, begun.session, sso.account_id)
