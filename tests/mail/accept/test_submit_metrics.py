"""Sends are counted by their end: accepted, replayed, or refused with a code."""

import pytest

from postroad import context, errors
from postroad.mail.accept import submit_mime
from postroad.model.mail import statuses
from postroad.storage.people import accounts
from tests import accepted_mail
from tests.services import mime_messages


async def test_every_send_is_counted_once(ctx: context.Context, account: accounts.Account) -> None:
    await accepted_mail.allow_sending(ctx, account.id, amount=2)
    await accepted_mail.accept(ctx, account.id, key="order-1")
    await accepted_mail.accept(ctx, account.id, key="order-1")
    for _ in range(2):
        message = mime_messages.plain("Idempotency-Key: order-2")
        await submit_mime.submit_mime(ctx, accepted_mail.caller_of(account.id), message, request_id="req_1")
    with pytest.raises(errors.InsufficientCredits):
        await accepted_mail.accept(ctx, account.id, source=statuses.Source.TEST)
    with pytest.raises(errors.InvalidRequest):
        await accepted_mail.accept(ctx, account.id, to=())
    assert ctx.metrics.accepted.values == {("api",): 1, ("smtp",): 1}
    assert ctx.metrics.replayed.values == {("api",): 1, ("smtp",): 1}
    assert ctx.metrics.refused.values == {("test", "insufficient_credits"): 1, ("api", "invalid_request"): 1}
