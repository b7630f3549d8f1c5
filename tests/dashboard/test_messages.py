"""The page of messages and its search box."""

import functools
import html
import re
from urllib import parse

import pytest

from postroad import context
from postroad.dashboard.framework import navigation
from postroad.dashboard.mail import message_list as page
from postroad.model.mail import statuses
from postroad.model.search import search_query
from postroad.services.messages import lookup as messages
from tests import accepted_mail, contexts
from tests.dashboard.browser_client import Browser
from tests.dashboard.sample_account import HOSTILE


async def send(ctx: context.Context, browser: Browser, *subjects: str, **fields: object) -> list[str]:
    """Messages with these subjects, oldest first."""
    return [await accepted_mail.accept(ctx, browser.account_id, subject=one, **fields) for one in subjects]  # type: ignore[arg-type]


def listed(text: str) -> list[str]:
    """The messages on a page, in their order."""
    return re.findall(r'<a class="row-link" href="/messages/(em_[0-9a-f]+)["?]', text)


def links(text: str, label: str) -> dict[str, str]:
    """What the choices of one kind search for."""
    (nav,) = re.findall(rf'<nav class="choices" aria-label="{label}">(.*?)</nav>', text, re.DOTALL)
    found = re.findall(r'<a href="([^"]*)"[^>]*>([^<]*)</a>', nav)
    return {
        name: parse.parse_qs(parse.urlsplit(html.unescape(path)).query).get("search", [""])[0] for path, name in found
    }


async def test_an_account_without_mail_is_led_to_its_first(browser: Browser) -> None:
    answer = await browser.get("/messages")
    assert answer.status_code == 200
    assert "No messages yet" in answer.text
    assert 'href="/welcome"' in answer.text


