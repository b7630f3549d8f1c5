"""Mail leaves from the addresses of its pool, in turn, with their names; each address has its own standing."""

import contextlib
import socket
from typing import Any

import pytest

from postroad.api.v1 import messages
from postroad.cli.server import queue as queue_commands
from postroad.services.messages import lookup, queue_inspection
from postroad.services.queue import sources
from tests import accepted_mail, smtp_peers
from tests.delivery import engine_harness, parts

BLOCKED = "554 5.7.1 Service unavailable; client host blocked using our list"
ABSENT = "203.0.113.9"  # RFC 5737: no host has it


def source(name: str, address: str, **fields: str) -> dict[str, str]:
    """An entry of the settings."""
    return {"name": name, "address": address, **fields}


def has_ipv6() -> bool:
    """Whether this machine has the loopback address of IPv6."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as one:
        one.bind(("::1", 0))
        return True
    return False


async def test_mail_leaves_from_the_addresses_of_its_pool_in_turn_with_their_names(database_url: str) -> None:
    first, second = engine_harness.loopback_addresses(2)
    ours = [source("out1", first, hello_name="out1.example.org"), source("out2", second)]
    async with engine_harness.delivering_to(database_url, sources=ours, idle_seconds=1) as (peer, harness):
        seen = [await harness.settle(await harness.send()) for _ in range(4)]
        assert [one.attempt.source for one in seen] == ["out1", "out2", "out1", "out2"]
        assert [one.client for one in peer.transactions] == [first, second, first, second]
        counted = harness.ctx.metrics.source_attempts.values
        assert counted["out1", "others", "delivered", "delivered"] == 2
        greetings = [command for command in peer.commands if command.startswith("EHLO")]
        assert greetings[:2] == ["EHLO out1.example.org", f"EHLO {engine_harness.HELLO_NAME}"]


async def test_without_sources_the_system_chooses_and_nothing_is_named(url: str) -> None:
    async with engine_harness.delivering_to(url) as (peer, harness):
        seen = await harness.settle(await harness.send())
        assert (seen.attempt.source, peer.transactions[0].client) == ("", "127.0.0.1")


async def test_rules_assign_accounts_sender_domains_and_tags_to_pools(database_url: str) -> None:
    addresses = engine_harness.loopback_addresses(3)
    pools = ["default", "news", "promotions"]
    ours = [source(f"in_{pool}", address, pool=pool) for pool, address in zip(pools, addresses, strict=True)]
    rules: list[dict[str, Any]] = [
        {"sender_domains": ["news.example"], "pool": "news"},
        {"tags": ["big sale"], "pool": "promotions"},
    ]
    async with engine_harness.delivering_to(database_url, sources=ours, routes=rules) as (peer, harness):
        await accepted_mail.allow_sending(harness.ctx, harness.account_id, domain="news.example")
        sent = [
            await harness.send(),
            await harness.send(sender="hello@news.example"),
            await harness.send(tags=["welcome", "big sale"]),
        ]
        for message_id in sent:
            await harness.settle(message_id)
        assert [(await harness.see(one)).attempt.source for one in sent] == ["in_default", "in_news", "in_promotions"]
        assert {one.client for one in peer.transactions} == set(addresses)


async def test_an_account_is_assigned_to_a_pool_also_after_its_mail_was_accepted(url: str) -> None:
    first, second = engine_harness.loopback_addresses(2)
    ours = [source("out1", first), source("own", second, pool="partners")]
    async with smtp_peers.serving({"BANNER": ["421 later", "220 peer.example ESMTP"]}) as peer:
        async with engine_harness.running_engine(url, port=peer.port, sources=ours) as harness:
            message_id = await harness.send()
            assert (await harness.settle(message_id)).attempt.source == "out1"
        rules = [{"accounts": [harness.account_id], "pool": "partners"}]
        async with engine_harness.running_engine(
            url, port=peer.port, sources=ours, routes=rules, account_id=harness.account_id
        ) as harness:
            harness.pass_seconds(100)
            seen = await harness.settle(message_id, attempts=2)
            assert [one.source for one in seen.attempts] == ["out1", "own"]
        assert [one.client for one in peer.transactions] == [second]


async def test_each_of_two_hosts_takes_what_its_own_addresses_may_send(clean_postgres_url: str) -> None:
    first, second = engine_harness.loopback_addresses(2)
    here = [source("out1", first), source("own", ABSENT, pool="partners")]
    there = [source("out1", ABSENT), source("own", second, pool="partners")]
    rules = [{"tags": ["partner"], "pool": "partners"}]
    async with smtp_peers.serving() as peer:
        async with engine_harness.running_engine(
            clean_postgres_url, port=peer.port, sources=here, routes=rules
        ) as harness:
            waiting = await harness.send(tags=["partner"])
            assert (await harness.settle(await harness.send())).attempt.source == "out1"
            async with engine_harness.running_engine(
                clean_postgres_url, port=peer.port, sources=there, routes=rules, account_id=harness.account_id
            ) as other:
                assert (await harness.settle(waiting)).attempt.source == "own"
                sent = [await harness.send(tags=tags) for tags in ([], ["partner"])]
                other.ctx.mail_wakeup.set()
                assert [(await harness.settle(one)).attempt.source for one in sent] == ["out1", "own"]
        assert sorted(one.client for one in peer.transactions) == sorted([first, first, second, second])


async def test_a_server_that_does_not_answer_one_address_gets_mail_from_the_other(url: str) -> None:
    first, second = engine_harness.loopback_addresses(2)

    def banner(client: str) -> smtp_peers.Answer:
        return smtp_peers.CLOSE if client == first else "220 peer.example ESMTP"

    ours = [source("out1", first), source("out2", second)]
    async with engine_harness.delivering_to(url, {"BANNER": banner}, sources=ours, retry_seconds=[1] * 9) as (
        peer,
        harness,
    ):
        for _ in range(4):
            message_id = await harness.send()
            await harness.settle(message_id)
            harness.pass_seconds(2)
            assert (await harness.settle(message_id, attempts=5)).recipient.status == "delivered"
        assert {one.client for one in peer.transactions} == {second}


async def test_a_provider_slows_down_each_address_for_itself(url: str) -> None:
    first, second = engine_harness.loopback_addresses(2)
    too_many = "421 4.7.28 too many messages from your address"
    is_full: list[bool] = []

    def banner(client: str) -> smtp_peers.Answer:
        return too_many if client == first else "220 peer.example ESMTP"

    def mail(_: str) -> smtp_peers.Answer:
        return too_many if is_full else "250 2.1.0 ok"

    ours = [source("out1", first), source("out2", second)]
    async with engine_harness.delivering_to(url, {"BANNER": banner, "MAIL": mail}, sources=ours) as (_, harness):
        refused = await harness.send()
        await harness.settle(refused)
        for _ in range(3):
            assert (await harness.settle(await harness.send())).attempt.source == "out2"

        async def is_reported() -> bool:
            return (await harness.pool_states()).keys() == {"mx.example.net out1"}

        await parts.until(is_reported)
        is_full.append(True)
        await harness.settle(await harness.send())

        async def are_all_reported() -> bool:
            return (await harness.pool_states()).keys() == {
                "mx.example.net",
                "mx.example.net out1",
                "mx.example.net out2",
            }

        await parts.until(are_all_reported)


async def test_a_pool_of_the_other_family_defers_mail_and_says_so(url: str) -> None:
    ours = [source("out1", "127.0.0.1"), source("six", "::1", pool="six")]
    rules = [{"tags": ["six"], "pool": "six"}]
    async with engine_harness.delivering_to(url, sources=ours, routes=rules) as (_, harness):
        seen = await harness.settle(await harness.send(tags=["six"]))
        assert seen.recipient.status == "deferred"
        assert seen.attempt.response == "no source address of pool six can reach 127.0.0.1"


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
async def test_mail_leaves_from_an_ipv6_address(url: str) -> None:
    zones = {"example.net": {"MX": ["10 mx.example.net."]}, "mx.example.net": {"AAAA": ["::1"]}}
    async with engine_harness.delivering_to(
        url, host="::1", sources=[source("six", "::1"), source("out1", "127.0.0.1")], zones={**zones}
    ) as (peer, harness):
        assert (await harness.settle(await harness.send())).attempt.source == "six"
        assert peer.transactions[0].client == "::1"


async def test_the_source_address_of_an_attempt_is_shown(url: str) -> None:
    async with engine_harness.delivering_to(url, sources=[source("out1", "127.0.0.1")]) as (_, harness):
        message_id = await harness.send()
        await harness.settle(message_id)
        traced = await queue_inspection.trace(harness.ctx, message_id)
        assert ", to mx.example.net [127.0.0.1], from out1, provider queue mx.example.net" in queue_commands.trace(
            traced
        )
        who = accepted_mail.caller_of(harness.account_id)
        details = await lookup.details(harness.ctx, who.account_id, message_id)
        shown = messages.details(details, {}, request_id="req_1")
        assert [one.source for one in shown.attempts] == ["out1"]


async def test_a_message_that_one_address_may_not_send_leaves_from_another(database_url: str) -> None:
    first, second = engine_harness.loopback_addresses(2)
    ours = [source("out1", first), source("out2", second)]
    blocked: smtp_peers.Script = {"BANNER": lambda client: BLOCKED if client == first else "220 peer.example ESMTP"}
    async with engine_harness.delivering_to(database_url, blocked, sources=ours) as (_, harness):
        message_id = await harness.send()
        deferred = await harness.settle(message_id)
        assert deferred.standing == ("deferred", 1, 554)
        assert (deferred.attempt.source, deferred.attempt.verdict, deferred.attempt.reason) == (
            "out1",
            "retry",
            "ip_blocked",
        )
        harness.pass_seconds(3600)
        delivered = await harness.settle(message_id, attempts=2)
        assert delivered.standing == ("delivered", 2, 250)
        assert [one.source for one in delivered.attempts] == ["out1", "out2"]
        # As long as the refusal is remembered, other mail leaves from the other address at once.
        for _ in range(2):
            assert (await harness.settle(await harness.send())).attempt.source == "out2"


async def test_a_message_that_no_address_may_send_bounces_after_each_was_tried(url: str) -> None:
    first, second = engine_harness.loopback_addresses(2)
    ours = [source("out1", first), source("out2", second)]
    async with engine_harness.delivering_to(url, {"BANNER": BLOCKED}, sources=ours) as (_, harness):
        message_id = await harness.send()
        assert (await harness.settle(message_id)).standing == ("deferred", 1, 554)
        harness.pass_seconds(3600)
        bounced = await harness.settle(message_id, attempts=2)
        assert bounced.standing == ("bounced", 2, 554)
        assert [one.source for one in bounced.attempts] == ["out1", "out2"]
        # Both are known to be refused now.
        assert (await harness.settle(await harness.send())).standing == ("bounced", 1, 554)


async def test_another_pool_another_address_family_and_a_paused_address_do_not_help(url: str) -> None:
    first, second, third = engine_harness.loopback_addresses(3)
    ours = [source("out1", first), source("news", second, pool="news"), source("out2", third), source("out6", "::1")]
    async with engine_harness.delivering_to(url, {"BANNER": BLOCKED}, sources=ours) as (_, harness):
        await sources.pause(harness.ctx, "out2", reason="x", until=None)

        async def is_known() -> bool:
            return harness.engine._recorder._sources.is_paused("out2", "mx.example.net")

        harness.ctx.mail_wakeup.set()
        await parts.until(is_known)
        assert (await harness.settle(await harness.send())).standing == ("bounced", 1, 554)


async def test_what_one_address_may_not_send_for_another_reason_bounces_at_once(url: str) -> None:
    first, second = engine_harness.loopback_addresses(2)
    ours = [source("out1", first), source("out2", second)]
    async with engine_harness.delivering_to(url, {"RCPT": "550 5.1.1 no such user"}, sources=ours) as (_, harness):
        assert (await harness.settle(await harness.send())).standing == ("bounced", 1, 550)
