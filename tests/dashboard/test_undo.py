"""What was done can be undone from its notice, where the opposite restores exactly what was there."""

import html
import re

import httpx
import msgspec

from postroad import config, context
from postroad.dashboard.framework import cookies
from postroad.services.messages import saved_views
from postroad.services.operations import destinations
from postroad.services.queue import sources
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.mail import delivery_controls, message_search
from postroad.storage.mail import suppressions as stored
from tests import accepted_mail
from tests.dashboard.browser_client import Browser, notice_of

BUTTON = re.compile(
    r'<form method="post" action="([^"]+)" class="inline" data-enhanced>(.*?)>Undo</button></form></div>'
)
FIELD = re.compile(r'name="(\w+)" value="([^"]*)"')


async def button(browser: Browser, done: httpx.Response) -> re.Match[str] | None:
    """The button of the notice of what was done, though something else has been done since."""
    browser.client.cookies.set(cookies.NOTICE, done.cookies[cookies.NOTICE], domain="postroad.test", path="/")
    return BUTTON.search((await browser.follow(done)).text)


async def undo(browser: Browser, done: httpx.Response) -> httpx.Response:
    """Press it."""
    found = await button(browser, done)
    assert found is not None
    return await browser.post(found[1], dict(FIELD.findall(html.unescape(found[2]))))


async def rows(ctx: context.Context, browser: Browser) -> list[stored.Suppression]:
    return await suppressions.page(ctx, browser.account_id, after="", limit=10)


async def test_an_address_that_was_removed_is_suppressed_as_it_was(ctx: context.Context, browser: Browser) -> None:
    row = stored.Suppression(
        browser.account_id, "ada@example.net", stored.Source.COMPLAINT, "spam", 550, "em_1", ctx.clock() - 1_000_000
    )
    async with ctx.store.transaction() as tx:
        await stored.add(tx, [row])
    for path, fields in (
        ("/suppressions/remove", {"email": row.email_key, "confirmed": "yes"}),
        ("/recipients/ada%40example.net/remove", {"confirmed": "yes"}),
    ):
        removed = await browser.post(path, fields)
        assert notice_of(removed) == "ada@example.net is no longer suppressed."
        assert await rows(ctx, browser) == []
        restored = await undo(browser, removed)
        assert restored.headers["location"] == path.removesuffix("/remove")
        assert notice_of(restored) == "ada@example.net is suppressed again."
        assert await rows(ctx, browser) == [row]
        assert await button(browser, restored) is None


async def test_only_what_was_removed_here_is_restored(
    ctx: context.Context, browser: Browser, stranger: Browser
) -> None:
    await suppressions.add(ctx, browser.account_id, "ada@example.net")
    removed = await browser.post("/suppressions/remove", {"email": "ada@example.net"})
    found = await button(browser, removed)
    assert found is not None
    row = dict(FIELD.findall(found[2]))["row"]
    for who, value in ((stranger, row), (browser, row[:-1]), (browser, "x")):
        refused = await who.post("/suppressions/restore", {"row": value})
        assert (refused.status_code, "not an address that was removed here" in refused.text) == (404, True)
        assert await rows(ctx, who) == []


async def test_an_address_that_was_suppressed_is_removed_again(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await accepted_mail.accept(ctx, browser.account_id, to=("ada@example.net",))
    for path, fields in (
        ("/suppressions", {"email": "ada@example.net"}),
        ("/recipients/ada%40example.net/suppress", {}),
    ):
        added = await browser.post(path, fields)
        assert [row.email_key for row in await rows(ctx, browser)] == ["ada@example.net"]
        assert notice_of(await undo(browser, added)) == "ada@example.net is no longer suppressed."
        assert await rows(ctx, browser) == []


async def test_a_view_that_was_removed_is_saved_again(ctx: context.Context, browser: Browser) -> None:
    view = await saved_views.save(ctx, browser.account_id, name="Unpaid & old", search="status:failed")
    removed = await browser.post(f"/views/{view.id}/remove")
    assert notice_of(await undo(browser, removed)) == "View Unpaid & old saved."
    async with ctx.store.reading() as tx:
        (again,) = await message_search.saved_views(tx, browser.account_id)
    assert (again.name, again.search) == (view.name, view.search)


async def test_a_provider_is_resumed_and_paused_again(ctx: context.Context, operator: Browser) -> None:
    path = "/operator/providers/google"
    paused = await operator.post(f"{path}/pause", {"reason": "blocked"})
    # Another reason for the same pause is no new one.
    changed = await operator.post(f"{path}/pause", {"reason": "still blocked"})
    assert await button(operator, changed) is None
    assert notice_of(await undo(operator, paused)) == "Resumed on all hosts."
    assert (await destinations.find(ctx, "google")).state == "open"
    await operator.post(f"{path}/pause", {"reason": "blocked"})
    resumed = await operator.post(f"{path}/resume")
    await undo(operator, resumed)
    found = await destinations.find(ctx, "google")
    assert found.override is not None
    assert (found.is_paused, found.override.pause_reason, found.override.pause_until) == (True, "blocked", None)


async def test_a_source_address_is_resumed_and_a_hold_is_released(ctx: context.Context, operator: Browser) -> None:
    msgspec.structs.force_setattr(ctx.settings, "sources", (config.Source(name="out_1", address="192.0.2.1"),))
    paused = await operator.post("/operator/sources/out_1/pause", {"reason": "listed"})
    again = await operator.post("/operator/sources/out_1/pause", {"reason": "x"})
    assert await button(operator, again) is None
    await undo(operator, paused)
    assert (await sources.find(ctx, "out_1")).states == []
    held = await operator.post(
        "/operator/queue/change", {"action": "hold", "domain": "example.net", "reason": "incident"}
    )
    assert notice_of(held) == "Held: mail to example.net."
    await undo(operator, held)
    async with ctx.store.reading() as tx:
        assert not await delivery_controls.holds_in_force(tx)


async def test_what_is_undone_is_signed_and_of_this_session(browser: Browser, reader: Browser) -> None:
    done = await browser.post("/suppressions", {"email": "ada@example.net"})
    value = next(value for name, value in done.cookies.items() if name == cookies.NOTICE)
    for who, forged in ((browser, value[:-1]), (reader, value)):
        who.client.cookies.set(cookies.NOTICE, forged, domain="postroad.test", path="/")
        page = (await who.get("/suppressions")).text
        assert "ada@example.net is suppressed." in page
        assert "Undo" not in page
