"""The entry point for batches: the same checks in the same order as in submit.py, for each item.

Items that fail before the transaction get their errors, and the others go on, unless the caller wants all or nothing.
The idempotency key, the rate filter of this process and the size are checked for the batch as a whole; the transaction
counts each item against rate, warm-up and credits.

Many small messages are as much work as a large one, so all but the smallest batches are checked and composed in
threads, which accounts share fairly.
"""

import asyncio
import collections
import functools
import time
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad import context, errors
from postroad.mail.accept import approval_limit, compose, rendering, submit, transaction, validation
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.storage.mail import messages
from postroad.storage.mail import templates as stored_templates

# As much as one commit takes, and half of what a frame between frontend and writer holds.
MAX_BYTES: Final = 32 * 1024 * 1024
# About a millisecond of work.
INLINE_ITEMS: Final = 8
# As long as others wait for a batch that takes its turn in the threads; most need one turn.
TURN_SECONDS: Final = 0.1
_encoder: Final = msgspec.msgpack.Encoder()

Checked = validation.CheckedSend | errors.PostroadError
# An item that can be composed: its index, its message, its template if it has one, and its identity.
Admitted = tuple[int, validation.CheckedSend, stored_templates.Template | None, compose.MessageIdentity]


async def submit_batch(
    ctx: context.Context, who: callers.Caller, request: msgspec.Struct, *, request_id: str, key: str
) -> transaction.Accepted:
    """Accept a `BatchRequest`. When this returns, what was accepted of it is on disk.

    Raises a PostroadError if the batch was refused as a whole and nothing was stored.
    """
    try:
        expanded = send_request.expand_batch(request)
        total = sum(map(submit.characters, expanded.requests))
        if total > MAX_BYTES:
            raise _too_large(total)
        threaded = total > submit.INLINE_CHARACTERS or len(expanded.requests) > INLINE_ITEMS
        if threaded:
            checked, hashed = await ctx.threads.run(who.account_id, functools.partial(_check, expanded))
        else:
            checked, hashed = _check(expanded)
        used = transaction.Key(submit.sending_identity(who), key, hashed)
        if who.key is not None and who.key.limits.approval_above is not None:
            await approval_limit.check(ctx, who, request, checked, key=used, request_id=request_id)
        refused: dict[int, errors.PostroadError] = {}
        claimed = submit.claim_key(ctx, used)
        try:
            try:
                made = await _make(
                    ctx, who, checked, expanded, refused, request_id=request_id, key=used, threaded=threaded
                )
            except errors.PostroadError as refusal:
                accepted = await _replay(ctx, who, used)
                if accepted is None:
                    if submit.is_counted(refusal):
                        # Those of all or nothing were all worked on, whichever of them was refused.
                        items = (
                            len(checked)
                            if expanded.all_or_nothing
                            else transaction.counted(map(transaction.item_error, refused.values()))
                        )
                        await submit.count_refused(ctx, who, count=max(1, items))
                    raise refusal from None
            else:
                accepted = await _commit(ctx, who, made, request_id=request_id)
        finally:
            ctx.in_flight.discard(claimed)
    except errors.PostroadError as refusal:
        submit.note_refusal(ctx, who, statuses.Source.API, refusal)
        raise
    _count(ctx, accepted, len(expanded.requests))
    return accepted


def _check(expanded: send_request.Expanded) -> tuple[Sequence[Checked], bytes]:
    checked = [_checked(request) for request in expanded.requests]
    # A request that is not valid has no normal form, and stays what it is when it is repeated.
    hashes = [
        compose.body_hash(item) if isinstance(item, validation.CheckedSend) else compose.digest(_encoder.encode(given))
        for item, given in zip(checked, expanded.requests, strict=True)
    ]
    # The words in front tell it from the hash of a single request.
    normal_form = ("batch", expanded.all_or_nothing, hashes)
    return checked, compose.digest(_encoder.encode(normal_form))


def _checked(request: send_request.SendRequest) -> Checked:
    try:
        return validation.check(request)
    except errors.PostroadError as refusal:
        return refusal


async def _make(
    ctx: context.Context,
    who: callers.Caller,
    checked: Sequence[Checked],
    expanded: send_request.Expanded,
    refused: dict[int, errors.PostroadError],
    *,
    request_id: str,
    key: transaction.Key,
    threaded: bool,
) -> transaction.Batch:
    """Compose what can be composed; the errors of the rest are added to `refused`.

    Raises the first one if the caller wants all or nothing.
    """
    # What is over the rate by this process's count would be refused in the end: it is not composed for nothing.
    within = ctx.rate_limiter.take_up_to(len(checked), who.account_id, now=ctx.clock(), rate=who.request_rate)
    if expanded.all_or_nothing and within < len(checked):
        ctx.rate_limiter.give_back(within, who.account_id, rate=who.request_rate)
        raise _first_refusal(ctx, who, checked, expanded, within)
    admitted: list[Admitted] = []
    known: dict[str, stored_templates.Template | None] = {}
    info = submit.SubmissionInfo(request_id=request_id, source=statuses.Source.API, key=None)
    for index, item in enumerate(checked):
        if index % INLINE_ITEMS == INLINE_ITEMS - 1:
            await asyncio.sleep(0)  # ids of thousands of recipients take a while
        try:
            if isinstance(item, errors.PostroadError):
                raise item
            if index >= within:
                raise ctx.rate_limiter.refusal(who.account_id, now=ctx.clock(), rate=who.request_rate)
            # One microsecond apart: the messages sort in the order of the request.
            identity = await submit.admit(ctx, who, item, info, now=ctx.clock() + index)
            alias = item.template or ""
            if alias not in known:
                known[alias] = await submit.find_template(ctx, who.account_id, alias) if alias else None
            admitted.append((index, item, known[alias], identity))
        except errors.PostroadError as refusal:
            if refusal.status >= errors.InternalError.status:
                raise  # it is about the service, not about the item
            refused[index] = refusal
    submissions = await _compose_all(ctx, who, admitted, refused, threaded=threaded)
    if refused and expanded.all_or_nothing:
        index = min(refused)
        raise transaction.name_item(refused[index], expanded.member, index)
    return transaction.Batch(
        submissions=list(submissions.values()),
        indexes=list(submissions),
        refused={index: transaction.item_error(refusal) for index, refusal in sorted(refused.items())},
        key=key,
        member=expanded.member,
        all_or_nothing=expanded.all_or_nothing,
    )


