"""Closed accounts: nobody gets in, what was accepted goes out, and they can be opened again."""

import pytest

from postroad import context, errors
from postroad.model.bounces import disposition
from postroad.model.people import callers
from postroad.services.accounts import account_registry
from postroad.services.people import api_keys, authentication, credentials, logins, sessions
from postroad.storage.people import accounts, users
from tests import accepted_mail, contexts
from tests.contexts import PASSWORD, Clock
from tests.services import audit_entries, claimed_mail

CLOSED = "the account is closed; contact the operator of this service"


async def test_nobody_gets_in_to_a_closed_account_until_it_is_opened_again(
    ctx: context.Context, account_id: str, owner: users.User
) -> None:
    await accepted_mail.allow_sending(ctx, account_id)
    credential, password = await credentials.create(ctx, account_id, "main")
    _, api_key = await api_keys.create(
        ctx, account_id, name="key", credential_id=credential.id, scopes=frozenset({callers.Permission.SEND})
    )
    token = (await logins.issue_token(ctx, owner)).token
    session = await contexts.begin_session(ctx, owner)

    async def use(way: str) -> object:
        match way:
            case "log in":
                return await logins.log_in(ctx, owner.email, PASSWORD, client_address="192.0.2.1")
            case "session":
                return await sessions.authenticate(ctx, session.token)
            case "password":
                return await authentication.authenticate_password(
                    ctx, credential.username, password, client_address="192.0.2.1"
                )
            case secret:
                return await authentication.authenticate(ctx, f"Bearer {secret}", client_address="192.0.2.1")

    ways = ("log in", "session", "password", api_key, token)
    for way in ways:
        await use(way)
    closed = await account_registry.close(ctx, account_id)
    assert (closed.state, (await account_registry.close(ctx, account_id)).state) == ("closed", "closed")
    for way in ways:
        with pytest.raises(errors.Unauthorized) as refused:
            await use(way)
        assert refused.value.message == CLOSED
    with pytest.raises(errors.AccountSuspended, match="the account is suspended: it is closed"):
        await accepted_mail.accept(ctx, account_id)
    for change in (account_registry.resume(ctx, account_id), account_registry.suspend(ctx, account_id, "spam")):
        with pytest.raises(errors.Conflict, match="is closed; open it again"):
            await change

    assert (await account_registry.reopen(ctx, account_id)).state == "active"
    for way in ways:
        await use(way)
    await accepted_mail.accept(ctx, account_id)
    with pytest.raises(errors.Conflict, match="is not closed"):
        await account_registry.reopen(ctx, account_id)
    actions = [action for action, *_ in await audit_entries.summaries(ctx, account_id) if action.startswith("account.")]
    assert actions == ["account.closed", "account.created", "account.reopened"]


async def test_queued_mail_of_a_closed_account_is_delivered_and_the_guard_does_not_open_it(
    ctx: context.Context, account_id: str, clock: Clock
) -> None:
    _, (claim,) = await claimed_mail.accepted(ctx, account_id, "a@example.net")
    await account_registry.close(ctx, account_id)
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claim, disposition.Verdict.DELIVERED)])
    async with ctx.store.transaction() as tx:
        await accounts.suspend(tx, account_id, reason="bounces", by=accounts.BOUNCE_GUARD, now=clock.now)
    clock.pass_seconds(30 * 24 * 3600)
    assert await account_registry.cool_down(ctx) == []
    assert (await account_registry.find(ctx, account_id)).state == "closed"
