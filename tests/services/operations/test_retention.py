"""Retention: bodies go before messages, nothing is removed too early, and the store stays consistent."""

import random

import pytest

from postroad import config, context, errors
from postroad.mail.results import async_bounces
from postroad.model.bounces import disposition
from postroad.model.units import times
from postroad.services.messages import lookup as messages
from postroad.services.messages import queue_changes
from postroad.services.operations import cleanup, operator_jobs, partitions
from postroad.services.webhooks import delivery_log, endpoints
from postroad.storage.mail import queue
from postroad.storage.operations import retention
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail, contexts, reports, webhook_rows
from tests.reliability import profile
from tests.services import claimed_mail
from tests.storage import samples

DAY_SECONDS = 24 * 3600
OF_MESSAGES = (
    "messages",
    "bodies",
    "recipients",
    "attempts",
    "message_tags",
    "message_metadata",
    "async_bounces",
    "queue",
)
FINAL = [disposition.Verdict.DELIVERED, disposition.Verdict.BOUNCED, disposition.Verdict.FAILED]


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return webhook_rows.settings(database_url)


async def end(
    ctx: context.Context, claims: list[queue.Claimed], verdict: disposition.Verdict = disposition.Verdict.DELIVERED
) -> None:
    await ctx.outcome_commits.submit(
        [claimed_mail.outcome(ctx, claim, verdict, recipient_count=len(claims)) for claim in claims]
    )


async def sent(ctx: context.Context, account_id: str) -> str:
    """A message that has just been delivered."""
    message_id, claims = await claimed_mail.another(
        ctx, account_id, "ada@example.net", tags=("orders", "new"), metadata={"order": "1042"}
    )
    await end(ctx, claims)
    return message_id


def limit(ctx: context.Context, days: int) -> int:
    """When mail is deleted row by row. PostgreSQL drops its partition before, which nobody does in these tests."""
    return days * DAY_SECONDS + (0 if ctx.store.dialect == "sqlite" else {30: 6, 90: 14}[days] * DAY_SECONDS)


async def swept(ctx: context.Context) -> tuple[int, int]:
    done = await cleanup.sweep(ctx)
    return done.bodies, done.messages


async def left(ctx: context.Context) -> list[int]:
    return [await samples.count(ctx.store, table) for table in OF_MESSAGES]


