"""Whose login somebody gets, in which account and role; and what a hostile owner with an own provider does not get."""

import pytest

from postroad import context, errors
from postroad.model.people import callers
from postroad.services.accounts import account_registry
from postroad.services.domains import domain_registry
from postroad.services.people import logins as auth_login
from postroad.services.people import password_links
from postroad.services.people import users as account_users
from postroad.storage.people import users
from tests import contexts
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


async def by_password(sso: sso_setup.Sso, email: str = JO) -> users.Login:
    return await auth_login.check_password(sso.visitor, email, contexts.PASSWORD)


async def joined(sso: sso_setup.Sso, account_id: str) -> users.User:
    """Jo accepts the invitation of an account with the password that they have."""
    invited = await account_users.invite(sso.ctx, account_id, email=JO, role=MEMBER)
    return await password_links.redeem(sso.visitor, invited.link_token, password=contexts.PASSWORD)


# The provider of an account.


async def test_a_newcomer_becomes_a_user_without_a_password(sso: sso_setup.Sso) -> None:
    begun = await sso.log_in()
    assert (begun.user.email, begun.user.role, begun.account.id) == (JO, "read_only", sso.account_id)
    assert begun.session.row.methods == "sso"
    assert (await login_of(sso.ctx, begun.user)).password_hash is None
    assert (await sso.log_in()).user.id == begun.user.id
    entries = await audit_entries.entries(sso.ctx, sso.account_id)
    assert ("user.created", "as read_only, by single sign-on") in [(entry.action, entry.detail) for entry in entries]
    (bound,) = [entry for entry in entries if entry.action == "user.sso_bound"]
    assert (bound.actor_kind, bound.user_id) == (callers.ActorKind.PERSON, begun.user.id)


async def test_where_owners_want_no_newcomers_an_invitation_is_accepted_and_its_link_ends(sso: sso_setup.Sso) -> None:
    await sso.connect(creates_users=False)
    with pytest.raises(errors.Forbidden, match="ask an owner to invite you"):
        await sso.enter()
    assert ("sso.refused", JO, "you are not a user of this account; ask an owner to invite you") in (
        await audit_entries.summaries(sso.ctx, sso.account_id)
    )
    invited = await account_users.invite(sso.ctx, sso.account_id, email=JO, role=MEMBER)
    begun = await sso.log_in()
    assert (begun.user.id, begun.user.role, begun.user.joined_at is not None) == (invited.user.id, "developer", True)
    with pytest.raises(errors.NotFound):
        await password_links.redeem(sso.visitor, invited.link_token, password="another long sentence")


async def test_a_user_of_this_account_alone_keeps_the_login_and_the_password(sso: sso_setup.Sso) -> None:
    user = await member(sso.ctx, sso.account_id)
    login = await sso.enter()
    assert (await login_of(sso.ctx, user)).id == login.id
    assert (await by_password(sso)).id == login.id


async def test_a_person_is_who_the_provider_says_and_not_who_has_the_email(sso: sso_setup.Sso) -> None:
    before = await sso.enter()
    boss = await member(sso.ctx, sso.account_id, email="boss@corp.example", role=OWNER)
    sso.provider.claims = {"email": "boss@corp.example"}
    assert (await sso.enter()).id == before.id != (await login_of(sso.ctx, boss)).id
    sso.provider.claims = {"email": "jo@other.example"}
    with pytest.raises(errors.Forbidden, match="not in a domain"):
        await sso.enter()
    sso.provider.claims = {"sub": "the next Jo"}
    with pytest.raises(errors.Forbidden, match="somebody else at your provider"):
        await sso.enter()


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
    sso: sso_setup.Sso, claims: dict[str, object], why: str
) -> None:
    sso.provider.claims = claims
    with pytest.raises(errors.Forbidden, match=why):
        await sso.enter()
    assert await account_users.of_account(sso.ctx, sso.account_id) == []


async def test_a_disabled_user_stays_out_and_a_removed_one_comes_back_as_a_newcomer(sso: sso_setup.Sso) -> None:
    begun = await sso.log_in()
    await account_users.disable(sso.ctx, sso.account_id, begun.user.id)
    with pytest.raises(errors.Forbidden, match="disabled"):
        await sso.enter()
    await account_users.remove(sso.ctx, sso.account_id, begun.user.id)
    assert (await sso.log_in()).user.id != begun.user.id


