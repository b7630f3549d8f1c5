"""Events about accounts and their domains: written when it happens, once, and only for endpoints that name them."""

from typing import Any

import msgspec
import pytest

from postroad import config, context
from postroad.model.bounces import disposition
from postroad.services.accounts import account_registry as accounts_registry
from postroad.services.accounts import credits
from postroad.services.domains import dns_checks as domain_checks
from postroad.services.domains import domain_registry as domains
from postroad.services.webhooks import delivery_log
from postroad.storage.mail import domains as stored_domains
from postroad.storage.mail import webhooks
from tests import accepted_mail, contexts, dns_server, webhook_endpoints, webhook_rows
from tests.services import claimed_mail, domain_zones

# Small enough to be reached with real mail: 2 of 10 warn, 4 of 10 suspend.
GUARD = {"recipients": 10, "warn_percent": 20.0, "suspend_percent": 40.0, "cooldown_hours": 48}


@pytest.fixture
def settings(database_url: str, server: dns_server.DnsServer) -> config.Settings:
    given = domain_zones.settings(database_url, server)
    return msgspec.structs.replace(given, bounce_guard=msgspec.structs.replace(given.bounce_guard, **GUARD))


async def written(ctx: context.Context, webhook: webhooks.Webhook) -> list[tuple[str, dict[str, Any]]]:
    return [(event["type"], event["data"]) for event in await webhook_endpoints.written_events(ctx, webhook)]


async def send(ctx: context.Context, account_id: str, *, to: int, bounced: int = 0) -> None:
    """A message to so many, of whom the first do not exist."""
    _, claimed = await claimed_mail.another(ctx, account_id, *[f"p{number}@example.net" for number in range(to)])
    fault = disposition.Fault.ADDRESS
    await ctx.outcome_commits.submit(
        [
            claimed_mail.outcome(ctx, one, disposition.Verdict.BOUNCED, recipient_count=0, code=550, fault=fault)
            if place < bounced
            else claimed_mail.outcome(ctx, one, disposition.Verdict.DELIVERED, recipient_count=0)
            for place, one in enumerate(claimed)
        ]
    )


async def test_the_bounce_guard_s_warning_and_suspension_are_told(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, account_id)
    webhook = await webhook_endpoints.subscribe(ctx, account_id, "account.warned", "account.suspended")
    await send(ctx, account_id, to=10, bounced=2)
    clock.pass_seconds(1)
    await send(ctx, account_id, to=10, bounced=6)
    assert await written(ctx, webhook) == [
        ("account.warned", {"cause": "bounces", "recipients": 10, "bounces": 2, "complaints": 0}),
        (
            "account.suspended",
            {
                "suspended_by": "bounce_guard",
                "reason": (await accounts_registry.find(ctx, account_id)).suspended_reason,
            },
        ),
    ]


async def test_an_operator_s_suspension_is_told_when_it_begins_whatever_messages_are_wanted_but_not_in_test_mode(
    ctx: context.Context, account_id: str
) -> None:
    wanted = {"events": "account.suspended"}
    filtered = await webhook_endpoints.subscribe_another(
        ctx, account_id, tags="orders", sender_domains="example.org", version=2, **wanted
    )
    test = await webhook_endpoints.subscribe_another(ctx, account_id, mode="test", **wanted)
    default = await webhook_endpoints.subscribe(ctx, account_id)
    await accounts_registry.suspend(ctx, account_id, "unpaid since May")
    await accounts_registry.suspend(ctx, account_id, "unpaid since June")
    assert await written(ctx, filtered) == [
        ("account.suspended", {"suspended_by": "operator", "reason": "unpaid since May"})
    ]
    assert await written(ctx, test) == await written(ctx, default) == []


async def test_a_domain_is_told_when_dns_verifies_it_and_when_its_record_is_gone(
    ctx: context.Context, account_id: str, server: dns_server.DnsServer, clock: contexts.Clock
) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id, "domain.verified", "domain.failing")
    domain = await domains.add(ctx, account_id, domain_zones.DOMAIN, verified=False)
    key = await domain_zones.publish_key(ctx, server, domain)
    await domain_checks.check(ctx, domain)
    clock.pass_seconds(1)
    verified = await domains.find(ctx, account_id, domain.id)
    del server.zones[key]
    await domain_checks.check(ctx, verified)
    clock.pass_seconds(1)
    await domain_checks.check(ctx, await domains.find(ctx, account_id, domain.id))
    named = {"domain_id": domain.id, "domain": "example.com"}
    assert await written(ctx, webhook) == [
        ("domain.verified", named | {"verified_by": "dns"}),
        (
            "domain.failing",
            named | {"failing_since": "2027-01-15T08:00:01.000Z", "verified_until": "2027-01-18T08:00:01.000Z"},
        ),
    ]


async def test_a_domain_that_the_operator_verifies_is_told_once(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id, "domain.verified")
    await domains.add(ctx, account_id, "one.example.com", verified=True)
    clock.pass_seconds(1)
    second = await domains.add(ctx, account_id, "two.example.com", verified=False)
    for _ in range(2):
        await domains.verify(ctx, account_id, second.id, by=stored_domains.OPERATOR)
    assert [(kind, data["domain"], data["verified_by"]) for kind, data in await written(ctx, webhook)] == [
        ("domain.verified", "one.example.com", "operator"),
        ("domain.verified", "two.example.com", "operator"),
    ]


async def test_credits_are_told_to_be_low_once_for_each_crossing(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, account_id, "credits.low")
    await accepted_mail.allow_sending(ctx, account_id, amount=6)
    for is_test in (False, True, True, False, False, True, False, False):  # test messages use none
        clock.pass_seconds(1)
        await accepted_mail.accept(ctx, account_id, is_test=is_test)
    # Three left after three; two left after four.
    assert await written(ctx, webhook) == [("credits.low", {"available": 2, "used": 4})]
    await credits.add(ctx, account_id, 10, None)
    clock.pass_seconds(1)
    four = tuple(f"p{number}@example.net" for number in range(4))
    await accepted_mail.accept(ctx, account_id, to=four)
    assert (await written(ctx, webhook))[1:] == [("credits.low", {"available": 7, "used": 9})]
    # Who needs no credits is never short of them.
    await credits.add(ctx, account_id, 100, None)
    await credits.set_unlimited(ctx, account_id, unlimited=True)
    for _ in range(3):
        clock.pass_seconds(1)
        await accepted_mail.accept(ctx, account_id, to=four)
    assert len(await written(ctx, webhook)) == 2


async def test_failed_ones_are_replayed_until_one_succeeds_and_pings_never(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    await webhook_endpoints.subscribe(ctx, account_id, "account.suspended")
    kinds = {"email.failed": {}, "webhook.test": {"message_id": None}, "account.suspended": {"message_id": None}}
    for kind, changes in kinds.items():
        await webhook_rows.put_ended(
            ctx, account_id, webhooks.State.FAILED, event_type=kind, recipient_id=None, **changes
        )
    clock.pass_seconds(1)
    for replayed in (2, 0):  # what is pending is not replayed again
        done = await delivery_log.replay_failed(ctx, account_id, after=0, before=ctx.clock())
        assert done.count == replayed
        clock.pass_seconds(60)
