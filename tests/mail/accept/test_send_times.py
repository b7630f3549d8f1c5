"""Messages that are sent later, or not too late: what is stored, answered and refused, on both engines."""

import msgspec
import pytest

from postroad import context, errors
from postroad.mail.accept import submit
from postroad.model.mail import send_request, statuses
from postroad.model.units import times
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import lookup as messages
from postroad.services.operations import operator_jobs
from postroad.storage.mail import queue
from tests import accepted_mail
from tests.contexts import SECOND, Clock

REQUEST = send_request.SendRequest(sender="shop@example.com", to="ada@example.net", subject="Hello", text="Hi")
HOUR = 3_600 * SECOND


async def send(ctx: context.Context, account_id: str, **options: object) -> bytes:
    request = msgspec.structs.replace(REQUEST, **options)
    accepted = await submit.submit(
        ctx, accepted_mail.caller_of(account_id), request, request_id="req_1", source=statuses.Source.API, key="order-1"
    )
    return accepted.response


async def claimed(ctx: context.Context) -> list[queue.Claimed]:
    async with ctx.store.transaction() as tx:
        await queue.promote(tx, now=ctx.clock(), limit=10)
        wanted = [queue.ClaimRequest(key, 10) for key in await queue.queue_keys(tx, after="", limit=10)]
        return await queue.claim(tx, wanted, lease_until=ctx.clock() + SECOND, worker="w1")


async def test_a_message_waits_for_its_time_and_its_expiry_counts_from_there(
    ctx: context.Context, sender: str, clock: Clock
) -> None:
    send_at = clock.now + HOUR
    response = await send(ctx, sender, send_at=times.to_wire(send_at), expires_in=90)
    send_at = send_at // 1000 * 1000  # the wire has milliseconds
    receipt_ = msgspec.json.decode(response, type=send_request.Receipt)
    assert (receipt_.send_at, receipt_.expires_at) == (times.to_wire(send_at), times.to_wire(send_at + 90 * SECOND))
    message, _ = await messages.find(ctx, sender, receipt_.id)
    assert (message.status, message.send_at, message.expires_at) == ("queued", send_at, send_at + 90 * SECOND)
    assert (await accounts.find(ctx, sender)).reserved == 1
    assert await claimed(ctx) == []
    clock.pass_seconds(3_600)
    (one,) = await claimed(ctx)
    # The retry period begins at the time to send.
    assert (one.queued_at, one.expires_at) == (send_at, send_at + 90 * SECOND)
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_a_message_without_times_answers_as_ever(ctx: context.Context, sender: str, clock: Clock) -> None:
    answered = msgspec.json.decode(await send(ctx, sender, send_at=None, expires_in=None))
    assert not {"send_at", "expires_at"} & answered.keys()
    (one,) = await claimed(ctx)
    assert (one.queued_at, one.expires_at) == (clock.now, None)


async def test_a_repeated_request_gets_its_answer_after_its_time_is_over(
    ctx: context.Context, sender: str, clock: Clock
) -> None:
    send_at = times.to_wire(clock.now + HOUR)
    first = await send(ctx, sender, send_at=send_at)
    clock.pass_seconds(7_200)
    assert await send(ctx, sender, send_at=send_at) == first
    with pytest.raises(errors.IdempotencyConflict):
        await send(ctx, sender)


async def test_bad_times_store_nothing(ctx: context.Context, sender: str) -> None:
    for options, message in (
        ({"send_at": "2026-01-31T12:00:00"}, "send_at: not an RFC 3339 time with a time zone"),
        ({"send_at": "2001-01-31T12:00:00Z"}, "send_at: 2001-01-31T12:00:00.000Z is in the past"),
        ({"send_at": "2201-01-31T12:00:00Z"}, "send_at: 2201-01-31T12:00:00.000Z is more than 30 days ahead"),
        ({"expires_in": 59}, "expires_in: 59 seconds"),
    ):
        with pytest.raises(errors.InvalidRequest, match=message):
            await send(ctx, sender, **options)
    assert await claimed(ctx) == []
    assert (await accounts.find(ctx, sender)).reserved == 0
