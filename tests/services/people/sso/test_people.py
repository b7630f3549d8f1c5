"""Whose login somebody gets, in which account and role; and what a hostile owner with an own provider does not get."""

import pytest

from postroad import context, errors
from postroad.model.people import callers
from postroad.services.accounts import account_registry as accounts_registry
from postroad.services.domains import domain_registry
from postroad.services.people import logins as auth_login
from postroad.services.people import password_links, sso_flow
from postroad.services.people import users as account_users
from postroad.storage.people import accounts, users
from tests import contexts, oidc_provider
from tests.services import audit_entries
from tests.services.people.sso import sso_setup

JO = "jo@corp.example"
OWNER = callers.Role.OWNER
MEMBER = callers.Role.DEVELOPER
READER = callers.Role.READ_ONLY


async def member(ctx: context.Context, account_id: str, *, email: str = JO, role: callers.Role = MEMBER) -> users.User:
    """A user with the password of the tests."""
    user, _ = await account_users.create(ctx, account_id, email=email, password=contexts.PASSWORD, role=role)
    return user


async def login_of(ctx: context.Context, user: users.User) -> users.Login:
    async with ctx.store.reading() as tx:
        now = await users.by_id(tx, user.id)
        assert now is not None
        login = await users.login_by_id(tx, now.login_id or "")
    assert login is not None
    return login


async def accounts_of(ctx: context.Context, login: users.Login) -> list[str]:
    return [user.account_id for user in await sso_setup.users_of(ctx, login)]


async def by_password(ctx: context.Context, email: str = JO) -> users.Login:
    return await auth_login.check_password(sso_setup.visitor(ctx), email, contexts.PASSWORD)


def of_installation(ctx: context.Context, provider: oidc_provider.Provider, **more: object) -> context.Context:
    values = {"issuer": provider.issuer, "client_id": oidc_provider.CLIENT_ID, "client_secret": oidc_provider.SECRET}
    return sso_setup.changed(ctx, **{**values, **more})


# The provider of an account.


