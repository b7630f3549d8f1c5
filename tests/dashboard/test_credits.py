"""Credits: the balances, the ledger, and the ledger as a file."""

import dataclasses
import re

import pytest

from postroad import context
from postroad.dashboard.settings import credits as page
from postroad.model.units import times
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.storage.people import accounts as ledger
from tests import accepted_mail, contexts
from tests.dashboard.browser_client import Browser


def at(ctx: context.Context, moment: int) -> context.Context:
    return dataclasses.replace(ctx, clock=lambda: moment)


def tile(text: str, name: str) -> str:
    return text.partition(f"<dt>{name}</dt>")[2].partition(">")[2].partition("<")[0]


async def test_an_account_without_credits_sees_how_to_get_some(browser: Browser) -> None:
    text = (await browser.get("/credits")).text
    assert "<strong>No credits yet.</strong> Ask the operator of this service to add some." in text
    assert "No credits left" not in text
    assert "sending is blocked" not in text
    assert f"postroad credits add --account {browser.account_id} --amount 10000" in text
    assert "No ledger entries yet" in text


async def test_an_account_that_has_used_its_credits_up_is_told_so(ctx: context.Context, browser: Browser) -> None:
    new = (await browser.get("/")).text
    assert '<p class="notice"><strong>You need credits to start sending</strong>' in new
    await accepted_mail.allow_sending(ctx, browser.account_id, amount=1)
    await accepted_mail.accept(ctx, browser.account_id)
    assert "<strong>No credits left.</strong>" in (await browser.get("/credits")).text
    assert '<li class="verdict-bad"><strong>No credits left</strong>' in (await browser.get("/")).text


async def test_an_account_that_needs_no_credits_sees_that(ctx: context.Context, browser: Browser) -> None:
    await credits.set_unlimited(ctx, browser.account_id, unlimited=True)
    text = (await browser.get("/credits")).text
    assert "Unlimited." in text
    assert "New messages cost no credits" in text
    assert "No credits left" not in text
    assert "postroad credits add" not in text
    await accepted_mail.allow_sending(ctx, browser.account_id, amount=1)
    await accepted_mail.accept(ctx, browser.account_id, to=("a@example.net", "b@example.net"))
    overview = (await browser.get("/")).text
    assert 'href="/credits"' not in overview
    assert "2 recipients queued." in overview
    assert "No credits left" not in overview


async def test_the_balances_and_the_ledger_show_where_credits_went(
    ctx: context.Context, clock: contexts.Clock, reader: Browser
) -> None:
    await accepted_mail.allow_sending(at(ctx, clock.now - times.DAY), reader.account_id, amount=12_345)
    await credits.add(ctx, reader.account_id, 5, "<script>alert(1)</script>")
    clock.pass_seconds(1)
    message_id = await accepted_mail.accept(ctx, reader.account_id)
    text = (await reader.get("/credits")).text
    account = await accounts.find(ctx, reader.account_id)
    assert (account.available, account.reserved) == (12_349, 1)
    assert (tile(text, "Available"), tile(text, "Reserved")) == ("12,349", "1")
    assert re.findall(r'href="/credits\?day=([-0-9]+)"', text) == ["2027-01-15", "2027-01-14"]
    assert re.findall(r'data-label="Added">([+\d,]+)<', text) == ["+5", "+12,345"]
    assert re.findall(r'data-label="Used">([−\d,]+)<', text) == ["−1"]
    assert re.findall(r'data-label="Balance">([\d,]+)<', text) == ["12,349", "12,345"]
    assert message_id not in text
    day = (await reader.get("/credits?day=2027-01-15")).text
    assert f'<a href="/messages/{message_id}">' in day
    for words in ("Reserved for a message", "Credits added", "+5<", "−1<"):
        assert words in day
    assert re.findall(r'data-label="Balance">([\d,]+)<', day) == ["12,349", "12,350"]
    assert "<script>alert" not in day
    assert "&lt;script&gt;alert" in day


async def test_older_days_follow_and_what_is_no_day_is_refused(
    ctx: context.Context, clock: contexts.Clock, reader: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for days in (2, 1, 0):
        await credits.add(at(ctx, clock.now - days * times.DAY), reader.account_id, 1, None)
    monkeypatch.setattr(page, "DAYS", 2)
    first = (await reader.get("/credits")).text
    assert re.findall(r'href="/credits\?day=([-0-9]+)"', first) == ["2027-01-15", "2027-01-14"]
    assert 'href="/credits?until=2027-01-14"' in first
    second = (await reader.get("/credits?until=2027-01-14")).text
    assert re.findall(r'href="/credits\?day=([-0-9]+)"', second) == ["2027-01-13"]
    assert "until=" not in second.partition("<main")[2]
    assert "No older entries." in (await reader.get("/credits?until=2027-01-13")).text
    assert "No entries on this day." in (await reader.get("/credits?day=2027-01-20")).text
    for query in ("day=today", "until=x", "day=9999-12-31", "day=2027-02-30"):
        refused = await reader.get(f"/credits?{query}")
        assert refused.status_code == 400, query
        assert refused.text.count("<h1>") == 1


async def test_usage_is_shown_by_day_and_by_tag(ctx: context.Context, reader: Browser) -> None:
    assert "Recipients by day" not in (await reader.get("/credits")).text
    await accepted_mail.allow_sending(ctx, reader.account_id)
    await accepted_mail.accept(ctx, reader.account_id, to=("a@example.net", "b@example.net"), tags=("<b>order",))
    text = (await reader.get("/credits")).text
    assert "Accepted in the last 30 days: 2, one credit each" in text
    assert '<td>2027-01-15</td><td class="number">2</td>' in text
    assert "&lt;b&gt;order</a>" in text
    assert "<b>order" not in text
    assert "Recipients by day" not in (await reader.get("/credits", until="2027-01-15")).text


async def test_every_kind_of_entry_has_its_words() -> None:
    assert set(page.KINDS) == set(ledger.LedgerKind)


async def test_the_ledger_is_a_file_as_well(ctx: context.Context, reader: Browser) -> None:
    await credits.add(ctx, reader.account_id, 7, "=cmd()")
    file = await reader.get("/credits/ledger.csv")
    assert file.headers["content-type"] == "text/csv; charset=utf-8"
    assert file.headers["content-disposition"] == 'attachment; filename="ledger.csv"'
    assert ",grant,7,0,7,0,,'=cmd()," in file.text
