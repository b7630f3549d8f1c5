"""The frozen value that every service gets: database, settings, clock, keys.

Built once at start-up (`roles/composition.py`); nothing below looks for a global. Time and randomness are members, so
that a test can stop the clock or fix the ids.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from postroad import config
from postroad.concurrency import fairness
from postroad.keys import installation_keys
from postroad.model.delivery import fair_shares
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.network.http import guarded_client as webhooks_client
from postroad.storage.engine import group_commit
from postroad.storage.engine import store as storage_store
from postroad.telemetry import metrics as telemetry

if TYPE_CHECKING:
    from postroad.mail import outbox as webhook_outbox
    from postroad.mail.accept import batch, send_limits, transaction
    from postroad.mail.accept import queue_limit as acceptance_queue_limit
    from postroad.mail.results import outcomes
    from postroad.services.domains import domain_dns
    from postroad.services.people import access_cache as auth_access_cache
    from postroad.services.people import passwords as auth_passwords
    from postroad.services.people import sso_providers as providers

AcceptCommits: TypeAlias = "group_commit.Commits[batch.Entry, transaction.Accepted]"


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
    rate_limiter: send_limits.RateLimiter
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
    threads: fairness.FairThreads = field(default_factory=lambda: fairness.FairThreads(2, name="work", alpha=1))
    # Generating a key is a quarter of a second of one core: one at a time, whoever registers how many domains.
    key_threads: fairness.FairThreads = field(default_factory=lambda: fairness.FairThreads(1, name="key"))
    # Messages of up to 10 MiB that are in memory to be shown, by account.
    previews: fairness.FairSemaphore = field(default_factory=lambda: fairness.FairSemaphore(8))
    in_flight: set[tuple[str, str]] = field(default_factory=set)
    # Costly work in progress, by kind (services/usage_limits.py).
    work_in_progress: dict[str, fair_shares.FairShares] = field(default_factory=dict)
    # Set when mail was queued, so that the engine need not wait for its next poll: by this process, or by another one
    # (roles/background.py). What a frontend accepts is queued by the writer.
    mail_wakeup: asyncio.Event = field(default_factory=asyncio.Event)
    # The same for webhook events.
    webhook_wakeup: asyncio.Event = field(default_factory=asyncio.Event)
    metrics: telemetry.Metrics = field(default_factory=telemetry.Metrics)
    # The actor of changes; each request replaces it with its caller (services/audit_log.py).
    actor: callers.Actor = callers.OPERATOR

    def new_id(self, prefix: str, *, now: int) -> str:
        """A new id of this kind."""
        return identifiers.make(prefix, now=now, entropy=self.entropy(identifiers.ENTROPY_BYTES))


def acting_as(ctx: Context, who: callers.Caller, *, request_id: str, client_address: str) -> Context:
    """The same context, acting for a user or an API key."""
    kind = callers.ActorKind.PERSON if who.key is None else callers.ActorKind.API_KEY
    actor = callers.Actor(kind, who.user_id, request_id, client_address, who)
    return dataclasses.replace(ctx, actor=actor)


def as_operator(ctx: Context) -> Context:
    """The same context, acting for the installation: its caller is an operator, and may change any account."""
    return dataclasses.replace(ctx, actor=dataclasses.replace(ctx.actor, kind=callers.ActorKind.OPERATOR))
