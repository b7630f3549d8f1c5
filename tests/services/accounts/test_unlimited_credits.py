"""Mail that costs nothing: no reservation, no ledger entry, and books that still agree."""

import msgspec
import pytest

from postroad import config, context, errors
from postroad.model.bounces import disposition
from postroad.roles import composition
from postroad.services.accounts import account_registry, credits
from postroad.services.operations import gauges, operator_jobs
from postroad.storage.mail import messages
from postroad.storage.people import accounts
from tests import accepted_mail
from tests.contexts import Clock
from tests.services import audit_entries, claimed_mail

BOUNCED, DELIVERED = disposition.Verdict.BOUNCED, disposition.Verdict.DELIVERED


async def entries(ctx: context.Context, account_id: str) -> list[tuple[str, int, int]]:
    async with ctx.store.reading() as tx:
        found = await accounts.entries_from(tx, account_id, after="", limit=99)
    return sorted((entry.kind, entry.available, entry.reserved) for entry in found)


async def balance(ctx: context.Context, account_id: str) -> tuple[int, int]:
    account = await account_registry.find(ctx, account_id)
    return account.available, account.reserved


async def end(ctx: context.Context, verdicts: dict[str, disposition.Verdict]) -> None:
    claims = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    await ctx.outcome_commits.submit(
        [claimed_mail.outcome(ctx, one, verdicts[one.email_key], recipient_count=0, code=550) for one in claims]
    )


async def test_an_unlimited_account_is_not_charged_and_its_earlier_mail_keeps_its_price(
    ctx: context.Context, account: accounts.Account
) -> None:
    await accepted_mail.allow_sending(ctx, account.id, amount=2)
    await accepted_mail.accept(ctx, account.id, to=("paid@example.net",))
    changed = await credits.set_unlimited(ctx, account.id, unlimited=True)
    assert changed.unlimited == 1
    free = await accepted_mail.accept(ctx, account.id, to=("a@example.net", "b@example.net", "c@example.net"))
    assert await balance(ctx, account.id) == (1, 1)
    async with ctx.store.reading() as tx:
        message = await messages.by_id(tx, account.id, free)
    assert message is not None
    assert (message.recipient_count, message.credits_reserved) == (3, 0)
    assert (await operator_jobs.check_consistency(ctx)).findings == []

    await end(
        ctx,
        {"paid@example.net": BOUNCED, "a@example.net": BOUNCED, "b@example.net": DELIVERED, "c@example.net": DELIVERED},
    )
    assert await balance(ctx, account.id) == (2, 0)
    assert await entries(ctx, account.id) == [("grant", 2, 0), ("release", 1, -1), ("reserve", -1, 1)]
    assert (await operator_jobs.check_consistency(ctx)).findings == []

    await credits.set_unlimited(ctx, account.id, unlimited=False)
    await accepted_mail.accept(ctx, account.id, to=("d@example.net",))
    await end(ctx, {"d@example.net": DELIVERED})
    assert await balance(ctx, account.id) == (1, 0)
    with pytest.raises(errors.InsufficientCredits):
        await accepted_mail.accept(ctx, account.id, to=("e@example.net", "f@example.net"))
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    changes = [change for change in await audit_entries.summaries(ctx, account.id) if "limited" in change[0]]
    assert changes == [("credits.limited", "Shop", ""), ("credits.unlimited", "Shop", "")]


async def test_an_installation_without_credits_charges_nobody(
    ctx: context.Context, settings: config.Settings, clock: Clock
) -> None:
    shop = await account_registry.create(ctx, "Free")
    await accepted_mail.allow_sending(ctx, shop.id, amount=1)
    off = msgspec.structs.replace(settings, credits=msgspec.structs.replace(settings.credits, enabled=False))
    async with composition.open_context(off, clock=clock) as without:
        for refused in (
            credits.add(without, shop.id, 5, None),
            credits.set_unlimited(without, shop.id, unlimited=True),
        ):
            with pytest.raises(errors.Conflict, match="credits are off"):
                await refused
        await accepted_mail.accept(without, shop.id, to=("a@example.net", "b@example.net"))
        await end(without, {"a@example.net": DELIVERED, "b@example.net": BOUNCED})
        assert await balance(without, shop.id) == (1, 0)
        assert await entries(without, shop.id) == [("grant", 1, 0)]
        assert (await operator_jobs.check_consistency(without)).findings == []
        await gauges.Gauges().refresh(without)
        assert without.metrics.low_credits.values == {(): 0}


async def test_accounts_with_credits_for_less_than_three_days_are_counted(
    ctx: context.Context, account: accounts.Account, clock: Clock
) -> None:
    async def shown() -> dict[tuple[str, ...], float]:
        await gauges.Gauges().refresh(ctx)
        return dict(ctx.metrics.low_credits.values)

    await accepted_mail.allow_sending(ctx, account.id, amount=2)
    assert await shown() == {(): 0}
    await accepted_mail.accept(ctx, account.id, to=("a@example.net",))
    assert await shown() == {(): 0}  # one used, one left
    await accepted_mail.accept(ctx, account.id, to=("b@example.net",))
    assert await shown() == {(): 1}
    await credits.set_unlimited(ctx, account.id, unlimited=True)
    assert await shown() == {(): 0}
    await credits.set_unlimited(ctx, account.id, unlimited=False)
    clock.pass_seconds(4 * 24 * 3600)
    assert await shown() == {(): 0}
