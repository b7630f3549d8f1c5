"""`/v1/credentials`: the SMTP credentials of the account."""

from typing import Annotated, Final

import msgspec

from postroad import context, errors
from postroad.api.v1 import resource
from postroad.model.units import identifiers, labels, times
from postroad.services.people import credentials
from postroad.storage.people import credentials as stored
from postroad.web import routing

RESOURCE: Final = resource.Resource("SMTP credentials", {"id": identifiers.pattern(identifiers.CREDENTIAL)})


class Credential(msgspec.Struct, frozen=True):
    """An SMTP credential without its password."""

    id: str
    name: str
    username: str
    created_at: times.WireTime
    created_by: resource.CreatedBy
    created_by_email: resource.CreatedByEmail
    last_used_at: times.WireTime | None
    disabled_at: resource.DisabledAt
    revoked_at: times.WireTime | None


class NewCredential(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A credential to create. Username and password are generated."""

    name: Annotated[str, labels.LABEL]


class CreatedCredential(resource.Response, frozen=True):
    """A new credential with its password, which is shown only once."""

    credential: Credential
    password: str


class CredentialResponse(resource.Response, frozen=True):
    """One credential."""

    credential: Credential


class CredentialsQuery(resource.PageQuery, frozen=True):
    """Pagination of the list."""

    cursor: Annotated[str, resource.cursor_of(identifiers.pattern(identifiers.CREDENTIAL))] | None = None


class CredentialsResponse(resource.Response, frozen=True):
    """Credentials, oldest first, including revoked ones."""

    credentials: list[Credential]
    next_cursor: resource.NextCursor


def _credential(row: stored.Credential) -> Credential:
    return resource.from_record(Credential, row)


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List SMTP credentials.

    Oldest first, including revoked ones. Passwords are never returned.
    """
    query: CredentialsQuery = request.query
    after = identifiers.after(query.cursor, identifiers.CREDENTIAL)
    found = await credentials.of_account(ctx, request.caller.account_id, after=after, limit=query.rows + 1)
    rows, following = identifiers.page(found, limit=query.rows)
    return routing.Response(200, CredentialsResponse([*map(_credential, rows)], following, request_id=request.id))


async def create(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create an SMTP credential.

    The password is returned only in this response.
    """
    body: NewCredential = request.body
    made, password = await credentials.create(ctx, request.caller.account_id, body.name)
    return routing.Response(201, CreatedCredential(_credential(made), password, request_id=request.id))


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get an active SMTP credential.

    A revoked credential is not found.
    """
    found = await credentials.find(ctx, request.caller.account_id, request.path["id"])
    return routing.Response(200, CredentialResponse(_credential(found), request_id=request.id))


async def revoke(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Revoke an SMTP credential.

    The credential and its API keys stop working everywhere within a second. It stays in the list.
    """
    await credentials.revoke(ctx, request.caller.account_id, request.path["id"])
    return routing.Response(204)


ROUTES: Final = (
    RESOURCE.route("GET /v1/credentials", index, query=CredentialsQuery, responses={200: CredentialsResponse}),
    RESOURCE.route(
        "POST /v1/credentials",
        create,
        body=NewCredential,
        body_rules={"examples": [{"name": "shop"}]},
        responses={201: CreatedCredential},
        errors=(errors.Conflict,),
    ),
    RESOURCE.route("GET /v1/credentials/{id}", show, responses={200: CredentialResponse}),
    RESOURCE.route("DELETE /v1/credentials/{id}", revoke, responses={204: None}),
)
