"""`/v1/team`: the users of the account. All users can list them; owners and admins invite, change and remove them."""

from typing import Annotated, Final, Literal

import msgspec

from postroad import context, errors
from postroad.api.v1 import messages, resource
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.services.people import credentials, password_links
from postroad.services.people import users as account_users
from postroad.storage.people import users
from postroad.web import routing

RESOURCE: Final = resource.Resource("Team", {"id": identifiers.pattern(identifiers.USER)})
Role = Annotated[
    Literal["owner", "admin", "developer", "analyst", "read_only"],
    msgspec.Meta(description="What the user may do: see docs/roles.md."),
]
Link = Annotated[
    str,
    msgspec.Meta(description="The link where the user sets a password. It is shown once and works once."),
]


class TeamUser(msgspec.Struct, frozen=True, kw_only=True):
    """A user of the account."""

    id: str
    email: str
    role: Role
    enabled: Annotated[bool, msgspec.Meta(description="False for a disabled user.")]
    created_at: times.WireTime
    joined_at: Annotated[
        times.WireTime | None, msgspec.Meta(description="Null for an invited user who has not set a password yet.")
    ]
    last_login_at: times.WireTime | None


class Invitation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user to invite."""

    email: Annotated[
        messages.FilterAddress,
        msgspec.Meta(description="The email address, without a name. It must be unique in the account."),
    ]
    role: Role


class TeamUserUpdate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields to change."""

    role: Role | None = None
    enabled: (
        Annotated[
            bool,
            msgspec.Meta(
                description="False disables the user within a second; the API keys and SMTP credentials that they "
                "created do not work until they are enabled."
            ),
        ]
        | None
    ) = None
    secrets: (
        Annotated[
            Literal["hand_over"],
            msgspec.Meta(
                description="`hand_over`: the API keys and SMTP credentials that the user created belong to you from "
                "now on, and keep working if the user is disabled. To revoke them, revoke each, or remove the user."
            ),
        ]
        | None
    ) = None


class RemovalQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens to the API keys and SMTP credentials that the user created."""

    secrets: (
        Annotated[
            Literal["hand_over", "revoke"],
            msgspec.Meta(
                description="`hand_over`: they keep working, and belong to you. `revoke`: they stop working. Default: "
                "`hand_over`, and `revoke` for a disabled user. Keys with the scope `operator` are always revoked."
            ),
        ]
        | None
    ) = None


class TeamResponse(resource.Response, frozen=True):
    """The users of the account, oldest first."""

    users: list[TeamUser]


class TeamUserResponse(resource.Response, frozen=True):
    """One user."""

    user: TeamUser


class InvitedUser(resource.Response, frozen=True):
    """The invited user, and the link to send them."""

    user: TeamUser
    link: Link
    expires_at: times.WireTime


class PasswordLink(resource.Response, frozen=True):
    """A link for setting a password."""

    link: Link
    expires_at: times.WireTime


def user_view(row: users.User) -> TeamUser:
    return resource.from_record(TeamUser, row, enabled=row.disabled_at is None)


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List the users of the account.

    Oldest first.
    """
    found = await account_users.of_account(ctx, request.caller.account_id)
    return routing.Response(200, TeamResponse([*map(user_view, found)], request_id=request.id))


