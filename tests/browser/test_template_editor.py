"""The editor of templates in a browser: a preview that follows the typing, runs nothing, and needs no script."""

import pytest
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
    await page.get_by_role("link", name="Blank").click()
    await async_api.expect(preview(page)).to_contain_text("Hello Ada,")
    steps = await page.evaluate("history.length")
    await edit(page, "Subject", "Order {{order_number}}")
    await async_api.expect(preview(page)).to_contain_text("Order 10042")
    await edit(page, "order_number", "4711 <b>")
    await async_api.expect(preview(page)).to_contain_text("Order 4711 <b>")
    await edit(page, "HTML", "<p>Only {{total}}</p>")
    await async_api.expect(preview(page)).to_contain_text("Only €42.00")
    await edit(page, "HTML", "<p>{{ 1 + 1 }}</p>")
    await async_api.expect(preview(page)).to_contain_text("is not a placeholder")
    await edit(page, "HTML", "")
    await page.get_by_role("tab", name="HTML").press("ArrowRight")
    await async_api.expect(preview(page)).to_contain_text("Hello Ada,")
    await async_api.expect(page.locator(".preview-frame iframe")).to_have_count(1)
    assert await page.evaluate("history.length") == steps
    await axe.check(page, rules=axe.ALL_RULES)


async def test_the_whole_width_of_the_preview_is_seen(page: async_api.Page) -> None:
    await page.goto("/template/new/blank")
    await async_api.expect(preview(page)).to_contain_text("Hello Ada,")
    frame = page.locator(".preview-frame")
    for width, is_phone, layout_width in ((1280, False, 616), (1920, False, 616), (1280, True, 375), (390, True, 375)):
        await page.set_viewport_size({"width": width, "height": 844})
        if width > 390:
            await page.get_by_role("radio", name="Phone" if is_phone else "Desktop").check()
        iframe = frame.locator("iframe:visible")
        assert await iframe.evaluate("(one) => one.offsetWidth") == layout_width
        box, around = await iframe.bounding_box(), await frame.bounding_box()
        assert box is not None
        assert around is not None
        assert box["x"] >= around["x"]
        assert box["x"] + box["width"] <= around["x"] + around["width"] + 1


async def test_a_starter_is_chosen_by_its_picture_and_saved(open_page: Opener, dev: dev_service.DevService) -> None:
    account, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/template/new")
    picture = page.get_by_role("listitem").filter(has_text="Receipt").locator("iframe")
    await async_api.expect(picture.content_frame.locator("h1")).to_have_text("Thank you, Ada")
    await axe.check(page, rules=axe.ALL_RULES)
    await page.get_by_role("link", name="Receipt").press("Enter")
    await async_api.expect(preview(page)).to_contain_text("2 × Blue notebook")
    await page.get_by_role("button", name="Save draft").click()
    await async_api.expect(page.get_by_text("Draft of receipt saved.")).to_be_visible()
    await page.get_by_role("link", name="Templates", exact=True).first.click()
    row = page.get_by_role("row").filter(has_text="receipt")
    await async_api.expect(row.get_by_text("Draft")).to_be_visible()
    await async_api.expect(row.locator("iframe").content_frame.locator("h1")).to_have_text("Thank you, Ada")
    await axe.check(page, rules=axe.ALL_RULES)
    assert [one.alias for one in await templates.summaries(dev.ctx, account.id, "", 9, is_published=False)] == [
        "receipt"
    ]


async def test_code_and_preview_are_seen_together(page: async_api.Page) -> None:
    await page.goto("/template/new/blank")
    await page.set_viewport_size({"width": 1100, "height": 800})
    code, shown = field(page, "HTML"), page.locator(".preview-frame")
    await code.scroll_into_view_if_needed()
    await async_api.expect(code).to_be_in_viewport()
    await async_api.expect(shown).to_be_in_viewport(ratio=0.8)
    # What is far down is beside it, too.
    await field(page, "name").scroll_into_view_if_needed()
    await async_api.expect(shown).to_be_in_viewport(ratio=0.8)


