"""`/profile`: time zone, password, notices, sessions and tokens of the user; `/notices/{token}` (RFC 8058)."""

import dataclasses
from typing import Any, Final

import msgspec

from postroad import context, errors
from postroad.dashboard.framework import forms, requests
from postroad.dashboard.framework import site as sites
from postroad.mail import notice_kinds
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services.operations.notices import choices
from postroad.services.people import logins, sessions, users
from postroad.storage.people import sessions as stored_sessions
from postroad.web import routing


class PasswordChange(forms.Form, frozen=True, kw_only=True):
    current_password: str
    new_password: str


def field_of(kind: str) -> str:
    return kind.replace(".", "_")


# A choice for each kind of mail; nothing for those that the form does not offer.
NoticeChoices: Final[Any] = msgspec.defstruct(
    "NoticeChoices",
    [
        (field_of(kind), notice_kinds.Choice | None, None)
        for kind, known in notice_kinds.KINDS.items()
        if not known.is_security
    ],
    bases=(forms.Form,),
    frozen=True,
    kw_only=True,
)


class NewToken(forms.Form, frozen=True, kw_only=True):
    """The name and the expiry date of a token that outlives the session; none for one that ends with it."""

    name: str | None = None
    expires_on: str | None = None


class TimeZone(forms.Form, frozen=True, kw_only=True):
    time_zone: str


SESSIONS: Final = "/profile#sessions"
CHOICES: Final = (
    (notice_kinds.Choice.NOW, "Now"),
    (notice_kinds.Choice.DIGEST, "Daily"),
    (notice_kinds.Choice.OFF, "Off"),
)


async def show(
    request: requests.PageRequest, *, status: int = 200, token: str | None = None, expires_at: int | None = None
) -> routing.Response:
    # A browser may have offered a name that is not among the choices.
    zones = [(name, name) for name in dict.fromkeys((*times.time_zone_choices(), request.zone.key))]
    chosen = await choices.of_user(request.ctx, request.user)
    notices = [(field_of(kind), notice_kinds.KINDS[kind].title, choice) for kind, choice in chosen.items()]
    return request.page(
        "profile.html",
        status=status,
        token=token,
        expires_at=expires_at,
        zones=zones,
        notices=notices,
        choices=CHOICES,
        sessions=await sessions.of_person(request.ctx, request.session.row.login_id),
        current=request.session.row.id,
        account_names=request.accounts,
    )


async def make_token(request: requests.PageRequest) -> routing.Response:
    """Create a token for `/v1` and show it once: it ends with this session, or has a name and an expiry date."""
    form: NewToken = request.form
    expires_at = forms.end_of_day("expires_on", form.expires_on, request.zone) if form.expires_on else None
    issued = await sessions.make_token(
        request.ctx, request.user, request.session, name=form.name or "", expires_at=expires_at
    )
    return await show(request, status=201, token=issued.token, expires_at=issued.expires_at)


async def end_session(request: requests.PageRequest) -> routing.Response:
    """End one of the person's sessions or tokens; the one that is used here ends, too, if it is chosen."""
    ended = await sessions.end(request.ctx, request.path["id"], login_id=request.session.row.login_id)
    if ended.id == request.session.row.id:
        return requests.redirect(request.http.headers, "/login")
    what = "Token revoked." if ended.kind == stored_sessions.Kind.TOKEN else "Session ended."
    return request.redirect(SESSIONS, notice=what)


async def end_others(request: requests.PageRequest) -> routing.Response:
    """End all sessions and tokens of the person but this session."""
    count = await sessions.end_others(request.ctx, request.session.row)
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
        changed = await logins.change_password(
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
    for kind in await choices.of_user(request.ctx, request.user):
        if choice := getattr(request.form, field_of(kind)):
            await choices.choose(request.ctx, request.user, kind, choice)
    return request.redirect("/profile#mail", notice="Saved.")


ROUTES: Final = (
    requests.get("/profile", show, viewing=requests.Viewing.REFUSED),
    requests.post("/profile/token", make_token, form=NewToken, permission=requests.VIEW),
    requests.post("/profile/sessions/{id}/end", end_session, permission=requests.VIEW),
    requests.post("/profile/sessions/end-others", end_others, permission=requests.VIEW),
    requests.post("/profile/time-zone", change_time_zone, form=TimeZone, permission=requests.VIEW),
    requests.post("/profile/notices", choose_notices, form=NoticeChoices, permission=requests.VIEW),
    requests.post("/profile/password", change_password, form=PasswordChange, permission=requests.VIEW),
)


async def show_unsubscribe(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """Ask for a confirmation: mail scanners open every link."""
    token = request.path["token"]
    user, kind = await choices.by_token(ctx, token)
    values = {"token": token, "email": user.email, "title": notice_kinds.KINDS[kind].title, "is_done": False}
    return site.page(request.headers, "notifications.html", values)


async def unsubscribe(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """End mail of this kind. Mail programs send this from anywhere, so the token is the only proof."""
    token = request.path["token"]
    actor = callers.Actor(callers.ActorKind.PERSON, None, request.id, request.client_address)
    user, kind = await choices.unsubscribe(dataclasses.replace(ctx, actor=actor), token)
    values = {"token": token, "email": user.email, "title": notice_kinds.KINDS[kind].title, "is_done": True}
    return site.page(request.headers, "notifications.html", values)


NOTICE_ROUTES: Final = (
    requests.public("GET", "/notices/{token}", show_unsubscribe),
    requests.public("POST", "/notices/{token}", unsubscribe),
)
