"""The page of messages and its search box."""

import functools
import html
import re
from urllib import parse

import pytest

from postroad import context
from postroad.dashboard.framework import navigation
from postroad.dashboard.mail import message_filters
from postroad.dashboard.mail import message_list as page
from postroad.model.search import search_query, search_values
from postroad.services.messages import lookup as messages
from postroad.services.messages import queue_changes
from tests import accepted_mail, contexts
from tests.dashboard.browser_client import Browser
from tests.dashboard.sample_account import HOSTILE


async def send(ctx: context.Context, browser: Browser, *subjects: str, **fields: object) -> list[str]:
    """Messages with these subjects, oldest first."""
    return [await accepted_mail.accept(ctx, browser.account_id, subject=one, **fields) for one in subjects]  # type: ignore[arg-type]


def listed(text: str) -> list[str]:
    """The messages on a page, in their order."""
    return re.findall(r'<a class="row-link" href="/messages/(em_[0-9a-f]+)["?]', text)


def menu(text: str, name: str) -> dict[str, str]:
    """What can be chosen in one of the menus, by its value."""
    (options,) = re.findall(rf'<select name="{name}" [^>]*>(.*?)</select>', text, re.DOTALL)
    return dict(re.findall(r'<option value="([^"]*)"[^>]*>([^<]*)</option>', options))


def chosen(text: str) -> list[str]:
    """What the menus show, and the days of a custom range."""
    days = re.findall(r'<input type="date" name="\w+" value="([^"]*)"', text)
    return [*re.findall(r'<option value="([^"]*)" selected>', text), *days]


async def submit(browser: Browser, was: str, **changes: str) -> str:
    """The search to which the form leads that was shown for the search `was`, with these fields changed."""
    names = ("status", "period", "mode", "from", "until")
    shown = dict(zip(names, chosen((await browser.get("/messages", search=was)).text), strict=True))
    answer = await browser.get("/messages", **{"search": was, "was": was, **shown, **changes})
    assert answer.status_code == 303
    return parse.parse_qs(parse.urlsplit(answer.headers["location"]).query).get("search", [""])[0]


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
    assert '<a href="/messages?search=to%3A%40example.net">Did you mean <code>to:@example.net</code></a>' in text


