"""The views above the list of messages."""

import html
import re

from postroad import context
from postroad.services.messages import saved_views
from postroad.storage.mail import message_search
from tests import accepted_mail
from tests.dashboard.browser_client import Browser, notice_of


def chips(text: str) -> dict[str, str]:
    """The links of the bar by name."""
    (bar,) = re.findall(r'<nav class="views".*?</nav>', text, re.DOTALL)
    return {html.unescape(name): html.unescape(path) for path, name in re.findall(r'href="([^"]*)"[^>]*>([^<]*)<', bar)}


async def view_ids(ctx: context.Context, browser: Browser) -> dict[str, str]:
    async with ctx.store.reading() as tx:
        return {view.name: view.id for view in await message_search.saved_views(tx, browser.account_id)}


async def test_a_search_is_saved_renamed_and_removed(ctx: context.Context, browser: Browser, reader: Browser) -> None:
    saved = await browser.post("/views", {"name": " Invoices & co ", "search": "status:failed invoice"})
    assert notice_of(saved) == "View Invoices & co saved."
    page = (await browser.follow(saved)).text
    assert chips(page)["Invoices & co"] == "/messages?search=status%3Afailed+invoice"
    assert re.findall(r'class="chip"[^>]*aria-current="true">([^<]*)<', page) == ["Invoices &amp; co"]
    # Everybody in the account sees it; who may only look cannot change it.
    seen = (await reader.get("/messages")).text
    assert "Invoices & co" in chips(seen)
    assert "/views" not in re.sub(r"<nav.*?</nav>", "", seen)
    (view_id,) = (await view_ids(ctx, browser)).values()
    renamed = await browser.post(f"/views/{view_id}/rename", {"name": "Unpaid"})
    assert notice_of(renamed) == "View renamed to Unpaid."
    # The same name gets the new search.
    await browser.post("/views", {"name": "Unpaid", "search": "status:failed"})
    assert await view_ids(ctx, browser) == {"Unpaid": view_id}
    removed = await browser.post(f"/views/{view_id}/remove")
    assert notice_of(removed) == "View Unpaid removed."
    assert await view_ids(ctx, browser) == {}
    log = html.unescape((await browser.get("/audit-log")).text)
    for entry in (
        "saved the view Invoices & co (status:failed invoice)",
        "renamed the saved view Invoices & co (Unpaid)",
        "removed the saved view Unpaid",
    ):
        assert entry in log


async def test_what_is_no_search_or_no_name_is_refused(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    for name, search, problem in (
        (" ", "invoice", "name: must be 1 to 40 characters"),
        ("x" * 41, "invoice", "name: must be 1 to 40 characters"),
        ("a\u202eb", "invoice", "name: must be 1 to 40 characters"),
        ("Mine", " ", "search: enter a search to save"),
        ("Mine", "stauts:failed", "did you mean status:"),
    ):
        answer = await browser.post("/views", {"name": name, "search": search})
        assert answer.status_code == 400, name
        assert problem in html.unescape(answer.text)
    assert await view_ids(ctx, browser) == {}


async def test_a_name_belongs_to_one_view_and_there_are_only_so_many(ctx: context.Context, browser: Browser) -> None:
    for number in range(30):
        await saved_views.save(ctx, browser.account_id, name=f"View {number}", search="invoice")
    refused = await browser.post("/views", {"name": "One more", "search": "invoice"})
    assert refused.status_code == 409
    assert "at most 30 saved views" in refused.text
    ids = await view_ids(ctx, browser)
    refused = await browser.post(f"/views/{ids['View 1']}/rename", {"name": "View 2"})
    assert refused.status_code == 409
    assert "another view is called View 2" in refused.text
    assert (await browser.post("/views", {"name": "View 2", "search": "order"})).status_code == 303
    assert await view_ids(ctx, browser) == ids
