"""One job, host after host: who decides, which connection is used, and what counts when everybody refuses."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import pytest

from postroad.delivery import hosts, preparing, routing, trying
from postroad.model import breaker, judging, tls_policy
from postroad.network import smtp_connection
from postroad.protocol.smtp import values
from postroad.storage import queue
from tests import smtp_peers
from tests.delivery import engines, parts

Verdict = judging.Verdict
REFUSES_ALL = {"BANNER": ("554 5.3.2 not here", smtp_peers.CLOSE)}


@dataclass(slots=True)
class World:
    """Hosts that are remembered, and a link."""

    hosts: hosts.Hosts
    tries: trying.Trying
    link: trying.Link
    opened: list[str]

    async def attempt(self, job: preparing.Job, *, most_deliveries: int = 100) -> trying.Attempted | None:
        return await self.tries.attempt(job, self.link, most_deliveries=most_deliveries)

    async def outcome(self, job: preparing.Job) -> trying.Attempted:
        attempted = await self.attempt(job)
        assert attempted is not None
        return attempted

    def break_down(self, host: routing.Host) -> None:
        for _ in range(breaker.FAILURES_TO_OPEN):
            self.hosts.failed(host)


@contextlib.asynccontextmanager
async def trying_out() -> AsyncIterator[World]:
    known = hosts.Hosts(parts.Time())
    opened: list[str] = []

    async def connect(host: routing.Host) -> smtp_connection.SmtpConnection:
        opened.append(host.address)
        return await parts.connect(host)

    world = World(known, trying.Trying(known, connect), trying.Link(), opened)
    try:
        yield world
    finally:
        await world.link.close()


def job_for(*there: routing.Host, recipients: Sequence[str] = ("ada@example.net",)) -> preparing.Job:
    claims = tuple(
        queue.Claimed("acc_1", "em_1", f"rcp_{number}", "example.net acc_1", email, email, 100, 0, 0, 0)
        for number, email in enumerate(recipients)
    )
    envelope = values.Envelope("shop@example.com", tuple(recipients), (b"Subject: Hello\r\n\r\nHello\r\n",))
    return preparing.Job(claims, parts.route_to(*there), len(claims), envelope)


def verdicts(attempted: trying.Attempted) -> list[str]:
    return [judgement.verdict for judgement in attempted.judgements]


async def test_the_first_host_that_takes_the_message_decides() -> None:
    async with trying_out() as world, smtp_peers.serving() as peer:
        attempted = await world.outcome(job_for(parts.host_at(peer.port), parts.host_at(peer.port, name="mx2")))
        assert verdicts(attempted) == [Verdict.DELIVERED]
        assert (attempted.host, attempted.address, attempted.tls) == ("mx.example.net", "127.0.0.1", "")
        assert (len(peer.transactions), peer.connections) == (1, 1)


async def test_each_recipient_has_its_own_result() -> None:
    script = {"RCPT": lambda line: "550 5.1.1 nobody" if "bob" in line else "250 ok"}
    async with trying_out() as world, smtp_peers.serving(script) as peer:
        job = job_for(parts.host_at(peer.port), recipients=["ada@example.net", "bob@example.net"])
        attempted = await world.outcome(job)
        assert verdicts(attempted) == [Verdict.DELIVERED, Verdict.BOUNCED]
        assert not attempted.wants_next_host
        assert not attempted.is_undone


async def test_a_host_that_cannot_be_reached_or_refuses_everybody_is_followed_by_the_next() -> None:
    first, second, third = engines.loopback_addresses(3)
    async with (
        trying_out() as world,
        smtp_peers.serving(REFUSES_ALL, host=second) as refusing,
        smtp_peers.serving(host=third, port=refusing.port) as good,
    ):
        there = [parts.host_at(good.port, address=address) for address in (first, second, third)]
        attempted = await world.outcome(job_for(*there))
        assert verdicts(attempted) == [Verdict.DELIVERED]
        assert attempted.address == third
        assert world.opened == [first, second, third]


async def test_a_refusal_is_final_only_when_all_hosts_refuse_for_good() -> None:
    first, second = engines.loopback_addresses(2)
    busy = {"BANNER": ("421 4.3.2 busy", smtp_peers.CLOSE)}
    async with trying_out() as world, smtp_peers.serving(REFUSES_ALL, host=second) as refusing:
        hosts_there = [parts.host_at(refusing.port, address=address) for address in (first, second)]
        async with smtp_peers.serving(busy, host=first, port=refusing.port):
            attempted = await world.outcome(job_for(*hosts_there))
            assert verdicts(attempted) == [Verdict.RETRY]
            assert attempted.address == first
        async with smtp_peers.serving(REFUSES_ALL, host=first, port=refusing.port):
            attempted = await world.outcome(job_for(*hosts_there))
            assert verdicts(attempted) == [Verdict.BOUNCED]
            assert attempted.address == second


async def test_a_refusal_for_good_is_not_final_while_another_host_is_left_alone_by_its_breaker() -> None:
    first, second = engines.loopback_addresses(2)
    async with trying_out() as world, smtp_peers.serving(REFUSES_ALL, host=second) as refusing:
        dead, backup = (parts.host_at(refusing.port, address=address) for address in (first, second))
        world.break_down(dead)
        attempted = await world.outcome(job_for(dead, backup))
        assert world.opened == [second]
        assert verdicts(attempted) == [Verdict.RETRY]
        assert attempted.results[0].reply == values.Reply(554, "not here", "5.3.2")


async def test_nothing_is_done_when_no_host_may_be_tried() -> None:
    async with trying_out() as world:
        host = parts.host_at(1)
        world.break_down(host)
        assert await world.attempt(job_for(host)) is None
        assert world.opened == []


async def test_failures_to_connect_open_the_breaker_and_a_refusal_in_words_closes_it() -> None:
    async with trying_out() as world:
        with smtp_peers.refusing_port() as port:
            job = job_for(parts.host_at(port))
            for _ in range(breaker.FAILURES_TO_OPEN):
                attempted = await world.outcome(job)
                assert attempted.is_silent
                assert attempted.is_undone
            assert await world.attempt(job) is None
        async with smtp_peers.serving(REFUSES_ALL) as peer:
            host = parts.host_at(peer.port)
            world.hosts.failed(host)
            world.hosts.failed(host)
            attempted = await world.outcome(job_for(host))
            assert not attempted.is_silent
            world.hosts.failed(host)
            assert world.hosts.blocked_until(job_for(host).route) is None


async def test_encryption_that_one_domain_asks_for_in_vain_closes_the_host_to_nobody() -> None:
    async with trying_out() as world, smtp_peers.serving() as peer:
        plain = parts.host_at(peer.port)
        strict = routing.Host(plain.name, plain.address, plain.port, tls_policy.TlsPolicy(tls_policy.Mode.VERIFIED))
        for _ in range(breaker.FAILURES_TO_OPEN):
            attempted = await world.outcome(job_for(strict))
            assert verdicts(attempted) == [Verdict.RETRY]
            assert attempted.results[0].stage is values.Stage.STARTTLS
        assert verdicts(await world.outcome(job_for(plain))) == [Verdict.DELIVERED]


async def test_a_host_that_hangs_up_without_a_word_is_silent() -> None:
    async with trying_out() as world, smtp_peers.serving({"BANNER": smtp_peers.CLOSE}) as peer:
        attempted = await world.outcome(job_for(parts.host_at(peer.port)))
        assert attempted.is_silent
        assert verdicts(attempted) == [Verdict.RETRY]


async def test_an_open_connection_is_used_until_it_has_carried_enough() -> None:
    async with trying_out() as world, smtp_peers.serving() as peer:
        job = job_for(parts.host_at(peer.port))
        for _ in range(3):
            await world.attempt(job, most_deliveries=3)
        assert peer.connections == 1
        assert world.link.is_worn(most_deliveries=3)
        await world.attempt(job, most_deliveries=3)
        assert (peer.connections, len(peer.transactions)) == (2, 4)


async def test_a_connection_to_another_host_or_under_another_policy_does_not_fit() -> None:
    async with trying_out() as world, smtp_peers.serving() as peer:
        here = parts.host_at(peer.port)
        assert not world.link.fits(parts.route_to(here), most_deliveries=9)
        await world.attempt(job_for(here))
        assert world.link.fits(parts.route_to(parts.host_at(1), here), most_deliveries=9)
        assert not world.link.fits(parts.route_to(parts.host_at(1)), most_deliveries=9)
        assert not world.link.fits(parts.route_to(parts.host_at(peer.port, address="127.0.0.2")), most_deliveries=9)
        stricter = routing.Host(here.name, here.address, here.port, tls_policy.OPPORTUNISTIC)
        assert not world.link.fits(parts.route_to(stricter), most_deliveries=9)


@pytest.mark.parametrize("farewell", [smtp_peers.CLOSE, ("421 4.4.2 idle for too long", smtp_peers.CLOSE)])
async def test_a_kept_connection_that_was_closed_says_nothing_about_the_message(farewell: smtp_peers.Answer) -> None:
    script: smtp_peers.Script = {"MAIL": ["250 ok", farewell, "250 ok"]}
    async with trying_out() as world, smtp_peers.serving(script) as peer:
        job = job_for(parts.host_at(peer.port))
        await world.attempt(job)
        attempted = await world.outcome(job)
        assert verdicts(attempted) == [Verdict.DELIVERED]
        assert (peer.connections, len(peer.transactions)) == (2, 2)


async def test_a_kept_connection_that_is_lost_while_all_hosts_are_left_alone_leaves_everything_undone() -> None:
    script: smtp_peers.Script = {"MAIL": ["250 ok", smtp_peers.CLOSE]}
    async with trying_out() as world, smtp_peers.serving(script) as peer:
        host = parts.host_at(peer.port)
        await world.attempt(job_for(host))
        world.break_down(host)
        assert await world.attempt(job_for(host)) is None


async def test_a_connection_that_is_being_opened_can_be_cut_and_no_other_host_is_asked() -> None:
    first, second = engines.loopback_addresses(2)
    script: smtp_peers.Script = {"EHLO": smtp_peers.SILENCE}
    async with (
        trying_out() as world,
        smtp_peers.serving(script, host=first) as silent,
        smtp_peers.serving(host=second, port=silent.port) as good,
    ):
        there = [parts.host_at(silent.port, address=address) for address in (first, second)]
        task = asyncio.create_task(world.attempt(job_for(*there)))
        await silent.wait_for("EHLO")
        world.link.cut()
        async with asyncio.timeout(parts.PATIENCE_SECONDS):
            attempted = await task
        assert attempted is not None
        assert attempted.is_undone
        assert good.connections == 0
        assert world.hosts.is_proven(parts.route_to(there[0]))


async def test_a_delivery_that_is_cut_has_a_result_and_is_not_begun_elsewhere() -> None:
    async with trying_out() as world, smtp_peers.serving({"MAIL": smtp_peers.SILENCE}) as peer:
        task = asyncio.create_task(world.attempt(job_for(parts.host_at(peer.port), parts.host_at(peer.port))))
        await peer.wait_for("MAIL")
        world.link.cut()
        async with asyncio.timeout(parts.PATIENCE_SECONDS):
            attempted = await task
        assert attempted is not None
        assert attempted.is_undone
        assert peer.connections == 1


async def test_a_cancelled_attempt_leaves_no_connection_behind() -> None:
    async with trying_out() as world, smtp_peers.serving({"EHLO": smtp_peers.SILENCE}) as peer:
        task = asyncio.create_task(world.attempt(job_for(parts.host_at(peer.port))))
        await peer.wait_for("EHLO")
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert world.link.opening is None
