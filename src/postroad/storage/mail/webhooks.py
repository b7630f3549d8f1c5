"""Webhook endpoints with their signing secrets, and the deliveries to them, which are a log afterwards.

An account has several endpoints; the first of them is that of `/v1/webhook`. Changing an endpoint locks its
account first (see accounts.py), as does recording results. So an event is written for the endpoint as it is at that
moment, or not at all.

Deliveries are claimed endpoint by endpoint under leases. A claim counts as an attempt: if the worker dies, the request
may have reached the endpoint, and there must never be more attempts than the schedule has. A lease is longer than an
attempt can take, so it is never renewed. Deliveries of a removed endpoint are visible only to the sweep.
"""

import collections
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad.model.events import event_formats
from postroad.storage.engine import queries, store

LIVE: Final = "live"
TEST: Final = "test"
# In place of the URL of an endpoint whose events are fetched, not sent.
LISTENER_URL: Final = "listen:"


class Webhook(msgspec.Struct, frozen=True):
    """A row of `webhooks`. `events` are names separated by spaces; removed endpoints are not returned.

    `tags` and `sender_domains` have a line for each, and no line means all messages. `failing_since` is when the first
    of the attempts failed that have failed without a success since. `disabled_reason` says why the service disabled it.
    In the format of another service, which only additional endpoints have, `format_events` are the events in its words,
    `events` all of ours that they may come from, and `request_headers` what its requests have besides, encrypted.
    """

    id: str
    account_id: str
    url: str
    events: str
    enabled: int
    secret_hint: str
    created_at: int
    updated_at: int
    is_first: int = 1
    version: int = 1
    tags: str = ""
    sender_domains: str = ""
    mode: str = LIVE
    standard_signature: int = 0
    description: str = ""
    failing_since: int | None = None
    disabled_reason: str = ""
    format: str = event_formats.OWN
    format_events: str = ""
    request_headers: bytes | None = None

    @property
    def is_listener(self) -> bool:
        """Whether its events are fetched, not sent."""
        return self.url == LISTENER_URL


class Secret(msgspec.Struct, frozen=True):
    """A row of `webhook_secrets`, encrypted. The newest version does not expire."""

    account_id: str
    webhook_id: str
    version: int
    secret: bytes
    created_at: int
    expires_at: int | None


class RemovedEndpoint(msgspec.Struct, frozen=True):
    """A removed endpoint whose log may still exist."""

    account_id: str
    id: str


async def insert(tx: store.Transaction, webhook: Webhook) -> None:
    """Create an endpoint. An account has one that is the first, at most."""
    await tx.execute("webhooks.insert", *msgspec.structs.astuple(webhook))
    await tx.execute("webhooks.note_events", webhook.id)


# The first endpoint of an account, which is that of `/v1/webhook`.
@queries.row("webhooks.first_of", Webhook)
async def first_of(tx: store.Transaction, account_id: str) -> Webhook | None: ...
# All endpoints of an account, the first one first, then the oldest.
@queries.rows("webhooks.of_account", Webhook)
async def of_account(tx: store.Transaction, account_id: str) -> list[Webhook]: ...
@queries.row("webhooks.by_id", Webhook)
async def by_id(tx: store.Transaction, account_id: str, webhook_id: str) -> Webhook | None: ...


async def count(tx: store.Transaction, account_id: str) -> int:
    return len(await of_account(tx, account_id))


async def enabled_of(tx: store.Transaction, account_ids: Iterable[str]) -> dict[str, list[Webhook]]:
    """The endpoints of these accounts that are enabled, by account."""
    rows = await tx.fetch_many("webhooks.enabled_of", [(account_id,) for account_id in sorted(set(account_ids))])
    found: dict[str, list[Webhook]] = collections.defaultdict(list)
    for webhook in (Webhook(*row) for row in rows):
        found[webhook.account_id].append(webhook)
    return dict(found)


