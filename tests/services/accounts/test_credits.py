"""Credits are given with a ledger entry, and the ledger always sums to the balances."""

import csv
import datetime as dt
import io
import zoneinfo

import msgspec
import pytest

from postroad import config, context, errors
from postroad.model.bounces import disposition
from postroad.model.units import times
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.services.operations import gauges, operator_jobs
from postroad.storage.mail import messages
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail, contexts
from tests.contexts import Clock
from tests.services import audit_entries, claimed_mail


async def test_given_credits_are_available_and_the_ledger_sums_to_the_balances_after_mail(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    changed = await credits.add(ctx, account_id, 250, "welcome")
    assert (changed.available, changed.reserved) == (250, 0)
    assert changed == await accounts.find(ctx, account_id)
    (entry,) = await credits.ledger(ctx, account_id, None, 10)
    assert (entry.kind, entry.available, entry.reserved, entry.note) == ("grant", 250, 0, "welcome")
    assert entry.created_at == clock.now
    await accepted_mail.allow_sending(ctx, account_id, amount=10)
    message_id = await accepted_mail.accept(ctx, account_id, to=("a@example.net", "b@example.net"))
    now = await accounts.find(ctx, account_id)
    assert (now.available, now.reserved) == (258, 2)
    entries = await credits.ledger(ctx, account_id, None, 10)
    assert sum(entry.available for entry in entries) == 258
    assert sum(entry.reserved for entry in entries) == 2
    assert [entry.message_id for entry in entries if entry.kind == "reserve"] == [message_id]
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_impossible_amounts_notes_and_accounts_change_nothing(
    ctx: context.Context, account: stored_accounts.Account
) -> None:
    for amount in (0, -1, -(2**63), (2**53 - 1) + 1, 2**63, 2**100):
        with pytest.raises(errors.InvalidRequest, match=r"^amount: "):
            await credits.add(ctx, account.id, amount, None)
    for note in ("", "a\nb", "a\0", "x" * 201):
        with pytest.raises(errors.InvalidRequest, match=r"^note: "):
            await credits.add(ctx, account.id, 1, note)
    for account_id in ("acc_" + "0" * 28, "", "acc_\0"):
        with pytest.raises(errors.NotFound):
            await credits.add(ctx, account_id, 1, None)
    assert (await accounts.find(ctx, account.id)).available == 0
    assert await credits.ledger(ctx, account.id, None, 10) == []
    # Nor does a balance leave the exact numbers.
    await credits.add(ctx, account.id, 2**53 - 1, None)
    with pytest.raises(errors.InvalidRequest, match=r"^amount: "):
        await credits.add(ctx, account.id, 1, None)


async def test_the_ledger_of_an_account_is_read_in_parts_newest_first(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    other = await accounts.create(ctx, "Other")
    await credits.add(ctx, other.id, 7, "secret")
    (foreign,) = await credits.ledger(ctx, other.id, None, 10)
    for before in (None, foreign.id):
        assert await credits.ledger(ctx, account_id, before, 10) == []
    for before in ("", "led_", "em_" + "0" * 28, "led_\0", "' OR 1=1"):
        with pytest.raises(errors.InvalidRequest, match=r"^before: "):
            await credits.ledger(ctx, account_id, before, 10)
        with pytest.raises(errors.InvalidRequest, match=r"^before: "):
            await credits.statement(ctx, account_id, before=before, limit=9)
    for amount in (1, 2, 3, 4, 5):
        await credits.add(ctx, account_id, amount, None)
        clock.pass_seconds(1)
    first = await credits.ledger(ctx, account_id, None, 2)
    rest = await credits.ledger(ctx, account_id, first[-1].id, 10)
    assert [entry.available for entry in first + rest] == [5, 4, 3, 2, 1]


# The ledger as a file: all of it, oldest first, with balances that agree with the account.

HEAD = b"created_at,kind,available,reserved,available_after,reserved_after,message_id,note,id\r\n"


async def exported(ctx: context.Context, account_id: str) -> bytes:
    return b"".join([part async for part in credits.export_ledger(ctx, account_id)])


async def rows(ctx: context.Context, account_id: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((await exported(ctx, account_id)).decode(), newline=""), strict=True))


async def test_every_entry_is_there_with_the_balances_after_it(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    other = await accounts.create(ctx, "Other")
    await credits.add(ctx, other.id, 99, "theirs")
    await accepted_mail.allow_sending(ctx, account_id, amount=10)
    clock.pass_seconds(1)
    message_id = await accepted_mail.accept(ctx, account_id, to=("a@example.net", "b@example.net"))
    clock.pass_seconds(1)
    await credits.add(ctx, account_id, 5, "=HYPERLINK(1)")
    first, second, third = await rows(ctx, account_id)
    assert (first["created_at"], first["kind"], first["available"]) == ("2027-01-15T08:00:00.000Z", "grant", "10")
    assert (second["kind"], second["available"], second["reserved"]) == ("reserve", "-2", "2")
    assert (second["available_after"], second["reserved_after"], second["message_id"]) == ("8", "2", message_id)
    assert (third["available_after"], third["note"]) == ("13", "'=HYPERLINK(1)")
    now = await accounts.find(ctx, account_id)
    assert (third["available_after"], third["reserved_after"]) == (str(now.available), str(now.reserved))


async def test_a_file_is_written_page_by_page(
    ctx: context.Context, account_id: str, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credits, "LEDGER_PAGE_ROWS", 2)
    assert await exported(ctx, account_id) == HEAD
    for count in range(1, 6):
        await credits.add(ctx, account_id, 1, None)
        clock.pass_seconds(1)
        parts = [part async for part in credits.export_ledger(ctx, account_id)]
        assert all(parts)
        assert len(parts) == (count + 1) // 2
    assert [row["available_after"] for row in await rows(ctx, account_id)] == ["1", "2", "3", "4", "5"]


# Mail that costs nothing: no reservation, no ledger entry, and books that still agree.

BOUNCED, DELIVERED = disposition.Verdict.BOUNCED, disposition.Verdict.DELIVERED


async def entries(ctx: context.Context, account_id: str) -> list[tuple[str, int, int]]:
    async with ctx.store.reading() as tx:
        found = await stored_accounts.entries_from(tx, account_id, after="", limit=99)
    return sorted((entry.kind, entry.available, entry.reserved) for entry in found)


async def balance(ctx: context.Context, account_id: str) -> tuple[int, int]:
    account = await accounts.find(ctx, account_id)
    return account.available, account.reserved


async def end(ctx: context.Context, verdicts: dict[str, disposition.Verdict]) -> None:
    claims = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    await ctx.outcome_commits.submit(
        [claimed_mail.outcome(ctx, one, verdicts[one.email_key], recipient_count=0, code=550) for one in claims]
    )


async def test_an_unlimited_account_is_not_charged_and_its_earlier_mail_keeps_its_price(
    ctx: context.Context, account_id: str
) -> None:
    await accepted_mail.allow_sending(ctx, account_id, amount=2)
    await accepted_mail.accept(ctx, account_id, to=("paid@example.net",))
    changed = await credits.set_unlimited(ctx, account_id, unlimited=True)
    assert changed.unlimited == 1
    free = await accepted_mail.accept(ctx, account_id, to=("a@example.net", "b@example.net", "c@example.net"))
    assert await balance(ctx, account_id) == (1, 1)
    async with ctx.store.reading() as tx:
        message = await messages.by_id(tx, account_id, free)
    assert message is not None
    assert (message.recipient_count, message.credits_reserved) == (3, 0)
    assert (await operator_jobs.check_consistency(ctx)).findings == []

    await end(
        ctx,
        {"paid@example.net": BOUNCED, "a@example.net": BOUNCED, "b@example.net": DELIVERED, "c@example.net": DELIVERED},
    )
    assert await balance(ctx, account_id) == (2, 0)
    assert await entries(ctx, account_id) == [("grant", 2, 0), ("release", 1, -1), ("reserve", -1, 1)]
    assert (await operator_jobs.check_consistency(ctx)).findings == []

    await credits.set_unlimited(ctx, account_id, unlimited=False)
    await accepted_mail.accept(ctx, account_id, to=("d@example.net",))
    await end(ctx, {"d@example.net": DELIVERED})
    assert await balance(ctx, account_id) == (1, 0)
    with pytest.raises(errors.InsufficientCredits):
        await accepted_mail.accept(ctx, account_id, to=("e@example.net", "f@example.net"))
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    changes = [change for change in await audit_entries.summaries(ctx, account_id) if "limited" in change[0]]
    assert changes == [("credits.limited", "Shop", ""), ("credits.unlimited", "Shop", "")]


async def test_an_installation_without_credits_charges_nobody(
    ctx: context.Context, settings: config.Settings, clock: Clock
) -> None:
    shop = await accounts.create(ctx, "Free")
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
    ctx: context.Context, account_id: str, clock: Clock
) -> None:
    async def shown() -> dict[tuple[str, ...], float]:
        await gauges.Gauges().refresh(ctx)
        return dict(ctx.metrics.low_credits.values)

    await accepted_mail.allow_sending(ctx, account_id, amount=2)
    assert await shown() == {(): 0}
    await accepted_mail.accept(ctx, account_id, to=("a@example.net",))
    assert await shown() == {(): 0}  # one used, one left
    await accepted_mail.accept(ctx, account_id, to=("b@example.net",))
    assert await shown() == {(): 1}
    await credits.set_unlimited(ctx, account_id, unlimited=True)
    assert await shown() == {(): 0}
    await credits.set_unlimited(ctx, account_id, unlimited=False)
    clock.pass_seconds(4 * 24 * 3600)
    assert await shown() == {(): 0}


# Where credits went: one line a message, with the balance after it, and recipients by day and by tag.

IS_DELIVERED, HAS_BOUNCED, _, _ = disposition.Verdict


@pytest.fixture
async def shop(ctx: context.Context, account_id: str) -> str:
    """An account that may send."""
    await accepted_mail.allow_sending(ctx, account_id, amount=100)
    return account_id


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
    for verdict in (IS_DELIVERED, HAS_BOUNCED):
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


async def test_entries_without_a_line_are_passed_over_and_a_balance_too_far_back_is_not_shown(
    ctx: context.Context, shop: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.pass_seconds(1)
    _, (claimed,) = await claimed_mail.another(ctx, shop, "ada@example.net")
    clock.pass_seconds(1)
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, IS_DELIVERED)])
    with monkeypatch.context() as small:
        small.setattr(credits, "ENTRIES_PER_PAGE", 1)
        first = await credits.statement(ctx, shop, before=None, limit=50)
        assert first.rows == []
        assert first.next_cursor is not None
        assert await lines(ctx, shop) == [("reserve", -1, 99), ("grant", 100, 100)]
    for _ in range(2):
        clock.pass_seconds(1)
        await credits.add(ctx, shop, 1, None)
    monkeypatch.setattr(credits, "MAX_ENTRIES", 2)
    assert [balance for _, _, balance in await lines(ctx, shop, limit=1)] == [101, 100, None, None]


