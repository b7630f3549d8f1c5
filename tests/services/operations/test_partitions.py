"""Partitions on PostgreSQL: mail goes with its partition, and none that is still needed goes with it."""

import asyncio
import contextlib
from collections.abc import Sequence

import asyncpg
import pytest

from postroad import config, context, errors
from postroad.model.bounces import disposition
from postroad.model.units import identifiers
from postroad.services.messages import lookup as messages
from postroad.services.operations import cleanup, operator_jobs, partitions
from postroad.storage.engine import store
from postroad.storage.mail import queue
from postroad.storage.operations import partitions as stored_partitions
from postroad.storage.people import accounts as stored_accounts
from tests import contexts
from tests.services import claimed_mail
from tests.storage import samples

DAY_SECONDS = 24 * 3600
# No partition is shorter than four days here.
STEP_DAYS = 2
# The clock of the tests begins on 15 January 2027 at 08:00.
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
    """Look after the partitions and sweep every few days; returns how many rows were deleted one by one."""
    deleted = 0
    for day in range(0, days, STEP_DAYS):
        clock.pass_seconds(min(STEP_DAYS, days - day) * DAY_SECONDS)
        with contextlib.suppress(partitions.TooMuchLateMail):
            await partitions.keep(ctx)
        swept = await cleanup.sweep(ctx)
        deleted += swept.bodies + swept.messages
    return deleted


async def test_a_partition_begins_before_it_is_needed(ctx: context.Context, clock: contexts.Clock) -> None:
    assert await names(ctx) == ["bodies_first", "messages_first"]
    assert await partitions.keep(ctx) == 2
    assert await names(ctx) == ["bodies_first", "bodies_from_20270122", "messages_first", "messages_from_20270122"]
    assert await partitions.keep(ctx) == 0
    clock.pass_seconds(5 * DAY_SECONDS)
    assert await partitions.keep(ctx) == 0
    clock.pass_seconds(DAY_SECONDS)
    assert await partitions.keep(ctx) == 2
    # An eighth of 30 and of 90 days.
    assert await names(ctx, "bodies") == ["bodies_first", "bodies_from_20270122", "bodies_from_20270126"]
    for table in MAIL:
        suffixes = [name.removeprefix(table) for name in await names(ctx, table)]
        assert suffixes == ["_first", "_from_20270122", "_from_20270203"]


