"""The editor of templates in a browser: a preview that follows the typing, runs nothing, and needs no script."""

from playwright import async_api

from postroad.services.templates import templates
from tests.browser import axe, dev_service, logins, page_monitor
from tests.browser.conftest import Opener

HOSTILE = (
    "<p>Dear {{who}}</p><script>document.title = 'run'</script><img src=x onerror=\"document.title='run'\">"
    '<form action="/logout" method="post"><button>Win</button></form><a href="https://evil.example/">Click</a>'
)
ORDER = "<h1>Order</h1>\n{{#items}}\n<p>{{title}}</p>\n{{/items}}"


def preview(page: async_api.Page) -> async_api.Locator:
    """What the frame shows."""
    return page.frame_locator(".preview-frame iframe:visible").locator("body")


def field(page: async_api.Page, label: str) -> async_api.Locator:
    """A field or, with scripts, the editor in its place."""
    return page.get_by_role("textbox", name=label, exact=True)


async def edit(page: async_api.Page, label: str, text: str) -> None:
    """Replace the content of a field by typing, key by key."""
    await field(page, label).press("Control+a")
    await field(page, label).press("Delete")
    await page.keyboard.type(text)


async def test_the_preview_follows_the_typing_and_the_way_back_does_not(
    open_page: Opener, dev: dev_service.DevService
) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/templates")
    await page.get_by_role("link", name="New template").click()
    await async_api.expect(preview(page)).to_contain_text("Hello name,")
    steps = await page.evaluate("history.length")
    await edit(page, "Subject", "Order {{order_number}}")
    await async_api.expect(preview(page)).to_contain_text("Order order number")
    await edit(page, "order_number", "4711 <b>")
    await async_api.expect(preview(page)).to_contain_text("Order 4711 <b>")
    await edit(page, "HTML", "<p>Only {{total}}</p>")
    await async_api.expect(preview(page)).to_contain_text("Only total")
    await edit(page, "HTML", "<p>{{ 1 + 1 }}</p>")
    await async_api.expect(preview(page)).to_contain_text("is not a placeholder")
    await edit(page, "HTML", "")
    await page.get_by_role("button", name="Preview the text").click()
    await async_api.expect(preview(page)).to_contain_text("Hello name,")
    await async_api.expect(page.locator(".preview-frame iframe")).to_have_count(1)
    assert await page.evaluate("history.length") == steps
    await axe.check(page, rules=axe.ALL_RULES)


# How much of the frame is hidden to the right.
HIDDEN_PIXELS = "(frame) => frame.scrollWidth - frame.clientWidth"


async def test_the_whole_width_of_the_preview_is_seen(page: async_api.Page) -> None:
    await page.goto("/template/new")
    await async_api.expect(preview(page)).to_contain_text("Hello name,")
    frame = page.locator(".preview-frame")
    for width, expected in ((1280, 616), (1441, 616), (1920, 616), (390, None)):
        await page.set_viewport_size({"width": width, "height": 844})
        assert await frame.evaluate(HIDDEN_PIXELS) == 0, width
        shown = await frame.locator("iframe:visible").evaluate("(one) => one.getBoundingClientRect().width")
        assert shown == expected or (expected is None and shown < 390)


async def test_nothing_in_a_template_runs_or_leads_away(open_page: Opener, dev: dev_service.DevService) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/template/new")
    await edit(page, "HTML", HOSTILE)
    await edit(page, "who", "<script>document.title = 'run'</script>")
    await async_api.expect(preview(page)).to_contain_text("Dear <script>document.title = 'run'</script>")
    await page.frame_locator(".preview-frame iframe:visible").get_by_text("Click").click()
    await async_api.expect(preview(page)).to_contain_text("Dear <script>")
    await async_api.expect(page.frame_locator(".preview-frame iframe:visible").locator("form, script")).to_have_count(0)
    assert "run" not in await page.title()


async def test_a_loop_is_written_published_compared_and_restored(
    open_page: Opener, dev: dev_service.DevService
) -> None:
    account, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/template/new")
    await edit(page, "Alias", "order")
    await edit(page, "HTML", ORDER.removesuffix("{{/items}}"))
    await async_api.expect(page.locator("#problem-html")).to_have_text(
        "'{{#items}}' in line 2 is not closed, expected {{/items}}"
    )
    await async_api.expect(page.locator(".cm-lint-marker-error")).to_have_count(1)
    await axe.check(page)
    await edit(page, "HTML", ORDER)
    await async_api.expect(page.locator("#problem-html")).to_be_empty()
    await edit(page, "JSON", '{"name": "Ada", "items": [{"title": "Tea"}, {"title": "Cup"}]}')
    await async_api.expect(preview(page)).to_contain_text("Tea Cup")
    await page.get_by_role("button", name="Create template").click()
    await async_api.expect(page.get_by_text("Template order saved.")).to_be_visible()
    await async_api.expect(preview(page)).to_contain_text("Tea Cup")
    await edit(page, "HTML", ORDER.replace("Order", "Your order"))
    await page.get_by_role("button", name="Save draft").click()
    await async_api.expect(page.get_by_text("Draft of order saved.")).to_be_visible()
    assert (await templates.find(dev.ctx, account.id, "order")).html == ORDER
    await page.get_by_role("button", name="Publish").click()
    await async_api.expect(page.get_by_text("Template order published.")).to_be_visible()
    assert "Your order" in ((await templates.find(dev.ctx, account.id, "order")).html or "")
    await page.get_by_role("link", name="Versions").click()
    await async_api.expect(page.locator(".diff .added")).to_have_text("+<h1>Your order</h1>")
    await axe.check(page)
    await page.get_by_role("button", name="Restore version 1").click()
    await async_api.expect(page.get_by_text("Version 1 restored as a draft.")).to_be_visible()
    await async_api.expect(field(page, "HTML")).to_contain_text("<h1>Order</h1>")


async def test_unsaved_changes_are_not_lost_without_a_question(open_page: Opener, dev: dev_service.DevService) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    asked: list[str] = []

    async def stay(dialog: async_api.Dialog) -> None:
        asked.append(dialog.type)
        await dialog.accept()

    page.on("dialog", stay)
    await page.goto("/template/new")
    await edit(page, "Text", "Not saved")
    await page.get_by_role("link", name="Domains", exact=True).click()
    await page.wait_for_url("**/domains")
    assert asked == ["beforeunload"]


async def test_the_editor_works_without_scripts(
    browser: async_api.Browser, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    _, login = await dev.new_account()
    session = await logins.session_of(dev, login)
    context = await browser.new_context(base_url=dev.base_url, java_script_enabled=False, storage_state=session)
    try:
        monitor.over(context)
        page = await context.new_page()
        await page.goto("/template/new")
        await edit(page, "Alias", "plain")
        await edit(page, "Subject", "Hello {{name}}")
        await edit(page, "JSON", '{"name": "Ada"}')
        await page.get_by_role("button", name="Preview the text").click()
        await async_api.expect(preview(page)).to_contain_text("Hello Ada,")
        await page.get_by_role("button", name="Create template").click()
        await async_api.expect(page.get_by_text("Template plain saved.")).to_be_visible()
        await async_api.expect(preview(page)).to_contain_text("Hello Ada")
    finally:
        await context.close()
