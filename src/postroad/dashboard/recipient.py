"""`/recipients/{email}`: what was sent to one address, what became of it, and whether it is suppressed."""

from typing import Final, Literal

import msgspec

from postroad import errors
from postroad.dashboard import forms, requests, suppressions, urls
from postroad.services.messages import hidden_content, recipient_history
from postroad.services.suppressions import registry
from postroad.web import routing


class Removal(forms.Form, frozen=True, kw_only=True):
    """Remove the address from the suppression list; one that complained has to be confirmed."""

    confirmed: Literal["yes"] | None = None


async def show(request: requests.PageRequest) -> routing.Response:
    """The page."""
    history = await recipient_history.of_address(request.ctx, request.account_id, request.path["email"])
    sent = [
        msgspec.structs.replace(one, subject=hidden_content.SUBJECT) if request.hides(one.message_id) else one
        for one in history.sent
    ]
    history = msgspec.structs.replace(history, sent=sent)
    return request.page("recipient.html", history=history, sources=suppressions.SOURCES)


async def suppress(request: requests.PageRequest) -> routing.Response:
    """Put the address on the suppression list."""
    history = await recipient_history.of_address(request.ctx, request.account_id, request.path["email"])
    await registry.add(request.ctx, request.account_id, history.email_key)
    return _back(request, history.email_key, f"{history.email_key} is suppressed.")


async def remove(request: requests.PageRequest) -> routing.Response:
    """Remove the address from the list."""
    form: Removal = request.form
    history = await recipient_history.of_address(request.ctx, request.account_id, request.path["email"])
    if history.suppression is None:
        raise errors.Conflict(f"{history.email_key} is not suppressed")
    email = await suppressions.remove_confirmed(request, history.email_key, is_confirmed=form.confirmed is not None)
    return _back(request, email, f"{email} is no longer suppressed.")


def _back(request: requests.PageRequest, email: str, notice: str) -> routing.Response:
    return request.redirect(urls.recipient(email), notice=notice)


ROUTES: Final = (
    requests.get("/recipients/{email}", show),
    requests.post("/recipients/{email}/suppress", suppress),
    requests.post("/recipients/{email}/remove", remove, form=Removal),
)