async def enabled(tx: store.Transaction, ids: Iterable[str]) -> dict[str, Webhook]:
    """Those of these endpoints that are enabled and not removed, by id."""
    rows = await tx.fetch_many("webhooks.enabled", [(webhook_id,) for webhook_id in sorted(set(ids))])
    return {webhook.id: webhook for webhook in (Webhook(*row) for row in rows)}


# The formats of all endpoints.
@queries.rows("webhooks.formats", str)
async def formats(tx: store.Transaction) -> list[str]: ...


async def update(tx: store.Transaction, webhook: Webhook) -> None:
    """Change the settings; what it is, its secret and its creation stay."""
    await tx.execute(
        "webhooks.update",
        webhook.id,
        webhook.url,
        webhook.events,
        webhook.enabled,
        webhook.updated_at,
        webhook.version,
        webhook.tags,
        webhook.sender_domains,
        webhook.mode,
        webhook.standard_signature,
        webhook.description,
        webhook.failing_since,
        webhook.disabled_reason,
        webhook.format_events,
        webhook.request_headers,
    )
    await tx.execute("webhooks.note_events", webhook.id)


async def mark_pinged(tx: store.Transaction, webhook: Webhook, *, now: int, not_since: int) -> bool:
    """Record a ping; False when there was one after `not_since`."""
    return await tx.execute("webhooks.mark_pinged", webhook.id, now, not_since) == 1


async def pinged_at(tx: store.Transaction, webhook: Webhook) -> int | None:
    """When an endpoint was last pinged."""
    row = await tx.fetch_one("webhooks.pinged_at", webhook.id)
    return int(row[0]) if row else None


async def remove(tx: store.Transaction, webhook_id: str, *, now: int) -> None:
    """Remove an endpoint and its secrets; its log is no longer visible and left to the sweep."""
    await tx.execute("webhooks.remove", webhook_id, now)
    await tx.execute("webhooks.note_events", webhook_id)
    await remove_secrets(tx, webhook_id)


async def add_secret(tx: store.Transaction, secret: Secret, *, hint: str) -> None:
    """Store a new secret, which becomes the current one."""
    await tx.execute("webhooks.add_secret", *msgspec.structs.astuple(secret))
    await tx.execute("webhooks.set_hint", secret.webhook_id, hint, secret.created_at)


async def secrets(tx: store.Transaction, webhook_ids: Sequence[str], *, now: int) -> list[Secret]:
    """The secrets that have not expired, the newest of each endpoint first."""
    rows = await tx.fetch_many("webhooks.secrets", [(webhook_id, now) for webhook_id in webhook_ids])
    return sorted((Secret(*row) for row in rows), key=lambda secret: -secret.version)


