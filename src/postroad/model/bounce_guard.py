"""The bounce guard: when an account is warned, or may not send any more (docs/guards.md).

That is when too much of its mail goes to addresses that do not exist, or is complained about. Counted are recipients
that were tried and are final, by UTC days; judged are the last days, today included, and only from a number of
recipients on. Thresholds are fractions, so they are exact: 8 of 200 are 4 %, and 7 are not.
"""

from enum import StrEnum
from fractions import Fraction
from typing import Final

import msgspec

# Of a few hundred recipients one is more than any threshold for complaints. One alone may be a slip of the finger, or
# somebody's ill will, so it only warns.
MIN_COMPLAINTS: Final = 2


class Level(StrEnum):
    """What follows from what was counted."""

    OK = "ok"
    WARNED = "warned"
    SUSPENDED = "suspended"


class Cause(StrEnum):
    """What there is too much of."""

    BOUNCES = "bounces"
    COMPLAINTS = "complaints"


class Counts(msgspec.Struct, frozen=True):
    """Recipients that were tried and are final, those whose address does not exist, and complaints."""

    recipients: int = 0
    bounces: int = 0
    complaints: int = 0

    @property
    def has_faults(self) -> bool:
        """Whether there is anything to judge."""
        return self.bounces > 0 or self.complaints > 0

    def of(self, cause: Cause) -> int:
        """How many of this kind."""
        return self.bounces if cause is Cause.BOUNCES else self.complaints

    def plus(self, other: "Counts") -> "Counts":
        """Both together."""
        return Counts(
            self.recipients + other.recipients, self.bounces + other.bounces, self.complaints + other.complaints
        )

    def minus(self, other: "Counts") -> "Counts":
        """What there was before the other ones."""
        return self.plus(Counts(-other.recipients, -other.bounces, -other.complaints))


class Thresholds(msgspec.Struct, frozen=True):
    """In percent of recipients; `fewest` is how many there must be before they suspend."""

    warn: Fraction
    suspend: Fraction
    min_count: int = 1


class Rules(msgspec.Struct, frozen=True):
    """How many days are looked at, how many recipients there must be in them, and how much is too much."""

    days: int
    recipients: int
    bounces: Thresholds
    complaints: Thresholds

    def thresholds(self, cause: Cause) -> Thresholds:
        """Those of this kind."""
        return self.bounces if cause is Cause.BOUNCES else self.complaints


class Assessment(msgspec.Struct, frozen=True):
    """How an account stands, and because of what; None when it stands well."""

    level: Level
    cause: Cause | None


HEALTHY: Final = Assessment(Level.OK, None)


def assess(counts: Counts, rules: Rules) -> Assessment:
    """What follows from the counts of the last days: the worse of bounces and complaints."""
    if counts.recipients < rules.recipients:
        return HEALTHY
    levels = {cause: _level(counts.of(cause), counts.recipients, rules.thresholds(cause)) for cause in Cause}
    for level in (Level.SUSPENDED, Level.WARNED):
        for cause in Cause:
            if levels[cause] is level:
                return Assessment(level, cause)
    return HEALTHY


def _level(count: int, recipients: int, thresholds: Thresholds) -> Level:
    share = Fraction(100 * count, recipients)
    if share >= thresholds.suspend and count >= thresholds.min_count:
        return Level.SUSPENDED
    return Level.WARNED if share >= thresholds.warn else Level.OK


def percent(count: int, recipients: int) -> float:
    """A share for people to read; of nothing it is nothing."""
    return round(100 * count / recipients, 4) if recipients else 0.0


def reason(cause: Cause, counts: Counts) -> str:
    """Why an account is suspended, for its people: what was counted, and what to do."""
    count, recipients = counts.of(cause), counts.recipients
    share = f"{100 * count / recipients:.2f} %"
    if cause is Cause.BOUNCES:
        return (
            f"bounce guard: {count} of the last {recipients} recipients ({share}) do not exist; "
            "clean your list and ask the operator"
        )
    return (
        f"bounce guard: {count} complaints about the last {recipients} recipients ({share}); "
        "send only to people who asked for it, and ask the operator"
    )
