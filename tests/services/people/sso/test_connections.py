"""The single sign-on of an account: what owners may enter, what is kept of it, and who can always come in."""

import dataclasses
from typing import Any

import msgspec
import pytest

from postroad import config, context, errors
from postroad.model.people import callers
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts_registry
from postroad.services.domains import domain_registry
from postroad.services.people import logins as auth_login
from postroad.services.people import password_links, sessions, sso_connections, sso_flow
from postroad.services.people import users as account_users
from postroad.storage.people import accounts, users
from tests import contexts, oidc_provider
from tests.services import audit_entries
from tests.services.people.sso import sso_setup


async def session_of(ctx: context.Context, user: users.User, methods: str) -> context.Context:
    """The context of a user who has logged in by these methods."""
    visitor = sso_setup.visitor(ctx)
    login = await auth_login.check_password(visitor, user.email, contexts.PASSWORD)
    begun = await auth_login.finish(visitor, login, methods=methods)
    who = callers.Caller(
        account_id=user.account_id,
        credential_id=None,
        scheme=callers.Scheme.TOKEN,
        permissions=callers.EVERYTHING,
        user_id=user.id,
        token_id=begun.session.claims.jti,
    )
    return context.acting_as(ctx, who, request_id="req_" + "a" * 28, client_address="192.0.2.7")


