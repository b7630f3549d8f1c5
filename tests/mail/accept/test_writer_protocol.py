"""A frontend: submissions go to the writer, whose answers mean what they mean in one process."""

import asyncio
import collections
import inspect
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from postroad import errors
from postroad.mail.accept import send_limits, transaction, writer_protocol
from postroad.model.mail import send_request, statuses
from postroad.network import framing
from postroad.storage.engine import store
from postroad.storage.mail import messages

TIMEOUT_SECONDS = 600.0
MEBIBYTE = 1024 * 1024


def submission(number: int = 1, *, size: int = 2) -> transaction.Submission:
    message = messages.NewMessage(
        id=f"em_{number}",
        account_id="acc_1",
        credential_id="cred_1",
        source=statuses.Source.API,
        sender="Shop <shop@example.com>",
        sender_key="shop@example.com",
        subject="Grüße",
        recipient_count=1,
        credits_reserved=1,
        size=size,
        request_id="req_1",
        response=b'{"id": 1}',
        created_at=1_700_000_000_000_000,
        mime=b"\x00\xff",
        tags=("a", "b"),
    )
    recipient = messages.NewRecipient(
        message_id=message.id,
        id="rcp_1",
        account_id="acc_1",
        email="ada@example.net",
        email_key="ada@example.net",
        domain="example.net",
    )
    key = transaction.Key("cred_1", "key", b"\x01" * 32)
    return transaction.Submission(message, [recipient], "led_1", key, "example.com")


def accepted(number: int = 1) -> transaction.Accepted:
    return transaction.Accepted(f"em_{number}", "req_1", b'{"id": 1}', replayed=False, full_at=7)


