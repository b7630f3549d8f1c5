"""The list of templates, the editor, and the frame in which it shows what is written."""

import asyncio
import contextlib

import pytest

from postroad import context, errors
from postroad.dashboard.mail import templates as page
from postroad.services import usage_limits
from postroad.services.messages import lookup as messages
from postroad.services.messages import previews
from postroad.services.templates import template_drafts, templates
from tests import accepted_mail
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser

GREETING = {"subject": "Hello {{name}}", "text": "Dear {{name}}", "html": "<p>Dear <b>{{name}}</b></p>"}
ADA = '{"name": "Ada <x>"}'


async def put(ctx: context.Context, browser: Browser, alias: str = "greeting", **changes: str | None) -> None:
    members: dict[str, str | None] = {**GREETING, **changes}
    subject, text, html = members["subject"] or "", members["text"], members["html"]
    await templates.put(ctx, browser.account_id, alias, subject=subject, text=text, html=html)


async def subjects(ctx: context.Context, browser: Browser) -> dict[str, str]:
    return {row.alias: row.subject for row in await templates.summaries(ctx, browser.account_id, "", 100)}


async def test_an_empty_list_teaches(browser: Browser, reader: Browser) -> None:
    text = (await browser.get("/templates")).text
    assert "No templates yet" in text
    assert "{{name}}" in text
    assert 'href="/template/new"' in text
    assert 'href="/template/new"' not in (await reader.get("/templates")).text


async def test_a_new_template_is_saved_and_its_editor_opens(ctx: context.Context, browser: Browser) -> None:
    assert "Welcome, {{name}}" in (await browser.get("/template/new/blank")).text
    saved = await browser.post("/templates", {"alias": "greeting", **GREETING})
    assert browser_client.notice_of(saved) == "Draft of greeting saved. Publish it to send it."
    assert browser_client.location_of(saved) == "/templates/greeting"
    with pytest.raises(errors.NotFound):
        await templates.find(ctx, browser.account_id, "greeting")
    opened = await browser.follow(saved)
    assert "not published yet" in opened.text
    assert 'value="Hello {{name}}"' in opened.text
    assert "&lt;p&gt;Dear &lt;b&gt;{{name}}&lt;/b&gt;&lt;/p&gt;" in opened.text
    assert "draft</span>" in (await browser.get("/templates")).text
    await browser.post("/templates/greeting/publish", GREETING)
    stored = await templates.find(ctx, browser.account_id, "greeting")
    assert {"subject": stored.subject, "text": stored.text, "html": stored.html} == GREETING


async def test_starters_are_offered_shown_and_opened(browser: Browser, reader: Browser) -> None:
    gallery = (await browser.get("/template/new")).text
    assert 'href="/template/new/receipt">Receipt</a>' in gallery
    picture = await browser.get("/template/new/receipt/picture")
    assert picture.headers["content-security-policy"] == browser_client.PREVIEW_POLICY
    assert "Thank you, Ada" in picture.text
    assert 'preview-subject"' not in picture.text
    opened = (await browser.get("/template/new/receipt")).text
    assert 'name="alias" type="text" value="receipt"' in opened
    assert 'value="Your receipt from {{company}}"' in opened
    assert "Fountain pen" in opened
    assert (await browser.get("/template/new/nothing")).status_code == 404
    assert (await reader.get("/template/new/receipt/picture")).status_code == 403


async def test_the_list_has_a_picture_of_each_template(
    ctx: context.Context, browser: Browser, stranger: Browser
) -> None:
    await put(ctx, browser)
    assert 'src="/templates/greeting/picture"' in (await browser.get("/templates")).text
    # However many are asked for at once: each waits for its turn.
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(browser.get("/templates/greeting/picture")) for _ in range(20)]
    assert {(task.result().status_code, "<p>Dear <b>Ada</b></p>" in task.result().text) for task in asked} == {
        (200, True)
    }
    assert (await stranger.get("/templates/greeting/picture")).status_code == 404


async def test_a_new_template_can_be_published_at_once(ctx: context.Context, browser: Browser) -> None:
    saved = await browser.post("/template/publish", {"alias": "greeting", **GREETING})
    assert browser_client.notice_of(saved) == "Template greeting published."
    assert (await templates.find(ctx, browser.account_id, "greeting")).version == 1
    assert (await browser.post("/template/publish", {"alias": "greeting", **GREETING})).status_code == 409


