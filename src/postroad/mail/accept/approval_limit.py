"""What happens to a send above the approval limit of its key: it is stored and refused until a person decides.

The caller repeats the request with the same idempotency key to learn the result: while it is pending, rejected or
expired it gets a refusal that says so, and when it is approved the stored response, as for any repeated request. So
there is no second way to send, and no second answer. Nothing here runs for keys without the limit.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from postroad import context, errors
from postroad.mail.accept import send_limits, transaction, validation
from postroad.model.mail import send_request
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.storage.engine import store
from postroad.storage.mail import messages as idempotency
from postroad.storage.people import accounts, approvals

LIFETIME: Final = times.DAY
# A person looks at them; more are a program that went wrong.
MAX_PENDING: Final = 100
# So that such a program leaves room for the other keys of its account.
MAX_PENDING_OF_KEY: Final = 25
# Without large attachments: it waits in the database, perhaps with many others.
MAX_BODY_BYTES: Final = 1024 * 1024


class ApprovalRequired(errors.Forbidden):
    pass


async def check(
    ctx: context.Context,
    who: callers.Caller,
    request: msgspec.Struct,
    messages: Sequence[validation.CheckedSend | errors.PostroadError],
    *,
    key: transaction.Key | None,
    request_id: str,
) -> None:
    """Return for a send within the limit or one that was done; otherwise store it, if it is new, and refuse it."""
    valid = [message for message in messages if isinstance(message, validation.CheckedSend)]
    recipients = sum(len(message.recipients) for message in valid)
    limit = None if who.key is None else who.key.limits.approval_above
    if who.key is None or limit is None or recipients <= limit:
        return
    if not any(_is_permitted(who.key, message) for message in valid):
        return  # refused next, with the reason: nobody is asked about what the key may not send at all
    if key is None:
        raise errors.Forbidden("this API key needs approval for this request; send it with an Idempotency-Key")
    now = ctx.clock()
    async with ctx.store.reading() as tx:
        used, found = await _earlier(tx, key, now=now)
    if not used and found is None:
        # The rate of sends comes later; each of these locks the account.
        ctx.rate_limiter.take(f"approvals {who.account_id}", now=now)
        new = approvals.Approval(
            id=ctx.new_id(identifiers.APPROVAL, now=now),
            account_id=who.account_id,
            key_id=who.key.id,
            identity=key.credential_id,
            idempotency_key=key.text,
            body_hash=key.body_hash,
            is_batch=not isinstance(request, send_request.SendRequest),
            is_test=who.is_test,
            body=_encoded(request),
            recipients=recipients,
            request_id=request_id,
            state=approvals.State.PENDING,
            created_at=now,
        )
        used, found = await _store(ctx, new, key)
    if used or found is None:
        return  # it was sent: the response, or the conflict with another body, is the usual one
    if found.body_hash != key.body_hash:
        raise errors.IdempotencyConflict("Idempotency-Key: this key was used with a different body; use a new key")
    raise refusal(found, now=now)


def is_expired(approval: approvals.Approval, *, now: int) -> bool:
    """Whether it is too late to approve it, also once more: idempotency keys are not kept longer."""
    undecided = {approvals.State.PENDING, approvals.State.APPROVING}
    return approval.state in undecided and now >= approval.created_at + LIFETIME


def refusal(approval: approvals.Approval, *, now: int) -> errors.Forbidden:
    if approval.state == approvals.State.REJECTED:
        return errors.Forbidden(f"request {approval.id} was rejected in the dashboard; do not repeat it")
    if approval.state == approvals.State.APPROVED:
        return errors.Forbidden(f"request {approval.id} was approved and sent, and its response is no longer stored")
    if is_expired(approval, now=now):
        return errors.Forbidden(
            f"request {approval.id} was not approved in time; send it again with a new Idempotency-Key"
        )
    plural = "" if approval.recipients == 1 else "s"
    return ApprovalRequired(
        f"this request to {approval.recipients} recipient{plural} waits for approval in the dashboard ({approval.id}); "
        "repeat it with the same Idempotency-Key to learn the result"
    )


def _is_permitted(key: callers.ApiKey, checked: validation.CheckedSend) -> bool:
    try:
        send_limits.check_key_content(key.limits, checked)
    except errors.Forbidden:
        return False
    return True


def _encoded(request: msgspec.Struct) -> bytes:
    body = msgspec.json.encode(request)
    if len(body) > MAX_BODY_BYTES:
        raise errors.PayloadTooLarge(f"body: a request that needs approval has at most {MAX_BODY_BYTES} bytes")
    return body


async def _earlier(tx: store.Transaction, key: transaction.Key, *, now: int) -> tuple[bool, approvals.Approval | None]:
    """Whether a request with the key was sent, and the one that waits, or waited, with it."""
    used = await idempotency.idempotency_keys(tx, [key.pair], now=now)
    return bool(used), await approvals.by_key(tx, *key.pair)


async def _store(
    ctx: context.Context, approval: approvals.Approval, key: transaction.Key
) -> tuple[bool, approvals.Approval | None]:
    """Store it, unless another request with its key was first; returns what `_earlier` returns from now on."""
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, [approval.account_id])
        used, found = await _earlier(tx, key, now=approval.created_at)
        if used or found is not None:
            return used, found
        of_account, of_key = await approvals.count_pending(
            tx, approval.account_id, approval.key_id, after=approval.created_at - LIFETIME
        )
        if of_account >= MAX_PENDING:
            raise errors.Conflict(f"{MAX_PENDING} requests of this account wait for approval; decide on them first")
        if of_key >= MAX_PENDING_OF_KEY:
            raise errors.Conflict(f"{MAX_PENDING_OF_KEY} requests of this key wait for approval; decide on them first")
        await approvals.insert(tx, approval)
    return False, approval
