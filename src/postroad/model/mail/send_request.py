"""The send request: one message given by its fields, from the request body or the command line to `submit`.

The Structs reject unknown members and wrong types, and the OpenAPI document is generated from them. The patterns repeat
those of the parsers in `protocol` for readers and tools; `mail/accept/validation.py` applies the parsers, which
decide.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from postroad import errors
from postroad.model.mail import limits, simulated_outcomes, statuses
from postroad.model.units import labels, times
from postroad.protocol.mime import address, builder, content_types, file_names, header_fields, transfer_encoding

# A longer list is a mistake whatever its members are; duplicates within the limit are allowed.
MAX_ADDRESSES: Final = 4 * limits.UNIQUE_RECIPIENTS
RESERVED_HEADERS: Final = frozenset(
    "from sender to cc bcc subject reply-to date message-id return-path received mime-version dkim-signature "
    "authentication-results delivered-to errors-to idempotency-key".split()
)
RESERVED_HEADER_PREFIXES: Final = ("content-", "arc-", "resent-", "x-service-")
# The bound is in the pattern, not in `maxLength`: property-based tools that try each bound of a member search for
# minutes for an address of that length.
ADDRESS_PATTERN: Final = rf"^(?![\s\S]{{{address.MAX_CHARACTERS + 1}}}){address.SCHEMA_PATTERN[1:]}"
UNIQUE_RULE: Final = f"`to`, `cc` and `bcc` together take at most {limits.UNIQUE_RECIPIENTS} unique addresses."


def _any_case(word: str) -> str:
    """A case-insensitive pattern: JSON Schema has no flag for it."""
    return "".join(f"[{letter.upper()}{letter}]" if letter.isalpha() else letter for letter in word)


RESERVED_PATTERN: Final = "|".join(
    [
        *(f"{_any_case(name)}$" for name in sorted(RESERVED_HEADERS)),
        *(_any_case(prefix) for prefix in RESERVED_HEADER_PREFIXES),
    ]
)

Address = Annotated[
    str,
    msgspec.Meta(
        title="Address",
        description="`user@example.com` or `Name <user@example.com>`.",
        examples=["user@example.com", "Name <user@example.com>"],
        extra_json_schema={"pattern": ADDRESS_PATTERN},
    ),
]
Addresses = Annotated[tuple[Address, ...], msgspec.Meta(max_length=MAX_ADDRESSES)]
SomeAddresses = Annotated[tuple[Address, ...], msgspec.Meta(min_length=1, max_length=MAX_ADDRESSES)]
ReplyAddresses = Annotated[tuple[Address, ...], msgspec.Meta(max_length=limits.REPLY_TO_ADDRESSES)]
# Safe in a header, and readable.
TAG_PATTERN: Final = f"(?={header_fields.VALUE_PATTERN}){labels.LABEL_PATTERN}"
Tag = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=limits.TAG_CHARACTERS, extra_json_schema={"pattern": TAG_PATTERN}),
]
Tags = Annotated[tuple[Tag, ...], msgspec.Meta(max_length=limits.TAGS)]
HeaderName = Annotated[
    str, msgspec.Meta(extra_json_schema={"pattern": f"^(?!{RESERVED_PATTERN})" + header_fields.NAME_PATTERN[1:]})
]
HeaderValue = Annotated[
    str,
    msgspec.Meta(
        extra_json_schema={
            "pattern": header_fields.VALUE_PATTERN,
            "maxLength": limits.HEADER_LINE_OCTETS - header_fields.MAX_NAME_CHARACTERS - 2,
        }
    ),
]
MetadataKey = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": f"^{limits.METADATA_KEY_PATTERN}$"})]
MetadataValue = Annotated[
    str,
    msgspec.Meta(max_length=limits.METADATA_VALUE_CHARACTERS, extra_json_schema={"pattern": r"^[^\x00]*$"}),
]
Body = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": r"^[^\x00]*$"})]


class Attachment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file to attach."""

    filename: Annotated[
        str,
        msgspec.Meta(description="File name without a path.", extra_json_schema={"pattern": file_names.SCHEMA_PATTERN}),
    ]
    content: Annotated[
        str,
        msgspec.Meta(
            description="File content in base64.",
            extra_json_schema={"pattern": transfer_encoding.BASE64_PATTERN, "contentEncoding": "base64"},
        ),
    ]
    content_type: (
        Annotated[
            str,
            msgspec.Meta(
                description="Derived from the file extension when not given.",
                extra_json_schema={
                    "pattern": content_types.SCHEMA_PATTERN,
                    "maxLength": content_types.MAX_CHARACTERS,
                },
            ),
        ]
        | None
    ) = None
    content_id: (
        Annotated[
            str,
            msgspec.Meta(
                description="Marks an inline image; refer to it in the HTML as `cid:<content_id>`.",
                extra_json_schema={"pattern": builder.CONTENT_ID_PATTERN},
            ),
        ]
        | None
    ) = None


