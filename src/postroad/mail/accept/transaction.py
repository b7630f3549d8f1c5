"""The accepting transaction: key, message, recipients, queue and credits are stored together or not at all.

It works on a group of the group commit (storage/engine/group_commit.py), which has single submissions, batches and
refused sends: the single ones are stored together, the refused ones are counted, then each batch is stored. The
accounts are locked first. An idempotency key belongs to a credential and so to one account: the holder of the account's
lock sees every key used before, and no other host can add one. The same lock makes rates, warm-up and limits of API
keys exact. Each submission is then decided in order, against what the earlier ones of the group left, and everything
accepted is written with one statement per table.

A batch has the messages of one request, under one key. It sees what was stored before it, and either gets a result for
each item, or, if the caller wants all or nothing, is refused with the error of its first item that cannot be accepted.
Its key is stored with the response if at least one item was accepted; a batch without one stores nothing.
"""

import asyncio
import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from postroad import config, context, errors
from postroad.mail.accept import send_limits
from postroad.model.delivery import providers, throttle
from postroad.model.domains import warmup
from postroad.model.events import events
from postroad.model.mail import limits, send_request
from postroad.model.people import callers
from postroad.model.units import times
from postroad.storage.engine import group_commit, store
from postroad.storage.mail import domains, mail_counts, messages, queue
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import credentials, rates

# As many as a commit has, unless it is that of one batch.
PART_RECIPIENTS = 256
# An address of 254 octets in two forms, its domain, ids, and the row of the queue.
RECIPIENT_BYTES = 1024
# An id and a time.
REFUSED_BYTES = 64
# When they meet every item, they are the error of the request.
OF_THE_ACCOUNT = (errors.Unauthorized, errors.AccountSuspended, errors.RateLimited)
_encoder = msgspec.json.Encoder()


class Key(msgspec.Struct, frozen=True, array_like=True):
    credential_id: str
    text: str
    body_hash: bytes

    @property
    def pair(self) -> messages.IdempotencyPair:
        return self.credential_id, self.text


class Submission(msgspec.Struct, frozen=True, array_like=True):
    """A message that has passed every check except those under the account's lock."""

    message: messages.NewMessage
    recipients: Sequence[messages.NewRecipient]
    ledger_id: str
    key: Key | None
    # The name of the sender domain, if it is in warm-up.
    warmup_domain: str | None = None
    # What the simulator plays, if it is a test message.
    simulation: str | None = None
    # The API key, if what it sends is counted.
    api_key_id: str | None = None
    # The message that it sends again.
    resend_of: str | None = None

    @property
    def warmup_key(self) -> domains.WarmupKey | None:
        return None if self.warmup_domain is None else (self.message.account_id, self.warmup_domain)

    @property
    def account_id(self) -> str:
        return self.message.account_id

    @property
    def size(self) -> int:
        """The bytes of the message, and of what is stored beside it, which can be more."""
        message = self.message
        beside = len(message.response) + len((message.metadata or "").encode())
        return message.size + beside + RECIPIENT_BYTES * len(self.recipients)

    @property
    def work(self) -> int:
        """The number of recipients, which decides how long it takes to store."""
        return len(self.recipients)


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """The submissions of one request, at least one; they have no keys of their own.

    `indexes` are their indexes among the items of the request; the other items were refused before, with the errors in
    `refused` by index. `member` names the list of items in the request.
    """

    submissions: Sequence[Submission]
    indexes: Sequence[int]
    refused: dict[int, send_request.ItemError]
    key: Key
    member: str
    all_or_nothing: bool

    @property
    def account_id(self) -> str:
        return self.submissions[0].account_id

    @property
    def size(self) -> int:
        return sum(submission.size for submission in self.submissions)

    @property
    def work(self) -> int:
        return sum(submission.work for submission in self.submissions)


