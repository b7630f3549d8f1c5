"""The page of the webhook: set, its secret shown once, tried out, its log, and what failed replay."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from postroad import config, context
from postroad.dashboard.framework import snippets
from postroad.dashboard.settings import webhooks
from postroad.model.events import events
from postroad.model.units import times
from postroad.services.webhooks import delivery_log, endpoint_settings, endpoints
from tests import contexts, event_formats, webhook_rows, webhook_server
from tests.dashboard import browser_client, sample_account
from tests.dashboard.browser_client import Browser
from tests.webhook_rows import URL, State

DOCUMENTATION = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text()
ENDPOINT = {"url": URL, "events": ["email.delivered", "email.bounced"], "enabled": "true"}
SECRET = re.compile(r"whsec_[A-Za-z0-9]{44}")


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def settings(database_url: str, authority: trustme.CA) -> Iterator[config.Settings]:
    """With an endpoint that the service trusts."""
    with webhook_server.authority_file(authority) as ca_file:
        yield webhook_rows.settings(database_url, ca_file=ca_file)


async def statuses(ctx: context.Context, browser: Browser) -> list[str]:
    return [entry.status for entry in (await delivery_log.page(ctx, browser.account_id, limit=100)).rows]


async def test_without_a_webhook_the_page_teaches(browser: Browser, reader: Browser) -> None:
    text = (await browser.get("/webhook")).text
    assert "Add an endpoint" in text
    assert "def is_genuine(" in text
    assert "&#34;type&#34;: &#34;email.bounced&#34;" in text
    assert "after 5 seconds, 5 minutes, 30 minutes, 2 hours, 5 hours and 10 hours." in text
    assert 'value="http://postroad.test/v1/inbox/webhook"' in text
    seen = (await reader.get("/webhook")).text
    assert "No webhook is set" in seen
    assert 'action="/webhook' not in seen


def test_the_code_is_that_of_the_documentation() -> None:
    documented = re.findall(r"<!-- verify: \w+ -->\n```\w+\n(.*?)\n```", DOCUMENTATION, re.DOTALL)
    assert len(snippets.sources().verification) == 3
    for snippet in snippets.sources().verification:
        assert snippet.text in documented
    assert set(webhooks.EVENTS) == set(events.SUBSCRIBABLE)


async def test_a_webhook_of_another_service_keeps_its_events_when_its_page_is_saved(
    ctx: context.Context, browser: Browser
) -> None:
    wanted = endpoint_settings.Changes(url=URL, format_events=["sent"])
    made = await endpoints.create(event_formats.with_format(ctx), browser.account_id, wanted, of_format="other")
    page = f"/webhooks/{made.webhook.id}"
    text = (await browser.get(page)).text
    assert "<code>other</code>" in text
    assert "<code>sent</code>" in text
    assert 'name="version"' not in text
    assert "Event format and verification" not in text, "the guide is about our own format"
    assert '<input type="hidden" name="events" value="email.accepted">' in text
    form = {"url": f"{URL}/2", "events": "email.accepted", "enabled": "true", "has_options": "true", "tags": "invoice"}
    assert browser_client.notice_of(await browser.post(page, form)) == "Webhook saved."
    saved = await endpoints.get(ctx, browser.account_id, made.webhook.id)
    assert (saved.url, saved.events, saved.format_events, saved.tags) == (
        f"{URL}/2",
        "email.accepted",
        "sent",
        "invoice",
    )


async def test_the_first_save_shows_the_secret_and_no_later_page_does(ctx: context.Context, browser: Browser) -> None:
    made = await browser.post("/webhook", ENDPOINT)
    assert made.status_code == 201
    (secret,) = set(SECRET.findall(made.text))
    saved = await endpoints.find(ctx, browser.account_id)
    assert saved is not None
    assert (saved.url, saved.events, saved.enabled) == (URL, "email.delivered email.bounced", 1)
    assert secret not in (await browser.get("/webhook")).text
    changed = await browser.post("/webhook", {"url": f"{URL}/2", "events": "email.failed"})
    assert browser_client.notice_of(changed) == "Webhook saved and disabled."
    text = (await browser.follow(changed)).text
    assert "status-disabled" in text
    assert f'value="{URL}/2"' in text
    assert re.search(r'value="email.failed" checked', text)
    assert not re.search(r'value="email.delivered" checked', text)
    assert not SECRET.search(text)
    again = await browser.post("/webhook", ENDPOINT)
    assert browser_client.notice_of(again) == "Webhook saved."


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"url": "https://10.1.2.3/"}, "url: "),
        ({"url": ""}, "url: "),
        ({"events": "email.opened"}, "events[0]: must be one of"),
        ({"events": ""}, "events: select at least one"),
    ],
)
async def test_what_cannot_be_an_endpoint_is_refused(
    ctx: context.Context, browser: Browser, fields: dict[str, str], sentence: str
) -> None:
    answer = await browser.post("/webhook", {**ENDPOINT, **fields})
    assert answer.status_code == 400
    assert sentence in answer.text
    assert await endpoints.find(ctx, browser.account_id) is None


async def test_a_new_secret_is_shown_once(ctx: context.Context, browser: Browser) -> None:
    first = (await endpoints.save(ctx, browser.account_id, url=URL)).secret
    for fields in ({"overlap_hours": "24"}, {"overlap_hours": ""}):
        made = await browser.post("/webhook/rotate", fields)
        assert made.status_code == 201
        (secret,) = set(SECRET.findall(made.text))
        assert secret != first
        assert secret not in (await browser.get("/webhook")).text
    refused = await browser.post("/webhook/rotate", {"overlap_hours": "999"})
    assert (refused.status_code, "overlap_hours: must be 1 to 168" in refused.text) == (400, True)


async def test_a_test_event_leads_to_its_delivery(
    ctx: context.Context, browser: Browser, clock: contexts.Clock, authority: trustme.CA
) -> None:
    async with webhook_server.running(authority=authority) as server:
        await endpoints.save(ctx, browser.account_id, url=server.literal_url)
        sent = await browser.post("/webhook/ping")
        assert browser_client.notice_of(sent) == "Test event accepted."
        shown = (await browser.follow(sent)).text
        assert "webhook.test" in shown
        assert "<h3>200</h3>" in shown
        too_soon = await browser.post("/webhook/ping")
        assert (too_soon.status_code, "A ping was sent a moment ago" in too_soon.text) == (429, True)
        clock.pass_seconds(60)
        server.answer = webhook_server.ok(500, sample_account.HOSTILE.encode())
        failed = await browser.post("/webhook/ping")
    assert browser_client.notice_of(failed) == "Test event not accepted. See the attempt below."
    shown = (await browser.follow(failed)).text
    assert "Your endpoint returned a server error." in shown
    assert '<p class="notice bad" role="alert">Test event not accepted.' in shown
    assert "<script>alert" not in shown


async def test_a_webhook_is_removed_with_its_log(ctx: context.Context, browser: Browser) -> None:
    await endpoints.save(ctx, browser.account_id, url=URL)
    await webhook_rows.put_ended(ctx, browser.account_id)
    removed = await browser.post("/webhook/remove")
    assert browser_client.notice_of(removed) == "Webhook removed, with its secret and log."
    assert await endpoints.find(ctx, browser.account_id) is None
    assert "Add an endpoint" in (await browser.follow(removed)).text
    assert (await browser.post("/webhook/remove")).status_code == 404


async def test_the_log_shows_who_how_and_what_came_of_it(ctx: context.Context, browser: Browser) -> None:
    await endpoints.save(ctx, browser.account_id, url=URL)
    assert "No deliveries yet" in (await browser.get("/webhook")).text
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
    text = (await browser.get("/webhook")).text
    for delivery in (failed, waiting):
        assert f'href="/webhook/deliveries/{delivery.id}"' in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "\u202e" not in text
    assert "status-failed" in text
    assert ">timeout<" in text
    assert '500 <span class="muted small">in 12 ms</span>' in text
    assert f'next <time datetime="{times.to_wire(ctx.clock() + times.HOUR)}"' in text
    assert '<div id="log" data-live>' in text


async def test_the_log_is_filtered_by_status_and_by_message(ctx: context.Context, browser: Browser) -> None:
    await endpoints.save(ctx, browser.account_id, url=URL)
    other = "em_" + "2" * 28
    made = {
        "failed": (await webhook_rows.put_ended(ctx, browser.account_id, State.FAILED)).id,
        "succeeded": (await webhook_rows.put_ended(ctx, browser.account_id, message_id=other)).id,
        "pending": (await webhook_rows.put(ctx, browser.account_id)).id,
    }
    for status, own in made.items():
        text = (await browser.get("/webhook", status=status, message="")).text
        assert [one for one in made.values() if one in text] == [own]
    assert made["succeeded"] in (await browser.get("/webhook", message=f" {other} ")).text
    for message in ("em_unknown", "<script>", "\0"):
        text = (await browser.get("/webhook", message=message)).text
        assert "No deliveries match." in text
        assert "<script>" not in text
    assert (await browser.get("/webhook", before="nonsense")).status_code == 400
    assert (await browser.get("/webhook", status="lost")).status_code == 400


async def test_what_failed_in_a_period_is_sent_again(
    ctx: context.Context, browser: Browser, clock: contexts.Clock
) -> None:
    await endpoints.save(ctx, browser.account_id, url=URL)
    then = ctx.clock() - 2 * times.DAY
    await webhook_rows.put_ended(dataclasses.replace(ctx, clock=lambda: then), browser.account_id, State.FAILED)
    day = times.to_wire(then)[:10]
    await webhook_rows.put_ended(ctx, browser.account_id, State.FAILED)
    clock.pass_seconds(10)
    last = await browser.post("/webhook/replay", {"period": "24h"})
    assert browser_client.notice_of(last) == "Replaying 1 event."
    assert await statuses(ctx, browser) == ["pending", "failed", "failed"]
    nothing = await browser.post("/webhook/replay", {"period": "24h"})
    assert browser_client.notice_of(nothing).startswith("No events to replay")
    of_day = await browser.post("/webhook/replay", {"period": "days", "from_day": day, "to_day": day})
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
        ({"period": "24h", "from_day": "2026-01-31"}, "leave the days empty"),
        ({"period": "for ever"}, "period: "),
        ({}, "period: "),
    ],
)
async def test_a_period_that_is_none_is_refused(
    ctx: context.Context, browser: Browser, fields: dict[str, str], sentence: str
) -> None:
    await endpoints.save(ctx, browser.account_id, url=URL)
    await webhook_rows.put_ended(ctx, browser.account_id, State.FAILED)
    answer = await browser.post("/webhook/replay", fields)
    assert answer.status_code == 400
    assert sentence in answer.text
    assert await statuses(ctx, browser) == ["failed"]
