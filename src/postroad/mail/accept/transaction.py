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
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from postroad.storage.people import credentials

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
    # The list that its recipient can leave.
    list_name: str | None = None

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


class Accepted(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The stored response; `replayed` when an earlier request created it."""

    message_id: str
    request_id: str
    response: bytes
    replayed: bool
    # When the account's bucket is full again, by this host's clock; None if unknown. Not part of the response.
    full_at: int | None = None
    # The error codes of items of a batch that were refused, for metrics. Not part of the response.
    refused: tuple[str, ...] = ()


class Counted(msgspec.Struct, frozen=True, array_like=True, tag=True):
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
    warmups: dict[domains.WarmupKey, warmup.State] = field(default_factory=dict)
    # What is left for the API keys whose mail is counted.
    budgets: dict[str, callers.KeyBudget] = field(default_factory=dict)
    # What accounts with a daily limit have sent today.
    recipients_today: dict[str, int] = field(default_factory=dict)
    # After the group so far: the buckets that a request was taken from, the credits left, and the group's own keys.
    buckets: dict[str, throttle.SharedBucket] = field(default_factory=dict)
    credits_left: dict[str, int] = field(default_factory=dict)
    claimed: set[messages.IdempotencyPair] = field(default_factory=set)


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
    single = [entry for entry in entries if isinstance(entry, Submission)]
    # All at once and in order: whoever has the lock of a later account may wait for that of an earlier one.
    if len(single) == len(entries):
        locked = await stored_accounts.lock(tx, {submission.message.account_id for submission in single})
        return await store_submissions(tx, single, locked=locked, policies=policies, outbox=outbox)
    locked = await stored_accounts.lock(tx, {entry.account_id for entry in entries})
    of_single: Iterator[Accepted | errors.PostroadError] = iter(())
    if single:
        known = _of_accounts(locked, {submission.message.account_id for submission in single})
        of_single = iter(await store_submissions(tx, single, locked=known, policies=policies, outbox=outbox))
        # What was stored of an account has changed its credits and its rate.
        locked = await stored_accounts.lock(tx, locked)
    refused = [entry for entry in entries if isinstance(entry, RefusedSend)]
    of_refused: Iterator[Counted | errors.PostroadError] = iter(())
    if refused:
        of_refused = iter(await count_refused_sends(tx, refused, locked=locked, policies=policies))
    results: list[Accepted | Counted | errors.PostroadError] = []
    changed = {send.account_id for send in refused}
    for entry in entries:
        if isinstance(entry, Batch):
            ids = [entry.account_id]
            known = await stored_accounts.lock(tx, ids) if entry.account_id in changed else _of_accounts(locked, ids)
            results.append(await _store_batch(tx, entry, locked=known, policies=policies, outbox=outbox))
            changed.add(entry.account_id)
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
    now = max([submission.message.created_at for submission in submissions])
    state = await _read_state(tx, submissions, locked, now=now)
    warmups, budgets = dict(state.warmups), dict(state.budgets)
    decisions = decide(submissions, state, policies=policies)
    for index, decision in enumerate(decisions if all_or_nothing else ()):
        if isinstance(decision, errors.PostroadError):
            raise ItemRefusedError(index, decision)
    accepted = [s for s, decision in zip(submissions, decisions, strict=True) if decision is None]
    if warmups != state.warmups:
        used = {key: value for key, value in state.warmups.items() if value != warmups.get(key)}
        await domains.put_warmups(tx, used)
    if budgets != state.budgets:
        counted = {s.api_key_id: s.message.account_id for s in accepted if s.api_key_id is not None}
        usage = {(key_id, account_id): state.budgets[key_id].usage for key_id, account_id in counted.items()}
        await credentials.put_key_usage(tx, usage)
    await _write(tx, accepted, state, now=now, routed_by=policies.routed_by)
    await _write_events(tx, accepted, locked, credits_left=state.credits_left, outbox=outbox)
    full_at = {
        account_id: throttle.full_at(state.buckets.get(account_id) or account.bucket, now=now)
        for account_id, account in locked.items()
    }
    results: list[Accepted | errors.PostroadError] = []
    for submission, decision in zip(submissions, decisions, strict=True):
        message = submission.message
        if decision is None:
            full = full_at[message.account_id]
            results.append(Accepted(message.id, message.request_id, message.response, replayed=False, full_at=full))
        elif isinstance(decision, messages.StoredIdempotencyKey):
            replayed = await replay(tx, message.account_id, decision)
            results.append(msgspec.structs.replace(replayed, full_at=full_at.get(message.account_id, 0)))
        else:
            results.append(decision)
    return results


async def _read_state(
    tx: store.Transaction,
    submissions: Sequence[Submission],
    locked: Mapping[str, stored_accounts.Account],
    *,
    now: int,
) -> GroupState:
    """What is stored for a group; only what one of its submissions asks for."""
    pairs: list[messages.IdempotencyPair] = []
    warming: set[domains.WarmupKey] = set()
    counted: dict[str, str] = {}
    for submission in submissions:
        key, account_id = submission.key, submission.message.account_id
        if key is not None:
            pairs.append((key.credential_id, key.text))
        if submission.warmup_domain is not None:
            warming.add((account_id, submission.warmup_domain))
        if submission.api_key_id is not None:
            counted[submission.api_key_id] = account_id
    state = GroupState(locked, await messages.idempotency_keys(tx, pairs, now=now) if pairs else {})
    if warming:
        state.warmups.update(await domains.warmups(tx, warming))
    if counted:
        state.budgets.update(await credentials.key_budgets(tx, counted))
    limited = [account for account in locked.values() if account.recipients_per_day is not None]
    if limited:
        state.recipients_today.update(await send_limits.recipients_today(tx, limited, now=now))
    return state


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
    clock = policies.clock()
    return [_decide(submission, state, policies, clock) for submission in submissions]


def _decide(submission: Submission, state: GroupState, policies: Policies, clock: int) -> Decision:
    message, key = submission.message, submission.key
    if key is not None and (known := _known_key(key, state)) is not None:
        return known
    account = state.accounts.get(message.account_id)
    if account is None:
        return errors.Unauthorized("the account of this credential no longer exists")
    if account.status == stored_accounts.SUSPENDED:
        return suspended(account.suspended_reason)
    # It stays taken even if a later check fails: the rate limits requests. And it counts when it came: a burst that
    # waited for the lock is not one that came at once.
    exceeded = _take_rate(account, state.buckets, policies, message.created_at, clock)
    if exceeded is not None:
        return exceeded
    is_limited = submission.warmup_domain is not None or submission.api_key_id is not None or state.recipients_today
    if is_limited and (refusal := _check_limits(submission, state, policies.warmup_caps)) is not None:
        return refusal
    left = state.credits_left.get(account.id, account.available)
    if message.credits_reserved > left:
        return _too_few_credits(message.credits_reserved, left)
    # It is accepted. Subtract it from what is left for the next ones.
    state.credits_left[account.id] = left - message.credits_reserved
    if key is not None:
        state.claimed.add((key.credential_id, key.text))
    if is_limited:
        _count_limits(submission, state, policies.warmup_caps)
    return None


def _known_key(key: Key, state: GroupState) -> Decision:
    pair = key.credential_id, key.text
    if pair in state.claimed:
        return in_progress()
    stored = state.keys.get(pair)
    if stored and stored.body_hash != key.body_hash:
        return different_body()
    return stored


def _check_limits(submission: Submission, state: GroupState, caps: Sequence[int]) -> Decision:
    """Limits that few accounts, domains and API keys have."""
    message = submission.message
    refusal = send_limits.check_daily_limit(message, state.accounts, state.recipients_today)
    if refusal is None and submission.warmup_domain is not None:
        refusal = _check_warmup(message, submission.warmup_domain, state, caps)
    if refusal is None and submission.api_key_id is not None:
        refusal = send_limits.key_refusal(state.budgets.get(submission.api_key_id), message)
    return refusal


def _count_limits(submission: Submission, state: GroupState, caps: Sequence[int]) -> None:
    message, key_id, domain = submission.message, submission.api_key_id, submission.warmup_domain
    if message.account_id in state.recipients_today and not message.is_test:
        state.recipients_today[message.account_id] += message.recipient_count
    if key_id is not None:
        state.budgets[key_id] = send_limits.count_for_key(state.budgets[key_id], message)
    if domain is not None:
        warmed = _warmed(message, domain, state, caps)
        # A domain past its warm-up stays past it: only its last day with a cap is stored.
        if warmup.cap(warmed, caps) is not None:
            state.warmups[message.account_id, domain] = warmup.use(warmed, message.recipient_count)


def in_progress() -> errors.IdempotencyInProgress:
    return errors.IdempotencyInProgress("Idempotency-Key: the first request with this key is still running; retry")


def different_body() -> errors.IdempotencyConflict:
    return errors.IdempotencyConflict(
        "Idempotency-Key: this key was used with a different body in the last 24 hours; use a new key"
    )


def suspended(reason: str | None) -> errors.AccountSuspended:
    return errors.AccountSuspended(f"the account is suspended: {reason or 'contact the operator'}")


def _take_rate(
    account: stored_accounts.Account,
    buckets: dict[str, throttle.SharedBucket],
    policies: Policies,
    now: int,
    clock: int,
) -> send_limits.Exceeded | None:
    policy = policies.rate
    if account.request_rate is not None:
        policy = throttle.at_rate(policy, account.request_rate)
    bucket = buckets.get(account.id) or account.bucket
    decision, buckets[account.id] = throttle.take_shared(policy, bucket, now=now, clock=clock)
    return None if decision.allowed else send_limits.rate_exceeded(policy, decision, full_at=decision.full_at)


def _changed(
    buckets: Mapping[str, throttle.SharedBucket], locked: Mapping[str, stored_accounts.Account]
) -> dict[str, throttle.SharedBucket]:
    """The buckets to store: a request over the limit takes nothing."""
    return {
        account_id: bucket
        for account_id, bucket in buckets.items()
        if bucket.full_at != locked[account_id].rate_full_at
    }


def _warmed(message: messages.NewMessage, domain: str, state: GroupState, caps: Sequence[int]) -> warmup.State:
    return warmup.at(state.warmups.get((message.account_id, domain)), now=message.created_at, caps=caps)


def _check_warmup(
    message: messages.NewMessage, domain: str, state: GroupState, caps: Sequence[int]
) -> errors.WarmupLimited | None:
    warmed = _warmed(message, domain, state, caps)
    if warmup.has_room(warmed, message.recipient_count, caps=caps):
        return None
    view = warmup.view(warmed, caps)
    msg = (
        f"from: {domain} is new and warms up: {view.used} of today's {view.cap} recipients are used, and this message "
        f"has {message.recipient_count}; from 00:00 UTC "
        f"{'there is no limit' if view.tomorrow is None else f'the limit is {view.tomorrow}'}; the operator can "
        "mark the domain as warm"
    )
    seconds = math.ceil((view.next_at - message.created_at) / times.SECOND)
    return errors.WarmupLimited(msg, retry_after=max(1, seconds))


def _too_few_credits(needed: int, left: int) -> errors.InsufficientCredits:
    return errors.InsufficientCredits(
        f"the message needs {send_limits.credits_text(needed)}, one for each unique recipient, but only {left} "
        f"{'is' if left == 1 else 'are'} available"
    )


async def _write(
    tx: store.Transaction,
    accepted: Sequence[Submission],
    state: GroupState,
    *,
    now: int,
    routed_by: providers.RouteConditions | None,
) -> None:
    await _write_messages(tx, accepted, now=now, routed_by=routed_by)
    entries: list[stored_accounts.LedgerEntry] = []
    uncharged: set[str] = set()
    keys: list[messages.NewIdempotencyKey] = []
    for submission in accepted:
        message = submission.message
        if message.credits_reserved:
            entries.append(
                stored_accounts.LedgerEntry(
                    id=submission.ledger_id,
                    account_id=message.account_id,
                    kind=stored_accounts.LedgerKind.RESERVE,
                    available=-message.credits_reserved,
                    reserved=message.credits_reserved,
                    message_id=message.id,
                    created_at=message.created_at,
                )
            )
        elif not state.accounts[message.account_id].has_uncharged:
            uncharged.add(message.account_id)
        if submission.key is not None:
            keys.append(new_key(message, submission.key, message_id=message.id))
    await stored_accounts.record_entries(tx, entries, buckets=_changed(state.buckets, state.accounts))
    # Only the results of accounts that are marked by this look up what a message cost.
    for account_id in sorted(uncharged):
        await stored_accounts.note_uncharged(tx, account_id)
    if keys:
        await messages.insert_idempotency_keys(tx, keys)
    for submission in accepted:
        if submission.resend_of is not None:
            message = submission.message
            await messages.insert_resend(tx, message.account_id, resend_of=submission.resend_of, message_id=message.id)
    if increments := _count_increments(accepted):
        await mail_counts.add_hourly(tx, increments)


def _count_increments(accepted: Sequence[Submission]) -> list[mail_counts.CountIncrement]:
    """The increments of the hourly counts. A group mostly has few accounts and one hour."""
    counts: dict[tuple[str, int], list[int]] = {}
    for submission in accepted:
        message = submission.message
        if not message.is_test:
            count = counts.setdefault((message.account_id, mail_counts.hour_of(message.created_at)), [0, 0, 0])
            count[0] += 1
            count[1] += message.recipient_count
            count[2] += message.size
    return [
        mail_counts.CountIncrement(
            account_id=account_id, hour=hour, messages=count[0], recipients=count[1], message_bytes=count[2]
        )
        for (account_id, hour), count in counts.items()
    ]


async def _write_messages(
    tx: store.Transaction, accepted: Sequence[Submission], *, now: int, routed_by: providers.RouteConditions | None
) -> None:
    """In parts of a few milliseconds, because SQLite writes on the event loop; nearly every commit is one part."""
    part: list[Submission] = []
    count = 0
    for submission in accepted:
        count += len(submission.recipients)
        if count > PART_RECIPIENTS and part:
            await _write_part(tx, part, now=now, routed_by=routed_by)
            await asyncio.sleep(0)
            part, count = [], len(submission.recipients)
        part.append(submission)
    if part:
        await _write_part(tx, part, now=now, routed_by=routed_by)


async def _write_part(
    tx: store.Transaction, accepted: Sequence[Submission], *, now: int, routed_by: providers.RouteConditions | None
) -> None:
    written: list[messages.NewMessage] = []
    recipients: list[messages.NewRecipient] = []
    sizes: dict[str, int] = {}
    routed: dict[str, tuple[str, str]] = {}
    schedules: dict[str, queue.Schedule] = {}
    simulations: dict[str, str] = {}
    lists: dict[str, str] = {}
    for submission in accepted:
        message = submission.message
        written.append(message)
        recipients += submission.recipients
        sizes[message.id] = message.size
        if routed_by is not None:
            # The sender domain and the tag, as far as a rule of `[[routes]]` may treat it differently.
            routed[message.id] = routed_by.of_message(message.sender_key.rpartition("@")[2], message.tags)
        if message.send_at is not None or message.expires_at is not None:
            schedules[message.id] = queue.Schedule(message.send_at, message.expires_at)
        if submission.simulation is not None:
            simulations[message.id] = submission.simulation
        if submission.list_name is not None:
            lists[message.id] = submission.list_name
    await messages.insert(tx, written)
    await messages.insert_recipients(tx, recipients)
    await queue.insert(
        tx, recipients, sizes, now=now, routed=routed, schedules=schedules, simulations=simulations, lists=lists
    )


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
    if not naming or not accepted:
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
            await send_limits.write_low_credits(
                tx, account, sent, left=credits_left.get(account.id, account.available), outbox=outbox
            )


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
    clock = policies.clock()
    buckets: dict[str, throttle.SharedBucket] = {}
    answers: list[Counted | errors.PostroadError] = []
    for send in refused:
        account = locked.get(send.account_id)
        if account is None:  # it was removed meanwhile, with its rate
            answers.append(Counted(0))
            continue
        refusal = _take_rate(account, buckets, policies, send.created_at, clock)
        for _ in range(1, send.count):
            _take_rate(account, buckets, policies, send.created_at, clock)
        full_at = throttle.full_at(buckets[account.id], now=send.created_at)
        answers.append(refusal or Counted(full_at))
    await stored_accounts.record_entries(tx, (), buckets=_changed(buckets, locked))
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
            account = locked.get(message.account_id)
            full_at = 0 if account is None else throttle.full_at(account.bucket, now=message.created_at)
            replayed = msgspec.structs.replace(replayed, full_at=full_at)
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
        # The items have taken from the rate as well.
        locked = await stored_accounts.lock(tx, locked)
        (answer,) = await count_refused_sends(tx, [refused], locked=locked, policies=policies)
        if isinstance(answer, Counted):
            accepted = msgspec.structs.replace(accepted, full_at=answer.full_at)
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
