"""What receivers report about domains: DMARC and TLS by day, the reports that came, and dismissed networks."""

from collections.abc import Iterable

import msgspec

from postroad.model.reports import dmarc_rows
from postroad.protocol.reports import dmarc_report
from postroad.storage.engine import queries, store


class Arrival(msgspec.Struct, frozen=True):
    """A row of `received_reports`; `reporter` is empty unless it is authenticated."""

    account_id: str
    domain: str
    fingerprint: str
    day: int
    network: str
    reporter: str
    is_authenticated: bool
    result: str


class Counts(msgspec.Struct, frozen=True):
    """How many there are of a day, and how many of them from one network or reporter."""

    total: int
    from_one: int


class Reporter(msgspec.Struct, frozen=True):
    """Who sent authenticated reports, and the messages that they count."""

    domain: str
    messages: int
    passed: int


class TlsRow(msgspec.Struct, frozen=True):
    """The sessions that a reporter counts, by the type of policy and of failure; the latter is empty for successes."""

    reporter: str
    policy: str
    failure: str
    sessions: int


async def counts(tx: store.Transaction, arrival: Arrival) -> Counts:
    """Those of the day of an arrival that are authenticated as it is."""
    row = await tx.fetch_one(
        "received_reports.counts",
        arrival.account_id,
        arrival.domain,
        arrival.day,
        int(arrival.is_authenticated),
        arrival.network,
        arrival.reporter,
    )
    return Counts(*row) if row is not None else Counts(0, 0)


async def add(tx: store.Transaction, arrival: Arrival) -> bool:
    """Note a report; False when it came before."""
    *row, is_authenticated, result = msgspec.structs.astuple(arrival)
    return await tx.execute("received_reports.add", *row, int(is_authenticated), result) == 1


async def results(tx: store.Transaction, account_id: str, domain: str, *, since_day: int) -> dict[str, int]:
    """How many reports had which result."""
    return {row[0]: row[1] for row in await tx.fetch("received_reports.results", account_id, domain, since_day)}


async def count_dmarc(tx: store.Transaction, arrival: Arrival, day: int) -> Counts:
    """The rows about a day that are authenticated as an arrival is."""
    row = await tx.fetch_one(
        "dmarc_rows.count", arrival.account_id, arrival.domain, day, int(arrival.is_authenticated), arrival.reporter
    )
    return Counts(*row) if row is not None else Counts(0, 0)


async def add_dmarc(tx: store.Transaction, account_id: str, rows: dmarc_rows.Rows, *, is_authenticated: bool) -> None:
    ordered = sorted((msgspec.structs.astuple(key), messages) for key, messages in rows.items())
    await tx.execute_many(
        "dmarc_rows.add",
        [
            (account_id, int(is_authenticated), *place, str(disposition), int(dkim), int(spf), messages)
            for (*place, disposition, dkim, spf), messages in ordered
        ],
    )


async def dmarc(tx: store.Transaction, account_id: str, domain: str, *, since_day: int) -> dict[dmarc_rows.Key, int]:
    """What authenticated reports count, of all From domains and dispositions."""
    rows = await tx.fetch("dmarc_rows.sources", account_id, domain, since_day)
    none = dmarc_report.Disposition.NONE
    return {
        dmarc_rows.Key(day, domain, reporter, source, domain, none, bool(dkim), bool(spf)): messages
        for day, reporter, source, dkim, spf, messages in rows
    }


@queries.rows("dmarc_rows.reporters", Reporter)
async def reporters(
    tx: store.Transaction, account_id: str, domain: str, *, since_day: int, limit: int
) -> list[Reporter]: ...


async def dmarc_passed(
    tx: store.Transaction, account_id: str, domain: str, *, since_day: int, is_authenticated: bool = True
) -> tuple[int, int]:
    """How many messages reports count, and how many of them passed."""
    place = (account_id, domain, since_day, int(is_authenticated))
    messages, passed = await tx.fetch_one("dmarc_rows.passed", *place) or (0, 0)
    return int(messages), int(passed)


async def add_tls(tx: store.Transaction, account_id: str, domain: str, day: int, rows: Iterable[TlsRow]) -> None:
    ordered = sorted(msgspec.structs.astuple(row) for row in rows)
    await tx.execute_many("tls_report_rows.add", [(account_id, domain, day, *row) for row in ordered])


@queries.rows("tls_report_rows.since", TlsRow)
async def tls(tx: store.Transaction, account_id: str, domain: str, *, since_day: int) -> list[TlsRow]: ...


@queries.changed("received_reports.dismiss")
async def dismiss(tx: store.Transaction, account_id: str, domain: str, network: str) -> bool: ...
@queries.changed("received_reports.restore")
async def restore(tx: store.Transaction, account_id: str, domain: str, network: str) -> bool: ...
@queries.rows("received_reports.dismissed", str)
async def dismissed(tx: store.Transaction, account_id: str, domain: str) -> list[str]: ...


async def sweep(tx: store.Transaction, *, arrivals_until_day: int, rows_until_day: int) -> int:
    """Delete up to SWEEP_ROWS of what is old; returns how many."""
    removed = await tx.execute("received_reports.sweep", arrivals_until_day, store.SWEEP_ROWS)
    removed += await tx.execute("dmarc_rows.sweep", rows_until_day, store.SWEEP_ROWS - removed)
    return removed + await tx.execute("tls_report_rows.sweep", rows_until_day, store.SWEEP_ROWS - removed)
