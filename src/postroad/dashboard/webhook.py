"""`/webhook`: where the account is told what became of its mail, its secret, and the log of what was told."""

from typing import Any, Final, Literal

import msgspec

from postroad import errors
from postroad.dashboard import deliveries, forms, requests, verification_snippets
from postroad.dashboard import site as sites
from postroad.model import events, times
from postroad.services import context
from postroad.services.messages import dev_inbox
from postroad.services.webhooks import delivery_log, endpoints, replays
from postroad.services.webhooks import ping as webhooks_ping
from postroad.storage import webhooks as stored
from postroad.web import routing

PATH: Final = "/webhook"
ROWS: Final = 50
# What each event means, as in docs/webhooks.md.
EVENTS: Final = {
    events.EventType.DELIVERED: "The destination has accepted the message.",
    events.EventType.BOUNCED: "The destination has refused it for good.",
    events.EventType.FAILED: "All attempts are over, and none succeeded.",
}
PERIODS: Final = {"24h": times.DAY, "7d": delivery_log.LOG_SECONDS * times.SECOND}
_EXAMPLE: Final = events.body(
    "evt_06604ca5a09e5ac3bf30764dc163",
    events.EventType.BOUNCED,
    created_at=1_769_860_803_811_000,
    data=events.Data(
        email_id="em_06604ca58ccca61dc35061804060",
        recipient_id="rcp_06604ca58ccca63c75c8211311be",
        to="ada@example.net",
        sender="bounces+06604ca58ccca61dc35061804060@example.com",
        subject="Hello",
        smtp_code=550,
        smtp_response="5.1.1 <ada@example.net>: user unknown",
    ),
)
EXAMPLE: Final = msgspec.json.format(_EXAMPLE, indent=2).decode()


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the log. The form of the page sends what was left empty, too."""

    status: Literal["", "failed", "pending", "succeeded"] | None = None
    message: str | None = None
    before: str | None = None


class Endpoint(forms.Form, frozen=True, kw_only=True):
    """Where to tell what; a box that is not ticked is not sent."""

    url: str
    events: tuple[str, ...] | None = None
    enabled: bool | None = None


class Rotation(forms.Form, frozen=True, kw_only=True):
    """How long the old secret goes on beside the new one."""

    overlap_hours: int | None = None


class Replay(forms.Form, frozen=True, kw_only=True):
    """The period whose failures are told again; days are whole ones of UTC, both included."""

    period: Literal["24h", "7d", "days"]
    from_day: str | None = None
    to_day: str | None = None

    def bounds(self, now: int) -> tuple[int, int]:
        """From one time on, before another."""
        if self.period in PERIODS:
            if self.from_day or self.to_day:
                raise errors.InvalidRequest("period: choose 'the days below', or leave the days empty")
            return max(0, now - PERIODS[self.period]), now
        return _day("from_day", self.from_day), _day("to_day", self.to_day) + times.DAY


async def show(page_request: requests.PageRequest) -> routing.Response:
    """The endpoint and a part of the log; without an endpoint, what it is good for."""
    webhook = await endpoints.find(page_request.ctx, page_request.account_id)
    return page_request.page(
        "webhook.html", **_values(page_request, webhook), **await _log(page_request, page_request.query)
    )


async def save(page_request: requests.PageRequest) -> routing.Response:
    """Make the endpoint, and show its secret once; or change it."""
    form: Endpoint = page_request.form
    if not form.events:
        raise errors.InvalidRequest("events: tick at least one; to be told nothing, disable the webhook")
    enabled = form.enabled is True
    saved = await endpoints.save(
        page_request.ctx, page_request.account_id, url=form.url, wanted=form.events, enabled=enabled
    )
    if saved.secret is None:
        return page_request.redirect(
            PATH, notice="The webhook is saved." if enabled else "The webhook is saved, and disabled."
        )
    return await _with_secret(page_request, saved.webhook, saved.secret, "The webhook is saved")


async def rotate(page_request: requests.PageRequest) -> routing.Response:
    """A new secret, shown once."""
    form: Rotation = page_request.form
    secret = await endpoints.rotate(page_request.ctx, page_request.account_id, overlap_hours=form.overlap_hours)
    webhook = await endpoints.find(page_request.ctx, page_request.account_id)
    return await _with_secret(page_request, webhook, secret, "There is a new secret")


async def ping(page_request: requests.PageRequest) -> routing.Response:
    """A test event, sent once and now; the page of its delivery shows what came of it."""
    sent = await webhooks_ping.ping(page_request.ctx, page_request.account_id)
    is_taken = sent.status == "succeeded"
    notice = "The test event was taken." if is_taken else "The test event was not taken. Below is why."
    return page_request.redirect(
        f"{PATH}/deliveries/{sent.delivery.id}", notice=notice, kind="good" if is_taken else "bad"
    )


async def remove(page_request: requests.PageRequest) -> routing.Response:
    """Forget the endpoint."""
    await endpoints.remove(page_request.ctx, page_request.account_id)
    return page_request.redirect(PATH, notice="The webhook is removed, with its secret and its log.")


async def replay_failed(page_request: requests.PageRequest) -> routing.Response:
    """Tell again what failed in a period."""
    form: Replay = page_request.form
    after, before = form.bounds(page_request.ctx.clock())
    done = await replays.replay_failed(page_request.ctx, page_request.account_id, after=after, before=before)
    counted = "1 event is told again." if done.count == 1 else f"{done.count:,} events are told again."
    if not done.count:
        counted = "There was nothing to tell again: what failed then has been told since, or is about to be."
    return page_request.redirect(
        PATH, notice=f"{counted} There are more; do the same again to go on." if done.has_more else counted
    )


async def _with_secret(
    page_request: requests.PageRequest, webhook: stored.Webhook | None, secret: str, title: str
) -> routing.Response:
    values = {**_values(page_request, webhook), "secret": secret, "secret_title": title}
    return page_request.page("webhook.html", status=201, **values, **await _log(page_request, Query()))


def _values(page_request: requests.PageRequest, webhook: stored.Webhook | None) -> dict[str, Any]:
    return {
        "webhook": webhook,
        "chosen": webhook.events.split() if webhook else list(events.SUBSCRIBABLE),
        "kinds": EVENTS,
        "secret": None,
        "secret_title": "",
        "example": EXAMPLE,
        "verifying": verification_snippets.SNIPPETS,
        "retries": page_request.ctx.settings.webhooks.retry_seconds,
        "most_hours": endpoints.MAX_OVERLAP_HOURS,
        "built_in": f"{page_request.base_url}{dev_inbox.WEBHOOK_PATH}" if page_request.site.mail is not None else None,
    }


async def _log(page_request: requests.PageRequest, query: Query) -> dict[str, Any]:
    message, status = (query.message or "").strip(), query.status or None
    part = await delivery_log.part(
        page_request.ctx,
        page_request.account_id,
        message_id=message or None,
        status=status,
        before=query.before,
        limit=ROWS,
    )
    return {
        "rows": [deliveries.told(entry) for entry in part.entries],
        "following": part.next_before,
        "wanted": status or "",
        "message": message,
        "is_first": not (message or status or query.before),
    }


def _day(field: str, text: str | None) -> int:
    if text is None:
        raise errors.InvalidRequest(f"{field}: choose a day")
    try:
        return times.parse(f"{text}T00:00:00Z")
    except ValueError:
        raise errors.InvalidRequest(f"{field}: write the day like 2026-01-31") from None


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The endpoint, what can be done with it, and its log."""
    return (
        requests.get(site, PATH, show, query=Query),
        requests.post(site, PATH, save, form=Endpoint),
        requests.post(site, f"{PATH}/rotate", rotate, form=Rotation),
        requests.post(site, f"{PATH}/ping", ping),
        requests.post(site, f"{PATH}/remove", remove),
        requests.post(site, f"{PATH}/replay", replay_failed, form=Replay),
    )
