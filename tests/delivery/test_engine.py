"""The engine as a whole: it runs until stopped, ends in order, and fails loudly on a bug."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from postroad import config, context, errors
from postroad.delivery import dispatcher, engine, provider_queue
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import lookup as messages
from postroad.services.operations import operator_jobs
from postroad.storage.mail import queue
from postroad.storage.operations import processes
from tests import accepted_mail, contexts, dns_server, sections, smtp_peers
from tests.delivery import bulk_queue, engine_harness, parts


@contextlib.asynccontextmanager
async def made_engine(url: str, port: int = 25, **delivery: object) -> AsyncIterator[tuple[engine.Engine, Any]]:
    """An engine that does not run yet, its context and account, and what it logs."""
    async with dns_server.running(engine_harness.zones_of({engine_harness.HOST: "127.0.0.1"})) as dns:
        settings = config.load(
            environment={},
            overrides={
                "database": {"url": url},
                "security": {"installation_key": contexts.SECRET_KEY},
                **sections.spread(
                    "delivery", {**engine_harness.QUICK, "resolvers": [dns.address], "mx_port": port, **delivery}
                ),
            },
        )
        async with composition.open_context(settings, clock=contexts.Clock()) as ctx:
            account = await accounts.create(ctx, "Shop")
            await accepted_mail.allow_sending(ctx, account.id)
            log, lines = parts.logger()
            made = engine.Engine(ctx, hello_name=engine_harness.HELLO_NAME, log=log)
            yield made, (ctx, account.id, lines)


async def test_what_comes_while_it_runs_is_delivered_without_waiting_for_the_next_look(url: str) -> None:
    # A look every thousand seconds: only the arrival itself can wake the engine in time.
    async with engine_harness.delivering_to(url, poll_milliseconds=1_000_000) as (_, harness):
        for _ in range(3):
            seen = await harness.settle(await harness.send())
            assert seen.recipient.status == "delivered"


async def test_a_bug_in_the_walk_ends_the_engine_loudly_and_in_order(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        smtp_peers.serving({"CONTENT": smtp_peers.Drip("250 taken", 0.01)}) as peer,
        made_engine(url, peer.port) as (made, (ctx, account_id, _)),
    ):
        message_id = await accepted_mail.accept(ctx, account_id)
        step = made._dispatcher.step

        async def step_until_something_is_sent() -> bool:
            if "CONTENT" in peer.verbs():
                raise RuntimeError("a bug")
            return await step()

        monkeypatch.setattr(made._dispatcher, "step", step_until_something_is_sent)
        with pytest.raises(RuntimeError, match="a bug"):
            await made.run(asyncio.Event())
        assert len(made._leases) == 0
        assert await engine_recipients(ctx, account_id, message_id) == ["delivered"]


async def engine_recipients(ctx: context.Context, account_id: str, message_id: str) -> list[str]:
    _, reached = await messages.find(ctx, account_id, message_id)
    return [recipient.status for recipient in reached]


async def test_a_stop_lets_the_claim_under_way_end_and_hands_it_back(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        smtp_peers.serving({"BANNER": smtp_peers.SILENCE}) as peer,
        made_engine(url, peer.port, grace_seconds=1) as (
            made,
            (ctx, account_id, lines),
        ),
    ):
        await bulk_queue.fill(ctx, account_id, "example.net", count=20)
        stopping, claim = asyncio.Event(), made._dispatcher._claim

        async def claim_and_stop(
            plan: dispatcher.Plan, work: queue.Work, *, now: int, leases_until: int
        ) -> dispatcher.Claims:
            claimed = await claim(plan, work, now=now, leases_until=leases_until)
            if claimed.rows:
                stopping.set()
                await asyncio.sleep(0.01)
            return claimed

        monkeypatch.setattr(made._dispatcher, "_claim", claim_and_stop)
        await made.run(stopping)
        assert len(made._leases) == 0
        report = await operator_jobs.check_consistency(ctx)
        assert report.findings == []
        async with ctx.store.transaction() as tx:
            (queue_key,) = await queue.queue_keys(tx, after="", limit=10)
            wanted = [queue.ClaimRequest(queue_key, 100)]
            rows = await queue.claim(tx, wanted, lease_until=1, worker="another")
        assert len(rows) == 20
        assert {row.attempt_count for row in rows} == {0}
        assert "grace_period_exceeded" in [line["event"] for line in lines]


async def test_a_cancelled_engine_ends_in_order_too(url: str) -> None:
    async with (
        smtp_peers.serving({"MAIL": smtp_peers.SILENCE}) as peer,
        made_engine(url, peer.port, grace_seconds=1) as (made, (ctx, account_id, _)),
    ):
        await accepted_mail.accept(ctx, account_id)
        task = asyncio.create_task(made.run(asyncio.Event()))
        await peer.wait_for("MAIL")
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert len(made._leases) == 0


async def test_nothing_is_reported_provider_queues_after_the_end(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_queue, "CHECK_SECONDS", 0.001)
    script: smtp_peers.Script = {"MAIL": "451 4.7.0 too many messages, slow down"}
    async with smtp_peers.serving(script) as peer, made_engine(url, peer.port) as (made, (ctx, account_id, _)):
        await accepted_mail.accept(ctx, account_id)
        stopping = asyncio.Event()
        task = asyncio.create_task(made.run(stopping))

        async def reported() -> list[processes.QueueStatus]:
            async with ctx.store.reading() as tx:
                return await processes.queues_since(tx, 0)

        async def is_reported() -> bool:
            return bool(await reported())

        await parts.until(is_reported)
        close = made._router.close

        async def close_slowly() -> None:
            await asyncio.sleep(0.02)
            await close()

        monkeypatch.setattr(made._router, "close", close_slowly)
        monkeypatch.setattr(made._status_reporter, "_has_changed", lambda *_: True)
        stopping.set()
        await task
        assert await reported() == []


async def test_a_store_that_is_away_is_asked_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "ERROR_BACKOFF_SECONDS", 0.001)
    async with smtp_peers.serving() as peer, made_engine(url, peer.port) as (made, (ctx, account_id, lines)):
        step, steps = made._dispatcher.step, 0

        async def fail_at_first() -> bool:
            nonlocal steps
            steps += 1
            if steps < 3:
                raise errors.ServiceUnavailable("away", retry_after=1)
            return await step()

        monkeypatch.setattr(made._dispatcher, "step", fail_at_first)
        message_id = await accepted_mail.accept(ctx, account_id)
        stopping = asyncio.Event()
        task = asyncio.create_task(made.run(stopping))

        async def is_delivered() -> bool:
            return await engine_recipients(ctx, account_id, message_id) == ["delivered"]

        await parts.until(is_delivered)
        stopping.set()
        await task
        assert [line["event"] for line in lines][:2] == ["queue_unavailable"] * 2


def stopped() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


async def test_an_engine_says_hello_with_the_name_of_the_settings(url: str) -> None:
    async with smtp_peers.serving() as peer, made_engine(url, peer.port, hostname="out.example.org") as (_, (ctx, *__)):
        log, _lines = parts.logger()
        made = await engine.open_engine(ctx, log=log)
        connection = await made._connect(parts.host_at(peer.port))
        await connection.close()
        assert peer.commands[0] == "EHLO out.example.org"
        await made.run(stopped())
