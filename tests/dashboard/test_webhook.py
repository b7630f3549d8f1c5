"""The pages of a webhook: made, its secret shown once, tried out, its log, and what failed replayed."""

import dataclasses
import re
from collections.abc import Iterator

import pytest
import trustme

from postroad import config, context
from postroad.dashboard.framework import snippets
from postroad.dashboard.settings import webhooks
from postroad.model.events import events
from postroad.model.units import times
from postroad.services.webhooks import delivery_log, endpoint_settings, endpoints
from postroad.storage.mail import webhooks as mail_webhooks
from tests import contexts, event_formats, webhook_rows, webhook_server
from tests.dashboard import browser_client, sample_account
from tests.dashboard.browser_client import Browser
from tests.docs import test_webhook_examples
from tests.webhook_rows import URL, State

ENDPOINT = {"url": URL, "preset": "custom", "events": ["email.delivered", "email.bounced"]}
SECRET = re.compile(r"whsec_[A-Za-z0-9]{44}")


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def settings(database_url: str, authority: trustme.CA) -> Iterator[config.Settings]:
    """With an endpoint that the service trusts."""
    with webhook_server.authority_file(authority) as ca_file:
        yield webhook_rows.settings(database_url, ca_file=ca_file)


async def put_webhook(ctx: context.Context, browser: Browser, url: str = URL) -> str:
    """The page of a new webhook."""
    return f"/webhooks/{(await endpoints.save(ctx, browser.account_id, url=url)).webhook.id}"


async def statuses(ctx: context.Context, browser: Browser) -> list[str]:
    return [entry.status for entry in (await delivery_log.page(ctx, browser.account_id, limit=100)).rows]


async def test_without_a_webhook_the_page_teaches(browser: Browser, reader: Browser) -> None:
    text = (await browser.get("/webhooks")).text
    assert "No webhooks yet" in text
    assert "def is_genuine(" in text
    assert "&#34;type&#34;: &#34;email.bounced&#34;" in text
    assert "after 5 seconds, 5 minutes, 30 minutes, 2 hours, 5 hours and 10 hours." in text
    assert 'value="http://postroad.test/v1/inbox/webhook"' in text
    seen = (await reader.get("/webhooks")).text
    assert "Developers, admins and owners can create one." in seen
    assert 'action="/webhook' not in seen


def test_the_code_is_that_of_the_documentation() -> None:
    documented = {code.strip() for code in test_webhook_examples.CODE.values()}
    assert len(snippets.sources().verification) == 3
    for snippet in snippets.sources().verification:
        assert snippet.text.strip() in documented
    assert set(webhooks.EVENTS) == set(events.SUBSCRIBABLE)


async def test_a_webhook_of_another_service_keeps_its_events_when_its_page_is_saved(
    ctx: context.Context, browser: Browser
) -> None:
    wanted = endpoint_settings.Changes(url=URL, format_events=["sent"])
    made = await endpoints.create(event_formats.with_format(ctx), browser.account_id, wanted, of_format="other")
    page = f"/webhooks/{made.webhook.id}"
    text = (await browser.get(f"{page}/settings")).text
    assert "<code>other</code>" in text
    assert "<code>sent</code>" in text
    assert 'name="version"' not in text
    assert 'name="events"' not in text
    assert "Verify signatures" not in (await browser.get(f"{page}/secret")).text, "the guide is about our own format"
    form = {"url": f"{URL}/2", "enabled": "true", "tags": "invoice"}
    assert browser_client.notice_of(await browser.post(f"{page}/settings", form)) == "Webhook saved."
    saved = await endpoints.get(ctx, browser.account_id, made.webhook.id)
    assert (saved.url, saved.events, saved.format_events, saved.tags) == (
        f"{URL}/2",
        "email.accepted",
        "sent",
        "invoice",
    )


