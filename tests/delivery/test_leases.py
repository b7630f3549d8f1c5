"""Leases: held while work is under way, renewed in time, and handed back without a trace."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from postroad import errors
from postroad.delivery import recorder
from postroad.storage.engine import store
from postroad.storage.mail import queue
from tests.contexts import SECOND
from tests.delivery import bulk_queue, parts


async def claim_as(made: parts.Parts, worker: str) -> list[queue.Claimed]:
    async with made.ctx.store.transaction() as tx:
        await queue.promote(tx, now=made.clock(), limit=100)
        wanted = [queue.ClaimRequest(queue_key, 100) for queue_key in await queue.queue_keys(tx, after="", limit=100)]
        return await queue.claim(tx, wanted, lease_until=made.clock() + 60 * SECOND, worker=worker)


async def renewed_once(held: recorder.Leases, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the renewals until one has been tried."""
    tried = asyncio.Event()
    renew = held._renew

    async def renew_and_tell() -> None:
        try:
            await renew()
        finally:
            tried.set()

    monkeypatch.setattr(held, "_renew", renew_and_tell)
    monkeypatch.setattr(recorder, "RENEWALS_PER_LEASE", 60_000)
    task = asyncio.create_task(held.renew_forever())
    await tried.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_what_is_handed_back_can_be_claimed_at_once_and_nothing_was_counted(database_url: str) -> None:
    async with parts.opened(database_url) as made:
        await made.accept()
        (claim,) = await made.claim()
        assert await made.ready() == []
        await made.held.release([claim.key])
        assert len(made.held) == 0
        (again,) = await made.claim()
        assert (again.key, again.attempt_count, again.lost_leases) == (claim.key, 0, 0)


async def test_a_renewed_lease_outlives_its_first_end_and_a_dropped_one_does_not(url: str) -> None:
    async with parts.opened(url) as made:
        await made.accept("kept@example.net")
        await made.accept("dropped@example.net")
        dropped, kept = sorted(await made.claim(), key=lambda claim: claim.email)
        made.held.drop([dropped.key])
        made.clock.pass_seconds(40)
        await made.held._renew()
        made.clock.pass_seconds(30)
        assert [row.email for row in await claim_as(made, "another")] == ["dropped@example.net"]
        made.clock.pass_seconds(31)
        (late,) = (row for row in await claim_as(made, "third") if row.key == kept.key)
        assert late.lost_leases == 1


async def test_a_claim_that_is_held_already_is_not_taken_twice(url: str) -> None:
    async with parts.opened(url) as made:
        await made.accept()
        (claim,) = await made.claim()
        made.clock.pass_seconds(61)
        again = await claim_as(made, made.held.worker)
        assert [row.key for row in again] == [claim.key]
        assert made.held.take(again) == []
        assert len(made.held) == 1


async def test_an_account_leaves_leases_to_others_and_keeps_some_for_urgent_mail(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_LEASES", 2_000)
    async with parts.opened(url) as made:
        held, account_id = made.held, made.account_id

        def rooms(of: str) -> tuple[int, int, int]:
            """Messages, of 50 recipients: for slow destinations, for others, and urgent ones."""
            return held.room(of, 1.0), held.room(of), held.room(of, 8.0)

        assert rooms(account_id) == rooms("another") == (20, 32, 35)
        await bulk_queue.fill(made.ctx, account_id, "example.net", count=1_000, each=50)
        claims = await made.claim()
        assert len(claims) == 1_000
        assert (rooms(account_id), rooms("another")) == ((0, 12, 15), (10, 16, 17))
        await held.release([claim.key for claim in claims[:100]])
        assert rooms(account_id) == (2, 14, 17)
        held.take(claims[99:])  # one that is not held, and those that are
        held.drop(claim.key for claim in claims[:100])
        assert rooms(account_id) == (2, 14, 17)
        held.drop(claim.key for claim in claims)
        assert rooms(account_id) == rooms("another") == (20, 32, 35)


async def test_what_is_being_claimed_counts_with_all_recipients_until_it_is_held(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_LEASES", 2_000)
    async with parts.opened(url) as made:
        assert made.held.reserve("one", 1_000) == 32  # 1,600 recipients
        assert (made.held.reserve("one", 1), made.held.reserve("another", 1_000)) == (0, 6)
        made.held.end_reservations()
        made.held.end_reservations()
        assert made.held.reserve("another", 3) == 3


async def test_many_leases_are_renewed_and_handed_back_in_short_transactions(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    for name in ("extend", "release"):
        real = getattr(queue, name)

        async def counted(
            tx: store.Transaction,
            keys: Sequence[queue.Key],
            *,
            real: Callable[..., Awaitable[object]] = real,
            **arguments: object,
        ) -> object:
            sizes.append(len(keys))
            return await real(tx, keys, **arguments)

        monkeypatch.setattr(queue, name, counted)
    async with parts.opened(url) as made:
        await bulk_queue.fill(made.ctx, made.account_id, "example.net", count=510)
        claims = await made.claim()
        made.clock.pass_seconds(40)
        await made.held._renew()
        made.clock.pass_seconds(30)
        assert await claim_as(made, "another") == []
        await made.held.release([claim.key for claim in claims])
        assert sizes == [500, 10, 500, 10]
        assert len(await made.ready()) == 510


async def test_only_the_holder_can_hand_back_or_renew(url: str) -> None:
    async with parts.opened(url) as made:
        await made.accept()
        (claim,) = await made.claim()
        made.clock.pass_seconds(61)
        await claim_as(made, "another")
        await made.held._renew()
        await made.held.release([claim.key])
        assert await made.ready() == []


async def test_renewals_go_on_by_themselves_and_survive_a_store_that_is_away(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with parts.opened(url) as made:
        await made.accept()
        await made.claim()
        made.clock.pass_seconds(59)
        await renewed_once(made.held, monkeypatch)
        made.clock.pass_seconds(2)
        assert await claim_as(made, "another") == []
        assert made.events() == []
        with monkeypatch.context() as patch:
            patch.setattr(made.held, "_database", Away())
            await renewed_once(made.held, monkeypatch)
        assert set(made.events()) == {"lease_renewal_failed"}


async def test_handing_back_to_a_store_that_is_away_is_reported_and_left_to_time(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with parts.opened(url) as made:
        await made.accept()
        (claim,) = await made.claim()
        monkeypatch.setattr(made.held, "_database", Away())
        await made.held.release([claim.key])
        assert made.events() == ["lease_release_failed"]
        assert len(made.held) == 0
        made.clock.pass_seconds(61)
        assert [row.key for row in await claim_as(made, "another")] == [claim.key]


class Away:
    """A store that cannot be reached."""

    def transaction(self) -> store.Transaction:
        raise errors.ServiceUnavailable("away", retry_after=1)