async def test_a_newcomer_becomes_a_user_without_a_password(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    begun = await sso_setup.log_in(ctx, account.id, provider)
    assert (begun.user.email, begun.user.role, begun.account.id) == (JO, "read_only", account.id)
    assert begun.session.row.methods == "sso"
    assert (await login_of(ctx, begun.user)).password_hash is None
    again = await sso_setup.log_in(ctx, account.id, provider)
    assert again.user.id == begun.user.id
    found = await audit_entries.summaries(ctx, account.id)
    assert ("user.created", JO, "as read_only, by single sign-on") in found
    assert [action for action, *_ in found].count("user.sso_bound") == 1


async def test_a_newcomer_is_refused_where_owners_do_not_want_them(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider, creates_users=False)
    with pytest.raises(errors.Forbidden, match="ask an owner to invite you"):
        await sso_setup.enter(ctx, account.id, provider)
    assert ("sso.refused", JO, "you are not a user of this account; ask an owner to invite you") in (
        await audit_entries.summaries(ctx, account.id)
    )
    await account_users.invite(ctx, account.id, email=JO, role=MEMBER)
    begun = await sso_setup.log_in(ctx, account.id, provider)
    assert (begun.user.role, begun.user.joined_at is not None) == ("developer", True)


async def test_an_invitation_is_accepted_by_single_sign_on_and_its_link_ends(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    invited = await account_users.invite(ctx, account.id, email=JO, role=MEMBER)
    begun = await sso_setup.log_in(ctx, account.id, provider)
    assert begun.user.id == invited.user.id
    with pytest.raises(errors.NotFound):
        await password_links.redeem(sso_setup.visitor(ctx), invited.link_token, password="another long sentence")


async def test_a_user_of_this_account_alone_keeps_the_login_and_the_password(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    user = await member(ctx, account.id)
    await sso_setup.connect(ctx, account.id, provider)
    login = await sso_setup.enter(ctx, account.id, provider)
    assert [one.id for one in await sso_setup.users_of(ctx, login)] == [user.id]
    assert (await by_password(ctx)).id == login.id


async def test_an_email_that_changes_at_the_provider_stays_the_same_person(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    before = await sso_setup.enter(ctx, account.id, provider)
    boss = await member(ctx, account.id, email="boss@corp.example", role=OWNER)
    provider.claims = {"email": "boss@corp.example"}
    after = await sso_setup.enter(ctx, account.id, provider)
    assert after.id == before.id
    assert (await login_of(ctx, boss)).id != after.id


async def test_an_email_that_changes_hands_opens_nothing(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    await sso_setup.enter(ctx, account.id, provider)
    provider.claims = {"sub": "the next Jo"}
    with pytest.raises(errors.Forbidden, match="somebody else at your provider"):
        await sso_setup.enter(ctx, account.id, provider)


@pytest.mark.parametrize(
    "claims, why",
    [
        ({"email_verified": False}, "does not say that your email is verified"),
        ({"email": None}, "did not send your email"),
        ({"email": "jo@other.example"}, "not in a domain"),
        ({"email": "jo@sub.corp.example"}, "not in a domain"),
        ({"email": "jo@corp.example.evil.example"}, "not in a domain"),
        ({"email": "Jo <jo@corp.example>"}, "not in a domain"),
        ({"email": "jo@corp.example, boss@corp.example"}, "not an address"),
    ],
)
async def test_an_email_that_the_provider_must_not_vouch_for_is_refused(
    ctx: context.Context,
    account: accounts.Account,
    provider: oidc_provider.Provider,
    claims: dict[str, object],
    why: str,
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    provider.claims = claims
    with pytest.raises(errors.Forbidden, match=why):
        await sso_setup.enter(ctx, account.id, provider)
    assert await account_users.of_account(ctx, account.id) == []


async def test_the_email_is_checked_at_every_login(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    await sso_setup.enter(ctx, account.id, provider)
    provider.claims = {"email": "jo@other.example"}
    with pytest.raises(errors.Forbidden, match="not in a domain"):
        await sso_setup.enter(ctx, account.id, provider)


async def test_a_disabled_user_stays_out(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    begun = await sso_setup.log_in(ctx, account.id, provider)
    await account_users.disable(ctx, account.id, begun.user.id)
    with pytest.raises(errors.Forbidden, match="disabled"):
        await sso_setup.enter(ctx, account.id, provider)


async def test_a_removed_user_comes_back_as_a_newcomer(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    begun = await sso_setup.log_in(ctx, account.id, provider)
    await account_users.remove(ctx, account.id, begun.user.id)
    again = await sso_setup.log_in(ctx, account.id, provider)
    assert again.user.id != begun.user.id


# Groups.


async def test_groups_decide_the_role_at_every_login(
    ctx: context.Context, account: accounts.Account, owner: users.User, provider: oidc_provider.Provider
) -> None:
    groups = {"admins": OWNER, "staff": MEMBER}
    await sso_setup.connect(ctx, account.id, provider, groups=groups)
    provider.claims = {"groups": ["staff", "admins"]}
    begun = await sso_setup.log_in(ctx, account.id, provider)
    assert begun.user.role == "owner"
    provider.claims = {"groups": ["staff"]}
    assert (await sso_setup.log_in(ctx, account.id, provider)).user.role == "developer"
    provider.claims = {"groups": []}
    assert (await sso_setup.log_in(ctx, account.id, provider)).user.role == "read_only"
    found = await audit_entries.summaries(ctx, account.id)
    assert ("user.role_changed", JO, "owner to developer, by single sign-on") in found
    assert owner.role == "owner"


async def test_without_groups_the_role_is_changed_here_only(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await member(ctx, account.id, role=OWNER)
    await sso_setup.connect(ctx, account.id, provider)
    assert (await sso_setup.log_in(ctx, account.id, provider)).user.role == "owner"


async def test_the_last_owner_stays_one(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await member(ctx, account.id, role=OWNER)
    await sso_setup.connect(ctx, account.id, provider, groups={"staff": MEMBER})
    provider.claims = {"groups": ["staff"]}
    assert (await sso_setup.log_in(ctx, account.id, provider)).user.role == "owner"


# A hostile owner.


async def test_the_provider_of_one_account_opens_no_other_account_of_a_person(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    """Jo belongs to two accounts with one login. The owner of one of them says that he is Jo."""
    theirs = await accounts_registry.create(ctx, "Theirs")
    await member(ctx, theirs.id)
    invited = await account_users.invite(ctx, account.id, email=JO, role=MEMBER)
    await password_links.redeem(sso_setup.visitor(ctx), invited.link_token, password=contexts.PASSWORD)
    shared = await by_password(ctx)
    assert sorted(await accounts_of(ctx, shared)) == sorted([account.id, theirs.id])
    await sso_setup.connect(ctx, account.id, provider)
    login = await sso_setup.enter(ctx, account.id, provider)
    assert await accounts_of(ctx, login) == [account.id]
    assert (login.id != shared.id, login.password_hash) == (True, None)
    with pytest.raises(errors.Forbidden, match="do not belong"):
        await auth_login.finish(sso_setup.visitor(ctx), login, methods="sso", account_id=theirs.id)
    assert await accounts_of(ctx, await by_password(ctx)) == [theirs.id]


async def test_a_login_that_a_provider_opens_is_never_joined_to_another_account(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    """Jo has a password and comes by single sign-on; then another account invites Jo, who types that password."""
    await member(ctx, account.id)
    await sso_setup.connect(ctx, account.id, provider)
    login = await sso_setup.enter(ctx, account.id, provider)
    theirs = await accounts_registry.create(ctx, "Theirs")
    invited = await account_users.invite(ctx, theirs.id, email=JO, role=MEMBER)
    await password_links.redeem(sso_setup.visitor(ctx), invited.link_token, password=contexts.PASSWORD)
    assert await accounts_of(ctx, login) == [account.id]
    again = await sso_setup.enter(ctx, account.id, provider)
    assert await accounts_of(ctx, again) == [account.id]


async def test_the_same_subject_of_the_same_provider_is_another_person_for_another_account(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    """A hostile owner registers a client of his own at the provider that others use."""
    theirs = await accounts_registry.create(ctx, "Theirs")
    await sso_setup.connect(ctx, theirs.id, provider, domains=["theirs.example"])
    provider.claims = {"email": "jo@theirs.example"}
    victim = await sso_setup.enter(ctx, theirs.id, provider)
    await sso_setup.connect(ctx, account.id, provider)
    provider.claims = {}
    login = await sso_setup.enter(ctx, account.id, provider)
    assert login.id != victim.id
    assert await accounts_of(ctx, login) == [account.id]


async def test_an_operator_cannot_be_impersonated_by_the_provider_of_their_account(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await member(ctx, account.id)
    await account_users.add_operator(ctx, JO)
    await sso_setup.connect(ctx, account.id, provider)
    with pytest.raises(errors.Forbidden, match="operators of the installation"):
        await sso_setup.enter(ctx, account.id, provider)


async def test_nobody_becomes_an_operator_whom_the_provider_of_an_account_opens(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    await sso_setup.log_in(ctx, account.id, provider)
    with pytest.raises(errors.Conflict, match="single sign-on"):
        await account_users.add_operator(ctx, JO)


async def test_a_domain_that_is_no_longer_verified_opens_nothing(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    domain = await domain_registry.by_name(ctx, account.id, sso_setup.DOMAIN)
    begun = await sso_flow.begin(sso_setup.visitor(ctx), account.id, next_path="/")
    await domain_registry.remove(ctx, account.id, domain.id)
    with pytest.raises(errors.InvalidRequest, match="none of the email domains"):
        await sso_flow.complete(
            sso_setup.visitor(ctx), account.id, cookie=begun.cookie, answer=provider.authorize(begun.url)
        )


# The provider of the installation.


async def test_the_installation_makes_all_users_of_an_email_one_person_and_ends_their_passwords(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    """An owner has created a user with Jo's address, and knows the password."""
    theirs = await accounts_registry.create(ctx, "Theirs")
    await member(ctx, account.id)
    hostile = await member(ctx, theirs.id, role=READER)
    third = await accounts_registry.create(ctx, "Third")
    await account_users.invite(ctx, third.id, email=JO, role=MEMBER)
    login = await sso_setup.enter(of_installation(ctx, provider), sso_flow.INSTALLATION, provider)
    assert sorted(await accounts_of(ctx, login)) == sorted([account.id, theirs.id, third.id])
    with pytest.raises(errors.Unauthorized):
        await by_password(ctx)
    assert (await login_of(ctx, hostile)).password_hash is None


async def test_an_owners_password_link_does_not_reach_a_person_of_the_installation(
    ctx: context.Context, account: accounts.Account, owner: users.User, provider: oidc_provider.Provider
) -> None:
    user = await member(ctx, account.id)
    installed = of_installation(ctx, provider)
    login = await sso_setup.enter(installed, sso_flow.INSTALLATION, provider)
    link = await account_users.create_password_link(audit_entries.as_user(ctx, owner), account.id, user.id)
    await password_links.redeem(sso_setup.visitor(ctx), link.token, password=contexts.PASSWORD)
    assert (await login_of(ctx, user)).id != login.id
    again = await sso_setup.enter(installed, sso_flow.INSTALLATION, provider)
    assert await accounts_of(ctx, again) == [account.id]
    with pytest.raises(errors.Unauthorized):
        await by_password(ctx)


async def test_a_newcomer_of_the_installation_joins_its_account(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    without = of_installation(ctx, provider)
    with pytest.raises(errors.Forbidden, match="not a user of an account here"):
        await sso_setup.enter(without, sso_flow.INSTALLATION, provider)
    begun = await sso_setup.log_in(
        of_installation(ctx, provider, account=account.id, role="developer"), sso_flow.INSTALLATION, provider
    )
    assert (begun.account.id, begun.user.role) == (account.id, "developer")


async def test_groups_make_operators_and_end_it(
    ctx: context.Context, account: accounts.Account, owner: users.User, provider: oidc_provider.Provider
) -> None:
    await account_users.add_operator(ctx, owner.email)
    installed = of_installation(ctx, provider, account=account.id, groups={"mail": "operator", "staff": "developer"})
    provider.claims = {"groups": ["mail", "staff"]}
    begun = await sso_setup.log_in(installed, sso_flow.INSTALLATION, provider)
    assert (begun.user.role, begun.user.operator_since is not None) == ("developer", True)
    provider.claims = {"groups": ["staff"]}
    begun = await sso_setup.log_in(installed, sso_flow.INSTALLATION, provider)
    assert (begun.user.role, begun.user.operator_since) == ("developer", None)
    found = await audit_entries.summaries(ctx, "")
    assert ("operator.added", JO, "by single sign-on") in found
    assert ("operator.removed", JO, "by single sign-on") in found


async def test_the_last_operator_stays_one(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    installed = of_installation(ctx, provider, account=account.id, groups={"mail": "operator"})
    provider.claims = {"groups": ["mail"]}
    await sso_setup.log_in(installed, sso_flow.INSTALLATION, provider)
    provider.claims = {"groups": []}
    begun = await sso_setup.log_in(installed, sso_flow.INSTALLATION, provider)
    assert begun.user.operator_since is not None


async def test_a_user_of_an_accounts_provider_is_left_to_it(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    theirs = await sso_setup.enter(ctx, account.id, provider)
    other = await accounts_registry.create(ctx, "Other")
    await member(ctx, other.id)
    login = await sso_setup.enter(of_installation(ctx, provider), sso_flow.INSTALLATION, provider)
    assert await accounts_of(ctx, login) == [other.id]
    assert await accounts_of(ctx, theirs) == [account.id]


async def test_an_email_that_changes_hands_opens_nothing_in_the_installation(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await member(ctx, account.id)
    installed = of_installation(ctx, provider)
    await sso_setup.enter(installed, sso_flow.INSTALLATION, provider)
    provider.claims = {"sub": "the next Jo"}
    with pytest.raises(errors.Forbidden, match="somebody else at your provider"):
        await sso_setup.enter(installed, sso_flow.INSTALLATION, provider)


async def test_the_login_for_emergencies_does_not_come_by_single_sign_on(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await member(ctx, account.id)
    with pytest.raises(errors.Forbidden, match="for emergencies"):
        await sso_setup.enter(
            of_installation(ctx, provider, break_glass="JO@corp.example"), sso_flow.INSTALLATION, provider
        )
    assert (await by_password(ctx)).email == JO


async def test_the_domains_of_the_installation_bound_what_its_provider_vouches_for(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await member(ctx, account.id)
    with pytest.raises(errors.Forbidden, match="not in a domain"):
        await sso_setup.enter(
            of_installation(ctx, provider, email_domains=("other.example",)), sso_flow.INSTALLATION, provider
        )


async def test_whoever_comes_acts_as_their_user_in_the_audit_log(
    ctx: context.Context, account: accounts.Account, provider: oidc_provider.Provider
) -> None:
    await sso_setup.connect(ctx, account.id, provider)
    begun = await sso_setup.log_in(ctx, account.id, provider)
    bound = [one for one in await audit_entries.entries(ctx, account.id) if one.action == "user.sso_bound"]
    assert [(one.actor_kind, one.user_id) for one in bound] == [(callers.ActorKind.PERSON, begun.user.id)]
