"""`/v1/auth`: log in and out, change one's password, and see who one is.

A log-in is the only public route under `/v1`. Its answer tells an unknown email and a wrong password apart in nothing,
and repeated failures are slowed (`model/login_throttle.py`).
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

# A password, an email and some quotation marks; there is no reason to read more from somebody unknown.
BODY_BYTES = 16 * 1024
# The service refuses NUL itself; the schema only says so.
WITHOUT_NUL = {"pattern": r"^[^\u0000]*$"}
GivenPassword = Annotated[str, msgspec.Meta(max_length=passwords.MAX_CHARACTERS, extra_json_schema=WITHOUT_NUL)]
NewPassword = Annotated[
    str,
    msgspec.Meta(
        min_length=passwords.MIN_CHARACTERS,
        max_length=passwords.MAX_CHARACTERS,
        description="Any characters but NUL.",
        extra_json_schema=WITHOUT_NUL,
    ),
]


class LoginRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who logs in."""

    email: Annotated[str, msgspec.Meta(max_length=address.MAX_CHARACTERS)]
    password: GivenPassword

    def __repr__(self) -> str:
        return "LoginRequest(…)"


class PasswordChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The password that is, and the one that shall be."""

    current_password: GivenPassword
    new_password: NewPassword

    def __repr__(self) -> str:
        return "PasswordChange(…)"


class User(msgspec.Struct, frozen=True):
    """Somebody who logs in. A `read_only` user sees everything, and changes nothing but their own password."""

    id: str
    email: str
    role: Literal["owner", "member", "read_only"]
    created_at: times.WireTime


class SessionResponse(msgspec.Struct, frozen=True):
    """An open session. The token goes into `Authorization: Bearer …`."""

    token: str
    expires_at: times.WireTime
    user: User
    account: v1_account.Account
    request_id: str

    def __repr__(self) -> str:
        return f"SessionResponse({self.request_id})"


class MeResponse(msgspec.Struct, frozen=True):
    """Whose token this is."""

    user: User
    account: v1_account.Account
    request_id: str


async def log_in(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Open a session."""
    body: LoginRequest = request.body
    session = await authentication.log_in(ctx, body.email, body.password, client_address=request.client_address)
    return routing.Response(200, _session(session, request_id=request.id))


async def log_out(ctx: context.Context, request: routing.Request) -> routing.Response:
    """End the session of this token."""
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
    """The person behind the token, and the account."""
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
        description="Repeated failures are slowed: 429 says how long to wait.",
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
        description="The token of this request is dead within a second everywhere. Other sessions go on.",
        tag="Log-in",
        permission=caller.Permission.VIEW,
        responses={204: None},
    ),
    routing.Route(
        method="POST",
        path="/v1/auth/password",
        handler=change_password,
        summary="Change one's password",
        description="Every token issued before is dead within a second everywhere; the answer holds a fresh one.",
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
        summary="Who am I?",
        tag="Log-in",
        permission=caller.Permission.VIEW,
        responses={200: MeResponse},
    ),
)
