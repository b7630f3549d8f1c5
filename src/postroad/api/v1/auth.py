"""`/v1/auth`: log in, log out, change the password, and show the current user.

Login is the only public route under `/v1`. Its response does not reveal whether the email or the password was wrong,
and repeated failures are throttled (`model/people/login_rules.py`).
"""

from typing import Annotated, Final, Literal

import msgspec

from postroad import context, errors
from postroad.api.v1 import account as v1_account
from postroad.api.v1 import resource
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.protocol.mime import address
from postroad.services.people import logins, passwords, second_factors, sessions, step_up
from postroad.storage.people import users
from postroad.web import routing

RESOURCE: Final = resource.Resource("Log-in", {"id": identifiers.pattern(identifiers.TOKEN)})

# An email, a password and some JSON syntax: unauthenticated clients need no more.
BODY_BYTES = 16 * 1024
# The service itself refuses NUL; the schema documents it.
WITHOUT_NUL = {"pattern": r"^[^\u0000]*$"}
GivenPassword = Annotated[str, msgspec.Meta(max_length=passwords.MAX_CHARACTERS, extra_json_schema=WITHOUT_NUL)]
Code = Annotated[
    str,
    msgspec.Meta(
        max_length=second_factors.MAX_CODE_CHARACTERS,
        description="A code from the authenticator app, or a recovery code, if the login has a second factor.",
    ),
]
NewPassword = Annotated[
    str,
    msgspec.Meta(
        min_length=passwords.MIN_CHARACTERS,
        max_length=passwords.MAX_CHARACTERS,
        description="Any characters except NUL; neither a common password nor your email address.",
        extra_json_schema=WITHOUT_NUL,
    ),
]


class LoginRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Email and password, and the code of a login that has a second factor."""

    email: Annotated[str, msgspec.Meta(max_length=address.MAX_CHARACTERS)]
    password: GivenPassword
    code: Code | None = None
    account_id: (
        Annotated[
            str,
            msgspec.Meta(
                pattern=identifiers.pattern(identifiers.ACCOUNT),
                description="The account that the token is for; default: the one you used last.",
            ),
        ]
        | None
    ) = None

    def __repr__(self) -> str:
        return "LoginRequest(…)"


class PasswordChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The current password and the new one."""

    current_password: GivenPassword
    new_password: NewPassword

    def __repr__(self) -> str:
        return "PasswordChange(…)"


class Confirmation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Your password, a code from your authenticator app, or a recovery code."""

    password: GivenPassword | None = None
    code: Code | None = None

    def __repr__(self) -> str:
        return "Confirmation(…)"


class User(msgspec.Struct, frozen=True):
    """A user; docs/roles.md says what each role permits."""

    id: str
    email: str
    role: Literal["owner", "admin", "developer", "analyst", "read_only"]
    created_at: times.WireTime


class SessionResponse(resource.Response, frozen=True):
    """A new session. Send the token as `Authorization: Bearer …`."""

    token: str
    expires_at: times.WireTime
    user: User
    account: v1_account.Account


class MeResponse(resource.Response, frozen=True):
    """The user and the account of the token."""

    user: User
    account: v1_account.Account


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session of a browser, or a token."""

    id: str
    account_id: str
    kind: Literal["browser", "token"]
    name: Annotated[str, msgspec.Meta(description="Of a token that outlives the session that it was made in.")]
    device: Annotated[str, msgspec.Meta(description="As the client called itself, shortened.")]
    network: Annotated[str, msgspec.Meta(description="The network of the login.")]
    methods: Annotated[list[str], msgspec.Meta(description="How the person logged in, such as `password`.")]
    created_at: times.WireTime
    last_used_at: Annotated[times.WireTime, msgspec.Meta(description="To the minute.")]
    expires_at: times.WireTime
    current: Annotated[bool, msgspec.Meta(description="Whether this request used it.")]


class SessionsResponse(resource.Response, frozen=True):
    """The sessions and tokens, the latest used first."""

    sessions: list[Session]


