"""`/profile`: one's own password, and a token for the API."""

from postroad import errors
from postroad.dashboard import forms, visits
from postroad.dashboard import site as sites
from postroad.services import access, context, sessions
from postroad.web import routing


class PasswordChange(forms.Form, frozen=True, kw_only=True):
    """The password that was, and the one that is to be."""

    current_password: str
    new_password: str

    def __repr__(self) -> str:
        return "PasswordChange()"


async def show(visit: visits.Visit) -> routing.Answer:
    """Who one is."""
    return visit.page("profile.html", token=None, expires_at=None)


async def make_token(visit: visits.Visit) -> routing.Answer:
    """A token for `/v1`, shown once; it dies by itself, and with everything else that ends one's sessions."""
    issued = await access.hand_out_token(visit.ctx, visit.user)
    return visit.page("profile.html", status=201, token=issued.token, expires_at=issued.expires_at)


async def change_password(visit: visits.Visit) -> routing.Answer:
    """A new password; every other session ends, this one goes on."""
    form: PasswordChange = visit.form
    try:
        changed = await access.change_password(
            visit.ctx,
            visit.request.caller,
            current_password=form.current_password,
            new_password=form.new_password,
            client_address=visit.request.client_address,
        )
    except errors.Unauthorized as problem:
        # Who it is is beyond doubt here: to the log-in is not the way.
        raise errors.InvalidRequest(problem.message) from None
    cookie = visits.session_cookie(visit.ctx, visit.site, sessions.begin(visit.ctx, changed.user))
    return visit.go(
        "/profile", notice="Your password is changed. You are logged out everywhere else.", headers=(cookie,)
    )


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The page and what can be done on it; both belong to everybody, whatever their role."""
    return (
        visits.look(site, "/profile", show),
        visits.change(site, "/profile/token", make_token, permission=visits.VIEW),
        visits.change(site, "/profile/password", change_password, form=PasswordChange, permission=visits.VIEW),
    )
