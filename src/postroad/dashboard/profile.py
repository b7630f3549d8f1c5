"""`/profile`: the user's own password, and an API token."""

from postroad import errors
from postroad.dashboard import forms, requests
from postroad.dashboard import site as sites
from postroad.services import context
from postroad.services.auth import authentication, sessions
from postroad.web import routing


class PasswordChange(forms.Form, frozen=True, kw_only=True):
    """The current and the new password."""

    current_password: str
    new_password: str

    def __repr__(self) -> str:
        return "PasswordChange()"


async def show(page_request: requests.PageRequest) -> routing.Response:
    """The page."""
    return page_request.page("profile.html", token=None, expires_at=None)


async def make_token(page_request: requests.PageRequest) -> routing.Response:
    """Create a token for `/v1` and show it once; it expires, and ends with the user's sessions."""
    issued = await authentication.issue_api_token(page_request.ctx, page_request.user)
    return page_request.page("profile.html", status=201, token=issued.token, expires_at=issued.expires_at)


async def change_password(page_request: requests.PageRequest) -> routing.Response:
    """Change the password; every other session ends."""
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
        # The user is authenticated, so do not redirect to the login.
        raise errors.InvalidRequest(problem.message) from None
    cookie = requests.session_cookie(
        page_request.ctx, page_request.site, sessions.begin(page_request.ctx, changed.user)
    )
    return page_request.redirect(
        "/profile", notice="Password changed. You are signed out everywhere else.", headers=(cookie,)
    )


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The page and its actions, for every role."""
    return (
        requests.get(site, "/profile", show),
        requests.post(site, "/profile/token", make_token, permission=requests.VIEW),
        requests.post(site, "/profile/password", change_password, form=PasswordChange, permission=requests.VIEW),
    )
