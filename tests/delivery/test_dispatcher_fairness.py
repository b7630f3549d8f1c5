"""Fairness: scheduled queues, provider queues and accounts share, walks end, blocked destinations are skipped."""

import asyncio

import msgspec
import pytest

from postroad.delivery import dispatcher, provider_queue, recorder
from postroad.services.accounts import account_registry as accounts
from postroad.storage.mail import attempts, queue
from tests import accepted_mail, smtp_peers
from tests.delivery import bulk_queue, parts
from tests.reliability import sinks


async def walk(one: dispatcher.Dispatcher) -> int:
    """Step until a round brings nothing; how many steps it took."""
    steps = 1
    async with asyncio.timeout(parts.TIMEOUT_SECONDS):
        while await one.step():
            steps += 1
    return steps


async def test_a_provider_queue_without_room_leaves_its_recipients_in_the_store(url: str) -> None:
    async with parts.opened(url) as made:
        route = made.router.known["example.net"] = parts.route_to(parts.host_at(25))
        one = made.dispatching()
        await made.accept()
        one.provider_queues.of(route).adaptive_rate.slow_down(made.services.clock())
        assert not await one.step()
        assert len(made.held) == 0
        assert len(await made.ready()) == 1


async def test_more_scheduled_queues_than_room_all_get_their_turn(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_queue.ProviderQueue, "capacity_left", lambda _: 1)
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        route = parts.route_to(parts.host_at(peer.port))
        one = made.dispatching()
        for domain in ("a.example", "b.example", "c.example"):
            made.router.known[domain] = route
            await bulk_queue.fill(made.ctx, made.account_id, domain, count=60)
        for _ in range(60):
            assert await one.step()
        await parts.until(lambda: len(made.held) == 0)
        reached = {transaction.recipients[0].rpartition("@")[2] for transaction in peer.transactions}
        assert reached == {"a.example>", "b.example>", "c.example>"}
        await one.stop()


async def test_accounts_share_a_destination_however_much_one_of_them_has_queued(url: str) -> None:
    async with parts.opened(url) as made:
        made.router.known["example.net"] = parts.route_to(parts.host_at(25))
        small = (await accounts.create(made.ctx, "Small")).id
        await accepted_mail.allow_sending(made.ctx, small, domain="small.example")
        await bulk_queue.fill(made.ctx, made.account_id, "example.net", count=200)
        await bulk_queue.fill(made.ctx, small, "example.net", count=5)
        async with made.ctx.store.reading() as tx:
            queue_keys = await queue.queue_keys(tx, after="", limit=10)
        one = made.dispatching()
        plan = one._plan(queue_keys)
        shares = {wanted.queue_key.partition(" ")[2]: wanted.limit for wanted in plan.wanted}
        assert shares == {made.account_id: 16, small: 16}


async def test_a_step_takes_a_bounded_number_of_rows_over_all_provider_queues(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "MAX_CLAIMS_PER_STEP", 100)
    async with parts.opened(url) as made:
        queue_keys = [f"{number}.example acc_1" for number in range(8)]
        for number, queue_key in enumerate(queue_keys):
            domain = queue.domain_of(queue_key)
            here = parts.route_to(parts.host_at(25), name=f"provider queue {number % 4}")
            made.router.known[domain] = parts.NOWHERE if number == 7 else here
        plan = made.dispatching()._plan(queue_keys)
        # Four provider queues, which could take 32 each, and a scheduled queue without a route.
        assert 90 <= sum(wanted.limit for wanted in plan.wanted) <= 100
        monkeypatch.setattr(dispatcher, "MAX_CLAIMS_PER_STEP", 1)
        plan = made.dispatching()._plan(queue_keys)
        assert 40 <= sum(wanted.limit for wanted in plan.wanted) <= 5 * dispatcher.MIN_SHARE
        assert {wanted.queue_key for wanted in plan.wanted} == set(queue_keys)


