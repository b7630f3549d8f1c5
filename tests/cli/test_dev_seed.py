"""What `postroad dev` prepares: once, the same again at every start, and new where it does not work any more."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from postroad import context, errors
from postroad.cli.dev import demo_account
from postroad.cli.framework import data_folder
from postroad.model.people import callers
from postroad.roles import composition
from postroad.services import audit_log
from postroad.services.accounts import account_registry as accounts
from postroad.services.domains import domain_registry as domains
from postroad.services.people import api_keys, authentication, credentials, logins, users
from postroad.services.templates import templates
from postroad.storage.people import accounts as stored_accounts


@pytest_asyncio.fixture
async def ctx(tmp_path: Path) -> AsyncIterator[context.Context]:
    folder = data_folder.DataFolder(tmp_path / "data")
    folder.prepare()
    async with composition.open_context(folder.settings(environment={})) as opened:
        yield opened


async def log_in(ctx: context.Context, login: data_folder.Login) -> logins.LoggedIn:
    return await logins.log_in(ctx, login.email, login.password, client_address="127.0.0.1")


async def by_password(ctx: context.Context, smtp: data_folder.Smtp) -> callers.Caller:
    pair = base64.b64encode(f"{smtp.username}:{smtp.password}".encode()).decode()
    return await authentication.authenticate(ctx, f"Basic {pair}", client_address="127.0.0.1")


async def by_key(ctx: context.Context, key: str) -> callers.Caller:
    return await authentication.authenticate(ctx, f"Bearer {key}", client_address="127.0.0.1")


async def the_account(ctx: context.Context) -> stored_accounts.Account:
    (account,) = await accounts.page(ctx, "", 10)
    return account


async def spend(ctx: context.Context, account_id: str, amount: int) -> None:
    entry = stored_accounts.LedgerEntry(
        id=f"led_{amount}",
        account_id=account_id,
        kind=stored_accounts.LedgerKind.GRANT,
        available=-amount,
        reserved=0,
        created_at=ctx.clock(),
    )
    async with ctx.store.transaction() as tx:
        await stored_accounts.record_entries(tx, [entry])


async def test_the_first_start_makes_an_account_that_can_send(ctx: context.Context) -> None:
    made = await demo_account.prepare(ctx, None)
    account = await the_account(ctx)
    assert (account.name, account.available) == ("Demo", 10_000)
    (domain,) = await domains.of_account(ctx, account.id)
    assert (domain.name, domain.verified_at is not None) == (made.domain, True)
    rendered = await templates.preview(ctx, account.id, made.template, {"name": "Jo"})
    assert rendered.subject == "Welcome, Jo"
    assert "Jo" in (rendered.text or "")


async def test_every_credential_works_and_belongs_to_the_account(ctx: context.Context) -> None:
    made = await demo_account.prepare(ctx, None)
    account = await the_account(ctx)
    by_smtp, by_api_key = await by_password(ctx, made.smtp), await by_key(ctx, made.api_key)
    session = await log_in(ctx, made.login)
    assert {by_smtp.account_id, by_api_key.account_id, session.account.id} == {account.id}
    assert by_smtp.credential_id == by_api_key.credential_id
    assert by_api_key.permissions == {callers.Permission.SEND, callers.Permission.READ}
    assert session.user.role == "owner"


async def test_a_second_start_changes_nothing(ctx: context.Context) -> None:
    made = await demo_account.prepare(ctx, None)
    before = await the_account(ctx)
    assert await demo_account.prepare(ctx, made) == made
    assert await the_account(ctx) == before
    actions = [entry.action for entry in await audit_log.page(ctx, before.id, before=None, limit=100)]
    assert "user.created" in actions
    assert not {"user.logged_in", "user.login_failed"} & set(actions)
    for listed in (credentials.of_account, api_keys.of_account, domains.of_account, users.of_account):
        assert len(await listed(ctx, before.id)) == 1


async def test_a_start_without_the_last_handover_makes_new_credentials_and_revokes_the_old(
    ctx: context.Context,
) -> None:
    old = await demo_account.prepare(ctx, None)
    new = await demo_account.prepare(ctx, None)
    assert (await by_password(ctx, new.smtp)).credential_id == (await by_key(ctx, new.api_key)).credential_id
    assert (await log_in(ctx, new.login)).account == await the_account(ctx)
    for refused in (by_password(ctx, old.smtp), by_key(ctx, old.api_key), log_in(ctx, old.login)):
        with pytest.raises(errors.Unauthorized):
            await refused


async def test_a_key_that_may_only_send_is_replaced_by_one_that_may_read(ctx: context.Context) -> None:
    made = await demo_account.prepare(ctx, None)
    account = await the_account(ctx)
    (first,) = await api_keys.of_account(ctx, account.id)
    scopes = frozenset({callers.Permission.SEND})
    _, secret = await api_keys.create(
        ctx, account.id, credential_id=first.credential_id, name=demo_account.CREDENTIAL_NAME, scopes=scopes
    )
    again = await demo_account.prepare(ctx, msgspec.structs.replace(made, api_key=secret))
    assert (await by_key(ctx, again.api_key)).permissions == {callers.Permission.SEND, callers.Permission.READ}
    with pytest.raises(errors.Unauthorized):
        await by_key(ctx, secret)


async def test_only_what_was_revoked_is_made_anew(ctx: context.Context) -> None:
    made = await demo_account.prepare(ctx, None)
    account = await the_account(ctx)
    (key,) = await api_keys.of_account(ctx, account.id)
    await api_keys.revoke(ctx, account.id, key.id)
    again = await demo_account.prepare(ctx, made)
    assert again == msgspec.structs.replace(made, api_key=again.api_key)
    assert (await by_key(ctx, again.api_key)).account_id == account.id


async def test_a_user_who_was_disabled_or_changed_the_password_gets_a_login_that_works(
    ctx: context.Context,
) -> None:
    made = await demo_account.prepare(ctx, None)
    account = await the_account(ctx)
    (person,) = await users.of_account(ctx, account.id)
    await users.disable(ctx, account.id, person.id)
    again = await demo_account.prepare(ctx, made)
    assert (await log_in(ctx, again.login)).user.id == person.id
    await users.set_password(ctx, account.id, person.id, password="of somebody's choice")
    once_more = await demo_account.prepare(ctx, again)
    assert (await log_in(ctx, once_more.login)).user.id == person.id


async def test_credits_are_filled_up_only_when_few_are_left(ctx: context.Context) -> None:
    made = await demo_account.prepare(ctx, None)
    account = await the_account(ctx)
    await spend(ctx, account.id, 9_000)
    await demo_account.prepare(ctx, made)
    assert (await the_account(ctx)).available == 1_000
    await spend(ctx, account.id, 1)
    await demo_account.prepare(ctx, made)
    assert (await the_account(ctx)).available == 10_000


async def test_a_template_that_was_changed_stays_changed(ctx: context.Context) -> None:
    made = await demo_account.prepare(ctx, None)
    account = await the_account(ctx)
    await templates.put(ctx, account.id, made.template, subject="Mine", text="x", html=None)
    await demo_account.prepare(ctx, made)
    assert (await templates.find(ctx, account.id, made.template)).subject == "Mine"


async def test_the_demo_user_operates_the_installation(ctx: context.Context) -> None:
    for _ in range(2):
        made = await demo_account.prepare(ctx, None)
        assert [one.email for one in await users.operators(ctx)] == [made.login.email]
