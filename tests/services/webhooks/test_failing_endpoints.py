"""Endpoints that fail: when that begins and ends, and that three days without a success disable them."""

import msgspec
import pytest
import structlog

from postroad import config, context
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services import audit_log
from postroad.services.operations.notices import sender
from postroad.services.people import users
from postroad.services.webhooks import endpoint_settings, endpoints
from postroad.storage.mail import webhooks
from tests import accepted_mail, contexts, webhook_rows
from tests.contexts import PASSWORD, Clock
from tests.services import claimed_mail
from tests.storage import webhook_samples

NOW = 100 * times.DAY
LOG = structlog.get_logger()


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    overrides: dict[str, dict[str, object]] = {
        "database": {"url": database_url},
        "security": {"installation_key": contexts.SECRET_KEY},
        "webhooks": {"allow_private": webhook_rows.PUBLIC},
        "operator": {"email": "ops@example.net", "from": f"postmaster@{accepted_mail.DOMAIN}"},
    }
    return config.load(environment={}, overrides=overrides)


async def create(ctx: context.Context, account_id: str) -> webhooks.Webhook:
    changes = endpoint_settings.Changes(url=webhook_rows.URL)
    return (await endpoints.create(ctx, account_id, changes)).webhook


async def note(ctx: context.Context, webhook: webhooks.Webhook, *, succeeded: bool) -> webhooks.Webhook:
    await endpoints.note_attempts(ctx, webhook, succeeded=succeeded, at=ctx.clock(), log=LOG)
    return await endpoints.get(ctx, webhook.account_id, webhook.id)


@pytest.mark.parametrize(
    "failing_since, succeeded, is_news",
    [
        (None, True, False),
        (None, False, True),
        (NOW - 1, True, True),
        (NOW - 1, False, False),
        (NOW - 3 * times.DAY + 1, False, False),
        (NOW - 3 * times.DAY, False, True),
    ],
)
def test_only_a_change_is_news(failing_since: int | None, succeeded: object, is_news: object) -> None:
    webhook = webhook_samples.webhook(failing_since=failing_since)
    assert endpoints.is_news(webhook, succeeded=bool(succeeded), now=NOW) is is_news


async def test_an_endpoint_fails_from_its_first_failure_to_its_next_success(
    ctx: context.Context, account_id: str, clock: Clock
) -> None:
    webhook = await create(ctx, account_id)
    failing = await note(ctx, webhook, succeeded=False)
    assert failing == msgspec.structs.replace(webhook, failing_since=clock.now)
    clock.pass_seconds(3600)
    assert await note(ctx, failing, succeeded=False) == failing
    assert await note(ctx, failing, succeeded=True) == webhook


async def test_three_days_without_a_success_disable_an_endpoint_and_its_owners_are_told(
    ctx: context.Context, account_id: str, clock: Clock
) -> None:
    await accepted_mail.allow_sending(ctx, account_id)
    await users.create(ctx, account_id, email="jo@example.net", password=PASSWORD, role=callers.Role.OWNER)
    await users.create(ctx, account_id, email="bo@example.net", password=PASSWORD, role=callers.Role.DEVELOPER)
    other, webhook = await create(ctx, account_id), await create(ctx, account_id)
    failing = await note(ctx, webhook, succeeded=False)
    clock.pass_seconds(3 * 24 * 3600 - 1)
    assert await note(ctx, failing, succeeded=False) == failing
    clock.pass_seconds(1)
    disabled = await note(ctx, failing, succeeded=False)
    assert (disabled.enabled, disabled.disabled_reason) == (0, "Every attempt has failed for 3 days.")
    assert await endpoints.get(ctx, account_id, other.id) == other
    (entry, *_) = await audit_log.page(ctx, account_id, before=None, limit=1)
    assert audit_log.text(entry) == "disabled the webhook at 127.0.0.2 (every attempt has failed for 3 days)"
    await sender.send_due(ctx, log=LOG)
    (notice,) = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    assert notice.email_key == "jo@example.net"
    # Enabling it clears that.
    enabled = await endpoints.change(ctx, account_id, webhook.id, endpoint_settings.Changes(enabled=True))
    assert (enabled.enabled, enabled.disabled_reason, enabled.failing_since) == (1, "", None)


async def test_a_success_in_the_log_keeps_an_endpoint_enabled(
    ctx: context.Context, account_id: str, clock: Clock
) -> None:
    webhook = await create(ctx, account_id)
    failing = await note(ctx, webhook, succeeded=False)
    clock.pass_seconds(3600)
    await webhook_rows.put_ended(ctx, account_id)
    clock.pass_seconds(3 * 24 * 3600)
    assert await note(ctx, failing, succeeded=False) == msgspec.structs.replace(failing, failing_since=clock.now)


async def test_what_was_changed_meanwhile_stays(ctx: context.Context, account_id: str) -> None:
    webhook = await create(ctx, account_id)
    moved = await endpoints.change(ctx, account_id, webhook.id, endpoint_settings.Changes(url=webhook_rows.URL + "2"))
    assert await note(ctx, webhook, succeeded=False) == moved
    disabled = await endpoints.change(ctx, account_id, webhook.id, endpoint_settings.Changes(enabled=False))
    assert await note(ctx, moved, succeeded=False) == disabled
    await endpoints.remove(ctx, account_id, webhook.id)
    await endpoints.note_attempts(ctx, webhook, succeeded=False, at=1, log=LOG)
    assert await endpoints.of_account(ctx, account_id) == []