async def test_a_connection_is_saved_and_its_secret_is_encrypted(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    saved = await sso_setup.connect(
        ctx, account.id, provider, groups={"b": callers.Role.OWNER, "a": callers.Role.DEVELOPER}
    )
    found = await sso_connections.find(ctx, account.id)
    assert found == saved
    assert found.domains == ["corp.example"]
    assert list(found.row.roles.items()) == [("b", "owner"), ("a", "developer")], "in the order in which they count"
    assert found.row.client_secret is not None
    assert oidc_provider.SECRET.encode() not in found.row.client_secret
    assert sso_connections.registration(ctx, found.row).client_secret == oidc_provider.SECRET
    host = provider.issuer.removeprefix("http://")
    assert ("sso.connected", host, "for corp.example") in await audit_entries.summaries(ctx, account.id)


async def test_the_stored_secret_stays_unless_another_is_entered(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    kept = await sso_setup.connect(ctx, account.id, provider, client_secret=None)
    assert sso_connections.registration(ctx, kept.row).client_secret == oidc_provider.SECRET
    with pytest.raises(errors.InvalidRequest, match="issuer has changed; enter the secret again"):
        await sso_setup.connect(ctx, account.id, provider, client_secret=None, issuer="https://evil.example")
    gone = await sso_setup.connect(ctx, account.id, provider, client_secret="")
    assert gone.row.client_secret is None


async def test_only_verified_domains_of_the_account_can_be_used(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    with pytest.raises(errors.Conflict, match=r"corp.example is not a verified domain of this account"):
        await sso_connections.save(ctx, account.id, sso_setup.draft(provider))
    await domain_registry.add(ctx, account.id, "corp.example", verified=False)
    with pytest.raises(errors.Conflict, match="not a verified domain"):
        await sso_connections.save(ctx, account.id, sso_setup.draft(provider))
    theirs = await accounts_registry.create(ctx, "Theirs")
    await domain_registry.add(ctx, theirs.id, "corp.example", verified=True)
    with pytest.raises(errors.Conflict, match="not a verified domain"):
        await sso_connections.save(ctx, account.id, sso_setup.draft(provider))


async def test_the_domains_of_the_installation_are_not_an_accounts(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await domain_registry.add(ctx, account.id, "corp.example", verified=True)
    reserved = sso_setup.changed(ctx, issuer=provider.issuer, client_id="x", email_domains=("CORP.example",))
    with pytest.raises(errors.Conflict, match="use the single sign-on of this installation"):
        await sso_connections.save(reserved, account.id, sso_setup.draft(provider))


async def test_an_account_that_verifies_a_domain_gets_it_from_one_that_no_longer_has_it(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    domain = await domain_registry.by_name(ctx, account.id, "corp.example")
    await domain_registry.remove(ctx, account.id, domain.id)
    with pytest.raises(errors.InvalidRequest, match="no single sign-on"):
        await sso_flow.connection_for(ctx, "jo@corp.example")
    theirs = await accounts_registry.create(ctx, "Theirs")
    await sso_setup.connect(ctx, theirs.id, provider)
    assert await sso_flow.connection_for(ctx, "jo@corp.example") == theirs.id


@pytest.mark.parametrize(
    "more, why",
    [
        ({"issuer": "corp.example"}, "issuer: write the URL"),
        ({"issuer": "ftp://corp.example"}, "issuer: write the URL"),
        ({"issuer": "https://corp.example/?a=b"}, "issuer: write the URL"),
        ({"issuer": "https://" + "a" * 600}, "issuer: write 1 to 500"),
        ({"client_id": ""}, "client_id: write 1 to 500"),
        ({"client_id": "a b"}, "client_id: write 1 to 500"),
        ({"client_secret": "ä"}, "client_secret: write at most"),
        ({"scopes": "email\r\nX: y"}, "scopes: write at most"),
        ({"groups_claim": ""}, "groups_claim: write 1 to 500"),
        ({"groups": {str(number): callers.Role.OWNER for number in range(51)}}, "groups: name at most 50"),
        ({"groups": {"": callers.Role.OWNER}}, "groups: name at most 50"),
        ({"domains": []}, "domains: name at least one"),
        ({"domains": ["a..b"]}, "domains: "),
        ({"domains": [f"d{number}.example" for number in range(21)]}, "domains: name at least one"),
    ],
)
async def test_what_cannot_be_is_refused_with_the_name_of_the_field(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider, more: dict[str, Any], why: str
) -> None:
    with pytest.raises(errors.InvalidRequest, match=why):
        await sso_connections.save(ctx, account.id, sso_setup.draft(provider, **more))


async def test_plain_http_needs_the_permission_of_the_operator(
    settings: config.Settings, clock: contexts.Clock, provider: oidc_provider.Provider
) -> None:
    webhooks = msgspec.structs.replace(settings.webhooks, allow_insecure=False)
    async with composition.open_context(msgspec.structs.replace(settings, webhooks=webhooks), clock=clock) as ctx:
        account = await accounts_registry.create(ctx, "Strict")
        await domain_registry.add(ctx, account.id, "corp.example", verified=True)
        with pytest.raises(errors.InvalidRequest, match="issuer: write the URL of your provider, https://"):
            await sso_connections.save(ctx, account.id, sso_setup.draft(provider))


async def test_the_secret_is_in_no_representation(provider: oidc_provider.Provider) -> None:
    assert oidc_provider.SECRET not in repr(sso_setup.draft(provider))


async def test_passwords_are_switched_off_by_an_owner_who_can_still_come_in(
    ctx: context.Context, account: accounts.Account, owner: users.User, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    weak = await session_of(ctx, owner, "password")
    with pytest.raises(errors.Conflict, match="log in with your password and a second factor first"):
        await sso_setup.connect(weak, account.id, provider, allows_passwords=False)
    strong = await session_of(ctx, owner, "password totp")
    assert not (await sso_setup.connect(strong, account.id, provider, allows_passwords=False)).row.allows_passwords


async def test_where_passwords_are_off_only_single_sign_on_and_owners_with_a_factor_come_in(
    ctx: context.Context, account: accounts.Account, owner: users.User, provider: oidc_provider.Provider
) -> None:
    """The owner's email is in no domain of the connection, so nothing changes for this one."""
    people = {
        role: (
            await account_users.create(
                ctx, account.id, email=f"{role}@corp.example", password=contexts.PASSWORD, role=role
            )
        )[0]
        for role in (callers.Role.OWNER, callers.Role.DEVELOPER)
    }
    await sso_setup.connect(ctx, account.id, provider, allows_passwords=False)
    for role, methods, is_admitted in (
        (callers.Role.DEVELOPER, "password", False),
        (callers.Role.DEVELOPER, "password totp", False),
        (callers.Role.DEVELOPER, "passkey", False),
        (callers.Role.DEVELOPER, "sso", True),
        (callers.Role.OWNER, "password", False),
        (callers.Role.OWNER, "password totp", True),
        (callers.Role.OWNER, "password recovery_code", True),
        (callers.Role.OWNER, "passkey", True),
    ):
        visitor = sso_setup.visitor(ctx)
        login = await auth_login.check_password(visitor, people[role].email, contexts.PASSWORD)
        if is_admitted:
            assert (await auth_login.finish(visitor, login, methods=methods)).user.id == people[role].id
        else:
            with pytest.raises(errors.Forbidden, match="log in with single sign-on"):
                await auth_login.finish(visitor, login, methods=methods)
    login = await auth_login.check_password(sso_setup.visitor(ctx), owner.email, contexts.PASSWORD)
    assert (await auth_login.finish(sso_setup.visitor(ctx), login, methods="password")).user.id == owner.id


@pytest.mark.parametrize("is_operator", [False, True])
async def test_switching_passwords_off_ends_the_sessions_that_began_with_one(
    ctx: context.Context,
    account: accounts.Account,
    owner: users.User,
    provider: oidc_provider.Provider,
    *,
    is_operator: bool,
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    visitor = sso_setup.visitor(ctx)
    user, _ = await account_users.create(
        ctx, account.id, email="other@corp.example", password=contexts.PASSWORD, role=callers.Role.DEVELOPER
    )
    login = await auth_login.check_password(visitor, user.email, contexts.PASSWORD)
    theirs = await auth_login.finish(visitor, login, methods="password")
    by_sso = await sso_setup.log_in(ctx, account.id, provider)
    acting = ctx if is_operator else await session_of(ctx, owner, "password totp")
    await sso_setup.connect(acting, account.id, provider, allows_passwords=False)
    with pytest.raises(errors.Unauthorized):
        await sessions.authenticate(ctx, theirs.token)
    assert (await sessions.authenticate(ctx, by_sso.token))[0].user_id == by_sso.user.id


async def test_one_operator_can_come_in_where_passwords_are_off_for_all(
    ctx: context.Context, account: accounts.Account, owner: users.User
) -> None:
    await account_users.add_operator(ctx, owner.email)
    other, _ = await account_users.create(
        ctx, account.id, email="other@example.com", password=contexts.PASSWORD, role=callers.Role.OWNER
    )
    await account_users.add_operator(ctx, other.email)
    off = sso_setup.changed(ctx, issuer="https://x.example", client_id="x", passwords=False, break_glass=owner.email)
    visitor = sso_setup.visitor(off)
    for user, methods, is_admitted in (
        (owner, "password", False),
        (owner, "password totp", True),
        (other, "password totp", False),
        (other, "passkey", False),
        (other, "sso", True),
    ):
        login = await auth_login.check_password(visitor, user.email, contexts.PASSWORD)
        if is_admitted:
            assert (await auth_login.finish(visitor, login, methods=methods)).user.id == user.id
        else:
            with pytest.raises(errors.Forbidden, match="log in with single sign-on"):
                await auth_login.finish(visitor, login, methods=methods)


async def test_a_session_with_a_password_ends_when_passwords_are_off_for_all(
    ctx: context.Context, owner: users.User
) -> None:
    begun = await contexts.begin_session(ctx, owner)
    off = sso_setup.changed(ctx, issuer="https://x.example", client_id="x", passwords=False, break_glass=owner.email)
    with pytest.raises(errors.Unauthorized):
        await sessions.authenticate(off, begun.token)
    assert (await sessions.authenticate(ctx, begun.token))[0].user_id == owner.id


async def test_sessions_end_with_the_provider_that_vouched_for_them(
    ctx: context.Context, account: accounts.Account, owner: users.User, provider: oidc_provider.Provider
) -> None:
    local = await contexts.begin_session(ctx, owner)
    await sso_setup.connect(ctx, account.id, provider)
    draft = sso_setup.draft(provider)
    for end in (
        sso_connections.save(ctx, account.id, dataclasses.replace(draft, issuer="https://other.example")),
        sso_connections.remove(ctx, account.id),
    ):
        await sso_connections.save(ctx, account.id, draft)
        begun = await sso_setup.log_in(ctx, account.id, provider)
        assert (await sessions.authenticate(ctx, begun.token))[0].user_id == begun.user.id
        await end
        with pytest.raises(errors.Unauthorized):
            await sessions.authenticate(ctx, begun.token)
    assert (await sessions.authenticate(ctx, local.token))[0].user_id == owner.id


async def test_a_login_that_a_provider_has_opened_never_reaches_another_account(
    ctx: context.Context, account: accounts.Account, owner: users.User, provider: oidc_provider.Provider
) -> None:
    """An owner comes as somebody else by a provider of their own, removes it, and waits for them to join others."""
    email, password = oidc_provider.EMAIL, "a password of their own"
    member, _ = await account_users.create(ctx, account.id, email=email, password=password, role=callers.Role.OWNER)
    await sso_setup.connect(ctx, account.id, provider)
    begun = await sso_setup.log_in(ctx, account.id, provider)
    assert begun.user.login_id == member.login_id
    await sso_connections.remove(ctx, account.id)
    bank = await accounts_registry.create(ctx, "Bank")
    invited = await account_users.invite(ctx, bank.id, email=email, role=callers.Role.OWNER)
    joined = await password_links.redeem(sso_setup.visitor(ctx), invited.link_token, password=password)
    assert joined.login_id != member.login_id
    for entering in (
        auth_login.switch(sso_setup.visitor(ctx), begun.session, bank.id),
        auth_login.finish(sso_setup.visitor(ctx), await login_of(ctx, member), methods="passkey", account_id=bank.id),
    ):
        with pytest.raises((errors.Unauthorized, errors.Forbidden)):
            await entering


async def login_of(ctx: context.Context, user: users.User) -> users.Login:
    async with ctx.store.reading() as tx:
        found = await users.login_by_id(tx, user.login_id or "")
    assert found is not None
    return found


async def test_a_connection_that_somebody_needs_stays_until_an_owner_has_another_way(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider, role=callers.Role.OWNER)
    only = (await sso_setup.log_in(ctx, account.id, provider)).user
    acting = audit_entries.as_user(ctx, only)
    with pytest.raises(errors.Conflict, match="no owner could log in without single sign-on"):
        await sso_connections.remove(acting, account.id)
    await account_users.create(
        ctx, account.id, email="second@example.com", password=contexts.PASSWORD, role=callers.Role.OWNER
    )
    await sso_connections.remove(acting, account.id)
    assert await sso_connections.find(ctx, account.id) is None
    with pytest.raises(errors.NotFound):
        await sso_connections.remove(acting, account.id)
    assert "sso.removed" in [action for action, *_ in await audit_entries.summaries(ctx, account.id)]


async def test_the_operator_can_always_remove_a_connection(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider, role=callers.Role.OWNER)
    await sso_setup.log_in(ctx, account.id, provider)
    acting = dataclasses.replace(ctx, actor=callers.OPERATOR)
    await sso_connections.remove(acting, account.id)
    assert await sso_connections.find(ctx, account.id) is None


async def test_a_session_with_a_password_does_not_switch_to_where_passwords_are_off(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    """The account is one of two that the person belongs to with one login."""
    visitor = sso_setup.visitor(ctx)
    email = "two@corp.example"
    await account_users.create(ctx, account.id, email=email, password=contexts.PASSWORD, role=callers.Role.DEVELOPER)
    other = await accounts_registry.create(ctx, "Other")
    invited = await account_users.invite(ctx, other.id, email=email, role=callers.Role.DEVELOPER)
    await password_links.redeem(visitor, invited.link_token, password=contexts.PASSWORD)
    await sso_setup.connect(ctx, account.id, provider, allows_passwords=False)
    login = await auth_login.check_password(visitor, email, contexts.PASSWORD)
    begun = await auth_login.finish(visitor, login, methods="password")
    assert begun.account.id == other.id
    with pytest.raises(errors.Forbidden, match="log in with single sign-on"):
        await auth_login.switch(visitor, begun.session, account.id)
