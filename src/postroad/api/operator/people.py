"""`/v1/operator/operators`: the people who operate the installation."""

from typing import Annotated, Final

import msgspec

from postroad import context, errors
from postroad.api.v1 import messages, resource, team
from postroad.model.units import identifiers, times
from postroad.services.people import password_links
from postroad.services.people import users as people_users
from postroad.storage.people import users
from postroad.web import routing

RESOURCE: Final = resource.Resource("Operators", {"id": identifiers.pattern(identifiers.USER)})


class Operator(msgspec.Struct, frozen=True, kw_only=True):
    """A user who operates the installation."""

    id: str
    account_id: Annotated[str, msgspec.Meta(description="The account that the user belongs to.")]
    email: str
    enabled: Annotated[bool, msgspec.Meta(description="False when the user is disabled.")]
    operator_since: times.WireTime
    joined_at: Annotated[
        times.WireTime | None, msgspec.Meta(description="Null for an invited user who has not set a password yet.")
    ]
    last_login_at: times.WireTime | None


class OperatorInvitation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The person who becomes an operator."""

    email: Annotated[messages.FilterAddress, msgspec.Meta(description="The email address, without a name.")]
    account_id: Annotated[
        str | None,
        resource.id_of(
            identifiers.ACCOUNT, "The account of the user, if it is not yours. Its owners could log in as this user."
        ),
    ] = None


class Operators(resource.Response, frozen=True):
    """The operators, the first ones first."""

    operators: list[Operator]


class NewOperator(resource.Response, frozen=True, kw_only=True):
    """The new operator. A user who was created for it gets a link to set a password."""

    operator: Operator
    link: team.Link | None
    expires_at: times.WireTime | None


def _operator(row: users.User) -> Operator:
    return resource.from_record(Operator, row, enabled=row.disabled_at is None)


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List the operators of the installation."""
    found = await people_users.operators(ctx)
    return routing.Response(200, Operators([*map(_operator, found)], request_id=request.id))


async def invite(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Make a user an operator, or invite one.

    If no user has this email, one is invited to your account with the role `read_only`. The link is returned only in
    this response. If `operator.from` is set, it is also sent to the user; otherwise pass it on yourself.
    """
    body: OperatorInvitation = request.body
    try:
        user = await people_users.add_operator(ctx, body.email, account_id=body.account_id or request.caller.account_id)
    except errors.NotFound:
        invited = await people_users.invite_operator(ctx, request.caller.account_id, email=body.email)
        link = password_links.url(ctx.settings, invited.link_token)
        expires_at = times.to_wire(invited.expires_at)
        made = NewOperator(operator=_operator(invited.user), link=link, expires_at=expires_at, request_id=request.id)
        return routing.Response(201, made)
    return routing.Response(
        201, NewOperator(operator=_operator(user), link=None, expires_at=None, request_id=request.id)
    )


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """End the operator role of a user.

    The user keeps the role in their account. The last operator who can log in stays.
    """
    await people_users.remove_operator(ctx, request.path["id"])
    return routing.Response(204)


ROUTES: Final = (
    resource.operator_route(RESOURCE, "GET /v1/operator/operators", index, responses={200: Operators}),
    resource.operator_route(
        RESOURCE,
        "POST /v1/operator/operators",
        invite,
        body=OperatorInvitation,
        responses={201: NewOperator},
        errors=(errors.Conflict,),
    ),
    resource.operator_route(
        RESOURCE, "DELETE /v1/operator/operators/{id}", remove, responses={204: None}, errors=(errors.Conflict,)
    ),
)