async def test_nothing_in_a_template_runs_or_leads_away(open_page: Opener, dev: dev_service.DevService) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/template/new/blank")
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
    await page.goto("/template/new/blank")
    await edit(page, "Alias", "order")
    await edit(page, "HTML", ORDER.removesuffix("{{/items}}"))
    await async_api.expect(page.locator("#problem-html")).to_have_text(
        "'{{#items}}' in line 2 is not closed, expected {{/items}}"
    )
    await async_api.expect(page.locator(".code-editor .mistaken")).to_have_text("{{#items}}")
    await async_api.expect(field(page, "HTML")).to_have_attribute("aria-invalid", "true")
    await axe.check(page)
    await edit(page, "HTML", ORDER)
    await async_api.expect(page.locator("#problem-html")).to_be_empty()
    await async_api.expect(page.locator(".code-editor .mistaken")).to_have_count(0)
    await async_api.expect(preview(page)).to_contain_text("Blue notebook")
    await edit(page, "items", '[{"title": "Tea"}, {"title": "Cup"}]')
    await async_api.expect(preview(page)).to_contain_text("Tea Cup")
    await page.get_by_role("button", name="Save draft").click()
    await async_api.expect(page.get_by_text("Draft of order saved.")).to_be_visible()
    await async_api.expect(page.get_by_text("not published yet")).to_be_visible()
    await async_api.expect(preview(page)).to_contain_text("Tea Cup")
    await page.get_by_role("button", name="Publish").click()
    await async_api.expect(page.get_by_text("Template order published.")).to_be_visible()
    await edit(page, "HTML", ORDER.replace("Order", "Your order"))
    await page.get_by_role("button", name="Save draft").click()
    await async_api.expect(page.get_by_text("Draft of order saved.")).to_be_visible()
    await async_api.expect(page.get_by_text("mail uses the version published")).to_be_visible()
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


async def test_code_is_indented_while_it_is_typed_and_undone_step_by_step(page: async_api.Page) -> None:
    await page.goto("/template/new/blank")
    code = field(page, "HTML")
    await edit(page, "HTML", "<ul>\n<li class='a>b'>\nTea<br>\n{{title}}\n</li>\n</ul>")
    await async_api.expect(code).to_have_value("<ul>\n  <li class='a>b'>\n    Tea<br>\n    {{title}}\n  </li>\n</ul>")
    await page.keyboard.press("Control+z")
    await async_api.expect(code).not_to_have_value(
        "<ul>\n  <li class='a>b'>\n    Tea<br>\n    {{title}}\n  </li>\n</ul>"
    )
    await edit(page, "HTML", "<td></td>")
    for _ in range(5):
        await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("Enter")
    await async_api.expect(code).to_have_value("<td>\n  \n</td>")
    await page.keyboard.type("Tea")
    await async_api.expect(code).to_have_value("<td>\n  Tea\n</td>")
    for keys, text in (
        ("Control+]", "<td>\n    Tea\n</td>"),
        ("Control+[", "<td>\n  Tea\n</td>"),
        ("Control+/", "<td>\n  <!-- Tea -->\n</td>"),
        ("Control+/", "<td>\n  Tea\n</td>"),
        ("Alt+ArrowUp", "  Tea\n<td>\n</td>"),
        ("Alt+ArrowDown", "<td>\n  Tea\n</td>"),
        ("Alt+ArrowDown", "<td>\n</td>\n  Tea"),
        ("Alt+ArrowDown", "<td>\n</td>\n  Tea"),
        ("Control+z", "<td>\n  Tea\n</td>"),
    ):
        await page.keyboard.press(keys)
        await async_api.expect(code).to_have_value(text)


async def test_colours_follow_the_code_over_the_ends_of_lines(page: async_api.Page) -> None:
    await page.goto("/template/new/blank")
    await edit(
        page,
        "HTML",
        "<!-- a <b> -->\n<a href={{url}} title='x\ny' style=\"color: red\">{{{html}}}</a>\n"
        "<style>\na:hover { top: 1px }\n</style>",
    )

    async def colored(name: str) -> list[str]:
        return await page.locator(f".code-editor:visible .code-{name}").all_text_contents()

    assert await colored("mustache") == ["{{url}}", "{{{html}}}"]
    assert await colored("name") == ["a", "a", "style", "style"]
    assert await colored("attribute") == ["href", "title", "style", "color", "top"]
    assert await colored("value") == ["'", "x", "y", "'", '"', ": ", "red", '"']
    # An open comment takes in what follows, until it is closed.
    await field(page, "HTML").press("Control+Home")
    await page.keyboard.type("<!-- ")
    assert await colored("name") == ["a", "a", "style", "style"]
    await edit(page, "HTML", "<i>\n<b>\n<u>")
    await field(page, "HTML").press("Control+Home")
    await page.keyboard.type("<!--")
    assert await colored("name") == []
    await page.keyboard.type("-->")
    assert await colored("name") == ["i", "b", "u"]


