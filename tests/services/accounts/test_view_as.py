"""Views of operators: told by the account's audit log, bound to a session, over after an hour, and not to be forged."""

import base64
import dataclasses

import msgspec
import pytest

from postroad import context, errors
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.services import audit_log
from postroad.services.accounts import account_registry, view_as
from postroad.services.people import sessions
from postroad.services.people import users as account_users
from postroad.storage.people import accounts
from tests import accepted_mail, contexts


@pytest.fixture
async def session(ctx: context.Context, account_id: str) -> sessions.Session:
    user, _ = await account_users.create(
        ctx, account_id, email="op@example.org", password=contexts.PASSWORD, role=callers.Role.READ_ONLY
    )
    return await contexts.begin_session(ctx, user)


async def told(ctx: context.Context, account_id: str) -> list[tuple[str, str]]:
    written = await audit_log.page(ctx, account_id, before=None, limit=50)
    return [(one.actor, audit_log.text(one)) for one in written if one.action.endswith(".viewed")]


async def test_the_accounts_audit_log_tells_the_view_and_each_message(
    ctx: context.Context, clock: contexts.Clock, account_id: str, session: sessions.Session
) -> None:
    await accepted_mail.allow_sending(ctx, account_id)
    message_id = await accepted_mail.accept(ctx, account_id)
    acting = context.as_operator(ctx)
    view = await view_as.begin(acting, session, account_id)
    assert (view.account_id, view.ends_at, view.message_ids) == (account_id, clock() + 3_600_000_000, ())
    clock.pass_seconds(1)
    view = await view_as.show_content(acting, view, message_id)
    assert await view_as.show_content(acting, view, message_id) is view
    assert view.message_ids == (message_id,)
    assert await told(ctx, account_id) == [
        ("operator", f"viewed the content of the message {message_id}"),
        ("operator", "viewed the pages of the account Shop"),
    ]


async def test_a_closed_account_can_be_viewed_and_a_removed_or_unknown_one_not(
    ctx: context.Context, account: accounts.Account, session: sessions.Session
) -> None:
    await account_registry.close(ctx, account.id)
    view = await view_as.begin(ctx, session, account.id)
    found = await view_as.account_of(ctx, view)
    assert found is not None
    assert found.state == "closed"
    for message_id in ("em_" + "0" * 28, "x"):
        with pytest.raises(errors.NotFound):
            await view_as.show_content(ctx, view, message_id)
    assert len(await told(ctx, account.id)) == 1
    await account_registry.remove(ctx, account.id)
    assert await view_as.account_of(ctx, view) is None
    for account_id in (account.id, "acc_" + "0" * 28):
        with pytest.raises(errors.NotFound):
            await view_as.begin(ctx, session, account_id)


async def test_a_view_is_valid_for_its_session_and_an_hour_and_not_to_be_forged(
    ctx: context.Context, clock: contexts.Clock, account_id: str, session: sessions.Session
) -> None:
    view = await view_as.begin(ctx, session, account_id)
    value = view_as.write(ctx, view)
    assert view_as.read(ctx, session, value) == view
    claims = msgspec.structs.replace(session.claims, jti=ctx.new_id(identifiers.TOKEN, now=clock()))
    assert view_as.read(ctx, dataclasses.replace(session, claims=claims), value) is None
    text, _, signature = value.partition(".")
    other = msgspec.structs.replace(view, account_id="acc_" + "0" * 28)
    forged = base64.urlsafe_b64encode(msgspec.json.encode(other)).decode().rstrip("=")
    # The CSRF token of the session is made with the same key, and is no signature.
    for odd in (signature[:-1], "é", "", sessions.csrf_token(ctx, session)):
        assert view_as.read(ctx, session, f"{text}.{odd}") is None, odd
    for odd in ("", ".", text, f"{forged}.{signature}", "é.é"):
        assert view_as.read(ctx, session, odd) is None, odd
    clock.pass_seconds(3_599)
    assert view_as.read(ctx, session, value) == view
    clock.pass_seconds(1)
    assert view_as.read(ctx, session, value) is None


async def test_the_value_fits_into_a_cookie(ctx: context.Context, account_id: str, session: sessions.Session) -> None:
    await accepted_mail.allow_sending(ctx, account_id)
    view = await view_as.begin(ctx, session, account_id)
    ids = [await accepted_mail.accept(ctx, account_id) for _ in range(view_as.MAX_MESSAGES + 1)]
    for message_id in ids:
        view = await view_as.show_content(ctx, view, message_id)
    assert view.message_ids == tuple(ids[1:])
    assert len(view_as.write(ctx, view)) < 2_000
