"""Notices: who gets them, once, from which account, and how much of them."""

import asyncio
from collections.abc import Sequence

import pytest
import structlog

from postroad import config, context
from postroad.mail import notice_kinds, notice_outbox
from postroad.model.events import events
from postroad.model.people import callers
from postroad.model.units import times
from postroad.roles import composition
from postroad.services import audit_log
from postroad.services.accounts import account_registry
from postroad.services.domains import domain_registry as domains
from postroad.services.operations.notices import choices, sender
from postroad.services.people import users
from postroad.storage.operations import notices
from postroad.storage.people import accounts
from postroad.storage.people import users as stored_users
from tests import accepted_mail, contexts
from tests.contexts import PASSWORD, Clock
from tests.services.operations.notices.told_mail import BASE_URL, home, queued, settings, text_of

__all__ = ["home", "settings"]

LOG = structlog.get_logger()
pytestmark = pytest.mark.usefixtures("home")


async def person(
    ctx: context.Context, account_id: str, address: str, role: callers.Role = callers.Role.OWNER
) -> stored_users.User:
    user, _ = await users.create(ctx, account_id, email=address, password=PASSWORD, role=role)
    return user


async def subjects(ctx: context.Context) -> list[tuple[str, str]]:
    return sorted((to, str(one["Subject"])) for to, one in await queued(ctx))


async def tell(ctx: context.Context, *told: notice_outbox.NewNotice) -> None:
    async with ctx.store.transaction() as tx:
        await notice_outbox.write(tx, told, now=ctx.clock(), entropy=ctx.entropy)


def failing(account_id: str, number: int = 1) -> notice_outbox.NewNotice:
    values = {"domain_id": f"dom_{number}", "domain": f"d{number}.example", "verified_until": "2027-01-22T08:00:00Z"}
    return notice_outbox.NewNotice(
        kind=notice_kinds.DOMAIN_FAILING, subject=f"dom_{number}", values=values, account_id=account_id
    )