def _first_refusal(
    ctx: context.Context,
    who: callers.Caller,
    checked: Sequence[Checked],
    expanded: send_request.Expanded,
    within: int,
) -> errors.PostroadError:
    """Why a batch of all or nothing that is over the rate is refused: the fields come before the rate."""
    for index, item in enumerate(checked):
        if isinstance(item, errors.PostroadError):
            return transaction.name_item(item, expanded.member, index)
    refusal = ctx.rate_limiter.refusal(who.account_id, now=ctx.clock(), rate=who.request_rate)
    return transaction.name_item(refusal, expanded.member, within)


async def _compose_all(
    ctx: context.Context,
    who: callers.Caller,
    admitted: Sequence[Admitted],
    refused: dict[int, errors.PostroadError],
    *,
    threaded: bool,
) -> Mapping[int, transaction.Submission]:
    """The submissions by index; errors are added to `refused`. Raises PayloadTooLarge for all of them together."""
    submissions: dict[int, transaction.Submission] = {}
    left = collections.deque(admitted)
    used = {template.alias: template for _, _, template, _ in admitted if template is not None}
    threaded = threaded or any(map(rendering.is_costly, used.values()))
    threaded = threaded or any(rendering.has_lists(checked.variables) for _, checked, _, _ in admitted)
    while left:
        work = functools.partial(_compose, left, submissions, refused)
        await ctx.threads.run(who.account_id, work) if threaded else work()
    return submissions


def _compose(
    left: collections.deque[Admitted],
    submissions: dict[int, transaction.Submission],
    refused: dict[int, errors.PostroadError],
) -> None:
    """Compose what one turn of a thread allows; `left` is what remains.

    A thread cannot be interrupted, and a template can take a tenth of a second and become little, or too much.
    """
    total = sum(made.size for made in submissions.values())
    ends_at = time.monotonic() + TURN_SECONDS
    while left:
        index, checked, template, identity = left.popleft()
        try:
            rendered = checked if template is None else submit.render(checked, template)
            made = submissions[index] = compose.compose(rendered, identity)
            total += made.size
        except (errors.InvalidRequest, errors.PayloadTooLarge) as refusal:
            refused[index] = refusal
        if total > MAX_BYTES:
            raise _too_large(total)
        if time.monotonic() >= ends_at:
            return


def _too_large(total: int) -> errors.PayloadTooLarge:
    return errors.PayloadTooLarge(
        f"the messages of the batch have {total} bytes or more together, with their metadata, their responses and "
        f"1 KiB for each recipient; at most {MAX_BYTES} (32 MiB) are allowed; send several batches"
    )


async def _commit(
    ctx: context.Context, who: callers.Caller, made: transaction.Batch, *, request_id: str
) -> transaction.Accepted:
    """Run the transaction, unless there is nothing to store."""
    if made.submissions:
        accepted: transaction.Accepted = await ctx.accept_commits.start(
            made, party=who.account_id, size=made.size, count=made.work
        )
        ctx.rate_limiter.learn(who.account_id, accepted.full_at)
        return accepted
    replayed = await _replay(ctx, who, made.key)
    if replayed is not None:
        return replayed
    if count := transaction.counted(made.refused.values()):
        await submit.count_refused(ctx, who, count=count)
    errors_of_items = list(made.refused.values())
    return transaction.Accepted(
        message_id="",
        request_id=request_id,
        response=transaction.encode_batch(errors_of_items, request_id=request_id),
        replayed=False,
        refused=tuple(error.code for error in errors_of_items),
    )


async def _replay(ctx: context.Context, who: callers.Caller, key: transaction.Key) -> transaction.Accepted | None:
    """The response of an earlier batch with this key. Raises for another body, and for a suspended account."""
    async with ctx.store.reading() as tx:
        used = (await messages.idempotency_keys(tx, [key.pair], now=ctx.clock())).get(key.pair)
        if used is None:
            await submit.refuse_suspended(tx, who.account_id)
            return None
    replayed = transaction.replay_batch(used, key)
    if isinstance(replayed, errors.PostroadError):
        raise replayed
    return replayed


def _count(ctx: context.Context, accepted: transaction.Accepted, items: int) -> None:
    source = statuses.Source.API.value
    for code in accepted.refused:
        ctx.metrics.refused.add(source, code)
    counter = ctx.metrics.replayed if accepted.replayed else ctx.metrics.accepted
    for _ in range(1 if accepted.replayed else items - len(accepted.refused)):
        counter.add(source)