@dataclass(slots=True)
class Talk:
    """The frontend's side under test, and a writer that answers as the test wants."""

    frontend: writer_protocol.RemoteCommits
    writer: writer_protocol.Channel
    heard: collections.defaultdict[type, list[Any]] = field(default_factory=lambda: collections.defaultdict(list))
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def receive(self, frame: memoryview) -> None:
        for said in writer_protocol.decode_from_frontend(frame):
            self.heard[type(said)].append(said)
        self.changed.set()

    async def gets(self, count: int, kind: type = writer_protocol.Submit) -> list[Any]:
        """What the writer has received of a kind, once it is this many."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while len(self.heard[kind]) < count:
                self.changed.clear()
                await self.changed.wait()
        assert len(self.heard[kind]) == count
        return self.heard[kind]


@pytest_asyncio.fixture
async def talk() -> AsyncIterator[Talk]:
    ours, theirs = framing.pair()
    made: list[Talk] = []

    def hear(frame: memoryview) -> None:
        for said in writer_protocol.decode_from_writer(frame):
            assert isinstance(said, writer_protocol.SubmitOk | writer_protocol.ProbeOk | writer_protocol.Rejected)
            made[0].frontend.on_reply(said)

    def offer(frame: memoryview) -> None:
        made[0].receive(frame)

    def end() -> None:
        made[0].frontend.on_writer_gone()

    frontend_end = await framing.connect(ours, hear, end)
    writer_end = await framing.connect(theirs, offer, lambda: None)
    frontend = writer_protocol.RemoteCommits(writer_protocol.Channel(frontend_end), max_waiting=100, wait_seconds=60.0)
    made.append(Talk(frontend, writer_protocol.Channel(writer_end)))
    yield made[0]
    writer_end.close()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await frontend.close()
    frontend_end.close()
    await asyncio.sleep(0)


async def test_a_submission_arrives_as_it_was_and_its_answer_too(talk: Talk) -> None:
    answer = talk.frontend.start(submission(), size=2)
    (offered,) = await talk.gets(1)
    assert offered.submission == submission()
    talk.writer.send(writer_protocol.SubmitOk(offered.number, accepted()))
    got = await answer
    assert (got, got.full_at) == (accepted(), 7)


async def test_a_batch_arrives_as_it_was_and_its_answer_too(talk: Talk) -> None:
    key = transaction.Key("cred_1", "key", b"\x01" * 32)
    refused = {1: send_request.ItemError("forbidden", "from: no")}
    sent = transaction.Batch([submission(1), submission(3)], [0, 2], refused, key, "emails", all_or_nothing=False)
    answer = talk.frontend.start(sent, size=sent.size, count=sent.work)
    (offered,) = await talk.gets(1, writer_protocol.SubmitBatch)
    assert offered.batch == sent
    done = transaction.Accepted("em_1", "req_1", b"{}", replayed=False, full_at=7, refused=("forbidden",))
    talk.writer.send(writer_protocol.SubmitOk(offered.number, done))
    got = await answer
    assert isinstance(got, transaction.Accepted)
    assert (got, got.refused) == (done, ("forbidden",))


async def test_answers_find_their_callers_in_whatever_order_they_come(talk: Talk) -> None:
    answers = [talk.frontend.start(submission(number)) for number in range(10)]
    for offered in reversed(await talk.gets(10)):
        number = int(offered.submission.message.id.removeprefix("em_"))
        talk.writer.send(writer_protocol.SubmitOk(offered.number, accepted(number)))
    assert [await answer for answer in answers] == [accepted(number) for number in range(10)]


REFUSALS: list[errors.PostroadError] = [
    send_limits.Exceeded("too fast", retry_after=3, full_at=99),
    *(
        one("why", **({"retry_after": 5} if "retry_after" in inspect.signature(one).parameters else {}))
        for one in vars(errors).values()
        if inspect.isclass(one) and issubclass(one, errors.PostroadError)
        if one not in (errors.PostroadError, errors.MethodNotAllowed)
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: type(refusal).__name__)
async def test_a_refusal_is_raised_as_the_writer_raised_it(talk: Talk, refusal: errors.PostroadError) -> None:
    refusal.__cause__ = OSError("no space")
    answer = talk.frontend.start(submission())
    (offered,) = await talk.gets(1)
    talk.writer.send(writer_protocol.rejection_of(offered.number, refusal))
    with pytest.raises(type(refusal)) as caught:
        await answer
    reported = caught.value
    assert (reported.message, reported.retry_after, reported.code) == (
        refusal.message,
        refusal.retry_after,
        refusal.code,
    )
    assert getattr(reported, "full_at", None) == getattr(refusal, "full_at", None)
    if not isinstance(refusal, send_limits.Exceeded):
        assert str(reported.__cause__) == "OSError: no space"


async def test_who_waits_when_the_writer_ends_is_asked_to_try_again_with_the_same_key(talk: Talk) -> None:
    answer = talk.frontend.start(submission())
    await talk.gets(1)
    talk.writer.close()
    with pytest.raises(errors.ServiceUnavailable, match="same key"):
        await answer
    with pytest.raises(errors.ServiceUnavailable, match="same key"):
        talk.frontend.start(submission())


async def test_large_content_waits_here_until_the_writer_has_written_what_it_has(talk: Talk) -> None:
    size = 10 * MEBIBYTE
    answers = [talk.frontend.start(submission(number, size=size), size=size) for number in range(3)]
    for count in (1, 2, 3):
        *_, last = await talk.gets(count)
        talk.writer.send(writer_protocol.SubmitOk(last.number, accepted(count - 1)))
        await answers[count - 1]


async def test_what_another_account_has_in_flight_is_in_nobodys_way(talk: Talk) -> None:
    size = 10 * MEBIBYTE
    large = [talk.frontend.start(submission(number, size=size), party="noisy", size=size) for number in range(3)]
    small = talk.frontend.start(submission(7), party="quiet", size=2)
    offered = await talk.gets(2)
    assert [one.submission.message.id for one in offered] == ["em_0", "em_7"]
    talk.writer.send(writer_protocol.SubmitOk(offered[1].number, accepted(7)))
    await small
    talk.writer.send(writer_protocol.SubmitOk(offered[0].number, accepted(0)))
    for count in (3, 4):
        *_, last = await talk.gets(count)
        talk.writer.send(writer_protocol.SubmitOk(last.number, accepted()))
    await asyncio.gather(*large)


async def test_one_that_nobody_waits_for_any_more_is_not_handed_over(talk: Talk) -> None:
    size = 10 * MEBIBYTE
    first, cancelled, last = (talk.frontend.start(submission(number, size=size), size=size) for number in range(3))
    (offered,) = await talk.gets(1)
    cancelled.cancel()
    talk.writer.send(writer_protocol.SubmitOk(offered.number, accepted()))
    await first
    _, offered = await talk.gets(2)
    assert offered.submission.message.id == "em_2"
    talk.writer.send(writer_protocol.SubmitOk(offered.number, accepted()))
    await last


async def test_waiting_for_a_silent_writer_has_a_limit(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_protocol, "WRITER_TIMEOUT_SECONDS", -60.0)
    answer = talk.frontend.start(submission())
    # Not "nothing was accepted": it may yet be written.
    with pytest.raises(errors.ServiceUnavailable, match="did not respond; retry with the same key"):
        await answer
    (offered,) = await talk.gets(1)
    talk.frontend.on_reply(writer_protocol.SubmitOk(offered.number, accepted()))  # too late, and nobody minds


async def test_what_a_writer_has_no_room_for_in_time_is_refused_and_never_sent(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talk.frontend, "_wait_seconds", 0.0)
    size = 10 * MEBIBYTE
    first, second = (talk.frontend.start(submission(number, size=size), size=size) for number in range(2))
    with pytest.raises(errors.TemporaryFailure, match="nothing was accepted"):
        await second
    (offered,) = await talk.gets(1)
    talk.writer.send(writer_protocol.SubmitOk(offered.number, accepted()))
    assert await first == accepted()


async def test_more_octets_than_may_wait_are_refused(talk: Talk) -> None:
    size = 268_435_456
    answers = [talk.frontend.start(submission(number), size=size) for number in range(2)]
    with pytest.raises(errors.TemporaryFailure, match="too many"):
        talk.frontend.start(submission(), size=size)
    for count in (1, 2):
        *_, last = await talk.gets(count)
        talk.writer.send(writer_protocol.SubmitOk(last.number, accepted()))
    await asyncio.gather(*answers)


async def nothing(_tx: store.Transaction) -> None:
    """The writer has a write of its own."""


async def test_the_writer_decides_whether_mail_can_be_written(talk: Talk) -> None:
    probe = asyncio.ensure_future(talk.frontend.recover(nothing))
    (said,) = await talk.gets(1, writer_protocol.Probe)
    talk.writer.send(writer_protocol.ProbeOk(said.number))
    await probe
    probe = asyncio.ensure_future(talk.frontend.recover(nothing))
    refusal = errors.ServiceUnavailable("full", retry_after=5)
    _, said = await talk.gets(2, writer_protocol.Probe)
    talk.writer.send(writer_protocol.rejection_of(said.number, refusal))
    with pytest.raises(errors.ServiceUnavailable, match="full"):
        await probe


async def test_a_probe_ends_with_the_writer(talk: Talk) -> None:
    probe = asyncio.ensure_future(talk.frontend.recover(nothing))
    await talk.gets(1, writer_protocol.Probe)
    talk.writer.close()
    with pytest.raises(errors.ServiceUnavailable, match="stopping"):
        await probe
    with pytest.raises(errors.ServiceUnavailable, match="stopping"):
        await talk.frontend.recover(nothing)


def test_what_is_said_is_small_beside_the_message() -> None:
    said: list[Any] = [writer_protocol.Submit(1, submission())]
    assert len(msgspec.msgpack.encode(said)) < 400
