"""`/v1/sso`: the single sign-on of the account. Owners set it up and remove it; no API key can."""

from typing import Annotated, Final

import msgspec

from postroad import context, errors
from postroad.api.v1 import resource
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services.people import sso_connections
from postroad.web import routing

RESOURCE: Final = resource.Resource("Single sign-on")
Issuer = Annotated[str, msgspec.Meta(max_length=500, description="The provider's issuer, exactly as it writes it.")]
Domains = Annotated[
    tuple[str, ...],
    msgspec.Meta(
        min_length=1, max_length=20, description="Verified domains of the account; people with an email in them use it."
    ),
]
Groups = Annotated[
    dict[str, callers.Role],
    msgspec.Meta(
        description="The role by group; the first that matches counts. If there are any, they decide the role at "
        "every login."
    ),
]


class SsoConnection(msgspec.Struct, frozen=True, kw_only=True):
    """The single sign-on of the account. The client secret is never returned."""

    issuer: str
    client_id: str
    has_client_secret: bool
    domains: list[str]
    scopes: str
    creates_users: Annotated[bool, msgspec.Meta(description="Whether users are created at their first login.")]
    role: Annotated[callers.Role, msgspec.Meta(description="The role of new users.")]
    groups_claim: str
    groups: dict[str, callers.Role]
    allows_passwords: Annotated[
        bool, msgspec.Meta(description="Whether people of these domains may also log in with a password.")
    ]
    redirect_uri: Annotated[str, msgspec.Meta(description="Register it at the provider.")]
    created_at: times.WireTime
    updated_at: times.WireTime


class NewSsoConnection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The single sign-on to save."""

    issuer: Issuer
    client_id: Annotated[str, msgspec.Meta(max_length=500)]
    client_secret: (
        Annotated[str, msgspec.Meta(max_length=500, description="Absent: the stored one is kept. Empty: none.")] | None
    ) = None
    domains: Domains
    scopes: Annotated[str, msgspec.Meta(description="In addition to `openid`; `email` if absent.")] | None = None
    creates_users: bool | None = None
    role: Annotated[callers.Role, msgspec.Meta(description="`read_only` if absent.")] | None = None
    groups_claim: Annotated[str, msgspec.Meta(description="`groups` if absent.")] | None = None
    groups: Groups | None = None
    allows_passwords: Annotated[bool, msgspec.Meta(description="True if absent.")] | None = None

    def __repr__(self) -> str:
        return "NewSsoConnection(…)"


class SsoResponse(resource.Response, frozen=True):
    """The single sign-on of the account."""

    sso: SsoConnection


def _shown(ctx: context.Context, found: sso_connections.Connection) -> SsoConnection:
    row = found.row
    return SsoConnection(
        issuer=row.issuer,
        client_id=row.client_id,
        has_client_secret=row.client_secret is not None,
        domains=[*found.domains],
        scopes=row.scopes,
        creates_users=bool(row.creates_users),
        role=callers.Role(row.role),
        groups_claim=row.groups_claim,
        groups={group: callers.Role(role) for group, role in row.roles.items()},
        allows_passwords=bool(row.allows_passwords),
        redirect_uri=sso_connections.redirect_uri(ctx.settings, row.account_id),
        created_at=times.to_wire(row.created_at),
        updated_at=times.to_wire(row.updated_at),
    )


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get the single sign-on of the account.

    Owners only.
    """
    found = await sso_connections.find(ctx, request.caller.account_id)
    if found is None:
        raise errors.NotFound("this account has no single sign-on")
    return routing.Response(200, SsoResponse(_shown(ctx, found), request_id=request.id))


async def save(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Set up or change the single sign-on of the account.

    To switch passwords off, your session must have proved a second factor. Owners only.
    """
    body: NewSsoConnection = request.body
    draft = sso_connections.Draft(
        issuer=body.issuer,
        client_id=body.client_id,
        client_secret=body.client_secret,
        domains=body.domains,
        scopes=sso_connections.DEFAULT_SCOPES if body.scopes is None else body.scopes,
        role=body.role or callers.Role.READ_ONLY,
        groups_claim=body.groups_claim or sso_connections.DEFAULT_GROUPS_CLAIM,
        groups=body.groups or {},
        creates_users=body.creates_users is True,
        allows_passwords=body.allows_passwords is not False,
    )
    saved = await sso_connections.save(ctx, request.caller.account_id, draft)
    return routing.Response(200, SsoResponse(_shown(ctx, saved), request_id=request.id))


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove the single sign-on of the account.

    An owner must be able to log in without it. Owners only.
    """
    await sso_connections.remove(ctx, request.caller.account_id)
    return routing.Response(204)


ROUTES: Final = (
    RESOURCE.route(
        "GET /v1/sso",
        show,
        permission=callers.Permission.OWN,
        responses={200: SsoResponse},
        errors=(errors.NotFound,),
    ),
    RESOURCE.route(
        "PUT /v1/sso",
        save,
        permission=callers.Permission.OWN,
        body=NewSsoConnection,
        body_rules={
            "examples": [
                {"issuer": "https://login.example.org", "client_id": "postroad", "domains": ["example.org"]},
            ]
        },
        responses={200: SsoResponse},
        errors=(errors.Conflict,),
    ),
    RESOURCE.route(
        "DELETE /v1/sso",
        remove,
        permission=callers.Permission.OWN,
        responses={204: None},
        errors=(errors.NotFound, errors.Conflict),
    ),
)
