"""`/` over HTTP: what it shows of an account's mail, and what it says to those who have none."""

import html
import re
from urllib import parse

import pytest
from msgspec import structs

from postroad import context
from postroad.dashboard.mail import overview
from postroad.model.bounces import disposition
from postroad.model.units import chart_ranges, times
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.services.domains import domain_registry as domains
from postroad.services.operations import destinations
from tests import accepted_mail, bounce_counts
from tests.contexts import Clock
from tests.dashboard import browser_client, sample_account
from tests.dashboard.browser_client import Browser
from tests.services import claimed_mail

LIVE = ("verdict", "first-mail", "periods", "tiles", "charts", "standing", "providers", "failures")


async def send(ctx: context.Context, account_id: str, *to: str, **fields: object) -> str:
    """A message that is accepted, and no more."""
    return await accepted_mail.accept(ctx, account_id, to=to or ("ada@example.net",), **fields)  # type: ignore[arg-type]


async def end(ctx: context.Context, verdict: disposition.Verdict, *, code: int, response: str, count: int = 1) -> None:
    """All that is ready comes to this."""
    for claimed in await claimed_mail.claim_all(ctx, claimed_mail.WORKER):
        reported = claimed_mail.outcome(ctx, claimed, verdict, recipient_count=count, code=code, response=response)
        await ctx.outcome_commits.submit([reported])