async def test_its_creation_shows_the_secret_and_no_later_page_does(ctx: context.Context, browser: Browser) -> None:
    made = await browser.post("/webhooks", ENDPOINT)
    assert made.status_code == 201
    (secret,) = set(SECRET.findall(made.text))
    (saved,) = await endpoints.of_account(ctx, browser.account_id)
    assert (saved.url, saved.events, saved.enabled, saved.is_first) == (URL, "email.delivered email.bounced", 1, 1)
    page = f"/webhooks/{saved.id}"
    assert f'class="button" href="{page}"' in made.text
    for path in (page, f"{page}/settings", f"{page}/secret"):
        assert not SECRET.search((await browser.get(path)).text)
    assert f"whsec_…{secret[-4:]}" in (await browser.get(f"{page}/secret")).text
    form = {"url": f"{URL}/2", "preset": "custom", "events": "email.failed"}
    changed = await browser.post(f"{page}/settings", form)
    assert browser_client.notice_of(changed) == "Webhook saved and disabled."
    text = (await browser.follow(changed)).text
    assert "status-disabled" in text
    assert f'value="{URL}/2"' in text
    assert re.search(r'value="email.failed" checked', text)
    assert not re.search(r'value="email.delivered" checked', text)
    again = await browser.post(f"{page}/settings", {**ENDPOINT, "enabled": "true"})
    assert browser_client.notice_of(again) == "Webhook saved."


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"url": "https://10.1.2.3/"}, "url: "),
        ({"url": ""}, "url: "),
        ({"events": "email.opened"}, "events[0]: must be one of"),
        ({"events": ""}, "events: select at least one"),
        ({"preset": "most"}, "preset: "),
    ],
)
async def test_what_cannot_be_an_endpoint_is_refused(
    ctx: context.Context, browser: Browser, fields: dict[str, str], sentence: str
) -> None:
    answer = await browser.post("/webhooks", {**ENDPOINT, **fields})
    assert answer.status_code == 400
    assert sentence in answer.text
    assert await endpoints.find(ctx, browser.account_id) is None


async def test_a_new_secret_is_shown_once(ctx: context.Context, browser: Browser) -> None:
    saved = await endpoints.save(ctx, browser.account_id, url=URL)
    page = f"/webhooks/{saved.webhook.id}/secret"
    assert "Hours to keep the old secret valid" in (await browser.get(page)).text
    valid = []
    for hours in ("24", "0"):
        made = await browser.post(page, {"overlap_hours": hours})
        assert made.status_code == 201
        (secret,) = set(SECRET.findall(made.text))
        assert secret != saved.secret
        assert secret not in (await browser.get(page)).text
        async with ctx.store.reading() as tx:
            valid.append(len(await mail_webhooks.secrets(tx, [saved.webhook.id], now=ctx.clock())))
    assert valid == [2, 1]
    refused = await browser.post(page, {"overlap_hours": "999"})
    assert (refused.status_code, "overlap_hours: must be 1 to 168" in refused.text) == (400, True)
    assert (await browser.post(page, {"overlap_hours": ""})).status_code == 400


async def test_a_test_event_leads_to_its_delivery(
    ctx: context.Context, browser: Browser, clock: contexts.Clock, authority: trustme.CA
) -> None:
    async with webhook_server.running(authority=authority) as server:
        page = await put_webhook(ctx, browser, server.literal_url)
        sent = await browser.post(f"{page}/ping")
        assert browser_client.notice_of(sent) == "Test event accepted."
        shown = (await browser.follow(sent)).text
        assert "webhook.test" in shown
        assert "<h3>200</h3>" in shown
        too_soon = await browser.post(f"{page}/ping")
        assert (too_soon.status_code, "A ping was sent a moment ago" in too_soon.text) == (429, True)
        clock.pass_seconds(60)
        server.answer = webhook_server.ok(500, sample_account.HOSTILE.encode())
        failed = await browser.post(f"{page}/ping")
    assert browser_client.notice_of(failed) == "Test event not accepted. See the attempt below."
    shown = (await browser.follow(failed)).text
    assert "Your endpoint returned a server error." in shown
    assert '<p class="notice bad" role="alert" tabindex="-1">Test event not accepted.' in shown
    assert "<script>alert" not in shown


async def test_a_webhook_is_removed_with_its_log(ctx: context.Context, browser: Browser) -> None:
    page = await put_webhook(ctx, browser)
    await webhook_rows.put_ended(ctx, browser.account_id)
    removed = await browser.post(f"{page}/remove")
    assert browser_client.notice_of(removed) == "Webhook removed, with its secret and log."
    assert await endpoints.find(ctx, browser.account_id) is None
    assert "No webhooks yet" in (await browser.follow(removed)).text
    assert (await browser.post(f"{page}/remove")).status_code == 404


