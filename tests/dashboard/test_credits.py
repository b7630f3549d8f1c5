"""Credits: the balances, the ledger, and the ledger as a file."""

import re

from postroad import context
from postroad.dashboard.settings import credits as page
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.storage.people import accounts as ledger
from tests import accepted_mail, contexts
from tests.dashboard.browser_client import Browser


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
    assert "Unlimited" in overview
    assert "2 recipients queued." in overview
    assert "No credits left" not in overview


async def test_the_balances_and_the_ledger_show_where_credits_went(
    ctx: context.Context, clock: contexts.Clock, reader: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, reader.account_id, amount=12_345)
    clock.pass_seconds(1)
    await credits.add(ctx, reader.account_id, 5, "<script>alert(1)</script>")
    clock.pass_seconds(1)
    message_id = await accepted_mail.accept(ctx, reader.account_id)
    text = (await reader.get("/credits")).text
    account = await accounts.find(ctx, reader.account_id)
    assert (account.available, account.reserved) == (12_349, 1)
    assert (tile(text, "Available"), tile(text, "Reserved")) == ("12,349", "1")
    assert f'<a href="/messages/{message_id}">' in text
    for words in ("Reserved for a message", "Credits added", "+12,345", "−1"):
        assert words in text
    assert re.findall(r'data-label="Balance">([\d,]+)<', text) == ["12,349", "12,350", "12,345"]
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


async def test_usage_is_shown_by_day_and_by_tag(ctx: context.Context, reader: Browser) -> None:
    assert "Recipients by day" not in (await reader.get("/credits")).text
    await accepted_mail.allow_sending(ctx, reader.account_id)
    await accepted_mail.accept(ctx, reader.account_id, to=("a@example.net", "b@example.net"), tags=("<b>order",))
    text = (await reader.get("/credits")).text
    assert "Accepted in the last 30 days: 2, one credit each" in text
    assert '<td>2027-01-15</td><td class="number">2</td>' in text
    assert "&lt;b&gt;order</a>" in text
    assert "<b>order" not in text
    assert "Recipients by day" not in (await reader.get("/credits", before="led_" + "f" * 28)).text


async def test_every_kind_of_entry_has_its_words() -> None:
    assert set(page.KINDS) == set(ledger.LedgerKind)


async def test_the_ledger_is_a_file_as_well(ctx: context.Context, reader: Browser) -> None:
    await credits.add(ctx, reader.account_id, 7, "=cmd()")
    file = await reader.get("/credits/ledger.csv")
    assert file.headers["content-type"] == "text/csv; charset=utf-8"
    assert file.headers["content-disposition"] == 'attachment; filename="ledger.csv"'
    assert ",grant,7,0,7,0,,'=cmd()," in file.text
