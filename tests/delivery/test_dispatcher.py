"""From the store to the provider queues and back: every claim is sent, recorded or handed back, and none is lost."""

import asyncio
import dataclasses
from collections.abc import Callable

import pytest

from postroad import errors
from postroad.delivery import attempter, dispatcher, routing
from postroad.model.mail import send_request
from postroad.services.messages import lookup
from postroad.services.operations import operator_jobs
from postroad.storage.mail import queue, suppressions
from tests import accepted_mail, contexts, smtp_peers
from tests.delivery import bulk_queue, parts


async def settle(made: parts.Parts, one: dispatcher.Dispatcher) -> None:
    """Walk and send until nothing is left."""

    async def is_empty() -> bool:
        await one.step()
        return not len(made.held) and not await made.ready()

    await parts.until(is_empty)
    await one.stop()
    await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)


async def test_a_recipient_is_claimed_prepared_sent_and_recorded(database_url: str) -> None:
    async with parts.opened(database_url) as made, smtp_peers.serving() as peer:
        made.router.known["example.net"] = parts.route_to(parts.host_at(peer.port))
        one = made.dispatching()
        message_id = await made.accept("ada@example.net", "bob@example.net")
        await settle(made, one)
        assert await made.statuses(message_id) == ["delivered", "delivered"]
        assert [len(transaction.recipients) for transaction in peer.transactions] in ([2], [1, 1])
        assert made.services.message_loader._prefetch.free == attempter.PREFETCH_BYTES
        assert all(provider_queue.is_idle for provider_queue in one.provider_queues.by_name.values())
        assert (await operator_jobs.check_consistency(made.ctx)).findings == []


async def test_free_capacity_is_a_reason_to_look_again_only_if_something_was_left_or_released(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        made.router.known["example.net"] = parts.route_to(parts.host_at(peer.port))
        one = made.dispatching()
        messages = [await made.accept() for _ in range(2)]
        with monkeypatch.context() as patch:
            patch.setattr(dispatcher, "MAX_CLAIMS_PER_STEP", 1)
            patch.setattr(dispatcher, "MIN_SHARE", 1)
            await one.step()
        await parts.until(lambda: not len(made.held))
        assert len(made.wakes) == 1
        await one.step()
        await parts.until(lambda: not len(made.held))
        assert [await made.statuses(message) for message in messages] == [["delivered"]] * 2
        assert len(made.wakes) == 1
        before = made.held.leaves_ready
        await made.held.release([(made.account_id, messages[0], "rcp")])
        assert (before, made.held.leaves_ready) == (False, True)
        await one.stop()


async def test_a_domain_is_looked_up_once_and_claimed_when_its_route_is_known(url: str) -> None:
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        made.router.to_find["example.net"] = parts.route_to(parts.host_at(peer.port))
        made.router.go_on.clear()
        one = made.dispatching()
        await made.accept()
        for _ in range(3):
            assert not await one.step()
            await asyncio.sleep(0)
        assert made.router.asked == ["example.net"]
        assert len(made.held) == 0
        made.router.go_on.set()
        await parts.until(lambda: bool(made.wakes))
        await settle(made, one)
        assert len(peer.transactions) == 1


async def test_mail_does_not_wait_for_the_look_up_of_an_expired_route(url: str) -> None:
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        fresh = parts.route_to(parts.host_at(peer.port))
        made.router.known["example.net"] = dataclasses.replace(fresh, valid_until=made.services.clock())
        made.router.to_find["example.net"] = fresh
        made.router.go_on.clear()
        one = made.dispatching()
        message_id = await made.accept()

        async def is_delivered() -> bool:
            await one.step()
            return await made.statuses(message_id) == ["delivered"]

        await parts.until(is_delivered)
        assert made.router.asked == ["example.net"]
        made.router.go_on.set()
        await settle(made, one)
        assert made.router.known["example.net"] is fresh


async def test_a_look_up_that_fails_is_reported_and_tried_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "ERROR_BACKOFF_SECONDS", 0.001)
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        one = made.dispatching()
        await made.accept()
        await one.step()
        await parts.until(lambda: bool(made.wakes))
        assert made.events() == ["routing_failed"]
        made.router.to_find["example.net"] = parts.route_to(parts.host_at(peer.port))
        await settle(made, one)
        assert len(peer.transactions) == 1