async def test_the_body_goes_after_thirty_days_and_the_message_after_ninety(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    message_id = await sent(ctx, shop)
    clock.pass_seconds(limit(ctx, 30) - 1)
    assert await swept(ctx) == (0, 0)
    clock.pass_seconds(1)
    assert await swept(ctx) == (1, 0)
    assert await left(ctx) == [1, 0, 1, 1, 2, 1, 0, 0]
    found = await messages.details(ctx, shop, message_id)
    assert (found.message.status, len(found.recipients), len(found.attempts)) == ("delivered", 1, 1)
    with pytest.raises(errors.NotFound, match="its content is no longer retained"):
        await messages.raw(ctx, shop, message_id)
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    clock.pass_seconds(limit(ctx, 90) - limit(ctx, 30) - 1)
    assert await swept(ctx) == (0, 0)
    clock.pass_seconds(1)
    assert await swept(ctx) == (0, 1)
    assert await left(ctx) == [0] * len(OF_MESSAGES)
    with pytest.raises(errors.NotFound):
        await messages.details(ctx, shop, message_id)


async def test_test_mail_goes_after_three_days_once_it_is_final(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    live = await sent(ctx, shop)
    # The first is canceled at once; the other waits for its day.
    send_at = times.to_wire(clock.now + 20 * times.DAY)
    tests = [
        await accepted_mail.accept(ctx, shop, is_test=True, send_at=send_at, tags=("orders",), metadata={"order": "1"})
        for _ in range(2)
    ]
    await queue_changes.cancel_message(ctx, shop, tests[0])
    clock.pass_seconds(3 * DAY_SECONDS - 1)
    assert await swept(ctx) == (0, 0)
    clock.pass_seconds(1)
    assert await swept(ctx) == (0, 1)
    with pytest.raises(errors.NotFound):
        await messages.details(ctx, shop, tests[0])
    for kept in (live, tests[1]):
        assert b"Subject: Your order" in await messages.raw(ctx, shop, kept)
    assert await left(ctx) == [2, 2, 2, 1, 3, 2, 0, 1]
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_the_time_runs_from_the_end_of_the_last_recipient(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    message_id, claims = await claimed_mail.accepted(ctx, account.id, "ada@example.net", "bob@example.net")
    await ctx.outcome_commits.submit(
        [claimed_mail.outcome(ctx, claims[0], disposition.Verdict.DELIVERED, recipient_count=2)]
    )
    clock.pass_seconds(400 * DAY_SECONDS)
    assert await swept(ctx) == (0, 0)
    assert len((await messages.find(ctx, account.id, message_id))[1]) == 2
    await ctx.outcome_commits.submit(
        [claimed_mail.outcome(ctx, claims[1], disposition.Verdict.FAILED, recipient_count=2)]
    )
    clock.pass_seconds(limit(ctx, 30) - 1)
    assert await swept(ctx) == (0, 0)
    clock.pass_seconds(1)
    assert await swept(ctx) == (1, 0)


async def test_mail_that_is_not_final_stays_even_when_its_row_says_that_it_has_ended(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    await claimed_mail.accepted(ctx, account.id, "ada@example.net")
    async with ctx.store.transaction() as tx:
        await tx.run_script("UPDATE messages SET ended_at = 1")
    clock.pass_seconds(400 * DAY_SECONDS)
    assert await swept(ctx) == (0, 0)
    assert (await left(ctx))[:3] == [1, 1, 1]
    assert [finding.check for finding in (await operator_jobs.check_consistency(ctx)).findings] == ["message_ends"]


async def test_the_ledger_stays_and_sums_to_the_balances(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, account.id, amount=10)
    _, claims = await claimed_mail.another(ctx, account.id, "ada@example.net", "bob@example.net")
    await ctx.outcome_commits.submit(
        [
            claimed_mail.outcome(ctx, claims[0], disposition.Verdict.DELIVERED, recipient_count=2),
            claimed_mail.outcome(
                ctx, claims[1], disposition.Verdict.BOUNCED, recipient_count=2, code=550, response="no"
            ),
        ]
    )
    before = await samples.count(ctx.store, "ledger")
    clock.pass_seconds(limit(ctx, 90))
    assert await swept(ctx) == (1, 1)
    assert await samples.count(ctx.store, "ledger") == before == 4
    assert await samples.balances(ctx.store, account.id) == (9, 0)
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_reports_that_came_later_go_with_their_message(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    message_id = await sent(ctx, shop)
    named = await reports.named(ctx, message_id)
    await async_bounces.receive(ctx, named, reports.report(reports.group("ada@example.net")))
    assert await samples.count(ctx.store, "async_bounces") == 1
    clock.pass_seconds(limit(ctx, 90))
    assert await swept(ctx) == (1, 1)
    assert await left(ctx) == [0] * len(OF_MESSAGES)
    await async_bounces.receive(ctx, named, reports.report(reports.group("ada@example.net")))
    assert await samples.count(ctx.store, "async_bounces") == 0


async def test_an_event_that_waits_outlives_its_message(ctx: context.Context, shop: str, clock: contexts.Clock) -> None:
    await endpoints.save(ctx, shop, url=webhook_rows.URL)
    message_id = await sent(ctx, shop)
    (reported,) = (await delivery_log.page(ctx, shop, limit=10)).rows
    async with ctx.store.transaction() as tx:
        await tx.run_script("UPDATE messages SET ended_at = 1")
    clock.pass_seconds(DAY_SECONDS)
    assert await swept(ctx) == (1, 1)
    (still,) = (await delivery_log.page(ctx, shop, limit=10)).rows
    assert still == reported
    assert message_id.encode() in still.delivery.body
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_a_part_is_bounded_by_messages_bytes_and_recipients(
    ctx: context.Context, shop: str, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        _, claims = await claimed_mail.another(ctx, shop, "ada@example.net", "bob@example.net", text="x" * 2_000)
        await end(ctx, claims)
    now = clock.now
    monkeypatch.setattr(retention, "MAX_BYTES", 5_000)
    monkeypatch.setattr(retention, "MAX_RECIPIENTS", 1)
    async with ctx.store.transaction() as tx:
        assert await retention.remove_bodies(tx, ended_before=now) == 2
        assert await retention.remove_bodies(tx, ended_before=now) == 1
        assert await retention.remove_messages(tx, ended_before=now) == 1
        monkeypatch.setattr(retention, "MAX_RECIPIENTS", 100)
        monkeypatch.setattr(retention, "MAX_MESSAGES", 1)
        assert await retention.remove_messages(tx, ended_before=now) == 1
    assert (await left(ctx))[:3] == [1, 0, 2]
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_one_sweep_ends_when_its_time_is_over_and_the_next_one_goes_on(
    ctx: context.Context, shop: str, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sent(ctx, shop)
    clock.pass_seconds(limit(ctx, 90))
    monkeypatch.setattr(cleanup, "MAX_SECONDS", 0)
    assert (await cleanup.sweep(ctx)).has_more
    assert (await left(ctx))[:2] == [1, 1]
    monkeypatch.undo()
    done = await cleanup.sweep(ctx)
    assert (done.bodies, done.messages, done.has_more) == (1, 1, False)


@pytest.mark.parametrize("seed", profile.SEEDS)
async def test_whatever_is_not_final_or_too_young_survives(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock, seed: int
) -> None:
    chance = random.Random(seed)
    await accepted_mail.allow_sending(ctx, account.id)
    ended: dict[str, int] = {}
    waiting: dict[str, list[queue.Claimed]] = {}
    kept: set[str] = set()
    for _ in range(30):
        to = [f"{number}@example.net" for number in range(chance.randint(1, 3))]
        message_id, claims = await claimed_mail.another(ctx, account.id, *to, tags=("a", "b")[: chance.randint(0, 2)])
        waiting[message_id] = claims
        for one in chance.sample(sorted(waiting), k=min(len(waiting), chance.randint(0, 2))):
            claims = waiting.pop(one)
            verdicts = [chance.choice(FINAL) for _ in claims]
            await ctx.outcome_commits.submit(
                [
                    claimed_mail.outcome(ctx, claim, verdict, recipient_count=len(claims))
                    for claim, verdict in zip(claims, verdicts, strict=True)
                ]
            )
            ended[one] = clock.now
        clock.pass_seconds(chance.randint(0, 10 * DAY_SECONDS))
        await cleanup.sweep(ctx)
        ages = {one: (clock.now - at) / contexts.SECOND for one, at in ended.items()}
        kept = waiting.keys() | {one for one, age in ages.items() if age < limit(ctx, 90)}
        with_body = waiting.keys() | {one for one, age in ages.items() if age < limit(ctx, 30)}
        assert await ids(ctx, "messages", "id") == kept
        assert await ids(ctx, "recipients", "message_id") == kept
        assert await ids(ctx, "bodies", "message_id") == with_body
        assert (await operator_jobs.check_consistency(ctx)).findings == []
    # There was something to keep, and something to remove.
    assert waiting
    assert kept < waiting.keys() | ended.keys()


async def test_only_postgresql_has_partitions(ctx: context.Context) -> None:
    assert await partitions.keep(ctx) == {"sqlite": 0, "postgres": 2}[ctx.store.dialect]


async def ids(ctx: context.Context, table: str, column: str) -> set[str]:
    samples.teach(ctx.store, ids=f"SELECT {column} FROM {table}")  # noqa: S608 - a test's own words
    return {str(row[0]) for row in await samples.scan(ctx.store, "test.ids")}