class RefusedSend(msgspec.Struct, frozen=True, array_like=True):
    """A send, or `count` items of a batch, that was refused after the rate check: it counts and stores nothing else.

    What a process remembers of a rate is only a first filter, and each frontend has its own. So a refusal takes from
    the stored bucket of its account, which is one for all processes.
    """

    account_id: str
    created_at: int
    count: int = 1

    @property
    def size(self) -> int:
        return REFUSED_BYTES

    @property
    def work(self) -> int:
        return 1


Entry = Submission | Batch | RefusedSend


@dataclass(frozen=True, slots=True)
class Accepted:
    """The stored response; `replayed` when an earlier request created it."""

    message_id: str
    request_id: str
    response: bytes
    replayed: bool
    # When the account's bucket is full again, by this host's clock; None if unknown. Not part of the response.
    full_at: int | None = field(default=None, compare=False)
    # The error codes of items of a batch that were refused, for metrics. Not part of the response.
    refused: tuple[str, ...] = field(default=(), compare=False)


class Counted(msgspec.Struct, frozen=True, array_like=True):
    """The result of a refused send: it has counted, and this is when the account's bucket is full again."""

    full_at: int


AcceptCommits = group_commit.Commits[Entry, Accepted | Counted]


@dataclass(frozen=True, slots=True)
class Policies:
    """Limits: requests per account, recipients per day of a domain in warm-up; what routes ask for, None if nothing."""

    rate: throttle.RateLimit
    warmup_caps: Sequence[int]
    clock: Callable[[], int]
    routed_by: providers.RouteConditions | None = None


@dataclass(slots=True)
class GroupState:
    """The stored state for a group of submissions, under the locks of its accounts; `decide` updates it."""

    accounts: Mapping[str, stored_accounts.Account]
    keys: Mapping[messages.IdempotencyPair, messages.StoredIdempotencyKey]
    buckets: dict[str, throttle.SharedBucket]
    warmups: dict[domains.WarmupKey, warmup.State]
    # What is left for the API keys whose mail is counted.
    budgets: dict[str, callers.KeyBudget] = field(default_factory=dict)
    # What accounts with a daily limit have sent today.
    recipients_today: dict[str, int] = field(default_factory=dict)
    # Credits left after the group so far, and the group's own keys.
    credits_left: dict[str, int] = field(init=False)
    claimed: set[messages.IdempotencyPair] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.credits_left = {account.id: account.available for account in self.accounts.values()}


Decision = messages.StoredIdempotencyKey | errors.PostroadError | None


class ItemRefusedError(Exception):
    """One of several submissions that are stored together or not at all is refused; nothing was written."""

    def __init__(self, index: int, refusal: errors.PostroadError) -> None:
        super().__init__(refusal.message)
        self.index = index
        self.refusal = refusal


def accepting(
    settings: config.Settings, rate_limiter: context.RateLimiter, clock: Callable[[], int], outbox: context.Outbox
) -> group_commit.Operation[Entry, Accepted | Counted]:
    conditions = providers.route_conditions(settings.routes)
    routed_by = conditions if conditions.are_any else None

    async def store_group(
        tx: store.Transaction, entries: Sequence[Entry]
    ) -> Sequence[Accepted | Counted | errors.PostroadError]:
        # For each group: settings can be reloaded.
        caps = settings.warmup.recipients_per_day
        policies = Policies(rate_limiter.policy, warmup_caps=caps, clock=clock, routed_by=routed_by)
        return await store_entries(tx, entries, policies=policies, outbox=outbox)

    return store_group


