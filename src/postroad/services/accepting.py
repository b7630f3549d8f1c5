"""The accepting transaction: key, message, recipients, queue and credits are stored together or not at all.

Works on a batch (see storage/group_commit.py). The accounts are locked first. An idempotency key belongs to a
credential and so to one account: whoever holds the account's lock sees every key that was used before and knows that
no other host adds one now. Then each submission is judged in order, against the credits that its forerunners in the
batch left over, and everything that was accepted is written with one statement a table.
"""

from collections.abc import Mapping, Sequence

import msgspec

from postroad import errors
from postroad.model import limits
from postroad.storage import accounts, idempotency, ledger, messages, queue, recipients, store

KEY_MICROSECONDS = limits.IDEMPOTENCY_KEY_SECONDS * 1_000_000


class Key(msgspec.Struct, frozen=True):
    """An idempotency key within its credential, and the hash of the body it came with."""

    credential_id: str
    text: str
    body_hash: bytes

    @property
    def scope(self) -> idempotency.Scope:
        """What makes the key unique."""
        return self.credential_id, self.text


class Submission(msgspec.Struct, frozen=True):
    """A message that has passed every check but those that need the account's lock."""

    message: messages.NewMessage
    recipients: Sequence[recipients.NewRecipient]
    ledger_id: str
    key: Key | None


class Accepted(msgspec.Struct, frozen=True):
    """The stored answer; `replayed` when an earlier request had made it."""

    message_id: str
    request_id: str
    response: bytes
    replayed: bool


Judgement = idempotency.StoredKey | errors.PostroadError | None


async def accept(tx: store.Transaction, submissions: Sequence[Submission]) -> Sequence[Accepted | errors.PostroadError]:
    """Store a batch; each submission gets its answer or its refusal."""
    locked = await accounts.lock(tx, [submission.message.account_id for submission in submissions])
    now = max(submission.message.created_at for submission in submissions)
    scopes = [submission.key.scope for submission in submissions if submission.key]
    used = await idempotency.find(tx, scopes, now=now)
    judgements = judge(submissions, accounts_by_id=locked, used=used)
    await _write(tx, [s for s, judgement in zip(submissions, judgements, strict=True) if judgement is None])
    return [await _answer(tx, s, judgement) for s, judgement in zip(submissions, judgements, strict=True)]


def judge(
    submissions: Sequence[Submission],
    *,
    accounts_by_id: Mapping[str, accounts.Account],
    used: Mapping[idempotency.Scope, idempotency.StoredKey],
) -> list[Judgement]:
    """For each submission: the key it replays, why it is refused, or None when it is accepted."""
    left = {account.id: account.available for account in accounts_by_id.values()}
    claimed: set[idempotency.Scope] = set()
    judgements: list[Judgement] = []
    for submission in submissions:
        judgement = _judge_key(submission.key, used, claimed) or _judge_account(
            accounts_by_id.get(submission.message.account_id), submission.message.recipient_count, left
        )
        if judgement is None:
            left[submission.message.account_id] -= submission.message.recipient_count
            if submission.key:
                claimed.add(submission.key.scope)
        judgements.append(judgement)
    return judgements


def _judge_key(
    key: Key | None,
    used: Mapping[idempotency.Scope, idempotency.StoredKey],
    claimed: set[idempotency.Scope],
) -> Judgement:
    if key is None:
        return None
    scope = key.scope
    if scope in claimed:
        return in_progress()
    stored = used.get(scope)
    if stored and stored.body_hash != key.body_hash:
        return different_body()
    return stored


def _judge_account(account: accounts.Account | None, needed: int, left: Mapping[str, int]) -> Judgement:
    if account is None:
        return errors.Unauthorized("the account of this credential does not exist any more")
    if account.status == accounts.SUSPENDED:
        return suspended(account.suspended_reason)
    if left[account.id] < needed:
        return errors.InsufficientCredits(
            f"the message needs {needed} credits, one for each unique recipient, and {left[account.id]} are available"
        )
    return None


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


def _new_key(message: messages.NewMessage, key: Key) -> idempotency.NewKey:
    expires_at = message.created_at + KEY_MICROSECONDS
    return idempotency.NewKey(key.credential_id, key.text, message.account_id, key.body_hash, message.id, expires_at)


async def _answer(
    tx: store.Transaction, submission: Submission, judgement: Judgement
) -> Accepted | errors.PostroadError:
    message = submission.message
    if isinstance(judgement, idempotency.StoredKey):
        return await replay(tx, message.account_id, judgement)
    return judgement or Accepted(message.id, message.request_id, message.response, replayed=False)


async def replay(tx: store.Transaction, account_id: str, stored: idempotency.StoredKey) -> Accepted:
    """The answer that an earlier request with the same key and body got."""
    found = await messages.response(tx, account_id, stored.message_id)
    if found is None:
        msg = f"idempotency key without its message {stored.message_id}"
        raise LookupError(msg)
    response, request_id = found
    return Accepted(stored.message_id, request_id, response, replayed=True)
