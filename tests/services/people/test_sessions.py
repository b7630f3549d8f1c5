"""Sessions of browsers: they live while they are used, end when they should, and are worth nothing elsewhere."""

import pytest
import pytest_asyncio

from postroad import context, errors
from postroad.model.people import callers
from postroad.services.accounts import account_registry
from postroad.services.people import logins, password_links, sessions, step_up
from postroad.services.people import users as account_users
from postroad.storage.people import users
from tests import contexts
from tests.contexts import PASSWORD, Clock
from tests.services.audit_entries import as_user, summaries
from tests.services.people.test_schemes import HERE, bearer, who_is

HOUR = 3_600


async def test_a_session_is_its_persons_and_no_token_of_the_api_nor_the_other_way(
    ctx: context.Context, owner: users.User
) -> None:
    session = await contexts.begin_session(ctx, owner)
    who, same = await sessions.authenticate(ctx, session.token)
    assert (who.user_id, who.account_id, who.scheme) == (owner.id, owner.account_id, callers.Scheme.TOKEN)
    assert same == session
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(session.token))
    issued = await logins.issue_token(ctx, owner)
    with pytest.raises(errors.Unauthorized):
        await sessions.authenticate(ctx, issued.token)
    await logins.log_out(as_user(ctx, owner), await who_is(ctx, bearer(issued.token)))
    assert ("user.token_revoked", owner.email, "") in await summaries(ctx, owner.account_id)


async def test_an_idle_session_ends(ctx: context.Context, owner: users.User, clock: Clock) -> None:
    session = await contexts.begin_session(ctx, owner)
    clock.pass_seconds(12 * HOUR - 1)
    await sessions.authenticate(ctx, session.token)
    clock.pass_seconds(1)
    with pytest.raises(errors.Unauthorized):
        await sessions.authenticate(ctx, session.token)


