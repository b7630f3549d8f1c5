"""One job, host after host: who decides, which connection is used, and what counts when everybody refuses."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec
import pytest

from postroad.delivery import attempter, routing
from postroad.model.bounces import disposition as bounces_disposition
from postroad.model.delivery import adaptive_rate, tls_policy
from postroad.network.smtp import smtp_connection
from postroad.protocol.reports import tls_report
from postroad.protocol.smtp import values
from postroad.storage.mail import queue
from tests import smtp_peers
from tests.delivery import engine_harness, parts

Verdict = bounces_disposition.Verdict
REFUSES_ALL = {"BANNER": ("554 5.3.2 not here", smtp_peers.CLOSE)}


@dataclass(slots=True)
class AttempterHarness:
    """Hosts that are remembered, and a link."""

    hosts: routing.Hosts
    tries: attempter.Attempter
    slot: attempter.ConnectionSlot
    opened: list[str]

    async def attempt(self, job: attempter.Job, *, max_deliveries: int = 100) -> attempter.JobResult | None:
        return await self.tries.attempt(job, self.slot, max_deliveries=max_deliveries)

    async def outcome(self, job: attempter.Job) -> attempter.JobResult:
        job_result = await self.attempt(job)
        assert job_result is not None
        return job_result


@contextlib.asynccontextmanager
async def trying_out() -> AsyncIterator[AttempterHarness]:
    known = routing.Hosts(parts.Time())
    opened: list[str] = []

    async def connect(host: routing.Host) -> smtp_connection.SmtpConnection:
        opened.append(host.address)
        return await parts.connect(host)

    harness = AttempterHarness(known, attempter.Attempter(known, connect), attempter.ConnectionSlot(), opened)
    try:
        yield harness
    finally:
        await harness.slot.close()


def job_for(*there: routing.Host, recipient: str = "ada@example.net") -> attempter.Job:
    claim = queue.Claimed("acc_1", "em_1", "rcp_0", "example.net acc_1", recipient, recipient, 100, 0, 0, 0)
    transaction = values.MailTransaction("shop@example.com", (recipient,), (b"Subject: Hello\r\n\r\nHello\r\n",))
    return attempter.Job(claim, parts.route_to(*there), 1, transaction)


def waiving(there: routing.Host, field: bytes = b"TLS-Required: No") -> attempter.Job:
    job = job_for(there)
    assert job.transaction is not None
    content = (b"DKIM-Signature: x\r\n", b"From: a@example.com\r\n" + field + b"\r\nSubject: x\r\n\r\nHello\r\n")
    job.transaction = msgspec.structs.replace(job.transaction, content=content)
    return job


def verdict(job_result: attempter.JobResult) -> str:
    return job_result.disposition.verdict


async def test_what_was_said_is_kept_of_failures_only() -> None:
    script = {"RCPT": lambda line: "550 5.1.1 nobody" if "bob" in line else "250 ok"}
    async with trying_out() as harness, smtp_peers.serving(script) as peer:
        delivered = await harness.outcome(job_for(parts.host_at(peer.port)))
        assert delivered.conversation == ""
        refused = (await harness.outcome(job_for(parts.host_at(peer.port), recipient="bob@example.net"))).conversation
        assert (peer.connections, "ada@example.net" in refused) == (1, False)
        assert refused.startswith("S: 220 ")
        assert "\nC: RCPT TO:<bob@example.net>\n" in refused
        assert "\nS: 550 5.1.1 nobody" in refused
    async with trying_out() as harness, smtp_peers.serving(REFUSES_ALL) as peer:
        assert (await harness.outcome(job_for(parts.host_at(peer.port)))).conversation == "S: 554 5.3.2 not here"


async def test_each_job_has_its_own_result() -> None:
    script = {"RCPT": lambda line: "550 5.1.1 nobody" if "bob" in line else "250 ok"}
    async with trying_out() as harness, smtp_peers.serving(script) as peer:
        accepted = await harness.outcome(job_for(parts.host_at(peer.port)))
        refused = await harness.outcome(job_for(parts.host_at(peer.port), recipient="bob@example.net"))
        assert (verdict(accepted), verdict(refused)) == (Verdict.DELIVERED, Verdict.BOUNCED)
        assert (accepted.wants_next_host, refused.wants_next_host) == (False, False)
        assert (accepted.had_no_effect, refused.had_no_effect) == (False, False)


async def test_a_host_that_cannot_be_reached_or_refuses_everybody_is_followed_by_the_next() -> None:
    first, second, third = engine_harness.loopback_addresses(3)
    async with (
        trying_out() as harness,
        smtp_peers.serving(REFUSES_ALL, host=second) as refusing,
        smtp_peers.serving(host=third, port=refusing.port) as good,
    ):
        there = [parts.host_at(good.port, address=address) for address in (first, second, third)]
        job_result = await harness.outcome(job_for(*there))
        assert verdict(job_result) == Verdict.DELIVERED
        assert job_result.address == third
        assert harness.opened == [first, second, third]


async def test_a_refusal_is_final_only_when_all_hosts_refuse_for_good() -> None:
    first, second = engine_harness.loopback_addresses(2)
    busy = {"BANNER": ("421 4.3.2 busy", smtp_peers.CLOSE)}
    async with trying_out() as harness, smtp_peers.serving(REFUSES_ALL, host=second) as refusing:
        hosts_there = [parts.host_at(refusing.port, address=address) for address in (first, second)]
        async with smtp_peers.serving(busy, host=first, port=refusing.port):
            job_result = await harness.outcome(job_for(*hosts_there))
            assert verdict(job_result) == Verdict.RETRY
            assert job_result.address == first
        async with smtp_peers.serving(REFUSES_ALL, host=first, port=refusing.port):
            job_result = await harness.outcome(job_for(*hosts_there))
            assert verdict(job_result) == Verdict.BOUNCED
            assert job_result.address == second


async def test_a_refusal_for_good_is_not_final_while_another_host_is_left_alone_by_its_breaker() -> None:
    first, second = engine_harness.loopback_addresses(2)
    async with trying_out() as harness, smtp_peers.serving(REFUSES_ALL, host=second) as refusing:
        dead, backup = (parts.host_at(refusing.port, address=address) for address in (first, second))
        parts.break_down(harness.hosts, dead)
        job_result = await harness.outcome(job_for(dead, backup))
        assert harness.opened == [second]
        assert verdict(job_result) == Verdict.RETRY
        assert job_result.result.reply == values.Reply(554, "not here", "5.3.2")


async def test_nothing_is_done_when_no_host_may_be_tried() -> None:
    async with trying_out() as harness:
        host = parts.host_at(1)
        parts.break_down(harness.hosts, host)
        assert await harness.attempt(job_for(host)) is None
        assert harness.opened == []


async def test_failures_to_connect_open_the_breaker_and_a_refusal_in_words_closes_it() -> None:
    async with trying_out() as harness:
        with smtp_peers.refusing_port() as port:
            job = job_for(parts.host_at(port))
            for _ in range(adaptive_rate.FAILURES_TO_OPEN):
                job_result = await harness.outcome(job)
                assert job_result.is_unresponsive
                assert job_result.had_no_effect
            assert await harness.attempt(job) is None
        async with smtp_peers.serving(REFUSES_ALL) as peer:
            host = parts.host_at(peer.port)
            harness.hosts.failed(host)
            harness.hosts.failed(host)
            job_result = await harness.outcome(job_for(host))
            assert not job_result.is_unresponsive
            harness.hosts.failed(host)
            assert harness.hosts.blocked_until(job_for(host).route) is None


async def test_encryption_that_one_domain_asks_for_in_vain_closes_the_host_to_nobody() -> None:
    async with trying_out() as harness, smtp_peers.serving() as peer:
        plain = parts.host_at(peer.port)
        strict = routing.Host(plain.name, plain.address, plain.port, tls_policy.TlsPolicy(tls_policy.Mode.VERIFIED))
        for _ in range(adaptive_rate.FAILURES_TO_OPEN):
            job_result = await harness.outcome(job_for(strict))
            assert verdict(job_result) == Verdict.RETRY
            assert job_result.result.stage is values.Stage.STARTTLS
        assert verdict(await harness.outcome(job_for(plain))) == Verdict.DELIVERED


async def test_a_host_that_hangs_up_without_a_word_is_silent() -> None:
    async with trying_out() as harness, smtp_peers.serving({"BANNER": smtp_peers.CLOSE}) as peer:
        job_result = await harness.outcome(job_for(parts.host_at(peer.port)))
        assert job_result.is_unresponsive
        assert verdict(job_result) == Verdict.RETRY


async def test_an_open_connection_is_used_until_it_has_carried_enough() -> None:
    async with trying_out() as harness, smtp_peers.serving() as peer:
        job = job_for(parts.host_at(peer.port))
        for _ in range(3):
            await harness.attempt(job, max_deliveries=3)
        assert peer.connections == 1
        assert not harness.slot.fits(job.route, max_deliveries=3)
        await harness.attempt(job, max_deliveries=3)
        assert (peer.connections, len(peer.transactions)) == (2, 4)


async def test_a_connection_to_another_host_or_under_another_policy_does_not_fit() -> None:
    async with trying_out() as harness, smtp_peers.serving() as peer:
        here = parts.host_at(peer.port)
        assert not harness.slot.fits(parts.route_to(here), max_deliveries=9)
        await harness.attempt(job_for(here))
        assert harness.slot.fits(parts.route_to(parts.host_at(1), here), max_deliveries=9)
        assert not harness.slot.fits(parts.route_to(parts.host_at(1)), max_deliveries=9)
        assert not harness.slot.fits(parts.route_to(parts.host_at(peer.port, address="127.0.0.2")), max_deliveries=9)
        stricter = routing.Host(here.name, here.address, here.port, tls_policy.OPPORTUNISTIC)
        assert not harness.slot.fits(parts.route_to(stricter), max_deliveries=9)


@pytest.mark.parametrize("farewell", [smtp_peers.CLOSE, ("421 4.4.2 idle for too long", smtp_peers.CLOSE)])
async def test_a_kept_connection_that_was_closed_says_nothing_about_the_message(farewell: smtp_peers.Answer) -> None:
    script: smtp_peers.Script = {"MAIL": ["250 ok", farewell, "250 ok"]}
    async with trying_out() as harness, smtp_peers.serving(script) as peer:
        job = job_for(parts.host_at(peer.port))
        await harness.attempt(job)
        job_result = await harness.outcome(job)
        assert verdict(job_result) == Verdict.DELIVERED
        assert (peer.connections, len(peer.transactions)) == (2, 2)


async def test_a_kept_connection_that_is_lost_while_all_hosts_are_left_alone_leaves_everything_undone() -> None:
    script: smtp_peers.Script = {"MAIL": ["250 ok", smtp_peers.CLOSE]}
    async with trying_out() as harness, smtp_peers.serving(script) as peer:
        host = parts.host_at(peer.port)
        await harness.attempt(job_for(host))
        parts.break_down(harness.hosts, host)
        assert await harness.attempt(job_for(host)) is None


async def test_a_connection_that_is_being_opened_can_be_cut_and_no_other_host_is_asked() -> None:
    first, second = engine_harness.loopback_addresses(2)
    script: smtp_peers.Script = {"EHLO": smtp_peers.SILENCE}
    async with (
        trying_out() as harness,
        smtp_peers.serving(script, host=first) as silent,
        smtp_peers.serving(host=second, port=silent.port) as good,
    ):
        there = [parts.host_at(silent.port, address=address) for address in (first, second)]
        task = asyncio.create_task(harness.attempt(job_for(*there)))
        await silent.wait_for("EHLO")
        harness.slot.abort()
        async with asyncio.timeout(parts.TIMEOUT_SECONDS):
            job_result = await task
        assert job_result is not None
        assert job_result.had_no_effect
        assert good.connections == 0
        assert harness.hosts.is_proven(parts.route_to(there[0]))


async def test_a_delivery_that_is_cut_has_a_result_and_is_not_begun_elsewhere() -> None:
    async with trying_out() as harness, smtp_peers.serving({"MAIL": smtp_peers.SILENCE}) as peer:
        task = asyncio.create_task(harness.attempt(job_for(parts.host_at(peer.port), parts.host_at(peer.port))))
        await peer.wait_for("MAIL")
        harness.slot.abort()
        async with asyncio.timeout(parts.TIMEOUT_SECONDS):
            job_result = await task
        assert job_result is not None
        assert job_result.had_no_effect
        assert peer.connections == 1


async def test_a_cancelled_attempt_leaves_no_connection_behind() -> None:
    async with trying_out() as harness, smtp_peers.serving({"EHLO": smtp_peers.SILENCE}) as peer:
        task = asyncio.create_task(harness.attempt(job_for(parts.host_at(peer.port))))
        await peer.wait_for("EHLO")
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert harness.slot.opening is None


STRICT = tls_policy.TlsPolicy(tls_policy.Mode.VERIFIED, names=("mx.example.net",), reason="MTA-STS of example.net")


@pytest.mark.parametrize("field", [b"TLS-Required: No", b"tls-required:no "])
async def test_a_message_that_tls_not_required_arrives_where_tls_fails(field: bytes) -> None:
    async with trying_out() as harness, smtp_peers.serving() as peer:
        strict = dataclasses.replace(parts.host_at(peer.port), tls=STRICT)
        assert verdict(await harness.outcome(job_for(strict))) == Verdict.RETRY
        assert verdict(await harness.outcome(waiving(strict, field))) == Verdict.DELIVERED
        # Its connection is none for the next message.
        assert verdict(await harness.outcome(job_for(strict))) == Verdict.RETRY
        assert len(peer.transactions) == 1


@pytest.mark.parametrize("field", [b"TLS-Required: Yes", b"X: TLS-Required: No", b"X: y\r\n TLS-Required: No"])
async def test_any_other_message_keeps_to_the_policy(field: bytes) -> None:
    async with trying_out() as harness, smtp_peers.serving() as peer:
        strict = dataclasses.replace(parts.host_at(peer.port), tls=STRICT)
        assert verdict(await harness.outcome(waiving(strict, field))) == Verdict.RETRY
        assert peer.transactions == []


async def test_nobody_can_waive_what_the_operator_requires_and_what_is_waived_is_not_counted() -> None:
    required = tls_policy.TlsPolicy(tls_policy.Mode.REQUIRED, reason="delivery.tls")
    asked: list[routing.Host] = []

    async def connect(host: routing.Host) -> smtp_connection.SmtpConnection:
        asked.append(host)
        raise smtp_connection.ConnectFailed(attempter.ABORTED)

    policy = tls_report.Policy(tls_report.PolicyType.NONE, "example.net")
    host = dataclasses.replace(parts.host_at(25), tls=STRICT, counted_for=("example.net", policy))
    tries = attempter.Attempter(routing.Hosts(parts.Time()), connect, setting=required)
    await tries.attempt(waiving(host), attempter.ConnectionSlot(), max_deliveries=1)
    assert [(one.tls, one.counted_for) for one in asked] == [(required, None)]
