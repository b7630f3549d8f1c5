"""`/confirm`: people prove again who they are, before a sensitive action (services/people/step_up.py).

A page that was refused for this leads here, and from here back to it. A form was not sent: with scripts its page stays
open with what was typed, and this one opens beside it.
"""

from typing import Any, Final

import msgspec

from postroad import errors
from postroad.dashboard.framework import forms, navigation, requests
from postroad.dashboard.people import login, passkeys
from postroad.services.people import passkeys as people_passkeys
from postroad.services.people import second_factors, step_up
from postroad.web import routing

PATH: Final = "/confirm"


class ConfirmQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The page to open afterwards; without one, a form waits in another tab."""

    next: str | None = None


class Confirmation(forms.Form, frozen=True, kw_only=True):
    """The password, or a code, and the page to open afterwards."""

    password: str | None = None
    code: str | None = None
    next: str | None = None


async def show(request: requests.PageRequest) -> routing.Response:
    """The page; it also says that this session is confirmed."""
    try:
        step_up.refuse_unconfirmed(request.ctx, request.http.caller)
        is_confirmed = True
    except errors.ConfirmationRequired:
        is_confirmed = False
    _, owner = await step_up.person(request.ctx, request.http.caller)
    return request.page(
        "confirm.html",
        next=request.query.next and login.local_path(request.query.next),
        is_confirmed=is_confirmed,
        has_password=owner.password_hash is not None,
        factors=await second_factors.of_login(request.ctx, owner.id),
        relying_party=people_passkeys.relying_party(request.ctx.settings),
        minutes=request.ctx.settings.security.confirmation_minutes,
    )


async def by_secret(request: requests.PageRequest) -> routing.Response:
    form: Confirmation = request.form
    try:
        if form.code:
            await step_up.confirm_by_code(request.ctx, request.http.caller, form.code)
        else:
            await step_up.confirm_by_password(request.ctx, request.http.caller, form.password or "")
    # The user is authenticated, so do not redirect to the login.
    except errors.SecondFactorRequired as problem:
        raise errors.InvalidRequest(f"code: {problem.message}") from None
    except errors.Unauthorized as problem:
        raise errors.InvalidRequest(problem.message) from None
    return _go_on(request, form.next)


async def ask_for_passkey(request: requests.PageRequest) -> routing.Response:
    return passkeys.asking(request.site, await step_up.ask_for_passkey(request.ctx, request.http.caller))


async def by_passkey(request: requests.PageRequest) -> routing.Response:
    form: passkeys.AnswerForm = request.form
    answer = passkeys.answered(request.site, request.http.headers, form.answer)
    await step_up.confirm_by_passkey(request.ctx, request.http.caller, answer)
    return _go_on(request, form.next)


def _go_on(request: requests.PageRequest, next_path: str | None) -> routing.Response:
    """Back to the page, which says now what comes next: what it was asked for may be a download."""
    where = navigation.url(PATH, next=login.local_path(next_path)) if next_path else PATH
    return requests.redirect(request.http.headers, where)


# Whoever has a session may confirm it, whatever else it may not do yet.
_ALWAYS: Final[Any] = {"permission": requests.VIEW, "viewing": requests.Viewing.UNCHANGED, "is_enrolment": True}
ROUTES: Final = (
    requests.get(PATH, show, query=ConfirmQuery, **_ALWAYS),
    requests.post(PATH, by_secret, form=Confirmation, **_ALWAYS),
    requests.post(f"{PATH}/passkey/options", ask_for_passkey, **_ALWAYS),
    requests.post(f"{PATH}/passkey", by_passkey, form=passkeys.AnswerForm, body_limit=passkeys.BODY_BYTES, **_ALWAYS),
)
