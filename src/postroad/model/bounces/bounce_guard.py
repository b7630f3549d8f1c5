"""The bounce guard: when an account is warned or suspended (docs/guards.md).

It looks at the share of recipients that do not exist and of complaints. It counts final recipients that were attempted,
per UTC day, and assesses the last days, today included, from a minimum number of recipients on. Thresholds are
fractions, so they are exact: 8 of 200 are 4%, and 7 are not.
"""

from enum import StrEnum
from fractions import Fraction
from typing import Final

import msgspec

from postroad.model.units import times

# Among a few hundred recipients, one complaint exceeds any threshold. It may be a mistake or malice, so one only warns.
MIN_COMPLAINTS: Final = 2
# A signature of a report is accepted for this long after it was made: mail may wait for days on its way (RFC 5321
# section 4.5.4.1). Clocks and time zones of reporters are not always right.
MAX_SIGNATURE_AGE: Final = 5 * times.DAY
MAX_SIGNATURE_SKEW: Final = times.DAY
# A signature that counted on a day is not accepted any more so many days later.
SIGNATURE_DAYS: Final = 7


class MailboxNames(msgspec.Struct, frozen=True):
    """The addresses of one mailbox at a provider.

    The owner can add anything behind one of `separators`, and any of `ignored`; `domains` are names of the first one.
    `has_subdomains`: mail to any address at a user's subdomain goes to that user.
    """

    domains: tuple[str, ...]
    separators: str = "+"
    ignored: str = ""
    has_subdomains: bool = False


_YAHOO: Final = (
    *("yahoo.com", "ymail.com", "rocketmail.com", "myyahoo.com", "aol.com", "aim.com", "yahoo.ca", "yahoo.co.id"),
    *("yahoo.co.in", "yahoo.co.nz", "yahoo.co.uk", "yahoo.co.za", "yahoo.com.ar", "yahoo.com.au", "yahoo.com.br"),
    *("yahoo.com.hk", "yahoo.com.mx", "yahoo.com.my", "yahoo.com.ph", "yahoo.com.sg", "yahoo.com.tr", "yahoo.com.tw"),
    *("yahoo.com.vn", "yahoo.de", "yahoo.dk", "yahoo.es", "yahoo.fr", "yahoo.gr", "yahoo.ie", "yahoo.in", "yahoo.it"),
    *("yahoo.nl", "yahoo.no", "yahoo.pl", "yahoo.ro", "yahoo.se", "aol.co.uk", "aol.de", "aol.fr"),
)
_RULES: Final = (
    MailboxNames(("gmail.com", "googlemail.com"), ignored="."),
    MailboxNames(("proton.me", "protonmail.com", "protonmail.ch", "pm.me"), ignored=".-_"),
    # Disposable addresses: a name chosen once, a hyphen and any word. Names without one have no hyphen.
    *(MailboxNames((domain,), separators="+-") for domain in _YAHOO),
    *(MailboxNames((domain,), has_subdomains=True) for domain in ("fastmail.com", "fastmail.fm")),
)
MAILBOX_NAMES: Final = {domain: names for names in _RULES for domain in names.domains}


class Level(StrEnum):
    """The result of an assessment."""

    OK = "ok"
    WARNED = "warned"
    SUSPENDED = "suspended"


class Trigger(StrEnum):
    """What is counted against the recipients."""

    BOUNCES = "bounces"
    COMPLAINTS = "complaints"


class Counts(msgspec.Struct, frozen=True):
    """Final recipients that were attempted, those whose address does not exist, and complaints."""

    recipients: int = 0
    bounces: int = 0
    complaints: int = 0

    @property
    def has_faults(self) -> bool:
        return self.bounces > 0 or self.complaints > 0

    def of(self, trigger: Trigger) -> int:
        return self.bounces if trigger is Trigger.BOUNCES else self.complaints

    def plus(self, other: "Counts") -> "Counts":
        return Counts(
            self.recipients + other.recipients, self.bounces + other.bounces, self.complaints + other.complaints
        )

    def minus(self, other: "Counts") -> "Counts":
        return self.plus(Counts(-other.recipients, -other.bounces, -other.complaints))


