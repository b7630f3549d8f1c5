"""The versions of a template: who saved which, how two differ, and the way back."""

from postroad import context
from postroad.services.templates import templates
from tests.dashboard import browser_client, sample_account
from tests.dashboard.browser_client import Browser


async def test_versions_are_listed_compared_and_restored(ctx: context.Context, browser: Browser) -> None:
    await templates.put(ctx, browser.account_id, "greeting", subject="Hello", text="Dear {{name}}\nfirst", html=None)
    assert "ompare" not in (await browser.get("/templates/greeting/versions")).text
    text = f"Dear {{{{name}}}}\n{sample_account.HOSTILE}"
    await templates.put(ctx, browser.account_id, "greeting", subject="Hello", text=text, html=None)
    page = (await browser.get("/templates/greeting/versions")).text
    assert "published</span>" in page
    assert '<span class="removed">-first\n</span>' in page
    assert '<span class="added">+' in page
    assert "<script>alert" not in page
    assert "No differences." in (await browser.get("/templates/greeting/versions", old="1", new="1")).text
    restored = await browser.post("/templates/greeting/versions/1/restore")
    assert browser_client.notice_of(restored) == "Version 1 restored as a draft."
    assert browser_client.location_of(restored) == "/templates/greeting"
    page = (await browser.get("/templates/greeting/versions")).text
    assert "draft</span>" in page
    assert "owner@mine.example" in page
    assert (await templates.find(ctx, browser.account_id, "greeting")).version == 2


async def test_a_version_that_is_not_there_is_not_found(
    ctx: context.Context, browser: Browser, stranger: Browser, reader: Browser
) -> None:
    await templates.put(ctx, browser.account_id, "greeting", subject="Hello", text="x", html=None)
    for number, status in (("7", 404), ("-1", 400), ("x", 400), ("9" * 30, 400)):
        assert (await browser.get("/templates/greeting/versions", old=number, new="1")).status_code == status
        assert (await browser.post(f"/templates/greeting/versions/{number}/restore")).status_code == 404
    assert (await stranger.get("/templates/greeting/versions")).status_code == 404
    assert (await stranger.post("/templates/greeting/versions/1/restore")).status_code == 404
    assert "Restore" not in (await reader.get("/templates/greeting/versions")).text
    assert (await reader.post("/templates/greeting/versions/1/restore")).status_code == 403
