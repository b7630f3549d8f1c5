"""Sends the TLS reports that are due (RFC 8460), to the URIs that the domain publishes at that time.

A report is claimed by moving its time ahead, so hosts share the work and one that dies loses none: the claim expires.
A report that is sent twice for that reason has the same id, and its mail the same idempotency key. Over HTTPS a report
passes the SSRF guard of webhooks. By mail it is a message of the account that has verified the domain of
`tls_reports.from`: signed, queued, retried and charged like any other. The owner of a domain can name any receiver, so
a mailbox and a host get a limited number of reports.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final
from urllib import parse

import msgspec

from postroad import context, errors
from postroad.concurrency import caches
from postroad.mail.accept import submit_mime
from postroad.model.bounces import bounce_guard
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.network.dns import resolver
from postroad.protocol.dns import mta_sts
from postroad.protocol.mime import builder
from postroad.protocol.reports import tls_report
from postroad.services.domains import domain_registry as domains
from postroad.storage.mail import tls_policies as stored_reports
from postroad.telemetry import logs

# When the report of a day is sent: at a random time in the hours after midnight UTC, and again while it fails.
#
# RFC 8460 section 4.1 asks for whole days and for a spread, so that no receiver gets all its reports at once.

# Processes store their counts once a minute. What is not stored by then is not in the report.
LATE: Final = 10 * 60 * times.SECOND
FIRST_REPORT: Final = 15 * 60 * times.SECOND
SPREAD: Final = 4 * times.HOUR
# 22 hours in total (section 5.4 asks for no more than a day); then the report is dropped.
RETRY_DELAYS: Final = (
    15 * 60 * times.SECOND,
    45 * 60 * times.SECOND,
    2 * times.HOUR,
    4 * times.HOUR,
    6 * times.HOUR,
    9 * times.HOUR,
)


def is_late(day: int, *, now: int) -> bool:
    """Whether results of a day can no longer be added."""
    return now >= (day + 1) * times.DAY + LATE


def due_at(day: int, *, entropy: Callable[[int], bytes]) -> int:
    """When the report of a day is sent."""
    chance = int.from_bytes(entropy(8), "big") % SPREAD
    return (day + 1) * times.DAY + FIRST_REPORT + chance


def next_try_at(attempt_count: int, *, now: int) -> int | None:
    """When a report is tried again after so many attempts; None after the last one."""
    return now + RETRY_DELAYS[attempt_count - 1] if attempt_count <= len(RETRY_DELAYS) else None


USER_AGENT: Final = "Service-TLS-Report/1.0"
# Reports being sent; each waits for a name server or an endpoint, not for this host.
MAX_CONCURRENT_REPORTS: Final = 20
# Far longer than a report takes.
CLAIM_DURATION: Final = 10 * 60 * times.SECOND
# Name servers that never answer must not keep other domains waiting for their reports: 20,000 of them take three hours.
QUERY_SECONDS: Final = 4.0
TRY_SECONDS: Final = 1.5
MAX_LOOKUPS: Final = 3
# Whoever owns many domains could otherwise have them all report to somebody else. A host may receive the reports of
# many domains for their owners, and a request is less of a burden than mail.
MAX_MAILS_PER_MAILBOX: Final = 100
MAX_POSTS_PER_HOST: Final = 1_000
MAX_RECEIVERS: Final = 10_000
# Of the 4xx responses, these are about the moment, not about the request.
RETRIED_STATUSES: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


class _Failure(msgspec.Struct, frozen=True):
    """Why a report was not sent to a URI, and whether trying again can help."""

    error: str
    is_final: bool = False


class Reporter:
    """Sends reports; one instance per process."""

    def __init__(self, ctx: context.Context, log: logs.Logger) -> None:
        self._ctx = ctx
        self._log = log
        self._settings = ctx.settings.tls_reports
        self._resolver = resolver.Resolver(
            ctx.settings.delivery.resolvers, try_seconds=TRY_SECONDS, query_seconds=QUERY_SECONDS
        )
        # How many reports of a day a mailbox or a host was sent.
        self._counts: caches.LruCache[tuple[int, str], int] = caches.LruCache(MAX_RECEIVERS)

    async def report_due(self) -> int:
        """Send due reports until none is left; returns how many were due. It may be cancelled at any moment.

        When one ends the next begins, so that a slow receiver delays no other.
        """
        total = 0
        running: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as tasks:
            while True:
                now = self._ctx.clock()
                free = MAX_CONCURRENT_REPORTS - len(running)
                async with self._ctx.store.transaction() as tx:
                    claimed = await stored_reports.claim_due_report(tx, now=now, until=now + CLAIM_DURATION, limit=free)
                running |= {tasks.create_task(self._report(due)) for due in claimed}
                total += len(claimed)
                if not running:
                    return total
                _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)

    async def _report(self, due: stored_reports.DueReport) -> None:
        """Send one report. A bug does not affect the others, and the report is due again when the claim expires."""
        try:
            answer = await self._resolver.txt(mta_sts.report_record_name(due.domain))
            if isinstance(answer, resolver.Failure):
                await self._finish(due, due.sent.split("\n"), is_complete=due.attempt_count >= MAX_LOOKUPS)
                return
            uris = mta_sts.report_uris(answer.records)
            done = await self._send_everywhere(due, uris) if uris else []
            await self._finish(due, done, is_complete=len(done) == len(uris))
        except errors.PostroadError as trouble:
            self._log.warning("tls_report_deferred", domain=due.domain, error=trouble.message)
        except Exception:  # noqa: BLE001 - logged; the report stays due
            self._log.exception("tls_report_deferred", domain=due.domain)

    async def _send_everywhere(self, due: stored_reports.DueReport, uris: Sequence[str]) -> list[str]:
        """Send to every URI that is not done; returns those that are: they have the report, or never accept it."""
        async with self._ctx.store.reading() as tx:
            sessions = await stored_reports.sessions(tx, due)
        sender = self._settings.sender
        # The domain names the organization: programs read the reports.
        report = tls_report.Report(sender.rpartition("@")[2], sender, due.domain, due.day, sessions)
        before = due.sent.split("\n")
        is_last = next_try_at(due.attempt_count, now=0) is None
        done = [uri for uri in uris if uri in before]
        for uri in uris:
            if uri in before:
                continue
            transport = "mail" if uri.startswith(mta_sts.MAILTO) else "https"
            failure = await (self._mail if transport == "mail" else self._post)(report, uri)
            if failure is None:
                self._ctx.metrics.tls_reports.add(transport, "sent")
                self._log.info("tls_report_sent", domain=due.domain, uri=uri, report_id=report.id)
                done.append(uri)
                continue
            retries = not is_last and not failure.is_final
            self._ctx.metrics.tls_reports.add(transport, "retried" if retries else "failed")
            self._log.warning("tls_report_failed", domain=due.domain, uri=uri, error=failure.error, retries=retries)
            if failure.is_final:
                done.append(uri)
        return done

    async def _finish(self, due: stored_reports.DueReport, done: Sequence[str], *, is_complete: bool) -> None:
        """Remove a report that is done or was tried often enough, and postpone any other."""
        retry_at = None if is_complete else next_try_at(due.attempt_count, now=self._ctx.clock())
        async with self._ctx.store.transaction() as tx:
            if retry_at is None:
                await stored_reports.remove_report(tx, due)
            else:
                await stored_reports.postpone_report(tx, due, due_at=retry_at, done=done)

    def _refuse(self, report: tls_report.Report, receiver: str, *, limit: int) -> _Failure | None:
        """Count a report for a receiver, unless it was sent too many of this day."""
        count = self._counts.get((report.day, receiver)) or 0
        if count >= limit:
            return _Failure(f"{receiver} was already sent {count} reports of this day", is_final=True)
        self._counts.put((report.day, receiver), count + 1)
        return None

    async def _post(self, report: tls_report.Report, uri: str) -> _Failure | None:
        """Send a report over HTTPS; returns why that failed."""
        try:
            host = (parse.urlsplit(uri).hostname or "").rstrip(".")
        except ValueError as error:
            return _Failure(f"not a URL: {error}", is_final=True)
        refusal = self._refuse(report, host, limit=MAX_POSTS_PER_HOST)
        if refusal is not None:
            return refusal
        headers = (("Content-Type", tls_report.MEDIA_TYPE), ("User-Agent", USER_AGENT))
        response = await self._ctx.webhook_client.post(uri, report.content(), headers)
        if response.succeeded:
            return None
        status = response.status_code or 0
        is_refused = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
        return _Failure(response.error or f"status {status}", is_final=is_refused and status not in RETRIED_STATUSES)

    async def _mail(self, report: tls_report.Report, uri: str) -> _Failure | None:
        """Queue a report as mail; returns why that failed."""
        recipient = uri.removeprefix(mta_sts.MAILTO)
        mailbox = bounce_guard.mailbox_of(recipient.lower())
        refusal = self._refuse(report, mailbox, limit=MAX_MAILS_PER_MAILBOX)
        if refusal is not None:
            return refusal
        owner = await domains.verified_owner(self._ctx, report.submitter)
        if owner is None:
            return _Failure(f"tls_reports.from: {report.submitter} is not a verified domain of an account")
        key = hashlib.sha256(f"{report.id} {uri}".encode()).hexdigest()
        now = self._ctx.clock()
        raw = statuses.RawMessage(
            sender=report.contact,
            recipients=(recipient,),
            content=report.mail(recipient, key=f"tls-report-{key}"),
            trace=f"by {report.submitter}; {builder.format_date(now // times.SECOND)}",
            has_only_crlf=True,
        )
        who = callers.Caller(owner, None, callers.Scheme.TOKEN, frozenset({callers.Permission.SEND}))
        request_id = self._ctx.new_id(identifiers.REQUEST, now=now)
        try:
            await submit_mime.submit_mime(self._ctx, who, raw, request_id=request_id)
        except errors.PostroadError as error:
            return _Failure(f"{error.code}: {error.message}")
        return None
