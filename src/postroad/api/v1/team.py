"""`/v1/team`: the people of the account. Everybody sees them; owners invite, change and remove them."""

from typing import Annotated, Final, Literal

import msgspec

from postroad import errors
from postroad.api.v1 import messages
from postroad.model import caller, identifiers, times
from postroad.services import context
from postroad.services.auth import password_links
from postroad.services.auth import users as account_users
from postroad.storage import users
from postroad.web import routing

PATH_PATTERNS: Final = {"id": identifiers.pattern(identifiers.USER)}
Role = Literal["owner", "member", "read_only"]
Link = Annotated[
    str,
    msgspec.Meta(description="Where the person chooses a password, once. It cannot be read again; nobody is sent it."),
]


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody of the account. An `owner` may do everything, a `member` all but this, `read_only` may only look."""

    id: str
    email: str
    role: Role
    enabled: Annotated[bool, msgspec.Meta(description="False: locked out by an owner.")]
    created_at: times.WireTime
    joined_at: Annotated[
        times.WireTime | None, msgspec.Meta(description="Null for who was invited and has not chosen a password yet.")
    ]
    last_login_at: times.WireTime | None


class Invitation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Somebody to invite."""

    email: Annotated[
        messages.FilterAddress,
        msgspec.Meta(description="The address alone; nobody else of this installation may log in with it."),
    ]
    role: Role


class PersonChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What shall be different."""

    role: Role | None = None
    enabled: Annotated[bool, msgspec.Meta(description="False locks the person out, within a second.")] | None = None


class PeopleResponse(msgspec.Struct, frozen=True):
    """The people of the account, in the order of their making."""

    people: list[Person]
    request_id: str


class PersonResponse(msgspec.Struct, frozen=True):
    """One of them."""

    person: Person
    request_id: str


class InvitedPerson(msgspec.Struct, frozen=True):
    """Somebody new, and the link to give to them."""

    person: Person
    link: Link
    expires_at: times.WireTime
    request_id: str

    def __repr__(self) -> str:
        return f"InvitedPerson({self.request_id})"


class PasswordLink(msgspec.Struct, frozen=True):
    """A link to give to a person."""

    link: Link
    expires_at: times.WireTime
    request_id: str

    def __repr__(self) -> str:
        return f"PasswordLink({self.request_id})"


def _team_user(row: users.User) -> Person:
    return Person(
        id=row.id,
        email=row.email,
        role=caller.Role(row.role).value,
        enabled=row.disabled_at is None,
        created_at=times.to_wire(row.created_at),
        joined_at=times.optional_to_wire(row.joined_at),
        last_login_at=times.optional_to_wire(row.last_login_at),
    )


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Everybody of the account."""
    found = await account_users.of_account(ctx, request.caller.account_id)
    return routing.Response(200, PeopleResponse([_team_user(row) for row in found], request.id))


async def invite(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Invite somebody and show the link, this once."""
    body: Invitation = request.body
    invited = await account_users.invite(ctx, request.caller.account_id, email=body.email, role=caller.Role(body.role))
    link = password_links.url(ctx.settings, invited.link_token)
    expires_at = times.to_wire(invited.expires_at)
    return routing.Response(201, InvitedPerson(_team_user(invited.user), link, expires_at, request.id))


async def change(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Change somebody's role, or lock them out and let them in."""
    body: PersonChange = request.body
    role = caller.Role(body.role) if body.role is not None else None
    if role is None and body.enabled is None:
        raise errors.InvalidRequest("role: give at least one of role and enabled")
    changed = await account_users.change(
        ctx, request.caller.account_id, request.path["id"], role=role, enabled=body.enabled
    )
    return routing.Response(200, PersonResponse(_team_user(changed), request.id))


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Forget somebody."""
    await account_users.remove(ctx, request.caller.account_id, request.path["id"])
    return routing.Response(204)


async def make_link(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Make a link for a new password and show it, this once."""
    made = await account_users.create_password_link(ctx, request.caller.account_id, request.path["id"])
    link = password_links.url(ctx.settings, made.token)
    return routing.Response(200, PasswordLink(link, times.to_wire(made.expires_at), request.id))


ROUTES: tuple[routing.Route[context.Context], ...] = (
    routing.Route(
        method="GET",
        path="/v1/team",
        handler=index,
        summary="List the people of the account",
        tag="Team",
        permission=caller.Permission.VIEW,
        responses={200: PeopleResponse},
    ),
    routing.Route(
        method="POST",
        path="/v1/team",
        handler=invite,
        summary="Invite somebody into the account",
        description=f"The link is in this answer and can never be read again; it works once, for "
        f"{password_links.INVITATION_HOURS} hours. No mail is sent: give it to the person yourself. For owners only.",
        tag="Team",
        permission=caller.Permission.MANAGE,
        body=Invitation,
        body_rules={"examples": [{"email": "jo@example.com", "role": "member"}]},
        responses={201: InvitedPerson},
        errors=(errors.Conflict,),
    ),
    routing.Route(
        method="PATCH",
        path="/v1/team/{id}",
        handler=change,
        summary="Change a person's role, lock them out or let them in",
        description="The last owner who can log in keeps the role, and is not locked out. For owners only.",
        tag="Team",
        permission=caller.Permission.MANAGE,
        body=PersonChange,
        body_rules={
            "examples": [{"role": "read_only"}, {"enabled": False}],
            "anyOf": [
                {"required": ["role"], "properties": {"role": {"type": "string"}}},
                {"required": ["enabled"], "properties": {"enabled": {"type": "boolean"}}},
            ],
        },
        responses={200: PersonResponse},
        errors=(errors.Conflict,),
        path_patterns=PATH_PATTERNS,
    ),
    routing.Route(
        method="DELETE",
        path="/v1/team/{id}",
        handler=remove,
        summary="Remove a person from the account",
        description="Everything they are logged in with ends within a second. The journal keeps what they did. The "
        "last owner who can log in stays. For owners only.",
        tag="Team",
        permission=caller.Permission.MANAGE,
        responses={204: None},
        errors=(errors.Conflict,),
        path_patterns=PATH_PATTERNS,
    ),
    routing.Route(
        method="POST",
        path="/v1/team/{id}/password-link",
        handler=make_link,
        summary="Make a link by which a person chooses a new password",
        description=f"It works once, for {password_links.RESET_HOURS} hours "
        f"({password_links.INVITATION_HOURS} for who has not joined yet), and replaces the link before it. Their "
        "password stays until then. For owners only.",
        tag="Team",
        permission=caller.Permission.MANAGE,
        responses={200: PasswordLink},
        errors=(errors.Conflict,),
        path_patterns=PATH_PATTERNS,
    ),
)
