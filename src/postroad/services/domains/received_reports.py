"""Reports that receivers send about a domain (RFC 9990, RFC 8460): how they are stored, and what follows from them.

A report counts for the account that has verified the domain of the address, and only if it is about that domain.
Anybody can write one: who sent it is the domain that DMARC or an aligned signature proves, and what else comes is
stored apart, as what nobody has proven. So no forger decides whether a domain can move to p=reject. What authenticated
strangers say is their word: their name is shown with it.

The work for a mail is bounded by `report_files.py` and done in a thread, in turn with other networks. Each mail counts
for the day's quotas of its domain, network and reporter, and what is over them is refused for the day.
"""

import asyncio
import hashlib
import ipaddress
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad import context, errors
from postroad.mail.authentication import authenticate
from postroad.model.domains import domain_records
from postroad.model.reports import dmarc_readiness, dmarc_rows
from postroad.model.units import times
from postroad.network.dns import resolver
from postroad.protocol.reports import aggregate_reports, dmarc_report, report_files, tls_report
from postroad.services import audit_log
from postroad.storage.engine import store
from postroad.storage.mail import domains
from postroad.storage.mail import received_reports as stored

# Of a domain per day, by whether they are authenticated. Some hundred receivers write reports, most of them one a day.
MAX_REPORTS: Final[Mapping[bool, int]] = {True: 1_000, False: 100}
# Of them, from one network or reporter.
MAX_FROM_ONE: Final = 100
# About one day of a domain; further ones are summed up for each result.
MAX_ROWS: Final[Mapping[bool, int]] = {True: 1_000, False: 100}
# Of them, from one reporter: the sources that others report keep their room.
MAX_ROWS_FROM_ONE: Final = 250
# Of a row. More is nobody's mail of a day; sums over all reports of a year fit into 64 bits.
MAX_MESSAGES: Final = 10**9
# Of a summary, and as many reporters; a page shows fewer.
MAX_SOURCES: Final = 200
# Of one domain; the page offers those that are to be looked at.
MAX_DISMISSED: Final = 1_000
RETRY_SECONDS: Final = 3_600
# For the addresses of this host, which the page marks as its own.
DNS_SECONDS: Final = 2.0


class ReportResult(StrEnum):
    """What became of a mail to the address for reports."""

    STORED = "stored"
    REPEATED = "repeated"
    UNREADABLE = "unreadable"
    OTHER_DOMAIN = "other_domain"
    NOT_TIMELY = "not_timely"
    # A report about TLS counts only with a signature (RFC 8460 section 3).
    NOT_AUTHENTICATED = "not_authenticated"
    # The domain is no longer verified.
    NO_OWNER = "no_owner"


class Sender(msgspec.Struct, frozen=True):
    """Who hands a mail in: the client's address and EHLO, and the envelope sender."""

    client_address: str
    helo: str
    address: str


class Totals(msgspec.Struct, frozen=True):
    messages: int
    passed: int


class Summary(msgspec.Struct, frozen=True):
    """What authenticated reports say about the last 30 days of a domain.

    Days, reporters and sources are about DMARC, the largest source first. `unproven` counts messages of reports that
    are not authenticated, and `unreadable` mails that are no report.
    """

    days: Mapping[int, Totals]
    reporters: Sequence[stored.Reporter]
    sources: Sequence[dmarc_readiness.Source]
    verdict: dmarc_readiness.Verdict
    dismissed: frozenset[str]
    tls: Sequence[stored.TlsRow]
    unproven: int
    unreadable: int


class _Content(msgspec.Struct, frozen=True):
    """What is in a mail. `id` is the same for the same report."""

    result: ReportResult
    id: bytes
    day: int = 0
    dmarc: dmarc_rows.Rows = {}
    tls: Sequence[stored.TlsRow] = ()


def domain_of(ctx: context.Context, address: str) -> str:
    """The domain whose address for reports this is; empty for other addresses."""
    return domain_records.reported_domain(address, return_path_domain=ctx.settings.delivery.return_path_domain)


def address(ctx: context.Context, domain: str) -> str:
    """Where receivers send reports about a domain; empty if there can be no such address."""
    return domain_records.report_address(domain, return_path_domain=ctx.settings.delivery.return_path_domain)


async def has_owner(ctx: context.Context, domain: str) -> bool:
    """Whether an account has verified the domain."""
    async with ctx.store.reading() as tx:
        return await domains.verified_owner(tx, domain) is not None


