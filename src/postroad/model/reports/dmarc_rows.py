"""Daily rows: what is kept of a DMARC aggregate report.

A row counts messages of one day, reporter, source, From domain and result. The source of mail that passed is its
address: there are few, and each is somebody's to look after. Mail that failed is mostly forged, from ever new places:
its source is the network, an IPv4 /24 or an IPv6 /48. However large a report is, its most frequent MAX_ROWS rows are
kept, and the others as one for each result, of the domain itself and without a source.
"""

import functools
import ipaddress
from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from postroad.protocol.reports import dmarc_report, tls_report

# Of one report. A domain with more senders than this reads them elsewhere.
MAX_ROWS: Final = 200
_IPV4_PREFIX: Final = 24
_IPV6_PREFIX: Final = 48
_DAY_SECONDS: Final = 86_400
# Receivers write within a day or two, and clocks differ.
MAX_AGE_DAYS: Final = 31
MAX_DAYS_AHEAD: Final = 1


class Key(msgspec.Struct, frozen=True, order=True):
    """What the messages of a row have in common. `day` is in days since 1970, `domain` the one with the policy.

    `dkim` and `spf`: whether it passed for an aligned domain.
    """

    day: int
    domain: str
    reporter: str
    source: str
    header_from: str
    disposition: dmarc_report.Disposition
    dkim: bool
    spf: bool

    @property
    def passed(self) -> bool:
        return self.dkim or self.spf


Rows = Mapping[Key, int]
Report = dmarc_report.Report | tls_report.ReceivedReport


def rows_of(report: dmarc_report.Report, *, reporter: str) -> Rows:
    """How many messages each row of a report counts. Mail of other From domains is not the domain's.

    `reporter` is who sent the report, by authentication: what it says of its author anybody can write.
    """
    rows: Counter[Key] = Counter()
    for row in report.rows:
        if f".{row.header_from}".endswith(f".{report.policy.domain}"):
            rows[_key(report, row, reporter)] += row.count
    return limited(rows, most=MAX_ROWS)


def limited(rows: Rows, *, most: int) -> Rows:
    """The most frequent rows, and the others as one for each result."""
    if len(rows) <= most:
        return rows
    frequent = dict(Counter(rows).most_common(most))
    for key, count in rows.items():
        if key not in frequent:
            rest = msgspec.structs.replace(key, source="", header_from=key.domain)
            frequent[rest] = frequent.get(rest, 0) + count
    return frequent


def is_timely(report: Report, *, today: int) -> bool:
    """Whether a report is about recent days. Nobody can fill the past or the future of a domain with rows."""
    return today - MAX_AGE_DAYS <= day_of(report) <= today + MAX_DAYS_AHEAD


def day_of(report: Report) -> int:
    """The UTC day of the middle: the days of some receivers begin a few hours earlier or later."""
    return (report.begin + report.end) // 2 // _DAY_SECONDS


# The same sources come again every day.
@functools.lru_cache(maxsize=10_000)
def network_of(source: str) -> str:
    """The network around an address."""
    address = ipaddress.ip_address(source)
    prefix = _IPV4_PREFIX if isinstance(address, ipaddress.IPv4Address) else _IPV6_PREFIX
    return str(ipaddress.ip_network((address, prefix), strict=False))


def _key(report: dmarc_report.Report, row: dmarc_report.Row, reporter: str) -> Key:
    return Key(
        day=day_of(report),
        domain=report.policy.domain,
        reporter=reporter,
        source=row.source if row.passed else network_of(row.source),
        header_from=row.header_from,
        disposition=row.disposition,
        dkim=row.dkim,
        spf=row.spf,
    )