async def test_a_suspension_is_told_to_owners_and_operators_once(
    ctx: context.Context, home: accounts.Account, account: accounts.Account, owner: stored_users.User
) -> None:
    await person(ctx, home.id, "root@example.net")
    await users.add_operator(ctx, "root@example.net")
    await person(ctx, account.id, "reader@example.net", callers.Role.READ_ONLY)
    # An account can invite strangers: they get nothing but the invitation.
    await users.invite(ctx, account.id, email="stranger@example.org", role=callers.Role.OWNER)
    assert await sender.send_due(ctx, log=LOG) == 1
    await account_registry.suspend(ctx, account.id, "Too much spam")
    assert await sender.send_due(ctx, log=LOG) == 2
    assert await sender.send_due(ctx, log=LOG) == 0
    told = [(to, one) for to, one in await queued(ctx) if to != "stranger@example.org"]
    assert sorted((to, str(one["Subject"]), str(one["From"])) for to, one in told) == [
        (owner.email, "Your account Shop was suspended", "postmaster@example.com"),
        ("root@example.net", "Account Shop was suspended", "postmaster@example.com"),
    ]
    (to_owner,) = [one for to, one in told if to == owner.email]
    assert to_owner["Auto-Submitted"] == "auto-generated"
    text = text_of(to_owner)
    assert "Reason: Too much spam" in text
    link = choices.unsubscribe_url(ctx, owner.id, notice_kinds.ACCOUNT_SUSPENDED)
    assert f"Stop mail of this kind: {link}\n" in text
    assert to_owner["List-Unsubscribe"] == f"<{link}>"
    assert to_owner["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert "<p" in text_of(to_owner, "html")
    (to_operator,) = [one for to, one in told if to == "root@example.net"]
    assert f"\n{BASE_URL}/operator/accounts/{account.id}\n" in text_of(to_operator)


async def test_the_account_of_the_domain_pays(
    ctx: context.Context, home: accounts.Account, account: accounts.Account, owner: stored_users.User
) -> None:
    await tell(ctx, failing(account.id))
    await sender.send_due(ctx, log=LOG)
    assert (await account_registry.find(ctx, home.id)).reserved == 1
    assert (await account_registry.find(ctx, account.id)).reserved == 0
    ((to, message),) = await queued(ctx)
    assert (to, str(message["Subject"])) == (owner.email, "The DKIM record of d1.example is gone")
    assert f"{BASE_URL}/domains/dom_1" in text_of(message)


async def test_the_same_subject_is_told_once_in_the_interval_of_its_kind(
    ctx: context.Context, account: accounts.Account, owner: stored_users.User, clock: Clock
) -> None:
    for _ in range(2):
        await tell(ctx, failing(account.id), failing(account.id, 2))
    assert await sender.send_due(ctx, log=LOG) == 2
    clock.pass_seconds(24 * 3600)
    await tell(ctx, failing(account.id))
    assert await sender.send_due(ctx, log=LOG) == 1


async def test_events_of_an_account_are_told_with_them(
    ctx: context.Context, account: accounts.Account, owner: stored_users.User
) -> None:
    warned = events.WarnedAccountData(cause="bounces", recipients=200, bounces=20, complaints=0)
    verified = events.DomainData(domain_id="dom_1", domain="d.example", verified_by="dns")
    low = events.CreditsData(available=3, used=90)
    happened = [
        events.AccountEvent(account.id, events.EventType.ACCOUNT_WARNED, ctx.clock(), warned),
        events.AccountEvent(account.id, events.EventType.DOMAIN_VERIFIED, ctx.clock(), verified),
        events.AccountEvent(account.id, events.EventType.CREDITS_LOW, ctx.clock(), low),
    ]
    async with ctx.store.transaction() as tx:
        await ctx.outbox.write_account(tx, happened)
    await sender.send_due(ctx, log=LOG)
    assert await subjects(ctx) == [
        (owner.email, "Credits of the account Shop are low"),
        (owner.email, "Warning: too many bounces in the account Shop"),
    ]


async def test_of_many_owners_the_first_ones_are_told(ctx: context.Context, account: accounts.Account) -> None:
    for place in range(sender.MAX_OWNERS + 1):
        await person(ctx, account.id, f"{place}@example.net")
    await tell(ctx, failing(account.id))
    assert await sender.send_due(ctx, log=LOG) == 5


async def test_what_a_person_has_switched_off_or_wants_in_the_digest(
    ctx: context.Context, account: accounts.Account, owner: stored_users.User, clock: Clock
) -> None:
    other = await person(ctx, account.id, "other@example.net")
    third = await person(ctx, account.id, "third@example.net")
    await choices.choose(ctx, owner, notice_kinds.DOMAIN_FAILING, notice_kinds.Choice.OFF)
    await choices.choose(ctx, other, notice_kinds.DOMAIN_FAILING, notice_kinds.Choice.DIGEST)
    await tell(ctx, failing(account.id), failing(account.id, 2))
    assert await sender.send_due(ctx, log=LOG) == 2
    assert {to for to, _ in await queued(ctx)} == {third.email}
    clock.now = sender.next_digest(clock.now, hour=6) - 1
    assert await sender.send_due(ctx, log=LOG) == 0
    clock.now += 1
    assert await sender.send_due(ctx, log=LOG) == 1
    assert await sender.send_due(ctx, log=LOG) == 0
    # A digest is sent at an hour of the day, and never twice in it.
    digests = [sender.next_digest(hour * times.HOUR, hour=6) for hour in (0, 6, 7)]
    assert digests == [6 * times.HOUR, 30 * times.HOUR, 30 * times.HOUR]
    (digest,) = [one for to, one in await queued(ctx) if to == other.email]
    assert digest["Subject"] == "Digest of notices: 2"
    assert "* The DKIM record of d1.example is gone\n\n* The DKIM record of d2.example is gone\n" in text_of(digest)


async def test_beyond_a_number_in_an_hour_notices_go_into_the_digest(
    ctx: context.Context, account: accounts.Account, owner: stored_users.User, clock: Clock
) -> None:
    await tell(ctx, *(failing(account.id, number) for number in range(13)))
    assert await sender.send_due(ctx, log=LOG) == sender.MAX_PER_HOUR
    clock.now = sender.next_digest(clock.now, hour=6)
    assert await sender.send_due(ctx, log=LOG) == 1
    assert "Digest of notices: 3" in {str(one["Subject"]) for _, one in await queued(ctx)}


async def test_a_flood_of_one_kind_does_not_delay_the_others(
    ctx: context.Context, account: accounts.Account, owner: stored_users.User
) -> None:
    await tell(ctx, *(failing(account.id, number) for number in range(13)))
    await sender.send_due(ctx, log=LOG)
    low = {"available": "1", "used": "2"}
    await tell(ctx, notice_outbox.NewNotice(kind="credits.low", subject=account.id, values=low, account_id=account.id))
    assert await sender.send_due(ctx, log=LOG) == 1


async def test_a_crash_between_acceptance_and_its_record_sends_nothing_twice(
    ctx: context.Context, account: accounts.Account, owner: stored_users.User
) -> None:
    await tell(ctx, failing(account.id))
    await sender.send_due(ctx, log=LOG)
    async with ctx.store.transaction() as tx:
        await tx.run_script("UPDATE notice_mails SET sent_at = NULL")
    assert await sender.send_due(ctx, log=LOG) == 1
    assert len(await queued(ctx)) == 1


async def test_two_processes_send_a_notice_once(
    ctx: context.Context, settings: config.Settings, account: accounts.Account, clock: Clock
) -> None:
    await person(ctx, account.id, "owner@example.net")
    await tell(ctx, *(failing(account.id, number) for number in range(5)))
    async with composition.open_context(settings, clock=clock) as other:
        await asyncio.gather(*(sender.send_due(one, log=LOG) for one in (ctx, other, ctx)))
    clock.pass_seconds(300)
    assert await sender.send_due(ctx, log=LOG) == 0
    assert await subjects(ctx) == [
        ("owner@example.net", f"The DKIM record of d{number}.example is gone") for number in range(5)
    ]


async def test_what_cannot_be_accepted_is_tried_again_for_a_day(
    ctx: context.Context, home: accounts.Account, account: accounts.Account, owner: stored_users.User, clock: Clock
) -> None:
    (domain,) = await domains.of_account(ctx, home.id)
    await domains.remove(ctx, home.id, domain.id)
    await tell(ctx, failing(account.id), failing(account.id, 2))
    assert await sender.send_due(ctx, log=LOG) == 0  # nobody has verified the domain
    await accepted_mail.allow_sending(ctx, account.id)
    assert await sender.send_due(ctx, log=LOG) == 0
    clock.pass_seconds(300)
    assert await sender.send_due(ctx, log=LOG) == 2
    (domain,) = await domains.of_account(ctx, account.id)
    await domains.remove(ctx, account.id, domain.id)
    await tell(ctx, failing(account.id, 3))
    await sender.send_due(ctx, log=LOG)
    clock.pass_seconds(24 * 3600)
    assert await sender.send_due(ctx, log=LOG) == 1  # given up
    async with ctx.store.reading() as tx:
        assert await notices.due(tx, now=clock.now + times.DAY, limit=9) == []
    assert len(await queued(ctx)) == 2


async def test_without_a_sender_nothing_is_kept_for_later(
    ctx: context.Context, account: accounts.Account, owner: stored_users.User
) -> None:
    silent = contexts.with_settings(ctx, "operator", sender="")
    await tell(ctx, failing(account.id))
    assert await sender.send_due(silent, log=LOG) == 0
    assert await sender.send_due(ctx, log=LOG) == 0


async def test_a_removed_or_disabled_person_gets_nothing(
    ctx: context.Context, account: accounts.Account, owner: stored_users.User, clock: Clock
) -> None:
    gone = await person(ctx, account.id, "gone@example.net")
    disabled = await person(ctx, account.id, "disabled@example.net")
    await users.disable(ctx, account.id, disabled.id)
    for one in (owner, gone):
        await choices.choose(ctx, one, notice_kinds.DOMAIN_FAILING, notice_kinds.Choice.DIGEST)
    await tell(ctx, failing(account.id))
    await sender.send_due(ctx, log=LOG)
    await users.remove(ctx, account.id, gone.id)
    clock.now = sender.next_digest(clock.now, hour=6)
    await sender.send_due(ctx, log=LOG)
    assert await subjects(ctx) == [(owner.email, "Digest of notices: 1")]


async def test_whoever_is_no_longer_an_operator_or_wants_no_more_gets_no_digest(
    ctx: context.Context, home: accounts.Account, clock: Clock
) -> None:
    people = [await person(ctx, home.id, f"{name}@example.net") for name in ("root", "former", "quiet", "gone")]
    for one in people:
        await users.add_operator(ctx, one.email)
    values = {"check": "disk", "host": "mx", "found": "full", "advice": "", "page": "docs/doctor.md"}
    await tell(ctx, notice_outbox.NewNotice(kind=notice_kinds.CHECK_WARNING, subject="mx disk", values=values))
    await sender.send_due(ctx, log=LOG)
    _, former, quiet, gone = people
    await users.remove_operator(ctx, former.id)
    await choices.choose(ctx, quiet, notice_kinds.CHECK_WARNING, notice_kinds.Choice.OFF)
    await users.disable(ctx, home.id, gone.id)
    clock.now = sender.next_digest(clock.now, hour=6)
    await sender.send_due(ctx, log=LOG)
    assert await subjects(ctx) == [("root@example.net", "Digest of notices: 1")]


async def test_what_a_tenant_writes_is_neither_a_header_nor_a_link_nor_html(
    ctx: context.Context, home: accounts.Account
) -> None:
    await person(ctx, home.id, "root@example.net")
    await users.add_operator(ctx, "root@example.net")
    name = 'Log in at https://evil.example/<a href="x">&'
    tenant = await account_registry.create(ctx, name)
    told = notice_outbox.NewNotice(
        kind=notice_kinds.ANY_ACCOUNT_SUSPENDED,
        subject=tenant.id,
        values={"reason": "write to\r\nBcc: eve@evil.example\u202e"},
        account_id=tenant.id,
    )
    await tell(ctx, told)
    await sender.send_due(ctx, log=LOG)
    ((_, message),) = await queued(ctx)
    assert message["Subject"] == 'Account Log in at https[:]//evil[.]example/<a href="x">& was suspended'
    assert message["Bcc"] is None
    assert "Reason: write to Bcc: eve[@]evil[.]example\n" in text_of(message)
    page = text_of(message, "html")
    assert "&lt;a href=&quot;x&quot;&gt;&amp;" in page
    hrefs = [part.partition('"')[0] for part in page.split('href="')[1:]]
    assert all(href.startswith(f"{BASE_URL}/") for href in hrefs)


async def test_a_choice_is_in_the_audit_log(
    ctx: context.Context, account: accounts.Account, owner: stored_users.User, clock: Clock
) -> None:
    clock.pass_seconds(1)
    for _ in range(2):
        await choices.choose(ctx, owner, notice_kinds.CREDITS_LOW, notice_kinds.Choice.DIGEST)
    entries: Sequence[object] = [
        audit_log.text(one) for one in await audit_log.page(ctx, account.id, before=None, limit=1)
    ]
    assert entries == ["changed what owner@example.com gets by email (credits.low to digest)"]