class Simulate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which provider the simulator imitates for the message, and how that provider behaves."""

    provider: simulated_outcomes.SimulatedProvider
    behaviour: simulated_outcomes.ProviderBehaviour


ListName = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=limits.LIST_CHARACTERS, extra_json_schema={"pattern": labels.LABEL_PATTERN}),
]


class Unsubscribe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The list that the recipient can leave with one click."""

    list_name: Annotated[
        ListName, msgspec.Meta(description="The name of the list, which the recipient sees, such as `Product news`.")
    ] = msgspec.field(name="list")


class SendRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A message to send. `null` is the same as leaving a member out."""

    sender: Annotated[
        Address, msgspec.Meta(description="The sender. Its domain must be registered by the account.")
    ] = msgspec.field(name="from")
    to: Annotated[Address | SomeAddresses, msgspec.Meta(description=f"One address or a list. {UNIQUE_RULE}")]
    cc: Annotated[Address | Addresses | None, msgspec.Meta(description="Copy recipients, visible to everybody.")] = None
    bcc: Annotated[Address | Addresses | None, msgspec.Meta(description="Blind copy recipients, in no header.")] = None
    reply_to: Annotated[
        Address | ReplyAddresses | None,
        msgspec.Meta(
            description="Where replies go, if not to `from`: one address, or a list of up to "
            f"{limits.REPLY_TO_ADDRESSES}. A list of one is that address."
        ),
    ] = None
    subject: (
        Annotated[
            str,
            msgspec.Meta(
                description="Required unless a template supplies it.",
                min_length=1,
                max_length=limits.SUBJECT_CHARACTERS,
                extra_json_schema={"pattern": header_fields.VALUE_PATTERN},
            ),
        ]
        | None
    ) = None
    text: Annotated[Body | None, msgspec.Meta(description="The plain text body; an empty string counts as absent.")] = (
        None
    )
    html: Annotated[Body | None, msgspec.Meta(description="The HTML body; an empty string counts as absent.")] = None
    template: (
        Annotated[
            str,
            msgspec.Meta(
                description="Alias of a template of the account. Cannot be combined with `text` or `html`.",
                extra_json_schema={"pattern": f"^{limits.TEMPLATE_ALIAS_PATTERN}$"},
            ),
        ]
        | None
    ) = None
    variables: (
        Annotated[
            Mapping[str, statuses.TemplateValue],
            msgspec.Meta(
                description="Values for the `{{name}}` placeholders of the template; lists and objects for its "
                f"sections, at most {limits.VARIABLE_DEPTH} deep and with {limits.VARIABLE_VALUES} values in all.",
                max_length=limits.VARIABLES,
            ),
        ]
        | None
    ) = None
    headers: (
        Annotated[
            Mapping[HeaderName, HeaderValue],
            msgspec.Meta(
                description="Custom headers, such as `List-Unsubscribe: <https://…>, <mailto:…>`. Headers that "
                "Postroad sets or reads itself are refused, and so are two names that differ only in case.",
                max_length=limits.CUSTOM_HEADERS,
            ),
        ]
        | None
    ) = None
    tags: Annotated[
        Tag | Tags | None, msgspec.Meta(description="One tag or a list; each becomes an `X-Service-Tag` header.")
    ] = None
    send_at: (
        Annotated[
            str,
            msgspec.Meta(
                description=f"When to send, RFC 3339 with a time zone, up to {limits.SEND_AT_DAYS} days ahead; at once "
                "when not given.",
                examples=["2026-01-31T12:00:00Z"],
                extra_json_schema={"format": "date-time"},
            ),
        ]
        | None
    ) = None
    expires_in: (
        Annotated[
            int,
            msgspec.Meta(
                description="Seconds from `send_at`, or from acceptance, after which delivery is no longer tried.",
                ge=limits.MIN_EXPIRES_IN_SECONDS,
                le=limits.MAX_EXPIRES_IN_SECONDS,
            ),
        ]
        | None
    ) = None
    metadata: (
        Annotated[
            Mapping[MetadataKey, MetadataValue],
            msgspec.Meta(
                description="Your own data, which is returned and can be searched for, and is never part of the "
                "message itself. Keys have 1 to 40 of the characters `A-Za-z0-9_-`, values up to "
                f"{limits.METADATA_VALUE_CHARACTERS} characters.",
                max_length=limits.METADATA_KEYS,
            ),
        ]
        | None
    ) = None
    attachments: (
        Annotated[tuple[Attachment, ...], msgspec.Meta(description="Files to attach.", max_length=limits.ATTACHMENTS)]
        | None
    ) = None
    simulate: Annotated[
        Simulate | None,
        msgspec.Meta(description="Only with a test key: the simulator imitates a provider for all recipients."),
    ] = None
    unsubscribe: Annotated[
        Unsubscribe | None,
        msgspec.Meta(
            description="Adds a one-click unsubscribe link (RFC 8058), and sends nothing to those who have left the "
            "list. Only with one recipient."
        ),
    ] = None


# The batch request: several complete send requests, or one template for many recipients.
#
# The members of the second form are those of a send request, so they are taken from there: an option that a single send
# gets exists for a batch too. `expand` turns both forms into send requests.

MAX_EMAILS: Final = 100
MAX_RECIPIENTS: Final = 500
# Of one recipient, or not for messages from a template.
_OWN: Final = frozenset({"to", "cc", "bcc", "text", "html", "variables"})
_MEMBERS: Final = msgspec.structs.fields(SendRequest)
_TYPES: Final[Mapping[str, Any]] = {member.name: member.type for member in _MEMBERS}
# Python name and wire name of what all messages of a template have in common.
BATCH_COMMON: Final = {member.name: member.encode_name for member in _MEMBERS if member.name not in _OWN}


class BatchRecipient(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One recipient of a template: a message of its own, which no other recipient sees."""

    to: Address
    variables: Annotated[
        Mapping[str, statuses.TemplateValue] | None,
        msgspec.Meta(description="Values for the placeholders of the template."),
    ] = None
    metadata: Annotated[
        Mapping[MetadataKey, MetadataValue] | None,
        msgspec.Meta(description="Added to the `metadata` of the batch; takes precedence over it."),
    ] = None


