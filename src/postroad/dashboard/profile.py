"""`/profile`: the user's own time zone, password and mail from this service, and an API token."""

from typing import Final

from postroad import errors
from postroad.dashboard import forms, requests
from postroad.model import time_zones
from postroad.services.auth import authentication, users
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


class TimeZone(forms.Form, frozen=True, kw_only=True):
    """The name of a time zone."""

    time_zone: str


CHOICES: Final = (
    (kinds.Choice.NOW, "At once"),
    (kinds.Choice.DIGEST, "In the daily digest"),
    (kinds.Choice.OFF, "Not by mail"),
)


async def show(request: requests.PageRequest) -> routing.Response:
    """The page."""
    return await _page(request)


async def make_token(request: requests.PageRequest) -> routing.Response:
    """Create a token for `/v1` and show it once; it expires, and ends with the user's sessions."""
    issued = await authentication.issue_api_token(request.ctx, request.user)
    return await _page(request, status=201, token=issued.token, expires_at=issued.expires_at)


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
    )


ROUTES: Final = (
    requests.get("/profile", show, looking=requests.Looking.REFUSED),
    requests.post("/profile/token", make_token, permission=requests.VIEW),
    requests.post("/profile/time-zone", change_time_zone, form=TimeZone, permission=requests.VIEW),
    requests.post("/profile/notices", choose_notices, form=NoticeChoice, permission=requests.VIEW),
    requests.post("/profile/password", change_password, form=PasswordChange, permission=requests.VIEW),
)