async def receive(ctx: context.Context, domain: str, content: bytes, *, sender: Sender) -> ReportResult:
    """Store what a mail to the address of a domain reports. Raises RateLimited, or ServiceUnavailable if DNS fails."""
    network = dmarc_rows.network_of(sender.client_address)
    party = f"reports {network}"
    results = await authenticate.authenticate(
        ctx, content, client_address=sender.client_address, helo=sender.helo, sender=sender.address, party=party
    )
    is_authenticated = _is_authenticated(results)
    async with ctx.store.reading() as tx:
        owner = await domains.verified_owner(tx, domain)
        if owner is None:
            return ReportResult.NO_OWNER
        arrival = stored.Arrival(
            owner,
            domain,
            fingerprint="",
            day=times.day_of(ctx.clock()),
            network=network,
            reporter=results.dmarc.domain if is_authenticated else "",
            is_authenticated=is_authenticated,
            result="",
        )
        counts = await stored.counts(tx, arrival)
    if counts.total >= MAX_REPORTS[arrival.is_authenticated] or counts.from_one >= MAX_FROM_ONE:
        raise errors.RateLimited(f"too many reports about {domain} today", retry_after=RETRY_SECONDS)
    read = await ctx.threads.run(party, lambda: _read(content, arrival))
    async with ctx.store.transaction() as tx:
        return await _store(ctx, tx, read, arrival)


def _is_authenticated(results: authenticate.Results) -> bool:
    """Whether DMARC proves the domain of the From field, or, without a record of it, an aligned signature does."""
    domain, result = results.dmarc.domain, results.dmarc.result
    signed = {
        each.result
        for each in results.dkim
        if result == "none" and "." in each.domain and f".{domain}".endswith(f".{each.domain}")
    }
    if result == "pass" or "pass" in signed:
        return True
    if "temperror" in {result, *signed}:
        raise errors.ServiceUnavailable("DNS failed for the sender of a report", retry_after=RETRY_SECONDS)
    return False


def _read(content: bytes, arrival: stored.Arrival) -> _Content:
    try:
        report = aggregate_reports.read(content)
    except report_files.ReportError:
        return _Content(ReportResult.UNREADABLE, content)
    is_dmarc = isinstance(report, dmarc_report.Report)
    # The proven reporter is a part: nobody can use up the ids of others.
    named = (is_dmarc, arrival.is_authenticated, arrival.reporter, report.organization, report.id)
    about = _Content(ReportResult.STORED, msgspec.json.encode(named), dmarc_rows.day_of(report))
    if not dmarc_rows.is_timely(report, today=arrival.day):
        return msgspec.structs.replace(about, result=ReportResult.NOT_TIMELY)
    if isinstance(report, tls_report.ReceivedReport):
        return _tls(report, about, arrival)
    if report.policy.domain != arrival.domain:
        return msgspec.structs.replace(about, result=ReportResult.OTHER_DOMAIN)
    rows = dmarc_rows.rows_of(report, reporter=arrival.reporter)
    return msgspec.structs.replace(about, dmarc={key: min(count, MAX_MESSAGES) for key, count in rows.items()})


def _tls(report: tls_report.ReceivedReport, about: _Content, arrival: stored.Arrival) -> _Content:
    if not arrival.is_authenticated:
        return msgspec.structs.replace(about, result=ReportResult.NOT_AUTHENTICATED)
    sessions: Counter[tuple[str, str]] = Counter()
    for result, count in report.sessions.items():
        # TLSA records are those of a mail host, which can have any name.
        if result.policy.type is tls_report.PolicyType.TLSA or result.policy.domain == arrival.domain:
            sessions[result.policy.type, result.failure or ""] += count
    if not sessions:
        return msgspec.structs.replace(about, result=ReportResult.OTHER_DOMAIN)
    rows = [
        stored.TlsRow(arrival.reporter, policy, failure, min(count, MAX_MESSAGES))
        for (policy, failure), count in sessions.items()
    ]
    return msgspec.structs.replace(about, tls=rows)


