"""Several webhooks on the dashboard: a list, a page for each, and forms that change one of them."""

import dataclasses
import re

import pytest

from postroad import config, context
from postroad.model.events import events
from postroad.model.units import times
from postroad.services.webhooks import endpoint_settings, endpoints
from tests import accepted_mail, contexts, webhook_rows
from tests.dashboard.browser_client import Browser

NEW = {"url": "https://127.0.0.2/second", "preset": "custom", "events": ["email.failed"]}


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return webhook_rows.settings(database_url)


async def test_another_webhook_is_added_and_has_pages_of_its_own(
    ctx: context.Context, browser: Browser, reader: Browser
) -> None:
    await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL)
    made = await browser.post("/webhooks", NEW)
    assert made.status_code == 201
    assert "Webhook created" in made.text
    first, second = await endpoints.of_account(ctx, browser.account_id)
    assert (second.url, second.events, second.is_first) == ("https://127.0.0.2/second", "email.failed", 0)
    path = f"/webhooks/{second.id}"
    listed = (await browser.get("/webhooks")).text
    assert f'href="{path}">https://127.0.0.2/second</a>' in listed
    assert f'href="/webhooks/{first.id}">' in listed
    assert 'action="/webhooks"' in listed
    assert 'action="/webhooks"' not in (await reader.get("/webhooks")).text
    await webhook_rows.put_ended(ctx, browser.account_id, webhook_id=second.id)
    pages = {"": ("/ping", "/remove", "/replay"), "/settings": ("/settings",), "/secret": ("/secret",)}
    for tab, actions in pages.items():
        shown = (await browser.get(f"{path}{tab}")).text
        for action in actions:
            assert f'method="post" action="{path}{action}"' in shown
        assert f'<a href="{path}{tab}" aria-current="page">' in shown
        seen = (await reader.get(f"{path}{tab}")).text
        assert "https://127.0.0.2/second" in seen
        assert 'method="post" action="/webhook' not in seen
    assert (await endpoints.get(ctx, browser.account_id, first.id)) == first


async def test_the_list_says_how_deliveries_end(ctx: context.Context, browser: Browser, clock: contexts.Clock) -> None:
    urls = ("https://127.0.0.2/busy", "https://127.0.0.2/quiet", "https://127.0.0.2/new")
    changes = [endpoint_settings.Changes(url=url) for url in urls]
    busy, quiet, _ = [(await endpoints.create(ctx, browser.account_id, each)).webhook for each in changes]
    now = ctx.clock()
    before = dataclasses.replace(ctx, clock=lambda: now - 25 * times.HOUR)
    await webhook_rows.put_ended(before, browser.account_id, webhook_rows.State.FAILED, webhook_id=busy.id)
    await webhook_rows.put_ended(before, browser.account_id, webhook_id=quiet.id)
    for state in (*[webhook_rows.State.SUCCEEDED] * 3, webhook_rows.State.FAILED):
        await webhook_rows.put_ended(ctx, browser.account_id, state, webhook_id=busy.id)
    await webhook_rows.put(ctx, browser.account_id, webhook_id=busy.id)
    clock.pass_seconds(180)
    text = re.sub(r"<[^>]+>", " ", (await browser.get("/webhooks")).text)
    rows = re.sub(r"\s+", " ", text.partition("Endpoint")[2])
    assert re.search(r"/busy enabled 75.0% of 4 3 min ago", rows)
    assert re.search(r"/quiet enabled – 1 d ago", rows)
    assert re.search(r"/new enabled – none", rows)


async def test_there_is_no_second_address(browser: Browser) -> None:
    assert (await browser.get("/webhook")).status_code == 404


@pytest.mark.parametrize(
    "preset, subscribed, words",
    [
        ("results", ["email.delivered", "email.bounced", "email.failed"], "Deliveries and failures"),
        ("all", list(events.SUBSCRIBABLE), "All events"),
        ("custom", ["email.bounced", "email.expired"], "email.bounced, email.expired"),
    ],
)
async def test_events_are_chosen_by_a_preset_or_one_by_one(
    ctx: context.Context, browser: Browser, preset: str, subscribed: list[str], words: str
) -> None:
    form = {"url": webhook_rows.URL, "preset": preset, "events": ["email.expired", "email.bounced"]}
    await browser.post("/webhooks", form)
    (saved,) = await endpoints.of_account(ctx, browser.account_id)
    assert saved.events.split() == subscribed
    assert f'<td data-label="Events">{words}</td>' in (await browser.get("/webhooks")).text
    text = (await browser.get(f"/webhooks/{saved.id}/settings")).text
    assert f'name="preset" value="{preset}" checked' in text
    assert re.findall(r'name="events" value="([a-z._]+)" checked', text) == subscribed


