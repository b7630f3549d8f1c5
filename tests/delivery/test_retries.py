"""Destinations that ask for time, and recipients that run out of it: when mail is tried again, and when no more."""

from postroad.services.messages import lookup
from postroad.services.suppressions import suppression_list as suppressions
from tests import dns_server, smtp_peers
from tests.delivery import engine_harness, parts

OTHER = "ada@other.example"


def zones_of_two() -> dns_server.Zones:
    """Two domains with mail hosts, and so provider queues, of their own."""
    other = engine_harness.zones_of({"mx.other.example": "127.0.0.1"}, domain="other.example")
    return {**engine_harness.zones_of({engine_harness.HOST: "127.0.0.1"}), **other}


def refuses_example_net(reply: str) -> smtp_peers.Script:
    """A peer that takes everything but the first recipient at example.net."""
    left = [reply]
    return {"RCPT": lambda line: left.pop() if left and "@example.net>" in line else "250 2.1.5 ok"}


async def test_the_schedule_has_ten_attempts_and_then_the_recipient_has_failed(database_url: str) -> None:
    defaults = [60, 300, 900, 1800, 3600, 7200, 14400, 28800, 28800]
    async with engine_harness.delivering_to(database_url, {"RCPT": "451 4.3.0 not today"}, retry_seconds=defaults) as (
        peer,
        harness,
    ):
        message_id = await harness.send()
        for number, delay in enumerate(defaults, start=1):
            seen = await harness.settle(message_id, attempts=number)
            assert seen.standing == ("deferred", number, 451)
            assert (seen.message.status, await harness.credits()) == ("queued", (0, 1))
            wait = await harness.due_in(message_id)
            assert delay * 0.9 <= wait <= delay * 1.1
            harness.pass_seconds(wait)
        seen = await harness.settle(message_id, attempts=10)
        assert seen.standing == ("failed", 10, 451)
        assert seen.recipient.last_smtp_response == "4.3.0 not today"
        assert [attempt.verdict for attempt in seen.attempts] == ["retry"] * 9 + ["failed"]
        assert (seen.message.status, seen.message.billing_status) == ("failed", "settled")
        # A failure is not the address's fault: the credit is spent, and the address is asked again another day.
        assert await harness.credits() == (1, 0)
        assert await harness.suppressed("ada@example.net") == {}
    assert peer.verbs().count("RCPT") == 10
    assert peer.transactions == []


async def test_what_was_said_is_kept_of_the_attempt_that_failed_and_not_of_the_one_that_succeeded(url: str) -> None:
    script = refuses_example_net("451 4.3.0 not today")
    async with engine_harness.delivering_to(url, script) as (_, harness):
        message_id = await harness.send()
        await harness.settle(message_id)
        harness.pass_seconds(await harness.due_in(message_id))
        seen = await harness.settle(message_id, attempts=2)
        assert seen.recipient.status == "delivered"
        found = await lookup.details(harness.ctx, harness.account_id, message_id)
    first, _ = seen.attempts
    ((place, said),) = found.conversations.items()
    assert place == (seen.recipient.id, first.started_at)
    assert "\nC: RCPT TO:<ada@example.net>\n" in said
    assert "\nS: 451 4.3.0 not today" in said


async def test_a_time_that_the_destination_names_is_respected(url: str) -> None:
    script = refuses_example_net("450 4.7.1 Greylisted, please try again in 300 seconds")
    async with engine_harness.delivering_to(url, script) as (peer, harness):
        message_id = await harness.send()
        seen = await harness.settle(message_id)
        assert seen.standing == ("deferred", 1, 450)
        assert (seen.attempt.reason, seen.attempt.fault) == ("greylisted", "rate")
        assert 300 <= await harness.due_in(message_id) <= 330
        # The schedule alone would have tried it by now; whatever is sent later goes before it.
        harness.pass_seconds(100)
        assert (await harness.settle(await harness.send("bob@example.net"))).recipient.status == "delivered"
        assert (await harness.see(message_id)).standing == ("deferred", 1, 450)
        harness.pass_seconds(231)
        seen = await harness.settle(message_id, attempts=2)
        assert seen.standing == ("delivered", 2, 250)
    assert len(peer.transactions) == 2


async def test_a_destination_that_is_sent_too_much_is_left_alone_and_others_go_on(url: str) -> None:
    script = refuses_example_net("450 4.7.1 slow down, try again in 600 seconds")
    async with engine_harness.delivering_to(url, script, zones=zones_of_two()) as (peer, harness):
        first = await harness.settle(await harness.send())
        assert first.standing == ("deferred", 1, 450)
        assert (first.attempt.reason, first.attempt.fault) == ("rate_limited", "rate")
        held = await harness.send("bob@example.net")
        assert (await harness.settle(await harness.send(OTHER))).standing == ("delivered", 1, 250)

        async def is_reported() -> bool:
            return await harness.pool_states() == {engine_harness.HOST: "paused"}

        await parts.until(is_reported)
        # Waiting for a provider queue is no attempt and no news to the recipient.
        seen = await harness.see(held)
        assert (seen.standing, seen.attempts) == (("queued", 0, None), [])
        assert await harness.credits() == (1, 2)
    assert [taken.recipients for taken in peer.transactions] == [[f"RCPT TO:<{OTHER}>"]]


async def test_a_pause_ends_by_itself(url: str) -> None:
    script = refuses_example_net("450 4.7.1 slow down, try again in 1 second")
    async with engine_harness.delivering_to(url, script) as (peer, harness):
        await harness.settle(await harness.send())
        seen = await harness.settle(await harness.send("bob@example.net"))
        assert seen.standing == ("delivered", 1, 250)
        assert len(seen.attempts) == 1
    assert len(peer.transactions) == 1


# Addresses to leave alone.


async def test_an_address_that_does_not_exist_is_not_tried_again_until_it_is_taken_off_the_list(
    database_url: str,
) -> None:
    script: smtp_peers.Script = {"RCPT": ["550 5.1.1 no such user", "250 2.1.5 ok"]}
    async with engine_harness.delivering_to(database_url, script) as (peer, harness):
        first = await harness.settle(await harness.send("Ada@example.net"))
        assert first.standing == ("bounced", 1, 550)
        assert (first.attempt.reason, first.attempt.fault) == ("unknown_address", "address")
        assert await harness.suppressed("ada@example.net") == {"ada@example.net": "5.1.1 no such user"}
        # Written in another way it is the same mailbox.
        second = await harness.settle(await harness.send("ada@example.net", "ADA@EXAMPLE.NET"))
        assert second.standing == ("bounced", 0, None)
        assert second.attempts == []
        expected = "not attempted: the address is on the suppression list (5.1.1 no such user)"
        assert second.recipient.last_smtp_response == expected
        assert (second.message.status, second.message.billing_status) == ("failed", "released")
        assert await harness.credits() == (0, 0)
        assert peer.verbs().count("RCPT") == 1
        # Taken off the list, it gets the next message.
        await suppressions.remove(harness.ctx, harness.account_id, "ADA@Example.net")
        assert (await harness.settle(await harness.send("ada@example.net"))).standing == ("delivered", 1, 250)