async def store_entries(
    tx: store.Transaction,
    entries: Sequence[Entry],
    *,
    policies: Policies,
    outbox: context.Outbox,
) -> Sequence[Accepted | Counted | errors.PostroadError]:
    """Store what is accepted of a group of the group commit; each entry gets its result or its error."""
    # All at once and in order: whoever has the lock of a later account may wait for that of an earlier one.
    locked = await stored_accounts.lock(tx, [entry.account_id for entry in entries])
    single = [entry for entry in entries if isinstance(entry, Submission)]
    if len(single) == len(entries):
        return await store_submissions(tx, single, locked=locked, policies=policies, outbox=outbox)
    charged = {entry.account_id for entry in single}
    known = _of_accounts(locked, charged)
    of_single = iter(
        await store_submissions(tx, single, locked=known, policies=policies, outbox=outbox) if single else ()
    )
    refused = [entry for entry in entries if isinstance(entry, RefusedSend)]
    of_refused = iter(await count_refused_sends(tx, refused, locked=locked, policies=policies) if refused else ())
    results: list[Accepted | Counted | errors.PostroadError] = []
    for entry in entries:
        if isinstance(entry, Batch):
            # What was stored of an account before has changed its credits.
            again = entry.account_id in charged
            ids = [entry.account_id]
            known = await stored_accounts.lock(tx, ids) if again else _of_accounts(locked, ids)
            results.append(await _store_batch(tx, entry, locked=known, policies=policies, outbox=outbox))
            charged.add(entry.account_id)
        else:
            results.append(next(of_single if isinstance(entry, Submission) else of_refused))
    return results


def _of_accounts(
    locked: Mapping[str, stored_accounts.Account], account_ids: Iterable[str]
) -> Mapping[str, stored_accounts.Account]:
    return {account_id: locked[account_id] for account_id in account_ids if account_id in locked}


async def store_submissions(
    tx: store.Transaction,
    submissions: Sequence[Submission],
    *,
    locked: Mapping[str, stored_accounts.Account],
    policies: Policies,
    outbox: context.Outbox,
    all_or_nothing: bool = False,
) -> Sequence[Accepted | errors.PostroadError]:
    """Store what is accepted of submissions of locked accounts; each gets its response or its error.

    With `all_or_nothing`, the first error is raised as ItemRefusedError instead.
    """
    now = max(submission.message.created_at for submission in submissions)
    used = await messages.idempotency_keys(tx, [s.key.pair for s in submissions if s.key], now=now)
    buckets = await rates.find(tx, locked)
    warming = {s.warmup_key for s in submissions if s.warmup_key}
    warmups = await domains.warmups(tx, warming) if warming else {}
    counted = {s.api_key_id: s.message.account_id for s in submissions if s.api_key_id}
    budgets = await credentials.key_budgets(tx, counted) if counted else {}
    limited = [account for account in locked.values() if account.recipients_per_day is not None]
    today = await send_limits.recipients_today(tx, limited, now=now) if limited else {}
    state = GroupState(locked, used, dict(buckets), dict(warmups), dict(budgets), today)
    decisions = decide(submissions, state, policies=policies)
    for index, decision in enumerate(decisions if all_or_nothing else ()):
        if isinstance(decision, errors.PostroadError):
            raise ItemRefusedError(index, decision)
    await send_limits.write_rates(tx, locked, before=buckets, after=state.buckets)
    if warming:
        changed = {key: value for key, value in state.warmups.items() if value != warmups.get(key)}
        await domains.put_warmups(tx, changed)
    if counted:
        spent = {key_id: budget for key_id, budget in state.budgets.items() if budget != budgets[key_id]}
        await credentials.put_key_usage(tx, {(key_id, counted[key_id]): spent[key_id].usage for key_id in spent})
    accepted = [s for s, decision in zip(submissions, decisions, strict=True) if decision is None]
    if accepted:
        await _write(tx, accepted, locked, routed_by=policies.routed_by)
        await _write_events(tx, accepted, locked, credits_left=state.credits_left, outbox=outbox)
    full_at = {account_id: throttle.full_at(bucket, now=now) for account_id, bucket in state.buckets.items()}
    return [
        dataclasses.replace(
            await replay(tx, s.message.account_id, decision), full_at=full_at.get(s.message.account_id, 0)
        )
        if isinstance(decision, messages.StoredIdempotencyKey)
        else decision
        or Accepted(
            s.message.id,
            s.message.request_id,
            s.message.response,
            replayed=False,
            full_at=full_at.get(s.message.account_id, 0),
        )
        for s, decision in zip(submissions, decisions, strict=True)
    ]


