"""Destinations that misbehave in the middle of a message: each recipient gets its own result, and none is lost."""

import pytest

from tests import smtp_peers
from tests.delivery import engine_harness
from tests.smtp_peers import CLOSE, RESET

HOST = engine_harness.HOST
NOT_NOW = "451 4.3.0 not now"
NEVER = "554 5.7.1 a rule of ours"
STAGES = {"MAIL": "mail", "RCPT": "recipient", "DATA": "data", "CONTENT": "content"}
EXTENSIONS = {"pipelining": smtp_peers.ALL_EXTENSIONS, "one_by_one": ("8BITMIME", "SMTPUTF8")}
BIG = "a line of sixty characters that goes on and on and on and on\n" * 150_000


def name_of(command: str) -> str:
    """The local part in a RCPT command."""
    return command.partition("<")[2].partition("@")[0]


@pytest.mark.parametrize("verb", STAGES)
async def test_a_refusal_for_now_at_any_verb_is_tried_again(verb: str, url: str) -> None:
    script: smtp_peers.Script = {verb: [NOT_NOW, smtp_peers.GOOD[verb]]}
    async with engine_harness.delivering_to(url, script) as (peer, harness):
        message_id = await harness.send()
        seen = await harness.settle(message_id)
        assert seen.standing == ("deferred", 1, 451)
        assert seen.recipient.last_smtp_response == "4.3.0 not now"
        attempt = seen.attempt
        assert (attempt.stage, attempt.verdict, attempt.in_doubt) == (STAGES[verb], "retry", 0)
        assert (attempt.reason, attempt.fault) == ("destination_trouble", "network")
        assert (attempt.smtp_code, attempt.enhanced_code, attempt.host) == (451, "4.3.0", HOST)
        assert (seen.message.status, await harness.credits()) == ("queued", (0, 1))
        assert peer.transactions == []
        assert 54 <= await harness.due_in(message_id) <= 66
        harness.pass_seconds(67)
        seen = await harness.settle(message_id, attempts=2)
        assert seen.standing == ("delivered", 2, 250)
        assert (seen.message.status, await harness.credits()) == ("delivered", (1, 0))
    assert len(peer.transactions) == 1


@pytest.mark.parametrize("verb", STAGES)
async def test_a_refusal_for_good_at_any_verb_bounces(verb: str, url: str) -> None:
    async with engine_harness.delivering_to(url, {verb: NEVER}) as (peer, harness):
        seen = await harness.settle(await harness.send())
        assert seen.standing == ("bounced", 1, 554)
        assert seen.recipient.last_smtp_response == "5.7.1 a rule of ours"
        assert seen.recipient.billing_status == "released"
        attempt = seen.attempt
        assert (attempt.stage, attempt.verdict, attempt.in_doubt) == (STAGES[verb], "bounced", 0)
        assert (attempt.reason, attempt.fault, attempt.host) == ("policy_refused", "policy", HOST)
        assert (seen.message.status, seen.message.billing_status) == ("failed", "released")
        assert await harness.credits() == (0, 0)
        assert await harness.suppressed("ada@example.net") == {}
    assert peer.transactions == []


