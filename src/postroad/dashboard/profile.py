"""`/profile`: the user's own password, and an API token."""

from typing import Final

from postroad import errors
from postroad.dashboard import forms, requests
from postroad.services.auth import authentication, sessions
from postroad.web import routing


class PasswordChange(forms.Form, frozen=True, kw_only=True):
    """The current and the new password."""

    current_password: str
    new_password: str


async def show(request: requests.PageRequest) -> routing.Response:
    """The page."""
    return request.page("profile.html", token=None, expires_at=None)


async def make_token(request: requests.PageRequest) -> routing.Response:
    """Create a token for `/v1` and show it once; it expires, and ends with the user's sessions."""
    issued = await authentication.issue_api_token(request.ctx, request.user)
    return request.page("profile.html", status=201, token=issued.token, expires_at=issued.expires_at)


async def change_password(request: requests.PageRequest) -> routing.Response:
    """Change the password; every other session ends."""
    form: PasswordChange = request.form
    try:
        changed = await authentication.change_password(
            request.ctx,
            request.http.caller,
            current_password=form.current_password,
            new_password=form.new_password,
            client_address=request.http.client_address,
        )
    except errors.Unauthorized as problem:
        # The user is authenticated, so do not redirect to the login.
        raise errors.InvalidRequest(problem.message) from None
    cookie = requests.session_cookie(request.ctx, request.site, sessions.begin(request.ctx, changed.user))
    return request.redirect(
        "/profile", notice="Password changed. You are logged out everywhere else.", headers=(cookie,)
    )


ROUTES: Final = (
    requests.get("/profile", show),
    requests.post("/profile/token", make_token, permission=requests.VIEW),
    requests.post("/profile/password", change_password, form=PasswordChange, permission=requests.VIEW),
)