# Groups.


async def test_groups_decide_the_role_at_every_login(sso: sso_setup.Sso, owner: users.User) -> None:
    await sso.connect(groups={"admins": OWNER, "staff": MEMBER})
    for groups, role in ((["staff", "admins"], "owner"), (["staff"], "developer"), ([], "read_only")):
        sso.provider.claims = {"groups": groups}
        assert (await sso.log_in()).user.role == role
    found = await audit_entries.summaries(sso.ctx, sso.account_id)
    assert ("user.role_changed", JO, "owner to developer, by single sign-on") in found
    assert owner.role == "owner"


@pytest.mark.parametrize("groups", [{}, {"staff": MEMBER}], ids=["no groups", "the last owner"])
async def test_the_role_stays_without_groups_and_the_last_owner_an_owner(
    sso: sso_setup.Sso, groups: dict[str, callers.Role]
) -> None:
    await member(sso.ctx, sso.account_id, role=OWNER)
    if not groups:
        await member(sso.ctx, sso.account_id, email="boss@corp.example", role=OWNER)
    await sso.connect(groups=groups)
    sso.provider.claims = {"groups": ["staff"]}
    assert (await sso.log_in()).user.role == "owner"


# A hostile owner.


async def test_the_provider_of_one_account_opens_no_other_account_of_a_person(sso: sso_setup.Sso) -> None:
    """Jo belongs to two accounts with one login. The owner of one of them says that he is Jo."""
    theirs = await account_registry.create(sso.ctx, "Theirs")
    await member(sso.ctx, theirs.id)
    await joined(sso, sso.account_id)
    shared = await by_password(sso)
    assert await sso.accounts_of(shared) == sorted([sso.account_id, theirs.id])
    login = await sso.enter()
    assert await sso.accounts_of(login) == [sso.account_id]
    assert (login.id != shared.id, login.password_hash) == (True, None)
    with pytest.raises(errors.Forbidden, match="do not belong"):
        await auth_login.finish(sso.visitor, login, methods="sso", account_id=theirs.id)
    assert await sso.accounts_of(await by_password(sso)) == [theirs.id]


async def test_a_login_that_a_provider_opens_is_never_joined_to_another_account(sso: sso_setup.Sso) -> None:
    """Jo has a password and comes by single sign-on; then another account invites Jo, who types that password."""
    await member(sso.ctx, sso.account_id)
    login = await sso.enter()
    theirs = await account_registry.create(sso.ctx, "Theirs")
    await joined(sso, theirs.id)
    assert await sso.accounts_of(login) == [sso.account_id]
    assert await sso.accounts_of(await sso.enter()) == [sso.account_id]


async def test_the_same_subject_of_the_same_provider_is_another_person_for_another_account(sso: sso_setup.Sso) -> None:
    """A hostile owner registers a client of his own at the provider that others use."""
    theirs = await account_registry.create(sso.ctx, "Theirs")
    await sso.of(theirs.id).connect(domains=["theirs.example"])
    sso.provider.claims = {"email": "jo@theirs.example"}
    victim = await sso.of(theirs.id).enter()
    sso.provider.claims = {}
    login = await sso.enter()
    assert login.id != victim.id
    assert await sso.accounts_of(login) == [sso.account_id]


async def test_an_operator_cannot_be_impersonated_by_the_provider_of_their_account(sso: sso_setup.Sso) -> None:
    user = await member(sso.ctx, sso.account_id)
    await account_users.add_operator(sso.ctx, JO)
    with pytest.raises(errors.Forbidden, match="operators of the installation"):
        await sso.enter()
    await account_users.remove_operator(sso.ctx, user.id)
    await sso.enter()
    with pytest.raises(errors.Conflict, match="single sign-on"):
        await account_users.add_operator(sso.ctx, JO)


async def test_a_domain_that_is_no_longer_verified_opens_nothing(sso: sso_setup.Sso) -> None:
    domain = await domain_registry.by_name(sso.ctx, sso.account_id, sso_setup.DOMAIN)
    begun = await sso.begin()
    await domain_registry.remove(sso.ctx, sso.account_id, domain.id)
    with pytest.raises(errors.InvalidRequest, match="none of the email domains"):
        await sso.finish(begun.cookie, sso.provider.authorize(begun.url))


