"""`/v1/auth`: log in, log out, change the password, and show the current user.

Login is the only public route under `/v1`. Its response does not reveal whether the email or the password was wrong,
and repeated failures are throttled (`model/login_throttle.py`).
"""

from typing import Annotated, Literal

import msgspec

from postroad import errors
from postroad.api.v1 import account as v1_account
from postroad.model import caller, times
from postroad.protocol import address
from postroad.services import context
from postroad.services.auth import authentication, passwords
from postroad.storage import users
from postroad.web import routing

# An email, a password and some JSON syntax: unauthenticated clients need no more.
BODY_BYTES = 16 * 1024
# The service itself refuses NUL; the schema documents it.
WITHOUT_NUL = {"pattern": r"^[^\u0000]*$"}
GivenPassword = Annotated[str, msgspec.Meta(max_length=passwords.MAX_CHARACTERS, extra_json_schema=WITHOUT_NUL)]
NewPassword = Annotated[
    str,
    msgspec.Meta(
        min_length=passwords.MIN_CHARACTERS,
        max_length=passwords.MAX_CHARACTERS,
        description="Any characters except NUL.",
        extra_json_schema=WITHOUT_NUL,
    ),
]


class LoginRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Email and password."""

    email: Annotated[str, msgspec.Meta(max_length=address.MAX_CHARACTERS)]
    password: GivenPassword

    def __repr__(self) -> str:
        return "LoginRequest(…)"


class PasswordChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The current password and the new one."""

    current_password: GivenPassword
    new_password: NewPassword

    def __repr__(self) -> str:
        return "PasswordChange(…)"


class User(msgspec.Struct, frozen=True):
    """A user. `read_only` users can see everything and change nothing but their own password."""

    id: str
    email: str
    role: Literal["owner", "member", "read_only"]
    created_at: times.WireTime


class SessionResponse(msgspec.Struct, frozen=True):
    """A new session. Send the token as `Authorization: Bearer …`."""

    token: str
    expires_at: times.WireTime
    user: User
    account: v1_account.Account
    request_id: str

    def __repr__(self) -> str:
        return f"SessionResponse({self.request_id})"


class MeResponse(msgspec.Struct, frozen=True):
    """The user and the account of the token."""

    user: User
    account: v1_account.Account
    request_id: str


async def log_in(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Start a session."""
    body: LoginRequest = request.body
    session = await authentication.log_in(ctx, body.email, body.password, client_address=request.client_address)
    return routing.Response(200, _session(session, request_id=request.id))


async def log_out(ctx: context.Context, request: routing.Request) -> routing.Response:
    """End this token's session."""
    await authentication.log_out(ctx, request.caller)
    return routing.Response(204)


async def change_password(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Change the caller's own password."""
    body: PasswordChange = request.body
    session = await authentication.change_password(
        ctx,
        request.caller,
        current_password=body.current_password,
        new_password=body.new_password,
        client_address=request.client_address,
    )
    return routing.Response(200, _session(session, request_id=request.id))


async def show_me(ctx: context.Context, request: routing.Request) -> routing.Response:
    """The user and the account of the token."""
    user, account = await authentication.me(ctx, request.caller)
    return routing.Response(200, MeResponse(_user(user), v1_account.account(account), request.id))


def _session(session: authentication.Session, *, request_id: str) -> SessionResponse:
    return SessionResponse(
        token=session.token,
        expires_at=times.to_wire(session.expires_at),
        user=_user(session.user),
        account=v1_account.account(session.account),
        request_id=request_id,
    )


def _user(user: users.User) -> User:
    return User(
        id=user.id,
        email=user.email,
        role=caller.Role(user.role).value,
        created_at=times.to_wire(user.created_at),
    )


ROUTES: tuple[routing.Route[context.Context], ...] = (
    routing.Route(
        method="POST",
        path="/v1/auth/login",
        handler=log_in,
        summary="Log in",
        description="Repeated failures are throttled: 429 with `Retry-After`.",
        tag="Log-in",
        permission=None,
        body=LoginRequest,
        body_rules={"examples": [{"email": "owner@example.com", "password": "correct horse battery"}]},
        body_limit=BODY_BYTES,
        responses={200: SessionResponse},
        errors=(errors.Unauthorized, errors.RateLimited),
    ),
    routing.Route(
        method="POST",
        path="/v1/auth/logout",
        handler=log_out,
        summary="Log out",
        description="Revokes this request's token everywhere within a second. Other sessions are not affected.",
        tag="Log-in",
        permission=caller.Permission.VIEW,
        responses={204: None},
    ),
    routing.Route(
        method="POST",
        path="/v1/auth/password",
        handler=change_password,
        summary="Change your password",
        description="Revokes every earlier token everywhere within a second. The response contains a new one.",
        tag="Log-in",
        permission=caller.Permission.VIEW,
        body=PasswordChange,
        body_rules={
            "examples": [{"current_password": "correct horse battery", "new_password": "battery staple correct"}]
        },
        body_limit=BODY_BYTES,
        responses={200: SessionResponse},
        errors=(errors.RateLimited, errors.Conflict),
    ),
    routing.Route(
        method="GET",
        path="/v1/auth/me",
        handler=show_me,
        summary="Get the current user",
        tag="Log-in",
        permission=caller.Permission.VIEW,
        responses={200: MeResponse},
    ),
)