@pytest.mark.parametrize("extensions", EXTENSIONS.values(), ids=EXTENSIONS)
async def test_recipients_of_one_message_have_their_own_transactions_and_replies(
    extensions: tuple[str, ...], database_url: str
) -> None:
    replies: dict[str, str | list[str]] = {
        "first": "250 2.1.5 ok",
        "ada": "250 2.1.5 ok",
        "bob": "550 5.1.1 no such user",
        "cy": ["450 4.2.1 not now", "250 2.1.5 ok"],
        "dot": "552 5.2.2 mailbox full",
    }
    times: dict[str, int] = {}

    def answer(command: str) -> str:
        name = name_of(command)
        times[name] = times.get(name, 0) + 1
        reply = replies[name]
        return reply if isinstance(reply, str) else reply[min(times[name], len(reply)) - 1]

    async with engine_harness.delivering_to(database_url, {"RCPT": answer}, extensions=extensions) as (peer, harness):
        await harness.prove()
        message_id = await harness.send(*(f"{name}@example.net" for name in list(replies)[1:]))
        seen = await harness.settle(message_id)
        assert peer.verbs().count("MAIL") == 5
        found = {one.email: (one.status, one.last_smtp_code, one.attempt_count) for one in seen.recipients}
        assert found == {
            "ada@example.net": ("delivered", 250, 1),
            "bob@example.net": ("bounced", 550, 1),
            "cy@example.net": ("deferred", 450, 1),
            "dot@example.net": ("bounced", 552, 1),
        }
        assert [attempt.stage for attempt in seen.attempts] == ["content", "recipient", "recipient", "recipient"]
        faults = [(attempt.reason, attempt.fault) for attempt in seen.attempts]
        assert faults[1] == ("unknown_address", "address")
        assert faults[3] == ("mailbox_full", "policy")
        # One is not final yet.
        assert (seen.message.status, await harness.credits()) == ("queued", (2, 1))
        harness.pass_seconds(67)
        seen = await harness.settle(message_id, attempts=2)
        assert seen.by_address()["cy@example.net"].status == "delivered"
        assert (seen.message.status, seen.message.billing_status) == ("partial", "settled")
        assert await harness.credits() == (3, 0)
        # An address that does not exist is left alone from now on; a full mailbox is not.
        known = await harness.suppressed(*(f"{name}@example.net" for name in replies))
        assert known == {"bob@example.net": "5.1.1 no such user"}
    assert [list(map(name_of, taken.recipients)) for taken in peer.transactions] == [["first"], ["ada"], ["cy"]]
    assert times == {"first": 1, "ada": 1, "bob": 1, "cy": 2, "dot": 1}


async def test_a_reply_of_garbage_is_kept_as_clean_text(database_url: str) -> None:
    reply = b"550-5.7.1 \x00\xff\xfe\x1b[31mcaf\xc3\xa9 \xed\xa0\x80\r\n550 5.7.1 \x85\xe2\x80\xa8the end\r\n"
    async with engine_harness.delivering_to(database_url, {"RCPT": reply}) as (_, harness):
        seen = await harness.settle(await harness.send())
        assert seen.standing == ("bounced", 1, 550)
        assert seen.attempt.response.isprintable()
        assert "café" in seen.attempt.response
        assert seen.attempt.response.endswith("the end")


async def test_a_reply_of_any_length_is_kept_in_part(database_url: str) -> None:
    reply = b"550-5.7.1 " + b"so many words " * 30 + b"\r\n"
    async with engine_harness.delivering_to(database_url, {"RCPT": reply * 60 + b"550 5.7.1 end\r\n"}) as (_, harness):
        seen = await harness.settle(await harness.send())
        assert seen.standing == ("bounced", 1, 550)
        assert seen.attempt.reason == "policy_refused"
        assert len(seen.recipient.last_smtp_response or "") == 1_000
        assert 1_000 < len(seen.attempt.response) < 10_000


# Connections that end in the middle.

LOST = {
    "reset_at_mail": ({"MAIL": RESET}, "mail", "connection_lost"),
    "closed_at_recipient": ({"RCPT": CLOSE}, "recipient", "connection_lost"),
    "closed_at_data": ({"DATA": CLOSE}, "data", "connection_lost"),
}


@pytest.mark.parametrize("script, stage, reason", LOST.values(), ids=LOST)
async def test_a_connection_lost_before_the_content_is_not_in_doubt(
    script: smtp_peers.Script, stage: str, reason: str, url: str
) -> None:
    async with engine_harness.delivering_to(url, script) as (peer, harness):
        seen = await harness.settle(await harness.send())
        assert seen.standing == ("deferred", 1, None)
        assert (seen.attempt.stage, seen.attempt.reason, seen.attempt.fault) == (stage, reason, "network")
        assert (seen.attempt.in_doubt, seen.attempt.host) == (0, HOST)
        assert await harness.credits() == (0, 1)
    assert peer.transactions == []