@pytest.mark.parametrize("width", [1280, 390])
async def test_colours_lie_exactly_below_what_is_typed(page: async_api.Page, width: int) -> None:
    await page.set_viewport_size({"width": width, "height": 844})
    await page.goto("/template/new/blank")
    long = (
        "<p title='a' style=\"color: red\">{{name}}"
        + "Dear customer,   " * 30
        + "</p>\n"
        + "x" * 300
        + "\n\n\tWährung 日本語 €\n"
    )
    await field(page, "HTML").fill(long * 6)
    typed, colored = await page.locator(".code-editor:visible").evaluate(
        "(box) => [...box.children].reverse().map((one) => one.scrollHeight)"
    )
    assert typed == colored
    lines = await page.locator(".code-editor:visible .line").all_text_contents()
    assert "\n".join(lines) == long * 6
    # The caret is seen wherever it goes.
    await field(page, "HTML").press("Control+Home")
    box = page.locator(".code-editor:visible")
    assert await box.evaluate("(one) => one.scrollTop") == 0
    await field(page, "HTML").press("Control+End")
    assert await box.evaluate("(one) => one.scrollTop + one.clientHeight >= one.scrollHeight - 20")


async def test_code_that_is_hard_to_read_does_not_stop_the_page(page: async_api.Page) -> None:
    await page.goto("/template/new/blank")
    code = field(page, "HTML")
    # As long as a template may be. If each word looked at all that follow, one key would take minutes.
    for text in ("<style>" + "a:" * 130_000, "x" + " " * 250_000 + "x"):
        await code.fill(text)
        await code.press("Control+End")
        await page.keyboard.type("}")
        await async_api.expect(code).to_have_value(f"{text}}}")
        await code.press("Control+/")
        await async_api.expect(code).to_have_value(f"<!-- {text}}} -->")
    # Thousands of lines are not coloured, until they are fewer again.
    await code.evaluate("""(area) => {
      area.value = "\\n".repeat(20_000);
      area.dispatchEvent(new Event("input", { bubbles: true }));
    }""")
    await code.press("Control+End")
    await page.keyboard.type("<b>")
    await async_api.expect(code).to_have_value("\n" * 20_000 + "<b>")
    lines = page.locator(".code-editor:visible .line")
    await async_api.expect(lines).to_have_count(0)
    await code.fill("<b>")
    await async_api.expect(lines).to_have_count(1)


async def test_test_values_follow_the_template_and_keep_what_was_typed(
    open_page: Opener, dev: dev_service.DevService
) -> None:
    account, login = await dev.new_account()
    await templates.put(
        dev.ctx, account.id, "base", subject="-", text=None, html="{{> content}}<i>{{company_name}}</i>"
    )
    page = await open_page(login)
    await page.goto("/template/new/blank")
    await edit(page, "name", "Grace")
    await edit(page, "HTML", "{{#paid}}Paid{{/paid}} {{name}}{{#rows}} {{title}}{{/rows}}")
    await async_api.expect(preview(page)).to_contain_text("Paid Grace Blue notebook")
    await page.get_by_role("checkbox", name="paid").uncheck()
    await async_api.expect(preview(page)).not_to_contain_text("Paid")
    await edit(page, "rows", '[{"title": "Tea"')
    await async_api.expect(field(page, "rows")).to_have_attribute("aria-invalid", "true")
    await page.keyboard.type("}]")
    await async_api.expect(preview(page)).to_contain_text("Grace Tea")
    await edit(page, "HTML", "{{name}}{{#rows}} {{title}} {{price}}{{/rows}}")
    await async_api.expect(preview(page)).to_contain_text("Grace Tea €42.00")
    await async_api.expect(page.get_by_role("checkbox", name="paid")).to_have_count(0)
    await page.get_by_label("Layout").select_option("base")
    await async_api.expect(preview(page)).to_contain_text("Corner Shop")
    await async_api.expect(field(page, "company_name")).to_have_value("Corner Shop")
    await axe.check(page, rules=axe.ALL_RULES)


async def test_unsaved_changes_are_not_lost_without_a_question(open_page: Opener, dev: dev_service.DevService) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    asked: list[str] = []

    async def stay(dialog: async_api.Dialog) -> None:
        asked.append(dialog.type)
        await dialog.accept()

    page.on("dialog", stay)
    await page.goto("/template/new/blank")
    await page.get_by_role("tab", name="Text").click()
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
        await page.goto("/template/new/blank")
        await edit(page, "Alias", "plain")
        await edit(page, "Subject", "Hello {{name}}")
        await edit(page, "JSON", '{"name": "Ada"}')
        await page.get_by_role("button", name="Preview the text").click()
        await async_api.expect(preview(page)).to_contain_text("Hello Ada,")
        await page.get_by_role("button", name="Publish").click()
        await async_api.expect(page.get_by_text("Template plain published.")).to_be_visible()
        await async_api.expect(preview(page)).to_contain_text("Hello Ada")
    finally:
        await context.close()