async def test_a_busy_session_goes_on_until_its_last_day(ctx: context.Context, owner: users.User, clock: Clock) -> None:
    session = await contexts.begin_session(ctx, owner)
    assert sessions.renewed(ctx, session) is None
    for _ in range(14 * 24 // 6):
        clock.pass_seconds(6 * HOUR - 1)
        await sessions.authenticate(ctx, session.token)
        session = sessions.renewed(ctx, session) or session
    assert sessions.renewed(ctx, session) is None
    clock.pass_seconds(6 * HOUR)
    with pytest.raises(errors.Unauthorized):
        await sessions.authenticate(ctx, session.token)


async def test_the_end_of_a_session_ends_every_token_of_it(
    ctx: context.Context, owner: users.User, clock: Clock
) -> None:
    first = await contexts.begin_session(ctx, owner)
    clock.pass_seconds(3 * HOUR)
    second = sessions.renewed(ctx, first)
    other = await contexts.begin_session(ctx, owner)
    assert second is not None
    who, session = await sessions.authenticate(ctx, second.token)
    assert who.token_id == session.row.id
    await sessions.end(ctx, session.row.id)
    for token in (first.token, second.token):
        with pytest.raises(errors.Unauthorized):
            await sessions.authenticate(ctx, token)
    await sessions.authenticate(ctx, other.token)


async def test_the_word_of_a_form_belongs_to_one_session(ctx: context.Context, owner: users.User) -> None:
    mine, other = await contexts.begin_session(ctx, owner), await contexts.begin_session(ctx, owner)
    word = sessions.csrf_token(ctx, mine)
    assert sessions.is_csrf_token(ctx, mine, word)
    for wrong in ("", word[:-1], word[:-2], word + "00", word[64:], "0" * 128, "ä", sessions.csrf_token(ctx, other)):
        assert not sessions.is_csrf_token(ctx, mine, wrong)
    assert word not in mine.token


async def test_the_word_of_a_form_is_written_differently_each_time(ctx: context.Context, owner: users.User) -> None:
    session = await contexts.begin_session(ctx, owner)
    words = {sessions.csrf_token(ctx, session) for _ in range(20)}
    assert all(sessions.is_csrf_token(ctx, session, word) for word in words)
    # Neither half of one is in another.
    assert len({half for word in words for half in (word[:64], word[64:])}) == 40


# Sessions and tokens of a person: listed, ended one by one or together, and made with a name.

DAY = 24 * 3600 * 1_000_000


@pytest_asyncio.fixture
async def session(ctx: context.Context, owner: users.User) -> sessions.Session:
    return await contexts.begin_session(ctx, owner)


@pytest_asyncio.fixture
async def elsewhere(ctx: context.Context, owner: users.User) -> users.User:
    """The same person in another account, with the same login."""
    other = await account_registry.create(ctx, "Other")
    invited = await account_users.invite(ctx, other.id, email=owner.email, role=callers.Role.OWNER)
    acting = logins.acting(ctx, client_address=HERE)
    return await password_links.redeem(acting, invited.link_token, password=PASSWORD)


async def has_ended(ctx: context.Context, session: sessions.Session) -> bool:
    try:
        await sessions.authenticate(ctx, session.token)
    except errors.Unauthorized:
        return True
    return False


async def test_a_person_sees_all_their_sessions_and_an_account_its_own_until_they_are_idle(
    ctx: context.Context, owner: users.User, session: sessions.Session, elsewhere: users.User, clock: Clock
) -> None:
    clock.pass_seconds(1)
    there = await contexts.begin_session(ctx, elsewhere)
    own = await sessions.of_person(ctx, owner.login_id or "")
    assert [one.id for one in own] == [there.row.id, session.row.id]
    assert await sessions.of_user(ctx, owner) == [session.row]
    clock.pass_seconds(12 * 3600 - 2)
    assert await sessions.of_user(ctx, owner) == [session.row]
    clock.pass_seconds(1)
    assert await sessions.of_user(ctx, owner) == []
    assert await sessions.of_user(ctx, elsewhere) == [there.row]


async def test_one_is_ended_and_the_audit_log_of_its_account_tells(
    ctx: context.Context, owner: users.User, session: sessions.Session, elsewhere: users.User
) -> None:
    there = await contexts.begin_session(ctx, elsewhere)
    acting = as_user(ctx, owner)
    await sessions.end(acting, there.row.id, login_id=owner.login_id or "")
    assert (await has_ended(ctx, there), await has_ended(ctx, session)) == (True, False)
    assert ("user.session_ended", owner.email, "") in await summaries(ctx, elsewhere.account_id)
    with pytest.raises(errors.NotFound, match="no such session"):
        await sessions.end(acting, there.row.id, login_id=owner.login_id or "")


async def test_nobody_ends_the_session_of_another_person_and_an_account_none_in_another_one(
    ctx: context.Context, owner: users.User, session: sessions.Session, elsewhere: users.User
) -> None:
    other, _ = await account_users.create(
        ctx, owner.account_id, email="other@example.com", password=None, role=callers.Role.OWNER
    )
    with pytest.raises(errors.NotFound):
        await sessions.end(ctx, session.row.id, login_id=other.login_id or "")
    with pytest.raises(errors.NotFound):
        await sessions.end(ctx, session.row.id, user_id=elsewhere.id)
    assert not await has_ended(ctx, session)
    await sessions.end(ctx, session.row.id, user_id=owner.id)
    assert await has_ended(ctx, session)


async def test_all_others_end_in_all_accounts(
    ctx: context.Context, owner: users.User, session: sessions.Session, elsewhere: users.User
) -> None:
    others = [await contexts.begin_session(ctx, one) for one in (owner, elsewhere)]
    token = await sessions.make_token(ctx, owner, session)
    assert await sessions.end_others(as_user(ctx, owner), session.row) == 3
    assert not await has_ended(ctx, session)
    assert [await has_ended(ctx, one) for one in others] == [True, True]
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(token.token))