def words(text: str) -> str:
    """What a page says, without its tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


async def test_who_has_never_sent_can_send_a_test_at_once(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    page = await browser.get("/")
    assert page.status_code == 200
    assert "Send your first email" in page.text
    assert 'action="/welcome/test"' in page.text
    assert 'value="owner@mine.example"' in page.text
    assert "hello@example.com" in page.text
    assert "<figure" not in page.text
    assert 'name="use_builtin_endpoint" value="true" checked' in page.text


async def test_who_has_no_domain_is_led_to_the_domains(ctx: context.Context, browser: Browser) -> None:
    await credits.add(ctx, browser.account_id, 10, None)
    page = await browser.get("/")
    assert '<a class="button" href="/domains">Add a domain</a>' in page.text
    assert 'action="/welcome/test"' not in page.text


@pytest.mark.parametrize("path", ["/", "/welcome"])
async def test_whose_domain_is_not_verified_is_led_to_its_records(
    ctx: context.Context, browser: Browser, path: str
) -> None:
    await credits.add(ctx, browser.account_id, 10, None)
    domain = await domains.add(ctx, browser.account_id, "shop.example", verified=False)
    page = await browser.get(path)
    assert f'<a class="button" href="/domains/{domain.id}">See the records</a>' in page.text
    assert "Add a domain" not in page.text


async def test_who_may_only_look_is_shown_no_form(ctx: context.Context, reader: Browser) -> None:
    page = await reader.get("/")
    assert "Ask a developer, an admin or an owner to verify a domain." in page.text
    assert "Add it here" not in page.text
    await accepted_mail.allow_sending(ctx, reader.account_id)
    page = await reader.get("/")
    assert "Ask a developer, an admin or an owner to send a test." in page.text
    assert 'action="/welcome/test"' not in page.text


async def test_what_was_sent_is_counted(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    for number in range(3):
        await send(ctx, browser.account_id, f"ada{number}@example.net")
    await end(ctx, disposition.Verdict.DELIVERED, code=250, response="Ok")
    await send(ctx, browser.account_id, "bob@example.net")
    await end(ctx, disposition.Verdict.BOUNCED, code=550, response="no such user")
    await send(ctx, browser.account_id, "eve@example.net")
    text = words((await browser.get("/")).text)
    assert "Messages 5 to 5 recipients" in text
    assert "Delivered 75.0% 3 of 4" in text
    assert "Bounced 25.0% 1 of 4" in text
    assert "Failed 0% 0 of 4" in text
    assert "Queued 1 recipient" in text
    account = await accounts.find(ctx, browser.account_id)
    assert f"Credits left {account.available}" in text
    assert "Send your first email" not in text


async def test_figures_are_compared_with_the_period_before(
    ctx: context.Context, clock: Clock, served: browser_client.Served, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    for address in ("a@example.net", "b@example.net"):
        await send(ctx, browser.account_id, address)
    await end(ctx, disposition.Verdict.BOUNCED, code=550, response="no")
    clock.pass_seconds(30 * 3600)
    await send(ctx, browser.account_id, "c@example.net")
    await end(ctx, disposition.Verdict.DELIVERED, code=250, response="Ok")
    assert browser.user is not None
    async with browser_client.open_browser(ctx, served, browser.user) as later:
        text = words((await later.get("/", period="24h")).text)
    assert "Messages 1 to 1 recipient ↓ 50% compared with the previous 24 hours" in text
    assert "Delivered 100% 1 of 1 ↑ 100.0%" in text
    assert "Bounced 0% 0 of 1 ↓ 100.0%" in text


@pytest.mark.parametrize("period, rows", [("24h", 24), ("7d", 28), ("30d", 30), ("90d", 90)])
async def test_charts_are_tables_first(ctx: context.Context, browser: Browser, period: str, rows: int) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await send(ctx, browser.account_id)
    page = await browser.get("/", period=period)
    for figure in re.findall(r"<figure.*?</figure>", page.text, re.DOTALL):
        body = figure.partition("<tbody>")[2]
        assert body.count("<tr>") == rows
        assert "Show as table" in figure
    assert page.text.count("<figure") == 2
    assert f'href="/?period={period}" aria-current="true"' in page.text


async def test_days_and_hours_are_those_of_the_reader(ctx: context.Context, browser: Browser) -> None:
    """The clock says 2027-01-15 08:00 in UTC, which is 22:00 in Kiritimati and 13:30 in Kolkata."""
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await send(ctx, browser.account_id)
    last = r'<td data-value="(\d+)"><a href="([^"]*)">(?:<time[^>]*>)?([^<]*)<.*</tr>\s*</tbody>'
    found = {}
    for zone in ("UTC", "Pacific/Kiritimati", "Asia/Kolkata"):
        await browser.post("/profile/time-zone", {"time_zone": zone})
        for period in ("30d", "24h"):
            cells = re.search(last, (await browser.get("/", period=period)).text)
            assert cells is not None
            found[zone, period] = (times.to_wire(int(cells[1]) * 1_000_000)[:16], cells[3])
    assert found == {
        ("UTC", "30d"): ("2027-01-15T00:00", "2027-01-15"),
        ("UTC", "24h"): ("2027-01-15T08:00", "2027-01-15 08:00:00"),
        ("Pacific/Kiritimati", "30d"): ("2027-01-14T10:00", "2027-01-15"),
        ("Pacific/Kiritimati", "24h"): ("2027-01-15T08:00", "2027-01-15 22:00:00"),
        ("Asia/Kolkata", "30d"): ("2027-01-14T18:00", "2027-01-15"),
        ("Asia/Kolkata", "24h"): ("2027-01-15T08:00", "2027-01-15 13:30:00"),
    }


def searches(text: str) -> list[str]:
    """What the links of a page search for."""
    found = re.findall(r'href="/messages\?([^"]*)"', text)
    return [parse.parse_qs(html.unescape(query))["search"][0] for query in found]


async def test_every_number_leads_to_the_list_that_it_counts(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    for address in ("a@example.net", "b@example.net"):
        await send(ctx, browser.account_id, address)
    await end(ctx, disposition.Verdict.BOUNCED, code=550, response="no")
    page = (await browser.get("/", period="30d")).text
    since = "after:2026-12-17T00:00Z"
    tiles = page.partition('id="tiles"')[2].partition('id="charts"')[0]
    assert searches(tiles) == [
        since,
        f"outcome:delivered {since}",
        f"status:bounced {since}",
        f"outcome:failed OR outcome:expired {since}",
        "status:queued",
    ]
    charts = page.partition('id="charts"')[2].partition('id="standing"')[0]
    assert searches(charts)[:5] == [
        f"outcome:delivered {since}",
        f"status:bounced {since}",
        f"outcome:failed OR outcome:expired {since}",
        f"{since} before:2026-12-18T00:00Z",
        "after:2026-12-18T00:00Z before:2026-12-19T00:00Z",
    ]
    assert "status:bounced after:2027-01-15T00:00Z" in searches(charts)
    providers = page.partition('id="providers"')[2].partition('id="failures"')[0]
    assert searches(providers) == [f"provider:others {since}", f"provider:others status:bounced {since}"]
    # The list of the first tile has the messages that the tile counts.
    assert "Messages 2 to 2 recipients" in words(tiles)
    listed = await browser.get(html.unescape(re.findall(r'href="(/messages[^"]*)"', tiles)[0]))
    assert len(set(re.findall(r"/messages/(em_[0-9a-f]{28})", listed.text))) == 2


async def test_days_of_ones_choice_are_shown_and_compared(
    ctx: context.Context, clock: Clock, served: browser_client.Served, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await send(ctx, browser.account_id, "a@example.net")
    clock.pass_seconds(25 * 3600)
    await send(ctx, browser.account_id, "b@example.net")
    await send(ctx, browser.account_id, "c@example.net")
    assert browser.user is not None
    async with browser_client.open_browser(ctx, served, browser.user) as later:
        page = (await later.get("/", **{"from": "2027-01-15", "until": "2027-01-15"})).text
        assert "Messages 1 to 1 recipient" in words(page)
        assert "after:2027-01-15T00:00Z before:2027-01-16T00:00Z" in searches(page)
        assert "2027-01-15." in words(page)
        text = words((await later.get("/", **{"from": "2027-01-16"})).text)
        assert "Messages 2 to 2 recipients ↑ 100% compared with the day before" in text
        for wrong, problem in (
            ({"from": "soon"}, "from: write the date as 2026-01-31"),
            ({"until": "2027-01-15"}, "from: choose a day"),
            ({"from": "2027-02-01"}, "from: must not be in the future"),
            ({"domain": "not a domain"}, "is not a domain name"),
        ):
            refused = await later.get("/", **wrong)
            assert refused.status_code == 400
            assert problem in html.unescape(refused.text)


async def test_mail_is_counted_by_sender_domain_and_tag(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await send(ctx, browser.account_id, "a@example.net", tags=("black friday",))
    await end(ctx, disposition.Verdict.DELIVERED, code=250, response="Ok")
    await send(ctx, browser.account_id, "b@example.net", tags=("receipt",))
    await end(ctx, disposition.Verdict.BOUNCED, code=550, response="no")
    page = (await browser.get("/", tag="black friday")).text
    assert "Messages 1 to 1 recipient Delivered 100% 1 of 1 Bounced 0% 0 of 1" in words(page)
    assert "Only mail with the tag black friday ." in words(page)
    assert any(search.startswith('tag:"black friday" after:') for search in searches(page))
    assert "Queued" not in words(page.partition('id="tiles"')[2].partition('id="charts"')[0])
    page = (await browser.get("/", domain="Example.COM", tag="")).text
    assert "Messages 2 to 2 recipients Delivered 50.0% 1 of 2 Bounced 50.0% 1 of 2" in words(page)
    assert any(search.startswith("from:@example.com after:") for search in searches(page))
    assert "Messages 0 to 0 recipients" in words((await browser.get("/", domain="other.example")).text)


async def test_delivery_times_are_shown_by_provider(ctx: context.Context, clock: Clock, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    for seconds in (1.5, 90):
        await send(ctx, browser.account_id, f"{int(seconds)}@example.net")
        clock.pass_seconds(seconds)
        await end(ctx, disposition.Verdict.DELIVERED, code=250, response="Ok")
    assert "All others 0% 2 0 0 0 0 0 1.5 s 2 min" in words((await browser.get("/")).text)


async def test_nothing_is_compared_with_a_period_without_mail(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await send(ctx, browser.account_id)
    page = (await browser.get("/", period="24h")).text
    assert "compared with" not in page
    assert "Last 24 hours." not in page


async def test_a_failed_recipient_is_not_promised_another_attempt(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await send(ctx, browser.account_id)
    (claimed,) = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    reported = claimed_mail.outcome(ctx, claimed, disposition.Verdict.FAILED, code=None, response="timed out")
    assert reported.attempt is not None
    fault = disposition.Fault.NETWORK
    attempt = structs.replace(reported.attempt, reason="connection_timed_out", fault=fault)
    await ctx.outcome_commits.submit([structs.replace(reported, attempt=attempt)])
    text = words((await browser.get("/")).text)
    assert f"Retries ended. The connection to the receiving server timed out. {disposition.FAULT_LABELS[fault]}" in text
    # "Expired" is the status of a message whose own deadline has passed.
    message = words((await browser.get(f"/messages/{claimed.message_id}")).text)
    assert f"Failed: {claimed.email}" in message
    assert "Expired" not in message


async def test_failures_are_shown_in_plain_words_and_hostile_replies_stay_text(
    ctx: context.Context, browser: Browser
) -> None:
    ids = await sample_account.create_sample_data(ctx, browser.account_id, domain="example.com")
    page = await browser.get("/")
    assert sample_account.HOSTILE not in page.text
    assert "<script>alert" not in page.text
    assert "onerror=alert(2)&gt;" in page.text
    assert f'href="/messages/{ids["message"]}"' in page.text
    assert "Unrecognized reason" in page.text  # `because` is what the tests' attempts say


async def test_what_waits_longest_is_shown_with_the_reason(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await send(ctx, browser.account_id, "slow@example.net")
    await end(ctx, disposition.Verdict.RETRY, code=451, response="come back later")
    text = (await browser.get("/")).text
    waiting = text.partition('id="waiting"')[2].partition("</section>")[0]
    assert f'href="/messages/{message_id}"' in waiting
    assert "example.net asked us to try later (2.0.0)." in waiting
    assert "come back later" in waiting
    assert "Next attempt in 1 second, at <time datetime=" in waiting
    assert "1 attempt" in waiting
    (queued,) = re.findall(r'href="(/messages\?[^"]+)"', waiting)
    assert message_id in (await browser.get(queued)).text


async def test_the_limits_of_the_guard_are_shown_in_words_as_well(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await send(ctx, browser.account_id)
    page = (await browser.get("/")).text
    assert "Warning at 4%, suspension at 8%." in page
    assert "Warning at 0.08%, suspension at 0.3%." in page
    assert "We take no action below 200 recipients." in page
    await bounce_counts.count(ctx, browser.account_id, recipients=3, bounces=1)
    page = (await browser.get("/")).text
    assert '<span class="meter-value">33.33%</span>' in page
    assert "33.33% of recipients (1 of 3)" in page


def test_a_meter_keeps_its_lines_apart_whatever_the_share_is() -> None:
    for percent in (0.0, 3.0, 5.0, 9.0, 50.0, 100.0):
        meter = overview.Meter("Unknown addresses", 1, percent, 4.0, 8.0)
        assert 0 <= meter.position(percent) <= 100
        assert meter.position(8.0) - meter.position(4.0) >= 20
    levels = [overview.Meter("", 1, percent, 4.0, 8.0).level for percent in (3.9, 4.0, 8.0)]
    assert levels == ["good", "warn", "bad"]


async def test_the_first_line_says_that_all_is_normal_or_what_is_not(
    ctx: context.Context, clock: Clock, served: browser_client.Served, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    assert "All normal" not in (await browser.get("/")).text  # nothing was sent yet
    for verdict in (disposition.Verdict.DELIVERED, disposition.Verdict.BOUNCED):
        await send(ctx, browser.account_id)
        await end(ctx, verdict, code=250, response="Ok")
    clock.pass_seconds(24 * 3600)
    await send(ctx, browser.account_id)
    await end(ctx, disposition.Verdict.DELIVERED, code=250, response="Ok")
    assert browser.user is not None
    async with browser_client.open_browser(ctx, served, browser.user) as later:
        page = words((await later.get("/")).text)
        assert "All normal · 100% delivered today (yesterday 50.0%)" in page
        await destinations.pause(ctx, "google", reason="for a reason of ours", until=None)
        page = (await later.get("/")).text
    assert "All normal" not in page
    assert "for a reason of ours" not in page
    line = "Mail to Google is paused by the operator since 08:00 . It waits in the queue. See what waits"
    assert line in words(page)
    assert words(page).index(line) < words(page).index("100% delivered today (yesterday 50.0%).")


async def test_everything_on_the_page_is_live(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    before = (await browser.get("/")).text
    await send(ctx, browser.account_id)
    for text in (before, (await browser.get("/")).text):
        assert all(f'id="{name}" data-live' in text for name in LIVE)


def test_every_period_has_its_words() -> None:
    assert set(overview.RANGE_PERIODS) == set(chart_ranges.Period)
