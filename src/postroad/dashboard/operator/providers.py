"""`/operator/providers`: where mail goes, the limits in force and why, and changes of them at run time."""

import collections
from collections.abc import Mapping
from typing import Annotated, Final
from urllib import parse

import msgspec

from postroad.dashboard.framework import forms, reputation, requests, verdicts
from postroad.dashboard.operator import console
from postroad.model.delivery import providers
from postroad.model.units import labels
from postroad.services.accounts import statistics
from postroad.services.operations import destinations, operator_queue
from postroad.storage.mail import mail_counts
from postroad.storage.operations import processes
from postroad.web import routing

PATH: Final = "/operator/providers"
PAGE: Final = f"{PATH}/{{name}}"
# What an open one is called that defers much.
DEFERRING: Final = "deferring"
Limit = Annotated[int, msgspec.Meta(ge=1, le=destinations.MAX_LIMIT)]


class Pause(forms.Form, frozen=True, kw_only=True):
    """Why a provider is paused, and until when, in the time zone of the user."""

    reason: str
    until: str | None = None


class LimitChange(Pause, frozen=True, kw_only=True):
    """The limits to change; those that are empty are those of the settings."""

    connections: Limit | None = None
    messages_per_second: Limit | None = None
    messages_per_connection: Limit | None = None


class ProviderRow(msgspec.Struct, frozen=True):
    """A destination with its name for people and its counts of the last hours, if there are any."""

    destination: destinations.Destination
    counts: mail_counts.ProviderTotal | None

    @property
    def title(self) -> str:
        return providers.title_of(self.destination.name)

    @property
    def worst(self) -> processes.QueueStatus | None:
        return max(
            self.destination.reported, key=lambda report: destinations.SEVERITY.index(report.state), default=None
        )

    @property
    def status(self) -> str:
        """Its state; it is not called open where much is deferred, also of a few attempts."""
        is_deferring = verdicts.is_deferring(0 if self.counts is None else self.counts.deferred, self.attempts)
        return DEFERRING if self.destination.state == destinations.OPEN and is_deferring else self.destination.state

    @property
    def attempts(self) -> int:
        """The attempts of the last hours: those that ended a delivery, and those that were deferred."""
        return 0 if self.counts is None else self.counts.attempts

    @property
    def url(self) -> str:
        return url_of(self.destination.name)

    @property
    def changed(self) -> Mapping[str, int]:
        """The limits in force that are not those of the settings."""
        destination = self.destination
        return {name: value for name, value in destination.limits.items() if value != destination.settings[name]}

    @property
    def has_own_change(self) -> bool:
        """Whether an operator has changed exactly this one, not all others together."""
        return self.destination.override is not None and self.destination.override.name == self.destination.name


async def index(request: requests.PageRequest) -> routing.Response:
    """All of them, those that are not open first."""
    counted = await request.site.operator_state.queue.read(request.ctx) or operator_queue.NOTHING
    totals = {provider.provider: provider for provider in counted.providers}
    found = [
        ProviderRow(destination, totals.get(destination.name)) for destination in await destinations.listed(request.ctx)
    ]
    found.sort(key=lambda row: row.status == destinations.OPEN)
    day = _of_day(counted)
    return request.page(
        "operator/providers.html", rows=found, counted_at=counted.at, reputation=reputation.assess(day), day=day
    )


def _of_day(counted: operator_queue.Summary) -> list[reputation.ProviderRow]:
    """The results of the last day. Complaints are not counted by provider over all accounts."""
    first = mail_counts.hour_of(counted.at or 0) - operator_queue.DAY_HOURS + 1
    recent = [row for row in counted.recent.rows if counted.recent.from_hour + row.bucket >= first]
    standing = statistics.ProviderStanding(collections.Counter(counted.blocked), collections.Counter())
    return [reputation.ProviderRow(each, 0) for each in statistics.by_provider(recent, standing)]


async def show(request: requests.PageRequest) -> routing.Response:
    destination = await destinations.find(request.ctx, request.path["name"])
    counted = await request.site.operator_state.queue.read(request.ctx) or operator_queue.NOTHING
    counts = next((total for total in counted.providers if total.provider == destination.name), None)
    causes = [
        (each, operator_queue.explain(each)) for each in counted.reasons if each.provider_queue == destination.name
    ]
    return request.page(
        "operator/provider.html",
        row=ProviderRow(destination, counts),
        destination=destination,
        causes=causes,
        sample=operator_queue.SAMPLE,
        limits=destinations.LIMITS,
        max_limit=destinations.MAX_LIMIT,
        reason_characters=labels.REASON_CHARACTERS,
    )


async def pause(request: requests.PageRequest) -> routing.Response:
    form: Pause = request.form
    before = await destinations.find(request.ctx, request.path["name"])
    destination = await destinations.pause(request.ctx, before.name, reason=form.reason, until=_until(request, form))
    url = url_of(destination.name)
    # A change of the pause that was there is no new one, and resuming would not bring the old one back.
    undo = "" if before.is_paused else request.undo(f"{url}/resume")
    return request.redirect(url, notice="Paused on all hosts. Its mail waits in the queue.", undo=undo)


async def resume(request: requests.PageRequest) -> routing.Response:
    before = await destinations.find(request.ctx, request.path["name"])
    destination = await destinations.resume(request.ctx, before.name)
    url, paused = url_of(destination.name), before.override
    # A date field has no seconds.
    is_open_ended = paused is not None and paused.pause_until is None
    undo = request.undo(f"{url}/pause", reason=paused.pause_reason or "") if paused and is_open_ended else ""
    return request.redirect(url, notice="Resumed on all hosts.", undo=undo)


async def set_limits(request: requests.PageRequest) -> routing.Response:
    form: LimitChange = request.form
    given = {name: getattr(form, name) for name in destinations.LIMITS if getattr(form, name) is not None}
    destination = await destinations.set_limits(
        request.ctx, request.path["name"], given, reason=form.reason, until=_until(request, form)
    )
    return request.redirect(url_of(destination.name), notice="Limits changed on all hosts.")


async def restore(request: requests.PageRequest) -> routing.Response:
    destination = await destinations.restore(request.ctx, request.path["name"])
    return request.redirect(url_of(destination.name), notice="The settings apply again on all hosts.")


def _until(request: requests.PageRequest, form: Pause) -> int | None:
    return None if form.until is None else forms.moment("until", form.until, request.zone)


def url_of(name: str) -> str:
    return f"{PATH}/{parse.quote(name, safe='')}"


ROUTES: Final = (
    console.get(PATH, index),
    console.get(PAGE, show),
    console.post(f"{PAGE}/pause", pause, form=Pause),
    console.post(f"{PAGE}/resume", resume),
    console.post(f"{PAGE}/limits", set_limits, form=LimitChange),
    console.post(f"{PAGE}/restore", restore),
)
