"""`/v1/domains`: the sender domains of the account."""

from typing import Annotated, Final, Literal

import msgspec

from postroad import errors
from postroad.api import routing, v1_schemas
from postroad.model import caller, cursors, identifiers, times
from postroad.protocol import address_syntax
from postroad.services import context, domain_keys, domains
from postroad.storage import domains as stored

PATH_PATTERNS: Final = {"id": identifiers.pattern(identifiers.DOMAIN)}


class Dkim(msgspec.Struct, frozen=True):
    """The record to publish in the domain's DNS, so that receivers can check the signatures of its mail (RFC 6376)."""

    selector: str
    name: Annotated[str, msgspec.Meta(description="The record's name, without a dot at the end.")]
    type: Literal["TXT"]
    value: Annotated[
        str,
        msgspec.Meta(description="The whole text; zone files want it in strings of at most 255 characters each."),
    ]


class Domain(msgspec.Struct, frozen=True):
    """A sender domain; its name is in lower case and A-labels."""

    id: str
    name: str
    verified: bool
    verified_at: times.WireTime | None
    created_at: times.WireTime
    dkim: Annotated[
        Dkim | None,
        msgspec.Meta(
            description="Null only in lists, for a domain whose key was not needed yet; reading it makes one."
        ),
    ]


class NewDomain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A domain to register."""

    name: Annotated[
        str,
        msgspec.Meta(
            description="A full domain name, such as `example.com`; internationalised names are fine.",
            extra_json_schema={
                "pattern": address_syntax.DOMAIN_SCHEMA_PATTERN,
                "maxLength": address_syntax.MAXIMUM_CHARACTERS,
            },
        ),
    ]


class DomainResponse(msgspec.Struct, frozen=True):
    """One domain."""

    domain: Domain
    request_id: str


class DomainsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the list."""

    limit: v1_schemas.Limit | None = cursors.USUAL
    cursor: Annotated[str, v1_schemas.cursor_of(identifiers.pattern(identifiers.DOMAIN))] | None = None


class DomainsResponse(msgspec.Struct, frozen=True):
    """Domains, oldest first."""

    domains: list[Domain]
    next_cursor: v1_schemas.NextCursor
    request_id: str


def _domain(row: stored.Domain, record: domain_keys.Record | None) -> Domain:
    return Domain(
        id=row.id,
        name=row.name,
        verified=row.verified_at is not None,
        verified_at=times.optional_to_wire(row.verified_at),
        created_at=times.to_wire(row.created_at),
        dkim=None if record is None else Dkim(record.selector, record.name, record.type, record.value),
    )


async def index(ctx: context.Context, request: routing.Request) -> routing.Answer:
    """A part of the account's domains."""
    query: DomainsQuery = request.query
    limit, after = query.limit or cursors.USUAL, cursors.after(query.cursor, identifiers.DOMAIN)
    found = await domains.of_account(ctx, request.caller.account_id, after=after, limit=limit + 1)
    following = cursors.following([row.id for row in found], limit=limit)
    records = await domain_keys.known_records(ctx, found[:limit])
    listed = [_domain(row, records.get(row.id)) for row in found[:limit]]
    return routing.Answer(200, DomainsResponse(listed, following, request.id))


async def create(ctx: context.Context, request: routing.Request) -> routing.Answer:
    """Register a domain, with a key that signs its mail; it is not proven yet."""
    body: NewDomain = request.body
    made = await domains.add(ctx, request.caller.account_id, body.name, verified=False)
    record = await domain_keys.record(ctx, made)
    return routing.Answer(201, DomainResponse(_domain(made, record), request.id))


async def show(ctx: context.Context, request: routing.Request) -> routing.Answer:
    """One domain of the account. One from before there were keys gets its key now."""
    found = await domains.find(ctx, request.caller.account_id, request.path["id"])
    record = await domain_keys.record(ctx, found)
    return routing.Answer(200, DomainResponse(_domain(found, record), request.id))


async def remove(ctx: context.Context, request: routing.Request) -> routing.Answer:
    """Forget a domain."""
    await domains.remove(ctx, request.caller.account_id, request.path["id"])
    return routing.Answer(204)


ROUTES: tuple[routing.Route[context.Context], ...] = (
    routing.Route(
        method="GET",
        path="/v1/domains",
        handler=index,
        summary="List sender domains",
        tag="Domains",
        permission=caller.Permission.VIEW,
        query=DomainsQuery,
        answers={200: DomainsResponse},
    ),
    routing.Route(
        method="POST",
        path="/v1/domains",
        handler=create,
        summary="Register a sender domain",
        tag="Domains",
        permission=caller.Permission.CHANGE,
        body=NewDomain,
        body_rules={"examples": [{"name": "example.com"}]},
        answers={201: DomainResponse},
        errors=(errors.Conflict,),
    ),
    routing.Route(
        method="GET",
        path="/v1/domains/{id}",
        handler=show,
        summary="Read a sender domain",
        tag="Domains",
        permission=caller.Permission.VIEW,
        answers={200: DomainResponse},
        path_patterns=PATH_PATTERNS,
    ),
    routing.Route(
        method="DELETE",
        path="/v1/domains/{id}",
        handler=remove,
        summary="Remove a sender domain",
        description="Nothing can be sent from it any more; mail that was accepted is delivered, without a signature.",
        tag="Domains",
        permission=caller.Permission.CHANGE,
        answers={204: None},
        path_patterns=PATH_PATTERNS,
    ),
)
