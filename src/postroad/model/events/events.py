"""Webhook events and their JSON.

The bytes of an event are made once, here; retries and replays send the same ones, and the signature covers them. Empty
members are omitted. Foreign text is truncated. The Structs are also the source of the JSON schemas
(`schema_of_type`): their descriptions are public.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec

from postroad.model.mail import statuses
from postroad.model.units import identifiers, times

SUBJECT_CHARACTERS: Final = 200
RESPONSE_CHARACTERS: Final = 500
PING_SUBJECT: Final = "Postroad webhook test"
# Causes without an attempt: of a bounce, and of a recipient whose time is over. Those with one have a reason of
# `bounces/reasons.py`.
SUPPRESSED_CAUSE: Final = "suppressed"
EXPIRED_CAUSE: Final = "deadline_passed"


class EventType(StrEnum):
    """What happened."""

    DELIVERED = "email.delivered"
    BOUNCED = "email.bounced"
    FAILED = "email.failed"
    ACCEPTED = "email.accepted"
    DEFERRED = "email.deferred"
    COMPLAINED = "email.complained"
    BOUNCED_LATER = "email.bounced_later"
    SUPPRESSED = "email.suppressed"
    UNSUBSCRIBED = "email.unsubscribed"
    EXPIRED = "email.expired"
    CANCELED = "email.canceled"
    RECEIVED = "email.received"
    DOMAIN_VERIFIED = "domain.verified"
    DOMAIN_FAILING = "domain.failing"
    ACCOUNT_WARNED = "account.warned"
    ACCOUNT_SUSPENDED = "account.suspended"
    CREDITS_LOW = "credits.low"
    TEST = "webhook.test"


# What an endpoint gets that names no types: those of tests/conformance/interface.md.
DEFAULT: Final = (EventType.DELIVERED, EventType.BOUNCED, EventType.FAILED)
# What an endpoint can subscribe to. A test event is sent on request.
SUBSCRIBABLE: Final = tuple(kind for kind in EventType if kind is not EventType.TEST)
OF_STATUS: Final = {
    statuses.RecipientStatus.DELIVERED: EventType.DELIVERED,
    statuses.RecipientStatus.BOUNCED: EventType.BOUNCED,
    statuses.RecipientStatus.FAILED: EventType.FAILED,
    statuses.RecipientStatus.EXPIRED: EventType.EXPIRED,
    statuses.RecipientStatus.CANCELED: EventType.CANCELED,
}


def _described(description: str) -> msgspec.Meta:
    return msgspec.Meta(description=description)


_Cause = Annotated[
    str,
    _described(
        "Why it was not delivered: a reason of docs/bounces.md, such as `greylisted`; `suppressed` or `unsubscribed`."
    ),
]


class Data(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A recipient, and what happened to it."""

    email_id: Annotated[str, _described("The message.")] = ""
    recipient_id: Annotated[str, _described("The recipient.")] = ""
    to: Annotated[str, _described("The recipient's address.")] = ""
    sender: Annotated[str, _described("The envelope sender.")] = msgspec.field(default="", name="from")
    subject: Annotated[str, _described(f"The subject, at most {SUBJECT_CHARACTERS} characters of it.")] = ""
    smtp_code: Annotated[int, _described("The reply code of the receiving server.")] | msgspec.UnsetType = msgspec.UNSET
    smtp_response: Annotated[
        str, _described(f"The text of the reply, at most {RESPONSE_CHARACTERS} characters of it.")
    ] = ""
    test: Annotated[bool, _described("True in `webhook.test`, and for messages in test mode.")] = False


class DataV2(Data, frozen=True, kw_only=True, omit_defaults=True):
    """A recipient, and what happened to it, with the message's own data and the circumstances of the attempt."""

    tags: Annotated[tuple[str, ...], _described("The message's tags.")] = ()
    metadata: Annotated[dict[str, str], _described("The message's metadata.")] = msgspec.field(default_factory=dict)
    cause: _Cause = ""
    enhanced_code: Annotated[str, _described("The enhanced status code of the reply (RFC 3463).")] = ""
    header_from: Annotated[str, _described("The address in the From header.")] = ""
    attempt: Annotated[int, _described("How many attempts there have been.")] = 0
    mx_host: Annotated[str, _described("The host that the last attempt connected to.")] = ""


class DeferredData(DataV2, frozen=True, kw_only=True, omit_defaults=True):
    """A recipient that is tried again."""

    cause: _Cause
    next_attempt_at: Annotated[times.WireTime, _described("When the next attempt is due.")]


class ComplainedData(DataV2, frozen=True, kw_only=True, omit_defaults=True):
    """A recipient who complained."""

    feedback_type: Annotated[str, _described("The type of the report (RFC 5965), such as `abuse`.")]