async def test_a_hang_up_before_the_final_dot_is_not_in_doubt(url: str) -> None:
    async with engine_harness.delivering_to(url, {"RECEIVING": [CLOSE, b""]}, receive_buffer=65_536) as (peer, harness):
        # Larger than what the systems on both sides keep in between.
        message_id = await harness.send(text=BIG)
        seen = await harness.settle(message_id)
        assert seen.standing == ("deferred", 1, None)
        assert seen.attempt.in_doubt == 0
        assert seen.attempt.reason == "connection_lost"
        assert peer.transactions == []
        harness.pass_seconds(67)
        seen = await harness.settle(message_id, attempts=2)
        assert seen.standing == ("delivered", 2, 250)
    assert len(peer.transactions) == 1


async def test_a_hang_up_after_the_final_dot_is_in_doubt_and_tried_again(database_url: str) -> None:
    script: smtp_peers.Script = {"CONTENT": [CLOSE, "250 2.0.0 taken"]}
    async with engine_harness.delivering_to(database_url, script) as (peer, harness):
        message_id = await harness.send()
        seen = await harness.settle(message_id)
        assert seen.standing == ("deferred", 1, None)
        attempt = seen.attempt
        assert (attempt.stage, attempt.reason, attempt.in_doubt) == ("content", "lost_after_content", 1)
        assert [entry["in_doubt"] for entry in harness.log if entry["event"] == "recipient_deferred"] == [True]
        harness.pass_seconds(67)
        seen = await harness.settle(message_id, attempts=2)
        assert seen.standing == ("delivered", 2, 250)
        assert [attempt.in_doubt for attempt in seen.attempts] == [1, 0]
        assert await harness.credits() == (1, 0)
    # The peer kept both, and can tell that they are one message.
    first, second = peer.transactions
    assert first.content == second.content


LEAVES: dict[str, smtp_peers.Script] = {
    "421_between": {"CONTENT": [("250 2.0.0 taken", "421 4.4.2 idle too long", CLOSE), "250 2.0.0 taken"]},
    "closed_between": {"CONTENT": [("250 2.0.0 taken", CLOSE), "250 2.0.0 taken"]},
    "421_at_mail": {"MAIL": ["250 ok", ("421 4.4.2 idle too long", CLOSE), "250 ok"]},
    "reset_at_mail": {"MAIL": ["250 ok", RESET, "250 ok"]},
    "share_used_up": {"MAIL": ["250 ok", "451 4.7.0 too many messages in this session", "250 ok"]},
    "share_used_up_for_good": {"RCPT": ["250 ok", "554 5.7.0 too many messages in this session", "250 ok"]},
}


@pytest.mark.parametrize("script", LEAVES.values(), ids=LEAVES)
async def test_a_kept_connection_that_ended_between_messages_costs_no_attempt(
    script: smtp_peers.Script, url: str
) -> None:
    async with engine_harness.delivering_to(url, script) as (peer, harness):
        for number in range(2):
            seen = await harness.settle(await harness.send(subject=str(number)))
            assert seen.standing == ("delivered", 1, 250)
            assert len(seen.attempts) == 1
        assert await harness.credits() == (2, 0)
    assert len(peer.transactions) == 2
    assert peer.connections == 2


async def test_a_host_that_refuses_the_sender_over_a_kept_connection_is_not_asked_twice(url: str) -> None:
    script: smtp_peers.Script = {"MAIL": ["250 2.1.0 ok", NEVER]}
    async with engine_harness.delivering_to(url, script) as (peer, harness):
        assert (await harness.settle(await harness.send())).standing == ("delivered", 1, 250)
        seen = await harness.settle(await harness.send())
        assert seen.standing == ("bounced", 1, 554)
        assert (seen.attempt.stage, seen.attempt.reason) == ("mail", "policy_refused")
        assert await harness.credits() == (1, 0)
    assert peer.connections == 1
    assert peer.verbs().count("MAIL") == 2
