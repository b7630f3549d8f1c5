"""The outbox with several endpoints: each gets the events that it wants, and nothing else."""

import pytest

from postroad import context
from postroad.mail import outbox
from postroad.model.bounces import disposition
from postroad.services.operations import operator_jobs
from postroad.storage.mail import messages, webhooks
from postroad.storage.people import accounts
from tests import webhook_endpoints
from tests.services import claimed_mail

LIVE = messages.EventDetails("ada@example.net", "shop@example.com", "Hello")
TEST = messages.EventDetails("ada@example.net", "shop@example.com", "Hello", is_test=1)


def endpoint(**fields: str) -> webhooks.Webhook:
    return webhooks.Webhook("whk_1", "acc_1", "https://hooks.example.org/", "email.failed", 1, "", 1, 1, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields, about, tags, wanted",
    [
        ({}, LIVE, (), True),
        ({}, LIVE, ("a",), True),
        ({"tags": "a"}, LIVE, ("a", "b"), True),
        ({"tags": "x\na tag"}, LIVE, ("a tag",), True),
        ({"tags": "x\na tag"}, LIVE, ("a", "tag"), False),
        ({"tags": "x"}, LIVE, (), False),
        ({"sender_domains": "example.com"}, LIVE, (), True),
        ({"sender_domains": "example.org\nexample.com"}, LIVE, (), True),
        ({"sender_domains": "mail.example.com\nexample.co"}, LIVE, (), False),
        ({"sender_domains": "example.com", "tags": "x"}, LIVE, ("x",), True),
        ({"sender_domains": "example.com", "tags": "x"}, LIVE, ("y",), False),
        ({"sender_domains": "example.org", "tags": "x"}, LIVE, ("x",), False),
        ({}, TEST, (), False),
        ({"mode": "test"}, TEST, (), True),
        ({"mode": "test"}, LIVE, (), False),
        ({"mode": "test", "tags": "x"}, TEST, (), False),
    ],
)
def test_an_endpoint_wants_events_of_its_mode_tags_and_domains(
    fields: dict[str, str], about: messages.EventDetails, tags: tuple[str, ...], wanted: object
) -> None:
    assert outbox.is_wanted(endpoint(**fields), about, tags) is wanted


async def test_every_endpoint_that_wants_an_event_gets_it(ctx: context.Context, account: accounts.Account) -> None:
    first = await webhook_endpoints.subscribe(ctx, account.id, "email.bounced", "email.delivered")
    tagged = await webhook_endpoints.subscribe_another(ctx, account.id, tags="invoice\nurgent news")
    elsewhere = await webhook_endpoints.subscribe_another(ctx, account.id, sender_domains="example.org")
    disabled = await webhook_endpoints.subscribe_another(ctx, account.id, enabled=0)
    test_mode = await webhook_endpoints.subscribe_another(ctx, account.id, mode="test")
    failures = await webhook_endpoints.subscribe_another(ctx, account.id, events="email.failed")
    _, one = await claimed_mail.accepted(ctx, account.id, "ada@example.net", tags=("urgent news", "other"))
    _, two = await claimed_mail.another(ctx, account.id, "bo@example.net", "cy@example.net")
    delivered = disposition.Verdict.DELIVERED
    done = await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claim, delivered) for claim in (*one, *two)])
    assert done.events == 4
    to_first = await webhook_endpoints.deliveries_for(ctx, first)
    (to_tagged,) = await webhook_endpoints.deliveries_for(ctx, tagged)
    assert len(to_first) == 3
    assert {row.event_id for row in to_first if row.message_id == to_tagged.message_id} == {to_tagged.event_id}
    assert len({row.event_id for row in to_first}) == 3
    for other in (elsewhere, disabled, test_mode, failures):
        assert await webhook_endpoints.deliveries_for(ctx, other) == []
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_what_nobody_wants_writes_nothing(ctx: context.Context, account: accounts.Account) -> None:
    await webhook_endpoints.subscribe_another(ctx, account.id, tags="invoice")
    _, (claim,) = await claimed_mail.accepted(ctx, account.id, "ada@example.net")
    done = await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claim, disposition.Verdict.DELIVERED)])
    assert done.events == 0