async def log_in(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Log in.

    A login with a second factor needs `code`: without it, or with a wrong one, the response is 401 with the header
    `Second-Factor: required`. Repeated failures are throttled: 429 with `Retry-After`.
    """
    body: LoginRequest = request.body
    session = await logins.log_in(
        ctx,
        body.email,
        body.password,
        client_address=request.client_address,
        request_id=request.id,
        device=request.device,
        account_id=body.account_id,
        code=body.code,
    )
    return routing.Response(200, _session(session, request_id=request.id))


async def log_out(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Log out.

    Revokes this request's token everywhere within a second. Other sessions are not affected.
    """
    await logins.log_out(ctx, request.caller)
    return routing.Response(204)


async def change_password(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Change your password.

    Revokes every earlier token everywhere within a second. The response contains a new one.
    """
    body: PasswordChange = request.body
    session = await logins.change_password(
        ctx,
        request.caller,
        current_password=body.current_password,
        new_password=body.new_password,
        device=request.device,
    )
    return routing.Response(200, _session(session, request_id=request.id))


async def confirm(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Confirm your token.

    Sensitive requests with a login token get 403 with the header `Confirmation: required` when its last login or
    confirmation is too long ago. Repeated failures are throttled: 429 with `Retry-After`.
    """
    body: Confirmation = request.body
    if body.password is not None and body.code is None:
        await step_up.confirm_by_password(ctx, request.caller, body.password)
    elif body.code is not None and body.password is None:
        await step_up.confirm_by_code(ctx, request.caller, body.code)
    else:
        raise errors.InvalidRequest("send either password or code")
    return routing.Response(204)


async def show_me(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get the current user.

    The user whose token this is, with its role, and the account.
    """
    user, account = await logins.me(ctx, request.caller)
    return routing.Response(200, MeResponse(_user(user), v1_account.account(account), request_id=request.id))


async def list_sessions(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List your sessions and tokens.

    Those of your login, in all your accounts.
    """
    user, _ = await logins.me(ctx, request.caller)
    found = await sessions.of_person(ctx, user.login_id or "")
    rows = [
        resource.from_record(
            Session, session, methods=session.methods.split(), current=session.id == request.caller.token_id
        )
        for session in found
    ]
    return routing.Response(200, SessionsResponse(rows, request_id=request.id))


async def end_session(ctx: context.Context, request: routing.Request) -> routing.Response:
    """End one of your sessions, or revoke a token.

    It ends everywhere within a second, with the tokens that were made in it.
    """
    user, _ = await logins.me(ctx, request.caller)
    await sessions.end(ctx, request.path["id"], login_id=user.login_id or "")
    return routing.Response(204)


def _session(session: logins.LoggedIn, *, request_id: str) -> SessionResponse:
    user, account = _user(session.user), v1_account.account(session.account)
    expires_at = times.to_wire(session.expires_at)
    return SessionResponse(session.token, expires_at, user, account, request_id=request_id)


def _user(user: users.User) -> User:
    return resource.from_record(User, user)


ROUTES: Final = (
    RESOURCE.route(
        "POST /v1/auth/login",
        log_in,
        permission=None,
        body=LoginRequest,
        body_rules={"examples": [{"email": "owner@example.com", "password": "correct horse battery"}]},
        body_limit=BODY_BYTES,
        responses={200: SessionResponse},
        errors=(errors.Unauthorized, errors.SecondFactorRequired, errors.RateLimited),
    ),
    RESOURCE.route("POST /v1/auth/logout", log_out, permission=callers.Permission.VIEW, responses={204: None}),
    RESOURCE.route(
        "POST /v1/auth/password",
        change_password,
        permission=callers.Permission.VIEW,
        body=PasswordChange,
        body_rules={
            "examples": [{"current_password": "correct horse battery", "new_password": "battery staple correct"}]
        },
        body_limit=BODY_BYTES,
        responses={200: SessionResponse},
        errors=(errors.RateLimited, errors.Conflict),
    ),
    RESOURCE.route(
        "POST /v1/auth/confirm",
        confirm,
        permission=callers.Permission.VIEW,
        body=Confirmation,
        body_rules={
            "examples": [{"password": "correct horse battery"}, {"code": "492039"}],
            "oneOf": [
                {"required": ["password"], "properties": {"password": {"type": "string"}}},
                {"required": ["code"], "properties": {"code": {"type": "string"}}},
            ],
        },
        body_limit=BODY_BYTES,
        responses={204: None},
        errors=(errors.RateLimited,),
    ),
    RESOURCE.route("GET /v1/auth/me", show_me, responses={200: MeResponse}),
    RESOURCE.route("GET /v1/auth/sessions", list_sessions, responses={200: SessionsResponse}),
    RESOURCE.route(
        "DELETE /v1/auth/sessions/{id}", end_session, permission=callers.Permission.VIEW, responses={204: None}
    ),
)
