"""`/operator/sources`: the addresses that mail is sent from, their states and warm-up, and changes at run time."""

from typing import Final
from urllib import parse

from postroad.dashboard.framework import forms, requests
from postroad.dashboard.operator import console
from postroad.model.delivery import providers
from postroad.model.units import labels
from postroad.services.queue import sources
from postroad.storage.mail import delivery_controls
from postroad.web import routing

PATH: Final = "/operator/sources"
PAGE: Final = f"{PATH}/{{name}}"
_STOPPED: Final = (delivery_controls.SourceStatus.PAUSED, delivery_controls.SourceStatus.DRAINING)


class Drain(forms.Form, frozen=True, kw_only=True):
    reason: str


class Pause(Drain, frozen=True, kw_only=True):
    """Why an address is paused, for which provider, and until when, in the time zone of the user."""

    provider: str | None = None
    until: str | None = None


class Resume(forms.Form, frozen=True, kw_only=True):
    """The provider that an address was paused for; none if it was paused for all."""

    provider: str | None = None


async def index(request: requests.PageRequest) -> routing.Response:
    rows = await sources.listed(request.ctx)
    return request.page("operator/sources.html", rows=rows, url=url_of, title=providers.title_of)


async def show(request: requests.PageRequest) -> routing.Response:
    return request.page(
        "operator/source.html",
        row=await sources.find(request.ctx, request.path["name"]),
        url=url_of,
        title=providers.title_of,
        days=sources.SHOWN_DAYS,
        reason_characters=labels.REASON_CHARACTERS,
    )


async def pause(request: requests.PageRequest) -> routing.Response:
    form: Pause = request.form
    until = None if form.until is None else forms.moment("until", form.until, request.zone)
    provider = form.provider or ""
    before = await sources.find(request.ctx, request.path["name"])
    row = await sources.pause(request.ctx, before.source.name, provider=provider, reason=form.reason, until=until)
    url = url_of(row.source.name)
    # Resuming ends all that stops it, also what was there before.
    was_stopped = any(state.provider == provider and state.state in _STOPPED for state in before.states)
    undo = "" if was_stopped else request.undo(f"{url}/resume", provider=provider)
    return request.redirect(url, notice="Paused on all hosts. Other addresses of its pool take over.", undo=undo)


async def resume(request: requests.PageRequest) -> routing.Response:
    form: Resume = request.form
    row = await sources.resume(request.ctx, request.path["name"], provider=form.provider or "")
    return request.redirect(url_of(row.source.name), notice="Resumed on all hosts.")


async def drain(request: requests.PageRequest) -> routing.Response:
    form: Drain = request.form
    row = await sources.drain(request.ctx, request.path["name"], reason=form.reason)
    return request.redirect(url_of(row.source.name), notice="Draining. What was claimed for it is still sent.")


async def warm_up(request: requests.PageRequest) -> routing.Response:
    row = await sources.warm_up(request.ctx, request.path["name"])
    return request.redirect(url_of(row.source.name), notice="The warm-up begins today.")


async def end_warm_up(request: requests.PageRequest) -> routing.Response:
    row = await sources.end_warm_up(request.ctx, request.path["name"])
    return request.redirect(url_of(row.source.name), notice="The warm-up has ended.")


def url_of(name: str) -> str:
    return f"{PATH}/{parse.quote(name, safe='')}"


ROUTES: Final = (
    console.get(PATH, index),
    console.get(PAGE, show),
    console.post(f"{PAGE}/pause", pause, form=Pause),
    console.post(f"{PAGE}/resume", resume, form=Resume),
    console.post(f"{PAGE}/drain", drain, form=Drain),
    console.post(f"{PAGE}/warm-up", warm_up),
    console.post(f"{PAGE}/end-warm-up", end_warm_up),
)
