"""The one frozen value that every service gets: the store, the settings, the clock, the keys.

Built once by `open_context`, at the top; nothing below looks for a global. Time and randomness are members, so that a
test can stop the clock or fix the ids.
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

# A batch is bounded so that one commit stays short: the first in it waits for the last.
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
    # How much costly work is under way, by its kind and account, and by its kind alone (services/quota.py).
    quota_usage: Counter[tuple[str, str]] = field(default_factory=Counter)
    # Set when mail was queued in this process, so that an engine in the same one need not wait for its next look.
    mail_wakeup: asyncio.Event = field(default_factory=asyncio.Event)
    # The same for events that receivers are to be told.
    webhook_wakeup: asyncio.Event = field(default_factory=asyncio.Event)
    metrics: telemetry.Metrics = field(default_factory=telemetry.Metrics)
    # For whom services work with this context; a door replaces it for each of its callers (services/audit_log.py).
    actor: actors.Actor = actors.OPERATOR

    def new_id(self, prefix: str, *, now: int) -> str:
        """A new id of this kind."""
        return identifiers.make(prefix, now=now, entropy=self.entropy(identifiers.ENTROPY_BYTES))


def acting_as(ctx: Context, who: caller.Caller, *, request_id: str, client_address: str) -> Context:
    """The same context, at work for a person."""
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
    """Open the store and build the context; everything is finished and closed when the block ends.

    `accepting_by` is for a process that lets another one write what it accepts.
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
    told = webhooks_client.WebhookClient(settings)
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
            webhook_client=told,
            dns=domain_dns.DomainDns(settings),
            clock=clock,
            actor=actor,
        )
    finally:
        await accept.close()
        await record.close()
        await remembered.close()
        await mark.close()
        await told.close()
        hasher.close()
        await database.close()
