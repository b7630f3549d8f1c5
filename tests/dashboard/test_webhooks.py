"""Several webhooks on the dashboard: a list, a page for each, and forms that change one of them."""

import re

import pytest

from postroad import config, context
from postroad.model.events import events
from postroad.services.webhooks import endpoint_settings, endpoints
from tests import accepted_mail, webhook_rows
from tests.dashboard.browser_client import Browser

NEW = {"url": "https://127.0.0.2/second", "events": ["email.failed"], "enabled": "true"}


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return webhook_rows.settings(database_url)


async def test_another_webhook_is_added_and_has_a_page_of_its_own(
    ctx: context.Context, browser: Browser, reader: Browser
) -> None:
    await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL)
    assert "All webhooks (1)" in (await browser.get("/webhook")).text
    made = await browser.post("/webhooks", NEW)
    assert made.status_code == 201
    assert "Webhook created" in made.text
    first, second = await endpoints.of_account(ctx, browser.account_id)
    assert (second.url, second.events, second.is_first) == ("https://127.0.0.2/second", "email.failed", 0)
    path = f"/webhooks/{second.id}"
    listed = (await browser.get("/webhooks")).text
    assert f'href="{path}"' in listed
    assert 'action="/webhooks"' in listed
    assert ">https://127.0.0.2/second</a>" in listed
    assert 'action="/webhooks"' not in (await reader.get("/webhooks")).text
    shown = (await browser.get(path)).text
    for action in ("", "/rotate", "/ping", "/remove", "/replay"):
        assert f'action="{path}{action}"' in shown
    seen = (await reader.get(path)).text
    assert "https://127.0.0.2/second" in seen
    assert 'method="post" action="/webhook' not in seen
    assert (await endpoints.get(ctx, browser.account_id, first.id)) == first


async def test_a_new_webhook_has_the_default_events_until_others_are_chosen(browser: Browser) -> None:
    for path in ("/webhook", "/webhooks"):
        text = (await browser.get(path)).text
        ticked = re.findall(r'name="events" value="([a-z._]+)" checked', text)
        assert ticked == list(events.DEFAULT), path


async def test_filters_and_options_are_saved_and_kept_by_a_form_without_them(
    ctx: context.Context, browser: Browser
) -> None:
    changes = endpoint_settings.Changes(url=webhook_rows.URL)
    webhook = (await endpoints.create(ctx, browser.account_id, changes)).webhook
    path = f"/webhooks/{webhook.id}"
    options = {
        "has_options": "true",
        "description": "Billing",
        "tags": "a tag\r\n\r\nother\r\n",
        "sender_domains": "Shop.example",
        "version": "2",
        "mode": "test",
        "standard_signature": "true",
    }
    for form in ({**NEW, **options}, NEW):
        saved = await browser.post(path, form)
        assert saved.headers["location"] == path
        found = await endpoints.get(ctx, browser.account_id, webhook.id)
        assert (found.description, found.tags, found.sender_domains) == ("Billing", "a tag\nother", "shop.example")
        assert (found.version, found.mode, found.standard_signature) == (2, "test", 1)
    assert '<option value="2" selected>' in (await browser.get(path)).text
    await browser.post(path, {**NEW, "has_options": "true", "mode": "live"})
    found = await endpoints.get(ctx, browser.account_id, webhook.id)
    assert (found.description, found.tags, found.mode, found.standard_signature) == ("", "", "live", 0)


async def test_a_message_shows_its_deliveries_to_every_webhook(ctx: context.Context, browser: Browser) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    message_id = await accepted_mail.accept(ctx, browser.account_id)
    await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL)
    changes = endpoint_settings.Changes(url=webhook_rows.URL)
    second = (await endpoints.create(ctx, browser.account_id, changes)).webhook
    one = await webhook_rows.put_ended(ctx, browser.account_id, message_id=message_id)
    two = await webhook_rows.put_ended(ctx, browser.account_id, message_id=message_id, webhook_id=second.id)
    text = (await browser.get(f"/messages/{message_id}")).text
    for path in (f"/webhook/deliveries/{one.id}", f"/webhooks/{second.id}/deliveries/{two.id}"):
        assert f'href="{path}"' in text
        assert (await browser.get(path)).status_code == 200


async def test_a_webhook_that_is_failing_says_since_when(ctx: context.Context, browser: Browser) -> None:
    await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL)
    assert "Every attempt has failed" not in (await browser.get("/webhook")).text
    async with ctx.store.transaction() as tx:
        await tx.run_script("UPDATE webhooks SET failing_since = 1769860803811000")
    assert "Every attempt has failed since " in (await browser.get("/webhook")).text
    await browser.post("/webhook", {name: value for name, value in NEW.items() if name != "enabled"})
    assert "Every attempt has failed" not in (await browser.get("/webhook")).text


async def test_a_webhook_that_was_disabled_says_why(ctx: context.Context, browser: Browser) -> None:
    saved = await endpoints.save(ctx, browser.account_id, url=webhook_rows.URL)
    samples = "UPDATE webhooks SET enabled = 0, disabled_reason = 'Every attempt has failed for 3 days.'"
    async with ctx.store.transaction() as tx:
        await tx.run_script(samples)
    assert "Disabled: Every attempt has failed for 3 days." in (await browser.get("/webhook")).text
    await browser.post("/webhook", NEW)
    found = await endpoints.get(ctx, browser.account_id, saved.webhook.id)
    assert (found.enabled, found.disabled_reason) == (1, "")
    assert "Disabled: " not in (await browser.get("/webhook")).text