async def test_a_template_that_is_there_is_not_replaced_by_a_new_one(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser)
    answer = await browser.post("/templates", {"alias": "greeting", "subject": "Other", "text": "x"})
    assert answer.status_code == 409
    assert "the template &#39;greeting&#39; already exists" in answer.text
    assert await subjects(ctx, browser) == {"greeting": "Hello {{name}}"}


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"alias": ""}, "alias: must be 1 to 64 of the characters"),
        ({"text": "", "html": ""}, "text: give at least one of text and html"),
        ({"html": "{% if x %}"}, "html: &#39;{% if x %}&#39; in line 1 is not a placeholder"),
        ({"text": "x" * ((256 * 1024) + 1)}, "text: at most 262144 characters"),
    ],
)
async def test_what_cannot_be_sent_cannot_be_saved(
    ctx: context.Context, browser: Browser, fields: dict[str, str], sentence: str
) -> None:
    answer = await browser.post("/templates", {"alias": "greeting", **GREETING, **fields})
    assert answer.status_code == 400
    assert sentence in answer.text
    assert await subjects(ctx, browser) == {}


async def test_a_template_is_changed_and_removed(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser)
    saved = await browser.post("/templates/greeting/publish", {**GREETING, "subject": "Other", "html": ""})
    assert browser_client.notice_of(saved) == "Template greeting published."
    assert (await templates.find(ctx, browser.account_id, "greeting")).html is None
    assert await subjects(ctx, browser) == {"greeting": "Other"}
    removed = await browser.post("/templates/greeting/remove")
    assert browser_client.notice_of(removed) == "Template greeting removed."
    assert await subjects(ctx, browser) == {}


async def test_the_longest_template_in_any_script_can_be_saved(ctx: context.Context, browser: Browser) -> None:
    long = "\U0001f98a" * (256 * 1024)
    await put(ctx, browser)
    answer = await browser.post("/templates/greeting/publish", {"subject": "Foxes", "text": long, "html": long})
    assert answer.status_code == 303, answer.text
    assert (await templates.find(ctx, browser.account_id, "greeting")).html == long


async def test_a_draft_is_saved_with_its_values_and_not_sent(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser)
    assert "published</span>" in (await browser.get("/templates/greeting")).text
    draft = {**GREETING, "subject": "Draft {{name}}", "values": '{"name": "Grace"}'}
    saved = await browser.post("/templates/greeting", draft)
    assert browser_client.notice_of(saved).startswith("Draft of greeting saved.")
    assert await subjects(ctx, browser) == {"greeting": "Hello {{name}}"}
    opened = (await browser.follow(saved)).text
    assert "draft</span> saved" in opened
    assert 'value="Draft {{name}}"' in opened
    assert "&#34;Grace&#34;" in opened
    assert "<strong>Draft Grace</strong>" in (await browser.get("/templates/greeting/preview")).text
    await browser.post("/templates/greeting/publish", draft)
    assert await subjects(ctx, browser) == {"greeting": "Draft {{name}}"}


async def test_test_values_are_bounded_as_typed_and_as_kept(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser)
    grows = '{"a": ' + "[" * 60 + ",".join("1" * 20_000) + "]" * 60 + "}"
    for values in (grows, '{"name": "' + "x" * page.VALUES_CHARACTERS + '"}'):
        await browser.post("/templates/greeting", {**GREETING, "text": values[:30], "values": values})
        saved = await template_drafts.latest(ctx, await templates.find(ctx, browser.account_id, "greeting"))
        assert saved is not None
        assert (saved.text, saved.sample) == (values[:30], None)
    shown = await browser.post("/template/preview", {**GREETING, "values": values})
    assert "values: at most 131072 characters" in shown.text


async def test_a_loop_and_a_layout_are_shown_in_the_preview(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser, "base", text=None, html="<main>{{> content}}</main>")
    rows = {"subject": "Rows", "html": "{{#rows}}<p>{{.}}</p>{{/rows}}", "layout": "base", "values": '{"rows": [1, 2]}'}
    assert "<main><p>1</p><p>2</p></main>" in (await browser.post("/template/preview", rows)).text
    layout = await browser.get("/templates/base/preview")
    assert "This is where the content of a message goes." in layout.text
    unknown = await browser.post("/template/preview", {**rows, "layout": "none"})
    assert "which does not exist" in unknown.text
    await browser.post("/templates", {"alias": "rows", **rows})
    await browser.post("/templates/rows/publish", rows)
    assert '<option value="base" selected>base</option>' in (await browser.get("/templates/rows")).text
    refused = await browser.post("/templates/base/remove")
    assert (refused.status_code, "template &#39;rows&#39; uses" in refused.text) == (409, True)


