"""Batches in the accepting transaction: the messages of one request, under one idempotency key.

A group of the group commit has single submissions, batches and refused sends. All of them are handled in one
transaction: the single ones are stored together, the refused ones are counted, then each batch is stored. A batch sees
what was stored before it, and either gets a result for each item, or, if the caller wants all or nothing, is refused
with the error of its first item that cannot be accepted.

The key is stored with the response if at least one item was accepted. A batch without one stores nothing.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from postroad import config, context, errors
from postroad.mail.accept import refusals, send_limits, transaction
from postroad.model.delivery import providers, throttle
from postroad.model.mail import send_request
from postroad.storage.engine import group_commit, store
from postroad.storage.mail import messages
from postroad.storage.people import accounts, rates

# Sends that were refused after the rate check, before the accepting transaction: they count towards the rate too.
#
# What a process remembers of a rate is only a first filter, and each frontend has its own. So a refusal is an entry of
# the group commit like a submission: it takes from the stored bucket of its account, which is one for all processes.


class RefusedSend(msgspec.Struct, frozen=True, array_like=True):
    """A send, or `count` items of a batch, that count and store nothing else."""

    account_id: str
    created_at: int
    count: int = 1


async def count_refused_sends(
    tx: store.Transaction,
    refused: Sequence[RefusedSend],
    *,
    locked: Mapping[str, accounts.Account],
    policies: transaction.Policies,
) -> list[transaction.Accepted | errors.PostroadError]:
    """Count them, in order; those over the limit get that error. The others get the state of their bucket.

    Several items take what is left; they are over the limit if nothing is.
    """
    before = await rates.find(tx, {send.account_id for send in refused})
    buckets = dict(before)
    answers: list[transaction.Accepted | errors.PostroadError] = []
    for send in refused:
        policy = throttle.at_rate(
            policies.rate, locked[send.account_id].request_rate if send.account_id in locked else None
        )
        clock = policies.clock()
        refusal = send_limits.take_shared(buckets, send.account_id, policy, now=send.created_at, clock=clock)
        for _ in range(1, send.count):
            send_limits.take_shared(buckets, send.account_id, policy, now=send.created_at, clock=clock)
        full_at = throttle.full_at(buckets[send.account_id], now=send.created_at)
        answers.append(refusal or transaction.Accepted("", "", b"", replayed=False, full_at=full_at))
    await send_limits.write_rates(tx, locked, before=before, after=buckets)
    return answers


_encoder = msgspec.json.Encoder()
# An address of 254 octets in two forms, its domain, ids, and the row of the queue.
RECIPIENT_BYTES = 1024
# An id and a time.
REFUSED_BYTES = 64
# When they meet every item, they are the error of the request.
OF_THE_ACCOUNT = (errors.Unauthorized, errors.AccountSuspended, errors.RateLimited)


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """The submissions of one request, at least one; they have no keys of their own.

    `indexes` are their indexes among the items of the request; the other items were refused before, with the errors in
    `refused` by index. `member` names the list of items in the request.
    """

    submissions: Sequence[transaction.Submission]
    indexes: Sequence[int]
    refused: dict[int, send_request.ItemError]
    key: transaction.Key
    member: str
    all_or_nothing: bool


Entry = transaction.Submission | Batch | RefusedSend
AcceptCommits = group_commit.Commits[Entry, transaction.Accepted]


def size_of(entry: Entry) -> int:
    """The bytes of an entry's messages, and of what is stored beside them, which can be more."""
    if isinstance(entry, Batch):
        return sum(map(size_of, entry.submissions))
    if isinstance(entry, RefusedSend):
        return REFUSED_BYTES
    message = entry.message
    beside = len(message.response) + len((message.metadata or "").encode())
    return message.size + beside + RECIPIENT_BYTES * len(entry.recipients)


def count_of(entry: Entry) -> int:
    """The number of an entry's recipients, which decides how long it takes to store."""
    if isinstance(entry, Batch):
        return sum(len(submission.recipients) for submission in entry.submissions)
    return len(entry.recipients) if isinstance(entry, transaction.Submission) else 1


def account_of(entry: Entry) -> str:
    """The account of an entry."""
    if isinstance(entry, RefusedSend):
        return entry.account_id
    submission = entry.submissions[0] if isinstance(entry, Batch) else entry
    return submission.message.account_id


def accepting(
    settings: config.Settings, rate_limiter: context.RateLimiter, clock: Callable[[], int], outbox: context.Outbox
) -> group_commit.Operation[Entry, transaction.Accepted]:
    """The operation of the group commit that accepts mail."""
    conditions = providers.route_conditions(settings.routes)
    routed_by = conditions if conditions.are_any else None

    async def accept_group(
        tx: store.Transaction, entries: Sequence[Entry]
    ) -> Sequence[transaction.Accepted | errors.PostroadError]:
        # For each group: settings can be reloaded.
        caps = settings.warmup.recipients_per_day
        policies = transaction.Policies(rate_limiter.policy, warmup_caps=caps, clock=clock, routed_by=routed_by)
        return await accept(tx, entries, policies=policies, outbox=outbox)

    return accept_group