async def invite(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Invite a user."""
    body: Invitation = request.body
    invited = await account_users.invite(ctx, request.caller.account_id, email=body.email, role=callers.Role(body.role))
    link = password_links.url(ctx.settings, invited.link_token)
    expires_at = times.to_wire(invited.expires_at)
    return routing.Response(201, InvitedUser(user_view(invited.user), link, expires_at, request_id=request.id))


async def change(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Change a user's role, or disable or enable the user.

    It can also hand over to you the API keys and SMTP credentials that the user created. The last active owner cannot
    be disabled or change role. Owners and admins only; only owners change owners, or make them.
    """
    body: TeamUserUpdate = request.body
    role = callers.Role(body.role) if body.role is not None else None
    if role is None and body.enabled is None and body.secrets is None:
        raise errors.InvalidRequest("give at least one of role, enabled and secrets")
    changed = await account_users.change(
        ctx,
        request.caller.account_id,
        request.path["id"],
        role=role,
        enabled=body.enabled,
        hand_over=body.secrets is not None,
    )
    return routing.Response(200, TeamUserResponse(user_view(changed), request_id=request.id))


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove a user.

    Ends all sessions of the user within a second. Audit log entries are kept. The last active owner cannot be removed.
    Owners and admins only; only owners remove owners.
    """
    query: RemovalQuery = request.query
    secrets = credentials.SecretsAction(query.secrets) if query.secrets is not None else None
    await account_users.remove(ctx, request.caller.account_id, request.path["id"], secrets=secrets)
    return routing.Response(204)


async def make_link(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create a password link for a user."""
    made = await account_users.create_password_link(ctx, request.caller.account_id, request.path["id"])
    link = password_links.url(ctx.settings, made.token)
    return routing.Response(200, PasswordLink(link, times.to_wire(made.expires_at), request_id=request.id))


async def make_recovery_link(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create a recovery link for a user."""
    made = await account_users.create_password_link(
        ctx, request.caller.account_id, request.path["id"], is_recovery=True
    )
    link = password_links.url(ctx.settings, made.token)
    return routing.Response(200, PasswordLink(link, times.to_wire(made.expires_at), request_id=request.id))


ROUTES: Final = (
    RESOURCE.route("GET /v1/team", index, responses={200: TeamResponse}),
    RESOURCE.route(
        "POST /v1/team",
        invite,
        description=f"The link is returned only in this response. It works once, within "
        f"{password_links.INVITATION_HOURS} hours. If the installation sends notices, the user also gets it "
        "by email. Owners and admins only; only owners invite owners.",
        permission=callers.Permission.MANAGE,
        body=Invitation,
        body_rules={"examples": [{"email": "jo@example.com", "role": "developer"}]},
        responses={201: InvitedUser},
        errors=(errors.Conflict,),
    ),
    RESOURCE.route(
        "PATCH /v1/team/{id}",
        change,
        permission=callers.Permission.MANAGE,
        body=TeamUserUpdate,
        body_rules={
            "examples": [{"role": "read_only"}, {"enabled": False}],
            "anyOf": [
                {"required": ["role"], "properties": {"role": {"type": "string"}}},
                {"required": ["enabled"], "properties": {"enabled": {"type": "boolean"}}},
                {"required": ["secrets"], "properties": {"secrets": {"type": "string"}}},
            ],
        },
        responses={200: TeamUserResponse},
        errors=(errors.Conflict,),
    ),
    RESOURCE.route(
        "DELETE /v1/team/{id}",
        remove,
        permission=callers.Permission.MANAGE,
        query=RemovalQuery,
        responses={204: None},
        errors=(errors.Conflict,),
    ),
    RESOURCE.route(
        "POST /v1/team/{id}/password-link",
        make_link,
        description=f"The link works once, within {password_links.RESET_HOURS} hours "
        f"({password_links.INVITATION_HOURS} for an invited user), and replaces the previous link. The current "
        "password stays valid until then. Owners and admins only; only owners do it for owners.",
        permission=callers.Permission.MANAGE,
        responses={200: PasswordLink},
        errors=(errors.Conflict,),
    ),
    RESOURCE.route(
        "POST /v1/team/{id}/recovery-link",
        make_recovery_link,
        description="For a user who has lost their second factor. Whoever opens the link sets a new password, and the "
        f"second factors are removed. It works once, within {password_links.RESET_HOURS} hours, and replaces the "
        "previous link. Owners and admins only; only owners do it for owners.",
        permission=callers.Permission.MANAGE,
        responses={200: PasswordLink},
        errors=(errors.Conflict,),
    ),
)
