"""The frozen value that every service gets: database, settings, clock, keys.

Built once at start-up (`roles/composition.py`); nothing below looks for a global. Time and randomness are members, so
that a test can stop the clock or fix the ids.
"""

import asyncio
import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from postroad import config
from postroad.concurrency import fair_semaphore, fair_threads
from postroad.model import actors, caller, fair_shares, identifiers
from postroad.services.acceptance import batch, rate_limit, transaction
from postroad.services.acceptance import queue_limit as acceptance_queue_limit
from postroad.services.auth import access_cache as auth_access_cache
from postroad.services.auth import installation_keys
from postroad.services.auth import passwords as auth_passwords
from postroad.services.domains import dns as domain_dns
from postroad.services.results import outcomes
from postroad.services.sso import providers
from postroad.services.webhooks import client as webhooks_client
from postroad.services.webhooks import outbox as webhook_outbox
from postroad.storage import group_commit
from postroad.storage import store as storage_store
from postroad.telemetry import metrics as telemetry

AcceptCommits = group_commit.Commits[batch.Entry, transaction.Accepted]


def system_clock() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000


@dataclass(frozen=True, slots=True)
class Context:
    """What services work with."""

    settings: config.Settings
    store: storage_store.Store
    keys: installation_keys.Keys
    passwords: auth_passwords.Passwords
    access_cache: auth_access_cache.AccessCache
    rate_limiter: rate_limit.RateLimiter
    queue_limit: acceptance_queue_limit.QueueLimit
    accept_commits: AcceptCommits
    outcome_commits: group_commit.GroupCommit[Sequence[outcomes.Outcome], outcomes.RecordResult]
    outbox: webhook_outbox.Outbox
    webhook_client: webhooks_client.WebhookClient
    sso_providers: providers.Providers
    dns: domain_dns.DomainDns
    clock: Callable[[], int] = system_clock
    entropy: Callable[[int], bytes] = os.urandom
    # Work that would block the event loop, by account. It needs the interpreter lock, so two threads do as much as
    # many, and delay the event loop less. An account has one of them at a time: the other is there for the next.
    threads: fair_threads.FairThreads = field(default_factory=lambda: fair_threads.FairThreads(2, name="work", alpha=1))
    # Generating a key is a quarter of a second of one core: one at a time, whoever registers how many domains.
    key_threads: fair_threads.FairThreads = field(default_factory=lambda: fair_threads.FairThreads(1, name="key"))
    # Messages of up to 10 MiB that are in memory to be shown, by account.
    previews: fair_semaphore.FairSemaphore = field(default_factory=lambda: fair_semaphore.FairSemaphore(8))
    in_flight: set[tuple[str, str]] = field(default_factory=set)
    # Costly work in progress, by kind (services/work_limits.py).
    work_in_progress: dict[str, fair_shares.FairShares] = field(default_factory=dict)
    # Set when mail was queued, so that the engine need not wait for its next poll: by this process, or by another one
    # (roles/wakeups.py). What a frontend accepts is queued by the writer.
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
    """The same context, acting for a user or an API key."""
    kind = actors.Kind.PERSON if who.key is None else actors.Kind.API_KEY
    actor = actors.Actor(kind, who.user_id, request_id, client_address, who)
    return dataclasses.replace(ctx, actor=actor)


def as_operator(ctx: Context) -> Context:
    """The same context, acting for the installation: its caller is an operator, and may change any account."""
    return dataclasses.replace(ctx, actor=dataclasses.replace(ctx.actor, kind=actors.Kind.OPERATOR))