async def accept(
    tx: store.Transaction,
    entries: Sequence[Entry],
    *,
    policies: transaction.Policies,
    outbox: context.Outbox,
) -> Sequence[transaction.Accepted | errors.PostroadError]:
    """Store a group; each entry gets its response or its error."""
    single = [entry for entry in entries if isinstance(entry, transaction.Submission)]
    if len(single) == len(entries):
        return await transaction.accept(tx, single, policies=policies, outbox=outbox)
    # All at once and in order: whoever has the lock of a later account may wait for that of an earlier one.
    locked = await accounts.lock(tx, map(account_of, entries))
    of_single = iter(await transaction.accept(tx, single, policies=policies, outbox=outbox) if single else ())
    refused = [entry for entry in entries if isinstance(entry, RefusedSend)]
    of_refused = iter(await count_refused_sends(tx, refused, locked=locked, policies=policies) if refused else ())
    return [
        await _accept_batch(tx, entry, locked=locked, policies=policies, outbox=outbox)
        if isinstance(entry, Batch)
        else next(of_single if isinstance(entry, transaction.Submission) else of_refused)
        for entry in entries
    ]


async def _accept_batch(
    tx: store.Transaction,
    batch: Batch,
    *,
    locked: Mapping[str, accounts.Account],
    policies: transaction.Policies,
    outbox: context.Outbox,
) -> transaction.Accepted | errors.PostroadError:
    message = batch.submissions[0].message
    # The holder of the account's lock sees every key used before.
    used = (await messages.idempotency_keys(tx, [batch.key.pair], now=message.created_at)).get(batch.key.pair)
    if used is not None:
        replayed = replay(used, batch.key)
        if isinstance(replayed, transaction.Accepted):
            # The items took nothing from the rate, whatever a process has counted for them.
            bucket = (await rates.find(tx, {message.account_id})).get(message.account_id, throttle.SharedBucket())
            replayed = dataclasses.replace(replayed, full_at=throttle.full_at(bucket, now=message.created_at))
        return replayed
    try:
        answers = await transaction.accept(
            tx, batch.submissions, policies=policies, outbox=outbox, all_or_nothing=batch.all_or_nothing
        )
    except transaction.ItemRefusedError as item:
        return named(item.refusal, batch.member, batch.indexes[item.index])
    accepted = _accepted(batch, answers, request_id=message.request_id)
    if count := counted(batch.refused.values()):
        refused = RefusedSend(message.account_id, message.created_at, count)
        (answer,) = await count_refused_sends(tx, [refused], locked=locked, policies=policies)
        if isinstance(answer, transaction.Accepted):
            accepted = dataclasses.replace(accepted, full_at=answer.full_at)
    if not accepted.message_id and isinstance(answers[0], OF_THE_ACCOUNT):
        return answers[0]
    if accepted.message_id:
        key = transaction.new_key(message, batch.key, message_id=accepted.message_id, response=accepted.response)
        await messages.insert_idempotency_keys(tx, [key])
    return accepted


def _accepted(
    batch: Batch, answers: Sequence[transaction.Accepted | errors.PostroadError], *, request_id: str
) -> transaction.Accepted:
    results: dict[int, str | send_request.ItemError] = dict(batch.refused)
    for index, answer in zip(batch.indexes, answers, strict=True):
        results[index] = item_error(answer) if isinstance(answer, errors.PostroadError) else answer.message_id
    stored = [answer for answer in answers if isinstance(answer, transaction.Accepted)]
    full_at = [answer.full_at for answer in answers if isinstance(answer, transaction.Accepted | send_limits.Exceeded)]
    return transaction.Accepted(
        message_id=stored[0].message_id if stored else "",
        request_id=request_id,
        response=encode([results[index] for index in range(len(results))], request_id=request_id),
        replayed=False,
        full_at=full_at[-1] if full_at else None,
        refused=tuple(result.code for result in results.values() if isinstance(result, send_request.ItemError)),
    )


def encode(results: Sequence[str | send_request.ItemError], *, request_id: str) -> bytes:
    """The response to a batch, of the ids and errors of its items."""
    return _encoder.encode(
        send_request.BatchReceipt(
            tuple(
                send_request.BatchResult(id=result)
                if isinstance(result, str)
                else send_request.BatchResult(error=result)
                for result in results
            ),
            request_id,
        )
    )


def replay(
    used: messages.StoredIdempotencyKey, key: transaction.Key
) -> transaction.Accepted | errors.IdempotencyConflict:
    """The response that an earlier batch with this key got, or the error if another request had the key."""
    if used.body_hash != key.body_hash or used.response is None:
        return refusals.different_body()
    request_id = msgspec.json.decode(used.response, type=send_request.BatchReceipt).request_id
    return transaction.Accepted(used.message_id, request_id, used.response, replayed=True)


def item_error(refusal: errors.PostroadError) -> send_request.ItemError:
    """An error as the result of an item."""
    message = refusal.item_message if isinstance(refusal, send_limits.Exceeded) else refusal.message
    return send_request.ItemError(refusal.code, message)


def counted(refused: Iterable[send_request.ItemError]) -> int:
    """How many refused items count towards the rate: not those that are over it."""
    return sum(error.code != errors.RateLimited.code for error in refused)


def named(refusal: errors.PostroadError, member: str, index: int) -> errors.PostroadError:
    """The error with the name of the item that it is about."""
    refusal.message = f"{member}[{index}]: {refusal.message}"
    return refusal
