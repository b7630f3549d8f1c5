"""Builds the parts of a process and hands them to its services as one Context."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable

from postroad import config, context, extensions
from postroad.keys import installation_keys, key_check
from postroad.mail import outbox as webhook_outbox
from postroad.mail.accept import queue_limit, send_limits, transaction
from postroad.mail.results import outcomes
from postroad.model.delivery import throttle
from postroad.model.events import event_formats
from postroad.model.people import callers
from postroad.network.http import guarded_client
from postroad.services import request_log
from postroad.services.domains import domain_dns
from postroad.services.people import access_cache, passwords, sso_providers
from postroad.storage.engine import group_commit, open_store
from postroad.telemetry import logs

# Bounds a batch so that one commit stays short: the first submission waits for the last.
BATCH_ITEMS = 256


@contextlib.asynccontextmanager
async def open_context(
    settings: config.Settings,
    *,
    clock: Callable[[], int] = context.system_clock,
    actor: callers.Actor = callers.OPERATOR,
    accept_commits: transaction.AcceptCommits | None = None,
    password_threads: int = passwords.THREADS,
    log: logs.Logger | None = None,
) -> AsyncIterator[context.Context]:
    """Open the database and build the context; everything is closed when the block ends.

    `accept_commits` is for a process whose accepted mail another process writes. Migrations, and a disk that fills up,
    are written to `log`.
    """
    keys = installation_keys.Keys.derive(config.installation_key(settings.security))
    database = await open_store.open_current(
        settings.database.url,
        connections=settings.database.connections,
        migrate=settings.database.migrate_at_start,
        log=log,
    )
    try:
        keys = await key_check.admit(database, keys)
    except BaseException:
        await database.close()
        raise
    limiter = send_limits.RateLimiter(
        throttle.RateLimit(rate=settings.limits.request_rate, burst=settings.limits.request_burst)
    )

    formats = {part.name: part for part in extensions.parts("event_formats", event_formats.EventFormat)}
    outbox = webhook_outbox.Outbox(keys.return_path, settings.delivery.return_path_domain, os.urandom, formats)
    mail_wakeup = asyncio.Event()
    accept = accept_commits or group_commit.GroupCommit(
        database,
        transaction.accepting(settings, limiter, clock, outbox),
        max_items=BATCH_ITEMS,
        max_waiting=settings.testing.accept_waiting,
        wait_seconds=settings.testing.accept_seconds,
        answered=mail_wakeup.set,
    )
    record = group_commit.GroupCommit(
        database,
        outcomes.recording(settings, outbox),
        max_items=BATCH_ITEMS,
        max_waiting=settings.testing.accept_waiting,
        wait_seconds=settings.testing.accept_seconds,
    )
    hasher = passwords.Passwords(threads=password_threads)
    cache = access_cache.AccessCache(database)
    queue_limiter = queue_limit.QueueLimit(database, settings, clock, log)
    client = guarded_client.WebhookClient(settings)
    providers = sso_providers.Providers(settings, client)
    requests = request_log.RequestLog(database)
    ctx = context.Context(
        settings=settings,
        store=database,
        keys=keys,
        passwords=hasher,
        access_cache=cache,
        rate_limiter=limiter,
        queue_limit=queue_limiter,
        accept_commits=accept,
        outcome_commits=record,
        outbox=outbox,
        request_log=requests,
        webhook_client=client,
        sso_providers=providers,
        dns=domain_dns.DomainDns(settings),
        event_formats=formats,
        clock=clock,
        mail_wakeup=mail_wakeup,
        actor=actor,
    )
    try:
        yield ctx
    finally:
        ctx.threads.close()
        ctx.key_threads.close()
        await accept.close()
        await record.close()
        await cache.close()
        await requests.close()
        await queue_limiter.close()
        await providers.close()
        await client.close()
        await hasher.close()
        await database.close()
