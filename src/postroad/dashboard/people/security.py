"""`/profile/security`: the second factors of the user's login. Every change asks for the password or a code."""

from typing import Any, Final

import markupsafe
import segno

from postroad import errors
from postroad.dashboard.framework import forms, requests
from postroad.services.people import passkeys, second_factors, sessions
from postroad.storage.people import users
from postroad.web import routing

# Pixels of one module: a phone reads it from the other side of a desk.
QR_SCALE: Final = 4


def qr_code(text: str) -> markupsafe.Markup:
    code = segno.make(text, error="m", micro=False)
    # Only shapes: the text itself is not in it.
    return markupsafe.Markup(code.svg_inline(scale=QR_SCALE, light="#fff"))  # noqa: S704


PATH: Final = "/profile/security"


class Proof(forms.Form, frozen=True, kw_only=True):
    proof: str


class FirstCode(forms.Form, frozen=True, kw_only=True):
    code: str


async def show(
    request: requests.PageRequest,
    *,
    status: int = 200,
    app: dict[str, Any] | None = None,
    codes: list[str] | None = None,
) -> routing.Response:
    """The second factors, and what is shown once: a new authenticator app or new recovery codes."""
    login = await own_login(request)
    factors = await second_factors.of_login(request.ctx, login.id)
    is_required = second_factors.is_required(request.ctx, request.user, request.account)
    return request.page(
        "security.html",
        status=status,
        factors=factors,
        is_required=is_required,
        app=app,
        codes=codes,
        passkeys=await passkeys.of_login(request.ctx, login.id),
        relying_party=passkeys.relying_party(request.ctx.settings),
    )


async def begin(request: requests.PageRequest) -> routing.Response:
    """Show the secret of a new authenticator app: in this response only, so that no stolen session finds it."""
    login = await _proven(request)
    secret = await second_factors.begin_totp(request.ctx, login)
    picture = qr_code(second_factors.totp_uri(secret, email=login.email))
    grouped = " ".join(secret[start : start + 4] for start in range(0, len(secret), 4))
    return await show(request, status=201, app={"picture": picture, "secret": grouped})


async def confirm(request: requests.PageRequest) -> routing.Response:
    """Make the app a factor with its first code, and show recovery codes if there were none."""
    form: FirstCode = request.form
    codes = await second_factors.confirm_totp(request.ctx, await own_login(request), form.code)
    methods = f"{request.session.row.methods} {second_factors.TOTP}"
    await sessions.confirm(request.ctx, request.session, methods=methods)
    if codes:
        return await show(request, status=201, codes=codes)
    return request.redirect(PATH, notice="Authenticator app set up.")


async def remove(request: requests.PageRequest) -> routing.Response:
    await second_factors.remove_totp(request.ctx, await _proven(request))
    return request.redirect(PATH, notice="Authenticator app removed.")


async def renew_codes(request: requests.PageRequest) -> routing.Response:
    """Show new recovery codes once."""
    codes = await second_factors.renew_codes(request.ctx, await _proven(request))
    return await show(request, status=201, codes=codes)


async def own_login(request: requests.PageRequest) -> users.Login:
    return await second_factors.login_of(request.ctx, request.session.row.login_id)


async def _proven(request: requests.PageRequest) -> users.Login:
    """The login, whose person has proved again who they are."""
    form: Proof = request.form
    login = await own_login(request)
    try:
        await second_factors.prove(request.ctx, login, form.proof)
    except errors.Unauthorized as problem:
        # The user is authenticated, so a wrong code must not lead to the login.
        raise errors.InvalidRequest(f"proof: {problem.message}") from None
    return login


ROUTES: Final = (
    requests.get(PATH, show, viewing=requests.Viewing.REFUSED, is_enrolment=True),
    requests.post(f"{PATH}/totp", begin, form=Proof, permission=requests.VIEW, is_enrolment=True),
    requests.post(f"{PATH}/totp/confirm", confirm, form=FirstCode, permission=requests.VIEW, is_enrolment=True),
    requests.post(f"{PATH}/totp/remove", remove, form=Proof, permission=requests.VIEW),
    requests.post(f"{PATH}/recovery-codes", renew_codes, form=Proof, permission=requests.VIEW),
)