Emails = Annotated[
    tuple[SendRequest, ...],
    msgspec.Meta(min_length=1, max_length=MAX_EMAILS, description=f"Up to {MAX_EMAILS} complete send requests."),
]
Recipients = Annotated[
    tuple[BatchRecipient, ...],
    msgspec.Meta(
        min_length=1,
        max_length=MAX_RECIPIENTS,
        description=f"Up to {MAX_RECIPIENTS} recipients of `template`, each of whom gets a message of their own.",
    ),
]
AllOrNothing = Annotated[
    bool,
    msgspec.Meta(description="Whether one refused item refuses the whole batch. Otherwise the others are accepted."),
]
BatchRequest = msgspec.defstruct(
    "BatchRequest",
    [
        ("emails", Emails | None, None),
        ("recipients", Recipients | None, None),
        ("all_or_nothing", AllOrNothing | None, None),
        *((name, _TYPES[name] | None, msgspec.field(name=wire, default=None)) for name, wire in BATCH_COMMON.items()),
    ],
    namespace={
        "__doc__": "Several messages: `emails`, or `recipients` with `template`, `from` and what they have in common."
    },
    module=__name__,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
)


class Expanded(msgspec.Struct, frozen=True):
    """The send requests of a batch in order; `member` names their list in the request."""

    member: str
    requests: Sequence[SendRequest]
    all_or_nothing: bool


def expand_batch(request: msgspec.Struct) -> Expanded:
    """The send requests of a `BatchRequest`. Raises InvalidRequest for a mixture of its forms."""
    given = {name: value for name, value in msgspec.structs.asdict(request).items() if value is not None}
    all_or_nothing = bool(given.pop("all_or_nothing", False))
    emails, recipients = given.pop("emails", None), given.pop("recipients", None)
    if (emails is None) == (recipients is None):
        raise errors.InvalidRequest("body: give either emails, or recipients with template")
    if emails is not None:
        if given:
            wire = BATCH_COMMON[next(iter(given))]
            raise errors.InvalidRequest(f"{wire}: not allowed beside emails; set it in each of them")
        return Expanded("emails", emails, all_or_nothing)
    for name in ("template", "sender"):
        if name not in given:
            raise errors.InvalidRequest(f"{BATCH_COMMON[name]}: required with recipients")
    shared = given.pop("metadata", {})
    return Expanded(
        "recipients",
        [
            SendRequest(
                **given,
                to=recipient.to,
                variables=recipient.variables,
                metadata={**shared, **(recipient.metadata or {})},
            )
            for recipient in recipients
        ],
        all_or_nothing,
    )


# When a message is sent, and when delivery of it ends (docs/api.md, "Scheduling and expiry").
#
# A sender may give two options: `send_at`, a time up to 30 days ahead, and `expires_in`, seconds that count from there
# or, without it, from acceptance. Times are microseconds.


class SendTimes(msgspec.Struct, frozen=True):
    """The times of a message, None where the sender gave none: not before `send_at`, not after `expires_at`."""

    send_at: int | None = None
    expires_at: int | None = None

    def begins_at(self, accepted_at: int) -> int:
        """When delivery begins; the expiry counts from here."""
        return max(accepted_at, self.send_at or accepted_at)