async def replay(tx: store.Transaction, account_id: str, stored: messages.StoredIdempotencyKey) -> Accepted:
    """The response that an earlier request with the same key and body got."""
    found = await messages.response(tx, account_id, stored.message_id)
    if found is None:
        msg = f"idempotency key without its message {stored.message_id}"
        raise LookupError(msg)
    response, request_id = found
    return Accepted(stored.message_id, request_id, response, replayed=True)


def decide(submissions: Sequence[Submission], state: GroupState, *, policies: Policies) -> list[Decision]:
    """For each submission: the key it replays, the error, or None when it is accepted."""
    decisions: list[Decision] = []
    for submission in submissions:
        decision = (
            _check_key(submission.key, state)
            or _check_account(state.accounts.get(submission.message.account_id))
            or _check_rate(submission, state, policies)
            or send_limits.check_daily_limit(submission.message, state.accounts, state.recipients_today)
            or _check_warmup(submission, state, policies.warmup_caps)
            or _check_api_key(submission, state)
            or _check_credits(submission, state)
        )
        if decision is None:
            _count(submission, state, policies.warmup_caps)
        decisions.append(decision)
    return decisions


def _check_key(key: Key | None, state: GroupState) -> Decision:
    if key is None:
        return None
    if key.pair in state.claimed:
        return in_progress()
    stored = state.keys.get(key.pair)
    if stored and stored.body_hash != key.body_hash:
        return different_body()
    return stored


def in_progress() -> errors.IdempotencyInProgress:
    return errors.IdempotencyInProgress("Idempotency-Key: the first request with this key is still running; retry")


def different_body() -> errors.IdempotencyConflict:
    return errors.IdempotencyConflict(
        "Idempotency-Key: this key was used with a different body in the last 24 hours; use a new key"
    )


def suspended(reason: str | None) -> errors.AccountSuspended:
    return errors.AccountSuspended(f"the account is suspended: {reason or 'contact the operator'}")


def _check_account(account: stored_accounts.Account | None) -> Decision:
    if account is None:
        return errors.Unauthorized("the account of this credential no longer exists")
    if account.status == stored_accounts.SUSPENDED:
        return suspended(account.suspended_reason)
    return None


def _check_rate(submission: Submission, state: GroupState, policies: Policies) -> Decision:
    """Take from the rate bucket. It stays taken even if a later check fails: the rate limits requests."""
    message = submission.message
    policy = throttle.at_rate(policies.rate, state.accounts[message.account_id].request_rate)
    # It counts when it came: a burst that waited for the lock is not one that came at once.
    now = message.created_at
    return send_limits.take_shared(state.buckets, message.account_id, policy, now=now, clock=policies.clock())


def _check_warmup(submission: Submission, state: GroupState, caps: Sequence[int]) -> Decision:
    key = submission.warmup_key
    if key is None:
        return None
    message = submission.message
    warmed = warmup.at(state.warmups.get(key), now=message.created_at, caps=caps)
    if warmup.has_room(warmed, message.recipient_count, caps=caps):
        return None
    view = warmup.view(warmed, caps)
    msg = (
        f"from: {key[1]} is new and warms up: {view.used} of today's {view.cap} recipients are used, and this message "
        f"has {message.recipient_count}; from 00:00 UTC "
        f"{'there is no limit' if view.tomorrow is None else f'the limit is {view.tomorrow}'}; the operator can "
        "mark the domain as warm"
    )
    seconds = math.ceil((view.next_at - message.created_at) / times.SECOND)
    return errors.WarmupLimited(msg, retry_after=max(1, seconds))


def _check_api_key(submission: Submission, state: GroupState) -> Decision:
    if submission.api_key_id is None:
        return None
    return send_limits.key_refusal(state.budgets.get(submission.api_key_id), submission.message)


