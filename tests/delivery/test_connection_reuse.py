"""Connections are reused, for as many messages as the provider queue allows, and closed with QUIT."""

from tests import smtp_peers
from tests.delivery import engine_harness


async def _send(harness: engine_harness.EngineHarness, count: int) -> None:
    """Messages one after the other: each finds the connection of the one before idle."""
    for number in range(count):
        seen = await harness.settle(await harness.send(subject=str(number)))
        assert seen.standing == ("delivered", 1, 250)


async def test_messages_follow_each_other_over_one_connection_also_to_domains_with_the_same_mail_hosts(
    url: str,
) -> None:
    zones = engine_harness.zones_of({engine_harness.HOST: "127.0.0.1"})
    zones["example.org"] = zones["example.net"]
    async with engine_harness.delivering_to(url, zones=zones, idle_seconds=60) as (peer, harness):
        await _send(harness, 3)
        seen = await harness.settle(await harness.send("bob@example.org"))
        assert (seen.standing, seen.attempt.provider_queue) == (("delivered", 1, 250), engine_harness.HOST)
        assert await harness.credits() == (4, 0)
    assert peer.connections == 1
    # The engine has stopped, and said so.
    assert peer.verbs() == ["EHLO", *["MAIL", "RCPT", "DATA", "CONTENT"] * 4, "QUIT"]


async def test_a_refused_message_does_not_spoil_the_connection_for_the_next(url: str) -> None:
    script: smtp_peers.Script = {"RCPT": ["550 5.7.1 no", "250 2.1.5 ok"]}
    async with engine_harness.delivering_to(url, script, idle_seconds=60) as (peer, harness):
        assert (await harness.settle(await harness.send())).recipient.status == "bounced"
        await _send(harness, 1)
    assert peer.connections == 1
    # What was left of the refused one is cleared away first.
    assert peer.verbs().count("RSET") == 1
    assert [len(taken.recipients) for taken in peer.transactions] == [1]


async def test_a_peer_without_manners_at_the_end_costs_nothing(url: str) -> None:
    async with engine_harness.delivering_to(
        url, {"QUIT": smtp_peers.SILENCE}, providers={"others": {"messages_per_connection": 1}}
    ) as (peer, harness):
        await _send(harness, 2)
    assert len(peer.transactions) == 2