async def test_an_account_with_many_slow_destinations_has_a_bounded_number_of_claims_and_delays_nothing_else(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many domains it sends to: each would be a provider queue with capacity of its own."""
    monkeypatch.setattr(recorder, "MAX_LEASES", 400)
    async with parts.opened(url) as made, sinks.running() as sink, smtp_peers.serving() as quick:
        small = (await accounts.create(made.ctx, "Small")).id
        await accepted_mail.allow_sending(made.ctx, small, domain="small.example")
        one = made.dispatching()
        made.router.known["quick.example"] = parts.route_to(parts.host_at(quick.port), name="quick")
        await bulk_queue.fill(made.ctx, made.account_id, "quick.example", count=1)
        await one.step()
        await parts.until(lambda: len(quick.transactions) == 1 and not len(made.held))
        sink.hold(sinks.Point.CONTENT)
        for number in range(10):
            domain = f"{number}.example"
            made.router.known[domain] = parts.route_to(parts.host_at(sink.port), name=domain)
            await bulk_queue.fill(made.ctx, made.account_id, domain, count=50, each=50)
        await walk(one)
        assert len(made.held) == 200
        await bulk_queue.fill(made.ctx, made.account_id, "quick.example", count=3, name="more")
        await bulk_queue.fill(made.ctx, small, "quick.example", count=1, name="small")
        await made.accept("code@0.example", expires_in=300)
        for _ in range(3):
            await one.step()
        await parts.until(lambda: len(quick.transactions) == 5 and len(made.held) == 201)
        sink.release(sinks.Point.CONTENT)
        async with asyncio.timeout(parts.TIMEOUT_SECONDS):
            while len(sink.recipients) < 10 * 50 + 1:
                await one.step()
                await asyncio.sleep(0.01)
        await one.stop()
        assert len(set(sink.recipients)) == len(sink.recipients)


async def test_searches_that_find_nothing_do_not_use_up_the_leases_of_a_step(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_LEASES", 400)
    async with parts.opened(url, retry_seconds=[1000]) as made:
        dead = parts.host_at(26)
        parts.break_down(made.hosts, dead)
        one = made.dispatching()
        queue_keys = [f"{number}.example {made.account_id}" for number in range(40)]
        for number in range(40):
            route = parts.route_to(parts.host_at(25) if number == 39 else dead, name=f"provider queue {number}")
            made.router.known[f"{number}.example"] = route
        wanted = [request.queue_key for request in one._plan(queue_keys).wanted]
        assert wanted[0] == queue_keys[39]


async def test_a_walk_goes_through_all_scheduled_queues_and_ends_when_a_round_brings_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "MAX_QUEUES_PER_STEP", 2)
    async with parts.opened(url) as made:
        dead = parts.host_at(25)
        parts.break_down(made.hosts, dead)
        one = made.dispatching()
        assert await walk(one) == 1
        for domain in ("a.example", "b.example", "c.example", "d.example"):
            made.router.known[domain] = parts.route_to(dead)
            await made.accept(f"ada@{domain}")
        # Two scheduled queues, two scheduled queues, and a look that finds no more.
        assert await walk(one) == 3
        made.router.known["d.example"] = parts.NOWHERE
        # One scheduled queue is gone: now the second look finds no more.
        assert await walk(one) == 3 + 2
        assert one.is_round_over
        assert len(await made.ready()) == 3


async def test_a_blocked_destination_is_left_alone_until_the_time_of_its_recipients_is_over(url: str) -> None:
    async with parts.opened(url, retry_seconds=[1000]) as made:
        dead = parts.host_at(25)
        route = made.router.known["example.net"] = parts.route_to(dead)
        parts.break_down(made.hosts, dead)
        one = made.dispatching()
        message_id = await made.accept()
        assert not await one.step()
        assert await made.statuses(message_id) == ["queued"]
        made.clock.pass_seconds(1101)
        one = made.dispatching()
        one.provider_queues.of(route).last_error = "connection refused"
        assert await one.step()
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        (recipient,) = await made.recipients(message_id)
        assert (recipient.status, recipient.attempt_count) == ("failed", 0)
        assert (recipient.last_smtp_response or "").endswith("until the retry schedule ended: connection refused")
        async with made.ctx.store.reading() as tx:
            assert await attempts.of_message(tx, made.account_id, message_id) == []


async def test_blocked_scheduled_queues_are_searched_now_and_then_and_again_at_once_while_they_hold_expired_ones(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "MAX_CLAIMS_PER_STEP", 10)
    time = parts.Time()
    async with parts.opened(url, time=time) as made:
        dead = parts.host_at(25)
        made.router.known["example.net"] = parts.route_to(dead)
        parts.break_down(made.hosts, dead)
        one = made.dispatching()
        await bulk_queue.fill(made.ctx, made.account_id, "example.net", count=25)
        assert not await one.step()
        made.clock.pass_seconds(3600)
        assert not await one.step()
        time.now += dispatcher.EXPIRY_SEARCH_SECONDS - 1
        assert not await one.step()
        parts.break_down(made.hosts, dead)
        time.now += 1
        made.hosts._breakers._values.clear()
        parts.break_down(made.hosts, dead)
        assert await walk(one) == 4
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        assert await made.ready() == []


async def test_the_searches_that_are_remembered_are_bounded(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "MAX_SEARCHED_QUEUES", 2)
    async with parts.opened(url, time=parts.Time()) as made:
        one = made.dispatching()
        assert [one._may_hold_expired(queue_key) for queue_key in ("a", "b", "b", "c", "b", "a")] == [
            *(True, True, False, True, False, True)
        ]


async def test_idle_provider_queues_are_dropped_and_a_plan_with_many_new_ones_is_whole(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_queue, "DROP_THRESHOLD", 3)
    time = parts.Time()
    async with parts.opened(url, time=time) as made:
        one = made.dispatching()
        queue_keys = [f"{number}.example acc_1" for number in range(6)]
        for number in range(6):
            made.router.known[f"{number}.example"] = parts.route_to(parts.host_at(25), name=f"provider queue {number}")
        assert len(one._plan(queue_keys).wanted) == 6
        one.provider_queues.by_name["provider queue 1"].adaptive_rate.slow_down(time.now)
        (job,) = await made.jobs(route=parts.route_to(parts.host_at(25)))
        one.provider_queues.by_name["provider queue 2"].capacity.reserve([job])
        assert len(one._plan(queue_keys[5:]).wanted) == 1
        assert (
            set(one.provider_queues.by_name)
            == set(one.provider_queues.routes)
            == {"provider queue 1", "provider queue 2", "provider queue 5"}
        )


async def test_slowed_provider_queues_are_limited_and_the_longest_unused_go_except_those_of_large_providers(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_queue, "DROP_THRESHOLD", 3)
    monkeypatch.setattr(provider_queue, "MAX_SLOWED", 4)
    time = parts.Time()
    async with parts.opened(url, time=time) as made:
        known = made.dispatching().provider_queues

        def slow(name: str, *, used_at: float) -> None:
            one = known.of(parts.route_to(parts.host_at(25), name=name))
            one.adaptive_rate.slow_down(time.now)
            one.used_at = used_at

        slow("google", used_at=0.0)
        for number in range(4):
            slow(f"mx{number}.example", used_at=10.0 - number)
        known.drop_idle()
        assert set(known.by_name) == {"google", "mx0.example", "mx1.example", "mx2.example"}
        slow("mx4.example", used_at=20.0)
        known.drop_idle()
        assert len(known.by_name) == 5  # looked at a moment ago
        time.now += 1.0
        known.drop_idle()
        assert set(known.by_name) == {"google", "mx0.example", "mx1.example", "mx4.example"}
        assert set(known.routes) == set(known.by_name)


async def test_new_limits_of_a_provider_apply_to_its_queue(url: str) -> None:
    async with parts.opened(url) as made:
        one = made.dispatching()
        route = parts.route_to(parts.host_at(25), name="yahoo", provider="yahoo")
        queue = one.provider_queues.of(route)
        limits = msgspec.structs.replace(made.ctx.settings.providers.yahoo, messages_per_second=3)
        providers = msgspec.structs.replace(made.ctx.settings.providers, yahoo=limits)
        msgspec.structs.force_setattr(made.ctx.settings, "providers", providers)
        assert one.provider_queues.of(route) is queue
        assert queue.adaptive_rate.rate() == pytest.approx(3)