@queries.change("webhooks.retire_secret")
async def retire_secret(tx: store.Transaction, webhook_id: str, *, expires_at: int) -> None: ...
@queries.change("webhooks.remove_secrets")
async def remove_secrets(tx: store.Transaction, webhook_id: str) -> None: ...
@queries.changes("webhooks.sweep_secrets")
async def sweep_secrets(tx: store.Transaction, *, now: int) -> int: ...
# Removed endpoints whose log may still exist, the first removed one first.
@queries.rows("webhooks.removed", RemovedEndpoint)
async def removed(tx: store.Transaction, *, limit: int) -> list[RemovedEndpoint]: ...
# Delete the row of a removed endpoint, if its log is empty.
@queries.change("webhooks.forget")
async def forget(tx: store.Transaction, webhook_id: str) -> None: ...


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `webhook_attempts`. `error` says why there is no status, or what a status does not say."""

    account_id: str
    webhook_id: str
    delivery_id: str
    number: int
    started_at: int
    duration: int
    status_code: int | None
    response_body: str | None
    error: str | None


async def insert_attempts(tx: store.Transaction, attempts: Sequence[Attempt]) -> None:
    """Store attempts; a repeated one is ignored."""
    await tx.execute_many("webhook_attempts.insert", [msgspec.structs.astuple(attempt) for attempt in attempts])


async def attempts_of_deliveries(
    tx: store.Transaction, account_id: str, webhook_id: str, delivery_ids: Sequence[str]
) -> list[Attempt]:
    """The attempts of deliveries of one endpoint, in the order in which they were made."""
    wanted = [(account_id, webhook_id, delivery_id) for delivery_id in delivery_ids]
    rows = await tx.fetch_many("webhook_attempts.of_deliveries", wanted)
    found = [Attempt(**dict(zip(Attempt.__struct_fields__, row, strict=True))) for row in rows]
    return sorted(found, key=lambda attempt: (attempt.delivery_id, attempt.number))


async def remove_attempts(tx: store.Transaction, deliveries: Sequence[tuple[str, str, str]]) -> None:
    await tx.execute_many("webhook_attempts.remove", deliveries)


# Each has up to seven attempts with two kilobytes of a response.
SWEEP_ROWS: Final = 500

Key = tuple[str, str, str]  # account, endpoint, delivery
Heard = tuple[str, str, str, str]  # event type, endpoint, message, recipient


class State(StrEnum):
    """The state of a delivery."""

    READY = "ready"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `webhook_deliveries`. `due_at` is the next attempt's time, or the end of a lease."""

    account_id: str
    webhook_id: str
    id: str
    event_id: str
    event_type: str
    message_id: str | None
    recipient_id: str | None
    replay_of: str | None = None
    url: str
    body: bytes
    state: str = State.READY
    attempt_count: int = 0
    due_at: int
    worker: str | None = None
    created_at: int
    ended_at: int | None = None

    @property
    def key(self) -> Key:
        return self.account_id, self.webhook_id, self.id


def _delivery(*row: object) -> Delivery:
    return Delivery(**dict(zip(Delivery.__struct_fields__, row, strict=True)))  # type: ignore[arg-type]


class Claimed(msgspec.Struct, frozen=True):
    """A delivery under a worker's lease; `attempt_count` includes the attempt that is about to be made."""

    account_id: str
    webhook_id: str
    id: str
    event_id: str
    event_type: str
    message_id: str | None
    body: bytes
    attempt_count: int

    @property
    def key(self) -> Key:
        return self.account_id, self.webhook_id, self.id


class DeliveryUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an attempt: the end, or the time of the next one."""

    key: Key
    worker: str
    attempt_count: int
    url: str
    state: State
    due_at: int
    ended_at: int | None


class Failed(msgspec.Struct, frozen=True):
    """A failed delivery. One that is settled needs no replay: another delivery of its event replaces it."""

    delivery: Delivery
    is_settled: bool


class Promoted(msgspec.Struct, frozen=True):
    """A delivery that became due; `worker` is the one whose lease expired at `due_at`, or None."""

    account_id: str
    webhook_id: str
    id: str
    attempt_count: int
    state: str
    worker: str | None
    due_at: int


async def insert_deliveries(tx: store.Transaction, deliveries: Sequence[Delivery]) -> None:
    await tx.execute_later("webhook_deliveries.insert", [msgspec.structs.astuple(delivery) for delivery in deliveries])


async def is_due(tx: store.Transaction, *, now: int, leases_until: int | None = None) -> bool:
    over = now if leases_until is None else leases_until
    return await tx.fetch_one("webhook_deliveries.is_due", now, over) is not None


async def promote(
    tx: store.Transaction, *, now: int, attempts: int, limit: int, leases_until: int | None = None
) -> list[Promoted]:
    """Make due deliveries ready; one whose lease expired during its last attempt has failed.

    Leases that end by `leases_until` (default: now) have expired.
    """
    over = now if leases_until is None else leases_until
    return [Promoted(*row) for row in await tx.fetch("webhook_deliveries.promote", now, attempts, limit, over)]


async def ready_endpoints(tx: store.Transaction, *, after: str, limit: int) -> list[str]:
    """The endpoints with ready rows after `after`, in order."""
    return [webhook_id for (webhook_id,) in await tx.fetch("webhook_deliveries.endpoints", after, limit)]


async def claim(
    tx: store.Transaction, wanted: Sequence[tuple[str, int]], *, lease_until: int, worker: str
) -> list[Claimed]:
    """Lease ready deliveries of enabled endpoints, oldest first, and count their attempts."""
    rows = [(webhook_id, most, lease_until, worker) for webhook_id, most in wanted]
    found = await tx.fetch_many("webhook_deliveries.claim", rows)
    return sorted((Claimed(*row) for row in found), key=lambda claimed: claimed.id)


async def release(tx: store.Transaction, keys: Sequence[Key], *, worker: str) -> None:
    """Return claims that were not attempted, and do not count them."""
    await tx.execute_many("webhook_deliveries.release", [(*key, worker) for key in keys])


async def set_body(tx: store.Transaction, key: Key, body: bytes) -> None:
    """Write an event that waited for the extension of its format."""
    await tx.execute("webhook_deliveries.set_body", *key, body)


async def drop(tx: store.Transaction, key: Key, *, worker: str) -> None:
    """Delete a claimed delivery that its endpoint does not want."""
    await tx.execute("webhook_deliveries.drop", *key, worker)


@queries.rows("webhook_deliveries.ready", _delivery)
async def ready(tx: store.Transaction, account_id: str, webhook_id: str, *, limit: int) -> list[Delivery]: ...


async def acknowledge(tx: store.Transaction, account_id: str, webhook_id: str, ids: Sequence[str]) -> None:
    await tx.execute_many(
        "webhook_deliveries.acknowledge", [(account_id, webhook_id, delivery_id) for delivery_id in ids]
    )


async def record(tx: store.Transaction, results: Sequence[DeliveryUpdate]) -> set[Key]:
    """Store the results of attempts; returns those whose worker still held the lease."""
    rows = [
        (*result.key, result.worker, result.attempt_count, result.url, result.state, result.due_at, result.ended_at)
        for result in results
    ]
    found = await tx.fetch_many("webhook_deliveries.record", rows)
    return {(account_id, webhook_id, delivery_id) for account_id, webhook_id, delivery_id in found}


@queries.row("webhook_deliveries.by_id", _delivery)
async def delivery_by_id(
    tx: store.Transaction, account_id: str, webhook_id: str, delivery_id: str, *, ended_after: int
) -> Delivery | None: ...
@queries.exists("webhook_deliveries.has_succeeded")
async def has_succeeded(tx: store.Transaction, account_id: str, webhook_id: str, *, since: int) -> bool: ...
@queries.rows("webhook_deliveries.page", _delivery)
async def delivery_page(
    tx: store.Transaction, account_id: str, webhook_id: str, *, before: str, ended_after: int, limit: int
) -> list[Delivery]: ...


async def deferrals_since(tx: store.Transaction, messages: Sequence[tuple[str, str]]) -> set[Heard]:
    """The deferrals that endpoints were sent of messages, each given with the cursor after which it counts."""
    rows = await tx.fetch_many("webhook_deliveries.deferrals_since", messages)
    return {(row[0], row[1], row[2], row[3]) for row in rows}


async def newest_deliveries(tx: store.Transaction, account_id: str, webhook_id: str, *, limit: int) -> list[store.Row]:
    """Id, state, attempts and due time of the newest deliveries of an endpoint, newest first."""
    return await tx.fetch("webhook_deliveries.newest", account_id, webhook_id, limit)


class Summary(msgspec.Struct, frozen=True):
    """When the last delivery to an endpoint ended, and how many have ended, and succeeded, in a period."""

    last_ended_at: int | None
    ended: int
    succeeded: int


async def summaries(
    tx: store.Transaction, account_id: str, webhook_ids: Sequence[str], *, since: str, limit: int
) -> dict[str, Summary]:
    """How deliveries to endpoints end, by endpoint, from the newest `limit` of each; `since` is the period's cursor."""
    arguments = [(account_id, webhook_id, since, limit) for webhook_id in webhook_ids]
    rows = await tx.fetch_many("webhook_deliveries.summary", arguments)
    return {row[0]: Summary(*row[1:]) for row in rows}