async def test_mail_goes_with_its_partition_and_not_row_by_row(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    await partitions.keep(ctx)
    # The first partitions have a length of their own.
    await days_pass(ctx, clock, 31)
    message_id = await sent(ctx, shop)
    assert await days_pass(ctx, clock, 30) == 0
    assert len(await messages.raw(ctx, shop, message_id)) > 0
    assert await days_pass(ctx, clock, 4) == 0
    with pytest.raises(errors.NotFound, match="its content is no longer retained"):
        await messages.raw(ctx, shop, message_id)
    assert "bodies_late_20270219" in await names(ctx)
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    assert await days_pass(ctx, clock, 56) == 0
    found = await messages.details(ctx, shop, message_id)
    assert (found.message.status, len(found.recipients), len(found.attempts)) == ("delivered", 1, 1)
    assert await days_pass(ctx, clock, 12) == 0
    assert [await samples.count(ctx.store, table) for table in MAIL] == [0] * len(MAIL)
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    # Eight and a half periods, one begun in advance, and the two special ones.
    assert len(await names(ctx, "messages")) <= 12
    assert len(await names(ctx, "bodies")) <= 12


async def test_mail_that_waits_stays_is_delivered_and_goes_later(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    await partitions.keep(ctx)
    await days_pass(ctx, clock, 31)
    message_id, claims = await claimed_mail.another(ctx, shop, "ada@example.net", tags=("orders",))
    gone = await sent(ctx, shop)
    assert await days_pass(ctx, clock, 110) == 0
    with pytest.raises(errors.NotFound):
        await messages.details(ctx, shop, gone)
    found = await messages.details(ctx, shop, message_id)
    assert (found.message.status, len(found.recipients)) == ("queued", 1)
    content = await messages.raw(ctx, shop, message_id)
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    await end(ctx, claims)
    assert await days_pass(ctx, clock, 29) == 0
    assert await messages.raw(ctx, shop, message_id) == content
    assert await days_pass(ctx, clock, 6) == 0
    with pytest.raises(errors.NotFound, match="its content is no longer retained"):
        await messages.raw(ctx, shop, message_id)
    found = await messages.details(ctx, shop, message_id)
    assert (found.message.status, len(found.attempts)) == ("delivered", 1)
    assert await days_pass(ctx, clock, 70) == 0
    assert [await samples.count(ctx.store, table) for table in MAIL] == [0] * len(MAIL)
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_mail_that_was_there_before_is_deleted_row_by_row(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    message_id = await sent(ctx, shop)
    await partitions.keep(ctx)
    assert await days_pass(ctx, clock, 35) == 0
    assert len(await messages.raw(ctx, shop, message_id)) > 0
    assert await days_pass(ctx, clock, 1) == 1
    assert await days_pass(ctx, clock, 60) == 0
    assert await samples.count(ctx.store, "recipients") == 1
    # A week and 90 days later, the first partition is dropped.
    assert await days_pass(ctx, clock, 1) == 0
    assert await samples.count(ctx.store, "recipients") == 0


@pytest.mark.parametrize("limit", ["MAX_LATE_RECIPIENTS", "MAX_LATE_BYTES"])
async def test_with_too_much_mail_that_waits_the_rest_is_deleted_row_by_row(
    ctx: context.Context,
    shop: str,
    clock: contexts.Clock,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
) -> None:
    await partitions.keep(ctx)
    await days_pass(ctx, clock, 31)
    monkeypatch.setattr(stored_partitions, limit, 1)
    _, claims = await claimed_mail.another(ctx, shop, "ada@example.net", "bob@example.net")
    await sent(ctx, shop)
    clock.pass_seconds(40 * DAY_SECONDS)
    # Older partitions can be dropped.
    await partitions.keep(ctx)
    with pytest.raises(partitions.TooMuchLateMail, match="expired partitions of bodies is not final or ended late"):
        await partitions.keep(ctx)
    clock.pass_seconds(-40 * DAY_SECONDS)
    assert await days_pass(ctx, clock, 90 + 12 + 2 + 1) == 2
    assert [await samples.count(ctx.store, table) for table in ("messages", "bodies", "recipients")] == [1, 1, 2]
    await end(ctx, claims)
    monkeypatch.undo()
    await partitions.keep(ctx)
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    assert [await samples.count(ctx.store, table) for table in ("messages", "bodies", "recipients")] == [1, 1, 2]


async def test_a_message_stays_as_long_as_its_content(
    ctx: context.Context,
    shop: str,
    clock: contexts.Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if the content could not be dropped, and the message could."""
    await partitions.keep(ctx)
    await sent(ctx, shop)
    expire = stored_partitions.expire

    async def expire_messages(tx: store.Transaction, tables: Sequence[str], *, before: str, ended_after: int) -> bool:
        return tables != ("bodies",) and await expire(tx, tables, before=before, ended_after=ended_after)

    monkeypatch.setattr(stored_partitions, "expire", expire_messages)
    clock.pass_seconds(200 * DAY_SECONDS)
    with pytest.raises(partitions.TooMuchLateMail):
        await partitions.keep(ctx)
    assert await samples.count(ctx.store, "messages") == 1
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    monkeypatch.undo()
    await partitions.keep(ctx)
    assert [await samples.count(ctx.store, table) for table in ("messages", "bodies")] == [0, 0]


async def test_while_somebody_reads_for_long_nothing_changes_and_mail_goes_on(
    ctx: context.Context, shop: str, database_url: str
) -> None:
    reader = await asyncpg.connect(database_url)
    try:
        async with reader.transaction():
            await reader.execute("SELECT * FROM messages")
            with pytest.raises(errors.TemporaryFailure):
                await partitions.keep(ctx)
            assert await names(ctx) == ["bodies_first", "bodies_from_20270122", "messages_first"]
            await sent(ctx, shop)
            assert await reader.fetchval("SELECT COUNT(*) FROM pg_constraint WHERE conname = 'partition_bound'") == 0
    finally:
        await reader.close()
    assert await partitions.keep(ctx) == 1


async def test_a_vacuum_of_another_partition_delays_nothing(
    ctx: context.Context, clock: contexts.Clock, database_url: str
) -> None:
    await partitions.keep(ctx)
    clock.pass_seconds(6 * DAY_SECONDS)
    vacuum = await asyncpg.connect(database_url)
    try:
        async with vacuum.transaction():
            await vacuum.execute("LOCK TABLE messages_first, bodies_first IN SHARE UPDATE EXCLUSIVE MODE")
            assert await partitions.keep(ctx) == 2
    finally:
        await vacuum.close()


async def test_mail_with_an_id_from_the_far_future_stays_where_it_is(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    clock.pass_seconds(400 * DAY_SECONDS)
    ahead = await sent(ctx, shop)
    clock.pass_seconds(-400 * DAY_SECONDS)
    with pytest.raises(store.ConstraintViolated):
        await partitions.keep(ctx)
    assert await names(ctx) == ["bodies_first", "messages_first"]
    clock.pass_seconds(500 * DAY_SECONDS)
    await sent(ctx, shop)
    assert (await messages.details(ctx, shop, ahead)).message.status == "delivered"


async def test_a_host_that_died_in_the_middle_leaves_nothing_that_refuses_mail(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    group = partitions.mail(ctx.settings)
    async with ctx.store.transaction() as tx:
        await stored_partitions.bound(tx, group.tables, before="em_0000000000000f")
    with pytest.raises(store.ConstraintViolated):
        await sent(ctx, shop)
    await partitions.keep(ctx)
    await sent(ctx, shop)


async def test_content_that_cannot_be_looked_after_does_not_stop_the_rest(
    ctx: context.Context, shop: str, database_url: str
) -> None:
    """Above all, no bound stays with the messages: mail would be refused in the end."""
    async with ctx.store.transaction() as tx:
        await stored_partitions.bound(tx, partitions.mail(ctx.settings).tables, before="em_0000000000000f")
    reader = await asyncpg.connect(database_url)
    try:
        async with reader.transaction():
            await reader.execute("SELECT * FROM bodies")
            with pytest.raises(errors.TemporaryFailure):
                await partitions.keep(ctx)
            assert await names(ctx) == ["bodies_first", "messages_first", "messages_from_20270122"]
    finally:
        await reader.close()
    await sent(ctx, shop)


async def test_a_stop_in_the_middle_leaves_nothing_that_refuses_mail(
    ctx: context.Context, account: stored_accounts.Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stopped(*_: object, **__: object) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(stored_partitions, "extend", stopped)
    with pytest.raises(asyncio.CancelledError):
        await partitions.keep(ctx)
    async with ctx.store.transaction() as tx:
        assert not await stored_partitions.is_bounded(tx, partitions.content(ctx.settings).tables)


async def test_two_hosts_do_the_same_once(ctx: context.Context, settings: config.Settings) -> None:
    await asyncio.gather(*(extended(ctx, settings, "em_06670000000000") for _ in range(3)))
    found = await names(ctx, "bodies")
    await extended(ctx, settings, "em_06660000000000")
    assert await names(ctx, "bodies") == found
    assert len(found) == 2


async def extended(ctx: context.Context, settings: config.Settings, until: str) -> None:
    async with ctx.store.transaction() as tx:
        await stored_partitions.extend(tx, partitions.content(settings).tables, until=until)


async def test_a_partition_with_mail_is_not_read_while_others_wait(
    ctx: context.Context, shop: str, clock: contexts.Clock, database_url: str
) -> None:
    """It was bounded before, at both ends: PostgreSQL knows then what is in it."""
    server = await asyncpg.connect(database_url, server_settings={"client_min_messages": "debug1"})
    told: list[str] = []
    server.add_log_listener(lambda _, message: told.append(str(message)))
    tables = partitions.mail(ctx.settings).tables
    try:
        for days in (0, 60):
            clock.pass_seconds(days * DAY_SECONDS)
            await sent(ctx, shop)
            bound = identifiers.at(identifiers.MESSAGE, clock.now + 30 * DAY_SECONDS * contexts.SECOND)
            async with ctx.store.transaction() as tx:
                await stored_partitions.bound(tx, tables, before=bound)
            await server.execute("SELECT extend_mail_partitions($1, $2)", tables, bound)
    finally:
        await server.close()
    assert len(await names(ctx, "messages")) == 3
    # Each constraint is checked once, when it is made valid, and each new table is empty.
    assert [line for line in told if "partition constraint" in line and "implied" not in line] == []
    assert [line for line in told if "implied by existing constraints" in line]


async def test_a_partition_with_mail_and_no_bound_is_not_ended(
    ctx: context.Context, shop: str, settings: config.Settings
) -> None:
    await sent(ctx, shop)
    with pytest.raises(store.ConstraintViolated, match="bodies_first has rows and no bound"):
        await extended(ctx, settings, "em_06670000000000")


@pytest.mark.parametrize("days, length, grace", [(1, 1, 3), (2, 1, 3), (30, 4, 6), (90, 12, 14), (3650, 457, 459)])
def test_a_partition_is_an_eighth_of_the_retention_period(days: int, length: int, grace: int) -> None:
    group = partitions.Group((), days)
    assert (group.length, group.grace) == (length * 86_400_000_000, grace * 86_400_000_000)
