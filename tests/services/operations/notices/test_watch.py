"""What only time causes: mail that waits, credits that run out, keys that expire."""

import msgspec
import pytest
import structlog

from postroad import context
from postroad.mail import notice_kinds
from postroad.mail.accept import queue_limit
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services.operations.notices import watch
from postroad.services.people import api_keys, credentials
from postroad.storage.mail import mail_counts
from postroad.storage.operations import notices
from postroad.storage.people import accounts
from tests import accepted_mail, contexts
from tests.contexts import Clock

LOG = structlog.get_logger()


async def told(ctx: context.Context) -> list[tuple[str, dict[str, str]]]:
    """The notices that were written since the last call."""
    async with ctx.store.transaction() as tx:
        found = await notices.unresolved(tx, limit=99)
        for one in found:
            await notices.resolve(tx, one.id, [], now=1)
    return [(one.kind, msgspec.json.decode(one.content)) for one in found]


async def test_operators_hear_of_mail_that_waits_too_long(ctx: context.Context, shop: str, clock: Clock) -> None:
    await accepted_mail.accept(ctx, shop)
    clock.pass_seconds(30 * 60 - 1)
    await watch.look(ctx)
    assert await told(ctx) == []
    clock.pass_seconds(1)
    for _ in range(2):
        await watch.look(ctx)
    assert await told(ctx) == [(notice_kinds.QUEUE_DELAYED, {"minutes": "30", "recipients": "1"})]
    clock.pass_seconds(6 * 3600)
    await watch.look(ctx)
    assert await told(ctx) == [(notice_kinds.QUEUE_DELAYED, {"minutes": "390", "recipients": "1"})]


async def test_operators_hear_of_a_provider_that_blocks_an_address(
    ctx: context.Context, account: accounts.Account, clock: Clock
) -> None:
    hour = mail_counts.hour_of(clock.now)
    refused = [
        ("google", "ip_blocked", 9, 1),
        ("yahoo", "ip_blocked", 9, 0),
        ("others", "ip_blocked", 99, 0),
        ("apple", "mailbox_full", 99, 0),
    ]
    async with ctx.store.transaction() as tx:
        await mail_counts.add_failures(tx, [mail_counts.FailureIncrement(account.id, hour, *row) for row in refused])
    for _ in range(2):
        await watch.look(ctx)
    values = {"provider": "Google", "blocklist": "", "recipients": "10", "source": ""}
    assert await told(ctx) == [(notice_kinds.ADDRESS_BLOCKED, values)]
    clock.pass_seconds(24 * 3600)
    await watch.look(ctx)
    assert await told(ctx) == []


async def test_owners_hear_of_mail_that_takes_most_of_its_space(
    ctx: context.Context, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_limit, "TEST_MEGABYTES", 1)
    limited = contexts.with_settings(ctx, "quotas", stored_megabytes=2)
    for is_test, size in ((False, 1_600_000), (True, 700_000)):
        await accepted_mail.accept(ctx, shop, text="x" * size, is_test=is_test)
    await watch.look(limited)
    assert await told(ctx) == []
    for is_test in (False, True):
        await accepted_mail.accept(ctx, shop, text="x" * 200_000, is_test=is_test)
    for _ in range(2):
        await watch.look(limited)
    live = {"used": "1", "quota": "2", "is_test": "", "days": "3"}
    test = {"used": "0", "quota": "1", "is_test": "test", "days": "3"}
    found = sorted(await told(ctx), key=lambda one: one[1]["is_test"])
    assert found == [(notice_kinds.STORAGE_LOW, live), (notice_kinds.STORAGE_LOW, test)]


@pytest.mark.parametrize(
    "amount, expected", [(4, []), (3, [(notice_kinds.CREDITS_LOW, {"available": "1", "used": "2"})])]
)
async def test_owners_hear_of_low_credits(
    ctx: context.Context, account: accounts.Account, amount: int, expected: list[object]
) -> None:
    ctx = contexts.with_settings(ctx, "credits", enabled=True)
    await accepted_mail.allow_sending(ctx, account.id, amount=amount)
    await accepted_mail.accept(ctx, account.id, to=("a@example.net", "b@example.net"))
    await watch.look(ctx)
    assert await told(ctx) == expected


async def test_owners_hear_of_a_key_a_week_and_a_day_before_its_end(
    ctx: context.Context, account: accounts.Account, clock: Clock
) -> None:
    credential, _ = await credentials.create(ctx, account.id, "main")
    for name, days in (("website", 8), ("short", 3)):
        limits = callers.KeyLimits(expires_at=clock.now + days * times.DAY)
        await api_keys.create(
            ctx,
            account.id,
            name=name,
            credential_id=credential.id,
            scopes=frozenset({callers.Permission.SEND}),
            limits=limits,
        )
    heard = []
    for day in range(10):
        await watch.look(ctx)
        heard += [(day, values["key"]) for kind, values in await told(ctx) if kind == notice_kinds.KEY_ENDING]
        clock.pass_seconds(24 * 3600)
    assert heard == [(1, "website"), (2, "short"), (7, "website")]
