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
from postroad.services import (
    accepting,
    domain_dns,
    events,
    guarding,
    high_water,
    memory,
    outcomes,
    passwords,
    rates,
    receivers,
    secrets,
)
from postroad.storage import group_commit, opening, store
from postroad.telemetry import metrics as telemetry

Accepting = group_commit.Commits[accepting.Submission, accepting.Accepted]

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
    keys: secrets.Keys
    passwords: passwords.Passwords
    memory: memory.Memory
    rates: rates.Rates
    high_water: high_water.HighWater
    accept: Accepting
    record: group_commit.GroupCommit[Sequence[outcomes.Outcome], outcomes.Recorded]
    outbox: events.Events
    receivers: receivers.Receivers
    dns: domain_dns.DomainDns
    clock: Callable[[], int] = system_clock
    entropy: Callable[[int], bytes] = os.urandom
    in_flight: set[tuple[str, str]] = field(default_factory=set)
    # How much costly work is under way, by its kind and account, and by its kind alone (services/turns.py).
    turns: Counter[tuple[str, str]] = field(default_factory=Counter)
    # Set when mail was queued in this process, so that an engine in the same one need not wait for its next look.
    arrivals: asyncio.Event = field(default_factory=asyncio.Event)
    # The same for events that receivers are to be told.
    tidings: asyncio.Event = field(default_factory=asyncio.Event)
    metrics: telemetry.Metrics = field(default_factory=telemetry.Metrics)
    # For whom services work with this context; a door replaces it for each of its callers (services/journal.py).
    actor: actors.Actor = actors.OPERATOR

    def new_id(self, prefix: str, *, now: int) -> str:
        """A new id of this kind."""
        return identifiers.make(prefix, now=now, entropy=self.entropy(identifiers.ENTROPY_BYTES))


def acting(ctx: Context, who: caller.Caller, *, request_id: str, client_address: str) -> Context:
    """The same context, at work for a person."""
    actor = actors.Actor(actors.Kind.PERSON, who.user_id, request_id, client_address)
    return dataclasses.replace(ctx, actor=actor)


@contextlib.asynccontextmanager
async def open_context(
    settings: config.Settings,
    *,
    clock: Callable[[], int] = system_clock,
    actor: actors.Actor = actors.OPERATOR,
    accepting_by: Callable[[store.Store], Accepting] | None = None,
) -> AsyncIterator[Context]:
    """Open the store and build the context; everything is finished and closed when the block ends.

    `accepting_by` is for a process that lets another one write what it accepts.
    """
    keys = secrets.Keys.derive(config.secret_key(settings.security))
    database = await opening.open_current(
        settings.database.url,
        connections=settings.database.connections,
        migrate=settings.database.migrate_at_start,
    )
    rate = throttle.Policy(rate=settings.limits.request_rate, burst=settings.limits.request_burst)
    policies = accepting.Policies(rate=rate, warmup_caps=settings.warmup.recipients_per_day)
    accept: Accepting = (
        accepting_by(database)
        if accepting_by
        else group_commit.GroupCommit(
            database,
            functools.partial(accepting.accept, policies=policies),
            most_items=BATCH_ITEMS,
            most_waiting=settings.limits.accept_waiting,
            wait_seconds=settings.limits.accept_seconds,
        )
    )
    outbox = events.Events(keys.return_path, settings.delivery.return_path_domain, os.urandom)
    record = group_commit.GroupCommit(
        database,
        functools.partial(outcomes.record, outbox=outbox, guard=guarding.rules_of(settings.bounce_guard)),
        most_items=BATCH_ITEMS,
        most_waiting=settings.limits.accept_waiting,
        wait_seconds=settings.limits.accept_seconds,
    )
    hasher = passwords.Passwords(threads=settings.security.password_threads)
    remembered = memory.Memory(database)
    mark = high_water.HighWater(database, most=settings.limits.queued_recipients)
    told = receivers.Receivers(settings)
    try:
        yield Context(
            settings=settings,
            store=database,
            keys=keys,
            passwords=hasher,
            memory=remembered,
            rates=rates.Rates(rate),
            high_water=mark,
            accept=accept,
            record=record,
            outbox=outbox,
            receivers=told,
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