async def test_a_search_that_finds_nothing_offers_those_that_find_something(
    ctx: context.Context, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await send(ctx, browser, "Welcome", "Welcome back")
    await send(ctx, browser, "Zebra", is_test=True)
    text = (await browser.get("/messages", search="welcome tag:none after:1d")).text
    assert "No messages match" in text
    (ways,) = re.findall(r'<ul class="ways">(.*?)</ul>', text, re.DOTALL)
    assert re.findall(r'href="([^"]*)">Without <code>(.*?)</code></a> <span class="muted">(.*?)</span>', ways) == [
        ("/messages?search=after%3A1d+welcome", "tag:none", "2 messages")
    ]
    text = (await browser.get("/messages", search="zebra")).text
    assert '<a href="/messages?search=mode%3Atest+zebra">As test mail</a> <span class="muted">1 message</span>' in text
    text = (await browser.get("/messages", search="tag:a tag:b")).text
    assert '<a class="button secondary" href="/messages">Show all messages</a>' in text


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


async def test_the_menu_of_statuses_counts_what_each_would_find(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await send(ctx, browser, "Invoice 1", "Invoice 2", "Welcome")
    canceled, *_ = await send(ctx, browser, "Invoice 3")
    await queue_changes.cancel_message(ctx, browser.account_id, canceled)
    statuses = menu((await browser.get("/messages", search="invoice status:delivered")).text, "status")
    assert set(statuses) == {"", *search_values.STATUSES}
    assert statuses["queued"] == "Queued (2)"
    assert statuses["canceled"] == "Canceled (1)"
    assert statuses["delivered"] == "Delivered (0)"


async def test_a_long_count_ends_soon(ctx: context.Context, browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_filters, "MAX_COUNTED", 2)
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await send(ctx, browser, "One", "Two", "Three")
    statuses = menu((await browser.get("/messages")).text, "status")
    assert (statuses["queued"], statuses["delivered"]) == ("Queued (2+)", "Delivered")


async def test_a_filter_changes_its_term_and_leaves_the_others(browser: Browser) -> None:
    """The clock says 2027-01-15 08:00."""
    search = "invoice status:failed after:24h"
    assert chosen((await browser.get("/messages", search=search)).text) == [
        "failed",
        "24h",
        "",
        "2027-01-14",
        "2027-01-15",
    ]
    assert await submit(browser, search) == search
    assert await submit(browser, search, status="") == "after:24h invoice"
    assert await submit(browser, search, status="bounced", mode="test") == "status:bounced mode:test after:24h invoice"
    assert await submit(browser, search, period="7d") == "status:failed after:7d invoice"
    assert await submit(browser, search, period="") == "status:failed invoice"
    # What was typed, and a filter that was not touched.
    assert await submit(browser, search, search="order status:queued") == "order status:queued"
    assert await submit(browser, search, search="order", mode="test") == "mode:test order"
    # A mistake is shown as it was typed.
    assert await submit(browser, search, search="stauts:failed", mode="test") == "stauts:failed"


async def test_a_custom_range_is_two_days_that_are_included(browser: Browser) -> None:
    custom = {"period": "custom", "from": "2027-01-02", "until": "2027-01-03"}
    search = "after:2027-01-02 before:2027-01-04"
    assert await submit(browser, "", **custom) == search
    assert await submit(browser, "invoice after:7d", period="custom") == "after:2027-01-08 invoice"
    assert chosen((await browser.get("/messages", search=search)).text)[1:] == [
        "custom",
        "",
        "2027-01-02",
        "2027-01-03",
    ]
    # The other day stays as it is; today has not ended yet.
    assert await submit(browser, search, **{"from": "2027-01-01"}) == "after:2027-01-01 before:2027-01-04"
    assert await submit(browser, search, until="2027-01-15") == "after:2027-01-02"
    assert await submit(browser, search, **{"from": ""}) == "before:2027-01-04"
    assert await submit(browser, search, period="") == ""
    # What no field can show is left alone.
    assert await submit(browser, "after:2027-01-02T10:00", mode="test") == "mode:test after:2027-01-02T10:00"
    await browser.post("/profile/time-zone", {"time_zone": "Pacific/Kiritimati"})
    assert await submit(browser, "", period="custom", until="2027-01-14") == "after:2026-12-16 before:2027-01-15"


async def test_the_days_of_any_search_can_be_shown(browser: Browser) -> None:
    await browser.post("/profile/time-zone", {"time_zone": "Pacific/Kiritimati"})
    for search, first, last in (
        ("before:9999-12-31T23:59Z", "2026-12-16", "9999-12-31"),
        ("after:0001-01-01 before:0001-01-02", "1969-12-31", "1969-12-31"),
    ):
        assert chosen((await browser.get("/messages", search=search)).text)[3:] == [first, last]


async def test_live_and_test_messages_are_behind_a_menu(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    (live,) = await send(ctx, browser, "Invoice")
    (test,) = await send(ctx, browser, "Invoice", is_test=True)
    page = (await browser.get("/messages", search="invoice")).text
    assert listed(page) == [live]
    assert menu(page, "mode") == {"": "Live mail", "test": "Test mail"}
    page = (await browser.get("/messages", search="mode:test invoice")).text
    assert listed(page) == [test]
    assert 'class="status status-test">test<' in page
    assert chosen(page)[2] == "test"
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
    assert 'title="2027-01-15 22:00:00 Pacific/Kiritimati' in text
    assert "Dates and times without a zone are in Pacific/Kiritimati" in text
