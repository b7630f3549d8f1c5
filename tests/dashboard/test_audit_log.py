"""The page of the audit log."""

from postroad.services import audit_log, context
from postroad.services.accounts import credits
from postroad.services.auth import credentials
from tests import contexts
from tests.dashboard import sample_account
from tests.dashboard.browser_client import Browser


async def test_an_account_in_which_nothing_was_changed_learns_what_would_be_here(
    ctx: context.Context, browser: Browser
) -> None:
    async with ctx.store.transaction() as tx:
        await tx.run_script("DELETE FROM audit_log")
    text = (await browser.get("/audit-log")).text
    assert "No entries yet" in text


async def test_a_change_by_a_user_shows_who_from_where_and_by_which_request(
    clock: contexts.Clock, browser: Browser, reader: Browser
) -> None:
    clock.pass_seconds(1)
    done = await browser.post("/suppressions", {"email": "ada@example.net"})
    text = (await reader.get("/audit-log")).text
    row = text.partition("<tbody>")[2].partition("</tr>")[0]
    assert "<strong>owner@mine.example</strong> added" in row
    assert "added ada@example.net to the suppression list" in row
    assert done.headers["x-request-id"] in row
    assert "<code>127.0.0.1</code>" in row


async def test_what_an_operator_did_is_shown_too(ctx: context.Context, browser: Browser) -> None:
    await credits.add(ctx, browser.account_id, 7, "gift")
    text = (await browser.get("/audit-log")).text
    assert "<strong>operator</strong> added" in text
    assert "added 7 credits (gift)" in text


async def test_text_of_others_is_only_text(ctx: context.Context, browser: Browser) -> None:
    await credentials.create(ctx, browser.account_id, sample_account.HOSTILE)
    text = (await browser.get("/audit-log")).text
    assert "&lt;script&gt;alert(1)" in text
    assert "<script>alert" not in text
    assert "<img src=x" not in text


async def test_the_log_comes_in_parts(ctx: context.Context, browser: Browser) -> None:
    for number in range(1, 50 + 2):
        await credits.add(ctx, browser.account_id, number, None)
    entries = await audit_log.page(ctx, browser.account_id, before=None, limit=100)
    first = (await browser.get("/audit-log")).text
    assert first.count("<strong>operator</strong>") == 50
    link = first.partition('<nav class="more"')[2].partition('href="')[2].partition('"')[0]
    second = (await browser.get(link)).text
    assert second.count("<strong>operator</strong>") == len(entries) - 50
    assert (await browser.get("/audit-log", before="jrn_x")).status_code == 400
    assert "No older entries" in (await browser.get("/audit-log", before="jrn_" + "0" * 28)).text


async def test_another_accounts_log_is_its_own(ctx: context.Context, browser: Browser, stranger: Browser) -> None:
    await credits.add(ctx, browser.account_id, 7, "of mine")
    assert "of mine" not in (await stranger.get("/audit-log")).text


async def test_nobody_can_change_it(browser: Browser) -> None:
    assert (await browser.post("/audit-log", {"subject": "x"})).status_code == 405


async def test_without_a_session_one_is_asked_to_log_in(nobody: Browser) -> None:
    assert (await nobody.get("/audit-log")).headers["location"] == "/login?next=/audit-log"