class SuppressedData(DataV2, frozen=True, kw_only=True, omit_defaults=True):
    """A recipient whose address was put on the suppression list."""

    source: Annotated[str, _described("What put it there: `bounce`, `late_bounce` or `complaint`.")]


class UnsubscribedData(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient who has left a list, or has stopped all mail of the account."""

    to: Annotated[str, _described("The recipient's address, in lower case.")]
    list_name: Annotated[str, _described("The list that was left; empty for all mail of the account.")] = msgspec.field(
        name="list"
    )
    email_id: Annotated[str, _described("The message whose link was used; it may no longer be retained.")]
    source: Annotated[
        str, _described("`one_click` (RFC 8058) for the button of a mail client, `page` for the unsubscribe page.")
    ]


class DomainData(msgspec.Struct, frozen=True, kw_only=True):
    """A sender domain that was verified."""

    domain_id: Annotated[str, _described("The domain.")]
    domain: Annotated[str, _described("Its name.")]
    verified_by: Annotated[str, _described("`dns` or `operator`.")]


class FailingDomainData(msgspec.Struct, frozen=True, kw_only=True):
    """A sender domain whose DKIM record is gone from DNS."""

    domain_id: Annotated[str, _described("The domain.")]
    domain: Annotated[str, _described("Its name.")]
    failing_since: Annotated[times.WireTime, _described("Since when the record is missing.")]
    verified_until: Annotated[
        times.WireTime, _described("When the verification ends if the record does not come back.")
    ]


class WarnedAccountData(msgspec.Struct, frozen=True, kw_only=True):
    """The bounce guard's warning, and what it counted in its window."""

    cause: Annotated[str, _described("`bounces` or `complaints`.")]
    recipients: Annotated[int, _described("Recipients in the days that the bounce guard evaluates.")]
    bounces: Annotated[int, _described("Those of them that do not exist.")]
    complaints: Annotated[int, _described("Those of them who complained.")]


class SuspendedAccountData(msgspec.Struct, frozen=True, kw_only=True):
    """Why an account may no longer send."""

    suspended_by: Annotated[str, _described("`bounce_guard` or `operator`.")]
    reason: Annotated[str, _described("A sentence, as in the error that sending now gets.")]


class CreditsData(msgspec.Struct, frozen=True, kw_only=True):
    """An account that has fewer credits than it used in the last three days."""

    available: Annotated[int, _described("Credits left.")]
    used: Annotated[int, _described("Recipients in the last three days.")]


# What a name has only between quotation marks.
_SPECIALS: Final = frozenset('()<>[]:;@\\,."')
# Of a text and of HTML in an event; the raw message has the rest.
BODY_CHARACTERS: Final = 100_000


class ReceivedAddress(msgspec.Struct, frozen=True, omit_defaults=True):
    """An address and its display name."""

    address: Annotated[str, _described("The address, with its domain in A-labels; empty if none can be read.")]
    name: Annotated[str, _described("The display name.")] = ""

    def __str__(self) -> str:
        """As in a header field (RFC 5322 section 3.4), with characters of all languages."""
        if not (self.name and self.address):
            return self.name or self.address
        name = self.name
        if not _SPECIALS.isdisjoint(name):
            name = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return f"{name} <{self.address}>"


class ReceivedAddresses(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The addresses in the header of a received message."""

    from_: Annotated[tuple[ReceivedAddress, ...], _described("The From field.")] = msgspec.field(
        default=(), name="from"
    )
    to: Annotated[tuple[ReceivedAddress, ...], _described("The To field.")] = ()
    cc: Annotated[tuple[ReceivedAddress, ...], _described("The Cc field.")] = ()
    reply_to: Annotated[tuple[ReceivedAddress, ...], _described("The Reply-To field.")] = ()


class ReceivedHeader(msgspec.Struct, frozen=True):
    """A header field of a received message."""

    name: str
    value: str


class AuthenticationResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of an authentication method for a domain."""

    result: Annotated[str, _described("As in RFC 8601: `pass`, `fail`, `softfail`, `none`, `temperror` and so on.")]
    domain: Annotated[str, _described("The domain that was checked.")] = ""
    selector: Annotated[str, _described("The selector of a DKIM signature.")] = ""
    policy: Annotated[str, _described("Of DMARC: the policy of the domain.")] = ""
    reason: Annotated[str, _described("Why, in words.")] = ""


class Authentication(msgspec.Struct, frozen=True):
    """The results of SPF, DKIM, DMARC and ARC for a received message."""

    spf: AuthenticationResult
    dkim: Annotated[tuple[AuthenticationResult, ...], _described("One result for each signature.")]
    dmarc: AuthenticationResult
    arc: AuthenticationResult


class ReceivedSpam(msgspec.Struct, frozen=True):
    """The result of SpamAssassin."""

    score: float
    required: Annotated[float, _described("The score from which mail is spam.")]
    is_spam: bool


class ReceivedFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An attachment of a received message."""

    filename: str
    content_type: str
    size: int
    content_id: str = ""
    disposition: Annotated[str, _described("`inline` or `attachment`.")]
    sha256: str
    url: Annotated[str, _described("Downloads it without an API key, until `attachments_expire_at`.")]


class ReceivedData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that a route has received. `from`, `to` and `subject` are texts, as in the other events of mail."""

    inbound_id: Annotated[str, _described("The received message.")]
    route_id: Annotated[str, _described("The route that received it.")]
    route: Annotated[str, _described("The `match` of the route, such as `support+*@in.example.com`.")]
    to: Annotated[str, _described("The envelope recipient.")]
    sender: Annotated[str, _described("The address in the From field. Anybody can write it: see `authentication`.")] = (
        msgspec.field(default="", name="from")
    )
    envelope_from: Annotated[str, _described("The envelope sender; absent for the null sender.")] = ""
    addresses: Annotated[ReceivedAddresses, _described("The addresses in its header, with display names.")]
    subject: Annotated[str, _described("The subject.")] = ""
    date: Annotated[times.WireTime | None, _described("The Date field.")] = None
    message_id: Annotated[str | None, _described("The Message-ID field, in angle brackets.")] = None
    email_id: Annotated[str | None, _described("The message of yours that it replies to.")] = None
    text: Annotated[str | None, _described(f"The text, at most {BODY_CHARACTERS:,} characters of it.")] = None
    html: Annotated[str | None, _described(f"The HTML, at most {BODY_CHARACTERS:,} characters of it.")] = None
    truncated: Annotated[bool, _described("Whether something was left out.")] = False
    headers: Annotated[tuple[ReceivedHeader, ...], _described("The header fields, in order.")] = ()
    authentication: Annotated[Authentication, _described("The results of SPF, DKIM, DMARC and ARC.")]
    spam: Annotated[ReceivedSpam | None, _described("The result of SpamAssassin, if the operator runs it.")] = None
    attachments: Annotated[tuple[ReceivedFile, ...], _described("The attachments, with URLs to download them.")] = ()
    attachments_expire_at: Annotated[times.WireTime | None, _described("When the URLs expire.")] = None
    size: Annotated[int, _described("The size in bytes, as it arrived.")]


AccountData = (
    DomainData
    | FailingDomainData
    | WarnedAccountData
    | SuspendedAccountData
    | CreditsData
    | ReceivedData
    | UnsubscribedData
)

# The versions of the data that an endpoint can ask for.
V1: Final = 1
V2: Final = 2
VERSIONS: Final = (V1, V2)
# In version 1 the types of tests/conformance/interface.md have the members of that page. All other data is the same in
# both.
_V1_TYPES: Final = frozenset({*DEFAULT, EventType.TEST})
_OWN_DATA: Final[dict[EventType, type[msgspec.Struct]]] = {
    EventType.DEFERRED: DeferredData,
    EventType.COMPLAINED: ComplainedData,
    EventType.SUPPRESSED: SuppressedData,
    EventType.RECEIVED: ReceivedData,
    EventType.UNSUBSCRIBED: UnsubscribedData,
    EventType.DOMAIN_VERIFIED: DomainData,
    EventType.DOMAIN_FAILING: FailingDomainData,
    EventType.ACCOUNT_WARNED: WarnedAccountData,
    EventType.ACCOUNT_SUSPENDED: SuspendedAccountData,
    EventType.CREDITS_LOW: CreditsData,
    EventType.TEST: Data,
}

D = TypeVar("D")


class Event(msgspec.Struct, Generic[D], frozen=True, kw_only=True):
    """The event. Endpoints deduplicate by `id`."""

    id: str
    type: EventType
    created_at: times.WireTime
    data: D


class EmailEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event about a recipient before it has bytes, for the formats of other services.

    `message_id` is the field of the message, or None for mail over SMTP whose content is no longer retained.
    """

    kind: EventType
    at: int
    data: DataV2
    is_scheduled: bool
    is_suppressed: bool
    message_id: str | None


class ReceivedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The same about a mail that was received, with its files; None is one that is too large for an event."""

    at: int
    data: ReceivedData
    files: tuple[bytes | None, ...]


def reply(data: Data) -> str:
    """The whole reply of the receiving server, if there was one."""
    code = "" if data.smtp_code is msgspec.UNSET else str(data.smtp_code)
    return f"{code} {data.smtp_response}".strip()


def is_email(kind: EventType) -> bool:
    """Whether a type is about a recipient of a message, which may be gone when somebody unsubscribes."""
    return kind.startswith("email.") and kind not in {EventType.RECEIVED, EventType.UNSUBSCRIBED}


def data_type(kind: EventType, version: int) -> type[msgspec.Struct]:
    """The Struct of the data of a type in a version."""
    return Data if version == V1 and kind in _V1_TYPES else _OWN_DATA.get(kind, DataV2)


def body(event_id: str, kind: EventType, *, created_at: int, data: msgspec.Struct) -> bytes:
    """The bytes of an event; `created_at` is microseconds."""
    event: Event[Any] = Event(id=event_id, type=kind, created_at=times.to_wire(created_at), data=data)
    return msgspec.json.encode(event)


def ping(event_id: str, *, created_at: int) -> bytes:
    """The bytes of a test event."""
    data = Data(subject=PING_SUBJECT, test=True)
    return body(event_id, EventType.TEST, created_at=created_at, data=data)


def recipient(
    *, subject: str, response: str, kind: EventType = EventType.DELIVERED, version: int = V1, **members: Any
) -> msgspec.Struct:
    """The data of an event about a recipient, with long texts truncated. Unknown members are dropped."""
    struct = data_type(kind, version)
    members["subject"] = subject[:SUBJECT_CHARACTERS]
    members["smtp_response"] = response[:RESPONSE_CHARACTERS]
    return struct(**{name: members[name] for name in struct.__struct_fields__ if members.get(name) is not None})


# JSON schemas (draft 2020-12) of the webhook events, made from the Structs that encode them.
#
# They allow other members: more may be added to any event.

Schema = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
# What the data of every event about a recipient has. A test event has neither, so the Struct cannot say it.
_RECIPIENT: Final = ("email_id", "recipient_id", "to", "from")


class EventSchema(msgspec.Struct, frozen=True):
    """The JSON schema (draft 2020-12) of an event type."""

    type: str
    versions: Annotated[list[int], msgspec.Meta(description="The webhook versions in which the event has this form.")]
    schema: Annotated[Schema, msgspec.Meta(description="The schema of the request body.")]


def schema_of_type(kind: EventType) -> list[EventSchema]:
    """The schemas of a type: one, or one for each version where these differ."""
    versions: dict[type[msgspec.Struct], list[int]] = {}
    for version in VERSIONS:
        versions.setdefault(data_type(kind, version), []).append(version)
    return [EventSchema(kind, numbers, _schema(kind, struct)) for struct, numbers in versions.items()]


def _schema(kind: EventType, struct: type[msgspec.Struct]) -> Schema:
    _, parts = msgspec.json.schema_components([Event[struct], struct])  # type: ignore[valid-type]
    event, data = parts.pop(f"Event_{struct.__name__}_"), _inlined(parts[struct.__name__], parts)
    for member in data["properties"].values():
        member.pop("default", None)  # absent when empty
    if is_email(kind):
        data["required"] = [*_RECIPIENT, *data["required"]]
    event["properties"] |= {
        "id": {"type": "string", "pattern": identifiers.pattern(identifiers.EVENT)},
        "type": {"const": kind.value},
        "data": {name: part for name, part in data.items() if name != "title"},
    }
    return {"$schema": DIALECT, **event, "title": kind.value}


def _inlined(part: Schema, parts: Mapping[str, Schema]) -> Schema:
    """A part of a schema with those that it refers to in their places: the schema stands for itself anywhere."""
    if (reference := part.get("$ref")) is not None:
        referred = _inlined(parts[reference.rpartition("/")[2]], parts)
        return {name: value for name, value in (referred | part).items() if name not in {"$ref", "title"}}
    return {name: _inlined_value(value, parts) for name, value in part.items()}


def _inlined_value(value: object, parts: Mapping[str, Schema]) -> object:
    if isinstance(value, list):
        return [_inlined_value(each, parts) for each in value]
    return _inlined(value, parts) if isinstance(value, dict) else value


class RecipientEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to a recipient: the event, and what it contains besides what the store has."""

    # Its account, message and recipient.
    key: tuple[str, str, str]
    kind: EventType
    at: int
    smtp_code: int | None = None
    response: str = ""
    enhanced_code: str = ""
    cause: str = ""
    mx_host: str = ""
    next_attempt_at: int | None = None
    feedback_type: str | None = None
    source: str | None = None


class AccountEvent(msgspec.Struct, frozen=True):
    """What happened to an account or to one of its domains. `files` are those of a `ReceivedEvent`."""

    account_id: str
    kind: EventType
    at: int
    data: AccountData
    files: tuple[bytes | None, ...] = ()
