"""Accounts with mail for one provider: they take turns, and who has no share of the connections holds up no other."""

import contextlib
from collections.abc import AsyncIterator

import pytest

from postroad.delivery import attempter, permits, provider_queue
from tests import smtp_peers
from tests.delivery import bulk_queue, parts

NEVER = 3600.0


async def jobs_of(made: parts.Parts, account: str, count: int, port: int) -> list[attempter.Job]:
    """Prepared jobs of an account; its name is in their addresses."""
    account_id = (
        made.account_id
        if account == "first"
        else await bulk_queue.new_account(made.ctx, account, domain=f"{account}.example")
    )
    await bulk_queue.fill(made.ctx, account_id, "example.net", count=count, name=f"{account}-")
    jobs = attempter.jobs_of(await made.claim(), parts.route_to(parts.host_at(port)))
    await made.services.message_loader.prepare(jobs, lambda _: None)
    return jobs


def order(peer: smtp_peers.Peer) -> list[str]:
    """Whose mail came, in order."""
    return [transaction.recipients[0].partition("<")[2].partition("-")[0] for transaction in peer.transactions]


async def end(*queues: provider_queue.ProviderQueue) -> None:
    for one in queues:
        one.close()
        await one.finish()


@contextlib.asynccontextmanager
async def taken(made: parts.Parts, account_id: str, count: int) -> AsyncIterator[None]:
    """So many permits are held by an account meanwhile."""
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(count):
            await stack.enter_async_context(
                made.services.permits.acquire(account_id, is_responsive=True, on_slow=lambda: None)
            )
        yield


async def test_accounts_take_turns(url: str) -> None:
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        one = made.new_provider_queue(connections=1)
        first = await jobs_of(made, "first", 4, peer.port)
        parts.give(one, [*first, *await jobs_of(made, "second", 2, peer.port)])
        await parts.until(lambda: len(peer.transactions) == 6)
        assert order(peer) == ["first", "second", "first", "second", "first", "first"]
        await end(one)


async def test_an_account_without_a_share_keeps_no_other_from_asking(url: str) -> None:
    async with parts.opened(url, connections=5) as made, smtp_peers.serving() as peer:
        one = made.new_provider_queue(connections=1)
        first = await jobs_of(made, "first", 1, peer.port)
        second = await jobs_of(made, "second", 1, peer.port)
        async with taken(made, first[0].account_id, 4):
            parts.give(one, first)
            parts.give(one, second)
            await parts.until(lambda: order(peer) == ["second"])
        await parts.until(lambda: order(peer) == ["second", "first"])
        await end(one)


async def test_a_connection_is_not_used_on_for_an_account_without_a_share(url: str) -> None:
    async with parts.opened(url, connections=5) as made, smtp_peers.serving() as peer:
        one = made.new_provider_queue(connections=1)
        first = await jobs_of(made, "first", 2, peer.port)
        second = await jobs_of(made, "second", 1, peer.port)
        async with taken(made, first[0].account_id, 4):
            parts.give(one, second)
            await parts.until(lambda: bool(one._idle))
            parts.give(one, first)  # it would be the fifth of five
            await parts.until(lambda: one._asking.total() == 1 or len(peer.transactions) > 1)
            assert order(peer) == ["second"]
        await parts.until(lambda: len(peer.transactions) == 3)
        await end(one)


