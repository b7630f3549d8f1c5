"""Webhook events of recipients that the engine delivered or not: sender, reasons, and who is woken."""

import re

import pytest

from postroad.model.mail import statuses
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.mail import domains, webhooks
from postroad.storage.mail import suppressions as stored_suppressions
from tests import webhook_endpoints
from tests.delivery import engine_harness

PATH = re.compile(r"MAIL FROM:<([^>]+)>", re.IGNORECASE)


@pytest.mark.parametrize(
    "configured, seen, domain",
    [
        ("", "", "example.com"),
        ("", "bounces.example.com", "bounces.example.com"),
        ("returns.example.org", "bounces.example.com", "returns.example.org"),
    ],
    ids=["of the sender", "of the subdomain", "of the operator"],
)
async def test_from_is_the_sender_that_the_destination_was_given(
    database_url: str, configured: str, seen: str, domain: str
) -> None:
    lines: list[str] = []

    def take(line: str) -> str:
        lines.append(line)
        return "250 2.1.0 ok"

    async with engine_harness.delivering_to(database_url, {"MAIL": take}, return_path_domain=configured) as (
        _,
        harness,
    ):
        webhook = await webhook_endpoints.subscribe(harness.ctx, harness.account_id)
        async with harness.ctx.store.transaction() as tx:
            (own,) = await domains.of_account(tx, harness.account_id)
            await domains.record_check(
                tx, harness.account_id, own.id, check_at=0, failing_since=None, return_path_domain=seen
            )
        await harness.settle(
            await harness.send("ada@example.net", "jörg@example.net", sender="Lädle <Shop@Example.COM>")
        )
        events = await webhook_endpoints.written_events(harness.ctx, webhook)
    given = {match[1] for match in map(PATH.match, lines) if match}
    assert len(events) == 2
    assert {event["data"]["from"] for event in events} == given
    assert len(given) == 2
    assert all(sender.endswith(f"@{domain}") for sender in given)


async def test_an_address_on_the_suppression_list_bounces_without_a_code_and_says_why(url: str) -> None:
    async with engine_harness.delivering_to(url) as (_, harness):
        webhook = await webhook_endpoints.subscribe(harness.ctx, harness.account_id)
        operator = stored_suppressions.Source.OPERATOR
        why = "asked to be left alone"
        await suppressions.add(harness.ctx, harness.account_id, "ada@example.net", reason=why, source=operator)
        await harness.settle(await harness.send("ada@example.net"))
        (event,) = await webhook_endpoints.written_events(harness.ctx, webhook)
    assert event["type"] == "email.bounced"
    assert "smtp_code" not in event["data"]
    assert event["data"]["smtp_response"] == (
        "not attempted: the address is on the suppression list (asked to be left alone)"
    )


async def test_the_last_of_several_attempts_is_the_one_that_is_reported(url: str) -> None:
    async with engine_harness.delivering_to(url, {"RCPT": "451 4.3.0 later"}, retry_seconds=[60]) as (_, harness):
        webhook = await webhook_endpoints.subscribe(harness.ctx, harness.account_id)
        message_id = await harness.send()
        await harness.settle(message_id)
        assert await webhook_endpoints.written_events(harness.ctx, webhook) == []
        assert not harness.ctx.webhook_wakeup.is_set()
        harness.pass_seconds(100)
        seen = await harness.settle(message_id, attempts=2)
        (event,) = await webhook_endpoints.written_events(harness.ctx, webhook)
    assert seen.recipient.status == statuses.RecipientStatus.FAILED
    assert (event["type"], event["data"]["smtp_code"], event["data"]["smtp_response"]) == (
        "email.failed",
        451,
        seen.recipient.last_smtp_response,
    )


@pytest.mark.parametrize("subscribed", [True, False])
async def test_whoever_sends_events_is_woken_when_there_are_some(url: str, *, subscribed: bool) -> None:
    async with engine_harness.delivering_to(url) as (_, harness):
        webhook: webhooks.Webhook | None = None
        if subscribed:
            webhook = await webhook_endpoints.subscribe(harness.ctx, harness.account_id)
        await harness.settle(await harness.send())
        assert harness.ctx.webhook_wakeup.is_set() is subscribed
        assert webhook is None or len(await webhook_endpoints.deliveries_for(harness.ctx, webhook)) == 1
