"""`/profile`: the user's own time zone, password, mail from this service, sessions and API tokens."""

from typing import Final

from postroad import errors
from postroad.dashboard import forms, requests, typed_times
from postroad.model import time_zones
from postroad.services.auth import authentication, session_list, users
from postroad.services.notices import choices, kinds
from postroad.storage import sessions as stored_sessions
from postroad.web import routing


class PasswordChange(forms.Form, frozen=True, kw_only=True):
    """The current and the new password."""

    current_password: str
    new_password: str


class NoticeChoice(forms.Form, frozen=True, kw_only=True):
    """How to get the mail of a kind."""

    kind: str
    choice: kinds.Choice


class NewToken(forms.Form, frozen=True, kw_only=True):
    """The name and the last day of a token that outlives the session; none for one that ends with it."""

    name: str | None = None
    last_day: str | None = None


class TimeZone(forms.Form, frozen=True, kw_only=True):
    """The name of a time zone."""

    time_zone: str


SESSIONS: Final = "/profile#sessions"
CHOICES: Final = (
    (kinds.Choice.NOW, "At once"),
    (kinds.Choice.DIGEST, "In the daily digest"),
    (kinds.Choice.OFF, "Not by mail"),
)


async def show(request: requests.PageRequest) -> routing.Response:
    """The page."""
    return await _page(request)


async def make_token(request: requests.PageRequest) -> routing.Response:
    """Create a token for `/v1` and show it once: it ends with this session, or has a name and an end date."""
    form: NewToken = request.form
    expires_at = typed_times.end_of_day("last_day", form.last_day, request.zone) if form.last_day else None
    issued = await session_list.make_token(
        request.ctx, request.user, request.session, name=form.name or "", expires_at=expires_at
    )
    return await _page(request, status=201, token=issued.token, expires_at=issued.expires_at)


async def end_session(request: requests.PageRequest) -> routing.Response:
    """End one of the person's sessions or tokens; the one that is used here ends, too, if it is chosen."""
    ended = await session_list.end_own(request.ctx, request.session.row.login_id, request.path["id"])
    if ended.id == request.session.row.id:
        return requests.redirect(request.http.headers, "/login")
    what = "The token is revoked." if ended.kind == stored_sessions.Kind.TOKEN else "The session is ended."
    return request.redirect(SESSIONS, notice=what)


async def end_others(request: requests.PageRequest) -> routing.Response:
    """End all sessions and tokens of the person but this session."""
    count = await session_list.end_others(request.ctx, request.session.row)
    return request.redirect(SESSIONS, notice=f"Other sessions and tokens ended: {count}.")


async def change_time_zone(request: requests.PageRequest) -> routing.Response:
    """Change the time zone of everything that pages show to this user."""
    form: TimeZone = request.form
    await users.set_time_zone(request.ctx, request.user, form.time_zone)
    return request.redirect("/profile", notice=f"Times are shown in {form.time_zone}.")


async def change_password(request: requests.PageRequest) -> routing.Response:
    """Change the password; every other session ends."""
    form: PasswordChange = request.form
    try:
        changed = await authentication.change_password(
            request.ctx,
            request.http.caller,
            current_password=form.current_password,
            new_password=form.new_password,
            kind=stored_sessions.Kind.BROWSER,
            device=request.http.device,
        )
    except errors.Unauthorized as problem:
        # The user is authenticated, so do not redirect to the login.
        raise errors.InvalidRequest(problem.message) from None
    cookie = requests.session_cookie(request.ctx, request.site, changed.session)
    return request.redirect(
        "/profile", notice="Password changed. You are logged out everywhere else.", headers=(cookie,)
    )


async def choose_notices(request: requests.PageRequest) -> routing.Response:
    """Change how the user gets the mail of a kind."""
    form: NoticeChoice = request.form
    await choices.choose(request.ctx, request.user, form.kind, form.choice)
    title = kinds.KINDS[form.kind].title
    return request.redirect("/profile#mail", notice=f"{title}: {dict(CHOICES)[form.choice].lower()}.")


async def _page(
    request: requests.PageRequest, *, status: int = 200, token: str | None = None, expires_at: int | None = None
) -> routing.Response:
    # A browser may have offered a name that is not among the choices.
    zones = [(name, name) for name in dict.fromkeys((*time_zones.choices(), request.zone.key))]
    chosen = await choices.of_user(request.ctx, request.user)
    notices = [(kind, kinds.KINDS[kind].title, choice) for kind, choice in chosen.items()]
    return request.page(
        "profile.html",
        status=status,
        token=token,
        expires_at=expires_at,
        zones=zones,
        notices=notices,
        choices=CHOICES,
        sessions=await session_list.of_person(request.ctx, request.session.row.login_id),
        current=request.session.row.id,
        account_names=request.accounts,
    )


ROUTES: Final = (
    requests.get("/profile", show, looking=requests.Looking.REFUSED),
    requests.post("/profile/token", make_token, form=NewToken, permission=requests.VIEW),
    requests.post("/profile/sessions/{id}/end", end_session, permission=requests.VIEW),
    requests.post("/profile/sessions/end-others", end_others, permission=requests.VIEW),
    requests.post("/profile/time-zone", change_time_zone, form=TimeZone, permission=requests.VIEW),
    requests.post("/profile/notices", choose_notices, form=NoticeChoice, permission=requests.VIEW),
    requests.post("/profile/password", change_password, form=PasswordChange, permission=requests.VIEW),
)
