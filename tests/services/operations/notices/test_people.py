"""What one person is told: invitations, password links and logins; and what the installation's webhook gets."""

import dataclasses

import msgspec
import pytest
import structlog

from postroad import context
from postroad.keys import installation_keys
from postroad.mail import notice_kinds, notice_outbox
from postroad.model.people import callers
from postroad.services.operations.notices import sender
from postroad.services.people import logins, password_links, users
from postroad.storage.people import accounts
from postroad.storage.people import users as stored_users
from tests import contexts, webhook_server
from tests.contexts import PASSWORD, Clock
from tests.services.operations.notices import told_mail
from tests.services.operations.notices.told_mail import home, settings

__all__ = ["home", "settings"]

LOG = structlog.get_logger()
pytestmark = pytest.mark.usefixtures("home")


async def test_an_invitation_is_mailed_and_its_link_is_forgotten(
    ctx: context.Context, account: accounts.Account
) -> None:
    invited = await users.invite(ctx, account.id, email="new@example.net", role=callers.Role.DEVELOPER)
    assert invited.link_token not in await told_mail.contents(ctx)
    await sender.send_due(ctx, log=LOG)
    ((to, message),) = await told_mail.queued(ctx)
    assert (to, str(message["Subject"])) == ("new@example.net", "You are invited to Shop")
    text = told_mail.text_of(message)
    assert f"\n{password_links.url(ctx.settings, invited.link_token)}\n" in text
    assert "The operator of this service invites you" in text
    assert "Stop mail" not in text
    assert message["List-Unsubscribe"] is None
    assert await told_mail.contents(ctx) == "{}"


async def test_a_password_link_is_mailed_with_the_key_that_sealed_it(
    ctx: context.Context, account: accounts.Account, owner: stored_users.User
) -> None:
    made = await users.create_password_link(ctx, account.id, owner.id)
    other = installation_keys.Keys.derive(b"another key")
    strange = dataclasses.replace(ctx, keys=other)
    assert await sender.send_due(strange, log=LOG) == 0
    async with ctx.store.transaction() as tx:
        await tx.run_script("UPDATE notice_mails SET due_at = 0")
    replaced = dataclasses.replace(ctx, keys=dataclasses.replace(other, previous=(ctx.keys,)))
    assert await sender.send_due(replaced, log=LOG) == 1
    ((to, message),) = await told_mail.queued(ctx)
    assert (to, str(message["Subject"])) == (owner.email, "Choose a new password")
    assert password_links.url(ctx.settings, made.token) in told_mail.text_of(message)


async def test_an_account_invites_only_so_many_by_mail_in_a_day(
    ctx: context.Context, account: accounts.Account, clock: Clock
) -> None:
    for number in range(21):
        await users.invite(ctx, account.id, email=f"{number}@example.net", role=callers.Role.DEVELOPER)
    await sender.send_due(ctx, log=LOG)
    assert len(await told_mail.queued(ctx)) == 20
    clock.pass_seconds(24 * 3600)
    await users.invite(ctx, account.id, email="late@example.net", role=callers.Role.DEVELOPER)
    await sender.send_due(ctx, log=LOG)
    assert len(await told_mail.queued(ctx)) == 21


async def test_an_address_is_not_invited_again_and_again(
    ctx: context.Context, home: accounts.Account, account: accounts.Account
) -> None:
    for account_id in (account.id, home.id, account.id):
        invited = await users.invite(ctx, account_id, email="new@example.net", role=callers.Role.DEVELOPER)
        await users.remove(ctx, account_id, invited.user.id)
    await users.invite(ctx, account.id, email="New@example.net", role=callers.Role.DEVELOPER)
    await sender.send_due(ctx, log=LOG)
    assert await told_mail.queued(ctx) == []  # it was for a user who is gone


async def test_a_login_from_a_new_network_is_told_to_the_user(
    ctx: context.Context, owner: stored_users.User, clock: Clock
) -> None:
    for address in ("192.0.2.1", "192.0.2.9", "198.51.100.7", "198.51.100.8"):
        clock.pass_seconds(1)
        await logins.log_in(ctx, owner.email, PASSWORD, client_address=address)
    await sender.send_due(ctx, log=LOG)
    ((to, message),) = await told_mail.queued(ctx)
    assert (to, str(message["Subject"])) == (owner.email, "New login to your account Shop")
    assert "198.51.100.7, at 2027-01-15 08:00 UTC." in told_mail.text_of(message)
    assert message["List-Unsubscribe"] is None


async def test_logins_of_one_user_do_not_hide_those_of_another(
    ctx: context.Context, account: accounts.Account, owner: stored_users.User, clock: Clock
) -> None:
    other, _ = await users.create(
        ctx, account.id, email="other@example.net", password=PASSWORD, role=callers.Role.DEVELOPER
    )
    for number in range(23):
        clock.pass_seconds(1)
        await logins.log_in(ctx, other.email, PASSWORD, client_address=f"10.{number}.0.1")
    for address in ("192.0.2.1", "198.51.100.7"):
        await logins.log_in(ctx, owner.email, PASSWORD, client_address=address)
    await sender.send_due(ctx, log=LOG)
    told = [to for to, _ in await told_mail.queued(ctx)]
    assert (told.count(other.email), told.count(owner.email)) == (20, 1)


async def test_operators_are_also_told_over_the_webhook(
    ctx: context.Context, home: accounts.Account, clock: Clock
) -> None:
    user, _ = await users.create(ctx, home.id, email="root@example.net", password=PASSWORD, role=callers.Role.OWNER)
    await users.add_operator(ctx, user.email)
    values = {"check": "disk", "host": "<mx.example>", "found": "full", "advice": "", "page": "docs/doctor.md"}
    async with webhook_server.running(tls=False) as endpoint:
        ctx = contexts.with_settings(ctx, "operator", webhook_url=endpoint.url)
        endpoint.answer = webhook_server.ok(503)
        async with ctx.store.transaction() as tx:
            told = notice_outbox.NewNotice(kind=notice_kinds.CHECK_FAILED, subject="mx disk", values=values)
            await notice_outbox.write(tx, [told], now=ctx.clock(), entropy=ctx.entropy)
        assert await sender.send_due(ctx, log=LOG) == 1  # the mail
        endpoint.answer = webhook_server.OK
        clock.pass_seconds(300)
        assert await sender.send_due(ctx, log=LOG) == 1
    assert [msgspec.json.decode(request.body) for request in endpoint.requests] == [
        {"text": "Check disk fails on &lt;mx.example&gt;"}
    ] * 2
