"""Where credits went: one line a message, with the balance after it, and recipients by day and by tag."""

import datetime as dt
import zoneinfo

import pytest

from postroad import context, errors
from postroad.model.bounces import disposition
from postroad.model.units import times
from postroad.services.accounts import credits
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail
from tests.contexts import Clock
from tests.services import claimed_mail

DELIVERED, BOUNCED, _, _ = disposition.Verdict


@pytest.fixture
async def shop(ctx: context.Context, account: stored_accounts.Account) -> str:
    """An account that may send."""
    await accepted_mail.allow_sending(ctx, account.id, amount=100)
    return account.id


async def lines(ctx: context.Context, account_id: str, *, limit: int = 50) -> list[tuple[str, int, int | None]]:
    """The whole ledger, page by page: kind, change and balance, newest first."""
    found: list[tuple[str, int, int | None]] = []
    cursor: str | None = None
    for _ in range(20):
        page = await credits.statement(ctx, account_id, before=cursor, limit=limit)
        found += [(line.entry.kind, line.entry.available, line.balance) for line in page.rows]
        cursor = page.next_cursor
        if cursor is None:
            return found
    raise AssertionError("the ledger does not end")


async def test_a_message_is_one_line_and_a_refund_another(ctx: context.Context, shop: str, clock: Clock) -> None:
    for verdict in (DELIVERED, BOUNCED):
        clock.pass_seconds(1)
        _, (claimed,) = await claimed_mail.another(ctx, shop, f"{verdict}@example.net")
        clock.pass_seconds(1)
        await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, verdict)])
    clock.pass_seconds(1)
    await accepted_mail.accept(ctx, shop, to=("a@example.net", "b@example.net"))
    expected = [
        ("reserve", -2, 98 - 1),
        ("release", 1, 99),
        ("reserve", -1, 98),
        ("reserve", -1, 99),
        ("grant", 100, 100),
    ]
    assert await lines(ctx, shop) == expected
    assert await lines(ctx, shop, limit=2) == expected
    page = await credits.statement(ctx, shop, before=None, limit=50)
    assert [line.billing for line in page.rows] == ["reserved", None, "released", "settled", None]


async def test_entries_without_a_line_are_passed_over(
    ctx: context.Context, shop: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.pass_seconds(1)
    _, (claimed,) = await claimed_mail.another(ctx, shop, "ada@example.net")
    clock.pass_seconds(1)
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, DELIVERED)])
    monkeypatch.setattr(credits, "ENTRIES_PER_PAGE", 1)
    first = await credits.statement(ctx, shop, before=None, limit=50)
    assert first.rows == []
    assert first.next_cursor is not None
    assert await lines(ctx, shop) == [("reserve", -1, 99), ("grant", 100, 100)]


async def test_a_balance_too_far_back_is_not_shown(
    ctx: context.Context, shop: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        clock.pass_seconds(1)
        await credits.add(ctx, shop, 1, None)
    monkeypatch.setattr(credits, "MAX_ENTRIES", 2)
    assert [balance for _, _, balance in await lines(ctx, shop, limit=1)] == [103, 102, None, None]


async def test_a_foreign_cursor_is_refused(ctx: context.Context, shop: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="before: "):
        await credits.statement(ctx, shop, before="em_1", limit=9)


async def test_recipients_are_counted_by_day_of_the_person_and_by_tag(
    ctx: context.Context, shop: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 2027-01-15 08:00 UTC is 21:00 in Auckland; four hours later it is the next day there.
    await accepted_mail.accept(ctx, shop, to=("a@example.net", "b@example.net"), tags=("order", "news"))
    clock.pass_seconds(4 * 3600)
    await accepted_mail.accept(ctx, shop, tags=("news",))
    await accepted_mail.accept(ctx, shop, tags=("test",), is_test=True)
    auckland = await credits.recent_usage(ctx, shop, zoneinfo.ZoneInfo("Pacific/Auckland"))
    assert len(auckland.days) == credits.USAGE_DAYS
    assert auckland.days[-2:] == [(dt.date(2027, 1, 15), 2), (dt.date(2027, 1, 16), 1)]
    here = await credits.recent_usage(ctx, shop, times.UTC)
    assert here.days[-1] == (dt.date(2027, 1, 15), 3)
    assert sum(count for _, count in here.days) == 3
    assert [(one.tag, one.messages, one.recipients) for one in here.tags] == [("news", 2, 3), ("order", 1, 2)]
    assert here.counted_from is None
    monkeypatch.setattr(credits, "MAX_MESSAGES", 2)
    newest = await credits.recent_usage(ctx, shop, times.UTC)
    assert newest.counted_from is not None
    assert [(one.tag, one.recipients) for one in newest.tags] == [("news", 1)]