def _check_credits(submission: Submission, state: GroupState) -> Decision:
    needed, left = submission.message.credits_reserved, state.credits_left[submission.message.account_id]
    if needed <= left:
        return None
    return errors.InsufficientCredits(
        f"the message needs {send_limits.credits_text(needed)}, one for each unique recipient, but only {left} "
        f"{'is' if left == 1 else 'are'} available"
    )


def _count(submission: Submission, state: GroupState, caps: Sequence[int]) -> None:
    """Subtract an accepted submission from what is left for the next ones."""
    message, key = submission.message, submission.warmup_key
    state.credits_left[message.account_id] -= message.credits_reserved
    if message.account_id in state.recipients_today and not message.is_test:
        state.recipients_today[message.account_id] += message.recipient_count
    if submission.key:
        state.claimed.add(submission.key.pair)
    if submission.api_key_id:
        state.budgets[submission.api_key_id] = send_limits.count_for_key(state.budgets[submission.api_key_id], message)
    if key:
        warmed = warmup.at(state.warmups.get(key), now=message.created_at, caps=caps)
        # A domain past its warm-up stays past it: only its last day with a cap is stored.
        if warmup.cap(warmed, caps) is not None:
            state.warmups[key] = warmup.use(warmed, message.recipient_count)


async def _write(
    tx: store.Transaction,
    accepted: Sequence[Submission],
    locked: Mapping[str, stored_accounts.Account],
    *,
    routed_by: providers.RouteConditions | None,
) -> None:
    now = max(submission.message.created_at for submission in accepted)
    first, *others = _parts(accepted)
    await _write_part(tx, first, now=now, routed_by=routed_by)
    for part in others:
        await asyncio.sleep(0)  # SQLite writes on the event loop
        await _write_part(tx, part, now=now, routed_by=routed_by)
    if charged := [submission for submission in accepted if submission.message.credits_reserved]:
        await stored_accounts.record_entries(tx, [_reservation(submission) for submission in charged])
    # Only the results of accounts that are marked by this look up what a message cost.
    for account_id in sorted({s.message.account_id for s in accepted if not s.message.credits_reserved}):
        if not locked[account_id].has_uncharged:
            await stored_accounts.note_uncharged(tx, account_id)
    keys = [new_key(s.message, s.key, message_id=s.message.id) for s in accepted if s.key]
    await messages.insert_idempotency_keys(tx, keys)
    for submission in accepted:
        message = submission.message
        if submission.resend_of is not None:
            await messages.insert_resend(tx, message.account_id, resend_of=submission.resend_of, message_id=message.id)
    await mail_counts.add_hourly(tx, _count_increments([s.message for s in accepted if not s.message.is_test]))


def _parts(accepted: Sequence[Submission]) -> list[list[Submission]]:
    """The submissions in parts of a few milliseconds; nearly every commit is one part."""
    parts: list[list[Submission]] = [[]]
    count = 0
    for submission in accepted:
        count += len(submission.recipients)
        if count > PART_RECIPIENTS and parts[-1]:
            parts.append([])
            count = len(submission.recipients)
        parts[-1].append(submission)
    return parts


async def _write_part(
    tx: store.Transaction, accepted: Sequence[Submission], *, now: int, routed_by: providers.RouteConditions | None
) -> None:
    recipients = [recipient for submission in accepted for recipient in submission.recipients]
    written = [submission.message for submission in accepted]
    await messages.insert(tx, written)
    await messages.insert_recipients(tx, recipients)
    await queue.insert(
        tx,
        recipients,
        {message.id: message.size for message in written},
        now=now,
        # The sender domain and the tag of each message, as far as a rule of `[[routes]]` may treat it differently.
        routed={}
        if routed_by is None
        else {m.id: routed_by.of_message(m.sender_key.rpartition("@")[2], m.tags) for m in written},
        schedules={
            message.id: queue.Schedule(message.send_at, message.expires_at)
            for message in written
            if message.send_at is not None or message.expires_at is not None
        },
        simulations={s.message.id: s.simulation for s in accepted if s.simulation is not None},
    )


