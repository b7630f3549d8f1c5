"""What the schemas of the management API share: responses from records, pages of lists, and timestamps."""

from typing import Annotated, Any, TypeVar

import msgspec

from postroad import errors
from postroad.model import cursors, identifiers, times, wire_fields
from postroad.protocol import address_syntax

StructT = TypeVar("StructT", bound=msgspec.Struct)

Limit = Annotated[
    int,
    msgspec.Meta(
        ge=1, le=cursors.MAX_LIMIT, description=f"Maximum number of items; {cursors.DEFAULT_LIMIT} by default."
    ),
]
NextCursor = Annotated[
    str | None, msgspec.Meta(description="Pass as `cursor` for the next page; null on the last page.")
]
NextBefore = Annotated[
    str | None, msgspec.Meta(description="Pass as `before` for older entries; null on the last page.")
]

# A timestamp in a request.
DomainName = Annotated[
    str,
    msgspec.Meta(
        title="DomainName",
        description="A full domain name, such as `example.com`; internationalized names are supported.",
        extra_json_schema={"pattern": address_syntax.DOMAIN_SCHEMA_PATTERN, "maxLength": address_syntax.MAX_CHARACTERS},
    ),
]
Timestamp = Annotated[str, msgspec.Meta(max_length=64, extra_json_schema={"format": "date-time"})]

# Of an API key or an SMTP credential.
CreatedBy = Annotated[
    str | None,
    msgspec.Meta(
        description="The id of the user who created it or took it over; null if it was created at the command line, or "
        "kept with `--keep-secrets`."
    ),
]
CreatedByEmail = Annotated[
    str | None, msgspec.Meta(description="The email of this user; null if the user was removed.")
]
DisabledAt = Annotated[
    times.WireTime | None,
    msgspec.Meta(
        description="When this user was disabled; until the user is enabled again, the secret does not work. Null "
        "otherwise."
    ),
]


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """The end of every JSON response. Logs show no more of it: it may contain a secret."""

    request_id: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.request_id})"


class PageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of a list. A list adds its own `cursor` or `before`."""

    limit: Limit | None = cursors.DEFAULT_LIMIT

    @property
    def rows(self) -> int:
        """The maximum number of items."""
        return self.limit or cursors.DEFAULT_LIMIT


def from_record(kind: type[StructT], record: object, /, **changed: Any) -> StructT:
    """A schema filled from the fields of a record with the same names; `changed` has the others."""
    values = wire_fields.of(record, kind.__struct_fields__, **changed)
    named = zip(kind.__struct_encode_fields__, values.values(), strict=True)
    return msgspec.convert({name: value for name, value in named if value is not msgspec.UNSET}, kind)


def parse_timestamp(field: str, text: str) -> int:
    """The time in microseconds that a field gives."""
    try:
        return times.parse(text)
    except ValueError as problem:
        raise errors.InvalidRequest(f"{field}: {problem}") from None


def cursor_of(pattern: str) -> msgspec.Meta:
    """The schema of a cursor into a list whose ids have this pattern."""
    return msgspec.Meta(
        description="`next_cursor` of the previous page; absent for the first page.",
        extra_json_schema={"pattern": pattern},
    )


def id_of(prefix: str, description: str) -> msgspec.Meta:
    """The schema of an id with this prefix."""
    return msgspec.Meta(description=description, extra_json_schema={"pattern": identifiers.pattern(prefix)})