async def test_sender_domains_are_those_of_the_account_and_what_was_chosen_before(
    ctx: context.Context, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    await browser.post("/webhooks", {**NEW, "sender_domains": ["example.com", "Gone.example"]})
    (saved,) = await endpoints.of_account(ctx, browser.account_id)
    assert saved.sender_domains == "example.com\ngone.example"
    page = f"/webhooks/{saved.id}/settings"
    text = (await browser.get(page)).text
    assert re.findall(r'name="sender_domains" value="([a-z.]+)" checked', text) == ["example.com", "gone.example"]
    await browser.post(page, {**NEW, "enabled": "true"})
    assert (await endpoints.get(ctx, browser.account_id, saved.id)).sender_domains == ""
    assert re.findall(r'name="sender_domains" value="([a-z.]+)">', (await browser.get(page)).text) == ["example.com"]


async def test_all_settings_are_saved(ctx: context.Context, browser: Browser) -> None:
    changes = endpoint_settings.Changes(url=webhook_rows.URL)
    webhook = (await endpoints.create(ctx, browser.account_id, changes)).webhook
    page = f"/webhooks/{webhook.id}/settings"
    options = {
        "enabled": "true",
        "description": "Billing",
        "tags": "a tag\r\n\r\nother\r\n",
        "version": "2",
        "mode": "test",
        "standard_signature": "true",
    }
    saved = await browser.post(page, {**NEW, **options})
    assert saved.headers["location"] == page
    found = await endpoints.get(ctx, browser.account_id, webhook.id)
    assert (found.description, found.tags, found.enabled) == ("Billing", "a tag\nother", 1)
    assert (found.version, found.mode, found.standard_signature) == (2, "test", 1)
    text = (await browser.get(page)).text
    assert '<option value="2" selected>' in text
    assert "<h1>Billing " in text
    await browser.post(page, {**NEW, "mode": "live"})
    found = await endpoints.get(ctx, browser.account_id, webhook.id)
    assert (found.description, found.tags, found.mode, found.standard_signature) == ("", "", "live", 0)


async def test_a_message_shows_its_deliveries_to_every_webhook(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await accepted_mail.accept(ctx, browser.account_id)
    first = (await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL)).webhook
    changes = endpoint_settings.Changes(url=webhook_rows.URL)
    second = (await endpoints.create(ctx, browser.account_id, changes)).webhook
    one = await webhook_rows.put_ended(ctx, browser.account_id, message_id=message_id)
    two = await webhook_rows.put_ended(ctx, browser.account_id, message_id=message_id, webhook_id=second.id)
    text = (await browser.get(f"/messages/{message_id}")).text
    for path in (f"/webhooks/{first.id}/deliveries/{one.id}", f"/webhooks/{second.id}/deliveries/{two.id}"):
        assert f'href="{path}"' in text
        assert (await browser.get(path)).status_code == 200


async def test_a_webhook_that_is_failing_says_since_when(ctx: context.Context, browser: Browser) -> None:
    saved = await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL)
    page = f"/webhooks/{saved.webhook.id}"
    assert "Every attempt has failed" not in (await browser.get(page)).text
    async with ctx.store.transaction() as tx:
        await tx.run_script("UPDATE webhooks SET failing_since = 1769860803811000")
    assert "Every attempt has failed since " in (await browser.get(page)).text
    assert "status-failing" in (await browser.get("/webhooks")).text
    await browser.post(f"{page}/settings", NEW)
    assert "Every attempt has failed" not in (await browser.get(page)).text


async def test_a_webhook_that_was_disabled_says_why(ctx: context.Context, browser: Browser) -> None:
    saved = await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL)
    page = f"/webhooks/{saved.webhook.id}"
    samples = "UPDATE webhooks SET enabled = 0, disabled_reason = 'Every attempt has failed for 3 days.'"
    async with ctx.store.transaction() as tx:
        await tx.run_script(samples)
    assert "Disabled: Every attempt has failed for 3 days." in (await browser.get(page)).text
    assert "Every attempt has failed for 3 days." in (await browser.get("/webhooks")).text
    await browser.post(f"{page}/settings", {**NEW, "enabled": "true"})
    found = await endpoints.get(ctx, browser.account_id, saved.webhook.id)
    assert (found.enabled, found.disabled_reason) == (1, "")
    assert "Disabled: " not in (await browser.get(page)).text