async def test_the_log_shows_who_how_and_what_came_of_it(ctx: context.Context, browser: Browser) -> None:
    page = await put_webhook(ctx, browser)
    assert "No deliveries yet" in (await browser.get(page)).text
    body = events.body(
        "evt_1",
        events.EventType.BOUNCED,
        created_at=ctx.clock(),
        data=events.Data(to='"<script>alert(1)</script>\u202e"@example.net'),
    )
    kind = events.EventType.BOUNCED
    failed = await webhook_rows.put_ended(ctx, browser.account_id, State.FAILED, body=body, event_type=kind)
    waiting = await webhook_rows.put(ctx, browser.account_id, state=State.WAITING, due_at=ctx.clock() + times.HOUR)
    error = "timeout: no complete answer within 5 seconds"
    await webhook_rows.put_attempt(ctx, waiting, 1, status_code=None, response_body=None, error=error)
    text = (await browser.get(page)).text
    for delivery in (failed, waiting):
        assert f'href="{page}/deliveries/{delivery.id}"' in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "\u202e" not in text
    assert "status-failed" in text
    assert ">timeout<" in text
    assert '500 <span class="muted small">in 12 ms</span>' in text
    assert f'next <time datetime="{times.to_wire(ctx.clock() + times.HOUR)}"' in text
    assert '<div id="log" data-live>' in text


async def test_the_log_is_filtered_by_status_and_by_message(ctx: context.Context, browser: Browser) -> None:
    page = await put_webhook(ctx, browser)
    other = "em_" + "2" * 28
    made = {
        "failed": (await webhook_rows.put_ended(ctx, browser.account_id, State.FAILED)).id,
        "succeeded": (await webhook_rows.put_ended(ctx, browser.account_id, message_id=other)).id,
        "pending": (await webhook_rows.put(ctx, browser.account_id)).id,
    }
    for status, own in made.items():
        text = (await browser.get(page, status=status, message="")).text
        assert [one for one in made.values() if one in text] == [own]
    assert made["succeeded"] in (await browser.get(page, message=f" {other} ")).text
    for message in ("em_unknown", "<script>", "\0"):
        text = (await browser.get(page, message=message)).text
        assert "No deliveries match." in text
        assert "<script>" not in text
    assert (await browser.get(page, before="nonsense")).status_code == 400
    assert (await browser.get(page, status="lost")).status_code == 400


async def test_what_failed_in_a_period_is_sent_again(
    ctx: context.Context, browser: Browser, clock: contexts.Clock
) -> None:
    page = await put_webhook(ctx, browser)
    then = ctx.clock() - 2 * times.DAY
    await webhook_rows.put_ended(dataclasses.replace(ctx, clock=lambda: then), browser.account_id, State.FAILED)
    day = times.to_wire(then)[:10]
    await webhook_rows.put_ended(ctx, browser.account_id, State.FAILED)
    clock.pass_seconds(10)
    last = await browser.post(f"{page}/replay", {"period": "24h"})
    assert browser_client.notice_of(last) == "Replaying 1 event."
    assert await statuses(ctx, browser) == ["pending", "failed", "failed"]
    nothing = await browser.post(f"{page}/replay", {"period": "24h"})
    assert browser_client.notice_of(nothing).startswith("No events to replay")
    of_day = await browser.post(f"{page}/replay", {"period": "days", "from_day": day, "to_day": day})
    assert browser_client.notice_of(of_day) == "Replaying 1 event."
    assert await statuses(ctx, browser) == ["pending", "pending", "failed", "failed"]


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"period": "days"}, "from_day: choose a day"),
        ({"period": "days", "from_day": "2026-01-31"}, "to_day: choose a day"),
        ({"period": "days", "from_day": "31.1.2026", "to_day": "2026-01-31"}, "from_day: write the date as"),
        ({"period": "days", "from_day": "2026-02-30", "to_day": "2026-03-01"}, "from_day: write the date as"),
        ({"period": "days", "from_day": "2026-02-03", "to_day": "2026-02-01"}, "before: must be later than after"),
        ({"period": "24h", "from_day": "2026-01-31"}, "leave the days blank"),
        ({"period": "for ever"}, "period: "),
        ({}, "period: "),
    ],
)
async def test_a_period_that_is_none_is_refused(
    ctx: context.Context, browser: Browser, fields: dict[str, str], sentence: str
) -> None:
    page = await put_webhook(ctx, browser)
    await webhook_rows.put_ended(ctx, browser.account_id, State.FAILED)
    answer = await browser.post(f"{page}/replay", fields)
    assert answer.status_code == 400
    assert sentence in answer.text
    assert await statuses(ctx, browser) == ["failed"]