async def test_the_ledger_is_added_up_by_day_of_the_person(
    ctx: context.Context, shop: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 2027-01-15 08:00 UTC. In Adelaide, ten and a half hours ahead, the day ends at 13:30 UTC.
    adelaide, first, second = zoneinfo.ZoneInfo("Australia/Adelaide"), dt.date(2027, 1, 15), dt.date(2027, 1, 16)
    clock.pass_seconds(5 * 3600)
    _, (claimed,) = await claimed_mail.another(ctx, shop, "ada@example.net")
    clock.pass_seconds(3600)
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, HAS_BOUNCED)])
    await accepted_mail.accept(ctx, shop, to=("a@example.net", "b@example.net"))
    expected = [
        credits.Day(second, used=2, refunded=1, balance=98),
        credits.Day(first, added=100, used=1, balance=99),
    ]
    assert await credits.days(ctx, shop, adelaide, limit=9) == credits.Days(expected, None)
    assert await credits.days(ctx, shop, times.UTC, limit=9) == credits.Days(
        [credits.Day(first, added=100, used=3, refunded=1, balance=98)], None
    )
    assert await credits.days(ctx, shop, adelaide, limit=1) == credits.Days(expected[:1], second)
    midnight = times.moment_of(dt.datetime.combine(second, dt.time()), adelaide)
    assert await credits.days(ctx, shop, adelaide, until=midnight, limit=9) == credits.Days(expected[1:], None)
    of_day = await credits.statement(ctx, shop, since=midnight, before=None, limit=9)
    assert sorted(line.entry.available for line in of_day.rows) == [-2, 1]
    before = await credits.statement(ctx, shop, until=midnight, before=None, limit=9)
    assert [line.entry.available for line in before.rows] == [-1, 100]
    # Of the five entries the oldest three are two days.
    monkeypatch.setattr(credits, "MAX_ENTRIES", 4)
    assert await credits.days(ctx, shop, adelaide, limit=9) == credits.Days(expected[:1], second)
    monkeypatch.setattr(credits, "MAX_ENTRIES", 2)
    (part,), until = msgspec.structs.astuple(await credits.days(ctx, shop, adelaide, limit=9))
    assert (part.date, part.is_complete, until) == (second, False, second)


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