def _reservation(submission: Submission) -> stored_accounts.LedgerEntry:
    message, count = submission.message, submission.message.credits_reserved
    return stored_accounts.LedgerEntry(
        id=submission.ledger_id,
        account_id=message.account_id,
        kind=stored_accounts.LedgerKind.RESERVE,
        available=-count,
        reserved=count,
        message_id=message.id,
        created_at=message.created_at,
    )


def _count_increments(accepted: Sequence[messages.NewMessage]) -> list[mail_counts.CountIncrement]:
    """The increments of the hourly counts. A group mostly has few accounts and one hour."""
    by_hour: dict[tuple[str, int], list[messages.NewMessage]] = {}
    for message in accepted:
        by_hour.setdefault((message.account_id, mail_counts.hour_of(message.created_at)), []).append(message)
    return [
        mail_counts.CountIncrement(
            account_id=account_id,
            hour=hour,
            messages=len(counted),
            recipients=sum(message.recipient_count for message in counted),
            message_bytes=sum(message.size for message in counted),
        )
        for (account_id, hour), counted in by_hour.items()
    ]


def new_key(
    message: messages.NewMessage, key: Key, *, message_id: str, response: bytes | None = None
) -> messages.NewIdempotencyKey:
    """The key of a message, or, with its response, of a batch that was accepted at the same time."""
    return messages.NewIdempotencyKey(
        credential_id=key.credential_id,
        key=key.text,
        account_id=message.account_id,
        body_hash=key.body_hash,
        message_id=message_id,
        expires_at=message.created_at + limits.IDEMPOTENCY_KEY_SECONDS * times.SECOND,
        response=response,
    )


async def _write_events(
    tx: store.Transaction,
    accepted: Sequence[Submission],
    locked: Mapping[str, stored_accounts.Account],
    *,
    credits_left: Mapping[str, int],
    outbox: context.Outbox,
) -> None:
    """Write `email.accepted`, and `credits.low` when the group makes credits scarce, after its messages.

    Only for accounts with an endpoint that names the type, which the locked account says: mail of all others costs
    nothing more. `locked` is how the accounts were before the group.
    """
    naming = [account for account in locked.values() if account.subscribed_events]
    if not naming:
        return
    subscribed = {account.id for account in naming if account.names_event(events.EventType.ACCEPTED)}
    happened = [
        events.RecipientEvent(
            key=(submission.message.account_id, submission.message.id, recipient.id),
            kind=events.EventType.ACCEPTED,
            at=submission.message.created_at,
        )
        for submission in accepted
        if submission.message.account_id in subscribed
        for recipient in submission.recipients
    ]
    if happened:
        await outbox.write(tx, happened)
    for account in naming:
        # Test messages count nowhere.
        sent = [s.message for s in accepted if s.message.account_id == account.id and not s.message.is_test]
        if account.names_event(events.EventType.CREDITS_LOW) and any(message.credits_reserved for message in sent):
            await send_limits.write_low_credits(tx, account, sent, left=credits_left[account.id], outbox=outbox)


async def count_refused_sends(
    tx: store.Transaction,
    refused: Sequence[RefusedSend],
    *,
    locked: Mapping[str, stored_accounts.Account],
    policies: Policies,
) -> list[Counted | errors.PostroadError]:
    """Count them, in order; those over the limit get that error.

    Several items take what is left; they are over the limit if nothing is.
    """
    before = await rates.find(tx, {send.account_id for send in refused})
    buckets = dict(before)
    answers: list[Counted | errors.PostroadError] = []
    for send in refused:
        policy = throttle.at_rate(
            policies.rate, locked[send.account_id].request_rate if send.account_id in locked else None
        )
        clock = policies.clock()
        refusal = send_limits.take_shared(buckets, send.account_id, policy, now=send.created_at, clock=clock)
        for _ in range(1, send.count):
            send_limits.take_shared(buckets, send.account_id, policy, now=send.created_at, clock=clock)
        full_at = throttle.full_at(buckets[send.account_id], now=send.created_at)
        answers.append(refusal or Counted(full_at))
    await send_limits.write_rates(tx, locked, before=before, after=buckets)
    return answers


