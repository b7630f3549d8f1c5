"""From results to records: the outcome of each recipient, the time of the next attempt, and the lease until then.

A result is never dropped: while the database is unavailable it is kept and submitted again. How many may wait is
bounded; beyond that workers stop sending, so that a crash leaves few results in doubt. Only a stop ends the waiting:
results that cannot be recorded within the grace period are left to the expiry of their leases.
"""

import asyncio
import collections
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from postroad import context, errors
from postroad.delivery import attempter, controls, routing
from postroad.mail.results import guard_counts, outcomes
from postroad.model.bounces import disposition as bounces_disposition
from postroad.model.bounces import reasons
from postroad.model.delivery import fair_shares, providers, retry
from postroad.model.mail import limits, simulated_outcomes, statuses
from postroad.model.units import identifiers, times
from postroad.protocol.smtp import values
from postroad.services.queue import sources
from postroad.storage.engine import group_commit, store
from postroad.storage.mail import attempts, queue
from postroad.telemetry import logs

# A renewal may fail twice before a lease expires.
RENEWALS_PER_LEASE: Final = 3
# Leases renewed or released in one transaction, which stays short.
BATCH_LEASES: Final = 500
# Enough to keep 1,000 connections busy.
MAX_LEASES: Final = 20_000
# An account alone gets four fifths of them, and a few more for urgent mail.
URGENT_ALPHA: Final = 2 * fair_shares.ALPHA


class Leases:
    """The claims of one worker: renewed while mail is under way, and released on a stop.

    An expired lease frees its recipient for other workers. That happens only when this process is dead or stalled,
    or the database was unavailable for longer than a lease. After that, this worker begins nothing that others may
    have claimed.

    Accounts share the leases: what waits in memory for a connection is bounded, however many destinations it is
    for.
    """

    def __init__(
        self, database: store.Store, *, worker: str, seconds: int, clock: Callable[[], int], log: logs.Logger
    ) -> None:
        self.worker = worker
        # Whether the queue may have ready recipients that this worker could not claim, or that it has released. If not,
        # free capacity is no reason to look at it.
        self.leaves_ready = True
        self._database = database
        self._seconds = seconds
        self._clock = clock
        self._log = log
        self._held: dict[queue.Key, int] = {}  # expiry
        self._shares = fair_shares.FairShares(MAX_LEASES)
        self._reserved: collections.Counter[str] = collections.Counter()

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __len__(self) -> int:
        return len(self._held)

    def until(self) -> int:
        """When a lease that begins now ends."""
        return self._clock() + self._seconds * times.SECOND

    def room(self, account_id: str, alpha: float = fair_shares.ALPHA) -> int:
        """How many more messages of an account may be claimed: each may bring all of its recipients."""
        return self._shares.room(fair_shares.Party(account_id, alpha)) // limits.UNIQUE_RECIPIENTS

    def with_room(self, account_ids: Iterable[str]) -> set[str]:
        """The accounts of which a message may be claimed."""
        return self._shares.with_room(account_ids, limits.UNIQUE_RECIPIENTS)

    def reserve(self, account_id: str, messages: int, alpha: float = fair_shares.ALPHA) -> int:
        """How many messages of an account may be claimed, at most so many; they count until `end_reservations`."""
        messages = min(messages, self.room(account_id, alpha))
        if messages > 0:
            self._reserved[account_id] += messages * limits.UNIQUE_RECIPIENTS
            self._shares.add((fair_shares.Party(account_id),), messages * limits.UNIQUE_RECIPIENTS)
        return messages

    def end_reservations(self) -> None:
        """The claims for which there were reservations are held now, or were not made."""
        for account_id, units in self._reserved.items():
            self._shares.give_back((fair_shares.Party(account_id),), units)
        self._reserved.clear()

    def take(self, claims: Iterable[queue.Claimed]) -> list[queue.Claimed]:
        """Hold claims; returns the new ones. One that is held already was claimed again after a late renewal."""
        until = self.until()
        taken = list(claims)
        new = [claim for claim in taken if claim.key not in self._held]
        for account_id, units in collections.Counter([claim.account_id for claim in new]).items():
            self._shares.add((fair_shares.Party(account_id),), units)
        self._held.update(dict.fromkeys([claim.key for claim in taken], until))
        return new

    def is_safe(self, key: queue.Key, *, now: int) -> bool:
        """Whether delivery may begin: its renewal is not overdue, so no other worker has claimed it."""
        return self._held.get(key, 0) > now + self._seconds * times.SECOND // RENEWALS_PER_LEASE

    def drop(self, keys: Iterable[queue.Key]) -> None:
        dropped = [key[0] for key in keys if self._held.pop(key, None) is not None]
        for account_id, units in collections.Counter(dropped).items():
            self._shares.give_back((fair_shares.Party(account_id),), units)

    async def release(self, keys: Sequence[queue.Key]) -> None:
        """Release recipients that were not attempted: nothing is counted, and they can be claimed at once."""
        self.drop(keys)
        try:
            for batch in _batches(keys):
                async with self._database.transaction() as tx:
                    await queue.release(tx, batch, now=self._clock(), worker=self.worker)
        except store.UNAVAILABLE as error:
            # They are claimed again when the lease expires.
            self._log.warning("lease_release_failed", recipients=len(keys), error=error.message)
        self.leaves_ready = True  # now, because a look at the queue may have ended meanwhile

    async def renew_forever(self) -> None:
        """Renew the held leases until cancelled."""
        while True:
            await asyncio.sleep(self._seconds / RENEWALS_PER_LEASE)
            try:
                await self._renew()
            except errors.PostroadError as error:
                self._log.warning("lease_renewal_failed", recipients=len(self._held), error=error.message)

    async def _renew(self) -> None:
        for batch in _batches(list(self._held)):
            until = self.until()
            async with self._database.transaction() as tx:
                extended = await queue.extend(tx, batch, lease_until=until, worker=self.worker)
            self._held.update((key, until) for key in extended if key in self._held)