async def test_a_transaction_that_holds_on_makes_the_destination_slow_before_it_ends(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(permits, "SLOW_SECONDS", 0.5)
    script: smtp_peers.Script = {"CONTENT": ["250 2.0.0 taken", smtp_peers.SILENCE]}
    async with parts.opened(url) as made, smtp_peers.serving(script) as peer:
        one = made.new_provider_queue(connections=1)
        jobs = await jobs_of(made, "first", 2, peer.port)
        parts.give(one, jobs[:1])
        await parts.until(lambda: one._is_responsive)
        parts.give(one, jobs[1:])
        await parts.until(lambda: not one._is_responsive)
        assert one._slots
        await parts.cut(one)


async def test_large_messages_of_one_account_leave_a_place_for_those_of_another(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempter, "LARGE_MESSAGE_BYTES", 10)
    script: smtp_peers.Script = {"RECEIVING": smtp_peers.SILENCE}
    async with parts.opened(url) as made, contextlib.AsyncExitStack() as stack:
        stalling = [await stack.enter_async_context(smtp_peers.serving(script)) for _ in range(5)]
        healthy = await stack.enter_async_context(smtp_peers.serving())
        queues = [made.new_provider_queue() for _ in stalling]
        for one, peer in zip(queues, stalling, strict=True):
            one.adaptive_rate.allowed_connections = 3
            parts.give(one, await jobs_of(made, "first", 2, peer.port))
        # Six of eight; each destination would get two.
        await parts.until(lambda: sum(peer.verbs().count("DATA") for peer in stalling) == 6)
        good = made.new_provider_queue()
        parts.give(good, await jobs_of(made, "second", 3, healthy.port))
        await parts.until(lambda: len(healthy.transactions) == 3)
        assert sum(peer.verbs().count("DATA") for peer in stalling) == 6
        for one in queues:
            await parts.cut(one)
        await end(good)


async def test_large_messages_without_a_place_occupy_no_connection(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_queue, "LOOKAHEAD_SECONDS", parts.TIMEOUT_SECONDS)
    script: smtp_peers.Script = {"CONTENT": [*[smtp_peers.SILENCE] * 2, "250 2.0.0 taken"]}
    async with parts.opened(url) as made, smtp_peers.serving(script) as peer:
        one = made.new_provider_queue(connections=5)
        one.adaptive_rate.allowed_connections = 5
        large = await jobs_of(made, "first", 8, peer.port)
        small = await jobs_of(made, "second", 1, peer.port)
        for job in large:
            job.is_large = True
        parts.give(one, large)
        await parts.until(lambda: peer.verbs().count("DATA") == 2)
        assert len(one._slots) == 2
        parts.give(one, small)
        await parts.until(lambda: "second" in order(peer))
        assert set(await parts.cut(one)) <= set(large)
        # Whoever waited or was under way has let go of its place.
        assert one.is_idle
        assert [semaphore._shares.free for semaphore in (one._large, made.services.message_loader.large)] == [2, 8]


async def test_a_large_message_without_a_place_is_released_soon_and_sent_when_one_is_free(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempter, "LARGE_MESSAGE_BYTES", 10)
    monkeypatch.setattr(provider_queue, "LOOKAHEAD_SECONDS", 0.05)
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        one = made.new_provider_queue(connections=5)
        (job,) = await jobs_of(made, "first", 1, peer.port)
        async with one._large.hold("acc_1"), one._large.hold("acc_2"):
            parts.give(one, [job])
            await parts.until(lambda: len(made.held) == 0)
            await parts.until(lambda: one.is_idle)
            assert one.capacity_left()
            (again,) = attempter.jobs_of(await made.claim(), job.route)
            monkeypatch.setattr(provider_queue, "LOOKAHEAD_SECONDS", parts.TIMEOUT_SECONDS)
            parts.give(one, [again])
        await parts.until(lambda: order(peer) == ["first"])
        await end(one)
        assert one._large._shares.free == attempter.MAX_CONCURRENT_LARGE_PER_DESTINATION


@pytest.mark.parametrize("connections", [3, 5])
async def test_transactions_of_one_account_that_hold_on_leave_a_connection_to_another(
    url: str, connections: int
) -> None:
    script: smtp_peers.Script = {"CONTENT": [*[smtp_peers.SILENCE] * (connections - 1), "250 2.0.0 taken"]}
    async with parts.opened(url) as made, smtp_peers.serving(script) as peer:
        one = made.new_provider_queue(connections=5)
        one.adaptive_rate.allowed_connections = connections
        parts.give(one, await jobs_of(made, "first", 8, peer.port))
        await parts.until(lambda: order(peer) == ["first"] * (connections - 1))
        for account in ("second", "third"):
            parts.give(one, await jobs_of(made, account, 1, peer.port))
            await parts.until(lambda account=account: account in order(peer))  # type: ignore[misc]
        await parts.cut(one)
        assert one.is_idle
        assert one._shares.free == one._shares._units


@pytest.mark.parametrize("connections", [1, 2])
async def test_an_account_alone_gets_all_of_few_connections(url: str, connections: int) -> None:
    async with parts.opened(url) as made, smtp_peers.serving({"CONTENT": smtp_peers.SILENCE}) as peer:
        one = made.new_provider_queue(connections=5)
        one.adaptive_rate.allowed_connections = connections  # as at a new host
        parts.give(one, await jobs_of(made, "first", 4, peer.port))
        await parts.until(lambda: len(peer.transactions) == connections)
        await parts.cut(one)


async def test_a_host_that_answers_gets_the_mail_of_an_account_over_one_connection(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_queue, "PATIENCE_SECONDS", NEVER)
    monkeypatch.setattr(provider_queue, "MAX_PATIENCE_SECONDS", NEVER)
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        one = made.new_provider_queue(connections=10)
        parts.give(one, await jobs_of(made, "first", 10, peer.port))
        await parts.until(lambda: len(peer.transactions) == 10)
        assert peer.connections == 1
        await end(one)


async def test_more_mail_than_one_connection_may_hold_gets_another(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_queue, "PATIENCE_SECONDS", NEVER)
    monkeypatch.setattr(provider_queue, "MAX_PATIENCE_SECONDS", NEVER)
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        one = made.new_provider_queue(connections=10)
        parts.give(one, await jobs_of(made, "first", 1 + provider_queue.JOBS_PER_CONNECTION, peer.port))
        await parts.until(lambda: len(peer.transactions) == 1 + provider_queue.JOBS_PER_CONNECTION)
        assert peer.connections == 2
        await end(one)


async def test_another_account_does_not_wait_for_the_connection_of_the_first(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_queue, "PATIENCE_SECONDS", NEVER)
    monkeypatch.setattr(provider_queue, "MAX_PATIENCE_SECONDS", NEVER)
    async with parts.opened(url) as made, smtp_peers.serving({"MAIL": smtp_peers.SILENCE}) as peer:
        one = made.new_provider_queue(connections=10)
        parts.give(one, await jobs_of(made, "first", 2, peer.port))
        await peer.wait_for("MAIL")
        parts.give(one, await jobs_of(made, "second", 2, peer.port))
        await parts.until(lambda: peer.connections == 2)
        await parts.cut(one)


async def test_a_transaction_that_hangs_holds_up_no_other_mail_of_its_account(url: str) -> None:
    async with parts.opened(url) as made, smtp_peers.serving({"MAIL": smtp_peers.SILENCE}) as peer:
        one = made.new_provider_queue(connections=10)
        parts.give(one, await jobs_of(made, "first", 2, peer.port))
        await parts.until(lambda: peer.connections == 2)
        await parts.cut(one)