async def test_a_token_without_a_name_lives_no_longer_than_its_session(
    ctx: context.Context, owner: users.User, session: sessions.Session, clock: Clock
) -> None:
    assert (await sessions.make_token(ctx, owner, session)).expires_at == clock.now + 3600 * 1_000_000
    clock.pass_seconds(12 * 3600 - 60)
    token = await sessions.make_token(as_user(ctx, owner), owner, session)
    assert token.expires_at == session.expires_at
    assert (await who_is(ctx, bearer(token.token))).user_id == owner.id
    await sessions.end(ctx, session.row.id, login_id=owner.login_id or "")
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(token.token))


@pytest.mark.parametrize("end", ["revoked", "a new password"])
async def test_a_token_with_a_name_and_a_date_outlives_its_session(
    ctx: context.Context, owner: users.User, session: sessions.Session, clock: Clock, end: str
) -> None:
    acting = as_user(ctx, owner)
    token = await sessions.make_token(acting, owner, session, name="nightly", expires_at=clock.now + 30 * DAY)
    await sessions.end(acting, session.row.id, login_id=owner.login_id or "")
    clock.pass_seconds(29 * 24 * 3600)
    assert (await who_is(ctx, bearer(token.token))).user_id == owner.id
    assert [one.name for one in await sessions.of_user(ctx, owner)] == ["nightly"]
    if end == "revoked":
        await sessions.end(acting, token.row.id, login_id=owner.login_id or "")
    else:
        await account_users.set_password(ctx, owner.account_id, owner.id, password="quite another sentence")
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(token.token))
    told = await summaries(ctx, owner.account_id)
    assert ("user.token_made", owner.email, "nightly") in told
    assert (("user.token_revoked", owner.email, "nightly") in told) == (end == "revoked")


async def test_a_token_that_stays_needs_a_name_and_a_date_within_a_year(
    ctx: context.Context, owner: users.User, session: sessions.Session, clock: Clock
) -> None:
    for name, days, problem in (
        ("", 1, "name: a token that outlives"),
        ("nightly", None, "name: a token that outlives"),
        ("nightly", 0, "expires_on: must be in the future"),
        ("nightly", 367, "expires_on: must be in the future"),
        ("two\nlines", 1, "name: must be"),
    ):
        expires_at = None if days is None else clock.now + days * DAY
        with pytest.raises(errors.InvalidRequest, match=problem):
            await sessions.make_token(ctx, owner, session, name=name, expires_at=expires_at)


async def test_no_token_is_made_in_a_session_that_has_ended_elsewhere(
    ctx: context.Context, other_process: context.Context, owner: users.User, session: sessions.Session, clock: Clock
) -> None:
    _, stolen = await sessions.authenticate(other_process, session.token)
    await account_users.set_password(ctx, owner.account_id, owner.id, password="quite another sentence")
    await sessions.authenticate(other_process, session.token)  # which has not heard of it yet
    for name, expires_at in (("", None), ("nightly", clock.now + DAY)):
        with pytest.raises(errors.Unauthorized):
            await sessions.make_token(other_process, owner, stolen, name=name, expires_at=expires_at)
    assert await sessions.of_user(ctx, owner) == []


async def test_a_token_is_confirmed_as_long_as_the_session_that_it_was_made_in(
    ctx: context.Context, owner: users.User, session: sessions.Session, clock: Clock
) -> None:
    clock.pass_seconds(14 * 60)
    token = await sessions.make_token(ctx, owner, session, name="nightly", expires_at=clock.now + DAY)
    step_up.refuse_unconfirmed(ctx, await who_is(ctx, bearer(token.token)))
    clock.pass_seconds(60)
    with pytest.raises(errors.ConfirmationRequired):
        step_up.refuse_unconfirmed(ctx, await who_is(ctx, bearer(token.token)))


async def test_tokens_of_a_session_continue_when_it_continues_in_another_account(
    ctx: context.Context, owner: users.User, session: sessions.Session, elsewhere: users.User
) -> None:
    token = await sessions.make_token(ctx, owner, session)
    continued = await logins.switch(as_user(ctx, owner), session, elsewhere.account_id)
    assert await has_ended(ctx, session)
    assert (await who_is(ctx, bearer(token.token))).account_id == owner.account_id
    await sessions.end(ctx, continued.session.row.id, login_id=owner.login_id or "")
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, bearer(token.token))
