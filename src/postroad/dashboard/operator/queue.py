"""`/operator/queue`: what waits in all accounts, in numbers and in rows, and what is held."""

from typing import Final, Literal

import msgspec

from postroad.dashboard import forms, requests, urls
from postroad.dashboard.operator import console, jobs
from postroad.model import providers
from postroad.services import operator_jobs
from postroad.services.queue import holds, queue_jobs, queue_list, queue_summary
from postroad.web import routing

PATH: Final = "/operator/queue"
RECIPIENTS: Final = f"{PATH}/recipients"
ROWS: Final = 50
# Rows of each table of the overview; the count has more.
LARGEST: Final = 15
JOBS: Final = 5
State = Literal["ready", "waiting", "scheduled", "sending", "held"]
STATES: Final[tuple[State, ...]] = ("ready", "waiting", "scheduled", "sending", "held")
AGES: Final = {
    "under_1_minute": "under 1 minute",
    "under_10_minutes": "1 to 10 minutes",
    "under_1_hour": "10 minutes to 1 hour",
    "under_6_hours": "1 to 6 hours",
    "under_1_day": "6 hours to 1 day",
    "over_1_day": "over 1 day",
}


class RecipientsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which recipients; the form also sends empty fields."""

    account_id: str | None = None
    domain: str | None = None
    state: State | Literal[""] | None = None
    cursor: str | None = None


class Release(forms.Form, frozen=True, kw_only=True):
    """Which hold to release."""

    account_id: str | None = None
    domain: str | None = None
    duplicates_accepted: bool | None = None


def typed(text: str | None) -> str | None:
    """What was typed into a field, or None."""
    return (text or "").strip() or None


async def show(request: requests.PageRequest) -> routing.Response:
    """The queue in numbers, the holds, and the form that selects a part of it."""
    ctx = request.ctx
    counted = await request.site.operator_state.queue.read(ctx) or queue_summary.NOTHING
    ages = counted.by_age()
    started = [one for one in await operator_jobs.listed(ctx) if one.kind.startswith("queue.")]
    return request.page(
        "operator/queue.html",
        counted=counted,
        states=counted.by_state(),
        oldest_at=min((one.queued_at for one in counted.totals), default=None),
        ages=[(AGES[name], number) for name, number in ages.items()],
        accounts=counted.accounts[:LARGEST],
        domains=counted.domains[:LARGEST],
        causes=[(one, queue_summary.explain(one)) for one in counted.reasons[:LARGEST]],
        sample=queue_summary.SAMPLE,
        title_of=providers.title_of,
        holds=await holds.in_force(ctx),
        jobs=jobs.rows(started[:JOBS], now=ctx.clock()),
    )


async def index(request: requests.PageRequest) -> routing.Response:
    """Recipients, in order of account and message, and why each waits."""
    query: RecipientsQuery = request.query
    account_id, domain = typed(query.account_id), typed(query.domain)
    chosen = await queue_jobs.narrow(request.ctx, account_id=account_id, domain=domain)
    cursor = typed(query.cursor)
    found = await queue_list.page(request.ctx, chosen, state=query.state or "", cursor=cursor, limit=ROWS)
    counted = request.site.operator_state.queue.last or queue_summary.NOTHING
    selected = {"account_id": chosen.account_id, "domain": chosen.domain}
    next_url = urls.of(RECIPIENTS, **selected, state=query.state, cursor=found.next_cursor)
    return request.page(
        "operator/queue_recipients.html",
        entries=found.entries,
        names=counted.names,
        title_of=providers.title_of,
        chosen=chosen,
        state=query.state or "",
        states=STATES,
        is_first=cursor is None,
        is_filtered=bool(chosen.account_id or chosen.domain or query.state),
        next_url=next_url if found.next_cursor else "",
        change_url=urls.of(f"{PATH}/change", **selected, all="" if any(selected.values()) else "true"),
    )


async def release(request: requests.PageRequest) -> routing.Response:
    """Release a hold."""
    form: Release = request.form
    held = await holds.release_named(
        request.ctx,
        account_id=form.account_id or "",
        domain=form.domain or "",
        duplicates_accepted=bool(form.duplicates_accepted),
    )
    return request.redirect(PATH, notice=f"Released: {holds.scope(held)}.")


ROUTES: Final = (
    console.get(PATH, show),
    console.get(RECIPIENTS, index, query=RecipientsQuery),
    console.post(f"{PATH}/release", release, form=Release),
)