async def test_mistakes_have_their_place(browser: Browser) -> None:
    draft = {"subject": "{{a}", "text": "fine {{a}}", "html": "<p>\n  {{#a}}</p>"}
    assert (await browser.post("/template/check", draft)).json() == {
        "problems": [
            {
                "field": "subject",
                "line": 1,
                "column": 1,
                "message": "'{{a}…' in line 1 is not a placeholder, expected a name in double braces, such as {{name}}",
            },
            {
                "field": "html",
                "line": 2,
                "column": 3,
                "message": "'{{#a}}' in line 2 is not closed, expected {{/a}}",
            },
        ],
        "values": None,
    }


async def test_an_editor_does_not_fill_in_more_values_than_somebody_can_edit(browser: Browser) -> None:
    names = "".join(f"{{{{a_rather_long_name_of_a_variable_{number}}}}}" for number in range(90))
    given = '{"rows": [' + "{}, " * 999 + "{}]}"
    draft = {"subject": "Rows", "text": "{{#rows}}" + names + "{{/rows}}", "values": given}
    await browser.post("/templates", {**draft, "alias": "rows"})
    response = await browser.get("/templates/rows")
    assert response.status_code == 200
    assert len(response.content) < 200_000
    assert response.text.count("{}") >= 1_000


async def test_test_values_are_those_of_the_content_and_its_layout(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser, "base", text=None, html="{{> content}}<p>{{company_name}}</p>")
    draft = {
        **GREETING,
        "html": "{{#items}}{{price}}{{/items}}",
        "layout": "base",
        "values": '{"name": "Grace", "x": 1}',
    }
    assert (await browser.post("/template/check", draft)).json() == {
        "problems": [],
        "values": {"name": "Grace", "items": [{"price": "€42.00"}], "company_name": "Corner Shop"},
    }
    assert "€42.00<p>Corner Shop</p>" in (await browser.post("/template/preview", draft)).text
    for impossible in ({"values": "{"}, {"layout": "none"}):
        assert (await browser.post("/template/check", {**draft, **impossible})).json() == {
            "problems": [],
            "values": None,
        }


async def test_a_template_is_duplicated(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser)
    copied = await browser.post("/templates/greeting/duplicate")
    assert browser_client.location_of(copied) == "/templates/greeting-copy"
    assert await subjects(ctx, browser) == {"greeting": "Hello {{name}}", "greeting-copy": "Hello {{name}}"}


async def test_every_word_can_be_an_alias(ctx: context.Context, browser: Browser) -> None:
    for alias in ("new", "preview", "test", "remove", "-"):
        await put(ctx, browser, alias)
        assert f"<h1>{alias}</h1>" in (await browser.get(f"/templates/{alias}")).text
        assert (await browser.post(f"/templates/{alias}/remove")).status_code == 303


async def test_the_editor_says_how_to_send_with_it(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser, subject="{{order_number}}")
    text = (await browser.get("/templates/greeting")).text
    assert "&#34;template&#34;: &#34;greeting&#34;" in text
    assert "&#34;order_number&#34;: &#34;10042&#34;" in text


async def test_the_frame_shows_the_saved_template_with_made_up_values(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser, subject="Order {{order_number}}", html="<p>{{order_number}}<script>x()</script></p>")
    text = (await browser.get("/templates/greeting")).text
    assert '<iframe name="preview" sandbox title="Preview of the message"' in text
    answer = await browser.get("/templates/greeting/preview")
    assert (
        dict(previews.DOCUMENT_HEADERS).items()
        <= {name.title().replace("Dns", "DNS"): value for name, value in answer.headers.items()}.items()
    )
    assert "<strong>Order 10042</strong>" in answer.text
    assert "<p>10042</p>" in answer.text
    assert "script" not in answer.text
    assert "Dear Ada" in (await browser.get("/templates/greeting/preview", part="text")).text


async def test_the_frame_shows_a_draft_with_its_values(browser: Browser) -> None:
    answer = await browser.post("/template/preview", {**GREETING, "values": ADA})
    assert (answer.status_code, answer.headers["content-security-policy"]) == (200, browser_client.PREVIEW_POLICY)
    assert "<strong>Hello Ada &lt;x&gt;</strong>" in answer.text
    assert "<p>Dear <b>Ada &lt;x&gt;</b></p>" in answer.text
    as_text = await browser.post("/template/preview", {**GREETING, "values": ADA, "part": "text"})
    assert "Dear Ada &lt;x&gt;</pre>" in as_text.text
    assert "<p>Dear" not in as_text.text