async def test_a_look_up_waits_for_a_store_that_is_away(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "ERROR_BACKOFF_SECONDS", 0.001)

    async def fail(_: str) -> routing.Route:
        raise errors.ServiceUnavailable("the database is away")

    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        one = made.dispatching()
        await made.accept()
        with monkeypatch.context() as patch:
            patch.setattr(made.router, "route", fail)
            await one.step()
            await parts.until(lambda: bool(made.wakes))
        assert [(entry["event"], entry["log_level"]) for entry in made.log] == [("routing_failed", "warning")]
        made.router.to_find["example.net"] = parts.route_to(parts.host_at(peer.port))
        await settle(made, one)
        assert len(peer.transactions) == 1


async def test_a_domain_without_a_route_gets_its_result(url: str) -> None:
    async with parts.opened(url) as made:
        made.router.known["example.net"] = parts.NOWHERE
        one = made.dispatching()
        message_id = await made.accept()
        await settle(made, one)
        assert await made.statuses(message_id) == ["bounced"]


async def test_a_route_that_is_dropped_between_plan_and_claim_costs_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with parts.opened(url) as made:
        made.router.known["example.net"] = parts.route_to(parts.host_at(25))
        one = made.dispatching()
        await made.accept()
        claim = one._claim

        async def claim_and_drop(
            plan: dispatcher.Plan, work: queue.Work, *, now: int, leases_until: int
        ) -> dispatcher.Claims:
            claimed = await claim(plan, work, now=now, leases_until=leases_until)
            made.router.known.clear()
            return claimed

        monkeypatch.setattr(one, "_claim", claim_and_drop)
        assert await one.step()
        assert len(made.held) == 0
        assert len(await made.ready()) == 1


async def test_a_suppressed_address_ends_without_an_attempt(url: str) -> None:
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        made.router.known["example.net"] = parts.route_to(parts.host_at(peer.port))
        async with made.ctx.store.transaction() as tx:
            await suppressions.add(
                tx,
                [suppressions.Suppression(made.account_id, "ada@example.net", "operator", "asked us", None, None, 1)],
            )
        one = made.dispatching()
        message_id = await made.accept("ada@example.net", "bob@example.net")
        await settle(made, one)
        by_email = {recipient.email: recipient for recipient in await made.recipients(message_id)}
        assert by_email["ada@example.net"].status == "bounced"
        assert by_email["ada@example.net"].attempt_count == 0
        assert "(asked us)" in (by_email["ada@example.net"].last_smtp_response or "")
        assert by_email["bob@example.net"].status == "delivered"


async def test_who_left_the_list_of_a_message_gets_no_mail_of_it_and_all_other_mail(url: str) -> None:
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        made.router.known["example.net"] = parts.route_to(parts.host_at(peer.port))
        ctx = contexts.with_settings(made.ctx, "http", base_url="https://mail.example.com")
        async with ctx.store.transaction() as tx:
            row = suppressions.Suppression(made.account_id, "ada@example.net", "one_click", "", None, None, 1, "news")
            await suppressions.add(tx, [row])
        one = made.dispatching()
        ids = {}
        for to, list_name in (("Ada", "news"), ("ada", "tips"), ("bob", "news"), ("ada", None)):
            unsubscribe = None if list_name is None else send_request.Unsubscribe(list_name)
            ids[to, list_name] = await accepted_mail.accept(
                ctx, made.account_id, to=f"{to}@example.net", unsubscribe=unsubscribe
            )
        await settle(made, one)
        found = {key: (await made.recipients(message_id))[0] for key, message_id in ids.items()}
        assert {key: recipient.status for key, recipient in found.items()} == {
            ("Ada", "news"): "bounced",
            ("ada", "tips"): "delivered",
            ("bob", "news"): "delivered",
            ("ada", None): "delivered",
        }
        refused = found["Ada", "news"]
        assert (refused.attempt_count, refused.cause, refused.billing_status) == (0, "unsubscribed", "released")
        assert refused.last_smtp_response == "not attempted: the recipient unsubscribed from news"
        assert (await operator_jobs.check_consistency(made.ctx)).findings == []
        for text, expected in (("outcome:unsubscribed", [ids["Ada", "news"]]), ("outcome:suppressed", [])):
            page = await lookup.search(ctx, made.account_id, text, limit=10, cursor=None)
            assert [message.id for message in page.messages] == expected


