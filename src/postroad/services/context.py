"""The frozen value that every service gets: database, settings, clock, keys.

Built once at start-up; nothing below looks for a global. Time and randomness are members, so that a test can stop the
clock or fix the ids.
"""

import asyncio
import contextlib
import dataclasses
import functools
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from postroad import config
from postroad.model import actors, caller, identifiers, throttle
from postroad.services.acceptance import queue_limit as acceptance_queue_limit
from postroad.services.acceptance import rate_limit, transaction
from postroad.services.auth import access_cache as auth_access_cache
from postroad.services.auth import installation_keys, passwords
from postroad.services.domains import dns as domain_dns
from postroad.services.results import bounce_guard, outcomes
from postroad.services.webhooks import client as webhooks_client
from postroad.services.webhooks import outbox as webhook_outbox
from postroad.storage import group_commit, open_store, store
from postroad.telemetry import metrics as telemetry

AcceptCommits = group_commit.Commits[transaction.Submission, transaction.Accepted]

# Bounds a batch so that one commit stays short: the first submission waits for the last.
BATCH_ITEMS = 256


def system_clock() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000


@dataclass(frozen=True, slots=True)
class Context:
    """What services work with."""

    settings: config.Settings
    store: store.Store
    keys: installation_keys.Keys
    passwords: passwords.Passwords
    access_cache: auth_access_cache.AccessCache
    rate_limiter: rate_limit.RateLimiter
    queue_limit: acceptance_queue_limit.QueueLimit
    accept_commits: AcceptCommits
    outcome_commits: group_commit.GroupCommit[Sequence[outcomes.Outcome], outcomes.RecordResult]
    outbox: webhook_outbox.Outbox
    webhook_client: webhooks_client.WebhookClient
    dns: domain_dns.DomainDns
    clock: Callable[[], int] = system_clock
    entropy: Callable[[int], bytes] = os.urandom
    in_flight: set[tuple[str, str]] = field(default_factory=set)
    # Costly work in progress, by kind and account, and by kind alone (services/quota.py).
    quota_usage: Counter[tuple[str, str]] = field(default_factory=Counter)
    # Set when mail was queued in this process, so that an engine in the same one need not wait for its next poll.
    mail_wakeup: asyncio.Event = field(default_factory=asyncio.Event)
    # The same for webhook events.
    webhook_wakeup: asyncio.Event = field(default_factory=asyncio.Event)
    metrics: telemetry.Metrics = field(default_factory=telemetry.Metrics)
    # The actor of changes; each request replaces it with its caller (services/audit_log.py).
    actor: actors.Actor = actors.OPERATOR

    def new_id(self, prefix: str, *, now: int) -> str:
        """A new id of this kind."""
        return identifiers.make(prefix, now=now, entropy=self.entropy(identifiers.ENTROPY_BYTES))


def acting_as(ctx: Context, who: caller.Caller, *, request_id: str, client_address: str) -> Context:
    """The same context, acting for a user."""
    actor = actors.Actor(actors.Kind.PERSON, who.user_id, request_id, client_address)
    return dataclasses.replace(ctx, actor=actor)


@contextlib.asynccontextmanager
async def open_context(
    settings: config.Settings,
    *,
    clock: Callable[[], int] = system_clock,
    actor: actors.Actor = actors.OPERATOR,
    make_accept_commits: Callable[[store.Store], AcceptCommits] | None = None,
) -> AsyncIterator[Context]:
    """Open the database and build the context; everything is closed when the block ends.

    `accepting_by` is for a process whose accepted mail another process writes.
    """
    keys = installation_keys.Keys.derive(config.secret_key(settings.security))
    database = await open_store.open_current(
        settings.database.url,
        connections=settings.database.connections,
        migrate=settings.database.migrate_at_start,
    )
    rate = throttle.RateLimit(rate=settings.limits.request_rate, burst=settings.limits.request_burst)
    policies = transaction.Policies(rate=rate, warmup_caps=settings.warmup.recipients_per_day)
    accept: AcceptCommits = (
        make_accept_commits(database)
        if make_accept_commits
        else group_commit.GroupCommit(
            database,
            functools.partial(transaction.accept, policies=policies),
            max_items=BATCH_ITEMS,
            max_waiting=settings.limits.accept_waiting,
            wait_seconds=settings.limits.accept_seconds,
        )
    )
    outbox = webhook_outbox.Outbox(keys.return_path, settings.delivery.return_path_domain, os.urandom)
    record = group_commit.GroupCommit(
        database,
        functools.partial(outcomes.record, outbox=outbox, guard=bounce_guard.rules_of(settings.bounce_guard)),
        max_items=BATCH_ITEMS,
        max_waiting=settings.limits.accept_waiting,
        wait_seconds=settings.limits.accept_seconds,
    )
    hasher = passwords.Passwords(threads=settings.security.password_threads)
    remembered = auth_access_cache.AccessCache(database)
    mark = acceptance_queue_limit.QueueLimit(database, max_recipients=settings.limits.queued_recipients)
    client = webhooks_client.WebhookClient(settings)
    try:
        yield Context(
            settings=settings,
            store=database,
            keys=keys,
            passwords=hasher,
            access_cache=remembered,
            rate_limiter=rate_limit.RateLimiter(rate),
            queue_limit=mark,
            accept_commits=accept,
            outcome_commits=record,
            outbox=outbox,
            webhook_client=client,
            dns=domain_dns.DomainDns(settings),
            clock=clock,
            actor=actor,
        )
    finally:
        await accept.close()
        await record.close()
        await remembered.close()
        await mark.close()
        await client.close()
        await hasher.close()
        await database.close()
