"""What a person made stops while they are disabled, is shown before they are removed, and is revoked or handed over."""

import pytest

from postroad import context, errors
from postroad.model.people import callers
from postroad.services.people import api_keys, authentication, credentials, logins
from postroad.services.people import users as account_users
from postroad.storage.people import users
from tests.contexts import PASSWORD
from tests.services.audit_entries import as_user, summaries
from tests.services.people.test_schemes import basic, bearer, who_is

SEND, EVERYTHING = frozenset({callers.Scope.SEND}), frozenset({callers.EVERY_SCOPE})


@pytest.fixture
async def member(ctx: context.Context, account_id: str) -> users.User:
    user, _ = await account_users.create(
        ctx, account_id, email="jo@example.com", password=PASSWORD, role=callers.Role.OWNER
    )
    return user


async def make(ctx: context.Context, user: users.User) -> tuple[str, str]:
    """A credential and a key of a user; what to authenticate with."""
    acting = as_user(ctx, user)
    credential, password = await credentials.create(acting, user.account_id, "Web shop")
    _, secret = await api_keys.create(acting, user.account_id, credential_id=credential.id, name="Shop", scopes=SEND)
    return basic(credential.username, password), bearer(secret)


async def logged_in(ctx: context.Context, presented: str) -> context.Context:
    """The context of requests with this credential."""
    return context.acting_as(ctx, await who_is(ctx, presented), request_id="req_1", client_address="127.0.0.1")


async def works(ctx: context.Context, *presented: str) -> list[bool]:
    """Which of these secrets authenticate."""
    found = []
    for field in presented:
        try:
            await who_is(ctx, field)
        except errors.Unauthorized:
            found.append(False)
        else:
            found.append(True)
    return found


async def test_what_a_person_made_is_listed_as_long_as_it_works(
    ctx: context.Context, owner: users.User, member: users.User
) -> None:
    await make(ctx, member)
    await make(ctx, owner)
    created = await credentials.secrets_created_by(ctx, member)
    assert [key.name for key in created.api_keys] == ["Shop"]
    assert [credential.name for credential in created.credentials] == ["Web shop"]
    await credentials.revoke(ctx, member.account_id, created.credentials[0].id)
    assert await credentials.secrets_created_by(ctx, member) == credentials.CreatedSecrets([], [])
    # Who has nothing to leave behind can remove themselves.
    await account_users.remove(as_user(ctx, member), member.account_id, member.id)
    assert [user.id for user in await account_users.of_account(ctx, owner.account_id)] == [owner.id]


async def test_what_is_revoked_stops_working_and_is_told(
    ctx: context.Context, owner: users.User, member: users.User
) -> None:
    presented, kept = await make(ctx, member), await make(ctx, owner)
    assert await works(ctx, *presented, *kept) == [True] * 4
    await account_users.remove(
        as_user(ctx, owner), member.account_id, member.id, secrets=credentials.SecretsAction.REVOKE
    )
    assert await works(ctx, *presented, *kept) == [False, False, True, True]
    told = await summaries(ctx, owner.account_id)
    assert ("user.removed", member.email, "and revoked their API keys and SMTP credentials") in told
    assert {("api_key.revoked", "Shop"), ("credential.revoked", "Web shop")} <= {entry[:2] for entry in told}


@pytest.mark.parametrize("at_command_line", [False, True])
async def test_what_is_handed_over_goes_on_and_is_the_acting_owners_if_there_is_one(
    ctx: context.Context, owner: users.User, member: users.User, *, at_command_line: bool
) -> None:
    presented = await make(ctx, member)
    await account_users.remove(ctx if at_command_line else as_user(ctx, owner), member.account_id, member.id)
    assert await works(ctx, *presented) == [True, True]
    listed = [*await api_keys.of_account(ctx, owner.account_id), *await credentials.of_account(ctx, owner.account_id)]
    assert [one.created_by for one in listed] == [None if at_command_line else owner.id] * 2


async def test_what_a_disabled_person_and_their_keys_made_does_not_work_until_they_are_enabled(
    ctx: context.Context, owner: users.User, member: users.User
) -> None:
    presented, kept = await make(ctx, member), await make(ctx, owner)
    (under,) = (await credentials.secrets_created_by(ctx, member)).credentials
    _, of_owner = await api_keys.create(
        as_user(ctx, owner), owner.account_id, credential_id=under.id, name="Owner's", scopes=SEND
    )
    by_token = await logged_in(ctx, bearer((await logins.issue_token(ctx, member)).token))
    _, first = await api_keys.create(by_token, member.account_id, credential_id=None, name="All", scopes=EVERYTHING)
    by_key = await logged_in(ctx, bearer(first))
    _, second = await api_keys.create(by_key, member.account_id, credential_id=None, name="Second", scopes=SEND)
    connected = await credentials.create(as_user(ctx, member), member.account_id, "SMTP")
    pair = (connected[0].username, connected[1])
    who = await authentication.authenticate_password(ctx, *pair, client_address="127.0.0.1")
    assert await works(ctx, *presented, bearer(second)) == [True] * 3
    await account_users.disable(as_user(ctx, owner), member.account_id, member.id)
    for field, what in zip(presented, ("SMTP credential", "API key"), strict=True):
        sentence = f"^this {what} is disabled because the user who created it is disabled; ask "
        with pytest.raises(errors.Unauthorized, match=sentence):
            await who_is(ctx, field)
    for attempt in (
        who_is(ctx, bearer(second)),
        authentication.renew(ctx, who),
        authentication.authenticate_password(ctx, *pair, client_address="127.0.0.1"),
    ):
        with pytest.raises(errors.CreatorDisabled):
            await attempt
    # A wrong password is told nothing.
    with pytest.raises(errors.Unauthorized, match="wrong username or password"):
        await who_is(ctx, basic(under.username, "wrong"))
    assert await works(ctx, *kept, bearer(of_owner)) == [True] * 3
    await account_users.enable(as_user(ctx, owner), member.account_id, member.id)
    assert await works(ctx, *presented, bearer(second)) == [True] * 3


