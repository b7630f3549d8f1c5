"""The frozen value that every service gets: database, settings, clock, keys.

What it holds it knows as protocols, so that no service imports another one for it. Built once at start-up
(`roles/composition.py`); nothing below looks for a global. Time and randomness are members, so that a test can stop the
clock or fix the ids.
"""

import asyncio
import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from postroad import config, errors
from postroad.concurrency import caches, fairness
from postroad.keys import installation_keys
from postroad.model.delivery import fair_shares, throttle
from postroad.model.domains import domain_records
from postroad.model.events import event_formats as formats
from postroad.model.events import events
from postroad.model.people import callers, login_rules
from postroad.model.units import identifiers
from postroad.network.dns import resolver
from postroad.network.http import guarded_client
from postroad.storage.engine import group_commit
from postroad.storage.engine import store as storage_store
from postroad.storage.mail import webhooks
from postroad.telemetry import metrics as telemetry


class Passwords(Protocol):
    """Hashes and checks passwords (services/people/passwords.py)."""

    async def hash(self, password: str, *, party: str = "", like: str | None = None) -> str: ...
    async def find(self, password: str, hashes: Sequence[str], *, party: str = "") -> int | None: ...
    def is_proven(self, password: str, password_hash: str) -> bool: ...
    def dummy_hash(self, name: str) -> str: ...


class LastUsed(Protocol):
    """Records when a secret, given by its kind and id, was last used."""

    def note(self, used: tuple[str, str], *, now: int) -> None: ...
    async def flush(self) -> None: ...


class LoginFailures(Protocol):
    """Counts failed logins; `attempt` counts one before it is checked, and returns until when it has to wait."""

    async def attempt(self, counters: login_rules.Counters, *, now: int) -> int: ...
    async def check(self, counters: login_rules.Counters, *, now: int, what: str = ...) -> None: ...
    async def withdraw(self, counters: login_rules.Counters, *, now: int) -> None: ...
    async def forgive(self, counters: login_rules.Counters, *, now: int) -> None: ...


class AccessCache(Protocol):
    """Callers and domains that were looked up before (services/people/access_cache.py)."""

    @property
    def last_used(self) -> LastUsed: ...
    @property
    def login_failures(self) -> LoginFailures: ...
    @property
    def password_checks(self) -> caches.SingleFlight: ...
    def get_fresh(self, cache_key: Hashable, *, now: int) -> Any | None: ...  # noqa: ANN401 - facts are of many kinds
    def fresh_entries(self, now: int) -> dict[Hashable, Any] | None: ...
    async def refresh(self, now: int) -> dict[Hashable, Any]: ...
    def invalidate(self) -> None: ...
    def digest(self, secret: str) -> bytes: ...


class RateLimiter(Protocol):
    """The rate of each account in this process (mail/accept/send_limits.py)."""

    policy: throttle.RateLimit

    def take(self, name: str, *, now: int, rate: int | None = None) -> int: ...
    def take_up_to(self, count: int, name: str, *, now: int, rate: int | None = None) -> int: ...
    def give_back(self, count: int, name: str, *, rate: int | None = None) -> None: ...
    def refusal(self, name: str, *, now: int, rate: int | None = None) -> errors.RateLimited: ...
    def learn(self, name: str, full_at: int | None) -> None: ...
    def headers(self, name: str, *, now: int, rate: int | None = None) -> tuple[tuple[str, str], ...]: ...


class QueueLimit(Protocol):
    """Refuses mail while too much of it waits, or the disk is full (mail/accept/queue_limit.py)."""

    def check(self, account_id: str, size: int, *, is_test: bool) -> None: ...
    async def read_disk(self) -> None: ...


class RequestLog(Protocol):
    """Notes requests, which are written later (services/request_log.py)."""

    def note(self, request: callers.FinishedRequest) -> None: ...
    async def flush(self) -> None: ...


class Outbox(Protocol):
    """Writes webhook events in the transaction of what happened (mail/outbox.py)."""

    async def write(
        self,
        tx: storage_store.Transaction,
        happened: Sequence[events.RecipientEvent],
        *,
        endpoints: Mapping[str, Sequence[webhooks.Webhook]] | None = None,
    ) -> int: ...
    async def write_account(self, tx: storage_store.Transaction, happened: Sequence[events.AccountEvent]) -> int: ...


class SsoProviders(Protocol):
    """What OpenID Connect providers publish and answer (services/people/sso_providers.py)."""

    async def metadata(self, registration: login_rules.Registration) -> login_rules.Metadata: ...
    async def exchange(
        self, registration: login_rules.Registration, *, code: str, verifier: str, redirect_uri: str
    ) -> str: ...
    async def verify(
        self, registration: login_rules.Registration, text: str, *, nonce: str, groups_claim: str, now: int
    ) -> login_rules.Person: ...


class DomainDns(Protocol):
    """Queries the DNS records of sender domains (services/domains/domain_dns.py)."""

    check_requested_at: caches.LruCache[tuple[str, str], int]

    async def service(self) -> domain_records.Service: ...
    async def check(
        self, record: domain_records.Record, *, domain: str, account_id: str = ""
    ) -> domain_records.Finding: ...
    async def txt(self, name: str, *, party: str) -> tuple[str, ...] | None: ...
    def turn(self, *, party: str) -> contextlib.AbstractAsyncContextManager[resolver.Resolver]: ...


def system_clock() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000


@dataclass(frozen=True, slots=True)
class Context:
    """What services work with."""

    settings: config.Settings
    store: storage_store.Store
    keys: installation_keys.Keys
    passwords: Passwords
    access_cache: AccessCache
    rate_limiter: RateLimiter
    queue_limit: QueueLimit
    # Of what is accepted (`transaction.Entry` in mail/accept), and of outcomes that mail/results/outcomes.py records.
    accept_commits: group_commit.Commits[Any, Any]
    outcome_commits: group_commit.GroupCommit[Any, Any]
    outbox: Outbox
    request_log: RequestLog
    webhook_client: guarded_client.WebhookClient
    sso_providers: SsoProviders
    dns: DomainDns
    # The formats of webhook events that extensions have.
    event_formats: formats.Formats = field(default_factory=dict)
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


def as_person(ctx: Context, user_id: str) -> Context:
    """The same context, acting for whoever has proved to be this user."""
    return dataclasses.replace(
        ctx, actor=dataclasses.replace(ctx.actor, kind=callers.ActorKind.PERSON, user_id=user_id)
    )


def as_operator(ctx: Context) -> Context:
    """The same context, acting for the installation: its caller is an operator, and may change any account."""
    return dataclasses.replace(ctx, actor=dataclasses.replace(ctx.actor, kind=callers.ActorKind.OPERATOR))
