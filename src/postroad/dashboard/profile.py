"""`/profile`: one's own password, and a token for the API."""

from postroad import errors
from postroad.dashboard import forms, requests
from postroad.dashboard import site as sites
from postroad.services import context
from postroad.services.auth import authentication, sessions
from postroad.web import routing


class PasswordChange(forms.Form, frozen=True, kw_only=True):
    """The password that was, and the one that is to be."""

    current_password: str
    new_password: str

    def __repr__(self) -> str:
        return "PasswordChange()"


async def show(page_request: requests.PageRequest) -> routing.Response:
    """Who one is."""
    return page_request.page("profile.html", token=None, expires_at=None)


async def make_token(page_request: requests.PageRequest) -> routing.Response:
    """A token for `/v1`, shown once; it dies by itself, and with everything else that ends one's sessions."""
    issued = await authentication.issue_api_token(page_request.ctx, page_request.user)
    return page_request.page("profile.html", status=201, token=issued.token, expires_at=issued.expires_at)


async def change_password(page_request: requests.PageRequest) -> routing.Response:
    """A new password; every other session ends, this one goes on."""
    form: PasswordChange = page_request.form
    try:
        changed = await authentication.change_password(
            page_request.ctx,
            page_request.request.caller,
            current_password=form.current_password,
            new_password=form.new_password,
            client_address=page_request.request.client_address,
        )
    except errors.Unauthorized as problem:
        # Who it is is beyond doubt here: to the log-in is not the way.
        raise errors.InvalidRequest(problem.message) from None
    cookie = requests.session_cookie(
        page_request.ctx, page_request.site, sessions.begin(page_request.ctx, changed.user)
    )
    return page_request.redirect(
        "/profile", notice="Your password is changed. You are logged out everywhere else.", headers=(cookie,)
    )


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The page and what can be done on it; both belong to everybody, whatever their role."""
    return (
        requests.get(site, "/profile", show),
        requests.post(site, "/profile/token", make_token, permission=requests.VIEW),
        requests.post(site, "/profile/password", change_password, form=PasswordChange, permission=requests.VIEW),
    )
