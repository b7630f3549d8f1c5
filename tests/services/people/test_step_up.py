"""A session is confirmed for a while: by its login, and by each proof after it."""

import dataclasses

import pytest

from postroad import context, errors
from postroad.model.people import callers
from postroad.services import audit_log
from postroad.services.people import passkeys, second_factors, sessions, step_up
from postroad.storage.people import sessions as stored_sessions
from postroad.storage.people import users
from tests.contexts import PASSWORD, Clock, begin_session
from tests.software_authenticator import SoftwareAuthenticator

ORIGIN = "http://localhost:8025"


async def session_of(ctx: context.Context, token: str) -> callers.Caller:
    who, _ = await sessions.authenticate(ctx, token)
    return who


@pytest.fixture
async def token(ctx: context.Context, owner: users.User) -> str:
    return (await begin_session(ctx, owner)).token


def acting(ctx: context.Context, who: callers.Caller) -> context.Context:
    return context.acting_as(ctx, who, request_id="req_1", client_address="192.0.2.1")


async def test_a_login_counts_for_fifteen_minutes(ctx: context.Context, token: str, clock: Clock) -> None:
    who = await session_of(ctx, token)
    clock.pass_seconds(15 * 60 - 1)
    step_up.refuse_unconfirmed(ctx, who)
    clock.pass_seconds(1)
    with pytest.raises(errors.ConfirmationRequired) as refusal:
        step_up.refuse_unconfirmed(ctx, await session_of(ctx, token))
    assert (refusal.value.code, refusal.value.status) == ("forbidden", 403)
    assert refusal.value.headers == (("Confirmation", "required"),)


async def test_the_password_confirms_a_session_in_every_process_and_no_other_session(
    ctx: context.Context, other_process: context.Context, owner: users.User, token: str, clock: Clock
) -> None:
    other = (await begin_session(ctx, owner)).token
    clock.pass_seconds(3_600)
    who = await session_of(other_process, token)
    await step_up.confirm_by_password(acting(ctx, who), who, PASSWORD)
    with pytest.raises(errors.ConfirmationRequired):
        step_up.refuse_unconfirmed(ctx, await session_of(ctx, other))
    clock.pass_seconds(60)
    step_up.refuse_unconfirmed(other_process, await session_of(other_process, token))
    clock.pass_seconds(14 * 60)
    with pytest.raises(errors.ConfirmationRequired):
        step_up.refuse_unconfirmed(other_process, await session_of(other_process, token))
    found = await audit_log.search(ctx, owner.account_id, audit_log.Filters(), before=None, limit=1)
    (entry,) = found.rows
    assert (entry.action, entry.subject, entry.detail) == ("user.confirmed", owner.email, "by password")


async def test_a_wrong_password_confirms_nothing_and_is_throttled(
    ctx: context.Context, token: str, clock: Clock
) -> None:
    clock.pass_seconds(3_600)
    who = await session_of(ctx, token)
    with pytest.raises(errors.Unauthorized):
        await step_up.confirm_by_password(acting(ctx, who), who, "not this one")
    with pytest.raises(errors.ConfirmationRequired):
        step_up.refuse_unconfirmed(ctx, await session_of(ctx, token))
    refusals = []
    for _ in range(50):
        with pytest.raises(errors.PostroadError) as refusal:
            await step_up.confirm_by_password(acting(ctx, who), who, "not this one")
        refusals.append(type(refusal.value))
    assert (refusals[0], refusals[-1]) == (errors.Unauthorized, errors.RateLimited)
    # Nor is a session confirmed that has ended.
    clock.pass_seconds(3_600)
    await sessions.end(ctx, who.token_id or "")
    with pytest.raises(errors.Unauthorized):
        await step_up.confirm_by_password(acting(ctx, who), who, PASSWORD)


async def test_a_passkey_confirms_a_session_and_is_one_of_its_methods(
    ctx: context.Context, owner: users.User, token: str, clock: Clock
) -> None:
    who = await session_of(ctx, token)
    assert who.token_id is not None
    login = await second_factors.login_of(ctx, owner.login_id or "")
    authenticator = SoftwareAuthenticator(ORIGIN)
    asked = await passkeys.ask_to_register(ctx, login, session_id=who.token_id)
    made = passkeys.Answer(asked.cookie, authenticator.create(asked.options))
    await passkeys.register(ctx, login, made, session_id=who.token_id, name="Laptop")
    clock.pass_seconds(3_600)
    asked = await step_up.ask_for_passkey(ctx, who)
    assert asked.options["userVerification"] == "required"
    answer = passkeys.Answer(asked.cookie, authenticator.get(asked.options))
    await step_up.confirm_by_passkey(acting(ctx, who), who, answer)
    step_up.refuse_unconfirmed(ctx, await session_of(ctx, token))
    async with ctx.store.reading() as tx:
        stored = await stored_sessions.by_id(tx, who.token_id)
    assert stored is not None
    assert (stored.methods, stored.confirmed_at) == ("password passkey", clock.now)


async def test_api_keys_and_smtp_credentials_need_no_confirmation(
    ctx: context.Context, token: str, clock: Clock
) -> None:
    who = await session_of(ctx, token)
    clock.pass_seconds(3_600)
    for scheme in (callers.Scheme.API_KEY, callers.Scheme.PASSWORD):
        step_up.refuse_unconfirmed(ctx, dataclasses.replace(who, scheme=scheme, confirmed_at=None))
    with pytest.raises(errors.ConfirmationRequired):
        step_up.refuse_unconfirmed(ctx, dataclasses.replace(who, confirmed_at=None))
