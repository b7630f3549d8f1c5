"""The maintenance role sends the TLS reports that are due, if reports are on, and notices."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from postroad import config, context
from postroad.protocol.reports import tls_report
from postroad.roles import composition, maintenance, role
from postroad.storage.mail import mail_counts, tls_policies
from postroad.storage.operations import notices, processes
from tests import contexts, dns_server
from tests.storage import samples

TIMEOUT_SECONDS = 60
SUCCESS = tls_report.Result(tls_report.Policy(tls_report.PolicyType.NONE, "example.net"))


@pytest.fixture
async def opened(clean_sqlite_url: str) -> AsyncIterator[Callable[[str], Any]]:
    async with dns_server.running({}) as dns:

        def open_with(sender: str) -> Any:  # noqa: ANN401 - a context manager
            return composition.open_context(
                contexts.load(
                    clean_sqlite_url,
                    delivery={"resolvers": [dns.address]},
                    domains={"check_hours": 0},
                    tls_reports={"from": sender},
                )
            )

        yield open_with


async def run_until(ctx: context.Context, is_so: Callable[[], Any], *, lines: LogCapture | None = None) -> None:
    """Run the role until it is so; what it says goes to `lines`."""
    stopping = asyncio.Event()
    log = structlog.wrap_logger(None, processors=[lines or LogCapture()])

    async def no_metrics() -> bytes:
        return b""

    started = await maintenance.start_maintenance(role.RoleContext(ctx, log, stopping, no_metrics))
    working = asyncio.ensure_future(started.work())
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not await is_so():
                await asyncio.sleep(0.02)
    finally:
        stopping.set()
        await working


async def add_report(ctx: context.Context, *, day: int) -> None:
    async with ctx.store.transaction() as tx:
        await tls_policies.add_sessions(tx, day, {"example.net": {SUCCESS: 1}}, due_at={"example.net": 1})


async def test_reports_that_are_due_are_sent(opened: Callable[[str], Any]) -> None:
    async with opened("tls-reports@example.com") as ctx:
        today = ctx.clock() // (86_400 * contexts.SECOND)
        await add_report(ctx, day=today)

        async def is_done() -> bool:
            return await samples.count(ctx.store, "tls_reports") == 0

        await run_until(ctx, is_done)


async def test_without_a_sender_old_reports_are_only_removed(opened: Callable[[str], Any]) -> None:
    async with opened("") as ctx:
        today = ctx.clock() // (86_400 * contexts.SECOND)
        await add_report(ctx, day=today)
        await add_report(ctx, day=today - 3)

        async def is_swept() -> bool:
            return await samples.count(ctx.store, "tls_results") == 1

        await run_until(ctx, is_swept)
        assert await samples.count(ctx.store, "tls_reports") == 1


async def test_notices_are_resolved(opened: Callable[[str], Any]) -> None:
    """Without a sender nobody gets them, and they do not wait for one."""
    notice = notices.Notice("ntc_1", "credits.low", "acc_1", "", "acc_1", "{}", 5)
    async with opened("") as ctx:
        async with ctx.store.transaction() as tx:
            await notices.insert(tx, notice, unless_since=0)

        async def are_resolved() -> bool:
            async with ctx.store.reading() as tx:
                return not await notices.unresolved(tx, limit=1)

        await run_until(ctx, are_resolved)


async def test_what_time_causes_is_looked_for(opened: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "WATCH_INTERVAL_SECONDS", 0)
    async with opened("") as ctx:
        async with ctx.store.transaction() as tx:
            hour = mail_counts.hour_of(ctx.clock())
            blocked = mail_counts.FailureIncrement("acc_1", hour, "google", "ip_blocked", 10, 0)
            await mail_counts.add_failures(tx, [blocked])

        async def is_told() -> bool:
            async with ctx.store.reading() as tx:
                return await notices.count(tx, "", "operator.address_blocked", user_id=None, since=0) == 1

        await run_until(ctx, is_told)


@pytest.mark.parametrize(
    "offset, told",
    [
        (0, ("debug", "partitions_kept", None)),
        (
            -7_200 * contexts.SECOND,
            ("warning", "partitions_deferred", "the clocks of this host and of the database differ by 7200 seconds"),
        ),
    ],
    ids=["right", "wrong"],
)
async def test_partitions_are_kept_unless_the_clock_is_wrong(
    clean_postgres_url: str, offset: int, told: tuple[str, str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = {"database": {"url": clean_postgres_url}, "security": {"installation_key": contexts.SECRET_KEY}}
    async with composition.open_context(
        config.load(environment={}, overrides={**chosen, "domains": {"check_hours": 0}}), clock=contexts.Clock()
    ) as ctx:

        async def of_the_database(_: object) -> int:
            return ctx.clock() + offset

        monkeypatch.setattr(processes, "database_time", of_the_database)
        lines = LogCapture()

        async def is_said() -> bool:
            return any(line["event"].startswith("partitions_") for line in lines.entries)

        await run_until(ctx, is_said, lines=lines)
    entries = [line for line in lines.entries if line["event"].startswith("partitions_")]
    assert [(line["log_level"], line["event"], line.get("error")) for line in entries] == [told]
