"""Access for listeners that get a username and a password: throttled as over HTTP, and revoked with the credential."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from postroad import config, context, errors
from postroad.model.people import callers
from postroad.roles import composition
from postroad.services.people import authentication, credentials
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import credentials as stored_credentials
from tests.contexts import Clock
from tests.services.people.test_schemes import HERE, basic, who_is

WRONG = "not the password"


@pytest_asyncio.fixture
async def pair(ctx: context.Context, account: stored_accounts.Account) -> tuple[stored_credentials.Credential, str]:
    """A credential and its password."""
    return await credentials.create(ctx, account.id, "main")


@pytest_asyncio.fixture
async def other_process(
    settings: config.Settings, clock: Clock, ctx: context.Context
) -> AsyncIterator[context.Context]:
    """A second process on the same store."""
    async with composition.open_context(settings, clock=clock) as opened:
        yield opened


async def log_in(ctx: context.Context, username: str, password: str) -> callers.Caller:
    return await authentication.authenticate_password(ctx, username, password, client_address=HERE)


async def test_a_pair_is_the_same_caller_as_over_http(
    ctx: context.Context, pair: tuple[stored_credentials.Credential, str]
) -> None:
    credential, password = pair
    who = await log_in(ctx, credential.username, password)
    assert who == await who_is(ctx, basic(credential.username, password))
    assert (who.account_id, who.credential_id) == (credential.account_id, credential.id)


async def test_a_known_pair_needs_neither_the_store_nor_argon2(
    ctx: context.Context, pair: tuple[stored_credentials.Credential, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    credential, password = pair
    first = await log_in(ctx, credential.username, password)
    monkeypatch.delattr(type(ctx.store), "reading")
    assert await log_in(ctx, credential.username, password) is first


@pytest.mark.parametrize("username", ["nobody", "x" * 5000, "", "a\0b", "smtp_\n"])
async def test_an_unknown_name_is_answered_like_a_wrong_password(
    ctx: context.Context, pair: tuple[stored_credentials.Credential, str], username: str
) -> None:
    reported = set()
    for name in (username, pair[0].username):
        with pytest.raises(errors.Unauthorized) as refused:
            await log_in(ctx, name, WRONG)
        reported.add(refused.value.message)
    assert len(reported) == 1
    assert "Authorization" not in reported.pop()


async def test_part_of_the_password_in_the_name_does_not_help(
    ctx: context.Context, pair: tuple[stored_credentials.Credential, str]
) -> None:
    credential, password = pair
    await log_in(ctx, credential.username, password)
    with pytest.raises(errors.Unauthorized):
        await log_in(ctx, f"{credential.username}:{password[:4]}", password[4:])


async def test_failures_here_slow_http_and_a_password_that_nobody_looked_at_is_not_called_wrong(
    ctx: context.Context, pair: tuple[stored_credentials.Credential, str], clock: Clock
) -> None:
    credential, password = pair
    for _ in range(5):
        with pytest.raises(errors.Unauthorized):
            await log_in(ctx, credential.username, WRONG)
    with pytest.raises(errors.RateLimited) as slowed:
        await log_in(ctx, credential.username, password)
    assert slowed.value.retry_after == 60
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, basic(credential.username, password))
    clock.pass_seconds(60)
    assert (await log_in(ctx, credential.username, password)).credential_id == credential.id


async def test_failures_over_http_slow_the_others(
    ctx: context.Context, pair: tuple[stored_credentials.Credential, str]
) -> None:
    credential, password = pair
    for _ in range(5):
        with pytest.raises(errors.Unauthorized):
            await who_is(ctx, basic(credential.username, WRONG))
    with pytest.raises(errors.RateLimited):
        await log_in(ctx, credential.username, password)


async def test_a_pair_that_was_right_goes_on_while_others_are_slowed(
    ctx: context.Context, pair: tuple[stored_credentials.Credential, str], clock: Clock
) -> None:
    credential, password = pair
    await log_in(ctx, credential.username, password)
    for _ in range(6):
        with pytest.raises((errors.Unauthorized, errors.RateLimited)):
            await log_in(ctx, credential.username, WRONG)
    clock.pass_seconds(1)
    assert (await log_in(ctx, credential.username, password)).credential_id == credential.id


async def test_a_session_is_renewed_without_the_store_until_the_memory_is_asked_again(
    ctx: context.Context, pair: tuple[stored_credentials.Credential, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    who = await log_in(ctx, pair[0].username, pair[1])
    assert await authentication.renew(ctx, who) == who
    monkeypatch.delattr(type(ctx.store), "reading")
    assert await authentication.renew(ctx, who) == who


async def test_a_session_ends_within_a_second_of_its_revocation_in_every_process(
    ctx: context.Context,
    other_process: context.Context,
    pair: tuple[stored_credentials.Credential, str],
    clock: Clock,
) -> None:
    credential, password = pair
    who = await log_in(ctx, credential.username, password)
    await authentication.renew(ctx, who)
    await credentials.revoke(other_process, credential.account_id, credential.id)
    with pytest.raises(errors.Unauthorized, match="revoked"):
        await authentication.renew(other_process, who)
    clock.pass_seconds(1)
    with pytest.raises(errors.Unauthorized, match="revoked"):
        await authentication.renew(ctx, who)
    with pytest.raises(errors.Unauthorized):
        await log_in(ctx, credential.username, password)


async def test_a_caller_without_a_credential_has_no_session(ctx: context.Context) -> None:
    who = callers.Caller("acc_x", None, callers.Scheme.TOKEN, callers.EVERYTHING)
    with pytest.raises(errors.Unauthorized):
        await authentication.renew(ctx, who)