async def _store_batch(
    tx: store.Transaction,
    batch: Batch,
    *,
    locked: Mapping[str, stored_accounts.Account],
    policies: Policies,
    outbox: context.Outbox,
) -> Accepted | errors.PostroadError:
    message = batch.submissions[0].message
    # The holder of the account's lock sees every key used before.
    used = (await messages.idempotency_keys(tx, [batch.key.pair], now=message.created_at)).get(batch.key.pair)
    if used is not None:
        replayed = replay_batch(used, batch.key)
        if isinstance(replayed, Accepted):
            # The items took nothing from the rate, whatever a process has counted for them.
            bucket = (await rates.find(tx, {message.account_id})).get(message.account_id, throttle.SharedBucket())
            replayed = dataclasses.replace(replayed, full_at=throttle.full_at(bucket, now=message.created_at))
        return replayed
    try:
        answers = await store_submissions(
            tx,
            batch.submissions,
            locked=locked,
            policies=policies,
            outbox=outbox,
            all_or_nothing=batch.all_or_nothing,
        )
    except ItemRefusedError as item:
        return name_item(item.refusal, batch.member, batch.indexes[item.index])
    accepted = _accepted(batch, answers, request_id=message.request_id)
    if count := counted(batch.refused.values()):
        refused = RefusedSend(message.account_id, message.created_at, count)
        (answer,) = await count_refused_sends(tx, [refused], locked=locked, policies=policies)
        if isinstance(answer, Counted):
            accepted = dataclasses.replace(accepted, full_at=answer.full_at)
    if not accepted.message_id and isinstance(answers[0], OF_THE_ACCOUNT):
        return answers[0]
    if accepted.message_id:
        key = new_key(message, batch.key, message_id=accepted.message_id, response=accepted.response)
        await messages.insert_idempotency_keys(tx, [key])
    return accepted


def _accepted(batch: Batch, answers: Sequence[Accepted | errors.PostroadError], *, request_id: str) -> Accepted:
    results: dict[int, str | send_request.ItemError] = dict(batch.refused)
    for index, answer in zip(batch.indexes, answers, strict=True):
        results[index] = item_error(answer) if isinstance(answer, errors.PostroadError) else answer.message_id
    stored = [answer for answer in answers if isinstance(answer, Accepted)]
    full_at = [answer.full_at for answer in answers if isinstance(answer, Accepted | send_limits.Exceeded)]
    return Accepted(
        message_id=stored[0].message_id if stored else "",
        request_id=request_id,
        response=encode_batch([results[index] for index in range(len(results))], request_id=request_id),
        replayed=False,
        full_at=full_at[-1] if full_at else None,
        refused=tuple(result.code for result in results.values() if isinstance(result, send_request.ItemError)),
    )


def encode_batch(results: Sequence[str | send_request.ItemError], *, request_id: str) -> bytes:
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


def replay_batch(used: messages.StoredIdempotencyKey, key: Key) -> Accepted | errors.IdempotencyConflict:
    """The response that an earlier batch with this key got, or the error if another request had the key."""
    if used.body_hash != key.body_hash or used.response is None:
        return different_body()
    request_id = msgspec.json.decode(used.response, type=send_request.BatchReceipt).request_id
    return Accepted(used.message_id, request_id, used.response, replayed=True)


def item_error(refusal: errors.PostroadError) -> send_request.ItemError:
    message = refusal.item_message if isinstance(refusal, send_limits.Exceeded) else refusal.message
    return send_request.ItemError(refusal.code, message)


def counted(refused: Iterable[send_request.ItemError]) -> int:
    """How many refused items count towards the rate: not those that are over it."""
    return sum(error.code != errors.RateLimited.code for error in refused)


def name_item(refusal: errors.PostroadError, member: str, index: int) -> errors.PostroadError:
    refusal.message = f"{member}[{index}]: {refusal.message}"
    return refusal
