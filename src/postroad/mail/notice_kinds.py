"""The kinds of notices, as a table: who gets them, at once or in the digest, and how often about the same subject.

The names of kinds that are also webhook events are those of the events. docs/notices.md lists this table.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from postroad.model.events import events
from postroad.model.units import times


class Audience(StrEnum):
    """Who gets a notice."""

    OPERATORS = "operators"
    OWNERS = "owners"
    # The one whom it concerns.
    PERSON = "person"


class Choice(StrEnum):
    """How a person gets the notices of a kind."""

    NOW = "now"
    DIGEST = "digest"
    OFF = "off"


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of notices. `path` is the page to open, with values of the notice; without one, it has a password link."""

    audience: Audience
    title: str
    path: str = ""
    # Unless a person chooses another.
    choice: Choice = Choice.NOW
    # About the same subject there is at most one notice in this time.
    interval: int = times.DAY
    # About one account there are at most so many in a day; or to one person, whom others of the account must not be
    # able to deprive of them.
    max_per_day: int | None = None
    is_limited_by_person: bool = False
    # Cannot be switched off.
    is_security: bool = False
    # Values that strangers write as they like: nothing in them becomes a link.
    free: frozenset[str] = frozenset({"account"})

    @property
    def has_secret(self) -> bool:
        """Whether a notice contains a link that lets its holder in."""
        return not self.path


CHECK_FAILED: Final = "operator.check_failed"
CHECK_WARNING: Final = "operator.check_warning"
ADDRESS_BLOCKED: Final = "operator.address_blocked"
QUEUE_DELAYED: Final = "operator.queue_delayed"
ANY_ACCOUNT_SUSPENDED: Final = "operator.account_suspended"
ACCOUNT_WARNED: Final = events.EventType.ACCOUNT_WARNED.value
ACCOUNT_SUSPENDED: Final = events.EventType.ACCOUNT_SUSPENDED.value
DOMAIN_FAILING: Final = events.EventType.DOMAIN_FAILING.value
CREDITS_LOW: Final = events.EventType.CREDITS_LOW.value
WEBHOOK_FAILING: Final = "webhook.failing"
WEBHOOK_DISABLED: Final = "webhook.disabled"
STORAGE_LOW: Final = "storage.low"
KEY_ENDING: Final = "key.ending"
NEW_NETWORK: Final = "login.new_network"
INVITATION: Final = "user.invited"
PASSWORD_LINK: Final = "user.password_link"  # noqa: S105 - a name

RECOVERY_LINK: Final = "user.recovery_link"
FACTOR_ADDED: Final = "user.second_factor_added"
FACTOR_REMOVED: Final = "user.second_factor_removed"

# What an account can cause to strangers in a day: a team joins.
_MAX_LINKS: Final = 20

KINDS: Final[Mapping[str, Kind]] = {
    CHECK_FAILED: Kind(audience=Audience.OPERATORS, title="A check of the installation fails", path="/operator"),
    CHECK_WARNING: Kind(
        audience=Audience.OPERATORS,
        title="A check of the installation has a warning",
        path="/operator",
        choice=Choice.DIGEST,
    ),
    ADDRESS_BLOCKED: Kind(
        audience=Audience.OPERATORS,
        title="A provider or a blocklist blocks an address of the installation",
        path="/operator/sources",
        free=frozenset({"account", "reply"}),
    ),
    QUEUE_DELAYED: Kind(
        audience=Audience.OPERATORS,
        title="Mail that is ready waits too long",
        path="/operator/queue",
        interval=6 * times.HOUR,
    ),
    ANY_ACCOUNT_SUSPENDED: Kind(
        audience=Audience.OPERATORS,
        title="An account was suspended",
        path="/operator/accounts/{account_id}",
        interval=times.HOUR,
        free=frozenset({"account", "reason"}),
    ),
    ACCOUNT_WARNED: Kind(audience=Audience.OWNERS, title="The bounce guard warns the account", path="/"),
    ACCOUNT_SUSPENDED: Kind(audience=Audience.OWNERS, title="The account was suspended", path="/", interval=times.HOUR),
    DOMAIN_FAILING: Kind(
        audience=Audience.OWNERS, title="The DKIM record of a domain is gone", path="/domains/{domain_id}"
    ),
    WEBHOOK_FAILING: Kind(
        audience=Audience.OWNERS,
        title="A webhook endpoint fails",
        path="/webhooks/{webhook_id}",
        choice=Choice.DIGEST,
    ),
    WEBHOOK_DISABLED: Kind(
        audience=Audience.OWNERS, title="A webhook endpoint was disabled", path="/webhooks/{webhook_id}"
    ),
    CREDITS_LOW: Kind(audience=Audience.OWNERS, title="Credits are low", path="/credits", interval=3 * times.DAY),
    STORAGE_LOW: Kind(audience=Audience.OWNERS, title="Mail storage is almost full", path="/messages"),
    KEY_ENDING: Kind(
        audience=Audience.OWNERS,
        title="An API key expires soon",
        path="/keys",
        interval=30 * times.DAY,
        free=frozenset({"account", "key"}),
    ),
    NEW_NETWORK: Kind(
        audience=Audience.PERSON,
        title="A login from a new network",
        path="/profile",
        max_per_day=_MAX_LINKS,
        is_limited_by_person=True,
        is_security=True,
    ),
    INVITATION: Kind(
        audience=Audience.PERSON,
        title="An invitation",
        interval=5 * 60 * times.SECOND,
        max_per_day=_MAX_LINKS,
        is_security=True,
    ),
    PASSWORD_LINK: Kind(
        audience=Audience.PERSON,
        title="A password link",
        interval=5 * 60 * times.SECOND,
        max_per_day=_MAX_LINKS,
        is_security=True,
    ),
    RECOVERY_LINK: Kind(
        audience=Audience.PERSON,
        title="A recovery link",
        interval=5 * 60 * times.SECOND,
        max_per_day=_MAX_LINKS,
        is_security=True,
    ),
    FACTOR_ADDED: Kind(
        audience=Audience.PERSON,
        title="A two-factor method was added",
        path="/profile/security",
        interval=5 * 60 * times.SECOND,
        max_per_day=_MAX_LINKS,
        is_limited_by_person=True,
        is_security=True,
    ),
    FACTOR_REMOVED: Kind(
        audience=Audience.PERSON,
        title="A two-factor method was removed",
        path="/profile/security",
        interval=5 * 60 * times.SECOND,
        max_per_day=_MAX_LINKS,
        is_limited_by_person=True,
        is_security=True,
    ),
}