async def test_what_the_store_refuses_after_a_claim_is_not_claimed_at_all(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with parts.opened(url) as made:
        made.router.known["example.net"] = parts.route_to(parts.host_at(25))
        one = made.dispatching()
        await made.accept()

        async def fail(*_: object) -> None:
            raise errors.TemporaryFailure("away", retry_after=1)

        monkeypatch.setattr(suppressions, "find", fail)
        with pytest.raises(errors.TemporaryFailure):
            await one.step()
        assert len(made.held) == 0
        assert len(await made.ready()) == 1


@pytest.mark.parametrize("problem", [errors.TemporaryFailure("away", retry_after=1), RuntimeError("a bug")])
async def test_jobs_that_cannot_be_prepared_go_back_and_nobody_is_slowed_down(
    url: str, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    monkeypatch.setattr(dispatcher, "ERROR_BACKOFF_SECONDS", 0.001)
    async with parts.opened(url) as made:
        made.router.known["example.net"] = parts.route_to(parts.host_at(25))
        one = made.dispatching()
        await made.accept()

        async def fail(*_: object) -> None:
            raise problem

        monkeypatch.setattr(made.services.message_loader, "prepare", fail)
        await one.step()
        await parts.until(lambda: not one._preparations)
        assert len(made.held) == 0
        assert len(await made.ready()) == 1
        assert made.events() == ["batch_load_failed"]
        assert made.services.message_loader._prefetch.free == attempter.PREFETCH_BYTES
        (only,) = one.provider_queues.by_name.values()
        assert only.is_idle
        assert only.adaptive_rate.state(made.services.clock()) == "open"


async def test_jobs_that_are_not_reported_go_back_and_the_others_are_sent(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "ERROR_BACKOFF_SECONDS", 0.001)
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        made.router.known["example.net"] = parts.route_to(parts.host_at(peer.port))
        one = made.dispatching()
        for _ in range(3):
            await made.accept()
        prepare = made.services.message_loader.prepare

        async def prepare_all_but_one(jobs: list[attempter.Job], ready: Callable[[attempter.Job], None]) -> None:
            await prepare(jobs[1:], ready)

        monkeypatch.setattr(made.services.message_loader, "prepare", prepare_all_but_one)
        await one.step()
        await parts.until(lambda: len(made.held) == 0)
        assert len(await made.ready()) == 1
        assert len(peer.transactions) == 2
        await one.stop()
        assert all(provider_queue.is_idle for provider_queue in one.provider_queues.by_name.values())


async def test_what_there_is_no_room_for_is_read_when_its_turn_comes(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempter, "PREFETCH_BYTES", 10)
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        made.router.known["example.net"] = parts.route_to(parts.host_at(peer.port))
        one = made.dispatching()
        messages = [await made.accept() for _ in range(3)]
        together: list[int] = []
        prepare = made.services.message_loader.prepare

        async def noting(jobs: list[attempter.Job], ready: Callable[[attempter.Job], None]) -> None:
            together.append(len(jobs))
            await prepare(jobs, ready)

        monkeypatch.setattr(made.services.message_loader, "prepare", noting)
        await settle(made, one)
        assert together == [1, 1, 1]
        assert made.services.message_loader._prefetch.free == attempter.PREFETCH_BYTES
        assert [await made.statuses(message) for message in messages] == [["delivered"]] * 3


async def test_what_is_due_is_made_ready_and_taken_in_the_next_step(url: str) -> None:
    async with parts.opened(url) as made, smtp_peers.serving({"RCPT": ["450 later", "250 ok"]}) as peer:
        made.router.known["example.net"] = parts.route_to(parts.host_at(peer.port))
        one = made.dispatching()
        message_id = await made.accept()
        await settle(made, one)
        assert await made.statuses(message_id) == ["deferred"]
        assert not await one.step()
        made.clock.pass_seconds(70)
        again = made.dispatching()
        assert await again.step()
        assert len(await made.ready()) == 1
        await settle(made, again)
        assert await made.statuses(message_id) == ["delivered"]


async def test_a_stop_hands_back_what_was_not_begun_before_it_waits_for_the_rest(url: str) -> None:
    script: smtp_peers.Script = {"CONTENT": smtp_peers.SILENCE}
    async with parts.opened(url) as made, smtp_peers.serving(script) as peer:
        made.router.known["example.net"] = parts.route_to(parts.host_at(peer.port))
        one = made.dispatching()
        await bulk_queue.fill(made.ctx, made.account_id, "example.net", count=10)
        await one.step()
        assert len(made.held) == 10
        await parts.until(lambda: peer.verbs().count("CONTENT") == 2)
        task = asyncio.create_task(one.stop())

        async def are_back() -> bool:
            return len(await made.ready()) == 8

        await parts.until(are_back)
        assert not task.done()
        assert len(made.held) == 2
        for provider_queue in one.provider_queues.by_name.values():
            provider_queue.abort()
        await task


async def test_a_stop_waits_for_what_is_being_prepared_and_ends_look_ups(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with parts.opened(url) as made:
        made.router.known["example.net"] = parts.route_to(parts.host_at(25))
        made.router.go_on.clear()
        one = made.dispatching()
        await made.accept("ada@example.net", "ada@unknown.example")
        prepare, go_on = made.services.message_loader.prepare, asyncio.Event()

        async def prepare_later(jobs: list[attempter.Job], ready: Callable[[attempter.Job], None]) -> None:
            await go_on.wait()
            await prepare(jobs, ready)

        monkeypatch.setattr(made.services.message_loader, "prepare", prepare_later)
        await one.step()
        await parts.until(lambda: made.router.asked == ["unknown.example"])
        task = asyncio.create_task(one.stop())
        await asyncio.sleep(0)
        go_on.set()
        await task
        assert one._resolving == {}
        assert len(made.held) == 0
        assert len(await made.ready()) == 2


async def test_a_recipient_that_was_tried_before_without_a_result_is_reported(url: str) -> None:
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        made.router.known["example.net"] = parts.route_to(parts.host_at(peer.port))
        await made.accept()
        (claim,) = await made.claim()
        made.held.drop([claim.key])
        made.clock.pass_seconds(61)
        one = made.dispatching()
        await one.step()
        await settle(made, one)
        assert "previous_attempt_unrecorded" in made.events()
        assert made.ctx.metrics.lost_leases.values == {(): 1}
        assert len(peer.transactions) == 1


async def test_provider_queues_have_the_limits_of_their_provider(url: str) -> None:
    async with parts.opened(url) as made:
        one = made.dispatching()
        yahoo = one.provider_queues.of(parts.route_to(parts.host_at(25), name="yahoo", provider="yahoo"))
        assert yahoo.adaptive_rate.limits.messages_per_connection == 20
        assert one.provider_queues.of(parts.route_to(parts.host_at(26), name="yahoo", provider="yahoo")) is yahoo
        assert one.provider_queues.routes["yahoo"].hosts[0].port == 26


async def test_a_recipient_that_outlived_ten_workers_waits_and_is_tried_again(database_url: str) -> None:
    async with parts.opened(database_url) as made, smtp_peers.serving() as peer:
        made.router.known["example.net"] = parts.route_to(parts.host_at(peer.port))
        message_id = await made.accept()
        for _ in range(dispatcher.MAX_LOST_LEASES):
            async with made.ctx.store.transaction() as tx:
                wanted = [queue.ClaimRequest(queue.queue_key_of("example.net", made.account_id), 1)]
                await queue.claim(tx, wanted, lease_until=made.clock(), worker="dies")
                await queue.promote(tx, now=made.clock(), limit=1)
        one = made.dispatching()
        await one.step()
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        (recipient,) = await made.recipients(message_id)
        assert (recipient.status, recipient.attempt_count) == ("deferred", 1)
        assert recipient.last_smtp_response == attempter.WORKER_CRASHES.detail
        assert peer.transactions == []
        made.clock.pass_seconds(100)
        await settle(made, one)
        assert await made.statuses(message_id) == ["delivered"]
        assert (await operator_jobs.check_consistency(made.ctx)).findings == []
