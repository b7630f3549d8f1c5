"""From claims to jobs: what is sent, what recipients share, and what happens to a message that cannot be sent."""

import asyncio
import math
from collections.abc import Sequence
from typing import cast

import pytest

from postroad import errors
from postroad.delivery import attempter
from postroad.mail import return_path
from postroad.mail.signing import signer_pool
from postroad.storage.engine import store
from postroad.storage.mail import messages, queue
from tests import accepted_mail
from tests.delivery import parts

ROUTE = parts.route_to(parts.host_at(25))


def claim_of(message: str, number: int, *, size: int = 100) -> queue.Claimed:
    email = f"{number}@example.net"
    return queue.Claimed("acc_1", message, f"rcp_{number:04}", "example.net acc_1", email, email, size, 0, 0, 0)


class Signer:
    """A signer that fails for one message."""

    def __init__(self, problem: Exception | None = None, *, poison: str = "") -> None:
        self.asked: list[tuple[str, str, str]] = []
        self._problem = problem
        self._poison = poison

    async def signature(
        self,
        account_id: str,
        domain: str,
        message_id: str,
        content: bytes,
        *,
        is_shared: bool = True,
    ) -> bytes:
        self.asked.append((account_id, domain, message_id))
        if self._problem and self._poison.encode() in content:
            raise self._problem
        return b"DKIM-Signature: x\r\n"


def as_signing(signer: Signer) -> signer_pool.DkimSigner:
    return cast("signer_pool.DkimSigner", signer)


@pytest.mark.parametrize(
    "size, most",
    [
        # An account that is alone gets four fifths.
        (attempter.SMALL_MESSAGE_BYTES, attempter.PREFETCH_BYTES * 4 / 5),
        (attempter.SMALL_MESSAGE_BYTES * 2, attempter.MEDIUM_PREFETCH_BYTES),
        (attempter.LARGE_MESSAGE_BYTES, attempter.MEDIUM_PREFETCH_BYTES),
    ],
)
async def test_messages_are_read_ahead_as_far_as_there_is_room_and_those_that_are_done_make_room(
    url: str, size: int, most: float
) -> None:
    count = math.ceil(most / size)
    jobs = attempter.jobs_of([claim_of(f"em_{number}", 1, size=size) for number in range(count + 2)], ROUTE)
    async with parts.opened(url) as made:
        one = made.services.message_loader
        assert one.choose_prefetch(jobs) == jobs[:count]
        assert one.choose_prefetch(jobs[count:]) == []
        for _ in range(2):  # recorded twice, it counts once
            one.release(jobs[0])
        assert one.choose_prefetch(jobs[count:]) == [jobs[count]]


async def test_no_large_message_is_read_ahead(url: str) -> None:
    (large,) = attempter.jobs_of([claim_of("em_1", 1, size=attempter.LARGE_MESSAGE_BYTES + 1)], ROUTE)
    (small,) = attempter.jobs_of([claim_of("em_2", 1, size=1)], ROUTE)
    async with parts.opened(url) as made:
        assert made.services.message_loader.choose_prefetch([large, small]) == [small]


async def test_few_read_the_store_at_the_same_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempter, "MAX_CONCURRENT_READS", 2)
    async with parts.opened(url) as made:
        one = attempter.MessageLoader(made.ctx, None, made.services.log)
        reading, most = 0, 0

        async def noting(*_: object) -> list[messages.Outgoing]:
            nonlocal reading, most
            reading += 1
            most = max(most, reading)
            await asyncio.sleep(0)
            reading -= 1
            return []

        monkeypatch.setattr(messages, "outgoing", noting)
        jobs = attempter.jobs_of([claim_of(f"em_{number}", 1) for number in range(5)], ROUTE)
        reported: list[attempter.Job] = []
        await asyncio.gather(*(one.prepare([job], reported.append) for job in jobs))
        assert (most, len(reported)) == (2, 5)


def test_a_message_is_large_beyond_a_bound() -> None:
    bound = attempter.LARGE_MESSAGE_BYTES
    sizes = [attempter.jobs_of([claim_of("em_1", 1, size=size)], ROUTE)[0].is_large for size in (bound, bound + 1)]
    assert sizes == [False, True]


async def test_a_job_gets_its_content_an_envelope_and_a_return_path_of_its_own(database_url: str) -> None:
    async with parts.opened(database_url, return_path_domain="bounces.example.org") as made:
        await made.accept("ada@example.net", "bob@example.net", "eve@example.org")
        claims = [claim for claim in await made.claim() if claim.queue_key.startswith("example.net")]
        jobs = attempter.jobs_of(claims, ROUTE)
        ready: list[attempter.Job] = []
        await made.services.message_loader.prepare(jobs, ready.append)
        assert ready == jobs
        transactions = [job.transaction for job in jobs if job.transaction is not None]
        assert [one.recipients for one in transactions] == [("ada@example.net",), ("bob@example.net",)]
        for job, transaction in zip(jobs, transactions, strict=True):
            assert job.recipient_count == 3
            assert transaction.sender.endswith("@bounces.example.org")
            named = return_path.read(made.ctx.keys.return_path, transaction.sender)
            assert named is not None
            assert named.message_id == job.message[1]
            assert named.recipient(claim.recipient_id for claim in claims) == job.claim.recipient_id
            assert b"It is on its way." in transaction.content[0]
            assert not transaction.needs_smtputf8


