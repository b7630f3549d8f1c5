"""The send request: one message given by its fields, from the request body or the command line to `submit`.

The Structs reject unknown members and wrong types, and the OpenAPI document is generated from them. The patterns repeat
those of the parsers in `protocol` for readers and tools; `services/acceptance/validation.py` applies the parsers, which
decide.
"""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from postroad.model import labels, limits, mail, simulated_providers
from postroad.protocol import address, file_names
from postroad.protocol.mime import base64_lines, builder, content_types, header_text

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
TAG_PATTERN: Final = f"(?={header_text.VALUE_PATTERN}){labels.SCHEMA_PATTERN}"
Tag = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=limits.TAG_CHARACTERS, extra_json_schema={"pattern": TAG_PATTERN}),
]
Tags = Annotated[tuple[Tag, ...], msgspec.Meta(max_length=limits.TAGS)]
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


class Simulate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which provider the simulator imitates for the message, and how that provider behaves."""

    provider: simulated_providers.Provider
    behaviour: simulated_providers.Behaviour


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
            Mapping[str, mail.TemplateValue],
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
