"""Partitions on PostgreSQL: mail goes with its partition, and none that is still needed goes with it."""

from collections.abc import Sequence

import asyncpg
import pytest

from postroad import config, errors
from postroad.model.bounces import disposition
from postroad.services import context
from postroad.services.maintenance import cleanup, consistency, partitions
from postroad.services.messages import lookup as messages
from postroad.storage import accounts as stored_accounts
from postroad.storage import partitions as stored_partitions
from postroad.storage import queue, store
from tests import accepted_mail, contexts
from tests.services import claimed_mail
from tests.storage import samples

DAY_SECONDS = 24 * 3600
# The clock of the tests begins on 15 January 2027 at 08:00.
FIRST = ["bodies_until_20270214", "messages_until_20270214"]
MAIL = (
    "messages",
    "recipients",
    "attempts",
    "attempt_conversations",
    "async_bounces",
    "message_tags",
    "message_metadata",
    "resends",
)


@pytest.fixture
def database_url(clean_postgres_url: str) -> str:
    return clean_postgres_url


async def names(ctx: context.Context, *tables: str) -> list[str]:
    """The partitions of tables."""
    samples.teach(
        ctx.store,
        partitions="SELECT relname::TEXT FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid"
        " WHERE inhparent = ANY ($1::TEXT[]::REGCLASS[]) ORDER BY 1",
    )
    return [row[0] for row in await samples.scan(ctx.store, "test.partitions", tables or ("bodies", "messages"))]


async def end(ctx: context.Context, claims: list[queue.Claimed]) -> None:
    verdict = disposition.Verdict.DELIVERED
    await ctx.outcome_commits.submit(
        [claimed_mail.outcome(ctx, claim, verdict, recipient_count=len(claims)) for claim in claims]
    )


async def sent(ctx: context.Context, account_id: str) -> str:
    message_id, claims = await claimed_mail.another(
        ctx, account_id, "ada@example.net", tags=("orders",), metadata={"order": "1042"}
    )
    await end(ctx, claims)
    return message_id


async def days_pass(ctx: context.Context, clock: contexts.Clock, days: int) -> int:
    """Look after the partitions and sweep every day; returns how many rows were deleted one by one."""
    deleted = 0
    for _ in range(days):
        clock.pass_seconds(DAY_SECONDS)
        await partitions.keep(ctx)
        swept = await cleanup.sweep(ctx)
        deleted += swept.bodies + swept.messages
    return deleted


async def test_a_partition_begins_before_it_is_needed(ctx: context.Context, clock: contexts.Clock) -> None:
    assert await names(ctx) == ["bodies_last", "messages_last"]
    assert await partitions.keep(ctx) == 2
    assert await names(ctx) == ["bodies_last", FIRST[0], "messages_last", FIRST[1]]
    assert await partitions.keep(ctx) == 0
    clock.pass_seconds(28 * DAY_SECONDS)
    assert await partitions.keep(ctx) == 0
    clock.pass_seconds(DAY_SECONDS)
    assert await partitions.keep(ctx) == 2
    # An eighth of 30 and of 90 days.
    assert await names(ctx, "bodies") == ["bodies_last", FIRST[0], "bodies_until_20270218"]
    assert await names(ctx, "messages") == ["messages_last", FIRST[1], "messages_until_20270226"]
    for table in MAIL:
        suffixes = [name.removeprefix(table) for name in await names(ctx, table)]
        assert suffixes == ["_last", "_until_20270214", "_until_20270226"]