def _batches(keys: Sequence[queue.Key]) -> Iterator[Sequence[queue.Key]]:
    for first in range(0, len(keys), BATCH_LEASES):
        yield keys[first : first + BATCH_LEASES]


# Different messages that were refused in a row, or domains with mailboxes of their own.
MIN_MESSAGES: Final = 5


class SourceGuard:
    """Notices by its replies that a provider blocks a source address, and pauses the address for that provider.

    Only replies of providers with names count, whose mail servers nobody can imitate, and only a row of them that
    no accepted message interrupts, for several messages: one recipient or one message proves nothing. The owner of
    a domain whose mailboxes a provider hosts chooses whom it refuses, and in which words, so such a domain counts
    once.
    """

    def __init__(self, ctx: context.Context, log: logs.Logger) -> None:
        self._ctx = ctx
        self._log = log
        self._refused: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
        self._tasks: set[asyncio.Task[None]] = set()

    def count(self, attempt: attempts.Attempt, email_key: str) -> None:
        """An attempt for a recipient, from a source address, has ended."""
        pair = (attempt.source, providers.label_of(attempt.provider_queue))
        if pair[1] not in providers.NAMES:
            return
        if attempt.verdict == bounces_disposition.Verdict.DELIVERED:
            self._refused.pop(pair, None)
        elif attempt.reason == reasons.IP_BLOCKED and attempt.smtp_code is not None:
            domain = email_key.rpartition("@")[2]
            self._refused[pair].add(attempt.message_id if domain in providers.MAILBOX_DOMAINS else domain)
            if len(self._refused[pair]) >= MIN_MESSAGES:
                del self._refused[pair]
                task = asyncio.get_running_loop().create_task(self._pause(*pair, attempt.response))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _pause(self, source: str, provider: str, reply: str) -> None:
        try:
            await sources.pause_blocked(self._ctx, source, provider, reply)
        except errors.PostroadError as problem:
            # Refusals go on, and are counted again.
            self._log.warning("source_pause_failed", source=source, provider=provider, error=problem.message)
        else:
            self._log.warning("source_paused", source=source, provider=provider, error=reply)


# Deliveries whose record is not durable yet: with those under way, the most that a crash can leave in doubt.
MAX_UNRECORDED: Final = 256
# What a recipient shows that expired before a destination has said anything.
EXPIRED: Final = "not attempted before it expired"


# Host, reason and provider queue of what was decided without an attempt.
NO_ATTEMPT: Final = ("", "", "")


Simulated = tuple[queue.Claimed, simulated_outcomes.SimulatedAttempt]


class AttemptInfo(msgspec.Struct, frozen=True):
    """Where and when an attempt was made; empty names when there was no connection."""

    provider_queue: str
    started_at: int
    ended_at: int
    host: str = ""
    address: str = ""
    tls: str = ""
    recipient_count: int = 0
    conversation: str = ""
    source: str = ""