# The provider of the installation.


async def test_the_installation_makes_all_users_of_an_email_one_person_and_ends_their_passwords(
    unconnected: sso_setup.Sso,
) -> None:
    """An owner has created a user with Jo's address, and knows the password."""
    ctx, account_id = unconnected.ctx, unconnected.account_id
    theirs, third = [await account_registry.create(ctx, name) for name in ("Theirs", "Third")]
    await member(ctx, account_id)
    hostile = await member(ctx, theirs.id, role=READER)
    await account_users.invite(ctx, third.id, email=JO, role=MEMBER)
    login = await unconnected.of_installation().enter()
    assert await unconnected.accounts_of(login) == sorted([account_id, theirs.id, third.id])
    with pytest.raises(errors.Unauthorized):
        await by_password(unconnected)
    assert (await login_of(ctx, hostile)).password_hash is None


async def test_neither_an_owners_link_nor_the_next_jo_reaches_a_person_of_the_installation(
    unconnected: sso_setup.Sso, owner: users.User
) -> None:
    ctx, account_id = unconnected.ctx, unconnected.account_id
    user = await member(ctx, account_id)
    installed = unconnected.of_installation()
    login = await installed.enter()
    link = await account_users.create_password_link(audit_entries.as_user(ctx, owner), account_id, user.id)
    await password_links.redeem(unconnected.visitor, link.token, password=contexts.PASSWORD)
    assert (await login_of(ctx, user)).id != login.id
    assert await installed.accounts_of(await installed.enter()) == [account_id]
    with pytest.raises(errors.Unauthorized):
        await by_password(unconnected)
    unconnected.provider.claims = {"sub": "the next Jo"}
    with pytest.raises(errors.Forbidden, match="somebody else at your provider"):
        await installed.enter()


async def test_a_newcomer_of_the_installation_joins_its_account(unconnected: sso_setup.Sso) -> None:
    with pytest.raises(errors.Forbidden, match="not a user of an account here"):
        await unconnected.of_installation().enter()
    begun = await unconnected.of_installation(account=unconnected.account_id, role="developer").log_in()
    assert (begun.account.id, begun.user.role) == (unconnected.account_id, "developer")


async def test_groups_make_operators_and_end_it_but_for_the_last_one(
    unconnected: sso_setup.Sso, owner: users.User
) -> None:
    ctx = unconnected.ctx
    await account_users.add_operator(ctx, owner.email)
    groups = {"mail": "operator", "staff": "developer"}
    installed = unconnected.of_installation(account=unconnected.account_id, groups=groups)
    for groups_of_jo, is_operator in ((["mail", "staff"], True), (["staff"], False), (["mail", "staff"], True)):
        unconnected.provider.claims = {"groups": groups_of_jo}
        begun = await installed.log_in()
        assert (begun.user.role, begun.user.operator_since is not None) == ("developer", is_operator)
    found = await audit_entries.summaries(ctx, "")
    assert ("operator.added", JO, "by single sign-on") in found
    assert ("operator.removed", JO, "by single sign-on") in found
    await account_users.remove_operator(ctx, owner.id)
    unconnected.provider.claims = {"groups": ["staff"]}
    assert (await installed.log_in()).user.operator_since is not None


async def test_a_user_of_an_accounts_provider_is_left_to_it(sso: sso_setup.Sso) -> None:
    theirs = await sso.enter()
    other = await account_registry.create(sso.ctx, "Other")
    await member(sso.ctx, other.id)
    login = await sso.of_installation().enter()
    assert await sso.accounts_of(login) == [other.id]
    assert await sso.accounts_of(theirs) == [sso.account_id]


@pytest.mark.parametrize(
    "more, why",
    [
        ({"break_glass": "JO@corp.example"}, "for emergencies"),
        ({"email_domains": ("other.example",)}, "not in a domain"),
    ],
    ids=str,
)
async def test_neither_the_login_for_emergencies_nor_other_domains_come_by_the_provider_of_the_installation(
    unconnected: sso_setup.Sso, more: dict[str, object], why: str
) -> None:
    await member(unconnected.ctx, unconnected.account_id)
    with pytest.raises(errors.Forbidden, match=why):
        await unconnected.of_installation(**more).enter()
    assert (await by_password(unconnected)).email == JO
