"""The send request and the message: the Structs that validate, and from which the OpenAPI document is generated.

The patterns repeat those of the parsers in `protocol` for readers and tools; the parsers decide. Rules across several
members are in `SEND_RULES`.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec

from postroad.model import identifiers, labels, limits, mail, times
from postroad.protocol import address, file_names
from postroad.protocol.mime import base64_lines, builder, content_types, header_text
from postroad.services.acceptance import validation
from postroad.storage import messages, recipients

# The bound is in the pattern, not in `maxLength`: property-based tools that try each bound of a member search for
# minutes for an address of that length.
ADDRESS_PATTERN: Final = rf"^(?![\s\S]{{{address.MAX_CHARACTERS + 1}}}){address.SCHEMA_PATTERN[1:]}"
UNIQUE_RULE: Final = f"`to`, `cc` and `bcc` together take at most {limits.UNIQUE_RECIPIENTS} unique addresses."


def _any_case(word: str) -> str:
    """A case-insensitive pattern: JSON Schema has no flag for it."""
    return "".join(f"[{letter.upper()}{letter}]" if letter.isalpha() else letter for letter in word)


RESERVED_PATTERN: Final = "|".join(
    [
        *(f"{_any_case(name)}$" for name in sorted(validation.RESERVED_HEADERS)),
        *(_any_case(prefix) for prefix in validation.RESERVED_HEADER_PREFIXES),
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
Addresses = Annotated[list[Address], msgspec.Meta(max_length=validation.MAX_ADDRESSES)]
SomeAddresses = Annotated[list[Address], msgspec.Meta(min_length=1, max_length=validation.MAX_ADDRESSES)]
# Safe in a header, and readable.
TAG_PATTERN: Final = f"(?={header_text.VALUE_PATTERN}){labels.SCHEMA_PATTERN}"
Tag = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=limits.TAG_CHARACTERS, extra_json_schema={"pattern": TAG_PATTERN}),
]
Tags = Annotated[list[Tag], msgspec.Meta(max_length=limits.TAGS)]
HeaderName = Annotated[
    str, msgspec.Meta(extra_json_schema={"pattern": f"^(?!{RESERVED_PATTERN})" + header_text.NAME_PATTERN[1:]})
]
HeaderValue = Annotated[
    str,
    msgspec.Meta(
        extra_json_schema={
            "pattern": header_text.VALUE_PATTERN,
            "maxLength": limits.HEADER_LINE_OCTETS - header_text.MAX_NAME_CHARACTERS - 2,
        }
    ),
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
            extra_json_schema={"pattern": base64_lines.SCHEMA_PATTERN, "contentEncoding": "base64"},
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


class SendRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A message to send. `null` is the same as leaving a member out."""

    sender: Annotated[
        Address, msgspec.Meta(description="The sender. Its domain must be registered by the account.")
    ] = msgspec.field(name="from")
    to: Annotated[Address | SomeAddresses, msgspec.Meta(description=f"One address or a list. {UNIQUE_RULE}")]
    cc: Annotated[Address | Addresses | None, msgspec.Meta(description="Copy recipients, visible to everybody.")] = None
    bcc: Annotated[Address | Addresses | None, msgspec.Meta(description="Blind copy recipients, in no header.")] = None
    reply_to: Annotated[Address | None, msgspec.Meta(description="Where replies go, if not to `from`.")] = None
    subject: (
        Annotated[
            str,
            msgspec.Meta(
                description="Required unless a template supplies it.",
                min_length=1,
                max_length=limits.SUBJECT_CHARACTERS,
                extra_json_schema={"pattern": header_text.VALUE_PATTERN},
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
            dict[str, mail.TemplateValue],
            msgspec.Meta(
                description="Values for the `{{name}}` placeholders of the template.", max_length=limits.VARIABLES
            ),
        ]
        | None
    ) = None
    headers: (
        Annotated[
            dict[HeaderName, HeaderValue],
            msgspec.Meta(
                description="Custom headers, such as `List-Unsubscribe`. Headers that Postroad sets "
                "itself are refused.",
                max_length=limits.CUSTOM_HEADERS,
            ),
        ]
        | None
    ) = None
    tags: Annotated[
        Tag | Tags | None, msgspec.Meta(description="One tag or a list; each becomes an `X-Service-Tag` header.")
    ] = None
    attachments: (
        Annotated[list[Attachment], msgspec.Meta(description="Files to attach.", max_length=limits.ATTACHMENTS)] | None
    ) = None


def _given(member: str, **rule: object) -> dict[str, Any]:
    return {"required": [member], "properties": {member: rule}}


def _not_given(*members: str) -> dict[str, Any]:
    return {"properties": {member: {"type": "null"} for member in members}}


SEND_RULES: Final = {
    "allOf": [
        {
            "anyOf": [
                _given("text", type="string", minLength=1),
                _given("html", type="string", minLength=1),
                _given("attachments", type="array", minItems=1),
                _given("template", type="string"),
            ]
        },
        {"anyOf": [_given("subject", type="string"), _given("template", type="string")]},
        {"anyOf": [_not_given("template"), _not_given("text", "html")]},
        {"anyOf": [_not_given("variables"), _given("template", type="string")]},
    ]
}


SEND_EXAMPLES: Final[tuple[dict[str, Any], ...]] = (
    {
        "from": "Shop <hello@example.com>",
        "to": ["Ada <ada@example.net>"],
        "subject": "Your receipt",
        "text": "Thank you for your order.",
        "html": "<p>Thank you for your <b>order</b>.</p>",
        "tags": ["receipt"],
        "attachments": [{"filename": "receipt.txt", "content": "VG90YWw6IDQyLjAwCg=="}],
    },
    {"from": "hello@example.com", "to": "ada@example.net", "template": "welcome", "variables": {"name": "Ada"}},
)


class Recipient(msgspec.Struct, frozen=True):
    """One recipient and its delivery status."""

    id: str
    email: str
    status: mail.RecipientStatus
    billing_status: mail.BillingStatus
    attempt_count: int
    last_smtp_code: int | None
    last_smtp_response: str | None
    delivered_at: times.WireTime | None
    bounced_at: times.WireTime | None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message and its recipients."""

    id: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": identifiers.pattern(identifiers.MESSAGE)})]
    status: mail.MessageStatus
    source: mail.Source
    sender: str = msgspec.field(name="from")
    subject: str
    billing_status: mail.BillingStatus
    recipient_count: int
    credits_reserved: int
    created_at: times.WireTime
    recipients: list[Recipient]
    request_id: str


def recipient(row: recipients.Recipient) -> Recipient:
    """A stored recipient in its public form."""
    return Recipient(
        id=row.id,
        email=row.email,
        status=mail.RecipientStatus(row.status),
        billing_status=mail.BillingStatus(row.billing_status),
        attempt_count=row.attempt_count,
        last_smtp_code=row.last_smtp_code,
        last_smtp_response=row.last_smtp_response,
        delivered_at=times.optional_to_wire(row.delivered_at),
        bounced_at=times.optional_to_wire(row.bounced_at),
    )


def message(row: messages.Message, its_recipients: Sequence[recipients.Recipient], *, request_id: str) -> Message:
    """A stored message in its public form."""
    return Message(
        id=row.id,
        status=mail.MessageStatus(row.status),
        source=mail.Source(row.source),
        sender=row.sender,
        subject=row.subject,
        billing_status=mail.BillingStatus(row.billing_status),
        recipient_count=row.recipient_count,
        credits_reserved=row.credits_reserved,
        created_at=times.to_wire(row.created_at),
        recipients=[recipient(one) for one in its_recipients],
        request_id=request_id,
    )