class Recorder:
    """Records outcomes, and retries until it succeeds.

    The results of an account that arrive in one turn of the event loop are recorded, logged and counted together.
    """

    def __init__(self, ctx: context.Context, leases: Leases, sources: controls.SourceTable, log: logs.Logger) -> None:
        self._ctx = ctx
        self._leases = leases
        self._sources = sources
        self._log = log
        self._warnings = logs.LimitedWarnings(log, ctx.clock)
        self._schedule = ctx.settings.delivery.retry_seconds
        self._test_schedule = retry.test_schedule(self._schedule)
        self._unrecorded = 0
        self._has_room = asyncio.Event()
        self._is_unlimited = False
        self._gathered: dict[str, list[outcomes.Outcome]] = {}  # by account
        self._source_guard = SourceGuard(ctx, log)
        self._retrying_commits: group_commit.RetryingCommits[Sequence[outcomes.Outcome], outcomes.RecordResult] = (
            group_commit.RetryingCommits(ctx.outcome_commits, settled=self._settled, refused=self._refused)
        )

    async def record_attempt(
        self, job: attempter.Job, job_result: attempter.JobResult, *, provider_queue: str, started_at: int
    ) -> None:
        """Record the result of a job; returns when it is submitted."""
        attempt_info = AttemptInfo(
            providers.attributed_queue(provider_queue, queue.domain_of(job.claim.queue_key)),
            started_at,
            self._ctx.clock(),
            job_result.host,
            job_result.address,
            job_result.tls,
            job.recipient_count,
            job_result.conversation,
            job.route.source,
        )
        disposition = job_result.disposition
        if job.route.source:
            disposition = self._for_source(job.claim, disposition, job.route)
        outcome = self._outcome(job.claim, job_result.result, disposition, attempt_info)
        if self._unrecorded >= MAX_UNRECORDED:
            await self._wait_for_room()
        self._unrecorded += 1
        if not self._gathered:
            asyncio.get_running_loop().call_soon(self._submit_gathered)
        self._gathered.setdefault(job.account_id, []).append(outcome)

    async def record_simulated(self, attempted: Sequence[Simulated], *, started_at: int) -> None:
        now = self._ctx.clock()
        await self.record(
            [
                self._outcome(
                    claim,
                    attempt.result,
                    bounces_disposition.classify(attempt.result),
                    AttemptInfo(providers.SIMULATOR, started_at, now, attempt.host),
                )
                for claim, attempt in attempted
            ]
        )

    async def record_unroutable(self, claims: Sequence[queue.Claimed], result: values.RecipientResult) -> None:
        """Record a failure before any connection: no route, no content or an internal error."""
        disposition = bounces_disposition.classify(result)
        now = self._ctx.clock()
        attempt_info = AttemptInfo("", now, now)
        await self.record([self._outcome(claim, result, disposition, attempt_info) for claim in claims])

    async def record_without_attempt(
        self,
        claims: Sequence[queue.Claimed],
        verdict: bounces_disposition.Verdict,
        responses: Sequence[str],
        *,
        cause: str | None = None,
    ) -> None:
        """Record a result that was decided without an attempt."""
        now = self._ctx.clock()
        await self.record(
            [
                outcomes.Outcome(
                    key=claim.key,
                    email_key=claim.email_key,
                    recipient_count=0,
                    verdict=verdict,
                    status=outcomes.STATUS[verdict],
                    smtp_code=None,
                    response=response,
                    at=now,
                    ledger_id=self._ctx.new_id(identifiers.LEDGER, now=now),
                    worker=self._leases.worker,
                    cause=cause,
                )
                for claim, response in zip(claims, responses, strict=True)
            ]
        )

    async def record_expired(self, expired: Sequence[queue.Expired]) -> None:
        """Record recipients whose time is over; the destination's last reply stays."""
        now = self._ctx.clock()
        await self.record(
            [
                outcomes.Outcome(
                    key=recipient.claim.key,
                    email_key=recipient.claim.email_key,
                    recipient_count=0,
                    verdict=bounces_disposition.Verdict.FAILED,
                    status=statuses.RecipientStatus.EXPIRED,
                    smtp_code=recipient.smtp_code,
                    response=recipient.response or EXPIRED,
                    at=now,
                    ledger_id=self._ctx.new_id(identifiers.LEDGER, now=now),
                    worker=self._leases.worker,
                )
                for recipient in expired
            ]
        )

    async def record(self, ended: Sequence[outcomes.Outcome]) -> None:
        """Record outcomes; waits while too many others are unrecorded."""
        await self._wait_for_room()
        self._unrecorded += len(ended)
        self._submit(ended)

    async def _wait_for_room(self) -> None:
        while self._unrecorded >= MAX_UNRECORDED and not self._is_unlimited:
            self._has_room.clear()
            await self._has_room.wait()

    def _submit_gathered(self) -> None:
        gathered, self._gathered = self._gathered, {}
        for ended in gathered.values():
            self._submit(ended)

    def _submit(self, ended: Sequence[outcomes.Outcome]) -> None:
        self._ctx.metrics.unrecorded.change(len(ended))
        self._retrying_commits.submit(ended, party=ended[0].key[0], count=len(ended))

    def lift_limit(self) -> None:
        """Wait no more: after a stop nothing is begun, and each connection has at most one more result."""
        self._is_unlimited = True
        self._has_room.set()

    async def close(self, *, seconds: float) -> None:
        """Wait until everything is recorded, at most this long."""
        self._submit_gathered()
        if await self._retrying_commits.close(seconds=seconds):
            self._log.warning("results_abandoned", results=self._unrecorded)
        await self._source_guard.close()

    def _settled(self, ended: Sequence[outcomes.Outcome], outcome: outcomes.RecordResult | Exception) -> None:
        self._ctx.metrics.unrecorded.change(-len(ended))
        if isinstance(outcome, Exception):
            if len(ended) > 1:  # a bug, which one of them may have caused
                for each in ended:
                    self._submit([each])
                return
            # The lease expires, and the recipient is attempted again.
            self._log.error("results_recording_failed", message_ids=[ended[0].key[1]], exc_info=outcome)
        else:
            if outcome.events:
                self._ctx.webhook_wakeup.set()
            self._log_outcomes(ended)
            guard_counts.report_notices(outcome.notices, log=self._log, counted=self._ctx.metrics)
        self._leases.drop([settled.key for settled in ended])
        self._unrecorded -= len(ended)
        self._has_room.set()

    def _refused(self, _waiting: int, error: errors.PostroadError) -> None:
        self._log.warning("results_recording_deferred", results=self._unrecorded, error=error.code)

    def _for_source(
        self, claim: queue.Claimed, disposition: bounces_disposition.Disposition, route: routing.Route
    ) -> bounces_disposition.Disposition:
        """A refusal of the source address does not end a message that may leave from another one."""
        pair = (route.source, route.provider_queue)
        if disposition.reason != reasons.IP_BLOCKED:
            if disposition.verdict is bounces_disposition.Verdict.DELIVERED:
                self._sources.note_delivery(*pair)
            return disposition
        self._sources.note_refusal(*pair)
        is_final = disposition.verdict is bounces_disposition.Verdict.BOUNCED
        if not is_final or not self._sources.has_other(*pair) or self._delay(claim, disposition) is None:
            return disposition
        return msgspec.structs.replace(disposition, verdict=bounces_disposition.Verdict.RETRY)

    def _outcome(
        self,
        claim: queue.Claimed,
        result: values.RecipientResult,
        disposition: bounces_disposition.Disposition,
        attempt_info: AttemptInfo,
    ) -> outcomes.Outcome:
        now, key = attempt_info.ended_at, claim.key
        verdict, next_attempt_at = disposition.verdict, None
        if verdict is bounces_disposition.Verdict.RETRY:
            verdict, next_attempt_at = self._after_failure(claim, disposition, now)
        is_configuration = disposition.is_configuration
        if is_configuration:
            # What is about a host or an upstream concerns its provider queue; the rest has its own sentence.
            name = attempt_info.provider_queue or result.response_text
            self._warnings.warning(
                "configuration_fault",
                name,
                provider_queue=attempt_info.provider_queue,
                error=f"{result.reply.code} {result.response_text}" if result.reply else result.response_text,
            )
        is_delivered = verdict is bounces_disposition.Verdict.DELIVERED
        code = result.reply.code if result.reply else None
        response = result.response_text
        return outcomes.Outcome(
            key=key,
            email_key=claim.email_key,
            recipient_count=attempt_info.recipient_count,
            verdict=verdict,
            status=outcomes.STATUS[verdict],
            smtp_code=code,
            response=response,
            at=now,
            ledger_id=self._ctx.new_id(identifiers.LEDGER, now=now),
            worker=self._leases.worker,
            next_attempt_at=next_attempt_at,
            keeps_schedule=is_configuration,
            suppress=result.reply is not None and not is_delivered and self._suppresses(verdict, disposition),
            attempt=attempts.Attempt(
                *key,
                started_at=attempt_info.started_at,
                duration=now - attempt_info.started_at,
                provider_queue=attempt_info.provider_queue,
                host=attempt_info.host,
                address=attempt_info.address,
                tls=attempt_info.tls,
                stage=result.stage,
                verdict=verdict,
                fault=disposition.fault,
                reason=disposition.reason,
                smtp_code=code,
                enhanced_code=result.reply.enhanced if result.reply else "",
                response=response,
                in_doubt=int(result.in_doubt),
                source=attempt_info.source,
            ),
            conversation="" if is_delivered else attempt_info.conversation,
            # A clock that was set back gives no negative time.
            delivery_time=max(0, now - claim.queued_at) if is_delivered else 0,
        )

    def _after_failure(
        self, claim: queue.Claimed, disposition: bounces_disposition.Disposition, now: int
    ) -> tuple[bounces_disposition.Verdict, int | None]:
        """The verdict on a temporary failure, and the time of the next attempt."""
        wait = self._delay(claim, disposition)
        if wait is None:
            return bounces_disposition.Verdict.FAILED, None
        if claim.expires_at is not None:
            wait = retry.before_expiry(wait, left=claim.expires_at - now, retry_after=disposition.retry_after)
        return bounces_disposition.Verdict.RETRY, now + wait

    def _delay(self, claim: queue.Claimed, disposition: bounces_disposition.Disposition) -> int | None:
        random_fraction = random.random()  # noqa: S311 - jitter
        if disposition.is_configuration:
            return retry.configuration_delay(self._schedule, random_fraction=random_fraction)
        attempts, retry_after = claim.attempt_count + 1, disposition.retry_after
        if claim.simulation is not None:
            return retry.delay(self._test_schedule, attempts, random_fraction=random_fraction, retry_after=None)
        if claim.is_urgent:
            return retry.urgent_delay(attempts, random_fraction=random_fraction, retry_after=retry_after)
        return retry.delay(self._schedule, attempts, random_fraction=random_fraction, retry_after=retry_after)

    def _suppresses(self, verdict: bounces_disposition.Verdict, disposition: bounces_disposition.Disposition) -> bool:
        """Only the receiving server's reply counts: a domain that is missing in DNS today may be back tomorrow."""
        addressed = (
            verdict is bounces_disposition.Verdict.BOUNCED and disposition.fault is bounces_disposition.Fault.ADDRESS
        )
        return addressed and self._ctx.settings.testing.suppress

    def _log_outcomes(self, ended: Sequence[outcomes.Outcome]) -> None:
        counts: collections.Counter[tuple[str, str, str, str, str]] = collections.Counter()
        labels: dict[str, str] = {}
        for outcome in ended:
            attempt = outcome.attempt
            host, reason, provider_queue = (
                (attempt.host, attempt.reason, attempt.provider_queue) if attempt else NO_ATTEMPT
            )
            self._log.info(
                f"recipient_{outcome.status}",
                message_id=outcome.key[1],
                recipient_id=outcome.key[2],
                host=host,
                smtp_code=outcome.smtp_code,
                reason=reason,
                in_doubt=bool(attempt and attempt.in_doubt),
            )
            if provider_queue == providers.SIMULATOR:
                continue
            if (provider := labels.get(provider_queue)) is None:
                provider = labels[provider_queue] = providers.label_of(provider_queue)
            if attempt:
                counts[provider, outcome.status, outcome.verdict, attempt.fault or "", reason] += 1
                self._ctx.metrics.attempt_seconds.observe(attempt.duration / times.SECOND, provider)
                if attempt.source:
                    self._count_source(attempt, outcome, provider)
            elif outcome.verdict is not bounces_disposition.Verdict.RETRY:
                self._ctx.metrics.recipients.add(provider, outcome.status)
        for (provider, status, verdict, fault, reason), count in counts.items():
            self._ctx.metrics.attempts.add(verdict, fault, reason, count=count)
            if verdict != bounces_disposition.Verdict.RETRY:
                self._ctx.metrics.recipients.add(provider, status, count=count)

    def _count_source(self, attempt: attempts.Attempt, outcome: outcomes.Outcome, provider: str) -> None:
        self._source_guard.count(attempt, outcome.email_key)
        self._ctx.metrics.source_attempts.add(attempt.source, provider, outcome.verdict, attempt.reason)