async def test_the_newest_message_comes_first_and_text_of_others_is_only_text(
    ctx: context.Context, browser: Browser, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    first, *_ = await send(ctx, browser, "First")
    clock.now += contexts.SECOND
    (second,) = await send(ctx, browser, HOSTILE + "\u202egnp", sender=f'"{HOSTILE[:25]}" <shop@example.com>')
    text = (await browser.get("/messages")).text
    assert listed(text) == [second, first]
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert 'id="results" data-live' in text


async def test_a_search_shows_what_it_finds_and_keeps_its_words(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    (invoice,) = await send(ctx, browser, "Invoice 7", tags=("a & b",), to=("ada@example.net", "bob@example.net"))
    await send(ctx, browser, "Welcome")
    for search in ("invoice", 'tag:"a & b"', f"id:{invoice}", "to:bob@example.net", "after:1d 7"):
        text = (await browser.get("/messages", search=search)).text
        assert listed(text) == [invoice], search
        assert f'value="{html.escape(search, quote=False).replace(chr(34), "&#34;")}"' in text
        assert "and 1 more" in text


async def test_the_messages_are_counted(
    ctx: context.Context, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await send(ctx, browser, "Invoice 1", "Invoice 2", "Welcome")
    for search, counted in (("", "3 messages"), ("invoice", "2 messages"), ("welcome", "1 message"), ("zebra", "")):
        text = (await browser.get("/messages", search=search)).text
        assert re.findall(r'<p id="count" class="muted" data-live>([^<]*)</p>', text) == [counted]
    # A page that is not full has been counted.
    monkeypatch.setattr(page, "ROWS", 2)
    assert "3 messages" in (await browser.get("/messages")).text
    monkeypatch.setattr(messages, "MAX_COUNT", 2)
    assert "more than 2 messages" in (await browser.get("/messages")).text


async def test_a_domain_that_was_searched_as_a_word_is_suggested(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await send(ctx, browser, "Welcome")
    text = (await browser.get("/messages", search="example.net")).text
    assert 'Did you mean <a href="/messages?search=to%3A%40example.net"><code>to:@example.net</code></a>?' in text


async def test_a_search_that_finds_nothing_can_be_widened(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await send(ctx, browser, "Welcome")
    text = (await browser.get("/messages", search="zebra status:failed after:1d")).text
    assert "No messages match" in text
    assert 'href="/messages?search=zebra"' in text


@pytest.mark.parametrize(
    "search, wrong, sentence",
    [
        ("invoice stauts:failed x", "stauts:failed", "did you mean status:"),
        ("status:sent", "status:sent", "must be one of"),
        ('a "b', "&#34;b", "not closed"),
        ("<script>alert(1)</script> to:<script>", "to:&lt;script&gt;", "to:"),
    ],
)
async def test_a_wrong_search_is_kept_and_its_wrong_part_is_marked(
    ctx: context.Context, browser: Browser, search: str, wrong: str, sentence: str
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await send(ctx, browser, "Welcome")
    answer = await browser.get("/messages", search=search)
    assert answer.status_code == 400
    assert f"<mark>{wrong}</mark>" in answer.text
    assert sentence in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert html.unescape(re.findall(r'name="search"[^>]* value="([^"]*)"', answer.text)[0]) == search
    assert "<script>alert" not in answer.text
    assert listed(answer.text) == []
    assert answer.headers["x-request-id"] not in answer.text


async def test_filters_change_one_term_and_leave_the_others(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    text = (await browser.get("/messages", search="invoice status:failed after:2d before:1d")).text
    assert links(text, "Status") == {
        "All": "after:2d before:1d invoice",
        **{one.title(): f"status:{one} after:2d before:1d invoice" for one in statuses.MessageStatus},
    }
    assert links(text, "Accepted") == {
        "Any time": "status:failed invoice",
        "Last 24 hours": "status:failed after:24h invoice",
        "Last 7 days": "status:failed after:7d invoice",
    }
    assert re.findall(r'aria-current="true">([^<]*)<', text) == ["Live", "Failed"]


async def test_live_and_test_messages_are_behind_a_switch(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    (live,) = await send(ctx, browser, "Invoice")
    (test,) = await send(ctx, browser, "Invoice", is_test=True)
    page = (await browser.get("/messages", search="invoice")).text
    assert listed(page) == [live]
    assert links(page, "Mode") == {"Live": "invoice", "Test": "mode:test invoice"}
    page = (await browser.get("/messages", search="mode:test invoice")).text
    assert listed(page) == [test]
    assert 'class="status status-test">test<' in page
    assert re.findall(r'aria-current="true">([^<]*)<', page)[0] == "Test"
    assert listed((await browser.get("/messages", search=test)).text) == [test]
    assert "goes to the simulator only" in (await browser.get(f"/messages/{test}")).text
    assert "goes to the simulator only" not in (await browser.get(f"/messages/{live}")).text


async def test_every_example_of_the_help_is_a_link_that_runs(browser: Browser) -> None:
    text = (await browser.get("/messages")).text
    for _, _, example in search_query.HELP:
        assert f'href="{html.escape(navigation.messages_url(example))}"' in text
        assert (await browser.client.get(navigation.messages_url(example))).status_code == 200


async def test_only_the_first_part_of_the_list_is_live(
    ctx: context.Context, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "ROWS", 2)
    await accepted_mail.allow_sending(ctx, browser.account_id)
    sent = await send(ctx, browser, "One", "Two", "Three")
    first = (await browser.get("/messages")).text
    (following,) = re.findall(r'<nav class="more"[^>]*><a [^>]*href="([^"]*)"', first)
    second = (await browser.client.get(html.unescape(following))).text
    assert sorted(listed(first) + listed(second)) == sorted(sent)
    assert "data-live>" in first.partition('id="content"')[2]
    assert "data-live>" not in second.partition('id="content"')[2]


async def test_a_search_that_was_cut_says_how_far_it_came(
    ctx: context.Context, browser: Browser, monkeypatch: pytest.MonkeyPatch, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    for number in range(5):
        clock.now += contexts.SECOND
        await send(ctx, browser, f"Letter {number}")
    monkeypatch.setattr(messages, "search", functools.partial(messages.search, examined=2))
    text = (await browser.get("/messages", search='"letter 0"')).text
    assert "Searched back to" in text
    assert "Continue" in text
    for _ in range(5):
        found = re.findall(r'<nav class="more"[^>]*><a [^>]*href="([^"]*)"', text)
        if not found:
            break
        text = (await browser.client.get(html.unescape(found[0]))).text
    assert len(listed(text)) == 1


async def test_typed_dates_are_in_the_time_zone_of_the_person(ctx: context.Context, browser: Browser) -> None:
    """The clock says 2027-01-15 08:00 in UTC, which is 22:00 in Kiritimati."""
    await accepted_mail.allow_sending(ctx, browser.account_id)
    sent = await send(ctx, browser, "invoice")
    assert listed((await browser.get("/messages", search="after:2027-01-15T21:00")).text) == []
    await browser.post("/profile/time-zone", {"time_zone": "Pacific/Kiritimati"})
    text = (await browser.get("/messages", search="after:2027-01-15T21:00")).text
    assert listed(text) == sent
    assert "2027-01-15 22:00:00</time>" in text
    assert "Dates and times without a zone are in Pacific/Kiritimati" in text
