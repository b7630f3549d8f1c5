"""Builds the routes of a resource, and what their schemas share. The docstring of a handler is its documentation."""

import inspect
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec

from postroad import context, errors
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.protocol.mime import address
from postroad.web import routing

# The scope that an API key needs for everything below `/v1/<name>`, unless a route says otherwise; None: no key has it.
SCOPES: Final[Mapping[str, callers.Scope | None]] = {
    "account": callers.Scope.STATISTICS,
    "api-keys": callers.Scope.TEAM,
    "audit-log": callers.Scope.TEAM,
    "auth": None,
    "credentials": callers.Scope.TEAM,
    "domains": callers.Scope.DOMAINS,
    "event-schemas": callers.Scope.WEBHOOKS,
    "inbound": callers.Scope.READ,
    "inbox": callers.Scope.READ,
    "messages": callers.Scope.READ,
    "operator": callers.Scope.OPERATOR,
    "requests": callers.Scope.TEAM,
    # It decides who is an owner, which is for people to decide.
    "sso": None,
    "statistics": callers.Scope.STATISTICS,
    "suppressions": callers.Scope.SUPPRESSIONS,
    "team": callers.Scope.TEAM,
    "templates": callers.Scope.TEMPLATES,
    "test-email": callers.Scope.SEND,
    "webhook": callers.Scope.WEBHOOKS,
    "webhook-listeners": callers.Scope.WEBHOOKS,
    "webhooks": callers.Scope.WEBHOOKS,
}


class Resource(msgspec.Struct, frozen=True):
    """What the routes of a resource share: the tag, and the patterns of path parameters.

    `summaries` replace those of handlers that it has in common with another resource.
    """

    tag: str
    path_patterns: Mapping[str, str] = msgspec.field(default_factory=dict)
    summaries: Mapping[str, str] = msgspec.field(default_factory=dict)

    def download(
        self, endpoint: str, handler: routing.Handler[context.Context], *, content_type: str, **options: Any
    ) -> routing.Route[context.Context]:
        """The route of a file, which `routing.attachment` returns."""
        headers = {"Content-Disposition": "Always `attachment`."}
        options.update(responses={200: bytes}, content_type=content_type, response_headers=headers)
        return self.route(endpoint, handler, **options)

    def route(
        self, endpoint: str, handler: routing.Handler[context.Context], **options: Any
    ) -> routing.Route[context.Context]:
        """The route of a method and path. By default GET requires `VIEW` and any other method `CHANGE`.

        The first line of the handler's docstring is the summary; the rest, if any, is the description.
        """
        method, path = endpoint.split()
        summary, _, description = (inspect.getdoc(handler) or "").partition("\n\n")
        summary = summary.removesuffix(".")
        options.setdefault("permission", callers.Permission.VIEW if method == "GET" else callers.Permission.CHANGE)
        options.setdefault("scope", SCOPES[path.split("/")[2]])
        options.setdefault("description", description.replace("\n", " "))
        return routing.Route(
            method=method,
            path=path,
            handler=handler,
            summary=self.summaries.get(summary, summary),
            tag=self.tag,
            path_patterns=self.path_patterns,
            **options,
        )


StructT = TypeVar("StructT", bound=msgspec.Struct)

Limit = Annotated[
    int,
    msgspec.Meta(
        ge=1, le=identifiers.MAX_LIMIT, description=f"Maximum number of items; {identifiers.DEFAULT_LIMIT} by default."
    ),
]
NextCursor = Annotated[
    str | None, msgspec.Meta(description="Pass as `cursor` for the next page; null on the last page.")
]
NextBefore = Annotated[
    str | None, msgspec.Meta(description="Pass as `before` for older entries; null on the last page.")
]

DomainName = Annotated[
    str,
    msgspec.Meta(
        title="DomainName",
        description="A full domain name, such as `example.com`; internationalized names are supported.",
        extra_json_schema={
            "pattern": address.DOMAIN_SCHEMA_PATTERN,
            "maxLength": address.MAX_CHARACTERS,
        },
    ),
]
# In a request.
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

    limit: Limit | None = identifiers.DEFAULT_LIMIT

    @property
    def rows(self) -> int:
        """The maximum number of items."""
        return self.limit or identifiers.DEFAULT_LIMIT


def from_record(kind: type[StructT], record: object, /, **changed: Any) -> StructT:
    """A schema filled from the fields of a record with the same names; `changed` has the others."""
    values = times.wire_fields(record, kind.__struct_fields__, **changed)
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


# Builds the routes of `/v1/operator`: each requires the role or the scope, and acts for the installation.
#
# Both are added here, so that no handler can forget them. Callers without them are refused before a handler runs, and
# so learn nothing about the ids in a path.

OperatorRoute = routing.Route[context.Context]


def operator_route(
    described: Resource, endpoint: str, handler: routing.Handler[context.Context], **options: Any
) -> OperatorRoute:
    """The route of a method and path below `/v1/operator`."""

    async def operate(ctx: context.Context, request: routing.Request) -> routing.Response:
        return await handler(context.as_operator(ctx), request)

    operate.__doc__ = handler.__doc__
    return described.route(endpoint, operate, permission=callers.Permission.OPERATE, **options)