UNTIMED = SendTimes()


def parse_send_at(text: str) -> int:
    """The time in the member `send_at`."""
    try:
        return times.parse(text)
    except ValueError as problem:
        raise errors.InvalidRequest(f"send_at: {problem}") from None


def check_expires_in(seconds: int) -> int:
    """The member `expires_in`, if it is within its bounds."""
    if not limits.MIN_EXPIRES_IN_SECONDS <= seconds <= limits.MAX_EXPIRES_IN_SECONDS:
        raise errors.InvalidRequest(
            f"expires_in: {seconds} seconds; it must be {limits.MIN_EXPIRES_IN_SECONDS} to "
            f"{limits.MAX_EXPIRES_IN_SECONDS} (5 days)"
        )
    return seconds


def resolve_times(*, send_at: int | None, expires_in: int | None, now: int) -> SendTimes:
    """The times of a message that is accepted now. Raises InvalidRequest when `send_at` is out of range."""
    if send_at is not None:
        check_send_at(send_at, now=now)
    held = SendTimes(send_at) if send_at is not None else UNTIMED
    return held if expires_in is None else SendTimes(send_at, held.begins_at(now) + expires_in * times.SECOND)


def check_send_at(send_at: int, *, now: int) -> None:
    """Refuse a time that is over, or too far ahead. The clocks of callers differ a little from ours."""
    if send_at < now - limits.SEND_AT_TOLERANCE_SECONDS * times.SECOND:
        raise errors.InvalidRequest(
            f"send_at: {times.to_wire(send_at)} is in the past, it is {times.to_wire(now)} now; leave it out to send "
            "at once"
        )
    if send_at > now + limits.SEND_AT_DAYS * times.DAY:
        raise errors.InvalidRequest(
            f"send_at: {times.to_wire(send_at)} is more than {limits.SEND_AT_DAYS} days ahead; it is "
            f"{times.to_wire(now)} now"
        )


def move_times(current: SendTimes, send_at: int, *, created_at: int) -> SendTimes:
    """The times after `send_at` has changed; the expiry keeps its distance from it."""
    if current.expires_at is None:
        return SendTimes(send_at)
    return SendTimes(send_at, current.expires_at + send_at - current.begins_at(created_at))


# The receipt: the response to an accepted submission or batch (docs/api.md, "Send").
#
# It is encoded once, stored with the message, and sent again byte for byte when its idempotency key is replayed.


class AttachmentReceipt(msgspec.Struct, frozen=True):
    """An attachment as accepted; `size` is the decoded size in bytes."""

    filename: str
    content_type: str
    size: int
    content_id: str | msgspec.UnsetType = msgspec.UNSET


# The header field of a stored response to an earlier request with the same key.
REPLAYED: Final = ("Idempotent-Replayed", "true")


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted message. Addresses are returned as written."""

    id: str
    status: Literal["queued"] = "queued"
    source: Literal["api", "smtp", "test"]
    request_id: str
    sender: str = msgspec.field(name="from")
    to: tuple[str, ...]
    cc: tuple[str, ...]
    bcc: tuple[str, ...]
    # A list where several were given.
    reply_to: str | tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    subject: str
    billing_status: Literal["reserved", "settled", "released"] = "reserved"
    recipient_count: int
    credits_reserved: int
    headers: dict[str, str]
    tags: tuple[str, ...]
    attachments: tuple[AttachmentReceipt, ...]
    # Where the sender gave them.
    send_at: times.WireTime | msgspec.UnsetType = msgspec.UNSET
    expires_at: times.WireTime | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    unsubscribe: Unsubscribe | msgspec.UnsetType = msgspec.UNSET
    # Only of a message that sends another one again.
    resend_of: str | msgspec.UnsetType = msgspec.UNSET
    # Only of a test message.
    test: Literal[True] | msgspec.UnsetType = msgspec.UNSET

    @property
    def reply_to_addresses(self) -> tuple[str, ...]:
        """The addresses of `reply_to`, however many."""
        if isinstance(self.reply_to, tuple):
            return self.reply_to
        return () if self.reply_to is msgspec.UNSET else (self.reply_to,)


class ItemError(msgspec.Struct, frozen=True):
    """Why an item of a batch was refused."""

    code: str
    message: str


class BatchResult(msgspec.Struct, frozen=True):
    """The result of one item of a batch: the id of its message, or its error."""

    id: str | msgspec.UnsetType = msgspec.UNSET
    error: ItemError | msgspec.UnsetType = msgspec.UNSET


class BatchReceipt(msgspec.Struct, frozen=True):
    """The results of a batch, in the order of its items."""

    results: tuple[BatchResult, ...]
    request_id: str
