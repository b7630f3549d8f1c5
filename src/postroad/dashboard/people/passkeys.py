"""Passkeys: registered and removed in the profile, and used to log in, without a password or after it.

A ceremony is two requests of `assets/passkeys.js`: the first gets its options and a cookie with the challenge, the
second is a form with the answer of the authenticator. Without scripts there are no passkeys.
"""

from typing import Final

import msgspec

from postroad import context
from postroad.dashboard.framework import cookies, forms, requests
from postroad.dashboard.framework import site as sites
from postroad.dashboard.people import login, security
from postroad.services.people import passkeys, second_factors, sessions
from postroad.services.people.passkeys import Ceremony
from postroad.web import routing

PATH: Final = "/profile/passkeys"
SECOND_FACTOR: Final = f"{login.SECOND_FACTOR}/passkey"
# An answer has about a kilobyte, and three with the statement of some security keys.
BODY_BYTES: Final = 32 * 1024


class AnswerForm(forms.Form, frozen=True, kw_only=True):
    """The answer of an authenticator, as JSON, and the page to open afterwards."""

    answer: str
    next: str | None = None


class SecondFactorForm(login.SecondStep, frozen=True, kw_only=True):
    answer: str


class Registration(forms.Form, frozen=True, kw_only=True):
    """A name for the new passkey, and the answer of the authenticator."""

    name: str
    answer: str


def asking(site: sites.Site, asked: passkeys.Asked) -> routing.Response:
    cookie = cookies.write(cookies.PASSKEY, asked.cookie, is_secure=site.is_secure, seconds=passkeys.CHALLENGE_SECONDS)
    return routing.Response(200, msgspec.json.encode(asked.options), headers=(cookie,))


def answered(site: sites.Site, headers: routing.Headers, text: str) -> passkeys.Answer:
    """The answer of an authenticator, with the cookie of its ceremony."""
    return passkeys.Answer(cookies.read(headers, cookies.PASSKEY, is_secure=site.is_secure), text)


async def ask_to_log_in(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    forms.refuse_cross_origin(site, request.headers)
    return asking(site, await passkeys.ask(ctx, Ceremony.LOG_IN))


async def log_in(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """Start a session of the login that a passkey belongs to."""
    form: AnswerForm = request.body
    forms.refuse_cross_origin(site, request.headers)
    acting = login.acting_caller(ctx, request)
    begun = await passkeys.log_in(acting, answered(site, request.headers, form.answer), device=request.device)
    cookie = requests.session_cookie(ctx, site, begun.session)
    return requests.redirect(request.headers, login.local_path(form.next), headers=(cookie,))


async def ask_for_second_factor(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """Ask for a passkey of the login whose password was right."""
    forms.refuse_cross_origin(site, request.headers)
    pending = await second_factors.find_pending(ctx, login.pending_token(site, request))
    asked = await passkeys.ask(ctx, Ceremony.SECOND_FACTOR, login_id=pending.login.id, subject=pending.login.id)
    return asking(site, asked)


async def check_second_factor(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    form: SecondFactorForm = request.body
    forms.refuse_cross_origin(site, request.headers)
    owner = (await second_factors.find_pending(ctx, login.pending_token(site, request))).login
    answer = answered(site, request.headers, form.answer)
    acting = login.acting_caller(ctx, request)
    await passkeys.check(acting, answer, Ceremony.SECOND_FACTOR, login_id=owner.id, subject=owner.id)
    return await login.complete_login(site, ctx, request, method=second_factors.PASSKEY)


async def ask_to_register(request: requests.PageRequest) -> routing.Response:
    owner = await security.own_login(request)
    return asking(request.site, await passkeys.ask_to_register(request.ctx, owner, session_id=request.session.row.id))


async def register(request: requests.PageRequest) -> routing.Response:
    """Store a new passkey, and show recovery codes if there were none. The session has this factor from now on."""
    form: Registration = request.form
    owner = await security.own_login(request)
    answer = answered(request.site, request.http.headers, form.answer)
    session = request.session
    made, codes = await passkeys.register(request.ctx, owner, answer, session_id=session.row.id, name=form.name)
    methods = " ".join(dict.fromkeys((*session.row.methods.split(), second_factors.PASSKEY)))
    await sessions.confirm(request.ctx, session, methods=methods)
    if codes:
        return await security.show(request, status=201, codes=codes)
    return request.redirect(security.PATH, notice=f"Passkey added: {made.name}.")


async def remove(request: requests.PageRequest) -> routing.Response:
    owner = await security.own_login(request)
    gone = await passkeys.remove(request.ctx, owner, request.path["id"])
    return request.redirect(security.PATH, notice=f"Passkey removed: {gone.name}. Remove it from your device, too.")


ROUTES: Final = (
    requests.public("POST", "/login/passkey/options", ask_to_log_in, form=forms.Form, body_limit=BODY_BYTES),
    requests.public("POST", "/login/passkey", log_in, form=AnswerForm, body_limit=BODY_BYTES),
    requests.public("POST", f"{SECOND_FACTOR}/options", ask_for_second_factor, form=forms.Form, body_limit=BODY_BYTES),
    requests.public("POST", SECOND_FACTOR, check_second_factor, form=SecondFactorForm, body_limit=BODY_BYTES),
    requests.post(f"{PATH}/options", ask_to_register, permission=requests.VIEW, is_enrolment=True),
    requests.post(
        PATH, register, form=Registration, permission=requests.VIEW, is_enrolment=True, body_limit=BODY_BYTES
    ),
    requests.post(f"{PATH}/{{id}}/remove", remove, permission=requests.VIEW),
)
