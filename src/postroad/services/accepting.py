"""The accepting transaction: key, message, recipients, queue and credits are stored together or not at all.

Works on a batch (see storage/group_commit.py). The accounts are locked first. An idempotency key belongs to a
credential and so to one account: whoever holds the account's lock sees every key that was used before and knows that
no other host adds one now. The same lock makes rates and warm-up exact. Then each submission is judged in order,
against what its forerunners in the batch left over, and all that was accepted is written with one statement a table.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from postroad import errors
from postroad.model import limits, throttle, times, warmup
from postroad.services import rates
from postroad.storage import accounts, idempotency, ledger, messages, queue, recipients, store, traffic, warmups
from postroad.storage import rates as stored_rates

KEY_MICROSECONDS = limits.IDEMPOTENCY_KEY_SECONDS * 1_000_000


class Key(msgspec.Struct, frozen=True, array_like=True):
    """An idempotency key within its credential, and the hash of the body it came with."""

    credential_id: str
    text: str
    body_hash: bytes

    @property
    def scope(self) -> idempotency.Scope:
        """What makes the key unique."""
        return self.credential_id, self.text


class Submission(msgspec.Struct, frozen=True, array_like=True):
    """A message that has passed every check but those that need the account's lock."""

    message: messages.NewMessage
    recipients: Sequence[recipients.NewRecipient]
    ledger_id: str
    key: Key | None
    # The name of the sender's domain, unless it need not warm up.
    warming: str | None = None

    @property
    def scope(self) -> str:
        """Whose rate it counts towards."""
        return self.message.credential_id

    @property
    def warmup_key(self) -> warmups.Key | None:
        """Whose warm-up it counts towards."""
        return None if self.warming is None else (self.message.account_id, self.warming)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The stored answer; `replayed` when an earlier request had made it."""

    message_id: str
    request_id: str
    response: bytes
    replayed: bool
    # When the credential's bucket is full again, by this host's clock; None when nobody looked. No part of the answer.
    full_at: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Policies:
    """How much may be accepted: requests of a credential, and recipients of a young domain by day."""

    rate: throttle.Policy
    warmup_caps: Sequence[int]


@dataclass(slots=True)
class Books:
    """What the store knows about a batch, under the locks of its accounts; judging writes on in them."""

    accounts: Mapping[str, accounts.Account]
    keys: Mapping[idempotency.Scope, idempotency.StoredKey]
    buckets: dict[str, throttle.Shared]
    warmups: dict[warmups.Key, warmup.State]
    # Credits, less those of the batch; and the batch's own keys.
    left: dict[str, int] = field(init=False)
    claimed: set[idempotency.Scope] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.left = {account.id: account.available for account in self.accounts.values()}


Judgement = idempotency.StoredKey | errors.PostroadError | None


async def accept(
    tx: store.Transaction, submissions: Sequence[Submission], *, policies: Policies
) -> Sequence[Accepted | errors.PostroadError]:
    """Store a batch; each submission gets its answer or its refusal."""
    now = max(submission.message.created_at for submission in submissions)
    locked = await accounts.lock(tx, [submission.message.account_id for submission in submissions])
    used = await idempotency.find(tx, [s.key.scope for s in submissions if s.key], now=now)
    buckets = await stored_rates.find(tx, {submission.scope for submission in submissions})
    states = await warmups.find(tx, {s.warmup_key for s in submissions if s.warmup_key})
    books = Books(locked, used, dict(buckets), dict(states))
    judgements = judge(submissions, books, policies=policies)
    await _write_rates(tx, submissions, before=buckets, after=books.buckets)
    await warmups.put(tx, {key: state for key, state in books.warmups.items() if state != states.get(key)})
    await _write(tx, [s for s, judgement in zip(submissions, judgements, strict=True) if judgement is None])
    full_at = {scope: throttle.full_at(bucket, now=now) for scope, bucket in books.buckets.items()}
    return [
        await _replay(tx, s, judgement, full_at=full_at.get(s.scope, 0))
        if isinstance(judgement, idempotency.StoredKey)
        else judgement or _accepted(s.message, full_at=full_at.get(s.scope, 0))
        for s, judgement in zip(submissions, judgements, strict=True)
    ]


def judge(submissions: Sequence[Submission], books: Books, *, policies: Policies) -> list[Judgement]:
    """For each submission: the key it replays, why it is refused, or None when it is accepted."""
    judgements: list[Judgement] = []
    for submission in submissions:
        judgement = (
            _judge_key(submission.key, books)
            or _judge_account(books.accounts.get(submission.message.account_id))
            or _judge_rate(submission, books, policies.rate)
            or _judge_warmup(submission, books, policies.warmup_caps)
            or _judge_credits(submission, books)
        )
        if judgement is None:
            _count(submission, books, policies.warmup_caps)
        judgements.append(judgement)
    return judgements


def _judge_key(key: Key | None, books: Books) -> Judgement:
    if key is None:
        return None
    if key.scope in books.claimed:
        return in_progress()
    stored = books.keys.get(key.scope)
    if stored and stored.body_hash != key.body_hash:
        return different_body()
    return stored


def _judge_account(account: accounts.Account | None) -> Judgement:
    if account is None:
        return errors.Unauthorized("the account of this credential does not exist any more")
    if account.status == accounts.SUSPENDED:
        return suspended(account.suspended_reason)
    return None


def _judge_rate(submission: Submission, books: Books, policy: throttle.Policy) -> Judgement:
    """What is taken here stays taken, even if a later check refuses: it is requests that are counted."""
    bucket = books.buckets.get(submission.scope, throttle.Shared())
    verdict, after = throttle.take_shared(policy, bucket, now=submission.message.created_at)
    books.buckets[submission.scope] = after
    return None if verdict.allowed else rates.refusal(policy, verdict)


def _judge_warmup(submission: Submission, books: Books, caps: Sequence[int]) -> Judgement:
    key = submission.warmup_key
    if key is None:
        return None
    message = submission.message
    state = warmup.at(books.warmups.get(key), now=message.created_at, caps=caps)
    if warmup.has_room(state, message.recipient_count, caps=caps):
        return None
    return _over_cap(key[1], warmup.view(state, caps), message)


def _judge_credits(submission: Submission, books: Books) -> Judgement:
    needed, left = submission.message.recipient_count, books.left[submission.message.account_id]
    if left < needed:
        return errors.InsufficientCredits(
            f"the message needs {needed} credits, one for each unique recipient, and {left} are available"
        )
    return None


def _count(submission: Submission, books: Books, caps: Sequence[int]) -> None:
    """What an accepted submission leaves for those after it."""
    message, key = submission.message, submission.warmup_key
    books.left[message.account_id] -= message.recipient_count
    if submission.key:
        books.claimed.add(submission.key.scope)
    if key:
        state = warmup.at(books.warmups.get(key), now=message.created_at, caps=caps)
        # A domain that is free stays so: its last day with a cap is all that needs to be known.
        if warmup.cap(state, caps) is not None:
            books.warmups[key] = warmup.use(state, message.recipient_count)


def _over_cap(domain: str, view: warmup.View, message: messages.NewMessage) -> errors.WarmupLimited:
    msg = (
        f"from: {domain} is new and warms up: {view.used} of today's {view.cap} recipients are used, "
        f"and the message has {message.recipient_count}; from 00:00 UTC on "
        f"{'there is no limit' if view.tomorrow is None else f'it may send to {view.tomorrow}'}; "
        "an operator can mark the domain as warm"
    )
    seconds = math.ceil((view.next_at - message.created_at) / times.SECOND)
    return errors.WarmupLimited(msg, retry_after=max(1, seconds))


def in_progress() -> errors.IdempotencyInProgress:
    """The refusal of a key whose first request is still running."""
    return errors.IdempotencyInProgress("Idempotency-Key: the first request with this key is still running; try again")


def different_body() -> errors.IdempotencyConflict:
    """The refusal of a key that was used with another body."""
    return errors.IdempotencyConflict(
        "Idempotency-Key: this key was used with a different body in the last 24 hours; use a new key"
    )


def suspended(reason: str | None) -> errors.AccountSuspended:
    """The refusal of a suspended account."""
    return errors.AccountSuspended(f"the account is suspended: {reason or 'ask the operator'}")


async def _write_rates(
    tx: store.Transaction,
    submissions: Sequence[Submission],
    *,
    before: Mapping[str, throttle.Shared],
    after: Mapping[str, throttle.Shared],
) -> None:
    """Only those that changed: a refusal takes nothing."""
    owners = {submission.scope: submission.message.account_id for submission in submissions}
    changed = {
        scope: bucket
        for scope, bucket in after.items()
        if bucket.full_at != before.get(scope, throttle.Shared()).full_at
    }
    await stored_rates.put(tx, [stored_rates.Rate(scope, owners[scope], bucket) for scope, bucket in changed.items()])


async def _write(tx: store.Transaction, accepted: Sequence[Submission]) -> None:
    if not accepted:
        return
    await messages.insert(tx, [submission.message for submission in accepted])
    await recipients.insert(tx, [recipient for submission in accepted for recipient in submission.recipients])
    await queue.insert(
        tx,
        [recipient for submission in accepted for recipient in submission.recipients],
        {submission.message.id: submission.message.size for submission in accepted},
        now=max(submission.message.created_at for submission in accepted),
    )
    await ledger.record(tx, [_reservation(submission) for submission in accepted])
    await idempotency.insert(tx, [_new_key(s.message, s.key) for s in accepted if s.key])
    await traffic.add(tx, _added([submission.message for submission in accepted]))


def _reservation(submission: Submission) -> ledger.Entry:
    message, count = submission.message, submission.message.recipient_count
    return ledger.Entry(
        submission.ledger_id,
        message.account_id,
        ledger.Kind.RESERVE,
        -count,
        count,
        message.id,
        None,
        message.created_at,
    )


def _added(accepted: Sequence[messages.NewMessage]) -> list[traffic.Added]:
    """What charts count. A batch is of few accounts and of an hour, mostly."""
    recipient_counts: dict[tuple[str, int], list[int]] = {}
    for message in accepted:
        key = message.account_id, traffic.hour_of(message.created_at)
        recipient_counts.setdefault(key, []).append(message.recipient_count)
    return [
        traffic.Added(account_id=account_id, hour=hour, messages=len(counts), recipients=sum(counts))
        for (account_id, hour), counts in recipient_counts.items()
    ]


def _new_key(message: messages.NewMessage, key: Key) -> idempotency.NewKey:
    expires_at = message.created_at + KEY_MICROSECONDS
    return idempotency.NewKey(key.credential_id, key.text, message.account_id, key.body_hash, message.id, expires_at)


def _accepted(message: messages.NewMessage, *, full_at: int) -> Accepted:
    return Accepted(message.id, message.request_id, message.response, replayed=False, full_at=full_at)


async def _replay(
    tx: store.Transaction, submission: Submission, stored: idempotency.StoredKey, *, full_at: int
) -> Accepted:
    return dataclasses.replace(await replay(tx, submission.message.account_id, stored), full_at=full_at)


async def replay(tx: store.Transaction, account_id: str, stored: idempotency.StoredKey) -> Accepted:
    """The answer that an earlier request with the same key and body got."""
    found = await messages.response(tx, account_id, stored.message_id)
    if found is None:
        msg = f"idempotency key without its message {stored.message_id}"
        raise LookupError(msg)
    response, request_id = found
    return Accepted(stored.message_id, request_id, response, replayed=True)