async def _store(ctx: context.Context, tx: store.Transaction, read: _Content, arrival: stored.Arrival) -> ReportResult:
    fingerprint = hashlib.sha256(read.id).hexdigest()
    if not await stored.add(tx, msgspec.structs.replace(arrival, fingerprint=fingerprint, result=read.result)):
        # It counts for the quotas.
        unique, result = ctx.entropy(32).hex(), ReportResult.REPEATED
        await stored.add(tx, msgspec.structs.replace(arrival, fingerprint=unique, result=result))
        return result
    if read.dmarc:
        is_authenticated = arrival.is_authenticated
        known = await stored.count_dmarc(tx, arrival, read.day)
        most = min(MAX_ROWS[is_authenticated] - known.total, MAX_ROWS_FROM_ONE - known.from_one)
        rows = dmarc_rows.limited(read.dmarc, most=max(0, most))
        await stored.add_dmarc(tx, arrival.account_id, rows, is_authenticated=is_authenticated)
    await stored.add_tls(tx, arrival.account_id, arrival.domain, read.day, read.tls)
    return read.result


async def summary(ctx: context.Context, account_id: str, domain: str) -> Summary:
    today = times.day_of(ctx.clock())
    since = today - dmarc_readiness.WINDOW_DAYS + 1
    own = await _own_addresses(ctx)
    async with ctx.store.scanning(account_id) as tx:
        rows = await stored.dmarc(tx, account_id, domain, since_day=since)
        reporters = await stored.reporters(tx, account_id, domain, since_day=since, limit=MAX_SOURCES)
        unproven, _ = await stored.dmarc_passed(tx, account_id, domain, since_day=since, is_authenticated=False)
        tls = await stored.tls(tx, account_id, domain, since_day=since)
        results = await stored.results(tx, account_id, domain, since_day=since)
        dismissed = frozenset(await stored.dismissed(tx, account_id, domain))
    messages, passed = Counter[int](), Counter[int]()
    for key, count in rows.items():
        messages[key.day] += count
        passed[key.day] += count if key.passed else 0
    sources, verdict = await ctx.threads.run(
        account_id,
        lambda: (
            dmarc_readiness.sources(rows, own_addresses=own),
            dmarc_readiness.judge(rows, today=today, own_addresses=own, dismissed=dismissed),
        ),
    )
    return Summary(
        days={day: Totals(messages[day], passed[day]) for day in sorted(messages)},
        reporters=reporters,
        sources=sorted(sources, key=lambda source: (-source.messages, source.network))[:MAX_SOURCES],
        verdict=verdict,
        dismissed=dismissed,
        tls=tls,
        unproven=unproven,
        unreadable=results.get(ReportResult.UNREADABLE, 0),
    )


async def dismiss(ctx: context.Context, account_id: str, domain: str, network: str) -> None:
    """Note that a network is not the owner's, so that its mail does not count against a stricter policy."""
    async with ctx.store.transaction() as tx:
        if len(await stored.dismissed(tx, account_id, domain)) >= MAX_DISMISSED:
            raise errors.Conflict(f"network: {MAX_DISMISSED} are dismissed already")
        if await stored.dismiss(tx, account_id, domain, _normal(network)):
            await audit_log.write(ctx, tx, account_id, "domain.network_dismissed", domain, network)


async def restore(ctx: context.Context, account_id: str, domain: str, network: str) -> None:
    """Let a dismissed network count again."""
    async with ctx.store.transaction() as tx:
        if await stored.restore(tx, account_id, domain, network):
            await audit_log.write(ctx, tx, account_id, "domain.network_restored", domain, network)


def _normal(network: str) -> str:
    try:
        return str(ipaddress.ip_network(network))
    except ValueError:
        raise errors.InvalidRequest("network: write it as 192.0.2.0/24") from None


class Passed(msgspec.Struct, frozen=True):
    """How much of the mail in the name of a domain passes DMARC, by reports of the last 30 days."""

    domain: domains.Domain
    messages: int
    passed: int


async def passed(ctx: context.Context, listed: Sequence[domains.Domain]) -> list[Passed]:
    """Of those of the domains that receivers report about."""
    since = times.day_of(ctx.clock()) - dmarc_readiness.WINDOW_DAYS + 1
    async with ctx.store.reading() as tx:
        found = [
            Passed(each, *await stored.dmarc_passed(tx, each.account_id, each.name, since_day=since)) for each in listed
        ]
    return [each for each in found if each.messages]


async def _own_addresses(ctx: context.Context) -> Sequence[str]:
    """The addresses that this installation sends from: those of the settings, else those of its name."""
    if ctx.settings.sources:
        return [source.address for source in ctx.settings.sources]
    host = (await ctx.dns.service()).host
    if not host:
        return ()
    try:
        async with asyncio.timeout(DNS_SECONDS), ctx.dns.turn(party="reports") as dns:
            found = await dns.addresses(host)
    except TimeoutError:
        return ()
    return () if isinstance(found, resolver.Failure) else found.records