async def test_the_recipients_of_a_message_share_its_content_as_long_as_one_of_them_has_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    outgoing = messages.outgoing

    async def noting(tx: store.Transaction, wanted: Sequence[tuple[str, str]]) -> list[messages.Outgoing]:
        read.append(len(wanted))
        return await outgoing(tx, wanted)

    monkeypatch.setattr(messages, "outgoing", noting)
    signer = Signer()
    async with parts.opened(url, signer=as_signing(signer)) as made:
        jobs = await made.jobs(*[f"{number}@example.net" for number in range(5)], route=ROUTE)
        contents = [job.transaction.content[1] for job in jobs if job.transaction]
        assert len(contents) == 5
        assert all(content is contents[0] for content in contents)
        assert (read, len(signer.asked)) == ([1], 1)
        loader = made.services.message_loader
        for job in jobs[:4]:
            loader.release(job)
        await loader.prepare(jobs[:1], lambda _: None)
        assert read == [1]
        del contents, job
        for one in jobs:
            loader.release(one)
        await loader.prepare(jobs[:1], lambda _: None)
        assert read == [1, 1]


async def test_what_recipients_share_takes_room_once(url: str) -> None:
    size = attempter.SMALL_MESSAGE_BYTES * 2
    most = attempter.MEDIUM_PREFETCH_BYTES // size
    claims = [claim_of("em_1", number, size=size) for number in range(3)]
    shared = attempter.jobs_of(claims, ROUTE)
    others = attempter.jobs_of([claim_of(f"em_{number}", 1, size=size) for number in range(2, most + 2)], ROUTE)
    async with parts.opened(url) as made:
        one = made.services.message_loader
        assert one.choose_prefetch([*shared, *others]) == [*shared, *others[:-1]]
        for job in shared[:2]:
            one.release(job)
        assert one.choose_prefetch(others[-1:]) == []
        one.release(shared[2])
        assert one.choose_prefetch(others[-1:]) == others[-1:]


async def test_without_a_return_path_domain_bounces_come_to_the_senders_domain(url: str) -> None:
    async with parts.opened(url) as made:
        (job,) = await made.jobs(route=ROUTE)
        assert job.transaction is not None
        assert job.transaction.sender.endswith(f"@{accepted_mail.DOMAIN}")


async def test_an_address_that_is_not_ascii_needs_smtputf8(url: str) -> None:
    async with parts.opened(url) as made:
        (job,) = await made.jobs("ädä@example.net", route=ROUTE)
        assert job.transaction is not None
        assert job.transaction.needs_smtputf8


@pytest.mark.parametrize("to", [("ada@example.net", "ädä@example.net"), ("ädä@example.net",)], ids=len)
async def test_only_recipients_beside_an_address_that_is_not_ascii_have_a_fallback(
    to: tuple[str, ...], url: str
) -> None:
    signer = Signer()
    async with parts.opened(url, signer=as_signing(signer)) as made:
        jobs = await made.jobs(*to, route=ROUTE)
        odd = jobs[-1].transaction
        assert odd is not None
        assert (odd.recipients, odd.needs_smtputf8, odd.fallback) == (("ädä@example.net",), True, None)
        if len(to) == 1:
            return
        plain = jobs[0].transaction
        assert plain is not None
        assert plain.fallback is not None
        assert (plain.recipients, plain.needs_smtputf8, plain.content) == (("ada@example.net",), True, odd.content)
        assert (plain.fallback.sender, plain.fallback.recipients) == (plain.sender, plain.recipients)
        assert (plain.fallback.needs_smtputf8, plain.fallback.is_8bit) == (False, False)
        # Another content has another signature.
        assert plain.fallback.content[0] == b"DKIM-Signature: x\r\n"
        assert {name for _, _, name in signer.asked} == {jobs[0].message[1], f"{jobs[0].message[1]}-ascii"}


async def test_a_signature_stands_before_the_message(url: str) -> None:
    signer = Signer()
    async with parts.opened(url, signer=as_signing(signer)) as made:
        (job,) = await made.jobs(route=ROUTE)
        assert job.transaction is not None
        assert job.transaction.content[0] == b"DKIM-Signature: x\r\n"
        assert signer.asked == [(made.account_id, accepted_mail.DOMAIN, job.message[1])]


async def test_a_message_whose_content_is_gone_is_reported_without_an_envelope(url: str) -> None:
    async with parts.opened(url) as made:
        (job,) = attempter.jobs_of([claim_of("em_absent", 1)], ROUTE)
        ready: list[attempter.Job] = []
        await made.services.message_loader.prepare([job], ready.append)
        assert ready == [job]
        assert (job.transaction, job.failure) == (None, attempter.CONTENT_MISSING)


async def test_a_message_that_cannot_be_signed_is_reported_and_holds_up_nobody(url: str) -> None:
    signer = Signer(RuntimeError("the key does not open"), poison="poison")
    async with parts.opened(url, signer=as_signing(signer)) as made:
        await made.accept(text="good")
        await made.accept(text="poison")
        await made.accept(text="good as well")
        jobs = attempter.jobs_of(await made.claim(), ROUTE)
        ready: list[attempter.Job] = []
        await made.services.message_loader.prepare(jobs, ready.append)
        assert len(ready) == 3
        (broken,) = (job for job in jobs if job.transaction is None)
        assert broken.failure == attempter.INTERNAL_ERROR
        (line,) = made.log
        assert (line["event"], line["message_id"]) == ("message_load_failed", broken.message[1])


@pytest.mark.parametrize("trouble", [errors.ServiceUnavailable, errors.TemporaryFailure])
async def test_a_message_whose_key_the_store_does_not_give_now_is_not_reported(
    url: str, trouble: type[errors.ServiceUnavailable | errors.TemporaryFailure]
) -> None:
    signer = Signer(trouble("away", retry_after=1))
    async with parts.opened(url, signer=as_signing(signer)) as made:
        await made.accept()
        ready: list[attempter.Job] = []
        await made.services.message_loader.prepare(attempter.jobs_of(await made.claim(), ROUTE), ready.append)
        assert ready == []
        assert made.events() == ["message_load_deferred"]
