"""Test mail gets its results from the simulator: without DNS, a connection or a route, and it counts nowhere."""

import asyncio
import re

import pytest

from postroad.delivery import simulated_delivery
from postroad.model.bounces import bounce_guard
from postroad.model.mail import send_request, simulated_outcomes
from postroad.model.mail.simulated_outcomes import ProviderBehaviour, SimulatedProvider
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.mail import mail_counts
from postroad.storage.mail import queue as stored_queue
from postroad.storage.mail import suppressions as stored_suppressions
from postroad.telemetry import logs
from tests import bounce_counts, webhook_endpoints
from tests.delivery import engine_harness

# Nothing listens there; a connection would be an attempt with another host.
PORT = 9
# All mail goes through it, unless it is test mail.
UPSTREAM = {"name": "relay", "host": "127.0.0.1", "port": PORT, "tls": "off"}


async def counts(harness: engine_harness.EngineHarness) -> list[mail_counts.BucketTotal]:
    async with harness.ctx.store.reading() as tx:
        hour = mail_counts.hour_of(harness.clock.now)
        return await mail_counts.hourly_sums(tx, harness.account_id, from_hour=hour - 2, until_hour=hour + 2, hours=24)


@pytest.mark.parametrize("upstreams", [(), (UPSTREAM,)], ids=["by MX", "through an upstream"])
async def test_every_address_gets_its_result_and_nothing_leaves_the_host(
    database_url: str, upstreams: tuple[dict[str, object], ...]
) -> None:
    async with engine_harness.running_engine(database_url, port=PORT, upstreams=upstreams) as harness:
        names = ("ada", "bounce", "blocked", "defer", "fail", "drop")
        message_id = await harness.send(*(f"{name}@gmail.com" for name in names), is_test=True)
        for attempts in (1, 2):
            seen = await harness.settle(message_id, attempts=attempts)
            harness.pass_seconds(1.2)
        seen = await harness.settle(message_id, attempts=3)

        results = {one.email.partition("@")[0]: one for one in seen.recipients}
        assert {name: (one.status, one.attempt_count, one.last_smtp_code) for name, one in results.items()} == {
            "ada": ("delivered", 1, 250),
            "bounce": ("bounced", 1, 550),
            "blocked": ("bounced", 1, 550),
            "defer": ("delivered", 3, 250),
            "fail": ("failed", 3, 451),
            "drop": ("failed", 3, None),
        }
        assert results["bounce"].last_smtp_response == (
            "5.1.1 <bounce@gmail.com>: Recipient address rejected: user unknown in virtual mailbox table"
        )
        assert (seen.message.status, seen.message.is_test, seen.message.credits_reserved) == ("partial", 1, 0)
        assert {(one.provider_queue, one.host, one.address) for one in seen.attempts} == {
            ("simulator", "simulator.invalid", "")
        }
        assert harness.dns.questions == []
        assert await harness.credits() == (0, 0)
        assert await harness.suppressed("bounce@gmail.com") == {}
        assert await bounce_counts.counted(harness.ctx, harness.account_id) == bounce_guard.Counts(0, 0)
        assert await counts(harness) == []
        counted = re.findall(rb"(?m)^postroad_(?:attempts|recipients)_total\{.*\} [1-9]", harness.ctx.metrics.render())
        assert counted == []


async def test_live_mail_of_the_same_account_is_still_routed_and_counted(url: str) -> None:
    async with engine_harness.running_engine(url, port=PORT, zones={}) as harness:
        test_id = await harness.send("ada@nowhere.example", is_test=True)
        live_id = await harness.send("ada@nowhere.example")
        assert (await harness.settle(test_id)).recipient.status == "delivered"
        live = await harness.settle(live_id)
        assert live.recipient.status == "bounced"
        assert live.message.is_test == 0
        assert harness.dns.count("nowhere.example", "MX") == 1
        assert [(one.messages, one.recipients, one.bounced) for one in await counts(harness)] == [(1, 1, 1)]


async def test_a_slow_address_takes_its_time_and_other_test_mail_does_not_wait(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated_outcomes, "SLOW_SECONDS", 0.3)
    async with engine_harness.running_engine(url, port=PORT) as harness:
        message_id = await harness.send("slow@gmail.com", "ada@gmail.com", is_test=True)
        seen = await harness.settle(message_id)
    assert {one.email: one.status for one in seen.recipients} == {
        "slow@gmail.com": "delivered",
        "ada@gmail.com": "delivered",
    }


