"""Daily rows: what is kept of a DMARC aggregate report.

A row counts messages of one day, reporter, source, From domain and result. The source of mail that passed is its
address: there are few, and each is somebody's to look after. Mail that failed is mostly forged, from ever new places:
its source is the network, an IPv4 /24 or an IPv6 /48. However large a report is, its most frequent MAX_ROWS rows are
kept, and the others as one for each result, of the domain itself and without a source.
"""

import ipaddress
from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from postroad.protocol.reports import dmarc_report

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


def rows_of(report: dmarc_report.Report) -> Rows:
    """How many messages each row of a report counts. Mail of other From domains is not the domain's."""
    rows: Counter[Key] = Counter()
    for row in report.rows:
        if f".{row.header_from}".endswith(f".{report.policy.domain}"):
            rows[_key(report, row)] += row.count
    if len(rows) <= MAX_ROWS:
        return rows
    frequent = dict(rows.most_common(MAX_ROWS))
    for key, count in rows.items():
        if key not in frequent:
            rest = msgspec.structs.replace(key, source="", header_from=key.domain)
            frequent[rest] = frequent.get(rest, 0) + count
    return frequent


def is_timely(report: dmarc_report.Report, *, today: int) -> bool:
    """Whether a report is about recent days. Nobody can fill the past or the future of a domain with rows."""
    return today - MAX_AGE_DAYS <= _day(report) <= today + MAX_DAYS_AHEAD


def network_of(source: str) -> str:
    """The network around an address."""
    address = ipaddress.ip_address(source)
    prefix = _IPV4_PREFIX if isinstance(address, ipaddress.IPv4Address) else _IPV6_PREFIX
    return str(ipaddress.ip_network((address, prefix), strict=False))


def _key(report: dmarc_report.Report, row: dmarc_report.Row) -> Key:
    return Key(
        day=_day(report),
        domain=report.policy.domain,
        reporter=report.organization,
        source=row.source if row.passed else network_of(row.source),
        header_from=row.header_from,
        disposition=row.disposition,
        dkim=row.dkim,
        spf=row.spf,
    )


def _day(report: dmarc_report.Report) -> int:
    """The UTC day of the middle: the days of some receivers begin a few hours earlier or later."""
    return (report.begin + report.end) // 2 // _DAY_SECONDS