async def test_mail_goes_with_its_partition_and_not_row_by_row(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    await partitions.keep(ctx)
    # The first partitions are longer than the others, and their mail is deleted before they are dropped.
    await days_pass(ctx, clock, 31)
    message_id = await sent(ctx, account.id)
    assert await days_pass(ctx, clock, 30) == 0
    assert len(await messages.raw(ctx, account.id, message_id)) > 0
    assert await days_pass(ctx, clock, 4) == 0
    with pytest.raises(errors.NotFound, match="its content is no longer retained"):
        await messages.raw(ctx, account.id, message_id)
    assert "bodies_late" in await names(ctx)
    assert (await consistency.run(ctx)).findings == []
    assert await days_pass(ctx, clock, 56) == 0
    found = await messages.details(ctx, account.id, message_id)
    assert (found.message.status, len(found.recipients), len(found.attempts)) == ("delivered", 1, 1)
    assert await days_pass(ctx, clock, 12) == 0
    assert [await samples.count(ctx.store, table) for table in MAIL] == [0] * len(MAIL)
    assert (await consistency.run(ctx)).findings == []
    # Eight and a half periods, one begun in advance, and the two special ones.
    assert len(await names(ctx, "messages")) <= 12
    assert len(await names(ctx, "bodies")) <= 12


async def test_mail_that_waits_stays_is_delivered_and_goes_later(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    await partitions.keep(ctx)
    await days_pass(ctx, clock, 31)
    message_id, claims = await claimed_mail.another(ctx, account.id, "ada@example.net", tags=("orders",))
    gone = await sent(ctx, account.id)
    assert await days_pass(ctx, clock, 110) == 0
    with pytest.raises(errors.NotFound):
        await messages.details(ctx, account.id, gone)
    found = await messages.details(ctx, account.id, message_id)
    assert (found.message.status, len(found.recipients)) == ("queued", 1)
    content = await messages.raw(ctx, account.id, message_id)
    assert (await consistency.run(ctx)).findings == []
    await end(ctx, claims)
    assert await days_pass(ctx, clock, 29) == 0
    assert await messages.raw(ctx, account.id, message_id) == content
    assert await days_pass(ctx, clock, 6) == 0
    with pytest.raises(errors.NotFound, match="its content is no longer retained"):
        await messages.raw(ctx, account.id, message_id)
    found = await messages.details(ctx, account.id, message_id)
    assert (found.message.status, len(found.attempts)) == ("delivered", 1)
    assert await days_pass(ctx, clock, 70) == 0
    assert [await samples.count(ctx.store, table) for table in MAIL] == [0] * len(MAIL)
    assert (await consistency.run(ctx)).findings == []


async def test_mail_that_was_there_before_is_deleted_row_by_row(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    message_id = await sent(ctx, account.id)
    await partitions.keep(ctx)
    assert await days_pass(ctx, clock, 35) == 0
    assert len(await messages.raw(ctx, account.id, message_id)) > 0
    assert await days_pass(ctx, clock, 1) == 1
    assert await days_pass(ctx, clock, 90 + 12 + 2 - 37) == 0
    assert await days_pass(ctx, clock, 1) == 1
    assert await samples.count(ctx.store, "recipients") == 0


@pytest.mark.parametrize("limit", ["MAX_LATE_RECIPIENTS", "MAX_LATE_BYTES"])
async def test_with_too_much_mail_that_waits_the_rest_is_deleted_row_by_row(
    ctx: context.Context,
    account: stored_accounts.Account,
    clock: contexts.Clock,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    await partitions.keep(ctx)
    await days_pass(ctx, clock, 31)
    monkeypatch.setattr(stored_partitions, limit, 1)
    _, claims = await claimed_mail.another(ctx, account.id, "ada@example.net", "bob@example.net")
    await sent(ctx, account.id)
    # The bytes matter for the content, without which no message goes.
    assert await days_pass(ctx, clock, 90 + 12 + 2 + 1) == 2
    assert [await samples.count(ctx.store, table) for table in ("messages", "bodies", "recipients")] == [1, 1, 2]
    await end(ctx, claims)
    monkeypatch.undo()
    await partitions.keep(ctx)
    assert (await consistency.run(ctx)).findings == []
    assert [await samples.count(ctx.store, table) for table in ("messages", "bodies", "recipients")] == [1, 1, 2]


async def test_a_message_stays_as_long_as_its_content(
    ctx: context.Context,
    account: stored_accounts.Account,
    clock: contexts.Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if the content could not be dropped, and the message could."""
    await accepted_mail.allow_sending(ctx, account.id)
    await partitions.keep(ctx)
    await sent(ctx, account.id)
    expire = stored_partitions.expire

    async def expire_messages(tx: store.Transaction, tables: Sequence[str], *, before: str, ended_after: int) -> bool:
        return tables != ("bodies",) and await expire(tx, tables, before=before, ended_after=ended_after)

    monkeypatch.setattr(stored_partitions, "expire", expire_messages)
    clock.pass_seconds(200 * DAY_SECONDS)
    await partitions.keep(ctx)
    assert await samples.count(ctx.store, "messages") == 1
    assert (await consistency.run(ctx)).findings == []
    monkeypatch.undo()
    await partitions.keep(ctx)
    assert [await samples.count(ctx.store, table) for table in ("messages", "bodies")] == [0, 0]


async def test_while_somebody_reads_for_long_nothing_changes_and_mail_goes_on(
    ctx: context.Context, account: stored_accounts.Account, database_url: str
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    reader = await asyncpg.connect(database_url)
    try:
        async with reader.transaction():
            await reader.execute("SELECT * FROM messages")
            with pytest.raises(errors.TemporaryFailure):
                await partitions.keep(ctx)
            assert "messages_until_20270214" not in await names(ctx)
            await sent(ctx, account.id)
            assert await reader.fetchval("SELECT COUNT(*) FROM pg_constraint WHERE conname = 'partition_bound'") == 0
    finally:
        await reader.close()
    assert await partitions.keep(ctx) == 1


async def test_mail_with_an_id_from_the_far_future_stays_where_it_is(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    clock.pass_seconds(400 * DAY_SECONDS)
    ahead = await sent(ctx, account.id)
    clock.pass_seconds(-400 * DAY_SECONDS)
    with pytest.raises(store.ConstraintViolated):
        await partitions.keep(ctx)
    assert await names(ctx) == ["bodies_last", "messages_last"]
    clock.pass_seconds(500 * DAY_SECONDS)
    await sent(ctx, account.id)
    assert (await messages.details(ctx, account.id, ahead)).message.status == "delivered"


async def test_a_host_that_died_in_the_middle_leaves_nothing_that_refuses_mail(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    group = partitions.mail(ctx.settings)
    async with ctx.store.transaction() as tx:
        await stored_partitions.bound(tx, group.tables, before="em_0000000000000f")
    with pytest.raises(store.ConstraintViolated):
        await sent(ctx, account.id)
    await partitions.keep(ctx)
    await sent(ctx, account.id)


async def test_two_hosts_do_the_same_once(ctx: context.Context, settings: config.Settings) -> None:
    tables = partitions.content(settings).tables
    for done in (True, False):
        async with ctx.store.transaction() as tx:
            assert await stored_partitions.extend(tx, tables, until="em_00066000000000") is done
    async with ctx.store.transaction() as tx:
        assert await stored_partitions.extend(tx, tables, until="em_00065000000000") is False


@pytest.mark.parametrize("days, length, grace", [(1, 1, 3), (2, 1, 3), (30, 4, 6), (90, 12, 14), (3650, 457, 459)])
def test_a_partition_is_an_eighth_of_the_retention_period(days: int, length: int, grace: int) -> None:
    group = partitions.Group((), days)
    assert (group.length, group.grace) == (length * 86_400_000_000, grace * 86_400_000_000)
