"""Mail through upstreams: by rules, with a login, and by another one when the first cannot be reached."""

from typing import Any

import pytest

from tests import accepted_mail, smtp_peers
from tests.delivery import engine_harness

FIRST, SECOND = "upstream:first", "upstream:second"
# The provider of a domain is told by the names of its hosts.
ZONES = {
    **engine_harness.zones_of({"mx.google.com": "127.0.0.1"}, domain="gmail.example"),
    **engine_harness.zones_of({"mx.example.net": "127.0.0.1"}),
}


def upstream(name: str, port: int, **fields: Any) -> dict[str, object]:
    return {"name": name, "host": "127.0.0.1", "port": port, "tls": "off", **fields}


async def way(harness: engine_harness.EngineHarness, *to: str, **fields: Any) -> str:
    """The provider queue that a message was delivered through."""
    seen = await harness.settle(await harness.send(*to, **fields))
    assert seen.standing == ("delivered", 1, 250)
    return seen.attempt.provider_queue


async def test_rules_choose_by_account_sender_domain_and_provider(url: str) -> None:
    async with smtp_peers.serving() as direct, smtp_peers.serving() as first, smtp_peers.serving() as second:
        routes = [
            {"sender_domains": ["news.example"], "upstreams": ["second"]},
            {"providers": ["google"], "upstreams": ["direct"]},
            {"accounts": ["acc_nobody"], "upstreams": ["second"]},
        ]
        upstreams = [upstream("first", first.port), upstream("second", second.port)]
        async with engine_harness.running_engine(
            url, port=direct.port, zones=ZONES, upstreams=upstreams, routes=routes
        ) as harness:
            assert await way(harness, "ada@gmail.example") == "google"
            assert await way(harness, "ada@example.net") == FIRST
            await accepted_mail.allow_sending(harness.ctx, harness.account_id, domain="news.example")
            assert await way(harness, "ada@gmail.example", sender="shop@news.example") == SECOND
    assert [len(peer.transactions) for peer in (direct, first, second)] == [1, 1, 1]


async def test_what_cannot_be_reached_is_passed_over_at_once(url: str) -> None:
    routes = [{"upstreams": ["first", "second"]}]
    with smtp_peers.refusing_port() as refusing:
        async with smtp_peers.serving() as second:
            upstreams = [upstream("first", refusing), upstream("second", second.port)]
            async with engine_harness.running_engine(url, port=25, upstreams=upstreams, routes=routes) as harness:
                assert [await way(harness) for _ in range(5)] == [SECOND] * 5
                (line,) = [entry for entry in harness.log if entry["event"] == "upstream_fallback"]
                assert (line["log_level"], line["provider_queue"], line["fallback"]) == ("warning", FIRST, SECOND)
                assert line["error"].endswith("connection refused")


@pytest.mark.parametrize(
    "script",
    [{"BANNER": smtp_peers.CLOSE}, {"BANNER": "421 4.3.2 not now"}, {"EHLO": "500 what", "HELO": "500 what"}],
    ids=["closed", "421", "hello"],
)
async def test_no_session_leads_to_the_next_upstream(script: smtp_peers.Script, url: str) -> None:
    async with smtp_peers.serving(script) as direct, smtp_peers.serving() as second:
        routes = [{"upstreams": ["direct", "second"]}]
        async with engine_harness.running_engine(
            url, port=direct.port, upstreams=[upstream("second", second.port)], routes=routes
        ) as harness:
            assert await way(harness) == SECOND


@pytest.mark.parametrize("verb", ["MAIL", "RCPT", "CONTENT"])
async def test_a_reply_about_the_message_is_the_answer(verb: str, url: str) -> None:
    async with smtp_peers.serving({verb: "450 4.2.0 later"}) as first, smtp_peers.serving() as second:
        upstreams = [upstream("first", first.port), upstream("second", second.port)]
        routes = [{"upstreams": ["first", "second"]}]
        async with engine_harness.running_engine(url, port=25, upstreams=upstreams, routes=routes) as harness:
            seen = await harness.settle(await harness.send())
            assert (seen.standing, seen.attempt.provider_queue) == (("deferred", 1, 450), FIRST)
    assert second.connections == 0


async def test_without_a_usable_fallback_the_attempt_counts(url: str) -> None:
    routes = [{"upstreams": ["first", "second"]}]
    with smtp_peers.refusing_port() as one, smtp_peers.refusing_port() as other:
        upstreams = [upstream("first", one), upstream("second", other)]
        async with engine_harness.running_engine(url, port=25, upstreams=upstreams, routes=routes) as harness:
            seen = await harness.settle(await harness.send())
            assert seen.standing == ("deferred", 1, None)
            assert (seen.attempt.reason, seen.attempt.provider_queue) == ("connection_refused", SECOND)


async def test_a_sick_upstream_holds_up_no_other_mail_of_the_same_account_and_domain(url: str) -> None:
    routes = [{"sender_domains": ["news.example"], "upstreams": ["first"]}, {"upstreams": ["direct"]}]
    silent = {"BANNER": smtp_peers.SILENCE}
    async with smtp_peers.serving(silent) as first, smtp_peers.serving() as direct:
        upstreams = [upstream("first", first.port, connections=1)]
        async with engine_harness.running_engine(
            url, port=direct.port, upstreams=upstreams, routes=routes, grace_seconds=1
        ) as harness:
            await accepted_mail.allow_sending(harness.ctx, harness.account_id, domain="news.example")
            waiting = [await harness.send(sender="shop@news.example") for _ in range(20)]
            assert [await way(harness) for _ in range(3)] == ["mx.example.net"] * 3
            assert {(await harness.see(message_id)).recipient.status for message_id in waiting} == {"queued"}


async def test_the_limits_of_an_upstream_are_its_own(url: str) -> None:
    async with smtp_peers.serving() as peer:
        upstreams = [upstream("first", peer.port, connections=1, messages_per_connection=2)]
        async with engine_harness.running_engine(url, port=25, upstreams=upstreams) as harness:
            sent = [await harness.send() for _ in range(6)]
            for message_id in sent:
                await harness.settle(message_id)
    assert (peer.connections, len(peer.transactions)) == (3, 6)