@pytest.mark.parametrize("is_first", [True, False])
async def test_secrets_handed_over_before_or_after_disabling_keep_working(
    ctx: context.Context,
    owner: users.User,
    member: users.User,
    is_first: bool,  # noqa: FBT001
) -> None:
    presented = await make(ctx, member)
    acting = as_user(ctx, owner)
    await account_users.change(acting, member.account_id, member.id, hand_over=is_first, enabled=False)
    if not is_first:
        await account_users.change(acting, member.account_id, member.id, hand_over=True)
    assert await works(ctx, *presented) == [True, True]
    listed = [*await api_keys.of_account(ctx, owner.account_id), *await credentials.of_account(ctx, owner.account_id)]
    assert {(one.created_by, one.created_by_email, one.disabled_at) for one in listed} == {
        (owner.id, owner.email, None)
    }
    told = [(action, subject) for action, subject, _ in await summaries(ctx, owner.account_id)]
    assert ("user.secrets_handed_over", member.email) in told


@pytest.mark.parametrize("secrets", [None, credentials.SecretsAction.HAND_OVER])
async def test_the_removal_of_a_disabled_person_lets_nothing_work_again_by_itself(
    ctx: context.Context, owner: users.User, member: users.User, secrets: credentials.SecretsAction | None
) -> None:
    presented = await make(ctx, member)
    acting = as_user(ctx, owner)
    await account_users.disable(acting, member.account_id, member.id)
    await account_users.remove(acting, member.account_id, member.id, secrets=secrets)
    assert await works(ctx, *presented) == [secrets is not None] * 2


async def test_nobody_hands_over_to_themselves(ctx: context.Context, owner: users.User, member: users.User) -> None:
    presented = await make(ctx, member)
    by_token = await logged_in(ctx, bearer((await logins.issue_token(ctx, member)).token))
    _, secret = await api_keys.create(by_token, member.account_id, credential_id=None, name="All", scopes=EVERYTHING)
    own = as_user(ctx, member)
    await account_users.change(as_user(ctx, owner), member.account_id, member.id, role=callers.Role.ADMIN)
    for refused in (
        account_users.disable(own, member.account_id, member.id, hand_over=True),
        account_users.disable(await logged_in(ctx, bearer(secret)), member.account_id, member.id, hand_over=True),
        account_users.remove(own, member.account_id, member.id),
        account_users.remove(own, member.account_id, member.id, secrets=credentials.SecretsAction.HAND_OVER),
    ):
        with pytest.raises(errors.Conflict, match="somebody else has to take them over"):
            await refused
    assert await works(ctx, *presented) == [True, True]
    await account_users.disable(own, member.account_id, member.id)
    with pytest.raises(errors.CreatorDisabled):
        await who_is(ctx, presented[0])
    await account_users.enable(as_user(ctx, owner), member.account_id, member.id)
    await account_users.remove(own, member.account_id, member.id, secrets=credentials.SecretsAction.REVOKE)
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, presented[0])


async def test_the_audit_log_tells_only_what_happened_to_secrets(
    ctx: context.Context, owner: users.User, member: users.User
) -> None:
    acting = as_user(ctx, owner)
    # Nothing to hand over.
    await account_users.disable(acting, member.account_id, member.id, hand_over=True)
    await account_users.enable(acting, member.account_id, member.id)
    await make(ctx, member)
    # A command: they have no creator from then on, so the removal revokes nothing.
    await account_users.disable(ctx, member.account_id, member.id, hand_over=True)
    await account_users.remove(ctx, member.account_id, member.id)
    told = [
        (action, detail)
        for action, subject, detail in await summaries(ctx, owner.account_id)
        if subject == member.email
    ]
    assert told == [
        ("user.created", "as owner"),
        ("user.disabled", ""),
        ("user.disabled", ""),
        ("user.enabled", ""),
        ("user.removed", ""),
        ("user.secrets_kept", ""),
    ]


async def test_a_key_manages_the_team_only_while_its_creator_may(
    ctx: context.Context, owner: users.User, member: users.User
) -> None:
    token = (await logins.issue_token(ctx, member)).token
    acting = await logged_in(ctx, bearer(token))
    _, secret = await api_keys.create(acting, member.account_id, credential_id=None, name="All", scopes=EVERYTHING)
    scopes = set()
    for role in (callers.Role.ADMIN, callers.Role.READ_ONLY):
        await account_users.change(as_user(ctx, owner), member.account_id, member.id, role=role)
        key = (await who_is(ctx, bearer(secret))).key
        assert key is not None
        scopes.add(key.scopes)
    assert scopes == {callers.SCOPES, callers.SCOPES - {callers.Scope.TEAM}}


async def test_a_key_that_operates_the_installation_is_never_handed_over(
    ctx: context.Context, owner: users.User, member: users.User
) -> None:
    for user in (owner, member):
        await account_users.add_operator(ctx, user.email)
    await credentials.create(ctx, owner.account_id, "main")
    _, secret = await api_keys.create(
        as_user(ctx, member), member.account_id, credential_id=None, name="Console", scopes=frozenset({"operator"})
    )
    await account_users.remove_operator(ctx, member.id)
    await account_users.remove(as_user(ctx, owner), member.account_id, member.id)
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(secret))
