"""Sessions of browsers: they live while they are used, end when they should, and are worth nothing elsewhere."""

import pytest

from postroad import context, errors
from postroad.model.people import callers
from postroad.services.people import authentication, logins, sessions
from postroad.storage.people import users
from tests import contexts
from tests.contexts import Clock

HOUR = 3_600


async def test_a_session_is_its_persons(ctx: context.Context, owner: users.User) -> None:
    session = await contexts.begin_session(ctx, owner)
    who, same = await sessions.authenticate(ctx, session.token)
    assert (who.user_id, who.account_id, who.scheme) == (owner.id, owner.account_id, callers.Scheme.TOKEN)
    assert same == session


async def test_neither_token_does_in_the_others_place(ctx: context.Context, owner: users.User) -> None:
    session = await contexts.begin_session(ctx, owner)
    with pytest.raises(errors.Unauthorized):
        await authentication.authenticate(ctx, f"Bearer {session.token}", client_address="192.0.2.1")
    issued = await logins.issue_token(ctx, owner)
    with pytest.raises(errors.Unauthorized):
        await sessions.authenticate(ctx, issued.token)


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
    for wrong in ("", word[:-1], word + "0", "ä", sessions.csrf_token(ctx, other)):
        assert not sessions.is_csrf_token(ctx, mine, wrong)
    assert word not in mine.token
