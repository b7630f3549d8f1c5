"""Connections are reused, for as many messages as the provider queue allows, and closed with QUIT."""

from tests import smtp_peers
from tests.delivery import engine_harness


async def _send(harness: engine_harness.EngineHarness, count: int) -> None:
    """Messages one after the other: each finds the connection of the one before idle."""
    for number in range(count):
        seen = await harness.settle(await harness.send(subject=str(number)))
        assert seen.standing == ("delivered", 1, 250)


async def test_messages_follow_each_other_over_one_connection(url: str) -> None:
    async with (
        smtp_peers.serving() as peer,
        engine_harness.running_engine(url, port=peer.port, idle_seconds=60) as harness,
    ):
        await _send(harness, 4)
        assert await harness.credits() == (4, 0)
    assert peer.connections == 1
    assert len(peer.transactions) == 4
    # The engine has stopped, and said so.
    assert peer.verbs() == ["EHLO", *["MAIL", "RCPT", "DATA", "CONTENT"] * 4, "QUIT"]


async def test_a_connection_carries_as_many_messages_as_its_provider_queue_allows(url: str) -> None:
    providers = {"others": {"messages_per_connection": 2}}
    async with (
        smtp_peers.serving() as peer,
        engine_harness.running_engine(url, port=peer.port, providers=providers, idle_seconds=60) as harness,
    ):
        await _send(harness, 5)
    assert peer.connections == 3
    assert len(peer.transactions) == 5


async def test_a_connection_that_is_not_needed_any_more_is_left(url: str) -> None:
    async with (
        smtp_peers.serving() as peer,
        engine_harness.running_engine(url, port=peer.port, idle_seconds=1) as harness,
    ):
        await _send(harness, 1)
        await peer.wait_for("QUIT")
        await _send(harness, 1)
    assert peer.connections == 2


async def test_a_refused_message_does_not_spoil_the_connection_for_the_next(url: str) -> None:
    script: smtp_peers.Script = {"RCPT": ["550 5.7.1 no", "250 2.1.5 ok"]}
    async with (
        smtp_peers.serving(script) as peer,
        engine_harness.running_engine(url, port=peer.port, idle_seconds=60) as harness,
    ):
        assert (await harness.settle(await harness.send())).recipient.status == "bounced"
        await _send(harness, 1)
    assert peer.connections == 1
    # What was left of the refused one is cleared away first.
    assert peer.verbs().count("RSET") == 1
    assert [len(taken.recipients) for taken in peer.transactions] == [1]


async def test_domains_with_the_same_mail_hosts_share_a_connection(url: str) -> None:
    zones = engine_harness.zones_of({engine_harness.HOST: "127.0.0.1"})
    zones["example.org"] = zones["example.net"]
    async with (
        smtp_peers.serving() as peer,
        engine_harness.running_engine(url, port=peer.port, zones=zones, idle_seconds=60) as harness,
    ):
        for email in ("ada@example.net", "bob@example.org"):
            seen = await harness.settle(await harness.send(email))
            assert (seen.standing, seen.attempt.provider_queue) == (("delivered", 1, 250), engine_harness.HOST)
    assert peer.connections == 1


async def test_a_peer_without_manners_at_the_end_costs_nothing(url: str) -> None:
    async with (
        smtp_peers.serving({"QUIT": smtp_peers.SILENCE}) as peer,
        engine_harness.running_engine(
            url, port=peer.port, providers={"others": {"messages_per_connection": 1}}
        ) as harness,
    ):
        await _send(harness, 2)
    assert len(peer.transactions) == 2