async def test_a_draft_is_shown_in_the_dark(browser: Browser) -> None:
    draft = {**GREETING, "html": "<style>@media (prefers-color-scheme: dark){p{color:red}}</style><p>x", "values": ADA}
    assert "(max-width:0){p{color:red}}" in (await browser.post("/template/preview", draft)).text
    assert "(min-width:0){p{color:red}}" in (await browser.post("/template/preview", {**draft, "scheme": "dark"})).text


async def test_an_account_has_only_so_many_previews_under_way(ctx: context.Context, browser: Browser) -> None:
    with contextlib.ExitStack() as taken:
        for _ in range(4):
            taken.enter_context(usage_limits.acquire(ctx, page.PREVIEWS, browser.account_id))
        answer = await browser.post("/template/preview", {**GREETING, "values": ADA})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert (await browser.post("/template/preview", {**GREETING, "values": ADA})).status_code == 200
    assert not ctx.work_in_progress


async def test_the_frame_says_which_body_is_not_there(browser: Browser) -> None:
    without_text = await browser.post("/template/preview", {**GREETING, "text": "", "values": ADA, "part": "text"})
    assert "No text body" in without_text.text
    without_html = await browser.post("/template/preview", {**GREETING, "html": "", "values": ADA, "part": "html"})
    assert "No HTML body" in without_html.text
    unasked = await browser.post("/template/preview", {**GREETING, "html": "", "values": ADA})
    assert "Dear Ada" in unasked.text


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"values": "[1]"}, "values: must be a JSON object of strings, numbers, booleans, lists"),
        ({"values": "{"}, "values: "),
        ({"subject": ""}, "subject: has 0 characters; 1 to 500"),
        ({"html": "{{ <script>alert(1)</script> }}"}, "is not a placeholder"),
        ({"subject": "{{name}}", "values": '{"name": "a\\nb"}'}, "subject: "),
    ],
)
async def test_the_frame_says_what_is_wrong_with_a_draft(
    browser: Browser, fields: dict[str, str], sentence: str
) -> None:
    answer = await browser.post("/template/preview", {**GREETING, "values": ADA, **fields})
    assert (answer.status_code, answer.headers["content-security-policy"]) == (200, browser_client.PREVIEW_POLICY)
    assert "Mail with this template would be refused." in answer.text
    assert sentence in answer.text
    assert "<script>" not in answer.text


async def test_a_test_sends_what_is_in_the_editor_and_saves_nothing(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id, domain="mine.example")
    await put(ctx, browser)
    assert "<option>hello@mine.example</option>" in (await browser.get("/templates/greeting")).text
    draft = {"subject": "Draft {{name}}", "text": "unsaved {{name}}", "values": '{"name": "Grace"}'}
    answer = await browser.post("/templates/greeting/test", {**draft, "sender": "hello@mine.example"})
    assert answer.status_code == 202
    assert "Test sent to owner@mine.example." in answer.text
    assert "unsaved {{name}}" in answer.text
    assert "&#34;Grace&#34;" in answer.text
    found = await messages.page(ctx, browser.account_id, messages.Filters(), limit=10, cursor=None)
    (sent,) = found.messages
    assert (sent.subject, sent.source) == ("Draft Grace", "test")
    assert f'href="/messages/{sent.id}"' in answer.text
    assert b"unsaved Grace" in await messages.raw(ctx, browser.account_id, sent.id)
    assert await subjects(ctx, browser) == {"greeting": "Hello {{name}}"}


async def test_a_test_that_cannot_be_sent_says_why(ctx: context.Context, browser: Browser) -> None:
    await put(ctx, browser)
    assert "no domain to send from yet" in (await browser.get("/templates/greeting")).text
    fields = {**GREETING, "values": "{}", "sender": "hello@mine.example"}
    broken = await browser.post("/templates/greeting/test", {**fields, "text": "{{"})
    assert (broken.status_code, "is not a placeholder" in broken.text) == (400, True)
    foreign = await browser.post("/templates/greeting/test", {**fields, "values": ADA})
    assert foreign.status_code == errors.Forbidden.status
    assert not (await messages.page(ctx, browser.account_id, messages.Filters(), limit=1, cursor=None)).messages