class Unrecorded:
    """What would be recorded is not, until it is told to."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()

    async def record_simulated(self, *_: object, **__: object) -> None:
        await self.may_end.wait()


async def test_an_account_with_much_slow_test_mail_leaves_room_for_others(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated_outcomes, "SLOW_SECONDS", 0)
    monkeypatch.setattr(simulated_delivery, "MAX_PER_SECOND", 10**9)
    results = Unrecorded()
    async with engine_harness.running_engine(url, port=PORT) as harness:
        log = logs.configure(form="json", level="info")
        await claim_by_turns(simulated_delivery.SimulatedDelivery(harness.ctx, results, log), results)  # type: ignore[arg-type]


async def test_test_mail_rests_after_each_step_as_long_as_it_is_large(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated_delivery, "MAX_PER_SECOND", 0.001)
    async with engine_harness.running_engine(url, port=PORT) as harness:
        await harness.settle(await harness.send("ada@gmail.com", is_test=True))
        waiting = await harness.send("ada@gmail.com", is_test=True)
        await harness.settle(await harness.send("ada@nowhere.example"))
        assert (await harness.see(waiting)).recipient.status == "queued"


async def claim_by_turns(simulated: simulated_delivery.SimulatedDelivery, results: Unrecorded) -> None:
    noisy, quiet = (stored_queue.simulated_queue_key(account_id, "") for account_id in ("acc_1", "acc_2"))

    def claimed(request: stored_queue.ClaimRequest) -> list[stored_queue.Claimed]:
        made = stored_queue.Claimed("acc", "em", "rcp", request.queue_key, "slow@a.example", "", 1, 0, 0, 0)
        return [made] * request.limit

    assert [one.limit for one in simulated.claim_requests([noisy, quiet])] == [32, 32]
    many = [stored_queue.simulated_queue_key("acc_1", f"{number}") for number in range(40)]
    by_turns = simulated.claim_requests([*many, quiet])
    assert sum(one.limit for one in by_turns if one.queue_key == quiet) == 32
    assert len(by_turns) == 33
    steps = 0
    while wanted := simulated.claim_requests([noisy]):
        assert [one.limit for one in wanted] <= [64]
        simulated.begin(claimed(wanted[0]))
        steps += 1
    assert steps == 7  # four fifths of 500
    assert simulated.claim_requests([noisy, quiet]) == [stored_queue.ClaimRequest(quiet, 32)]
    results.may_end.set()
    await simulated.finish()
    assert simulated.claim_requests([noisy]) == [stored_queue.ClaimRequest(noisy, 64)]


async def test_the_queue_names_no_address_that_exists(url: str) -> None:
    # What a worker that took it for live mail would look up, and send to.
    async with engine_harness.running_engine(url, port=PORT) as harness:
        message_id = await harness.send("defer@gmail.com", is_test=True)
        await harness.settle(message_id)
        async with harness.ctx.store.transaction() as tx:
            await stored_queue.promote(tx, now=harness.clock.now + 10**7, limit=10)
            (queue_key,) = await stored_queue.queue_keys(tx, after="", limit=10)
            wanted = [stored_queue.ClaimRequest(queue_key, 10)]
            (claim,) = await stored_queue.claim(tx, wanted, lease_until=harness.clock.now, worker="old")
        assert stored_queue.parts_of(queue_key) == ("simulator.invalid", harness.account_id, "!", "")
        assert (claim.email, claim.email_key) == ("defer@gmail.com.invalid", "defer@gmail.com")


async def test_a_suppressed_address_bounces_in_test_mode_as_it_would_live(url: str) -> None:
    async with engine_harness.running_engine(url, port=PORT) as harness:
        await suppressions.add(
            harness.ctx,
            harness.account_id,
            "ada@gmail.com",
            reason="unsubscribed",
            source=stored_suppressions.Source.ACCOUNT,
        )
        seen = await harness.settle(await harness.send("ada@gmail.com", is_test=True))
        assert seen.standing == ("bounced", 0, None)
        assert await counts(harness) == []


async def test_endpoints_in_test_mode_hear_of_test_mail_and_no_others(url: str) -> None:
    async with engine_harness.running_engine(url, port=PORT) as harness:
        live = await webhook_endpoints.subscribe_another(harness.ctx, harness.account_id)
        test = await webhook_endpoints.subscribe_another(harness.ctx, harness.account_id, mode="test")
        message_id = await harness.send("bounce@gmail.com", is_test=True)
        await harness.settle(message_id)
        assert await webhook_endpoints.deliveries_for(harness.ctx, live) == []
        (delivery,) = await webhook_endpoints.deliveries_for(harness.ctx, test)
        assert (delivery.event_type, delivery.message_id) == ("email.bounced", message_id)


async def test_the_provider_and_its_behaviour_are_those_that_the_message_names(url: str) -> None:
    async with engine_harness.running_engine(url, port=PORT) as harness:
        sent = {
            provider: await harness.send(
                "bounce@gmail.com", is_test=True, simulate=send_request.Simulate(provider, behaviour)
            )
            for provider, behaviour in (
                (SimulatedProvider.GOOGLE, ProviderBehaviour.MAILBOX_FULL),
                (SimulatedProvider.YAHOO, ProviderBehaviour.GREYLISTED),
                (SimulatedProvider.APPLE, ProviderBehaviour.BLOCKED),
            )
        }
        for attempts in (1, 2):
            for message_id in sent.values():
                await harness.settle(message_id, attempts=attempts)
            harness.pass_seconds(1.2)
        results = {}
        for provider, message_id in sent.items():
            seen = await harness.settle(message_id, attempts=3)
            results[provider] = (seen.recipient.status, seen.recipient.attempt_count)
            assert {attempt.host for attempt in seen.attempts} == {f"{provider}.simulator.invalid"}
        assert await harness.suppressed("bounce@gmail.com") == {}
    assert list(results.values()) == [("failed", 3), ("delivered", 2), ("bounced", 1)]


@pytest.mark.parametrize("upstreams", [(), (UPSTREAM,)], ids=["by MX", "through an upstream"])
async def test_test_mail_has_no_route_and_none_is_looked_up_also_if_it_is_urgent(
    url: str, upstreams: tuple[dict[str, object], ...]
) -> None:
    async with engine_harness.running_engine(url, port=PORT, upstreams=upstreams) as harness:
        message_id = await harness.send("defer@gmail.com", is_test=True, expires_in=120)
        for attempts in (1, 2):
            await harness.settle(message_id, attempts=attempts)
            harness.pass_seconds(1.2)
        seen = await harness.settle(message_id, attempts=3)
        assert seen.standing == ("delivered", 3, 250)
        dispatcher = harness.engine._dispatcher
        assert dispatcher._route_chooser.choose(stored_queue.simulated_queue_key(harness.account_id, "")) is None
        assert dispatcher._resolving == {}
        assert harness.dns.questions == []
