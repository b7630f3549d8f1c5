"""The MTA-STS policies of destinations, and the TLS reports that they ask for (RFC 8461, RFC 8460)."""

import collections
import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from postroad.protocol.reports import tls_report
from postroad.storage.engine import queries, store

# Some 50 MB of ordinary policies; those that were not fetched for the longest time are removed first.
MAX_POLICIES: Final = 100_000


class StoredPolicy(msgspec.Struct, frozen=True):
    """A row of `mta_sts_policies`. `policy` is its text."""

    domain: str
    policy_id: str
    policy: str
    fetched_at: int
    valid_until: int


async def put_policy(tx: store.Transaction, policy: StoredPolicy) -> None:
    await tx.execute("mta_sts_policies.put", *msgspec.structs.astuple(policy))


@queries.row("mta_sts_policies.find", StoredPolicy)
async def find_policy(tx: store.Transaction, domain: str, *, now: int) -> StoredPolicy | None: ...


async def sweep_policies(tx: store.Transaction, *, now: int, most: int = MAX_POLICIES) -> int:
    """Delete up to SWEEP_ROWS policies that have expired or are too many; returns how many."""
    expired = await tx.execute("mta_sts_policies.sweep", now, store.SWEEP_ROWS)
    return expired + await tx.execute("mta_sts_policies.trim", most, store.SWEEP_ROWS - expired)


# Domains for which a day is counted; ordinarily some 20 MB. Hosts that add at the same time may exceed it a little.
MAX_REPORTS_PER_DAY: Final = 20_000
# What a zone may have even if fewer are left for the day.
MIN_REPORTS_PER_ZONE: Final = 100
# A few policies with a few failures of several mail hosts; each at most 3 KB.
MAX_RESULTS: Final = 50

Sessions = Mapping[tls_report.Result, int]
_DECODER: Final = msgspec.json.Decoder(tls_report.Result)


class DueReport(msgspec.Struct, frozen=True):
    """A row of `tls_reports`. `sent` are the URIs that are done, one on each line: they have it, or refused it."""

    day: int
    domain: str
    due_at: int
    attempt_count: int
    sent: str


async def add_sessions(
    tx: store.Transaction, day: int, sessions: Mapping[str, Sessions], *, due_at: Mapping[str, int]
) -> None:
    """Add the sessions of a day, by domain; `due_at` is when the report of each is due if this is its first result."""
    opened = await _admitted(tx, day, sessions)
    await tx.execute_many("tls_reports.open", [(day, domain, due_at[domain]) for domain in sorted(opened)])
    await tx.execute_many(
        "tls_reports.add_sessions",
        sorted(
            (day, domain, hashlib.sha256(encoded).hexdigest(), encoded.decode(), count, MAX_RESULTS)
            for domain, results in sessions.items()
            for encoded, count in ((msgspec.json.encode(result), count) for result, count in results.items())
        ),
    )


async def _admitted(tx: store.Transaction, day: int, domains: Collection[str]) -> Collection[str]:
    """Which domains get a report, if they have none."""
    row = await tx.fetch_one("tls_reports.count", day)
    count = int(row[0]) if row is not None else 0
    if count >= MAX_REPORTS_PER_DAY:
        return ()
    # Below half, no zone can have more than is left; above it, reading the domains costs some 50 ms.
    if count + len(domains) <= MAX_REPORTS_PER_DAY // 2:
        return domains
    known = {row[0] for row in await tx.fetch("tls_reports.domains", day)}
    zones = collections.Counter(map(_zone_of, known))
    admitted: list[str] = []
    for domain in sorted(set(domains) - known):
        left = MAX_REPORTS_PER_DAY - len(known) - len(admitted)
        zone = _zone_of(domain)
        if left > 0 and zones[zone] < max(left, MIN_REPORTS_PER_ZONE):
            zones[zone] += 1
            admitted.append(domain)
    return admitted


def _zone_of(domain: str) -> str:
    """The last two labels. They may be a public suffix such as co.uk, which is why a zone may have many reports."""
    return ".".join(domain.rsplit(".", 2)[-2:])


# Claim reports that are due; they are due again at `until`, unless they are removed or postponed.
@queries.rows("tls_reports.claim_due", DueReport)
async def claim_due_report(tx: store.Transaction, *, now: int, until: int, limit: int) -> list[DueReport]: ...


async def sessions(tx: store.Transaction, report: DueReport) -> dict[tls_report.Result, int]:
    rows = await tx.fetch("tls_reports.sessions", report.day, report.domain)
    return {_DECODER.decode(row[0]): int(row[1]) for row in rows}


async def postpone_report(tx: store.Transaction, report: DueReport, *, due_at: int, done: Sequence[str]) -> None:
    """Try the other URIs later."""
    await tx.execute("tls_reports.postpone", report.day, report.domain, due_at, "\n".join(done))


async def remove_report(tx: store.Transaction, report: DueReport) -> None:
    """Delete a report that is done, and its results."""
    await tx.execute("tls_reports.remove", report.day, report.domain)
    await tx.execute("tls_reports.remove_sessions", report.day, report.domain)


async def sweep_reports(tx: store.Transaction, *, until_day: int) -> int:
    """Delete up to SWEEP_ROWS reports and results of days up to this one; returns how many."""
    reports = await tx.execute("tls_reports.sweep", until_day, store.SWEEP_ROWS)
    return reports + await tx.execute("tls_reports.sweep_sessions", until_day, store.SWEEP_ROWS - reports)