@queries.rows("webhook_deliveries.page_of_message", _delivery)
async def page_of_message(
    tx: store.Transaction,
    account_id: str,
    webhook_id: str,
    message_id: str,
    *,
    before: str,
    ended_after: int,
    status: str | None = None,
    limit: int,
) -> list[Delivery]: ...
# Deliveries of an endpoint that are `pending` or ended in one way, newest first, none older than `down_to`.
@queries.rows("webhook_deliveries.page_of_status", _delivery)
async def page_of_status(
    tx: store.Transaction,
    account_id: str,
    webhook_id: str,
    *,
    before: str,
    down_to: str,
    ended_after: int,
    status: str,
    limit: int,
) -> list[Delivery]: ...


async def place_behind(
    tx: store.Transaction, account_id: str, webhook_id: str, *, before: str, rows: int
) -> str | None:
    """The id of the delivery that is `rows` before a cursor; None when there are fewer."""
    row = await tx.fetch_one("webhook_deliveries.place_behind", account_id, webhook_id, before, rows - 1)
    return str(row[0]) if row else None


@queries.rows("webhook_deliveries.page_failed", _delivery)
async def page_failed(
    tx: store.Transaction, webhook_id: str, *, before: str, ended_after: int, limit: int
) -> list[Delivery]: ...


async def failed_between(
    tx: store.Transaction, webhook_id: str, *, after: str, before: str, ended_after: int, limit: int
) -> list[Failed]:
    """Failed deliveries of an endpoint between two cursors, oldest first."""
    rows = await tx.fetch("webhook_deliveries.failed_between", webhook_id, after, before, ended_after, limit)
    return [Failed(_delivery(*row[:-1]), is_settled=bool(row[-1])) for row in rows]


async def sweep(tx: store.Transaction, *, ended_before: int) -> int:
    """Delete up to SWEEP_ROWS deliveries that ended before a time, and their attempts."""
    return await _forget(tx, await tx.fetch("webhook_deliveries.sweep", ended_before, SWEEP_ROWS))


async def sweep_removed(tx: store.Transaction, account_id: str, webhook_id: str) -> int:
    """Delete up to SWEEP_ROWS deliveries of a removed endpoint, and their attempts."""
    return await _forget(tx, await tx.fetch("webhook_deliveries.sweep_removed", account_id, webhook_id, SWEEP_ROWS))


async def sweep_undelivered(tx: store.Transaction, *, created_before: str) -> int:
    """Delete up to SWEEP_ROWS deliveries from before a cursor that have not ended, and their attempts."""
    return await _forget(tx, await tx.fetch("webhook_deliveries.sweep_undelivered", created_before, SWEEP_ROWS))


async def _forget(tx: store.Transaction, rows: Sequence[store.Row]) -> int:
    await remove_attempts(tx, [(account_id, webhook_id, delivery) for account_id, webhook_id, delivery in rows])
    return len(rows)


# Counts of pending webhook deliveries. They read an index of all of them, so they belong in `scanning`.
READY: Final = "ready"
WAITING: Final = "waiting"
HELD: Final = "held"
STATES: Final = (READY, WAITING, HELD)


class Count(msgspec.Struct, frozen=True):
    """How many deliveries are in a state, and when the first of them was or will be due."""

    state: str
    deliveries: int
    due_at: int


async def delivery_counts(tx: store.Transaction) -> dict[str, Count]:
    """The counts by state; ready deliveries of a disabled endpoint are `held`."""
    return {row[0]: Count(*row) for row in await tx.fetch("webhook_views.counts")}