class Thresholds(msgspec.Struct, frozen=True):
    """In percent of the recipients; fewer than `min_count` never suspend."""

    warn: Fraction
    suspend: Fraction
    min_count: int = 1


class Rules(msgspec.Struct, frozen=True):
    """The window in days, the minimum number of recipients in it, the thresholds, and how long a suspension lasts.

    `cooldown` is in microseconds; 0 is until an operator resumes the account. The account that has verified
    `never_suspended`, a domain, is only warned.
    """

    days: int
    recipients: int
    bounces: Thresholds
    complaints: Thresholds
    cooldown: int = 0
    never_suspended: str = ""

    def suspended_until(self, suspended_at: int) -> int | None:
        """When the guard lifts a suspension; None when it does not."""
        return suspended_at + self.cooldown if self.cooldown else None

    def thresholds(self, trigger: Trigger) -> Thresholds:
        return self.bounces if trigger is Trigger.BOUNCES else self.complaints


class Assessment(msgspec.Struct, frozen=True):
    """The level of an account and what triggered it; None when the level is OK."""

    level: Level
    trigger: Trigger | None


HEALTHY: Final = Assessment(Level.OK, None)


def assess(counts: Counts, rules: Rules) -> Assessment:
    """The level that follows from the counts of the window: the worse of bounces and complaints."""
    if counts.recipients < rules.recipients:
        return HEALTHY
    levels = {trigger: _level(counts.of(trigger), counts.recipients, rules.thresholds(trigger)) for trigger in Trigger}
    for level in (Level.SUSPENDED, Level.WARNED):
        for trigger in Trigger:
            if levels[trigger] is level:
                return Assessment(level, trigger)
    return HEALTHY


def _level(count: int, recipients: int, thresholds: Thresholds) -> Level:
    share = Fraction(100 * count, recipients)
    if share >= thresholds.suspend and count >= thresholds.min_count:
        return Level.SUSPENDED
    return Level.WARNED if share >= thresholds.warn else Level.OK


def mailbox_of(email_key: str) -> str:
    """The mailbox of an address in lower case, without what its owner can vary, such as a tag behind a plus.

    One person could otherwise report as many.
    """
    local, _, domain = email_key.rpartition("@")
    user, _, parent = domain.partition(".")
    if parent in MAILBOX_NAMES and MAILBOX_NAMES[parent].has_subdomains:
        local, domain = user, parent
    names = MAILBOX_NAMES.get(domain) or MailboxNames((domain,))
    for separator in names.separators:
        local = local.partition(separator)[0] or local
    short = "".join(character for character in local if character not in names.ignored)
    return f"{short or local}@{names.domains[0]}"


def percent(count: int, recipients: int) -> float:
    """A share in percent; 0 without recipients."""
    return round(100 * count / recipients, 4) if recipients else 0.0


def reason(trigger: Trigger, counts: Counts, *, until: int | None) -> str:
    """Why an account is suspended: what was counted, what to do, and when it can send again, in microseconds."""
    count, recipients = counts.of(trigger), counts.recipients
    share = f"{100 * count / recipients:.2f}%"
    if trigger is Trigger.BOUNCES:
        return (
            f"bounce guard: {count} of the last {recipients} recipients ({share}) do not exist; "
            f"clean your list. {_end(until)}"
        )
    return (
        f"bounce guard: {count} complaints for the last {recipients} recipients ({share}); "
        f"send only to people who asked for it. {_end(until)}"
    )


def _end(until: int | None) -> str:
    if until is None:
        return "The operator can resume the account"
    written = times.to_wire(until)
    return f"Sending resumes on {written[:10]} at {written[11:16]} UTC"
