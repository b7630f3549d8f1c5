"""Whether a domain can move to p=reject: the verdict on the DMARC reports of 30 days.

The rule:

1. The reports are about 21 days or more of the last 30, so that weekly mail has been seen.
2. They count 500 messages or more that passed.
3. Of the mail of each known source, 99 % or more passed. Known are the networks that this installation sends from, and
   each from which any mail passed, since somebody set that up; of these others, failures below 0.1 % of all mail are
   ignored, which single forwarded messages are.
4. No other network sent 0.1 % or more of all mail, on seven days or more: it can be a forgotten system of the domain's
   owner, whose mail would be lost.

Sources are looked at in all reports together, and in those of each reporter that alone counts so many messages. Any
domain can send reports, so none may make a problem that others report small: 3 and 4 are shares.

The owner dismisses networks that are not theirs; those of this installation cannot be dismissed. What is left fails
from many places, on few days, or is little: forged mail, which p=reject is for. Forwarded mail and that of mailing
lists counts like all other: where it fails, receivers would refuse it.
"""

from collections import defaultdict
from collections.abc import Collection
from enum import StrEnum
from typing import Final

import msgspec

from postroad.model.reports import dmarc_rows

WINDOW_DAYS: Final = 30
MIN_DAYS: Final = 21
MIN_PASSED: Final = 500
REGULAR_DAYS: Final = 7
# A known source fails if more than one of so many of its messages does.
_TOLERATED: Final = 100
# Failures of others are ignored below one of so many of all messages.
_IGNORED: Final = 1000


class Obstacle(StrEnum):
    """Why a domain cannot move to p=reject yet."""

    FEW_DAYS = "few_days"
    FEW_MESSAGES = "few_messages"
    KNOWN_SOURCE_FAILS = "known_source_fails"
    UNKNOWN_SOURCE = "unknown_source"


class Source(msgspec.Struct, frozen=True):
    """What a network sent in the name of the domain. `is_own`: with an address of this installation."""

    network: str
    is_own: bool
    messages: int
    passed: int
    days: int

    @property
    def failed(self) -> int:
        return self.messages - self.passed

    @property
    def is_known(self) -> bool:
        return self.is_own or self.passed > 0


class Verdict(msgspec.Struct, frozen=True):
    """The verdict and what it follows from. `sources` are to be looked at first: those that fail, the largest first."""

    obstacles: tuple[Obstacle, ...]
    days: int
    messages: int
    passed: int
    sources: tuple[Source, ...]

    @property
    def can_reject(self) -> bool:
        return not self.obstacles


def judge(
    rows: dmarc_rows.Rows, *, today: int, own_addresses: Collection[str], dismissed: Collection[str] = ()
) -> Verdict:
    """The verdict on the rows of one domain. `dismissed` are networks that its owner says are not theirs."""
    recent = {key: count for key, count in rows.items() if today - WINDOW_DAYS < key.day <= today}
    messages = sum(recent.values())
    passed = sum(count for key, count in recent.items() if key.passed)
    days = len({key.day for key in recent})
    blocking: dict[str, Source] = {}
    for part in (recent, *_large_parts(recent)):
        for source in _blocking(sources(part, own_addresses=own_addresses), sum(part.values()), dismissed):
            blocking.setdefault(source.network, source)
    found = {
        Obstacle.FEW_DAYS: days < MIN_DAYS,
        Obstacle.FEW_MESSAGES: passed < MIN_PASSED,
        Obstacle.KNOWN_SOURCE_FAILS: any(source.is_known for source in blocking.values()),
        Obstacle.UNKNOWN_SOURCE: not all(source.is_known for source in blocking.values()),
    }
    obstacles = tuple(obstacle for obstacle, is_found in found.items() if is_found)
    first = sorted(blocking.values(), key=lambda source: (-source.failed, source.network))
    return Verdict(obstacles, days, messages, passed, tuple(first))


def _large_parts(rows: dmarc_rows.Rows) -> list[dmarc_rows.Rows]:
    """The rows of each reporter that alone counts enough messages for a verdict."""
    parts: defaultdict[str, dict[dmarc_rows.Key, int]] = defaultdict(dict)
    for key, count in rows.items():
        parts[key.reporter][key] = count
    return [part for part in parts.values() if sum(part.values()) >= MIN_PASSED]


def _blocking(found: Collection[Source], messages: int, dismissed: Collection[str]) -> list[Source]:
    """The sources that would lose mail, or may. The owner's word and the size excuse all but our own."""
    return [
        source
        for source in found
        if (source.is_own or (source.network not in dismissed and source.failed * _IGNORED >= messages))
        and (_fails(source) if source.is_known else source.days >= REGULAR_DAYS)
    ]


def _fails(source: Source) -> bool:
    return source.failed * _TOLERATED > source.messages


def sources(rows: dmarc_rows.Rows, *, own_addresses: Collection[str]) -> list[Source]:
    """By network, because mail that failed is not kept by its address. The rest of a large report has no source."""
    own_networks = {dmarc_rows.network_of(address) for address in own_addresses}
    by_network: defaultdict[str, list[tuple[dmarc_rows.Key, int]]] = defaultdict(list)
    for key, count in rows.items():
        if key.source:
            by_network[_network(key.source)].append((key, count))
    return [
        Source(
            network=network,
            is_own=network in own_networks,
            messages=sum(count for _, count in found),
            passed=sum(count for key, count in found if key.passed),
            days=len({key.day for key, _ in found}),
        )
        for network, found in by_network.items()
    ]


def _network(source: str) -> str:
    return source if "/" in source else dmarc_rows.network_of(source)
